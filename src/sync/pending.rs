//! Calls that complete after the function that started them has returned, and how their run learns of it.
//!
//! Two words. `Rendezvous` belongs to one call, `Returns` to one run.
//!
//! # Rendezvous: who continues after a call
//!
//! A call has a *starter*, the thread that calls its start function, and one *completer*, the thread that reports it
//! done: any thread, possibly the starter itself, possibly before the start function returns. The word is
//!
//! ```text
//! | generation : 32 | ... | RETURNED | DONE | CLAIMED |
//! ```
//!
//! | step       | who                  | change                                | answer                             |
//! |------------|----------------------|---------------------------------------|------------------------------------|
//! | `begin`    | the owner, alone     | generation + 1, no bits               | the generation, part of the handle |
//! | `claim`    | the reporting thread | CLAIMED, if unset and same generation | whether it is the completer        |
//! | `done`     | the completer        | DONE                                  | whether the starter has gone on    |
//! | `returned` | the starter          | RETURNED                              | whether the call is done           |
//!
//! `claim` makes a second completion, or one of an earlier call, harmless: it finds CLAIMED or another generation.
//! Between `claim` and `done` the completer stores the result. `done` and `returned` are each one step on the same
//! word, so exactly one of the two comes second and continues after the call: the starter in its own loop (nothing
//! nests, however many calls complete at once), the completer by pushing to the run's `Returns`.
//!
//! # Returns: the completed calls, and who is woken
//!
//! A stack of the run's completed calls that no worker has taken yet, linked through an array of the run's; its head is
//! one word:
//!
//! | head   | meaning                                       | leaves it by                                         |
//! |--------|-----------------------------------------------|------------------------------------------------------|
//! | EMPTY  | nothing completed; the run's owner is at work | `push` -> a number, `sleep` -> ASLEEP                |
//! | number | this call completed last                      | `take` -> EMPTY; `push` -> a number                  |
//! | ASLEEP | nothing completed; the owner sleeps           | `push` -> a number, wakes the owner; `wake` -> EMPTY |
//!
//! The *owner* is the one thread that sees a run to its end: the caller of a synchronous run, or the holder of its
//! stream's drain lock. It may sleep (or park the stream) only after `sleep` has changed EMPTY to ASLEEP, which fails
//! while anything is there. So the owner sees a push that comes before, and a later push meets ASLEEP, and its pusher
//! alone wakes the owner: no wake is lost and nobody is woken twice. Any worker of the run may `take` meanwhile; an
//! owner that finds the stack empty sleeps again.
//!
//! A run with a call that is not taken has nodes left, so it is not closed, and its memory stays: the completer pushes
//! into a run that is open.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU32, AtomicU64, Ordering::*};

const CLAIMED: u64 = 1;
pub(super) const DONE: u64 = 2;
const RETURNED: u64 = 4;
const GENERATION_SHIFT: u32 = 32;

/// Decides which of starter and completer continues after a call.
#[derive(Debug)]
pub struct Rendezvous(pub(super) AtomicU64);

impl Rendezvous {
    /// No call is in flight.
    pub fn new() -> Rendezvous {
        Rendezvous(AtomicU64::new(CLAIMED))
    }

    /// A call begins. Only by its owner, when the last one is over.
    pub fn begin(&self) -> u32 {
        // ORDERING: Relaxed load; the owner saw the end of the last call. Release store pairs with `claim`: a thread
        // that got the handle sees what the owner prepared.
        let generation = ((self.0.load(Relaxed) >> GENERATION_SHIFT) as u32).wrapping_add(1);
        self.0.store(u64::from(generation) << GENERATION_SHIFT, Release);
        generation
    }

    /// Ends the handle: no more calls use it.
    pub fn end(&self) {
        let generation = ((self.0.load(Relaxed) >> GENERATION_SHIFT) as u32).wrapping_add(1);
        self.0.store(u64::from(generation) << GENERATION_SHIFT | CLAIMED, Release);
    }

