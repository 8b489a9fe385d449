//! Kernels that complete later, in a run.
//!
//! # Life of such a node
//!
//! | state      | held by                                | next                                                  |
//! |------------|----------------------------------------|-------------------------------------------------------|
//! | ready      | a worker, on its list                  | started by `begin_call`                               |
//! | started    | the host: its start runs or returned   | done, by `weir_completion_done` in any thread         |
//! | done early | the worker that started it             | the worker continues behind it: nothing nests         |
//! | done later | the state's `returns`, through `links` | taken up by a worker, which makes the node's arrivals |
//! | round done | as done early or later                 | continued, as a ready node, and then started again    |
//!
//! A node that is done early was completed before its start returned; the worker continues in its own loop. `returns`
//! is a stack. A round that is done has left a rest of the call.
//!
//! `sync::Rendezvous` decides between early and later. A started node has not made its arrivals, so `RunLatch` has ends
//! left: the run stays open, and a thread that comes back with the node can enter it, although no worker may be inside.
//! The completing thread enters only to hand over. It runs no node: it may be a thread of some driver's, with a small
//! stack and other work.
//!
//! # How a node is taken up
//!
//! Every worker looks at `returns` when it has nothing else. The last resort is the run's *owner*, which relies on no
//! other thread:
//!
//! - the caller of a run that blocks (`see_to_the_end`): out of work it announces in `returns` that it sleeps, sleeps
//!   on `news`, and works again when told;
//! - the stream of an asynchronous run: the queued run announces the same and answers Pending; being told is
//!   `Queue::resume`, which polls the queued run again, on the pool, on the stream's own thread, or, if the pool
//!   refuses, as for any stream, in the thread that resumes;
//! - the outer run, if this one is a node of it (`inner`): the node comes back to that run, and the worker that takes
//!   it up continues here.
//!
//! If the owner is at work, it may be in a long node. So the completing thread then asks the pool for one more helper,
//! if the run may have one; nothing depends on that helper.
//!
//! An owner that is told twice, or told of a run that is over, finds nothing and does no harm: `news` and `resume` are
//! hints to look.
//!
//! # Kernels that may block
//!
//! They run as single jobs of a pool of their own, which the compile options give, and are to the run like kernels that
//! complete later: they keep no worker of the run's pool, nor its caller. Only a thread that would sleep for the run's
//! end makes a call that its pool does not begin (`begin_blocking`). A pool that takes no single jobs is refused when
//! it is given. Kernels with a thread of their own (`Kernel::launcher`) run likewise; if that thread takes no more
//! work, the thread that would start one makes the call.
//!
//! # Ends
//!
//! A failure or a cancel begins no further node; started nodes are waited for. So the tensors, the context and the
//! scratch memory of a started node stay as they are until it is done, whatever happens to the run.

use super::role::Role;
use super::visit::OF_SLEEPER;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Ref, Result};
use crate::graph::carry::calls::{CallChain, NodeCall, OnChain};
use crate::graph::carry::state::RunState;
use crate::kernel::{BeginOutcome, Caller, Completion, Kernel, Rest};
use crate::stream::{GRACE_NS, Joinable, Queue};
use crate::sync::{Exit, RunEntry, ambient};
use crate::threadpool::{self, Job, ThreadPool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// How long an owner spins for news before it sleeps.
const NEWS_SPIN_NS: u64 = 20_000;
/// The longest that an owner sleeps before it checks whether a kernel that may block was never begun.
pub(in crate::graph) const LOOK_AGAIN_NS: u64 = 1_000_000_000;

/// A panic as an error.
fn caught(f: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let error = Error::from_panic(&*payload);
        std::mem::forget(payload);
        Err(error)
    })
}

impl RunState {
    /// Whether nodes may complete later.
    #[inline]
    pub(in crate::graph) fn has_calls(&self) -> bool {
        !self.plan().calls.is_empty()
    }

    fn kernel_of(&self, call: u32) -> &Arc<dyn Kernel> {
        self.plan().kernel(self.plan().calls[call as usize].0)
    }

    /// Whether a round of this call is over, and its rest can continue.
    pub(in crate::graph) fn is_under_way(&self, index: u32) -> bool {
        self.calls.list[index as usize].pending.has_rest()
    }

