//! The time of a walk, and whether it is so late that what is left is given to others.
//!
//! A walk looks at the clock between stretches (`carry::stretches`). The time of one of them beyond twice its costs is
//! its *excess*. When the excess of all together is more than it costs to share what is left, the walk is promoted: so
//! a promotion that was for nothing, because only the thread was interrupted, costs less than the interruption did.
//! Cheap nodes before do not hide a dear one, nor does it matter where in the array it is.
#![forbid(unsafe_code)]

use crate::base::time::{ticks, ticks_ns};
use crate::graph::carry::learned::Learned;
use crate::graph::carry::state::RunState;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

/// Beyond this many times its costs a stretch is late.
const LATE: u64 = 2;
/// The least excess that promotes a walk, in nanoseconds; besides some hops, and a part of the time so far.
const LATE_NS: u64 = 10_000;
const HOPS: u64 = 4;
const PART: u64 = 16;
/// The cost of sharing a cheap node that others see, in nanoseconds.
const SHOW_NS: u64 = 50;
/// Beyond what is left of a run as long as the last one that was measured, as much is assumed to be left as this part
/// of what is done.
const LEFT_PART: u64 = 4;
/// The most looks of a walk behind a long pause.
const LOOKS: u32 = 32;
/// The time for a node besides its own, in nanoseconds: where memory is not in the caches; and where it is measured.
const WALK_NS: u64 = 20;
const MEASURE_NS: u64 = 150;

/// How a walk looks at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Looks {
    /// Not at all: others cannot go on with it.
    Never,
    /// Now and then; at its first stretch as well if it is not tiny.
    Seldom,
    Early,
    /// It comes behind a long pause: often.
    Often,
}

/// Of one walk.
pub(in crate::graph) struct WalkTimer {
    began: u64,
    hop_ns: u64,
    node_ns: u64,
    looks: Looks,
    least_ns: u64,
    /// Whether the time of the whole walk is of interest.
    pub is_timed: bool,
    /// The last look, in ticks, and what has been done since.
    seen: Cell<u64>,
    owed_ns: Cell<u64>,
    owed_nodes: Cell<u64>,
    /// All before that.
    done_ns: Cell<u64>,
    done_nodes: Cell<u64>,
    excess_ns: Cell<u64>,
    left: Cell<Option<u32>>,
}

impl WalkTimer {
    /// `began`: in ticks. `is_measured`: the walk does something besides for each node.
    pub fn new(
        learned: &Learned,
        (began, hop_ns): (u64, u64),
        looks: Looks,
        is_measured: bool,
        is_timed: bool,
    ) -> WalkTimer {
        let least_ns = u64::from(learned.stretches.least_ns());
        let owed_ns = if looks == Looks::Seldom { 0 } else { least_ns };
        WalkTimer {
            began,
            hop_ns,
            node_ns: if is_measured { MEASURE_NS } else { WALK_NS },
            looks,
            least_ns,
            is_timed,
            seen: Cell::new(began),
            owed_ns: Cell::new(owed_ns),
            owed_nodes: Cell::new(0),
            done_ns: Cell::new(0),
            done_nodes: Cell::new(0),
            excess_ns: Cell::new(0),
            left: Cell::new(None),
        }
    }

    pub fn elapsed_ns(&self) -> u64 {
        ticks_ns(ticks().wrapping_sub(self.began))
    }

    /// The node at which the walk has left the rest to others, nested ones included.
    pub fn left(&self) -> Option<u32> {
        self.left.get()
    }

    /// Where to look next, in a part that ends at `end`, and what the nodes before should cost.
    #[inline(always)]
    pub fn stretch(&self, learned: &Learned, node: u32, end: u32) -> (u32, u32) {
        match self.looks {
            Looks::Never => (end, 0),
            Looks::Often => WalkTimer::short_stretch(learned, node, end),
            Looks::Seldom | Looks::Early => learned.stretches.at(node, end),
        }
    }

    #[cold]
    fn short_stretch(learned: &Learned, node: u32, end: u32) -> (u32, u32) {
        let until = (node + (learned.costs.len() as u32).div_ceil(LOOKS)).min(end);
        let costs = learned.costs[node as usize..until as usize].iter();
        let cost_ns = costs.fold(0u32, |sum, cost| sum.saturating_add(cost.load(Relaxed)));
        (until, cost_ns)
    }

    /// Behind a stretch of so many nodes, with nested ones: whether it is time for a look.
    #[inline(always)]
    pub fn adds(&self, nodes: u32, cost_ns: u32) -> bool {
        let owed_ns = self.owed_ns.get() + u64::from(cost_ns);
        self.owed_ns.set(owed_ns);
        self.owed_nodes.set(self.owed_nodes.get() + u64::from(nodes));
        owed_ns >= self.least_ns || self.looks == Looks::Often
    }

    /// Looks at the clock behind the stretch from `start`: whether all from `node` on is left to others.
    #[inline(never)]
    pub fn looks(&self, state: &RunState, start: u32, node: u32) -> bool {
        if self.looks == Looks::Never {
            return false;
        }
        let now = ticks();
        let took_ns = ticks_ns(now.wrapping_sub(self.seen.replace(now)));
        let (owed_ns, owed_nodes) = (self.owed_ns.replace(0), self.owed_nodes.replace(0));
        self.done_ns.set(self.done_ns.get() + owed_ns);
        self.done_nodes.set(self.done_nodes.get() + owed_nodes);
        let learned = state.learned();
        if node == start + 1 && learned.has_new.load(Relaxed) && learned.is_new(start) {
            state.measured(start as usize, took_ns);
        }
        let late_ns = LATE * (owed_ns + owed_nodes * self.node_ns);
        if took_ns <= late_ns {
            return false;
        }
        self.excess_ns.set(self.excess_ns.get() + took_ns - late_ns);
        if !self.is_late(learned, ticks_ns(now.wrapping_sub(self.began))) || state.is_stopped() {
            return false;
        }
        self.left.set(Some(node));
        true
    }

    fn is_late(&self, learned: &Learned, elapsed_ns: u64) -> bool {
        let done = self.done_nodes.get();
        let left = learned.all_runs.load(Relaxed).saturating_sub(done).max(done / LEFT_PART);
        let promotion_ns = LATE_NS + self.hop_ns.saturating_mul(HOPS) + left.saturating_mul(SHOW_NS);
        self.excess_ns.get() > promotion_ns.saturating_add(elapsed_ns / PART)
    }

    /// Behind a branch that the walk has left: all that is left is behind the cond if the branch was done.
    #[cold]
    pub fn leaves_branch(&self, branch_end: u32, end: u32) -> bool {
        if self.left.get() == Some(branch_end) {
            self.left.set(Some(end));
        }
        self.left.get().is_some()
    }

    /// Whether all so far has taken far too long.
    pub fn is_strange(&self) -> bool {
        self.elapsed_ns() > LATE * (self.done_ns.get() + self.done_nodes.get() * self.node_ns) + LATE_NS
    }
}
