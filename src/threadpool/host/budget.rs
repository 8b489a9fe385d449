//! The number of helpers out, never more than there are threads for them.
//!
//! One word counts the closures of a pool that are queued or running. Closures that only help while a thread is free
//! (helpers of regions and runs) are *taken*: a compare and swap that stays within the limit. Closures that must go out
//! in any case (a stream's work) are *added*. Both are given back one by one.
//!
//! A load and then an addition would not do: two regions that begin at once would both see the last free thread and
//! both ask for it (`models_budget_is_never_exceeded` has that version as its broken twin).
#![forbid(unsafe_code)]

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Budget::new()
    }
}

impl Budget {
    pub fn new() -> Budget {
        Budget(AtomicU64::new(0))
    }

    /// Takes up to `wanted` while fewer than `limit` are out; gives how many were granted.
    pub fn take(&self, wanted: usize, limit: usize) -> usize {
        // ORDERING: Relaxed; the count only limits, no data depends on it.
        let mut out = self.0.load(Relaxed);
        loop {
            let granted = (wanted as u64).min((limit as u64).saturating_sub(out));
            if granted == 0 {
                return 0;
            }
            match self.0.compare_exchange_weak(out, out + granted, Relaxed, Relaxed) {
                Ok(_) => return granted as usize,
                Err(now) => out = now,
            }
        }
    }

    /// Counts closures that go out regardless of the limit.
    pub fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Relaxed);
    }

    /// Gives `count` back. ORDERING: Release pairs with the Acquire in `out`: a thread that sees the lower count sees
    /// the closures' work.
    pub fn give_back(&self, count: usize) {
        let before = self.0.fetch_sub(count as u64, Release);
        debug_assert!(before >= count as u64, "{count} given back of {before}");
    }

    /// How many are out.
    pub fn out(&self) -> usize {
        self.0.load(Acquire) as usize
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn grants_what_is_left() {
        let budget = Budget::new();
        assert_eq!(budget.take(2, 3), 2);
        assert_eq!(budget.take(2, 3), 1);
        assert_eq!(budget.take(1, 3), 0);
        budget.add(1);
        budget.give_back(2);
        assert_eq!(budget.take(5, 3), 1);
        assert_eq!(budget.out(), 3);
    }
}
