//! How far a run is, for a host that asks (`weir_run_options.progress`).
//!
//! Each node that is over adds to a counter of its own, which one thread at a time writes. Branches and iterations that
//! begin are counted as well, so that the nodes known to come can be told from those that may never run. A report
//! (`host::run_progress`) goes over the plan once, and adds up what is done, what is known, and what the learned costs
//! say about the rest. Nothing is allocated after the first such run of a state.
//!
//! # The rest
//!
//! Each part of the plan (all of it, a branch, a condition, a body) has *begun* so many times, and is *expected* to
//! begin so many times in all: what is around a loop times the iterations of its last measured run, unless the loop is
//! over, or has made more by now; a branch that is not decided counts in equal shares. A node's cost times how often
//! it is expected and not over is its part of the rest. The run has spent `elapsed_ns` on the work that is over,
//! whatever the number of threads, and the rest is taken to go on at that rate. The costs are those from before the
//! run, for what is over too: on a machine that is slower than ever before, both sides are too small by the same
//! factor.
#![forbid(unsafe_code)]

use super::figures::is_measured;
use super::learned::Learned;
use crate::base::Result;
use crate::graph::plan::{Body, Plan};
use crate::memory::heap;
use crate::stream::What;
use crate::sync::{Mutex, OnceLock};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// `due_at_ns` while a report is made, and where there are none.
pub(in crate::graph) const NEVER: u64 = u64::MAX;

/// A run's part in progress.
pub(in crate::graph) struct RunProgress {
    pub began_ns: AtomicU64,
    /// When the next report may be made, on the library's clock.
    pub due_at_ns: AtomicU64,
    /// Nodes that were over at the last report. For the thread that makes one.
    pub told: AtomicU64,
    /// Whether the costs and iterations were known when the run began.
    pub is_known: AtomicBool,
    /// Made for the first run that reports.
    pub counts: OnceLock<Counts>,
    /// The run's handle, while it has one.
    pub run: Mutex<Option<What>>,
}

impl Default for RunProgress {
    fn default() -> RunProgress {
        RunProgress {
            began_ns: AtomicU64::new(0),
            due_at_ns: AtomicU64::new(NEVER),
            told: AtomicU64::new(0),
            is_known: AtomicBool::new(false),
            counts: OnceLock::new(),
            run: Mutex::default(),
        }
    }
}

/// The counts of a run. ORDERING: Relaxed, all of it; each counter has one writer at a time, which follows the one
/// before by the run's own order. A report may miss what another thread does just now.
pub(in crate::graph) struct Counts {
    /// Of each node: how often it is over; of a Select, how often it is decided.
    pub over: Box<[AtomicU64]>,
    /// The cost of each node when the run began, in nanoseconds.
    pub costs: Box<[AtomicU32]>,
    /// By the first node of a branch: how often it was taken. Empty without branches.
    pub taken: Box<[AtomicU64]>,
    pub loops: Box<[LoopCount]>,
    /// Of each loop, and behind them of each slot, as the run's iterations.
    pub rounds: Box<[RoundCount]>,
}

#[derive(Default)]
pub(in crate::graph) struct LoopCount {
    pub entered: AtomicU64,
    /// How many iterations it will have made when it is left next, as far as is known; with those of earlier entries.
    pub expected: AtomicU64,
}

/// How often a condition and a body have begun.
#[derive(Default)]
pub(in crate::graph) struct RoundCount {
    pub conditions: AtomicU64,
    pub bodies: AtomicU64,
}

pub(in crate::graph) fn add(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

impl Counts {
    pub fn create(plan: &Plan) -> Result<Counts> {
        let n = plan.len();
        let zeroes = |n: usize| heap::filled(n, "a run's progress", || AtomicU64::new(0));
        Ok(Counts {
            over: zeroes(n)?,
            costs: heap::filled(n, "a run's progress", || AtomicU32::new(0))?,
            taken: zeroes(if plan.selects.is_empty() { 0 } else { n })?,
            loops: heap::filled(plan.loops.len(), "a run's progress", LoopCount::default)?,
            rounds: heap::filled(plan.loops.len() + plan.slots.len(), "a run's progress", RoundCount::default)?,
        })
    }

    /// For the next run.
    pub fn begin(&self, plan: &Plan, learned: &Learned) {
        for (node, cost) in self.costs.iter().enumerate() {
            cost.store(learned.costs[plan.origin(node as u32) as usize].load(Relaxed), Relaxed);
        }
        self.over.iter().chain(&self.taken).for_each(|counter| counter.store(0, Relaxed));
        for count in &self.loops {
            count.entered.store(0, Relaxed);
            count.expected.store(0, Relaxed);
        }
        for count in &self.rounds {
            count.conditions.store(0, Relaxed);
            count.bodies.store(0, Relaxed);
        }
    }

    /// Iterations of a loop that have begun, in all slots.
    pub fn bodies(&self, plan: &Plan, index: usize) -> u64 {
        let of = |at: usize| self.rounds[at].bodies.load(Relaxed);
        match plan.overlap(&plan.loops[index]) {
            None => of(index),
            Some(overlap) => overlap.slots.clone().map(|slot| of(plan.slot_counts_at(slot))).sum(),
        }
    }
}

/// The sums of a report.
pub(in crate::graph) struct Sums<'a> {
    plan: &'a Plan,
    learned: &'a Learned,
    counts: &'a Counts,
    pub done: u64,
    pub total: u64,
    /// The costs of what is over, and of what is expected, in nanoseconds.
    pub over_ns: f64,
    pub left_ns: f64,
}

