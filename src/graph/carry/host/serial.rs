//! A run in one thread: along the array, without counters, lists or atomics.
//!
//! In the array every node comes after its predecessors, so nothing has to be counted. A branch that is not taken is
//! jumped over; a loop goes over its part of the array again. When the run has stopped, the rest is walked once more to
//! note the nodes that are left out.
#![forbid(unsafe_code)]

use super::run_tape::RunTape;
use super::walk_timer::WalkTimer;
use super::worker::{CAREFUL, FAST, MEASURED, TRACED};
use crate::base::time::{clock_ns, now_ns};
use crate::base::tune::Rate;
use crate::base::{Error, Ref};
use crate::graph::carry::figures::is_measured;
use crate::graph::carry::state::RunState;
use crate::graph::carry::traced::is_told;
use crate::graph::plan::Body;
use crate::threadpool::ThreadPool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::*};

/// How a node's cost follows its measurements.
const COSTS: Rate = Rate { down: 1.0, up: 1.0, most_up: 0.5, least_up: 10.0 };

/// The cost of one that is long in some runs and short in others, whatever the last one was.
const MEAN: Rate = Rate { down: 0.25, up: 0.25, most_up: f32::INFINITY, least_up: 0.0 };

/// Whether a walk of this version may say how far the run is.
pub(in crate::graph) const fn may_report<const MODE: u8>() -> bool {
    MODE == CAREFUL || MODE == TRACED
}

/// How far a walk has come, and what it writes to.
pub(in crate::graph) struct Walked<'a> {
    /// The node in hand, in case it panics.
    at: AtomicU32,
    /// For a walk that is traced.
    tape: Option<&'a RunTape<'a>>,
    /// For a walk that others may go on with.
    timer: Option<&'a WalkTimer>,
}

impl Walked<'_> {
    /// Where to look at the clock next, in a part that ends at `end`, and what the nodes before should cost.
    #[inline(always)]
    fn stretch(&self, state: &RunState, node: u32, end: u32) -> (u32, u32) {
        self.timer.map_or((end, 0), |timer| timer.stretch(state.learned(), node, end))
    }

    /// The stretch from `start` is over: whether all from `node` on is left to others.
    #[inline(always)]
    fn leaves(&self, state: &RunState, start: u32, node: u32, cost_ns: u32) -> bool {
        self.timer.is_some_and(|timer| timer.adds(node - start, cost_ns) && timer.looks(state, start, node))
    }

    #[inline]
    fn has_left(&self) -> bool {
        self.timer.is_some_and(|timer| timer.left().is_some())
    }

    /// A node is about to run.
    #[inline]
    fn runs(&self, node: u32) {
        if let Some(tape) = self.tape {
            tape.begins(node, false);
        }
    }

    /// A node has run.
    #[inline]
    fn ran(&self, state: &RunState, node: u32, failed: bool) {
        if let Some(tape) = self.tape {
            tape.walked(node, failed);
            if tape.is_careful {
                state.is_over(node, now_ns);
            }
        }
    }

    /// An iteration begins where the run counts at this index.
    #[inline]
    pub fn iteration(&self, counted_at: usize) {
        if let Some(tape) = self.tape {
            tape.iteration(counted_at);
        }
    }
}

