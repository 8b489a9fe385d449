//! A queue's failure: the first error sticks, and is reported once to each of two audiences.

use crate::base::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard};

/// Who is told of a failure: the one who waits for the stream, and the one who waits for the whole device. Each is
/// told once, so that a profiler that synchronises the device does not take the error away from the stream's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Stream,
    Device,
}

#[derive(Debug)]
struct Failure {
    error: Error,
    told_stream: bool,
    told_device: bool,
}

#[derive(Debug, Default)]
pub struct Latch {
    /// Whether `failure` is there, readable without the lock.
    failed: AtomicBool,
    failure: Mutex<Option<Failure>>,
    /// Items up to this one are skipped although the failure was cleared: they were queued before. And what it was.
    skipped_until: AtomicU64,
    cleared: Mutex<Option<Error>>,
}

impl Latch {
    fn lock(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Keeps the error if it is the first.
    pub fn set(&self, error: Error) {
        self.lock().get_or_insert(Failure { error, told_stream: false, told_device: false });
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
    pub fn cause(&self, item: u64) -> Option<Error> {
        if self.is_failed() {
            return self.error();
        }
        // ORDERING: Acquire pairs with the Release in `clear`.
        if item > self.skipped_until.load(Acquire) {
            return None;
        }
        self.cleared.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// The error, if this audience was not told yet.
    pub fn tell(&self, audience: Audience) -> Option<Error> {
        if !self.is_failed() {
            return None;
        }
        let mut failure = self.lock();
        let failure = failure.as_mut()?;
        let told = match audience {
            Audience::Stream => &mut failure.told_stream,
            Audience::Device => &mut failure.told_device,
        };
        (!std::mem::replace(told, true)).then(|| failure.error.clone())
    }

    /// Forgets the failure; items up to number `last` stay skipped.
    pub fn clear(&self, last: u64) {
        let mut failure = self.lock();
        if let Some(failure) = failure.take() {
            *self.cleared.lock().unwrap_or_else(|e| e.into_inner()) = Some(failure.error);
            self.skipped_until.store(last, Release);
        }
        self.failed.store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_sticks_and_each_audience_hears_it_once() {
        let latch = Latch::default();
        assert!(latch.tell(Audience::Stream).is_none());
        latch.set(Error::invalid("first"));
        latch.set(Error::invalid("second"));
        assert_eq!(latch.tell(Audience::Stream).unwrap().message(), "first");
        assert!(latch.tell(Audience::Stream).is_none());
        assert_eq!(latch.tell(Audience::Device).unwrap().message(), "first");
        assert!(latch.tell(Audience::Device).is_none());
        assert!(latch.error().is_some());
        assert_eq!(latch.cause(9).unwrap().message(), "first");
        latch.clear(5);
        assert!(latch.error().is_none() && !latch.is_failed());
        assert_eq!(latch.cause(5).unwrap().message(), "first");
        assert!(latch.cause(6).is_none());
    }
}