/// How often a part of the plan has begun, and will have at the run's end.
#[derive(Clone, Copy)]
struct Times {
    begun: u64,
    expected: f64,
}

impl Times {
    fn new(begun: u64, more: f64) -> Times {
        Times { begun, expected: begun as f64 + more.max(0.0) }
    }

    /// How often it is expected beyond what has begun.
    fn beyond(self, begun: u64) -> f64 {
        (self.expected - begun as f64).max(0.0)
    }
}

impl<'a> Sums<'a> {
    pub fn of(plan: &'a Plan, learned: &'a Learned, counts: &'a Counts) -> Sums<'a> {
        let mut sums = Sums { plan, learned, counts, done: 0, total: 0, over_ns: 0.0, left_ns: 0.0 };
        sums.add_part(0..plan.len() as u32, Times::new(1, 0.0));
        sums
    }

    fn add_part(&mut self, nodes: Range<u32>, times: Times) {
        let plan = self.plan;
        let mut node = nodes.start;
        while node < nodes.end {
            match plan.bodies[node as usize] {
                Body::Select(index) => {
                    let branches = &plan.selects[index as usize].branches;
                    let undecided = times.beyond(self.counts.over[node as usize].load(Relaxed));
                    for branch in branches.iter().filter(|branch| !branch.nodes.is_empty()) {
                        let taken = self.counts.taken[branch.nodes.start as usize].load(Relaxed);
                        self.add_part(branch.nodes.clone(), Times::new(taken, undecided / branches.len() as f64));
                    }
                }
                Body::Enter(index) => self.add_loop(index as usize, times),
                body if is_measured(&body) => self.add_node(node, times),
                _ => {}
            }
            node = plan.behind(node);
        }
    }

    fn add_node(&mut self, node: u32, times: Times) {
        let over = self.counts.over[node as usize].load(Relaxed);
        self.done += over;
        self.total += times.begun.max(over);
        // A node that was too short for the clock took some time, too.
        let cost_ns = f64::from(self.counts.costs[node as usize].load(Relaxed).max(1));
        self.over_ns += cost_ns * over as f64;
        self.left_ns += cost_ns * times.beyond(over);
    }

    fn add_loop(&mut self, index: usize, times: Times) {
        let (plan, counts) = (self.plan, self.counts);
        let looped = &plan.loops[index];
        let LoopCount { entered, expected } = &counts.loops[index];
        let entries = times.beyond(entered.load(Relaxed));
        let bodies = counts.bodies(plan, index);
        let rest = expected.load(Relaxed).saturating_sub(bodies) as f64
            + entries * f64::from(self.learned.iterations_of(plan, looped));
        let Some(overlap) = plan.overlap(looped) else {
            let conditions = counts.rounds[index].conditions.load(Relaxed);
            self.add_part(looped.condition.clone(), Times::new(conditions, rest + entries));
            self.add_part(looped.body.clone(), Times::new(bodies, rest));
            return;
        };
        let share = f64::from(overlap.count());
        for index in overlap.slots.clone() {
            let (slot, count) = (&plan.slots[index as usize], &counts.rounds[plan.slot_counts_at(index)]);
            let conditions = count.conditions.load(Relaxed);
            self.add_part(slot.condition.clone(), Times::new(conditions, (rest + entries) / share));
            self.add_part(slot.body.clone(), Times::new(count.bodies.load(Relaxed), rest / share));
        }
    }
}

/// How long the rest takes at the rate of what is over. Nothing is known while nothing is.
pub(in crate::graph) fn at_same_rate(elapsed_ns: u64, over_ns: f64, left_ns: f64) -> Option<u64> {
    // One below the value that stands for unknown.
    (over_ns > 0.0).then(|| ((elapsed_ns as f64 * (left_ns / over_ns)) as u64).min(u64::MAX - 1))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_rest_goes_on_at_the_rate_so_far() {
        // On four threads 8 ms of work take 2.
        assert_eq!(at_same_rate(2_000_000, 8e6, 24e6), Some(6_000_000));
        assert_eq!(at_same_rate(5, 1.0, 0.0), Some(0));
        assert_eq!(at_same_rate(5, 0.0, 10.0), None);
        assert_eq!(at_same_rate(u64::MAX, 1.0, 1e30), Some(u64::MAX - 1));
    }

    #[test]
    fn what_has_begun_is_expected() {
        let times = Times::new(3, 1.5);
        assert_eq!((times.begun, times.beyond(1), times.beyond(3), times.beyond(9)), (3, 3.5, 1.5, 0.0));
        assert_eq!(Times::new(3, -2.0).beyond(3), 0.0);
    }
}
