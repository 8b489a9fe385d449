//! A run that finishes the nodes that do not depend on a failure: in one thread, along the array.
//!
//! A node that fails, or is left out, poisons its successors; a poisoned node is left out when the walk comes to it.
//! Edges order everything, so this holds for data and for control edges, across branches, and however compile has
//! thinned them. A loop in which a node fails ends there, and is poisoned as a whole: its next iterations depend on the
//! failure. Such runs are for diagnosis, or for batches of nearly independent work; they take one thread, which keeps
//! all other runs free of the bookkeeping.
#![forbid(unsafe_code)]

use super::run_tape::RunTape;
use crate::base::time::{clock_ns, now_ns};
use crate::base::{Error, Ref};
use crate::graph::carry::state::RunState;
use crate::graph::carry::traced::Carrier;
use crate::graph::plan::Body;
use crate::threadpool::ThreadPool;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Poison, by node; and what a traced run writes to.
pub(in crate::graph) struct Poisoned<'a> {
    nodes: Vec<bool>,
    tape: Option<RunTape<'a>>,
}

impl Poisoned<'_> {
    fn has(&self, node: u32) -> bool {
        self.nodes[node as usize]
    }

    /// An iteration begins where the run counts at this index.
    pub fn iteration(&self, counted_at: usize) {
        if let Some(tape) = &self.tape {
            let _ = tape.stamp();
            tape.iteration(counted_at);
        }
    }
}

impl RunState {
    pub(in crate::graph) fn run_independent(&self, pool: Option<&Ref<ThreadPool>>) {
        let n = self.plan().len();
        let tape = self.is_traced().then(|| RunTape::open(self, Carrier::Independent));
        let mut poisoned = Poisoned { nodes: std::mem::take(&mut *self.poisoned.lock()), tape };
        poisoned.nodes.clear();
        if poisoned.nodes.try_reserve_exact(n).is_err() {
            self.keep_failure(None, Error::exhausted("what a failure leaves out", n));
            self.stop();
        } else {
            poisoned.nodes.resize(n, false);
        }
        if self.is_stopped() {
            self.walk_rest(0, n as u32);
        } else {
            self.go(0, n as u32, pool, &mut poisoned);
        }
        *self.poisoned.lock() = poisoned.nodes;
        if self.failure.lock().error.is_some() {
            self.stop();
        }
    }

    /// Runs the nodes `node..end` that can be run. False if any could not.
    pub(in crate::graph) fn go(
        &self,
        mut node: u32,
        end: u32,
        pool: Option<&Ref<ThreadPool>>,
        poisoned: &mut Poisoned<'_>,
    ) -> bool {
        let plan = self.plan();
        let mut whole = true;
        while node < end {
            self.look_at_clock(node);
            if self.is_stopped() {
                self.walk_rest(node, end);
                return false;
            }
            let behind = plan.behind(node);
            if poisoned.has(node) {
                self.note(node);
                self.poison(node, poisoned);
                whole = false;
            } else if plan.absence.own.is_empty() || !self.skips(node as usize) {
                whole &= self.go_one(node, pool, poisoned);
            } else {
                self.is_passed_over(node);
            }
            node = behind;
        }
        whole
    }

    fn go_one(&self, node: u32, pool: Option<&Ref<ThreadPool>>, poisoned: &mut Poisoned<'_>) -> bool {
        let plan = self.plan();
        match plan.bodies[node as usize] {
            Body::Select(index) => {
                let select = &plan.selects[index as usize];
                let branch = self.branch(select);
                self.takes(node, branch);
                let whole = self.go(branch.nodes.start, branch.nodes.end, pool, poisoned);
                // The ends of the branches lie behind them; that of the branch that ran has got its poison.
                let first_end = select.branches.last().map_or(select.end, |branch| branch.nodes.end);
                for end in first_end..select.end {
                    if poisoned.has(end) {
                        self.poison(end, poisoned);
                    }
                }
                whole
            }
            Body::Enter(index) => {
                let whole = self.go_around(index as usize, pool, poisoned);
                self.leaves(index as usize);
                if !whole {
                    self.poison(node, poisoned);
                }
                whole
            }
            body => {
                let start = match &poisoned.tape {
                    Some(tape) => {
                        tape.begins(node, false);
                        tape.stamp()
                    }
                    None => now_ns(),
                };
                let compute = AssertUnwindSafe(|| match body {
                    Body::Async(call) => self.see_through(call, pool),
                    body => self.compute(body, pool).map(|()| true),
                });
                let result = catch_unwind(compute).unwrap_or_else(|payload| {
                    let error = Error::from_panic(&*payload);
                    std::mem::forget(payload);
                    Err(error)
                });
                match &poisoned.tape {
                    Some(tape) => tape.walked(node, !matches!(result, Ok(true))),
                    None => self.measured(node as usize, (now_ns() - start).saturating_sub(clock_ns())),
                }
                self.is_over(node, now_ns);
                match result {
                    Ok(true) => return true,
                    // The thread that completed it has reported the failure.
                    Ok(false) => {}
                    Err(error) => self.fail_at(node, &error),
                }
                self.poison(node, poisoned);
                false
            }
        }
    }

    fn go_around(&self, index: usize, pool: Option<&Ref<ThreadPool>>, poisoned: &mut Poisoned<'_>) -> bool {
        let looped = self.enter(index);
        self.enters(index);
        self.begins_condition(self.plan().first_counts_at(index));
        if let Some(overlap) = self.plan().overlap(looped) {
            return self.go_through_slots(overlap, pool, poisoned);
        }
        loop {
            poisoned.iteration(index);
            if !self.go(looped.condition.start, looped.condition.end, pool, poisoned) {
                return false;
            }
            if !self.goes_on(looped) {
                return true;
            }
            self.begins_body(index);
            if !self.go(looped.body.start, looped.body.end, pool, poisoned) {
                return false;
            }
            self.next(index);
            self.begins_condition(index);
        }
    }

    /// The successors of this node cannot run.
    fn poison(&self, node: u32, poisoned: &mut Poisoned<'_>) {
        self.plan().edges(node as usize).iter().for_each(|edge| poisoned.nodes[edge.target as usize] = true);
    }
}
