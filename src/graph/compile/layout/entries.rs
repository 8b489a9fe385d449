//! Branches that begin before everything from outside is there.
//!
//! The Select of a cond waits for its selector, and for those inputs that nothing in any branch could do without; all
//! other inputs are *late*: the nodes in the branches that use one wait for it themselves. Such a node is an *entry*,
//! and its counter counts
//!
//! - an arrival from each source outside of the branch,
//! - one from each source inside; if there is none, one from the Select, its *guard*.
//!
//! When the branch is taken these all come. When it is not, those from outside come nevertheless, and the Select makes
//! the others in one piece (`Drop`): so the last one finds the counter complete, sets it back, and runs nothing. A
//! Select has such a drop for each entry in its branches, also for those in branches of branches, with as much as lies
//! within *its* branch. So a branch that is not taken costs its entries, whatever is behind them.
//!
//! *Who waits for a late source?* Perhaps nobody: the branch that is taken may not need it. But it writes memory and
//! makes arrivals, so neither an iteration nor a run may be over before it is. Its edges to entries are *loose*, and do
//! not count as being waited for: a source that has no others is waited for by what closes the graph that it is in (an
//! End, the Next, or the node `outputs` behind everything).
//!
//! The inputs of a merge are loose as well: it goes on with one, while the others may be on their way
//! (`region::merge`).
//!
//! *Nor may the iteration be over before it has arrived there.* So loose edges come first among a node's edges. A node
//! behind one of the others is behind all arrivals at loose ones, and the counters are whole then.
//!
//! Nothing is late in a loop whose iterations overlap: there a branch waits for all of its inputs, and a merge too
//! (`GraphScope::is_copied`).
#![forbid(unsafe_code)]

use super::flat::{ArrivalSource, BranchEntry, Flat, Into};
use crate::graph::plan::{Drop, Edge};

/// The predecessors that a node of a branch waits for.
pub(super) enum Waits {
    /// Its graph to begin.
    Release,
    /// That and late sources: the edge from the Select.
    Guard(Edge),
    Sources,
}

impl Flat {
    /// As `wait_for`, for a node of a graph whose first node is `first`; what comes before that one is outside.
    pub fn wait_inside(&mut self, node: u32, sources: &mut Vec<ArrivalSource>, first: u32) -> Waits {
        let is_late =
            |flat: &Flat, source: &ArrivalSource| *source != ArrivalSource::Nobody && flat.speaks(*source) < first;
        if !sources.iter().any(|source| is_late(self, source)) {
            return if self.wait_for(node, sources) { Waits::Sources } else { Waits::Release };
        }
        self.only_needed(node, sources);
        let (late, inside): (Vec<ArrivalSource>, Vec<ArrivalSource>) =
            sources.iter().partition(|source| is_late(self, source));
        if late.is_empty() {
            return if self.wait_for(node, sources) { Waits::Sources } else { Waits::Release };
        }
        let is_promise = |source: &ArrivalSource| matches!(source, ArrivalSource::Carried(_) | ArrivalSource::Guard);
        debug_assert!(!inside.iter().any(is_promise), "an entry in a slot of a loop");
        let arrivals = late.len() + inside.len().max(1);
        let counter = self.joins.single(arrivals);
        let all: Vec<ArrivalSource> = late.iter().chain(&inside).copied().collect();
        self.link(node, &all, |_, _| counter);
        let Into { first: begin, firm, .. } = self.into[node as usize];
        let from_branches = late.iter().map(|source| self.num_alternatives(*source) - 1).sum::<usize>() as u32;
        self.loose.push(begin..begin + from_branches);
        self.loose.push(firm..firm + late.len() as u32);
        let outside = late.iter().map(|source| self.speaks(*source)).collect();
        self.entries.push(BranchEntry { counter, arrivals: arrivals as u32, outside });
        if inside.is_empty() { Waits::Guard(Edge { target: node, counter }) } else { Waits::Sources }
    }

    fn num_alternatives(&self, source: ArrivalSource) -> usize {
        match source {
            ArrivalSource::OneOf(list) => self.alternatives[list as usize].len(),
            _ => 1,
        }
    }

    /// The drops of a branch: for the entries that were added since there were `since`, and whose branch begins at node
    /// `first`.
    pub fn drops(&mut self, since: usize, first: u32) -> std::ops::Range<u32> {
        let begin = self.drops.len() as u32;
        for entry in &self.entries[since..] {
            let from_outside = entry.outside.iter().filter(|&&source| source < first).count() as u32;
            if from_outside > 0 {
                self.drops.push(Drop { counter: entry.counter, amount: entry.arrivals - from_outside });
            }
        }
        begin..self.drops.len() as u32
    }
}
