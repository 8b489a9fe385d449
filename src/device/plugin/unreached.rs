//! Events of a device that nobody holds any more, and that the device may still be about to reach.
#![forbid(unsafe_code)]

use super::table::Pointer;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[derive(Debug, Default)]
pub(super) struct UnreachedEvents {
    events: Mutex<Vec<Pointer>>,
    /// Whether there are any. ORDERING: Relaxed; the lock orders the list, and who misses one leaves it to the next.
    any: AtomicBool,
}

impl UnreachedEvents {
    pub(super) fn add(&self, event: Pointer) {
        let mut events = self.events.lock();
        // Without memory for it the event stays for ever: it must not be destroyed.
        if events.try_reserve(1).is_ok() {
            events.push(event);
            self.any.store(true, Relaxed);
        }
    }

    pub(super) fn take(&self) -> Vec<Pointer> {
        if !self.any.load(Relaxed) {
            return Vec::new();
        }
        let mut events = self.events.lock();
        self.any.store(false, Relaxed);
        std::mem::take(&mut *events)
    }
}