    /// Starts a node that completes later, or continues its rest. True if it is done already.
    pub(in crate::graph) fn call(self: &Arc<Self>, index: u32, pool: Option<&Ref<ThreadPool>>) -> bool {
        let NodeCall { pending, context, .. } = &self.calls.list[index as usize];
        let mut over = match pending.rest() {
            Some(rest) => self.go_on_with_call(index, &rest, pool),
            None => self.begin_call(index, pool),
        };
        while over && let Some(rest) = pending.rest() {
            over = self.go_on_with_call(index, &rest, pool);
        }
        if over {
            drop(context.set_pool(None));
        }
        over
    }

    fn go_on_with_call(self: &Arc<Self>, index: u32, rest: &Arc<dyn Rest>, pool: Option<&Ref<ThreadPool>>) -> bool {
        let NodeCall { pending, context, .. } = &self.calls.list[index as usize];
        drop(context.set_pool(pool));
        let done = pending.begin(Arc::clone(self) as Arc<dyn Caller>, index);
        // SAFETY: the round before is over, and its use of the outputs.
        let outputs = unsafe { context.outputs() };
        self.settle(index, done, caught(|| Arc::clone(rest).go_on(context, outputs, done)));
        pending.returned()
    }

    /// A start that fails is a call that is over.
    fn settle(&self, index: u32, done: Completion, started: Result<()>) {
        if let Err(error) = started
            && done.done(Err(error.clone())).is_err()
        {
            // The kernel reports both: not begun, and done. Then the call ends with its completion, and has failed.
            self.call_failed(index, &error);
        }
    }

    fn call_failed(&self, index: u32, error: &Error) {
        self.calls.list[index as usize].has_failed.store(true, Relaxed);
        self.fail_at(self.plan().calls[index as usize].1, error);
    }

    /// Whether a call that is over has failed.
    pub(in crate::graph) fn has_failed(&self, index: u32) -> bool {
        self.calls.list[index as usize].has_failed.load(Relaxed)
    }

    /// True if a round is over.
    fn begin_call(self: &Arc<Self>, index: u32, pool: Option<&Ref<ThreadPool>>) -> bool {
        let (kernel, _) = self.plan().calls[index as usize];
        let NodeCall { pending, context, chain, has_failed, began_ns } = &self.calls.list[index as usize];
        has_failed.store(false, Relaxed);
        began_ns.store(if self.measuring.load(Relaxed) { now_ns() } else { 0 }, Relaxed);
        let node = &self.plan().kernels[kernel as usize];
        let args = self.args[node.inputs()].iter().chain(&self.args[node.outputs()]);
        // SAFETY: no call of this node is under way, and the arguments are the run's, of the same sizes.
        unsafe {
            let views = context.inputs().iter().chain(context.output_views());
            views.zip(args).for_each(|(view, arg)| view.set_data(arg.data()));
        }
        drop(context.set_pool(pool));
        let done = pending.begin(Arc::clone(self) as Arc<dyn Caller>, index);
        let started = match chain {
            Some(chain) => self.send_on(chain, done, pool),
            // SAFETY: the call begins.
            None => caught(|| self.plan().kernel(kernel).start(context, unsafe { context.outputs() }, done)),
        };
        self.settle(index, done, started);
        pending.returned()
    }

    /// Hands a kernel to its own thread, or one that may block to the pool for such kernels. If that refuses, this
    /// thread makes the call, or, if this is a worker that would be blocked, the caller that waits for the run.
    fn send_on(
        self: &Arc<Self>,
        chain: &Arc<CallChain>,
        done: Completion,
        pool: Option<&Ref<ThreadPool>>,
    ) -> Result<()> {
        let launcher = self.kernel_of(chain.call).launcher();
        let Some(chain_pool) = launcher.or(self.plan().blocking_pool.as_ref()) else {
            return Err(Error::internal("no pool for what blocks"));
        };
        chain.since_ns.store(now_ns(), Relaxed);
        let _ = chain.handed.put((Arc::clone(self) as Arc<dyn OnChain>, done.into_number()));
        if chain_pool.spawn(Arc::clone(chain) as Arc<dyn Job>, 0, 0, 0) {
            return Ok(());
        }
        let is_worker = || ambient::within_any_pool() || pool.is_some_and(|pool| pool.in_parallel());
        if launcher.is_none() && self.calls.has_waiter.load(Relaxed) && chain_pool.is_for_all() && is_worker() {
            // The caller finds it there when it has nothing else to do.
            self.calls.news.advance(1);
            return Ok(());
        }
        let Some((_, number)) = chain.handed.take() else { return Ok(()) };
        if launcher.is_none() && is_worker() {
            return Err(Error::new(
                Code::Unavailable,
                "the pool for kernels that block refuses it, and here it would block a worker of a thread pool",
            ));
        }
        self.compute_chained(chain.call, number);
        Ok(())
    }