impl RunState {
    /// Runs everything here. `tape`: for a run that is traced. `timer`: says when what is left is for others.
    pub(in crate::graph) fn run_alone(
        &self,
        pool: Option<&Ref<ThreadPool>>,
        mode: u8,
        tape: Option<&RunTape<'_>>,
        timer: Option<&WalkTimer>,
    ) {
        let (start, end) = (0, self.plan().len() as u32);
        let at = Walked { at: AtomicU32::new(start), tape, timer };
        let walk = || match (mode, self.plan().absence.own.is_empty()) {
            (FAST, true) => self.walk::<FAST, false>(start, end, pool, &at),
            (FAST, false) => self.walk::<FAST, true>(start, end, pool, &at),
            (MEASURED, true) => self.walk::<MEASURED, false>(start, end, pool, &at),
            (MEASURED, false) => self.walk::<MEASURED, true>(start, end, pool, &at),
            (TRACED, true) => self.walk::<TRACED, false>(start, end, pool, &at),
            (TRACED, false) => self.walk::<TRACED, true>(start, end, pool, &at),
            (_, true) => self.walk::<CAREFUL, false>(start, end, pool, &at),
            (_, false) => self.walk::<CAREFUL, true>(start, end, pool, &at),
        };
        // Caught here and not around each node: a panic is a defect of a kernel, and this costs nothing while there is
        // none.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(walk)) {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            let node = at.at.load(Relaxed);
            self.fail_at(node, &error);
            if is_told(&self.plan().bodies[node as usize]) {
                at.ran(self, node, true);
            }
            self.walk_rest(node + 1, end);
        }
    }

    /// Runs the nodes `node..end`, nested ones included. False if the run has stopped, or what is left is for others.
    pub(in crate::graph) fn walk<const MODE: u8, const ABSENCE: bool>(
        &self,
        mut node: u32,
        end: u32,
        pool: Option<&Ref<ThreadPool>>,
        at: &Walked<'_>,
    ) -> bool {
        let plan = self.plan();
        while node < end {
            let start = node;
            let (until, cost_ns) = at.stretch(self, node, end);
            while node < until {
                if MODE == CAREFUL || MODE == TRACED && self.is_careful() {
                    self.look_at_clock(node);
                }
                if self.is_stopped() {
                    self.walk_rest(node, end);
                    return false;
                }
                if ABSENCE && self.skips(node as usize) {
                    if may_report::<MODE>() {
                        self.is_passed_over(node);
                    }
                    node = self.plan().behind(node);
                    continue;
                }
                at.at.store(node, Relaxed);
                let body = &plan.bodies[node as usize];
                match *body {
                    Body::Call(call) if MODE == FAST || MODE == TRACED => {
                        if MODE == TRACED {
                            at.runs(node);
                        }
                        let status = call.run();
                        if status != 0 {
                            self.fail_at(node, &call.failed(status));
                        }
                        if MODE == TRACED {
                            at.ran(self, node, status != 0);
                        }
                        node += 1;
                    }
                    Body::Kernel(kernel) if MODE == FAST || MODE == TRACED => {
                        if MODE == TRACED {
                            at.runs(node);
                        }
                        let result = self.compute_kernel(kernel as usize, pool);
                        if let Err(error) = &result {
                            self.fail_at(node, error);
                        }
                        if MODE == TRACED {
                            at.ran(self, node, result.is_err());
                        }
                        node += 1;
                    }
                    Body::Select(index) => {
                        let select = &plan.selects[index as usize];
                        let branch = self.branch(select);
                        if may_report::<MODE>() {
                            self.takes(node, branch);
                        }
                        let nodes = &branch.nodes;
                        if !self.walk::<MODE, ABSENCE>(nodes.start, nodes.end, pool, at)
                            && at.timer.is_some_and(|timer| timer.leaves_branch(nodes.end, select.end))
                        {
                            return false;
                        }
                        node = select.end;
                    }
                    Body::Enter(index) => {
                        self.walk_loop::<MODE, ABSENCE>(index as usize, pool, at);
                        if at.has_left() {
                            return false;
                        }
                        node = plan.loops[index as usize].end;
                    }
                    _ => {
                        if MODE == TRACED {
                            at.runs(node);
                        }
                        let start = if MODE == MEASURED || MODE == CAREFUL { now_ns() } else { 0 };
                        let result = match *body {
                            Body::Async(call) => self.see_through(call, pool),
                            body => self.compute(body, pool).map(|()| true),
                        };
                        if let Err(error) = &result {
                            self.fail_at(node, error);
                        }
                        if MODE == TRACED {
                            at.ran(self, node, !matches!(result, Ok(true)));
                        } else if MODE != FAST {
                            let end = now_ns();
                            self.measured(node as usize, (end - start).saturating_sub(clock_ns()));
                            if MODE == CAREFUL {
                                self.is_over(node, || end);
                            }
                        }
                        node += 1;
                    }
                }
            }
            if at.leaves(self, start, node, cost_ns) {
                return false;
            }
        }
        !self.is_stopped()
    }

    #[inline]
    pub(in crate::graph) fn is_in_time<const MODE: u8>(&self, node: u32) -> bool {
        if MODE == CAREFUL || MODE == TRACED && self.is_careful() {
            self.look_at_clock(node);
        }
        !self.is_stopped()
    }

    /// Another iteration begins, which is true.
    #[inline]
    pub(in crate::graph) fn goes_around<const MODE: u8>(&self, counted_at: usize) -> bool {
        if may_report::<MODE>() {
            self.begins_body(counted_at);
        }
        true
    }

    fn walk_loop<const MODE: u8, const ABSENCE: bool>(
        &self,
        index: usize,
        pool: Option<&Ref<ThreadPool>>,
        at: &Walked<'_>,
    ) {
        let looped = self.enter(index);
        if may_report::<MODE>() {
            self.enters(index);
            self.begins_condition(self.plan().first_counts_at(index));
        }
        if let Some(overlap) = self.plan().overlap(looped) {
            return self.walk_slots::<MODE, ABSENCE>(looped, overlap, pool, at);
        }
        if MODE == TRACED {
            at.iteration(index);
        }
        let (condition, body) = (&looped.condition, &looped.body);
        // A stopped loop ends between its parts, and leaves out only itself.
        while self.walk::<MODE, ABSENCE>(condition.start, condition.end, pool, at)
            && self.goes_on(looped)
            && self.is_in_time::<MODE>(looped.first)
            && self.goes_around::<MODE>(index)
            && self.walk::<MODE, ABSENCE>(body.start, body.end, pool, at)
            && self.is_in_time::<MODE>(looped.first)
        {
            self.next(index);
            if may_report::<MODE>() {
                self.begins_condition(index);
            }
            if MODE == TRACED {
                at.iteration(index);
            }
        }
        if at.has_left() {
            return;
        }
        if MODE != FAST {
            let iterations = self.iterations[index].load(Relaxed);
            self.learned().count_iterations(self.plan(), looped, iterations);
        }
        if may_report::<MODE>() {
            self.leaves(index);
        }
    }

    /// Notes the nodes that the run has left out.
    #[cold]
    pub(in crate::graph) fn walk_rest(&self, mut node: u32, end: u32) {
        while node < end {
            self.note(node);
            node = self.plan().behind(node);
        }
    }

    pub(in crate::graph) fn note(&self, node: u32) {
        if self.plan().is_step(node) {
            self.left_out(node);
        }
    }

    pub(in crate::graph) fn measured(&self, node: usize, ns: u64) {
        let plan = self.plan();
        let cost = &self.learned().costs[plan.origin(node as u32) as usize];
        let ns = u32::try_from(ns).unwrap_or(u32::MAX);
        let old = cost.load(Relaxed);
        if let Some(figures) = &self.compiled.figures
            && is_measured(&plan.bodies[node])
            && let Some(figures) = figures.of(plan.origin(node as u32) as usize)
        {
            figures.add(u64::from(ns));
        }
        // A run that measures because costs are in doubt replaces them, as does the first one that comes to the node.
        let origin = plan.origin(node as u32);
        let (is_new, varies) = (self.learned().comes_to_know(origin), self.learned().varies(plan, origin, ns));
        let rate = match (is_new, varies) {
            (false, true) => MEAN,
            _ if is_new || self.believes.load(Relaxed) => Rate::BELIEVE,
            _ => COSTS,
        };
        cost.store(rate.moved(old as f32, ns as f32) as u32, Relaxed);
    }
}
