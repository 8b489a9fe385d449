//! Packed panels that stay in a slot's scratch memory from one piece of a product to the next.
//!
//! A thread takes its pieces one after the other from the same part of C, and a piece often continues in the columns
//! where the last one ended. If the panels of these columns for all of K fit, they stay in the slot's memory, with a
//! note of their owner: then small pieces, which let threads end together, pack no part of B twice. Algorithms that
//! begin with a copy of a whole operand record it as their only block, and convolutions the part of the image that is
//! in their strip.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The block of columns whose panels are all in a slot's memory: its number plus one, or 0 for none.
///
/// ORDERING: Relaxed; only the holder of the slot reads it, and a slot is handed on with its writes (`Slots`).
#[derive(Debug)]
pub struct HeldPanels(AtomicU32);

impl HeldPanels {
    pub const fn new() -> HeldPanels {
        HeldPanels(AtomicU32::new(0))
    }

    /// Records the block to be held; true if it is held already.
    pub fn replace(&self, block: Option<usize>) -> bool {
        let new = block.and_then(|block| u32::try_from(block + 1).ok()).unwrap_or(0);
        let old = self.0.load(Relaxed);
        if old != new {
            self.0.store(new, Relaxed);
        }
        old == new && new != 0
    }
}