    /// Begins here a kernel that may block, of this run or a nested one, which its pool has not begun. The calling
    /// thread would only sleep for it. A worker of that pool begins it at once, since it waits instead of doing it.
    /// Other threads begin it after a while: the pool's threads may all wait, perhaps for the calling one.
    pub(in crate::graph) fn begin_blocking(&self) -> BeginOutcome {
        let mut most = BeginOutcome::Nothing;
        if let Some(pool) = &self.plan().blocking_pool {
            for chain in self.calls.list.iter().filter_map(|call| call.chain.as_ref()) {
                let kernel = self.kernel_of(chain.call);
                if kernel.launcher().is_some() || !chain.handed.is_full() {
                    continue;
                }
                let is_own = pool.in_parallel();
                if !is_own && !pool.may_work_here() {
                    continue;
                }
                if !is_own && now_ns() < chain.since_ns.load(Relaxed).saturating_add(GRACE_NS) {
                    most = BeginOutcome::Later;
                } else if chain.begin() {
                    return BeginOutcome::Done;
                }
            }
        }
        most.max(self.calls.stop.begin_here())
    }

    /// Refuses a run that blocks its caller if that would keep a worker of a pool: kernels that complete later may need
    /// that very thread.
    #[inline]
    pub(in crate::graph) fn may_wait_here(&self, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        if self.has_calls() { self.may_wait_for_calls(pool) } else { Ok(()) }
    }

    fn may_wait_for_calls(&self, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        if ambient::within_device() {
            return Err(Error::precondition(format!(
                "program '{}' has kernels that complete later, and waiting for them on a device's own thread would \
                 hold the device up; run it on an asynchronous stream",
                self.plan().name
            )));
        }
        if threadpool::within_any() || pool.is_some_and(|pool| pool.in_parallel()) {
            return Err(Error::precondition(format!(
                "program '{}' has kernels that complete later, and waiting for them here would block a worker of a \
                 thread pool; make it a node of the graph, or run it on an asynchronous stream",
                self.plan().name
            )));
        }
        Ok(())
    }

    /// The owner, after it has left a run that is open: works in it whenever a call completes, until the run is closed.
    /// `closed` is the value that the event count of that name will have reached then.
    pub(in crate::graph) fn see_to_the_end(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>, closed: u64) {
        let calls = &self.calls;
        let mut slice_ns = GRACE_NS;
        loop {
            let seen = calls.news.reached();
            if self.closed.reached() >= closed {
                break;
            }
            if calls.returns.sleep() {
                if self.helpers.goes_away(|| self.shows_work()) {
                    let queue = calls.holds.lock().clone();
                    let share = |asleep| queue.as_ref().map(|queue| queue.share(asleep));
                    let _ = share(Some((Arc::clone(self) as Arc<dyn Joinable>, OF_SLEEPER)));
                    self.sleep_for_news(seen, &mut slice_ns);
                    let _ = share(None);
                }
                self.helpers.is_back();
                calls.returns.wake();
            }
            if self.work_again(pool) == Exit::Closed {
                break;
            }
        }
        calls.returns.wake();
    }

    /// Sleeps until there is more news than was `seen`, or begins a kernel that a pool has not begun. `slice_ns`: how
    /// long it sleeps before it checks that, GRACE_NS at first.
    pub(in crate::graph) fn sleep_for_news(&self, seen: u64, slice_ns: &mut u64) {
        let is_told = self.calls.news.wait(seen + 1, NEWS_SPIN_NS, Deadline::after(*slice_ns));
        if !is_told && self.begin_blocking() == BeginOutcome::Nothing {
            *slice_ns = (2 * *slice_ns).min(LOOK_AGAIN_NS);
        }
    }

