//! A run in one thread: along the array, without counters, lists or atomics.
//!
//! The array is in an order in which every node comes after what it waits for, so nothing has to be counted. A branch
//! that is not taken is jumped over; a loop goes over its part of the array again. When the run has stopped, the rest is
//! walked once more to note what is left out.

use super::step::Step;
use crate::base::time::{clock_ns, now_ns};
use crate::base::{Error, Ref};
use crate::graph::layout::Body;
use crate::threadpool::ThreadPool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::*};

impl Step {
    /// Runs everything here.
    pub(super) fn run_alone(&self, pool: Option<&Ref<ThreadPool>>, measure: bool) {
        let end = self.layout.len() as u32;
        let at = AtomicU32::new(0);
        let walk = || match (measure, self.layout.absence.own.is_empty()) {
            (false, true) => self.walk::<false, false>(0, end, pool, &at),
            (false, false) => self.walk::<false, true>(0, end, pool, &at),
            (true, true) => self.walk::<true, false>(0, end, pool, &at),
            (true, false) => self.walk::<true, true>(0, end, pool, &at),
        };
        // Caught here and not around each node: a panic is a defect of a kernel, and costs nothing while there is none.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(walk)) {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            let node = at.load(Relaxed);
            self.fail_at(node, &error);
            self.walk_rest(node + 1, end);
        }
    }

    /// Runs the nodes `node..end`, and what is inside of them. False if the run has stopped.
    fn walk<const MEASURE: bool, const ABSENCE: bool>(
        &self,
        mut node: u32,
        end: u32,
        pool: Option<&Ref<ThreadPool>>,
        at: &AtomicU32,
    ) -> bool {
        let layout = &*self.layout;
        while node < end {
            if self.is_stopped() {
                self.walk_rest(node, end);
                return false;
            }
            if ABSENCE && self.skips(node as usize) {
                node = self.behind(node);
                continue;
            }
            at.store(node, Relaxed);
            let body = layout.bodies[node as usize];
            match body {
                Body::Call(task, call) if !MEASURE => {
                    let status = call.run();
                    if status != 0 {
                        self.fail_at(node, &layout.tasks[task as usize].failed(status));
                    }
                    node += 1;
                }
                Body::Select(index) => {
                    let select = &layout.selects[index as usize];
                    let branch = &select.branches[self.branch(select)].nodes;
                    self.walk::<MEASURE, ABSENCE>(branch.start, branch.end, pool, at);
                    node = select.end;
                }
                Body::Enter(index) => {
                    self.walk_loop::<MEASURE, ABSENCE>(index as usize, pool, at);
                    node = layout.loops[index as usize].end;
                }
                _ => {
                    let start = if MEASURE { now_ns() } else { 0 };
                    if let Err(error) = self.compute(body, pool) {
                        self.fail_at(node, &error);
                    }
                    if MEASURE {
                        self.measured(node as usize, (now_ns() - start).saturating_sub(clock_ns()));
                    }
                    node += 1;
                }
            }
        }
        true
    }

    fn walk_loop<const MEASURE: bool, const ABSENCE: bool>(
        &self,
        index: usize,
        pool: Option<&Ref<ThreadPool>>,
        at: &AtomicU32,
    ) {
        let looped = self.enter(index);
        let (condition, body) = (&looped.condition, &looped.body);
        while self.walk::<MEASURE, ABSENCE>(condition.start, condition.end, pool, at)
            && self.goes_on(looped)
            && self.walk::<MEASURE, ABSENCE>(body.start, body.end, pool, at)
        {
            self.next(index);
            if self.is_stopped() {
                break;
            }
        }
        if MEASURE {
            let iterations = self.iterations[index].load(Relaxed);
            looped.iterations.store(u32::try_from(iterations).unwrap_or(u32::MAX), Relaxed);
        }
    }

    /// The node behind this one and all that is inside of it.
    fn behind(&self, node: u32) -> u32 {
        match self.layout.bodies[node as usize] {
            Body::Select(index) => self.layout.selects[index as usize].end,
            Body::Enter(index) => self.layout.loops[index as usize].end,
            _ => node + 1,
        }
    }

    /// Notes what the run has left out.
    #[cold]
    fn walk_rest(&self, mut node: u32, end: u32) {
        while node < end {
            self.note(node);
            node = self.behind(node);
        }
    }

    fn note(&self, node: u32) {
        match self.layout.bodies[node as usize] {
            Body::End | Body::Test(_) | Body::Next(_) => {}
            _ => self.left_out(node),
        }
    }

    pub(super) fn measured(&self, node: usize, ns: u64) {
        let layout = &self.layout;
        let cost = &layout.costs[node];
        let ns = u32::try_from(ns).unwrap_or(u32::MAX);
        let old = cost.load(Relaxed);
        // The first measurement replaces the prior. Later ones pull the figure down at once and up by little: a thread
        // that was interrupted in a node measures far too much, and never too little.
        let new = match layout.runs.load(Relaxed) {
            0 | 1 => ns,
            _ => ns.min(old.saturating_add(old / 2).saturating_add(10)),
        };
        cost.store(new, Relaxed);
    }
}
