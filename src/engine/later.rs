//! A kernel that completes later, as a piece of a queue's work.
//!
//! The call begins when its turn comes, and stays in front until the host says that it is done. If that is before its
//! start function has returned, the thread that drains the queue goes on at once. Else an asynchronous queue is parked,
//! as it is for an event, and whoever completes the call resumes it; on a synchronous queue the submitting thread
//! sleeps until then. It may be the very thread that has to complete the call if it is a worker of a pool, so there
//! such a call is refused before it begins.
//!
//! A call may be over in rounds (`kernel::Completion`): then whoever goes on behind one begins the next.
//!
//! The completion holds the call, and the call its kernel, tensors, scratch memory and queue. So a stream that is
//! released meanwhile goes on, and ends when its work has.

use super::kernel::BoundKernel;
use super::tensor::Tensor;
use crate::base::{Error, Ref, Result};
use crate::kernel::{Caller, Completion, Kept, KernelContext, Pending, Scratch, Stop};
use crate::memory::{StreamCache, View};
use crate::stream::{Queue, QueueWork, asleep};
use crate::sync::{EventCount, Mailbox, Mutex, ambient};
use crate::threadpool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;

/// What is let go of when the call ends: the thread that completed it may hold the call for a moment longer.
struct Held {
    kernel: Ref<BoundKernel>,
    _tensors: (Vec<Ref<Tensor>>, Vec<Ref<Tensor>>),
}

pub(super) struct LaterCall {
    held: Mailbox<Held>,
    pending: Pending,
    context: KernelContext<'static>,
    /// ORDERING: Relaxed; by whoever has the queue's turn.
    begun: AtomicBool,
    failure: Mailbox<Error>,
    /// Advanced when a round is done and its starter has gone on to other things.
    over: EventCount,
    /// What the gate will have reached when the round is over that is under way. As `begun`.
    awaited: AtomicU64,
    queue: Mailbox<Arc<Queue>>,
    /// The scratch memory is of this lane.
    _lane: Arc<StreamCache>,
}

impl LaterCall {
    pub fn new(
        kernel: Ref<BoundKernel>,
        tensors: (Vec<Ref<Tensor>>, Vec<Ref<Tensor>>),
        scratch: Scratch,
        lane: Arc<StreamCache>,
    ) -> Result<LaterCall> {
        let (inputs, outputs) = &tensors;
        let args: Arc<[View]> = inputs.iter().chain(outputs).map(|tensor| tensor.view().clone()).collect();
        let bounds = [0, inputs.len(), args.len()];
        let kept = Kept { args, bounds, pool: Mutex::new(None), stop: Arc::new(Stop::default()), frame: None };
        let held = Mailbox::default();
        let _ = held.put(Held { kernel, _tensors: tensors });
        Ok(LaterCall {
            held,
            pending: Pending::new()?,
            // SAFETY: of tensors that the call keeps, and that were compared. It is begun in its turn, and the host
            // keeps to the order of its work.
            context: unsafe { KernelContext::kept(kept, scratch) },
            begun: AtomicBool::new(false),
            failure: Mailbox::default(),
            over: EventCount::new(),
            awaited: AtomicU64::new(1),
            queue: Mailbox::default(),
            _lane: lane,
        })
    }

    /// Starts it, or goes on with what a round has left; true if the round is done already.
    fn begin(self: &Arc<Self>, queue: &Arc<Queue>, start: impl FnOnce(Completion) -> Result<()>) -> bool {
        drop(self.context.set_pool(queue.pool()));
        if !queue.is_synchronous() {
            let _ = self.queue.put(Arc::clone(queue));
        }
        self.awaited.store(self.over.reached() + 1, Relaxed);
        let done = self.pending.begin(Arc::clone(self) as Arc<dyn Caller>, 0);
        let started = catch_unwind(AssertUnwindSafe(|| start(done))).unwrap_or_else(|payload| {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            Err(error)
        });
        if let Err(error) = started
            && done.done(Err(error.clone())).is_err()
        {
            // It says both: not begun, and done. Then it is over when that call is, and has failed.
            let _ = self.failure.put(error);
        }
        self.pending.returned()
    }

    fn is_over(&self) -> bool {
        self.over.reached() >= self.awaited.load(Relaxed)
    }

    /// Goes on behind a round that may be done, until the call is, or is to come back. This thread has the queue's
    /// turn.
    fn go_on(self: &Arc<Self>, queue: &Arc<Queue>, mut done: bool) -> Poll<Result<()>> {
        loop {
            if done {
                let Some(rest) = self.pending.rest() else { return self.end() };
                // Still there if the last round was done at once.
                drop(self.queue.take());
                // SAFETY: the round before is over, and what it did with the outputs.
                let outputs = unsafe { self.context.outputs() };
                done = self.begin(queue, |done| Arc::clone(&rest).go_on(&self.context, outputs, done));
            } else if queue.is_synchronous() {
                let awaited = self.awaited.load(Relaxed);
                asleep(&|spin_ns, deadline| self.over.wait(awaited, spin_ns, deadline), queue.spin_ns());
                done = true;
            } else {
                return Poll::Pending;
            }
        }
    }

    /// The call is done, and this thread has the queue's turn.
    fn end(&self) -> Poll<Result<()>> {
        drop(self.context.set_pool(None));
        // Still there if it was done at once.
        drop(self.queue.take());
        let Some(held) = self.held.take() else { return Poll::Ready(Err(Error::internal("a call without a kernel"))) };
        let named = |error: Error| error.within(format_args!("kernel '{}'", held.kernel.name()));
        Poll::Ready(self.failure.take().map_or(Ok(()), |error| Err(named(error))))
    }
}

impl QueueWork for LaterCall {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        if self.begun.load(Relaxed) {
            return if self.is_over() { self.go_on(queue, true) } else { Poll::Pending };
        }
        let Some(held) = self.held.take() else { return self.end() };
        if queue.is_synchronous() && (ambient::within_device() || threadpool::within_any()) {
            return Poll::Ready(Err(Error::precondition(format!(
                "kernel '{}' completes later, and waiting for it here would block a worker of a thread pool; use an asynchronous stream",
                held.kernel.name()
            ))));
        }
        self.begun.store(true, Relaxed);
        // SAFETY: the call begins.
        let outputs = unsafe { self.context.outputs() };
        let done = self.begin(queue, |done| held.kernel.kernel().start(&self.context, outputs, done));
        let _ = self.held.put(held);
        self.go_on(queue, done)
    }
}

impl Caller for LaterCall {
    fn ended(&self, _tag: u32, result: Result<()>) {
        if let Err(error) = self.context.take_failure().map_or(result, Err) {
            let _ = self.failure.put(error);
        }
    }

    fn came_back(self: Arc<Self>, _tag: u32) {
        // Before the end is told: from then on the queue is at work.
        let queue = self.queue.take();
        self.over.advance(1);
        queue.inspect(Queue::resume);
    }
}
