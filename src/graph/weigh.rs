//! What nodes are worth, from their costs and how often loops go round.
#![forbid(unsafe_code)]

use super::builder::MAX_DEPTH;
use super::layout::{Body, DIRECT, Layout, Release};
use std::sync::atomic::Ordering::{Relaxed, Release as Publish};

/// A node cheaper than this, in nanoseconds, is no reason to involve another thread: the cache lines that would
/// move cost as much. Where another thread is there already and has nothing to do, a list of such nodes is worth
/// something to it, what they take beyond the second figure; from the first one on a node is worth what it takes.
const WORTH_A_THREAD_NS: u32 = 150;
const MOVED_NS: u32 = 50;

/// The worth on a list of a node that takes so long.
fn worth_of(cost_ns: u32) -> u32 {
    if cost_ns < WORTH_A_THREAD_NS { cost_ns.saturating_sub(MOVED_NS) } else { cost_ns }
}

/// A node as long as this, in nanoseconds, is worth what it costs to show it to all workers, about 100 ns where two of
/// them want the same cache line.
const DEAR_NS: u32 = 3_000;

/// How urgent a node is: the longest path from its beginning to the run's end, in nanoseconds; and before all others
/// those that something waits for that is done elsewhere. Greater is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u32);

impl Rank {
    const URGENT: u32 = 1 << 31;
    /// Of a node that has none.
    pub const NONE: Rank = Rank(0);

    /// The bits of a float that is not negative are in the order of the floats, and its sign bit is free.
    fn new(path: f32, is_urgent: bool) -> Rank {
        Rank(path.to_bits() | if is_urgent { Rank::URGENT } else { 0 })
    }

    fn path(self) -> f32 {
        f32::from_bits(self.0 & !Rank::URGENT)
    }

    /// Whether something that is done elsewhere is behind it.
    pub fn is_urgent(self) -> bool {
        self.0 & Rank::URGENT != 0
    }

    pub fn of_bits(bits: u32) -> Rank {
        Rank(bits)
    }

    pub fn bits(self) -> u32 {
        self.0
    }
}

/// How often nodes run in a walk from the last to the first: the product of the iterations of the loops around them.
struct Factor<'a> {
    layout: &'a Layout,
    /// Loops that the walk has not come to, by their place in `loops_by_end`.
    next: usize,
    /// Where each loop that the walk is in begins, and the product.
    inside: [(u32, u64); MAX_DEPTH],
    depth: usize,
}

impl<'a> Factor<'a> {
    fn new(layout: &'a Layout) -> Factor<'a> {
        Factor { layout, next: 0, inside: [(0, 1); MAX_DEPTH], depth: 0 }
    }

    fn at(&mut self, node: u32) -> u64 {
        while self.depth > 0 && node < self.inside[self.depth - 1].0 {
            self.depth -= 1;
        }
        let mut times = if self.depth > 0 { self.inside[self.depth - 1].1 } else { 1 };
        while let Some(&index) = self.layout.loops_by_end.get(self.next) {
            let looped = &self.layout.loops[index as usize];
            if looped.end != node + 1 {
                break;
            }
            times = times.saturating_mul(u64::from(self.layout.rounds(looped)));
            self.inside[self.depth] = (looped.first, times);
            self.depth += 1;
            self.next += 1;
        }
        times
    }
}

impl Layout {
    /// Recomputes `worth`, `ranks` and the sums from `costs`. Edges go up, so one pass from the end does; where loops
    /// have several iterations at once a second one, in which a node that feeds the next iteration has that behind it,
    /// as the first pass has found it. Allocates nothing.
    pub fn weigh(&self) {
        self.spread_costs();
        self.weigh_once(false);
        if !self.overlaps.is_empty() {
            self.weigh_once(true);
        }
        self.has_dear.store((0..self.len()).any(|node| self.is_dear(node)), Relaxed);
        // ORDERING: Release pairs with the Acquire in `Step::rank`. Who looks while another thread weighs has an order
        // between the old one and the new one.
        self.weighed.fetch_add(1, Publish);
    }

