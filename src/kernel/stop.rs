//! What tells a kernel that its result is not wanted any more.
#![forbid(unsafe_code)]

use crate::base::time::now_ns;
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A run that a call of another run makes: it is stopped with that one.
pub trait Inner: Send + Sync {
    fn stop(&self);
}

/// Somebody said so, or the time is over.
///
/// ORDERING: Relaxed throughout; whoever sees it late does a little too much, and nothing is read on the strength of it. The
/// deadline changes only while nobody is in the run.
#[derive(Default)]
pub struct Stop {
    flag: AtomicU32,
    /// On the library's clock; 0 = never.
    deadline: AtomicU64,
    /// Runs inside of this one. A run that comes after the flag is set sees it; one that came before is told.
    inner: Mutex<Vec<Arc<dyn Inner>>>,
}

/// While this lives, a run is stopped with the one around it. From then on it is left alone.
pub struct Link<'a> {
    outer: &'a Stop,
    inner: Arc<dyn Inner>,
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        let mut all = self.outer.inner.lock();
        if let Some(at) = all.iter().position(|inner| Arc::ptr_eq(inner, &self.inner)) {
            drop(all.swap_remove(at));
        }
    }
}

/// Nobody can stop this call.
pub static NEVER: Stop = Stop { flag: AtomicU32::new(0), deadline: AtomicU64::new(0), inner: Mutex::new(Vec::new()) };

impl Stop {
    pub fn set(&self) {
        // Under the lock, so that who comes in finds the flag or is in the list.
        let inner = self.inner.lock();
        self.flag.store(1, Relaxed);
        inner.iter().for_each(|inner| inner.stop());
    }

    /// Has a run stopped with this one, at once if this one is.
    pub fn link(&self, inner: Arc<dyn Inner>) -> Link<'_> {
        let mut all = self.inner.lock();
        if self.is_set() {
            inner.stop();
        }
        all.push(Arc::clone(&inner));
        drop(all);
        Link { outer: self, inner }
    }

    pub fn deadline(&self) -> u64 {
        self.deadline.load(Relaxed)
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
