//! A door to something that is not the library's, which can be closed for good.
//!
//! One word says whether it is closed, how many are inside, and how many errands are owed: work that was handed over
//! and has to be done, however long it lies where it is. Who wants to go in counts itself first and looks then, in one
//! step. So of whoever goes in and whoever closes, each sees the other: who was counted before the door was closed is
//! waited for, and who comes later sees that it is closed, takes its count back and stays out. A look first and a count
//! then would let somebody in behind the back of the one that closes (`models_door_keeps_out_who_comes_late` has that
//! version as its broken twin).
//!
//! Whoever leaves a closed door as the last one opens the gate on which those wait who have closed it. Late counts that
//! are taken back may do so again, which wakes nobody.
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

/// Somebody is inside while this lives.
#[derive(Debug)]
pub struct Inside<'a>(&'a Door);

impl Drop for Inside<'_> {
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

    /// None if the door is closed.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_>> {
        self.count(1).then(|| Inside(self))
    }

    /// One errand more, to be `settle`d when it is done. False if the door is closed.
    pub fn owe(&self) -> bool {
        self.count(OWED)
    }

    /// An errand is done, or was never taken on.
    pub fn settle(&self) {
        self.take_off(OWED);
    }

    #[inline]
    fn count(&self, what: u64) -> bool {
        // ORDERING: Relaxed; all that is asked for is the order of this one word.
        let is_open = self.word.fetch_add(what, Relaxed) & CLOSED == 0;
        if !is_open {
            self.take_off(what);
        }
        is_open
    }

    #[inline]
    fn take_off(&self, what: u64) {
        // ORDERING: Release pairs with the Acquire in `is_empty`: who sees nobody inside sees what those inside did.
        if self.word.fetch_sub(what, Release) == CLOSED + what {
            self.empty.advance(1);
        }
    }

    /// From here on nobody goes in. Those who are inside may still be.
    pub fn close(&self) {
        // ORDERING: Relaxed, as in `count`.
        self.word.fetch_or(CLOSED, Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        // ORDERING: Relaxed; a late look is as good as an early question.
        self.word.load(Relaxed) & CLOSED != 0
    }

    /// Of a closed door: whether all have left and nothing is owed. Then that stays so.
    pub fn is_empty(&self) -> bool {
        self.word.load(Acquire) == CLOSED
    }

    /// Of a closed door: waits until all have left and nothing is owed. False if the deadline passed first.
    pub fn wait_until_empty(&self, spin_ns: u64, deadline: Deadline) -> bool {
        // Who takes back a late count hides for a moment that the door is empty, and opens the gate then.
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
