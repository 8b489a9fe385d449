//! A kernel that completes later, as queue work.
//!
//! The call begins in stream order, and stays first until the host completes it. If that is before its start function
//! has returned, the draining thread continues at once. Else an asynchronous queue is parked, as for an event, and the
//! completing thread resumes it; on a synchronous queue the submitting thread sleeps until then. A worker of a pool may
//! be the very thread that has to complete the call, so there such a call is refused before it begins.
//!
//! A call may take several rounds (`kernel::Completion`): the thread that continues after one begins the next.
//!
//! The completion holds the call, and the call its kernel, tensors, scratch memory and queue. So a stream that is
//! released meanwhile continues, and ends with its work.

use super::kernel::BoundKernel;
use super::tensor::Tensor;
use crate::base::{Error, Ref, Result};
use crate::kernel::{Caller, Completion, Kept, KernelContext, Pending, Scratch, Stop};
use crate::memory::{StreamCache, View};
use crate::stream::{JoinOutcome, Joinable, Queue, QueueWork, asleep};
use crate::sync::{EventCount, Mailbox, Mutex, ambient};
use crate::threadpool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;

/// Dropped when the call ends: the completing thread may hold the call itself for a moment longer.
struct CallResources {
    kernel: Ref<BoundKernel>,
    _tensors: (Vec<Ref<Tensor>>, Vec<Ref<Tensor>>),
}

pub(super) struct LaterCall {
    held: Mailbox<CallResources>,
    pending: Pending,
    context: KernelContext<'static>,
    /// ORDERING: Relaxed; used by the holder of the drain lock.
    begun: AtomicBool,
    failure: Mailbox<Error>,
    /// Advanced when a round is done and its starter no longer waits for it.
    over: EventCount,
    /// The value of `over` that ends the current round. As `begun`.
    awaited: AtomicU64,
    queue: Mailbox<Arc<Queue>>,
    /// The cache of the scratch memory.
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
        let _ = held.put(CallResources { kernel, _tensors: tensors });
        Ok(LaterCall {
            held,
            pending: Pending::new()?,
            // SAFETY: the call keeps the tensors, which were checked for overlap. It begins in stream order, to which
            // the host keeps.
            context: unsafe { KernelContext::kept(kept, scratch) },
            begun: AtomicBool::new(false),
            failure: Mailbox::default(),
            over: EventCount::new(),
            awaited: AtomicU64::new(1),
            queue: Mailbox::default(),
            _lane: lane,
        })
    }

    /// Starts it, or its next round; true if the round is done already.
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
            // The host reported both a failed start and completion: it is over when it completes, and has failed.
            let _ = self.failure.put(error);
        }
        self.pending.returned()
    }

    fn is_over(&self) -> bool {
        self.over.reached() >= self.awaited.load(Relaxed)
    }

    /// Runs the rounds until the call is done, or will be resumed. By the holder of the drain lock.
    fn go_on(self: &Arc<Self>, queue: &Arc<Queue>, mut done: bool) -> Poll<Result<()>> {
        loop {
            if done {
                let Some(rest) = self.pending.rest() else { return self.end() };
                // Still there if the last round was done at once.
                drop(self.queue.take());
                // SAFETY: the round before is over, and so is its use of the outputs.
                let outputs = unsafe { self.context.outputs() };
                done = self.begin(queue, |done| Arc::clone(&rest).go_on(&self.context, outputs, done));
            } else if queue.is_synchronous() {
                let awaited = self.awaited.load(Relaxed);
                queue.share(Some((Arc::clone(self) as Arc<dyn Joinable>, 0)));
                asleep(&|spin_ns, deadline| self.over.wait(awaited, spin_ns, deadline), queue.spin_ns());
                queue.share(None);
                done = true;
            } else {
                return Poll::Pending;
            }
        }
    }

    /// The call is done. By the holder of the drain lock.
    fn end(&self) -> Poll<Result<()>> {
        drop(self.context.set_pool(None));
        // Still there if it was done at once.
        drop(self.queue.take());
        let Some(held) = self.held.take() else { return Poll::Ready(Err(Error::internal("a call without a kernel"))) };
        let named = |error: Error| error.within(format_args!("kernel '{}'", held.kernel.name()));
        Poll::Ready(self.failure.take().map_or(Ok(()), |error| Err(named(error))))
    }
}

/// The thread that has a synchronous queue sleeps until the call is done.
impl Joinable for LaterCall {
    fn join(self: Arc<Self>, _part: u64, _may_work: bool) -> JoinOutcome {
        if self.is_over() { JoinOutcome::Others } else { JoinOutcome::Nobody }
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
                "kernel '{}' completes later, and waiting for it here would block a worker of a thread pool; use an \
                 asynchronous stream",
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

    fn skip(self: Arc<Self>, cause: &Error) {
        if !self.begun.load(Relaxed)
            && let Some(held) = self.held.take()
        {
            held.kernel.not_begun(cause);
        }
    }
}

impl Caller for LaterCall {
    fn ended(&self, _tag: u32, result: Result<()>) {
        if let Err(error) = self.context.take_failure().map_or(result, Err) {
            let _ = self.failure.put(error);
        }
    }

    fn came_back(self: Arc<Self>, _tag: u32) {
        // Taken before the completion is published: from then on the queue may run.
        let queue = self.queue.take();
        self.over.advance(1);
        queue.inspect(Queue::resume);
    }
}
