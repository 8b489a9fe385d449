//! What is left in a slot's scratch memory from one piece of a product to the next.
//!
//! A thread draws its pieces one after the other from the same part of C, and a piece often goes on in the columns
//! where the last one ended. Where the panels of these columns for all of K fit, they stay in the slot's memory, and a
//! note says whose they are: then small pieces, which let threads end together, copy no part of B twice. Ways that
//! begin with a copy of a whole operand leave that as their only block.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Which block of columns of which product has all its panels in a slot's memory: one more than its number, or 0 for
/// none.
///
/// ORDERING: Relaxed; only who holds the slot looks, and a slot is handed on with what was written before (`Slots`).
#[derive(Debug)]
pub struct Held(AtomicU32);

impl Held {
    pub const fn new() -> Held {
        Held(AtomicU32::new(0))
    }

    /// Takes note of what will be held; true if it is already.
    pub fn replace(&self, block: Option<usize>) -> bool {
        let new = block.and_then(|block| u32::try_from(block + 1).ok()).unwrap_or(0);
        let old = self.0.load(Relaxed);
        if old != new {
            self.0.store(new, Relaxed);
        }
        old == new && new != 0
    }
}
