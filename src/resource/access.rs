//! The lock of an exclusive variable, which nobody sleeps on but threads of the host's that may.
//!
//! A kernel that finds it taken leaves word, and ends its round (`kernel::Completion`); the one who lets go of the lock
//! completes the rounds of all who left word, and they try again, each where its run goes on. Nobody is handed the
//! lock, so nothing is lost when a run whose turn it would be has stopped meanwhile. The lock is held for as long as a
//! copy or a sum takes, whose pieces may be shared with the pool, and never while anything else is waited for.
#![forbid(unsafe_code)]

use crate::base::time::{Deadline, now_ns};
use crate::base::{Error, Result};
use crate::kernel::Completion;
use crate::sync::{EventCount, Mutex, ambient};
use smallvec::SmallVec;

/// How long a worker looks whether a lock is let go of that it cannot wait for.
const LOOK_NS: u64 = 100_000;

#[derive(Default)]
struct State {
    is_held: bool,
    waiting: SmallVec<[Completion; 8]>,
}

pub(super) struct Access {
    state: Mutex<State>,
    /// Advanced each time the lock is let go of.
    releases: EventCount,
}

/// The lock is held until this is dropped.
pub(super) struct Held<'a>(&'a Access);

impl Held<'_> {
    /// Whether it is this lock.
    pub fn is_of(&self, access: &Access) -> bool {
        std::ptr::eq(self.0, access)
    }
}

impl Access {
    pub fn new() -> Access {
        Access { state: Mutex::default(), releases: EventCount::new() }
    }

    /// The lock; or None, and what `word` gives is completed when the lock is free.
    pub fn take_or_leave_word(&self, word: impl FnOnce() -> Completion) -> Option<Held<'_>> {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.is_held, true) {
            state.waiting.push(word());
            return None;
        }
        Some(Held(self))
    }

    fn take(&self) -> Option<Held<'_>> {
        let was_held = std::mem::replace(&mut self.state.lock().is_held, true);
        (!was_held).then(|| Held(self))
    }

    /// The lock, for a call of the host's. Waits for it, in a worker only as long as that is harmless; `what` names
    /// what it is of.
    pub fn wait(&self, what: &dyn Fn() -> String) -> Result<Held<'_>> {
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

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_held = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.0.releases.advance(1);
        for word in waiting {
            // Nobody else has it.
            let _ = word.done(Ok(()));
        }
    }
}
