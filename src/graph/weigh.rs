//! What nodes are worth, from their costs and how often loops go round.

use super::builder::MAX_DEPTH;
use super::layout::{Body, DIRECT, Layout, Release};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A node cheaper than this, in nanoseconds, is no reason to involve another thread: the cache lines that would
/// move cost as much.
const WORTH_A_THREAD_NS: u32 = 150;

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
    /// Recomputes `worth` and the sums from `costs`. Edges go up, so one pass from the end does. Allocates nothing:
    /// `paths` is memory of the caller's, one word for each node, for the longest path from each to the end.
    pub fn weigh(&self, paths: &[AtomicU32]) {
        self.spread_costs();
        let (mut total, mut all) = (0u64, 0u64);
        let mut longest = 0f32;
        let mut factor = Factor::new(self);
        for node in (0..self.len()).rev() {
            let cost = self.costs[node].load(Relaxed);
            let counts = if cost < WORTH_A_THREAD_NS { 0 } else { cost };
            let times = factor.at(node as u32);
            total = total.saturating_add(u64::from(counts).saturating_mul(times));
            all = all.saturating_add(u64::from(cost).saturating_mul(times));
            let mut worth = counts;
            let mut behind = 0f32;
            let path = |target: u32| f32::from_bits(paths[target as usize].load(Relaxed));
            let starts = self.started(node).iter().map(|start| &start.edge);
            // Those to the next round of a loop's slots lead back: counted by the factor.
            for edge in self.edges(node).iter().chain(starts).filter(|edge| edge.target as usize > node) {
                behind = behind.max(path(edge.target));
                if edge.counter == DIRECT {
                    worth = worth.saturating_add(self.worth[edge.target as usize].load(Relaxed));
                }
            }
            for &target in self.released(node) {
                // A Next releases what lies before it: another iteration, counted by the factor.
                if target as usize > node {
                    behind = behind.max(path(target));
                    worth = worth.saturating_add(self.worth[target as usize].load(Relaxed));
                }
            }
            for guard in self.guards(node) {
                behind = behind.max(path(guard.target));
            }
            self.worth[node].store(worth, Relaxed);
            let path = behind + counts as f32 * times as f32;
            paths[node].store(path.to_bits(), Relaxed);
            longest = longest.max(path);
        }
        self.total_ns.store(total, Relaxed);
        self.all_ns.store(all, Relaxed);
        self.longest_ns.store(longest as u64, Relaxed);
    }

    /// The nodes that a node may release.
    fn released(&self, node: usize) -> &[u32] {
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
