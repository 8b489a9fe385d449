//! A gate to something that the host owns, which can be closed for good.
//!
//! One word says whether it is closed, how many threads are inside, and how many errands are owed: work that was handed
//! over and must be done, however long it stays queued. An entering thread counts itself and reads the flag in one
//! step. So it and the closing thread see each other: the closer waits for threads that were counted before it closed,
//! and a later one sees that the door is closed, takes its count back and stays out. With the look before the count a
//! thread could slip in unseen (`models_door_keeps_out_who_comes_late` has that version as its broken twin).
//!
//! The last thread that leaves a closed door advances the event count on which the closers wait. Late counts that are
//! taken back may do so again, which wakes nobody.
#![forbid(unsafe_code)]

use crate::base::time::Deadline;
use crate::sync::EventCount;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

const CLOSED: u64 = 1 << 63;
const OWED: u64 = 1 << 32;

#[derive(Debug)]
pub struct Door {
    word: AtomicU64,
    empty: EventCount,
}

/// A thread is inside while this lives.
#[derive(Debug)]
pub struct DoorGuard<'a>(&'a Door);

impl Drop for DoorGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.take_off(1);
    }
}

impl Default for Door {
    fn default() -> Self {
        Door::new()
    }
}

impl Door {
    pub fn new() -> Door {
        Door { word: AtomicU64::new(0), empty: EventCount::new() }
    }

    /// `None` if the door is closed.
    #[inline]
    pub fn enter(&self) -> Option<DoorGuard<'_>> {
        self.count(1).then(|| DoorGuard(self))
    }

    /// Adds an errand, to be `settle`d when it is done. False if the door is closed.
    pub fn owe(&self) -> bool {
        self.count(OWED)
    }

    /// An errand is done, or was never taken on.
    pub fn settle(&self) {
        self.take_off(OWED);
    }

    #[inline]
    fn count(&self, what: u64) -> bool {
        // ORDERING: Relaxed; only the order of this one word matters.
        let is_open = self.word.fetch_add(what, Relaxed) & CLOSED == 0;
        if !is_open {
            self.take_off(what);
        }
        is_open
    }

    #[inline]
    fn take_off(&self, what: u64) {
        // ORDERING: Release pairs with the Acquire in `is_empty`: a thread that sees nobody inside sees the work of
        // those that were.
        if self.word.fetch_sub(what, Release) == CLOSED + what {
            self.empty.advance(1);
        }
    }

    /// Nobody enters from here on. Some may still be inside.
    pub fn close(&self) {
        // ORDERING: Relaxed, as in `count`.
        self.word.fetch_or(CLOSED, Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        // ORDERING: Relaxed; a stale answer is as good as an earlier question.
        self.word.load(Relaxed) & CLOSED != 0
    }

    /// For a closed door: whether all have left and nothing is owed. Then that stays so.
    pub fn is_empty(&self) -> bool {
        self.word.load(Acquire) == CLOSED
    }

    /// For a closed door: waits until all have left and nothing is owed. False if the deadline passed first.
    pub fn wait_until_empty(&self, spin_ns: u64, deadline: Deadline) -> bool {
        // A late count hides for a moment that the door is empty; taking it back advances the event count.
        self.is_empty() || self.empty.wait(1, spin_ns, deadline)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_closed_door_is_empty_when_all_have_left() {
        let door = Door::new();
        let inside = door.enter();
        assert!(inside.is_some() && door.owe() && !door.is_closed());
        door.close();
        assert!(door.enter().is_none() && !door.owe() && !door.is_empty());
        drop(inside);
        assert!(!door.wait_until_empty(0, Deadline::after(1)));
        door.settle();
        assert!(door.is_empty() && door.wait_until_empty(0, Deadline::NEVER));
        assert!(door.enter().is_none() && door.is_empty(), "late comers leave no trace");
    }
}
