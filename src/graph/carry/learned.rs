//! Costs that a program's runs have measured, of nodes and of iterations; from these, what nodes are worth and how
//! urgent they are; and which way of running is faster. It affects only where and when nodes run, never results.
#![forbid(unsafe_code)]

use super::figures::is_measured;
use super::stretches::Stretches;
use super::ways::Ways;
use crate::graph::plan::schedule::PRIOR_NS;
use crate::graph::plan::{Body, DIRECT, Loop, MAX_DEPTH, Plan};
use std::sync::atomic::Ordering::{Relaxed, Release as Publish};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

/// Statistics, all of them: ORDERING Relaxed.
#[derive(Debug)]
pub(in crate::graph) struct Learned {
    /// Estimated or measured run time of each node, in nanoseconds.
    pub costs: Vec<AtomicU32>,
    /// The time from the beginning to the completion of each node that completes later, in nanoseconds: that of a
    /// device, for example. It belongs to the way to a run's end, and keeps no thread.
    elsewhere: Vec<AtomicU32>,
    /// The measurements of each node so far, in a byte (`CostHistory`).
    seen: Vec<AtomicU8>,
    /// Whether there are any; and whether a run has measured some since costs were weighed.
    pub has_new: AtomicBool,
    pub has_news: AtomicBool,
    /// Iterations of each loop in the last run that was measured.
    pub iterations: Vec<AtomicU32>,
    /// The gain for a thread that takes a node: its cost and that of all nodes that are handed over directly behind it.
    /// Nodes too cheap to be worth a thread count as 0. Follows `costs`, like all fields below.
    pub worth: Vec<AtomicU32>,
    ranks: Vec<AtomicU32>,
    /// How often ranks were computed.
    pub weighed: AtomicU32,
    pub has_dear: AtomicBool,
    /// The costs of all nodes that count, in nanoseconds, and of those on the critical path.
    pub total_ns: AtomicU64,
    pub longest_ns: AtomicU64,
    /// The costs of all nodes, including those that do not count; and how many nodes are run.
    pub all_ns: AtomicU64,
    pub all_runs: AtomicU64,
    /// Where a walk looks at the clock.
    pub stretches: Stretches,
    /// The costs of some nodes are unknown until a run has measured them.
    pub is_unknown: AtomicBool,
    /// The costs were loaded: the first measurement is averaged like any other.
    pub primed: AtomicBool,
    /// Runs that were measured.
    pub runs: AtomicU64,
    pub ways: Ways,
}

/// A node cheaper than this, in nanoseconds, is no reason to involve another thread: the cache lines that would move
/// cost as much. If another thread is there already and has nothing to do, a list of such nodes is worth to it what
/// they take beyond the second figure; from the first one on a node is worth its whole cost.
const WORTH_A_THREAD_NS: u32 = 150;
const MOVED_NS: u32 = 50;

/// The worth on a list of a node of this cost.
fn worth_of(cost_ns: u32) -> u32 {
    if cost_ns < WORTH_A_THREAD_NS { cost_ns.saturating_sub(MOVED_NS) } else { cost_ns }
}

/// The assumed iterations of a loop that has not run yet.
const ITERATIONS: u32 = 8;

/// A node as long as this, in nanoseconds, is worth the cost of showing it to all workers, about 100 ns where two of
/// them want the same cache line.
const DEAR_NS: u32 = 3_000;

fn dear_ns(plan: &Plan) -> u32 {
    plan.hop_ns.map_or(DEAR_NS, |hop_ns| u32::try_from(hop_ns).unwrap_or(u32::MAX).max(DEAR_NS))
}

/// The urgency of a node: its class, and within that the longest path from its beginning to the run's end, in
/// nanoseconds. Greater is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u32);

/// Classes come before path lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    #[default]
    Other,
    /// Work that is started here and done elsewhere waits for it.
    Awaited,
    /// It starts work that is done elsewhere, or is cheap and leads there by cheap nodes: the other side would be idle
    /// meanwhile.
    Feeder,
}

impl Class {
    pub const COUNT: usize = 3;
}

impl Rank {
    const CLASS_SHIFT: u32 = 30;
    /// The rank of a node that has none.
    pub const NONE: Rank = Rank(0);

    /// The bits of a float that is not negative are in the order of the floats. The sign bit and the last bit are free.
    fn new(path: f32, class: Class) -> Rank {
        Rank(path.to_bits() >> 1 | (class as u32) << Rank::CLASS_SHIFT)
    }

    fn path(self) -> f32 {
        f32::from_bits(self.0 << 2 >> 1)
    }

