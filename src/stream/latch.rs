//! A queue's failure: the first error sticks, and is reported once to each of two audiences.

use crate::base::Error;
use std::sync::atomic::{AtomicBool, Ordering::*};
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

    pub fn clear(&self) {
        let mut failure = self.lock();
        *failure = None;
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
        latch.clear();
        assert!(latch.error().is_none() && !latch.is_failed());
    }
}
