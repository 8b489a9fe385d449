//! From opening a step to its result; and the handle of an asynchronous run.

use super::step::Step;
use super::worker::{Role, Worker};
use crate::base::object::tag;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Kind, Object, Ref, Result, live};
use crate::stream::{Queue, Work, until};
use crate::sync::{Exit, Gate, ambient};
use crate::threadpool::ThreadPool;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::Poll;

/// How long the caller looks for the end of a run before it sleeps: what it waits for is running.
const JOIN_SPIN_NS: u64 = 20_000;
/// Every how many runs the nodes are measured.
const MEASURE_EVERY: u64 = 64;

/// Values of `Step::phase`.
const BOUND: u32 = 0;
const RUNNING: u32 = 1;
const CLOSED: u32 = 2;

impl Step {
    /// Runs the program in this thread with helpers from the pool, and returns when it is done.
    pub(super) fn run_here(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        let closed = self.closed.reached() + 1;
        if self.open_and_work(pool) == Exit::Open {
            self.closed.wait(closed, JOIN_SPIN_NS, Deadline::NEVER);
        }
        self.finish()
    }

    /// Opens the run, works in it, and leaves it.
    fn open_and_work(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> Exit {
        let _frame = ambient::enter(ambient::Work::Run(self.id));
        let layout = &self.layout;
        let run = layout.runs.fetch_add(1, Relaxed);
        let measure = run == 0 || run % MEASURE_EVERY == 0;
        let width = pool.map_or(0, |pool| self.helpers_worth(pool));
        // ORDERING: Relaxed; published to helpers by `open`.
        self.width.store(width as u32, Relaxed);
        self.asked.store(0, Relaxed);
        self.ask_above_ns.store(layout.hop_ns, Relaxed);
        let generation = self.tokens.open(layout.len() as u32);
        let role = Role::of_caller(pool);
        match (width > 0, measure) {
            (false, false) => Worker::<false, false>::new(self, pool, generation, role).with_roots().work(),
            (false, true) => Worker::<false, true>::new(self, pool, generation, role).with_roots().work(),
            (true, false) => Worker::<true, false>::new(self, pool, generation, role).with_roots().work(),
            (true, true) => Worker::<true, true>::new(self, pool, generation, role).with_roots().work(),
        }
    }

    /// How many helpers this run may ask for: none if all its nodes together are not worth a hop.
    fn helpers_worth(&self, pool: &Object<ThreadPool>) -> usize {
        let limit = self.layout.hop_ns;
        let mut total = 0u64;
        let worth = self.layout.costs.iter().any(|cost| {
            total += u64::from(cost.load(Relaxed));
            total > limit
        });
        if !worth || self.layout.len() < 2 || !pool.may_nest() {
            return 0;
        }
        pool.idle_threads().min(self.workers().saturating_sub(1))
    }

    /// By a helper that was the last one out.
    pub(super) fn close(self: &Arc<Self>) {
        match self.waiter.take() {
            Some(queue) => {
                // ORDERING: Release pairs with the Acquire in `poll`.
                self.phase.store(CLOSED, Release);
                queue.resume();
            }
            None => self.closed.advance(1),
        }
    }

    /// After closing: collects the result, lets go of what the run held, and gives the step back.
    fn finish(self: &Arc<Self>) -> Result<()> {
        let error = match self.stop.load(Acquire) {
            0 => None,
            _ => self.error.lock().unwrap_or_else(|e| e.into_inner()).take(),
        };
        self.end(error)
    }

    /// Ends a run that is closed or was never opened.
    fn end(self: &Arc<Self>, error: Option<Error>) -> Result<()> {
        drop(self.pool.take());
        if let Some(mut tensors) = self.tensors.take() {
            tensors.clear();
            let _ = self.tensors.put(tensors);
        }
        let handle = self.handle.take();
        if let Some(handle) = &handle {
            handle.detach();
        }
        self.stop.store(0, Relaxed);
        self.phase.store(BOUND, Relaxed);
        // From here on the step is another run's.
        if let Some(program) = self.program.take() {
            program.give_step(Arc::clone(self));
        }
        match handle {
            // The error of a started run is its handle's; the stream goes on.
            Some(handle) => {
                handle.complete(error);
                Ok(())
            }
            None => error.map_or(Ok(()), Err),
        }
    }
}

/// A run as a piece of a stream's work.
impl Work for Step {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        match self.phase.load(Acquire) {
            RUNNING => return Poll::Pending,
            CLOSED => return Poll::Ready(self.finish()),
            _ => {}
        }
        let pool = self.pool.take();
        let pool = pool.as_ref().or(queue.pool());
        if queue.is_synchronous() {
            return Poll::Ready(self.run_here(pool));
        }
        self.phase.store(RUNNING, Relaxed);
        let _ = self.waiter.put(Arc::clone(queue));
        match self.open_and_work(pool) {
            Exit::Open => Poll::Pending,
            Exit::Closed => {
                drop(self.waiter.take());
                Poll::Ready(self.finish())
            }
        }
    }

    fn skip(self: Arc<Self>, cause: &Error) {
        // Only a handle hears of it: the stream has its own error.
        let _ = self.end(Some(Error::new(
            Code::Aborted,
            format!("the run did not begin, because its stream had failed: {}", cause.message()),
        )));
    }
}

/// One asynchronous run, as its starter sees it.
pub struct Run {
    queue: Arc<Queue>,
    /// The step while the run is bound to it; taken before the step is another run's, so that a cancel cannot hit
    /// that one.
    step: Mutex<Option<Weak<Step>>>,
    cancelled: AtomicBool,
    done: Gate,
    error: OnceLock<Error>,
}

impl Kind for Run {
    const TAG: u32 = tag::RUN;
    const NAME: &'static str = "run";
    const COUNTER: live::Counter = live::Counter::Runs;
}

impl Run {
    pub(super) fn create(queue: &Arc<Queue>, step: &Arc<Step>) -> Ref<Run> {
        Object::shared(Run {
            queue: Arc::clone(queue),
            step: Mutex::new(Some(Arc::downgrade(step))),
            cancelled: AtomicBool::new(false),
            done: Gate::new(),
            error: OnceLock::new(),
        })
    }

    pub fn is_done(&self) -> bool {
        self.done.reached() > 0
    }

    /// How it ended, once it is done.
    pub fn error(&self) -> Option<Error> {
        if self.is_done() { self.error.get().cloned() } else { None }
    }

    pub fn wait(&self, timeout_ns: u64) -> Result<()> {
        let sleep = |spin_ns, deadline| self.done.wait(1, spin_ns, deadline);
        let (spin_ns, deadline) = (self.queue.spin_ns(), Deadline::after(timeout_ns));
        until("a run", Some(&self.queue), &|| self.is_done(), &sleep, spin_ns, deadline)?;
        self.error().map_or(Ok(()), Err)
    }

    pub fn cancel(&self) {
        let step = self.step.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(step) = step.as_ref().and_then(Weak::upgrade) {
            self.cancelled.store(true, Relaxed);
            step.stop();
        }
    }

    /// The step is about to serve another run.
    fn detach(&self) {
        drop(self.step.lock().unwrap_or_else(|e| e.into_inner()).take());
    }

    fn complete(&self, error: Option<Error>) {
        let cancelled = self.cancelled.load(Relaxed).then(|| Error::new(Code::Cancelled, "the run was cancelled"));
        if let Some(error) = error.or(cancelled) {
            let _ = self.error.set(error);
        }
        self.done.advance(1);
    }
}
