//! A queue's failure: the first error sticks, and is reported once to a waiter for the stream. Waiters for the whole
//! device get it from the account, so that a profiler that synchronises the device does not take the error from the
//! stream's owner.
#![forbid(unsafe_code)]

use crate::base::Error;
use crate::sync::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

#[derive(Debug)]
struct LatchedFailure {
    error: Error,
    was_told: bool,
}

#[derive(Debug, Default)]
pub struct Latch {
    /// Whether `failure` is set, readable without the lock.
    failed: AtomicBool,
    failure: Mutex<Option<LatchedFailure>>,
    /// Items up to this one are skipped although the failure was cleared, because they were queued before; and that
    /// failure.
    skipped_until: AtomicU64,
    cleared: Mutex<Option<Error>>,
}

impl Latch {
    fn lock(&self) -> MutexGuard<'_, Option<LatchedFailure>> {
        self.failure.lock()
    }

    /// Keeps the error if it is the first, and calls `note` in the same step (see `clear`).
    pub fn set(&self, error: Error, note: impl FnOnce(&Error)) {
        let mut failure = self.lock();
        if failure.is_none() {
            note(&error);
            *failure = Some(LatchedFailure { error, was_told: false });
        }
        // ORDERING: Release pairs with the Acquire in `is_failed`; the error itself is read under the lock.
        self.failed.store(true, Release);
    }

    pub fn is_failed(&self) -> bool {
        self.failed.load(Acquire)
    }

    pub fn error(&self) -> Option<Error> {
        if !self.is_failed() {
            return None;
        }
        self.lock().as_ref().map(|failure| failure.error.clone())
    }

    /// Why item number `item` must be skipped, if it must.
    #[inline]
    pub fn cause(&self, item: u64) -> Option<Error> {
        if self.is_failed() {
            return self.error();
        }
        // ORDERING: Acquire pairs with the Release in `clear`.
        if item > self.skipped_until.load(Acquire) {
            return None;
        }
        self.cleared.lock().clone()
    }

    /// The error, if it was not reported yet.
    pub fn tell(&self) -> Option<Error> {
        if !self.is_failed() {
            return None;
        }
        let mut failure = self.lock();
        let failure = failure.as_mut()?;
        (!std::mem::replace(&mut failure.was_told, true)).then(|| failure.error.clone())
    }

    /// Forgets the failure, here and where it was noted; items up to number `last` stay skipped.
    pub fn clear(&self, last: u64, forget: impl FnOnce()) {
        let mut failure = self.lock();
        if let Some(failure) = failure.take() {
            forget();
            *self.cleared.lock() = Some(failure.error);
            self.skipped_until.store(last, Release);
        }
        self.failed.store(false, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_sticks_and_is_told_once() {
        let latch = Latch::default();
        assert!(latch.tell().is_none());
        let noted = std::cell::Cell::new(0);
        latch.set(Error::invalid("first"), |_| noted.set(noted.get() + 1));
        latch.set(Error::invalid("second"), |_| noted.set(noted.get() + 1));
        assert_eq!(noted.get(), 1);
        assert_eq!(latch.tell().unwrap().message(), "first");
        assert!(latch.tell().is_none());
        assert!(latch.error().is_some());
        assert_eq!(latch.cause(9).unwrap().message(), "first");
        latch.clear(5, || noted.set(0));
        assert_eq!(noted.get(), 0);
        assert!(latch.error().is_none() && !latch.is_failed());
        assert_eq!(latch.cause(5).unwrap().message(), "first");
        assert!(latch.cause(6).is_none());
    }
}
