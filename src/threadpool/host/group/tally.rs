//! What is left of a group of tasks, who sleeps for its end, and who holds it: one 64-bit word.
//!
//! ```text
//! | noticed : 1 | sleepers : 15 | holders : 16 | pending : 32 |
//! ```
//!
//! Everything is a step on this one word, so each step knows what it met. Who sleeps counts itself first and looks at
//! what is pending then; who ends the last task sees in the same step whether somebody counts as asleep. So of the two
//! one sees the other, and no fence is needed. The same holds for the notice that waits for the end, and for the last
//! holder: whoever makes pending and holders both zero frees the group, once.
//!
//! A task is counted before it can be taken, so what is pending is never less than what is not done.
#![forbid(unsafe_code)]

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

const PENDING: u64 = 1;
const HOLDER: u64 = 1 << 32;
const SLEEPER: u64 = 1 << 48;
const NOTICED: u64 = 1 << 63;

/// The word as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(u64);

impl Count {
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

    /// Whether nobody who holds it may be expected to wait for it.
    #[inline(always)]
    pub fn is_unattended(self) -> bool {
        self.noticed() || self.holders() == 0
    }
}

#[derive(Debug)]
pub struct Tally(AtomicU64);

impl Default for Tally {
    fn default() -> Self {
        Tally::new()
    }
}

impl Tally {
    pub fn new() -> Tally {
        Tally(AtomicU64::new(0))
    }

    /// ORDERING: Acquire pairs with the Release in `done`: who sees nothing pending sees what the tasks did.
    #[inline(always)]
    pub fn look(&self) -> Count {
        Count(self.0.load(Acquire))
    }

    /// A new group, with one holder. By who has it alone.
    #[inline(always)]
    pub fn begin(&self) {
        // ORDERING: Relaxed; others get the group by something that orders it.
        self.0.store(HOLDER, Relaxed);
    }

    /// One task more; what there was before.
    #[inline(always)]
    pub fn add(&self) -> Count {
        // ORDERING: Relaxed; the record that says what to do is published behind it.
        Count(self.0.fetch_add(PENDING, Relaxed))
    }

    /// A task is done; what there is now. `noticed` says that this was the last one and the notice is the caller's to
    /// tell: the step that ends the last task takes it, so that it is told once, and of this end. ORDERING: AcqRel; the
    /// last one sees what the others did.
    #[inline(always)]
    pub fn done(&self) -> Count {
        let mut before = self.0.load(Relaxed);
        loop {
            let left = before - PENDING;
            let is_last = left as u32 == 0;
            let after = if is_last { left & !NOTICED } else { left };
            match self.0.compare_exchange_weak(before, after, AcqRel, Relaxed) {
                Ok(_) if is_last => return Count(left),
                Ok(_) => return Count(left & !NOTICED),
                Err(now) => before = now,
            }
        }
    }

    /// This thread is about to sleep; what there is now. ORDERING: AcqRel, see `look`.
    pub fn sleep(&self) -> Count {
        Count(self.0.fetch_add(SLEEPER, AcqRel) + SLEEPER)
    }

    pub fn wake_up(&self) {
        self.0.fetch_sub(SLEEPER, Relaxed);
    }

    /// A notice waits for the end from now on, and holds the group; false if nothing is pending. ORDERING: AcqRel; who
    /// ends the last task sees the notice.
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

    /// For the broken twin of a model: a notice, whatever is pending.
    #[cfg(all(test, loom))]
    pub(super) fn put_up_notice(&self) {
        self.0.fetch_add(NOTICED | HOLDER, AcqRel);
    }

    pub fn retain(&self) {
        self.0.fetch_add(HOLDER, Relaxed);
    }

    /// One holder less, unless it is the last one; then false. ORDERING: AcqRel, as `release`.
    pub fn release_unless_last(&self) -> bool {
        let mut before = self.look();
        while before.holders() > 1 {
            match self.0.compare_exchange_weak(before.0, before.0 - HOLDER, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => before = Count(now),
            }
        }
        false
    }

    /// One holder less; what there is now. ORDERING: AcqRel; who frees the group sees what all did with it.
    #[inline(always)]
    pub fn release(&self) -> Count {
        // Nobody else can come to hold a group that one holds and nothing is pending of.
        if self.look().0 == HOLDER {
            self.0.store(0, Relaxed);
            return Count(0);
        }
        Count(self.0.fetch_sub(HOLDER, AcqRel) - HOLDER)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_step_says_what_it_met() {
        let tally = Tally::new();
        tally.begin();
        assert_eq!((tally.add().pending(), tally.look().pending(), tally.look().holders()), (0, 1, 1));
        assert_eq!(tally.sleep().sleepers(), 1);
        let end = tally.done();
        assert_eq!((end.pending(), end.sleepers(), end.noticed(), end.is_unattended()), (0, 1, false, false));
        tally.wake_up();
        tally.add();
        tally.add();
        assert!(tally.notice() && tally.look().is_unattended());
        assert_eq!([tally.done(), tally.done()].map(Count::noticed), [false, true]);
        assert!(!tally.look().noticed() && !tally.notice());
        tally.retain();
        assert!(tally.release_unless_last());
        assert_eq!(tally.release().holders(), 1);
        assert!(!tally.release_unless_last());
        tally.add();
        assert!(tally.release().is_unattended());
        assert_eq!(tally.done(), Count(0));
    }
}
