//! How a worker begins a run: with its roots, or where a walk has left it.
//!
//! Nodes that a walk has done make their arrivals here, one after the other: a cond that is over as one that has run
//! nothing, since its outputs are there. Of a cond or a loop that the walk is in, only the branch, the condition or the
//! body counts: earlier iterations have left all counters as they were.

use super::Worker;
use crate::graph::carry::host::ops;
use crate::graph::plan::{Body, Branch, DIRECT};

impl<const MODE: u8> Worker<'_, MODE> {
    /// Begins with the run's roots. A walk has come to `from`: the nodes before it are done, and make their arrivals
    /// here, and the conds and loops around it have begun.
    pub fn begin(mut self, from: u32) -> Self {
        let plan = self.plan;
        self.push_all(plan.roots.iter(), from);
        let mut node = 0;
        while node < from {
            if plan.behind(node) <= from {
                self.is_done(node, from);
                node = plan.behind(node);
            } else {
                node = self.has_begun(node, from);
            }
        }
        self
    }

    /// Nodes that wait for nothing else, the most urgent last. Those before `from` are done.
    fn push_all<'n>(&mut self, nodes: impl Iterator<Item = &'n u32>, from: u32) {
        for &node in nodes.filter(|&&node| node >= from) {
            self.is_ready(node);
            self.push(node);
        }
    }

    /// Releases what is in the branch, the condition or the body that the walk is in, and returns its first node.
    #[cold]
    fn has_begun(&mut self, node: u32, from: u32) -> u32 {
        let plan = self.plan;
        let (release, nodes) = match plan.bodies[node as usize] {
            Body::Select(index) => {
                let branches = || plan.selects[index as usize].branches.iter();
                let is_taken = |branch: &&Branch| branch.nodes.contains(&from);
                branches().filter(|branch| !is_taken(branch)).for_each(|branch| self.state.drop_branch(branch));
                let taken = branches().find(is_taken).expect("a walk is in a branch or behind all");
                for guard in &plan.guards[taken.guards.start as usize..taken.guards.end as usize] {
                    if self.arrive(guard.counter) {
                        self.push_all(std::iter::once(&guard.target), from);
                    }
                }
                (taken.release, &taken.nodes)
            }
            Body::Enter(index) => {
                let looped = &plan.loops[index as usize];
                match from <= looped.condition.end {
                    true => (looped.release_condition, &looped.condition),
                    false => (looped.release_body, &looped.body),
                }
            }
            _ => unreachable!("nothing is inside of other nodes"),
        };
        self.push_all(plan.releases[release.first as usize..release.end as usize].iter().rev(), from);
        nodes.start
    }

    /// The arrivals behind a node that is done, nested nodes included, as if it had been left out.
    #[cold]
    fn is_done(&mut self, node: u32, from: u32) {
        let plan = self.plan;
        match plan.bodies[node as usize] {
            Body::Select(index) => {
                let select = &plan.selects[index as usize];
                let _ = ops::choose_none(self.state, select);
                self.done += select.uncounted;
            }
            Body::Enter(index) => self.done += plan.loops[index as usize].uncounted,
            _ => self.done += u32::from(plan.edges(node as usize).is_empty()),
        }
        for edge in plan.edges(node as usize) {
            if edge.counter == DIRECT || self.arrive(edge.counter) {
                self.push_all(std::iter::once(&edge.target), from);
            }
        }
    }
}
