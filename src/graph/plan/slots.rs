//! Loops of which several iterations run at once: their slots.
//!
//! A loop that may run K iterations at once has K + 1 slots: copies of its condition and its body, one behind the
//! other, each with values, counters and arguments of its own. Iteration i has slot i mod (K + 1):
//!
//! ```text
//! Enter | condition ... Guard | body ... End Retire | condition ... Guard | body ... End Retire | ... | End
//! ```
//!
//! The body in one slot writes its next values where the next slot's variables are, and arrives there: at nodes of that
//! slot's condition, and at nodes of its body. Such edges are *deliveries*; those of the last slot lead back to the
//! first. Nodes of a body that nothing in it leads to wait for the slot's Guard too, which releases them when the
//! condition is true. So a node of iteration i + 1 begins when its own inputs are there and the condition says so,
//! whatever else of iteration i goes on.
//!
//! `sync::Ring` says when a slot may be used again. A slot's Retire waits for two: the body's End (or the Guard whose
//! condition is false, in its place), and the slot before, so iterations are retired in their order. The last one to be
//! retired moves the variables to where the loop's outputs are, makes the counters whole at which values were delivered
//! for a body that never ran, and releases the loop's End.
//!
//! A run in one thread goes through the slots in turn, and counts nothing.

use super::node::{Edge, Release};
use std::ops::Range;

/// An arrival that an Enter, a Guard or a Retire makes: worth this many at an edge's end.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct Start {
    pub edge: Edge,
    pub amount: u32,
}

/// A loop whose iterations overlap.
#[derive(Debug)]
pub(in crate::graph) struct Overlap {
    /// Its part of `Plan::slots`.
    pub slots: Range<u32>,
    /// The first slot's first node, and how many nodes each slot has.
    pub first: u32,
    pub len: u32,
    /// The starts of the Enter: nodes in the first slot.
    pub begin: Release,
    /// The End behind all slots, and what starts it.
    pub exit: u32,
    pub leave: Release,
}

/// Room for one iteration at a time.
#[derive(Clone, Debug)]
pub(in crate::graph) struct Slot {
    /// The loop, its `Overlap`, and which of its slots this is.
    pub looped: u32,
    pub overlap: u32,
    pub number: u32,
    pub predicate: u32,
    /// The Guard is behind the condition, an End and the Retire behind the body.
    pub condition: Range<u32>,
    pub body: Range<u32>,
    /// The starts of the Guard: nodes of the body, and of the next slot's condition.
    pub open: Release,
    /// The arrival at the Retire, of the slot before or of a Guard whose condition is false.
    pub retire: Release,
    /// Counters of the body at which values of the iteration before arrive.
    pub delivered: Vec<u32>,
    /// Views in pairs, from and to: the variables here, and where the loop's outputs are.
    pub leave: Vec<(u32, u32)>,
}

impl Overlap {
    pub fn count(&self) -> u32 {
        self.slots.end - self.slots.start
    }

    /// Those of all slots.
    pub fn nodes(&self) -> Range<u32> {
        self.first..self.first + self.len * self.count()
    }
}

/// The node that each of `n` is a copy of; empty if there are no copies.
pub(in crate::graph) fn origins(overlaps: &[Overlap], n: usize) -> Vec<u32> {
    let mut origins: Vec<u32> = (0..n as u32).take(if overlaps.is_empty() { 0 } else { n }).collect();
    // A loop comes before those inside of it: the first slot is complete when it is copied.
    for overlap in overlaps.iter().rev() {
        for node in overlap.first + overlap.len..overlap.first + overlap.len * overlap.count() {
            origins[node as usize] = origins[(node - overlap.len) as usize];
        }
    }
    origins
}