    /// The same for an owner that does not sleep: Open if it will be told.
    pub(in crate::graph) fn work_until_asleep(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> Exit {
        self.calls.returns.wake();
        while !self.calls.returns.sleep() {
            if self.work_again(pool) == Exit::Closed {
                return Exit::Closed;
            }
        }
        Exit::Open
    }

    /// The owner comes in again.
    fn work_again(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> Exit {
        let generation = self.latch.generation();
        let is_wanted = self.calls.returns.any() || self.shows_work();
        if !is_wanted || self.latch.enter(generation) == RunEntry::Over {
            return Exit::Open;
        }
        let _frame = ambient::enter(ambient::ActiveWork::Run(self.id));
        let role = Role::of_caller(pool);
        self.work_as(role, pool, generation)
    }

    /// Asks the pool for a helper that takes up completed nodes, if the run may have one more.
    fn ask_for_a_taker(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>, generation: u64) {
        // A worker of the run further down this stack looks when it gets its thread back.
        let Some(pool) = pool.filter(|pool| pool.can_spawn() && !ambient::within(ambient::ActiveWork::Run(self.id)))
        else {
            return;
        };
        if !self.helpers.take_place() {
            return;
        }
        self.bring_one(pool, generation, 0);
    }

    /// Wakes the owner.
    fn tell_the_owner(&self, stream: Option<Arc<Queue>>) {
        match stream {
            Some(queue) => queue.resume(),
            None if self.calls.rounds.tell() => {}
            None => {
                self.calls.news.advance(1);
                self.tell_together();
            }
        }
    }

    /// Wakes an owner of several runs.
    pub(in crate::graph) fn tell_together(&self) {
        if self.has_calls() {
            let event_count = self.calls.together.lock().clone();
            event_count.iter().for_each(|event_count| event_count.advance(1));
        }
    }
}

impl OnChain for RunState {
    fn compute_chained(&self, call: u32, number: usize) {
        let kernel = self.kernel_of(call);
        let Some(done) = Completion::from_number(number) else { return };
        let context = &self.calls.list[call as usize].context;
        // SAFETY: the call begins, which was handed to this thread.
        let outputs = unsafe { context.outputs() };
        if kernel.is_async() {
            let started = caught(|| {
                let _lineage = self.lineage.enter();
                let _frame = ambient::enter(ambient::ActiveWork::Run(self.id));
                kernel.start(context, outputs, done)
            });
            return self.settle(call, done, started);
        }
        let result = caught(|| {
            let _lineage = self.lineage.enter();
            let _frame = ambient::enter(ambient::ActiveWork::Run(self.id));
            kernel.compute(context, outputs)
        });
        // No other thread has this completion.
        let _ = done.done(result);
    }
}

impl Caller for RunState {
    fn ended(&self, index: u32, result: Result<()>) {
        let NodeCall { context, began_ns, .. } = &self.calls.list[index as usize];
        let began_ns = began_ns.load(Relaxed);
        // A round that leaves a rest is a part of the time.
        if began_ns != 0 && !self.is_under_way(index) {
            self.learned().took_elsewhere(index, now_ns().saturating_sub(began_ns));
        }
        let failure = context.take_failure();
        if let Err(error) = failure.map_or(result, Err) {
            self.call_failed(index, &error);
        }
    }

    fn came_back(self: Arc<Self>, index: u32) {
        let node = self.plan().calls[index as usize].1;
        let pool = self.calls.list[index as usize].context.set_pool(None);
        // While this thread is inside, the run stays the one of this call: no other thread closes it.
        let generation = self.latch.generation();
        let inside = self.latch.enter(generation) == RunEntry::Inside;
        let link = |next: Option<u32>| self.links[node as usize].store(next.unwrap_or(u32::MAX), Relaxed);
        // Before the node can be taken up: from then on the run may end.
        let stream = self.calls.stream.lock().clone();
        let is_asleep = self.calls.returns.push(node, link);
        if !is_asleep {
            self.ask_for_a_taker(pool.as_ref(), generation);
        }
        // Leaves before the owner is told: the owner may work on this very stack, where this thread would be one worker
        // too many.
        if inside && self.latch.leave(0) == Exit::Closed {
            self.close();
        }
        if is_asleep {
            self.tell_the_owner(stream);
        }
    }
}