    fn weigh_once(&self, leads_back: bool) {
        let (mut total, mut all) = (0u64, 0u64);
        let mut longest = 0f32;
        let mut factor = Factor::new(self);
        for node in (0..self.len()).rev() {
            let cost = self.costs[node].load(Relaxed);
            let counts = if cost < WORTH_A_THREAD_NS { 0 } else { cost };
            let times = factor.at(node as u32);
            total = total.saturating_add(u64::from(counts).saturating_mul(times));
            all = all.saturating_add(u64::from(cost).saturating_mul(times));
            let mut worth = worth_of(cost);
            let (mut behind, mut is_urgent) = (0f32, self.starts_elsewhere(node));
            // With what the sign bit says: whether something that is done elsewhere is behind it.
            let mut after = |target: u32| {
                let rank = Rank(self.ranks[target as usize].load(Relaxed));
                behind = behind.max(rank.path());
                is_urgent |= rank.is_urgent();
            };
            let starts = self.started(node).iter().map(|start| &start.edge);
            // Those to the next round of a loop's slots lead back: counted by the factor.
            for edge in self.edges(node).iter().chain(starts) {
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
            for &target in self.released(node) {
                // A Next releases what lies before it: another iteration, counted by the factor.
                if target as usize > node {
                    after(target);
                    worth = worth.saturating_add(self.worth[target as usize].load(Relaxed));
                }
            }
            for guard in self.guards(node) {
                after(guard.target);
            }
            self.worth[node].store(worth, Relaxed);
            let path = behind + cost as f32 * times as f32;
            self.ranks[node].store(Rank::new(path, is_urgent).0, Relaxed);
            longest = longest.max(path);
        }
        self.total_ns.store(total, Relaxed);
        self.all_ns.store(all, Relaxed);
        // With another iteration behind it, a path that leads from one to the next counts twice.
        if !leads_back {
            self.longest_ns.store(longest as u64, Relaxed);
        }
    }

    /// The most that so many threads more could save a run, in nanoseconds, if bringing them cost nothing.
    pub fn saved_by(&self, threads: u64) -> u64 {
        let (all, longest) = (self.all_ns.load(Relaxed), self.longest_ns.load(Relaxed));
        let least = (all / threads.saturating_add(1)).max(longest);
        self.total_ns.load(Relaxed).min(all.saturating_sub(least))
    }

    /// Whether a node only starts what is done elsewhere: by a device, or by whoever completes it later. Nothing else
    /// is as cheap for what it brings about, so it comes before all that this thread computes itself.
    fn starts_elsewhere(&self, node: usize) -> bool {
        match self.bodies[node] {
            Body::Async(_) => true,
            Body::Kernel(kernel) => self.kernel(kernel).engine().is_some(),
            _ => false,
        }
    }

    /// Whether a node is long enough for others to be shown that it is ready, and for its order to matter.
    pub fn is_dear(&self, node: usize) -> bool {
        let dear_ns = self.hop_ns.map_or(u64::from(DEAR_NS), |hop_ns| hop_ns.max(u64::from(DEAR_NS)));
        u64::from(self.costs[node].load(Relaxed)) >= dear_ns || self.starts_elsewhere(node)
    }

    pub fn rank(&self, node: u32) -> Rank {
        Rank(self.ranks[node as usize].load(Relaxed))
    }

    /// The nodes that a node may release.
    pub fn released(&self, node: usize) -> &[u32] {
        let of = |release: Release| &self.releases[release.first as usize..release.end as usize];
        match self.bodies[node] {
            Body::Select(i) => {
                let branches = &self.selects[i as usize].branches;
                let first = branches.first().map_or(0, |branch| branch.release.first);
                let end = branches.last().map_or(0, |branch| branch.release.end);
                of(Release { first, end })
            }
            Body::Enter(i) => of(self.loops[i as usize].release_condition),
            Body::Test(i) => of(self.loops[i as usize].release_body),
            _ => &[],
        }
    }
}
