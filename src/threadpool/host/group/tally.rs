//! A group's pending tasks, sleepers and holders: one 64-bit word.
//!
//! ```text
//! | noticed : 1 | sleepers : 15 | holders : 16 | pending : 32 |
//! ```
//!
//! Every step is one operation on this word, so it sees the state that it changes. A sleeper counts itself before it
//! looks at the pending tasks; the end of the last task sees in the same step whether there are sleepers. So one of the
//! two sees the other, and no fence is needed. The same holds for the notice that waits for the end, and for the last
//! holder: the thread that makes pending and holders both zero frees the group, once.
//!
//! A task is counted before it can be taken, so `pending` is never less than the number of unfinished tasks.
#![forbid(unsafe_code)]

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

const PENDING: u64 = 1;
const HOLDER: u64 = 1 << 32;
const SLEEPER: u64 = 1 << 48;
const NOTICED: u64 = 1 << 63;

/// The word as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyWord(u64);

impl TallyWord {
    /// Tasks that are not done.
    #[inline(always)]
    pub fn pending(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub fn holders(self) -> u32 {
        (self.0 >> 32) as u32 & 0xFFFF
    }

    #[inline(always)]
    pub fn sleepers(self) -> u32 {
        (self.0 >> 48) as u32 & 0x7FFF
    }

    /// Whether a notice waits for the end.
    #[inline(always)]
    pub fn noticed(self) -> bool {
        self.0 & NOTICED != 0
    }

    /// Whether no holder may be expected to wait for it.
    #[inline(always)]
    pub fn is_unattended(self) -> bool {
        self.noticed() || self.holders() == 0
    }
}

#[derive(Debug)]
pub struct GroupTally(AtomicU64);

impl Default for GroupTally {
    fn default() -> Self {
        GroupTally::new()
    }
}

impl GroupTally {
    pub fn new() -> GroupTally {
        GroupTally(AtomicU64::new(0))
    }

    /// ORDERING: Acquire pairs with the Release in `done`: a thread that sees nothing pending sees the tasks' work.
    #[inline(always)]
    pub fn look(&self) -> TallyWord {
        TallyWord(self.0.load(Acquire))
    }

    /// A new group, with one holder. Requires exclusive access.
    #[inline(always)]
    pub fn begin(&self) {
        // ORDERING: Relaxed; others get the group by something that orders it.
        self.0.store(HOLDER, Relaxed);
    }

    /// Counts a task; returns the word before.
    #[inline(always)]
    pub fn add(&self) -> TallyWord {
        // ORDERING: Relaxed; the task's record is published after it.
        TallyWord(self.0.fetch_add(PENDING, Relaxed))
    }

    /// A task is done; returns the word after. `noticed` means that this was the last one and the caller must deliver
    /// the notice: the step that ends the last task takes it, so that it is delivered once, for this end. ORDERING:
    /// AcqRel; the last one sees the others' work.
    #[inline(always)]
    pub fn done(&self) -> TallyWord {
        let mut before = self.0.load(Relaxed);
        loop {
            let left = before - PENDING;
            let is_last = left as u32 == 0;
            let after = if is_last { left & !NOTICED } else { left };
            match self.0.compare_exchange_weak(before, after, AcqRel, Relaxed) {
                Ok(_) if is_last => return TallyWord(left),
                Ok(_) => return TallyWord(left & !NOTICED),
                Err(now) => before = now,
            }
        }
    }

    /// This thread is about to sleep; returns the word after. ORDERING: AcqRel, see `look`.
    pub fn sleep(&self) -> TallyWord {
        TallyWord(self.0.fetch_add(SLEEPER, AcqRel) + SLEEPER)
    }

    pub fn wake_up(&self) {
        self.0.fetch_sub(SLEEPER, Relaxed);
    }

    /// A notice waits for the end from now on, and holds the group; false if nothing is pending. ORDERING: AcqRel; the
    /// end of the last task sees the notice.
    pub fn notice(&self) -> bool {
        let mut before = self.0.load(Acquire);
        while before as u32 != 0 {
            match self.0.compare_exchange_weak(before, (before + HOLDER) | NOTICED, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => before = now,
            }
        }
        false
    }

    /// For the broken twin of a model: a notice, even if nothing is pending.
    #[cfg(all(test, loom))]
    pub(super) fn put_up_notice(&self) {
        self.0.fetch_add(NOTICED | HOLDER, AcqRel);
    }

    pub fn retain(&self) {
        self.0.fetch_add(HOLDER, Relaxed);
    }

    /// Removes a holder, unless it is the last one; then false. ORDERING: AcqRel, as `release`.
    pub fn release_unless_last(&self) -> bool {
        let mut before = self.look();
        while before.holders() > 1 {
            match self.0.compare_exchange_weak(before.0, before.0 - HOLDER, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => before = TallyWord(now),
            }
        }
        false
    }

    /// Removes a holder; returns the word after. ORDERING: AcqRel; the freeing thread sees all uses.
    #[inline(always)]
    pub fn release(&self) -> TallyWord {
        // A group with one holder and nothing pending cannot get another holder.
        if self.look().0 == HOLDER {
            self.0.store(0, Relaxed);
            return TallyWord(0);
        }
        TallyWord(self.0.fetch_sub(HOLDER, AcqRel) - HOLDER)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_step_says_what_it_met() {
        let tally = GroupTally::new();
        tally.begin();
        assert_eq!((tally.add().pending(), tally.look().pending(), tally.look().holders()), (0, 1, 1));
        assert_eq!(tally.sleep().sleepers(), 1);
        let end = tally.done();
        assert_eq!((end.pending(), end.sleepers(), end.noticed(), end.is_unattended()), (0, 1, false, false));
        tally.wake_up();
        tally.add();
        tally.add();
        assert!(tally.notice() && tally.look().is_unattended());
        assert_eq!([tally.done(), tally.done()].map(TallyWord::noticed), [false, true]);
        assert!(!tally.look().noticed() && !tally.notice());
        tally.retain();
        assert!(tally.release_unless_last());
        assert_eq!(tally.release().holders(), 1);
        assert!(!tally.release_unless_last());
        tally.add();
        assert!(tally.release().is_unattended());
        assert_eq!(tally.done(), TallyWord(0));
    }
}