    pub fn class(self) -> Class {
        match self.0 >> Rank::CLASS_SHIFT {
            0 => Class::Other,
            1 => Class::Awaited,
            _ => Class::Feeder,
        }
    }

    pub fn of_bits(bits: u32) -> Rank {
        Rank(bits)
    }

    pub fn bits(self) -> u32 {
        self.0
    }

    /// The octaves of two paths of one class differ by the bits above these.
    pub const OCTAVE_SHIFT: u32 = f32::MANTISSA_DIGITS - 2;
}

/// How often nodes run, in a walk from the last to the first: the product of the iterations of the loops around them.
struct Factor<'a> {
    plan: &'a Plan,
    learned: &'a Learned,
    /// Loops that the walk has not reached, by their place in `loops_by_end`.
    next: usize,
    /// Where each loop that the walk is in begins, and the product.
    inside: [(u32, u64); MAX_DEPTH],
    depth: usize,
}

impl<'a> Factor<'a> {
    fn new(plan: &'a Plan, learned: &'a Learned) -> Factor<'a> {
        Factor { plan, learned, next: 0, inside: [(0, 1); MAX_DEPTH], depth: 0 }
    }

    fn at(&mut self, node: u32) -> u64 {
        while self.depth > 0 && node < self.inside[self.depth - 1].0 {
            self.depth -= 1;
        }
        let mut times = if self.depth > 0 { self.inside[self.depth - 1].1 } else { 1 };
        while let Some(&index) = self.plan.loops_by_end.get(self.next) {
            let looped = &self.plan.loops[index as usize];
            if looped.end != node + 1 {
                break;
            }
            times = times.saturating_mul(u64::from(self.learned.rounds(self.plan, index)));
            self.inside[self.depth] = (looped.first, times);
            self.depth += 1;
            self.next += 1;
        }
        times
    }
}

/// The measurements of a node so far.
#[derive(Clone, Copy, Debug, Default)]
struct CostHistory {
    /// Its cost is unknown: it is neither a hint nor an estimate, and no run has come to the node. One of a branch that
    /// is seldom taken may stay so for long.
    is_new: bool,
    /// How often it was dear when it was measured, and how often cheap: two credits. One that was both twice of late
    /// varies from run to run, and there is no way to know what it will be the next time.
    dear: u8,
    cheap: u8,
}

impl CostHistory {
    const ONCE: u8 = 3;
    const MOST: u8 = 7;

    fn of_bits(bits: u8) -> CostHistory {
        CostHistory { is_new: bits >> 6 != 0, dear: bits >> 3 & CostHistory::MOST, cheap: bits & CostHistory::MOST }
    }

    fn bits(self) -> u8 {
        u8::from(self.is_new) << 6 | self.dear << 3 | self.cheap
    }

    fn after(self, is_dear: bool) -> CostHistory {
        let (up, down) = (|n: u8| (n + CostHistory::ONCE).min(CostHistory::MOST), |n: u8| n.saturating_sub(1));
        match is_dear {
            true => CostHistory { dear: up(self.dear), cheap: down(self.cheap), ..self },
            false => CostHistory { dear: down(self.dear), cheap: up(self.cheap), ..self },
        }
    }

    fn varies(self) -> bool {
        self.dear.min(self.cheap) > CostHistory::ONCE
    }
}

impl Learned {
    /// For a program whose nodes have these estimated costs, which may be unknown.
    pub fn new(plan: &Plan, costs: &[u32]) -> Learned {
        let zeroes = |n: usize| (0..n).map(|_| AtomicU32::new(0)).collect();
        let new = |(body, &ns): (&Body, &u32)| is_measured(body) && u64::from(ns) == PRIOR_NS;
        let seen = |node| AtomicU8::new(CostHistory { is_new: new(node), ..CostHistory::default() }.bits());
        let is_unknown = plan.bodies.iter().zip(costs).any(new);
        let learned = Learned {
            costs: costs.iter().map(|&ns| AtomicU32::new(ns)).collect(),
            elsewhere: zeroes(plan.calls.len()),
            seen: plan.bodies.iter().zip(costs).map(seen).collect(),
            has_new: AtomicBool::new(is_unknown),
            has_news: AtomicBool::new(false),
            iterations: plan.loops.iter().map(|_| AtomicU32::new(ITERATIONS)).collect(),
            worth: zeroes(costs.len()),
            ranks: zeroes(costs.len()),
            weighed: AtomicU32::new(0),
            has_dear: AtomicBool::new(false),
            total_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
            all_ns: AtomicU64::new(0),
            all_runs: AtomicU64::new(0),
            stretches: Stretches::new(plan),
            is_unknown: AtomicBool::new(is_unknown),
            primed: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            ways: Ways::default(),
        };
        learned.weigh(plan);
        learned
    }