    /// True for the first that completes the call of this generation.
    pub fn claim(&self, generation: u32) -> bool {
        let mut word = self.0.load(Relaxed);
        while word >> GENERATION_SHIFT == u64::from(generation) && word & CLAIMED == 0 {
            // ORDERING: Acquire pairs with the Release in `begin`.
            match self.0.compare_exchange_weak(word, word | CLAIMED, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// By the completer, when the result is stored: true if the starter has moved on, so that the completer must
    /// continue. If not, the starter owns the call's memory again at once.
    pub fn done(&self) -> bool {
        // ORDERING: Release publishes the result to `returned`; Acquire sees what the starter did.
        self.0.fetch_or(DONE, AcqRel) & RETURNED != 0
    }

    /// By the starter, when the start function has returned: true if the call is done, and the starter continues.
    pub fn returned(&self) -> bool {
        // ORDERING: Acquire pairs with `done`; Release with its Acquire.
        self.0.fetch_or(RETURNED, AcqRel) & DONE != 0
    }
}

impl Default for Rendezvous {
    fn default() -> Self {
        Rendezvous::new()
    }
}

const EMPTY: u32 = u32::MAX;
const ASLEEP: u32 = u32::MAX - 1;

/// The completed calls of a run. Numbers are below 2^32 - 2.
#[derive(Debug)]
pub struct Returns(AtomicU32);

impl Returns {
    pub fn new() -> Returns {
        Returns(AtomicU32::new(EMPTY))
    }

    /// Pushes a number; `link(next)` notes the one below it, `None` for the last. True if the owner was asleep: the
    /// caller must wake it.
    #[must_use]
    pub fn push(&self, number: u32, link: impl Fn(Option<u32>)) -> bool {
        let mut head = self.0.load(Relaxed);
        loop {
            link((head < ASLEEP).then_some(head));
            // ORDERING: Release publishes the link and the call's results to `take`.
            match self.0.compare_exchange_weak(head, number, Release, Relaxed) {
                Ok(_) => return head == ASLEEP,
                Err(now) => head = now,
            }
        }
    }

    /// Takes everything: the first, the rest by the links.
    pub fn take(&self) -> Option<u32> {
        let mut head = self.0.load(Relaxed);
        while head < ASLEEP {
            // ORDERING: Acquire pairs with the Releases in `push`; earlier pushes are seen too, because a push on top
            // of them continues their release sequence.
            match self.0.compare_exchange_weak(head, EMPTY, Acquire, Relaxed) {
                Ok(_) => return Some(head),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Whether something is there. ORDERING: Relaxed; a hint.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.load(Relaxed) < ASLEEP
    }

    /// Called before the owner sleeps. False if it must not: there is something to take.
    #[must_use]
    pub fn sleep(&self) -> bool {
        // ORDERING: Release, so that the waking thread sees how to wake the owner; pairs with the read half of `push`.
        match self.0.compare_exchange(EMPTY, ASLEEP, AcqRel, Acquire) {
            Ok(_) => true,
            Err(head) => head == ASLEEP,
        }
    }

    /// The owner is awake again.
    pub fn wake(&self) {
        let _ = self.0.compare_exchange(ASLEEP, EMPTY, Relaxed, Relaxed);
    }
}

impl Default for Returns {
    fn default() -> Self {
        Returns::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_call_is_completed_once() {
        let meeting = Rendezvous::new();
        assert!(!meeting.claim(0));
        let first = meeting.begin();
        assert!(meeting.claim(first) && !meeting.claim(first));
        assert!(!meeting.done() && meeting.returned());
        let second = meeting.begin();
        assert!(!meeting.claim(first));
        assert!(!meeting.returned());
        assert!(meeting.claim(second) && meeting.done());
        meeting.end();
        assert!(!meeting.claim(second) && !meeting.claim(second + 1));
    }

    #[test]
    fn the_owner_sleeps_only_over_nothing() {
        let (returns, below) = (Returns::new(), RefCell::new(Vec::new()));
        let push = |number| returns.push(number, |next| below.borrow_mut().push(next));
        assert!(!push(7) && !push(3));
        assert!(returns.any() && !returns.sleep());
        assert_eq!(*below.borrow(), [None, Some(7)]);
        assert_eq!(returns.take(), Some(3));
        assert!(returns.sleep() && returns.sleep());
        assert_eq!(returns.take(), None);
        assert!(push(1) && !push(2));
        assert_eq!(returns.take(), Some(2));
        assert!(returns.sleep());
        returns.wake();
        assert!(!push(4));
    }
}
