//! The lock of an exclusive variable. Only host threads that may block sleep on it.
//!
//! A kernel that finds it taken registers as a waiter, and ends its round (`kernel::Completion`); the thread that
//! releases the lock completes the rounds of all waiters, and they try again, each where its run continues. The lock is
//! never handed over directly, so nothing is lost when the run next in turn has stopped meanwhile. The lock is held for
//! the time of a copy or a sum, whose pieces may be shared with the pool, and never during any other wait.
#![forbid(unsafe_code)]

use crate::base::time::{Deadline, now_ns};
use crate::base::{Error, Result};
use crate::kernel::Completion;
use crate::sync::{EventCount, Mutex, ambient};
use smallvec::SmallVec;

/// How long a worker that must not wait for a lock spins for its release.
const LOOK_NS: u64 = 100_000;

#[derive(Default)]
struct AccessState {
    is_held: bool,
    waiting: SmallVec<[Completion; 8]>,
}

pub(super) struct VariableLock {
    state: Mutex<AccessState>,
    /// Advanced at each release of the lock.
    releases: EventCount,
}

/// The lock is held until this is dropped.
pub(super) struct HeldLock<'a>(&'a VariableLock);

impl HeldLock<'_> {
    /// Whether this holds the given lock.
    pub fn is_of(&self, access: &VariableLock) -> bool {
        std::ptr::eq(self.0, access)
    }
}

impl VariableLock {
    pub fn new() -> VariableLock {
        VariableLock { state: Mutex::default(), releases: EventCount::new() }
    }

    /// Takes the lock; or returns `None`, and the completion from `word` is completed when the lock is free.
    pub fn take_or_leave_word(&self, word: impl FnOnce() -> Completion) -> Option<HeldLock<'_>> {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.is_held, true) {
            state.waiting.push(word());
            return None;
        }
        Some(HeldLock(self))
    }

    fn take(&self) -> Option<HeldLock<'_>> {
        let was_held = std::mem::replace(&mut self.state.lock().is_held, true);
        (!was_held).then(|| HeldLock(self))
    }

    /// Takes the lock for a call of the host's. Waits for it, in a worker only as long as that is harmless; `what`
    /// names the locked object.
    pub fn wait(&self, what: &dyn Fn() -> String) -> Result<HeldLock<'_>> {
        let begun = now_ns();
        loop {
            let seen = self.releases.reached();
            if let Some(held) = self.take() {
                return Ok(held);
            }
            if ambient::depth() == 0 {
                self.releases.wait(seen + 1, 0, Deadline::NEVER);
            } else if now_ns() - begun > LOOK_NS {
                return Err(Error::precondition(format!(
                    "{} is in use by another thread, and waiting for it here could block a worker of a thread pool",
                    what()
                )));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Drop for HeldLock<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_held = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.0.releases.advance(1);
        for word in waiting {
            // No other thread has it.
            let _ = word.done(Ok(()));
        }
    }
}