    /// Recomputes `worth`, `ranks` and the sums from `costs`. Edges go up, so one pass from the end suffices. Loops
    /// with several iterations at once need a second one, in which a node that feeds the next iteration has that behind
    /// it, as the first pass has found it. The time of work elsewhere counts in `ranks` alone: no thread can save it.
    /// Allocates nothing.
    pub fn weigh(&self, plan: &Plan) {
        self.spread(plan);
        self.weigh_once(plan, false, false);
        let counts_elsewhere = self.elsewhere.iter().any(|ns| ns.load(Relaxed) > 0);
        if counts_elsewhere {
            self.weigh_once(plan, false, true);
        }
        if !plan.overlaps.is_empty() {
            self.weigh_once(plan, true, counts_elsewhere);
        }
        self.has_dear.store((0..plan.len()).any(|node| self.is_dear(plan, node)), Relaxed);
        self.has_new.store((0..plan.len()).any(|node| self.is_new(node as u32)), Relaxed);
        self.has_news.store(false, Relaxed);
        self.stretches.lay(plan, &self.costs, &|node| self.is_new(node));
        // ORDERING: Release pairs with the Acquire in `RunState::rank`. A thread that looks while another one weighs
        // has an order between the old one and the new one.
        self.weighed.fetch_add(1, Publish);
    }

    fn weigh_once(&self, plan: &Plan, leads_back: bool, counts_elsewhere: bool) {
        let (mut total, mut all, mut runs) = (0u64, 0u64, 0u64);
        let mut longest = 0f32;
        let mut factor = Factor::new(plan, self);
        for node in (0..plan.len()).rev() {
            let cost = self.costs[node].load(Relaxed);
            let counts = if cost < WORTH_A_THREAD_NS { 0 } else { cost };
            let times = factor.at(node as u32);
            total = total.saturating_add(u64::from(counts).saturating_mul(times));
            all = all.saturating_add(u64::from(cost).saturating_mul(times));
            runs = runs.saturating_add(times);
            let mut worth = worth_of(cost);
            let (mut behind, mut class) = (0f32, Class::Other);
            let mut after = |target: u32| {
                let rank = Rank(self.ranks[target as usize].load(Relaxed));
                behind = behind.max(rank.path());
                class = class.max(rank.class());
            };
            let starts = plan.started(node).iter().map(|start| &start.edge);
            // Edges to the next round of a loop's slots lead back: counted by the factor.
            for edge in plan.edges(node).iter().chain(starts) {
                if edge.target as usize <= node {
                    if leads_back {
                        after(edge.target);
                    }
                    continue;
                }
                after(edge.target);
                if edge.counter == DIRECT {
                    worth = worth.saturating_add(self.worth[edge.target as usize].load(Relaxed));
                }
            }
            for &target in plan.released(node) {
                // A Next releases earlier nodes: another iteration, counted by the factor.
                if target as usize > node {
                    after(target);
                    worth = worth.saturating_add(self.worth[target as usize].load(Relaxed));
                }
            }
            for guard in plan.guards(node) {
                after(guard.target);
            }
            self.worth[node].store(worth, Relaxed);
            let ns = match plan.bodies[node] {
                Body::Async(call) if counts_elsewhere => cost.max(self.elsewhere[call as usize].load(Relaxed)),
                _ => cost,
            };
            let path = behind + ns as f32 * times as f32;
            if plan.starts_elsewhere(node) {
                class = Class::Feeder;
            } else if self.is_dear(plan, node) {
                class = class.min(Class::Awaited);
            }
            self.ranks[node].store(Rank::new(path, class).0, Relaxed);
            longest = longest.max(path);
        }
        self.total_ns.store(total, Relaxed);
        self.all_ns.store(all, Relaxed);
        self.all_runs.store(runs, Relaxed);
        // With another iteration behind it, a path that leads from one to the next counts twice.
        if !leads_back && !counts_elsewhere {
            self.longest_ns.store(longest as u64, Relaxed);
        }
    }

    /// The most that this many more threads could save a run, in nanoseconds, if bringing them cost nothing.
    pub fn saved_by(&self, threads: u64) -> u64 {
        let (all, longest) = (self.all_ns.load(Relaxed), self.longest_ns.load(Relaxed));
        let least = (all / threads.saturating_add(1)).max(longest);
        self.total_ns.load(Relaxed).min(all.saturating_sub(least))
    }

