//! Kernels that complete later, in a run by one thread along the array: each is started when the walk comes to it and
//! completes before the next node begins. So a deterministic run does not depend on a device's timing.
//!
//! The thread sleeps meanwhile, which a worker of a pool must not: such a run is refused there, and on an asynchronous
//! stream that a pool drains.
#![forbid(unsafe_code)]

use crate::base::{Error, Ref, Result};
use crate::graph::carry::state::RunState;
use crate::graph::plan::Plan;
use crate::stream::{GRACE_NS, Queue};
use crate::threadpool::ThreadPool;

impl RunState {
    /// Whether a call of this node ends well; else the run has its failure.
    pub(in crate::graph) fn see_through(&self, call: u32, pool: Option<&Ref<ThreadPool>>) -> Result<bool> {
        let Some(state) = self.invitation.state() else {
            return Err(Error::internal("a run that nobody holds"));
        };
        while !state.call(call, pool) {
            self.wait_for_a_return();
            if !self.is_under_way(call) {
                break;
            }
        }
        Ok(!self.has_failed(call))
    }

    /// As the run's owner does. No other thread is in the run, and one call is in flight.
    fn wait_for_a_return(&self) {
        let calls = &self.calls;
        let mut slice_ns = GRACE_NS;
        loop {
            let seen = calls.news.reached();
            if calls.returns.take().is_some() {
                return;
            }
            if calls.returns.sleep() {
                self.sleep_for_news(seen, &mut slice_ns);
                calls.returns.wake();
            }
        }
    }
}

/// Refuses a run by one thread on a stream where that thread would be a worker of a pool.
pub(in crate::graph) fn check_stream(queue: &Queue, plan: &Plan) -> Result<()> {
    let has_pool = queue.pool().is_some_and(|pool| pool.can_spawn());
    if plan.calls.is_empty() || queue.is_synchronous() || !has_pool {
        return Ok(());
    }
    Err(Error::precondition(format!(
        "program '{}' has nodes that complete later (kernels, or work on a device), and a run that is \
         deterministic, or finishes what is independent, waits for each: on stream '{}' that would block a worker of \
         its thread pool",
        plan.name,
        queue.name()
    )))
}
