//! What tells a kernel that its result is not wanted any more.
#![forbid(unsafe_code)]

use crate::base::time::now_ns;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Somebody said so, or the time is over.
///
/// ORDERING: Relaxed throughout; whoever sees it late does a little too much, and nothing is read on the strength of it. The
/// deadline changes only while nobody is in the run.
#[derive(Debug, Default)]
pub struct Stop {
    flag: AtomicU32,
    /// On the library's clock; 0 = never.
    deadline: AtomicU64,
}

/// Nobody can stop this call.
pub static NEVER: Stop = Stop { flag: AtomicU32::new(0), deadline: AtomicU64::new(0) };

impl Stop {
    pub fn set(&self) {
        self.flag.store(1, Relaxed);
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.flag.load(Relaxed) != 0
    }

    pub fn clear(&self) {
        self.flag.store(0, Relaxed);
    }

    /// When the time is over; 0 = never.
    pub fn set_deadline(&self, at_ns: u64) {
        self.deadline.store(at_ns, Relaxed);
    }

    pub fn is_late(&self) -> bool {
        match self.deadline.load(Relaxed) {
            0 => false,
            at_ns => now_ns() >= at_ns,
        }
    }
}
