//! Loops of which several iterations run at once: their slots.
//!
//! A loop that may run K iterations at once has K + 1 slots: copies of its condition and its body, one behind the
//! other, each with values, counters and arguments of its own. Iteration i has slot i mod (K + 1):
//!
//! ```text
//! Enter | condition ... Guard | body ... End Retire | condition ... Guard | body ... End Retire | ... | End
//! ```
//!
//! What the body in one slot makes for the next iteration it writes where the next slot's variables are, and arrives
//! there: at nodes of that slot's condition, and at nodes of its body. Such edges are *deliveries*; those of the last
//! slot lead back to the first. Nodes of a body that nothing in it leads to wait for the slot's Guard too, which
//! releases them when the condition is true. So a node of iteration i + 1 begins when its own inputs are there and the
//! condition says so, whatever else of iteration i goes on.
//!
//! `sync::Ring` says when a slot may be used again. A slot's Retire waits for two: the body's End (or the Guard whose
//! condition is false, in its place), and the slot before, so iterations are retired in their order. The last one to be
//! retired moves the variables to where the loop's outputs are, makes the counters whole at which values were delivered
//! for a body that never ran, and releases the loop's End.
//!
//! A run in one thread goes through the slots in turn, and counts nothing.
#![forbid(unsafe_code)]

use super::layout::{Body, Edge, Layout, Loop, Release};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// What an Enter, a Guard or a Retire does to others: an arrival worth this many at an edge's end.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct Start {
    pub edge: Edge,
    pub amount: u32,
}

/// A loop whose iterations overlap.
#[derive(Debug)]
pub(in crate::graph) struct Overlap {
    /// Its part of `Layout::slots`.
    pub slots: Range<u32>,
    /// The first slot's first node, and how many nodes each slot has.
    pub first: u32,
    pub len: u32,
    /// What the Enter starts: nodes in the first slot.
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
    /// What the Guard starts: nodes of the body, and of the next slot's condition.
    pub open: Release,
    /// The arrival at the Retire, of the slot before or of a Guard whose condition is false.
    pub retire: Release,
    /// Counters of the body at which values of the iteration before arrive.
    pub delivered: Vec<u32>,
    /// Views in pairs, from and to: the variables here, and where the loop's outputs are.
    pub leave: Vec<(u32, u32)>,
}

/// `Loop::overlap` of a loop that runs one iteration at a time.
pub(in crate::graph) const NO_OVERLAP: u32 = u32::MAX;

/// Why a loop runs fewer iterations at once than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Why {
    AsAsked,
    /// Each iteration's work is one chain with the next one's.
    Chain,
    /// A variable must keep its memory.
    Reserved,
    /// The copies would be too many.
    Large,
    /// A slot holds one iteration's value of a shape that a run decides.
    Open,
    /// There are not as many processors.
    Processors,
    /// What iterations do to variables has an order.
    Effects,
}

impl Why {
    pub fn text(self) -> &'static str {
        match self {
            Why::AsAsked => "as asked",
            Why::Chain => "each iteration depends on all of the one before",
            Why::Reserved => "a variable's memory is reserved for its next value",
            Why::Large => "more copies of it would be too large",
            Why::Open => "it has values whose shapes a run decides",
            Why::Effects => "it reads or writes a variable, in order",
            Why::Processors => "twice as many as there are processors",
        }
    }
}

impl Overlap {
    pub fn count(&self) -> u32 {
        self.slots.end - self.slots.start
    }
}

/// What each of `n` nodes is a copy of; empty if there are no copies.
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

impl Layout {
    pub fn overlap(&self, looped: &Loop) -> Option<&Overlap> {
        self.overlaps.get(looped.overlap as usize)
    }

    /// Where a step counts the iterations of the loop with this index, for a node inside of it: each slot knows its
    /// own.
    pub fn counts_at(&self, index: usize, node: u32) -> usize {
        match self.overlap(&self.loops[index]) {
            Some(overlap) if node >= overlap.first => {
                let slot = (node - overlap.first) / overlap.len;
                self.slot_counts_at(overlap.slots.start + slot.min(overlap.count() - 1))
            }
            _ => index,
        }
    }

    pub fn slot_counts_at(&self, slot: u32) -> usize {
        self.loops.len() + slot as usize
    }

    /// The node in the first slot of each loop around that a node is a copy of; itself if it is none.
    pub fn origin(&self, node: u32) -> u32 {
        self.origins.get(node as usize).copied().unwrap_or(node)
    }

    /// A loop went round so often. Copies of one loop count as that loop.
    pub fn count_iterations(&self, looped: &Loop, iterations: u64) {
        if let Body::Enter(index) = self.bodies[self.origin(looped.first) as usize] {
            let iterations = u32::try_from(iterations).unwrap_or(u32::MAX);
            self.loops[index as usize].iterations.store(iterations, Relaxed);
        }
    }

    /// Copies cost what the first of them does, and go round as often.
    pub fn spread_costs(&self) {
        for (cost, &origin) in self.costs.iter().zip(&self.origins) {
            cost.store(self.costs[origin as usize].load(Relaxed), Relaxed);
        }
        for looped in self.loops.iter().filter(|_| !self.origins.is_empty()) {
            if let Body::Enter(index) = self.bodies[self.origin(looped.first) as usize] {
                looped.iterations.store(self.loops[index as usize].iterations.load(Relaxed), Relaxed);
            }
        }
    }

    pub fn starts(&self, release: Release) -> &[Start] {
        &self.starts[release.first as usize..release.end as usize]
    }

    /// What a node starts in slots.
    pub fn started(&self, node: usize) -> &[Start] {
        match self.bodies[node] {
            Body::Enter(index) => {
                self.overlap(&self.loops[index as usize]).map_or(&[], |overlap| self.starts(overlap.begin))
            }
            Body::Guard(slot) => self.starts(self.slots[slot as usize].open),
            Body::Retire(slot) => self.starts(self.overlaps[self.slots[slot as usize].overlap as usize].leave),
            _ => &[],
        }
    }

    /// How often the nodes of a loop run, by the iterations that were counted last.
    pub fn rounds(&self, looped: &Loop) -> u32 {
        let iterations = looped.iterations.load(Relaxed).max(1);
        self.overlap(looped).map_or(iterations, |overlap| iterations.div_ceil(overlap.count()))
    }

    /// Bytes of the arrays that only such loops have.
    pub fn overlap_bytes(&self) -> usize {
        let of = |slot: &Slot| {
            slot.delivered.capacity() * size_of::<u32>() + slot.leave.capacity() * size_of::<(u32, u32)>()
        };
        self.overlaps.capacity() * size_of::<Overlap>()
            + self.origins.capacity() * size_of::<u32>()
            + self.slots.capacity() * size_of::<Slot>()
            + self.starts.capacity() * size_of::<Start>()
            + self.slots.iter().map(of).sum::<usize>()
    }
}
