//! Where a walk along the array looks at the clock: between *stretches*, runs of neighbours in one part of the plan.
//!
//! A look costs some nanoseconds, as much as a tiny node. So a stretch is as long as many tiny nodes, an eighth of the
//! program or a microsecond: whatever becomes dear, and wherever in the array, the walk knows of it behind that
//! stretch. A node whose cost is not known has a stretch of its own, which measures it. A part that is shorter than a
//! stretch, a small branch or the body of a loop, ends without a look; what it owes is added up.
#![forbid(unsafe_code)]

use crate::graph::plan::{Body, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The time between two looks by the learned costs: a part of the program's, in nanoseconds from ten times the cost of
/// a look to a hundred times.
const PART: u32 = 8;
const LEAST_NS: u32 = 125;
const MOST_NS: u32 = 1_000;
/// The walk's own time for a node, in nanoseconds.
const WALK_NS: u32 = 5;

/// The stretch that begins at each node that begins one: the node behind it, and what it should cost, in one word.
/// ORDERING: Relaxed throughout; statistics. Another thread may lay them anew meanwhile: any mixture ends in its part.
#[derive(Debug)]
pub(in crate::graph) struct Stretches {
    at: Vec<AtomicU64>,
    /// The least time of one that others follow.
    least_ns: AtomicU32,
}

impl Stretches {
    pub fn new(plan: &Plan) -> Stretches {
        let n = if plan.is_parallel && plan.may_be_promoted() { plan.len() } else { 0 };
        Stretches { at: (0..n).map(|_| AtomicU64::new(0)).collect(), least_ns: AtomicU32::new(MOST_NS) }
    }

    /// A program whose walks are never promoted.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The least time between two looks, in nanoseconds.
    #[inline]
    pub fn least_ns(&self) -> u32 {
        self.least_ns.load(Relaxed)
    }

    /// Where the stretch that begins with this node ends, in a part that ends at `end`, and its cost.
    #[inline]
    pub fn at(&self, node: u32, end: u32) -> (u32, u32) {
        let word = self.at[node as usize].load(Relaxed);
        (((word >> 32) as u32).clamp(node + 1, end), word as u32)
    }

    /// By what the nodes cost, and which have an unknown cost.
    pub fn lay(&self, plan: &Plan, costs: &[AtomicU32], is_new: &dyn Fn(u32) -> bool) {
        if !self.is_empty() {
            let all =
                costs.iter().fold(0u32, |all, cost| all.saturating_add(cost.load(Relaxed)).saturating_add(WALK_NS));
            self.least_ns.store((all / PART).clamp(LEAST_NS, MOST_NS), Relaxed);
            self.lay_part(plan, (costs, is_new), 0..plan.len() as u32);
        }
    }

    fn lay_part(&self, plan: &Plan, known: (&[AtomicU32], &dyn Fn(u32) -> bool), nodes: Range<u32>) {
        let (mut begin, mut node, mut cost) = (nodes.start, nodes.start, 0u32);
        let least_ns = self.least_ns();
        let close = |begin: u32, end: u32, cost: u32| {
            self.at[begin as usize].store(u64::from(end) << 32 | u64::from(cost), Relaxed);
        };
        while node < nodes.end {
            let is_new = known.1(node);
            if is_new && begin < node {
                close(begin, node, cost.max(least_ns));
                (begin, cost) = (node, 0);
            }
            match plan.bodies[node as usize] {
                Body::Select(index) => {
                    let branches = &plan.selects[index as usize].branches;
                    branches.iter().for_each(|branch| self.lay_part(plan, known, branch.nodes.clone()));
                }
                Body::Enter(index) => {
                    let looped = &plan.loops[index as usize];
                    self.lay_part(plan, known, looped.condition.clone());
                    self.lay_part(plan, known, looped.body.clone());
                }
                _ => {}
            }
            cost = cost.saturating_add(known.0[node as usize].load(Relaxed)).saturating_add(WALK_NS);
            node = plan.behind(node);
            if is_new || cost >= least_ns {
                close(begin, node, cost.max(least_ns));
                (begin, cost) = (node, 0);
            }
        }
        if begin < nodes.end {
            close(begin, nodes.end, cost);
        }
    }

    /// Bytes of the array.
    pub fn bytes(&self) -> usize {
        self.at.capacity() * size_of::<AtomicU64>()
    }
}