    /// Whether a node is long enough to be shown to others when it is ready, and for its order to matter.
    pub fn is_dear(&self, plan: &Plan, node: usize) -> bool {
        self.costs[node].load(Relaxed) >= dear_ns(plan) || plan.starts_elsewhere(node)
    }

    /// A node was measured: whether it is dear in some runs and cheap in others.
    pub fn varies(&self, plan: &Plan, node: u32, ns: u32) -> bool {
        let seen = &self.seen[node as usize];
        let now = CostHistory::of_bits(seen.load(Relaxed)).after(ns >= dear_ns(plan));
        seen.store(now.bits(), Relaxed);
        now.varies()
    }

    /// Whether a run shows it: if it is dear, or may be.
    pub fn is_shown(&self, plan: &Plan, node: usize) -> bool {
        self.is_new(node as u32) || self.is_dear(plan, node)
    }

    #[inline]
    pub fn is_new(&self, node: u32) -> bool {
        CostHistory::of_bits(self.seen[node as usize].load(Relaxed)).is_new
    }

    /// A call took so long until it was complete. A smaller time counts at once, a larger one by half, as costs do: the
    /// thread that completes it may have been held up.
    pub fn took_elsewhere(&self, call: u32, ns: u64) {
        let (known, ns) = (&self.elsewhere[call as usize], u32::try_from(ns).unwrap_or(u32::MAX));
        let old = known.load(Relaxed);
        known.store(if ns > old && old > 0 { old + (ns - old) / 2 } else { ns }, Relaxed);
    }

    fn is_known(&self, node: usize) {
        let seen = CostHistory::of_bits(self.seen[node].load(Relaxed));
        self.seen[node].store(CostHistory { is_new: false, ..seen }.bits(), Relaxed);
    }

    /// Takes this cost of a node for known; whether it was unknown.
    pub fn comes_to_know(&self, node: u32) -> bool {
        let was_new = self.is_new(node);
        if was_new {
            self.is_known(node as usize);
            self.has_news.store(true, Relaxed);
        }
        was_new
    }

    /// Takes the cost of a node from what other runs have learned. The prior says that none has come to it.
    pub fn load_cost(&self, node: usize, ns: u32) {
        self.costs[node].store(ns, Relaxed);
        if u64::from(ns) != PRIOR_NS {
            self.is_known(node);
        }
    }

    pub fn rank(&self, node: u32) -> Rank {
        Rank(self.ranks[node as usize].load(Relaxed))
    }

    /// A loop made this many iterations. Copies of one loop count as that loop.
    pub fn count_iterations(&self, plan: &Plan, looped: &Loop, iterations: u64) {
        if let Body::Enter(index) = plan.bodies[plan.origin(looped.first) as usize] {
            let iterations = u32::try_from(iterations).unwrap_or(u32::MAX);
            self.iterations[index as usize].store(iterations, Relaxed);
        }
    }

    /// The iterations of a loop that were counted last, or an assumption.
    pub fn iterations_of(&self, plan: &Plan, looped: &Loop) -> u32 {
        match plan.bodies[plan.origin(looped.first) as usize] {
            Body::Enter(index) => self.iterations[index as usize].load(Relaxed),
            _ => ITERATIONS,
        }
    }

    /// Copies have the cost and the iterations of the first of them.
    fn spread(&self, plan: &Plan) {
        for ((cost, seen), &origin) in self.costs.iter().zip(&self.seen).zip(&plan.origins) {
            cost.store(self.costs[origin as usize].load(Relaxed), Relaxed);
            seen.store(self.seen[origin as usize].load(Relaxed), Relaxed);
        }
        for (looped, iterations) in plan.loops.iter().zip(&self.iterations).filter(|_| !plan.origins.is_empty()) {
            if let Body::Enter(index) = plan.bodies[plan.origin(looped.first) as usize] {
                iterations.store(self.iterations[index as usize].load(Relaxed), Relaxed);
            }
        }
    }

    /// How often the nodes of this loop run, by the iterations that were counted last.
    fn rounds(&self, plan: &Plan, index: u32) -> u32 {
        let iterations = self.iterations[index as usize].load(Relaxed).max(1);
        plan.overlap(&plan.loops[index as usize]).map_or(iterations, |overlap| iterations.div_ceil(overlap.count()))
    }

    /// Bytes of the arrays above.
    pub fn bytes(&self) -> usize {
        let words = [&self.costs, &self.elsewhere, &self.iterations, &self.worth, &self.ranks];
        words.iter().map(|list| list.capacity() * 4).sum::<usize>() + self.seen.capacity() + self.stretches.bytes()
    }
}
