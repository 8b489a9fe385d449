//! A run's part in traces: which traces it is of, and when its nodes became ready.
#![forbid(unsafe_code)]

use crate::sync::OnceLock;
use crate::trace::{HELPER, NONE, Traces};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How a thread came into a run, as in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(in crate::graph) enum Carrier {
    /// One thread, along the plan.
    Walk = 1,
    /// The same, in a run that finishes what does not depend on a failure.
    Independent,
    /// One of several: the thread that opened the run, one that the pool has sent, or one that waits for the run.
    Caller,
    Helper = HELPER,
    Visitor,
}

/// The parts of a word that says when a node became ready: the lower bits of a stamp, and the node that came last.
const STAMP_BITS: u32 = 40;
const STAMP: u64 = (1 << STAMP_BITS) - 1;
const NOBODY: u64 = (1 << (64 - STAMP_BITS)) - 1;

/// A run's part in traces. ORDERING: Relaxed for the words; whoever runs a node got it from the thread that wrote its
/// word, with an order of its own.
#[derive(Default)]
pub(in crate::graph) struct TracedRun {
    pub traces: Traces,
    /// The number of the run around it, or 0. As the orders of the run.
    pub outer: AtomicU32,
    /// When each node became ready, and by which. Made for the first traced run; then later ones have it too.
    pub ready: OnceLock<Box<[AtomicU64]>>,
}

impl TracedRun {
    /// The node is ready, by the arrival of `from`.
    #[inline]
    pub fn set_ready(&self, node: u32, stamp: u64, from: u32) {
        if let Some(word) = self.ready.get().and_then(|ready| ready.get(node as usize)) {
            word.store(stamp & STAMP | u64::from(from).min(NOBODY) << STAMP_BITS, Relaxed);
        }
    }

    /// How long before `begin` the node became ready, in ticks, and by which node.
    #[inline]
    pub fn ready_before(&self, node: u32, begin: u64) -> Option<(u64, u32)> {
        let word = self.ready.get()?.get(node as usize)?.load(Relaxed);
        let from = word >> STAMP_BITS;
        let ticks = begin.wrapping_sub(word) & STAMP;
        // Clocks of two threads that differ by a little.
        let ticks = if ticks > STAMP / 2 { 0 } else { ticks };
        Some((ticks, if from == NOBODY { NONE } else { from as u32 }))
    }
}
