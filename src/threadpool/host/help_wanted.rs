//! Places where more helpers are wanted, as bits.
//!
//! A region that gets fewer helpers than it is worth, because the budget is used up, sets the bit of its place. A
//! closure that is done with its own work looks at the bits before it leaves the pool's thread. So a helper that came
//! too late for one region serves the next one, and a region that begins while the last one's helpers are on their way
//! out is not left alone.
//!
//! Nobody is missed: the region sets its bit, has a SeqCst fence, and then tries the budget once more; the closure
//! gives its part of the budget back, has a fence, and then reads the bits. The fences have an order, so either the
//! region finds the budget or the closure finds the bit (`models_help_wanted_misses_nobody`).
#![forbid(unsafe_code)]

use crate::sync::atomic::Ordering::*;
use crate::sync::atomic::{AtomicU64, fence};

#[derive(Debug)]
pub struct HelpWanted(AtomicU64);

impl Default for HelpWanted {
    fn default() -> Self {
        HelpWanted::new()
    }
}

impl HelpWanted {
    pub fn new() -> HelpWanted {
        HelpWanted(AtomicU64::new(0))
    }

    /// Helpers are wanted at this place; try the budget after this.
    pub fn set(&self, place: usize) {
        // ORDERING: Release pairs with the Acquire in `clear`: the thread that clears the bit sees the work that it
        // was set for.
        self.0.fetch_or(1 << place, Release);
        // ORDERING: pairs with the fence in `wanted_now`.
        fence(SeqCst);
    }

    /// No longer. Helpers that have seen the bit may still come.
    pub fn clear(&self, place: usize) {
        self.0.fetch_and(!(1 << place), Acquire);
    }

    /// The places, as bits. A hint: nothing depends on whether a thread comes for it.
    pub fn look(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// The places, as bits, after the caller has given back its part of the budget.
    pub fn wanted_now(&self) -> u64 {
        // ORDERING: pairs with the fence in `set`.
        fence(SeqCst);
        self.0.load(Relaxed)
    }
}
