//! Several runs in one thread at once, whose kernels complete later: their owner goes from one to the next.
//!
//! Each run is one as in `pending`, with the calling thread for its owner. That thread works in a run until it waits
//! for a completion, then begins or continues the next one. When nothing is left to do in any of them it sleeps on one
//! event count, which all of them advance when they would wake an owner of their own. So no thread of a pool waits for
//! work that one of its own threads may have to complete.
#![forbid(unsafe_code)]

use super::bind::Bound;
use crate::base::time::Deadline;
use crate::base::{Error, Ref, Result};
use crate::graph::carry::host::execute::Outer;
use crate::graph::carry::host::pending::LOOK_AGAIN_NS;
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::RunState;
use crate::kernel::{Attached, BeginOutcome, Stop};
use crate::memory::heap;
use crate::stream::GRACE_NS;
use crate::sync::{EventCount, Exit};
use crate::threadpool::ThreadPool;
use std::sync::Arc;

/// How long the owner spins for news before it sleeps.
const NEWS_SPIN_NS: u64 = 20_000;

/// One of the runs in flight.
struct RunInFlight<'a> {
    number: usize,
    state: Arc<RunState>,
    attached: Attached<&'a Stop>,
    /// The value that the event count of closed runs will have reached at its end.
    closed: u64,
    /// This thread was the last one out when the run was begun: then the event count is not advanced.
    is_over: bool,
}

impl RunInFlight<'_> {
    /// Works in it until it is over (then true), or until the owner will be woken by news.
    fn go_on(&self, pool: Option<&Ref<ThreadPool>>) -> bool {
        let state = &self.state;
        self.is_over || state.closed.reached() >= self.closed || state.work_until_asleep(pool) == Exit::Closed
    }

    fn end(self) -> Result<Arc<RunState>, (Arc<RunState>, Error)> {
        let RunInFlight { state, attached, .. } = self;
        state.calls.returns.wake();
        *state.calls.together.lock() = None;
        // Before the result is taken: a stop is part of it or does nothing; else it would stop the state's next run.
        drop(attached);
        match state.result() {
            Ok(()) => Ok(state),
            Err(error) => Err((state, error)),
        }
    }
}

/// The action on a run's tensors once they are bound.
type Then<'a> = &'a dyn Fn(&Bound<'_>) -> Result<()>;

/// The work of a thread for `count` runs.
pub(in crate::graph) struct Together<'a> {
    pub count: usize,
    /// The most that are in flight at once.
    pub width: usize,
    pub pool: Option<&'a Ref<ThreadPool>>,
    pub orders: Option<Orders>,
    pub outer: Outer<'a>,
    /// Binds run number `i` and passes it to the action.
    pub with: &'a dyn Fn(usize, Then<'_>) -> Result<()>,
    /// Receives the error of run number `i`.
    pub failed: &'a dyn Fn(usize, Error),
}

impl Together<'_> {
    /// Makes all of them. Failures are reported to `failed`; after the first no other run begins.
    pub fn run(&self) -> Result<()> {
        let news = Arc::new(EventCount::new());
        let mut in_flight = heap::room(self.width, "runs at once")?;
        let (mut next, mut has_failed, mut slice_ns) = (0, false, GRACE_NS);
        loop {
            let seen = news.reached();
            while next < self.count && in_flight.len() < self.width && !has_failed {
                match self.begin(next, &news) {
                    Ok(run) => in_flight.push(run),
                    Err(error) => {
                        has_failed = true;
                        (self.failed)(next, error);
                    }
                }
                next += 1;
            }
            let mut at = 0;
            let mut ended = false;
            while at < in_flight.len() {
                if in_flight[at].go_on(self.pool) {
                    let run: RunInFlight<'_> = in_flight.swap_remove(at);
                    let number = run.number;
                    if let Err(error) = self.end(run) {
                        has_failed = true;
                        (self.failed)(number, error);
                    }
                    ended = true;
                } else {
                    at += 1;
                }
            }
            if in_flight.is_empty() && (next == self.count || has_failed) {
                return Ok(());
            }
            if ended {
                slice_ns = GRACE_NS;
            } else if !news.wait(seen + 1, NEWS_SPIN_NS, Deadline::after(slice_ns)) {
                // As `RunState::sleep_for_news`, for all that are in flight.
                let begun = in_flight.iter().map(|run: &RunInFlight<'_>| run.state.begin_blocking()).max();
                if begun.is_none_or(|begun| begun == BeginOutcome::Nothing) {
                    slice_ns = (2 * slice_ns).min(LOOK_AGAIN_NS);
                }
            }
        }
    }

    fn begin(&self, number: usize, news: &Arc<EventCount>) -> Result<RunInFlight<'_>> {
        let begun = std::cell::RefCell::new(None);
        (self.with)(number, &|bound| {
            let state = bound.prepared(self.pool, self.orders.as_ref())?;
            *state.calls.together.lock() = Some(Arc::clone(news));
            let attached = self.outer.attach(&state);
            let closed = state.closed.reached() + 1;
            let is_over = state.open_and_work(self.pool) == Exit::Closed;
            begun.replace(Some(RunInFlight { number, state, attached, closed, is_over }));
            Ok(())
        })?;
        begun.into_inner().ok_or_else(|| Error::internal("a run that was not bound"))
    }

    fn end(&self, run: RunInFlight<'_>) -> Result<()> {
        let number = run.number;
        let (state, result) = match run.end() {
            Ok(state) => (state, Ok(())),
            Err((state, error)) => (state, Err(error)),
        };
        (self.with)(number, &|bound| bound.ended(&state, result.clone()))
    }
}
