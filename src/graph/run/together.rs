//! Several runs of one thread's at once, whose kernels complete later: their owner goes from one to the next.
//!
//! Each run is one as in `pending`, with the calling thread for its owner. That thread works in a run until something
//! has to come back, begins or goes on with the next one, and when nothing is left to do in any of them it sleeps on
//! one gate, which all of them advance when they would wake an owner of their own. So no thread of a pool waits for
//! what one of its own threads may have to complete.
#![forbid(unsafe_code)]

use super::bind::Bound;
use super::execute::Outer;
use crate::base::time::Deadline;
use crate::base::{Error, Ref, Result};
use crate::graph::carry::host::pending::LOOK_AGAIN_NS;
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::RunState;
use crate::kernel::{Attached, BeginOutcome, Stop};
use crate::memory::heap;
use crate::stream::GRACE_NS;
use crate::sync::{EventCount, Exit};
use crate::threadpool::ThreadPool;
use std::sync::Arc;

/// How long the owner looks for news before it sleeps.
const NEWS_SPIN_NS: u64 = 20_000;

/// A run of several.
struct UnderWay<'a> {
    number: usize,
    state: Arc<RunState>,
    attached: Attached<&'a Stop>,
    /// What the gate of closed runs will have reached at its end.
    closed: u64,
    /// This thread was the last one out when it was begun: then the gate is not advanced.
    is_over: bool,
}

impl UnderWay<'_> {
    /// Works in it until it is over, which it says, or until the owner will be told of something.
    fn go_on(&self, pool: Option<&Ref<ThreadPool>>) -> bool {
        let state = &self.state;
        self.is_over || state.closed.reached() >= self.closed || state.work_until_asleep(pool) == Exit::Closed
    }

    fn end(self) -> Result<Arc<RunState>, (Arc<RunState>, Error)> {
        let UnderWay { state, attached, .. } = self;
        state.calls.returns.wake();
        *state.calls.together.lock() = None;
        // Before the result is taken: a stop is part of it or does nothing; else it would hit the state's next run.
        drop(attached);
        match state.result() {
            Ok(()) => Ok(state),
            Err(error) => Err((state, error)),
        }
    }
}

/// What is done with a run's tensors once they are bound.
type Then<'a> = &'a dyn Fn(&Bound<'_>) -> Result<()>;

/// What a thread does for `count` runs.
pub(in crate::graph) struct Together<'a> {
    pub count: usize,
    /// Most that are under way at once.
    pub width: usize,
    pub pool: Option<&'a Ref<ThreadPool>>,
    pub orders: Option<Orders>,
    pub outer: Outer<'a>,
    /// Binds run number `i` and hands it on.
    pub with: &'a dyn Fn(usize, Then<'_>) -> Result<()>,
    /// Hears of run number `i` that failed.
    pub failed: &'a dyn Fn(usize, Error),
}

impl Together<'_> {
    /// Makes all of them. Those that fail are told of; after the first no other is begun.
    pub fn run(&self) -> Result<()> {
        let news = Arc::new(EventCount::new());
        let mut under_way = heap::room(self.width, "runs at once")?;
        let (mut next, mut has_failed, mut slice_ns) = (0, false, GRACE_NS);
        loop {
            let seen = news.reached();
            while next < self.count && under_way.len() < self.width && !has_failed {
                match self.begin(next, &news) {
                    Ok(run) => under_way.push(run),
                    Err(error) => {
                        has_failed = true;
                        (self.failed)(next, error);
                    }
                }
                next += 1;
            }
            let mut at = 0;
            let mut ended = false;
            while at < under_way.len() {
                if under_way[at].go_on(self.pool) {
                    let run: UnderWay<'_> = under_way.swap_remove(at);
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
            if under_way.is_empty() && (next == self.count || has_failed) {
                return Ok(());
            }
            if ended {
                slice_ns = GRACE_NS;
            } else if !news.wait(seen + 1, NEWS_SPIN_NS, Deadline::after(slice_ns)) {
                // As `RunState::sleep_for_news`, of all that are under way.
                let begun = under_way.iter().map(|run: &UnderWay<'_>| run.state.begin_blocking()).max();
                if begun.is_none_or(|begun| begun == BeginOutcome::Nothing) {
                    slice_ns = (2 * slice_ns).min(LOOK_AGAIN_NS);
                }
            }
        }
    }

    fn begin(&self, number: usize, news: &Arc<EventCount>) -> Result<UnderWay<'_>> {
        let begun = std::cell::RefCell::new(None);
        (self.with)(number, &|bound| {
            let state = bound.prepared(self.pool, self.orders.as_ref())?;
            *state.calls.together.lock() = Some(Arc::clone(news));
            let attached = self.outer.attach(&state);
            let closed = state.closed.reached() + 1;
            let is_over = state.open_and_work(self.pool) == Exit::Closed;
            begun.replace(Some(UnderWay { number, state, attached, closed, is_over }));
            Ok(())
        })?;
        begun.into_inner().ok_or_else(|| Error::internal("a run that was not bound"))
    }

    fn end(&self, run: UnderWay<'_>) -> Result<()> {
        let number = run.number;
        let (state, result) = match run.end() {
            Ok(state) => (state, Ok(())),
            Err((state, error)) => (state, Err(error)),
        };
        (self.with)(number, &|bound| bound.ended(&state, result.clone()))
    }
}
