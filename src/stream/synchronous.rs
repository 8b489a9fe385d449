//! A queue whose items run in the thread that submits them, one at a time.
#![forbid(unsafe_code)]

use super::drain::{DRAINING, run_later};
use super::queue::{Items, Queue, QueueItem};
use super::traced::TracedItem;
use super::wait;
use crate::base::time::Deadline;
use crate::base::{Error, Result};
use crate::sync::{DrainGuard, ambient};
use std::sync::Arc;
use std::task::Poll;

impl Queue {
    /// Runs `work` as the next item of a synchronous queue, in this thread, once no other thread runs one.
    pub fn run(self: &Arc<Self>, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.now(|| self.named(work))
    }

    /// Runs an item of a synchronous queue.
    pub(super) fn run_now(self: &Arc<Self>, op: QueueItem) -> Result<()> {
        let traced = self.trace_item(&op);
        let working = traced.as_ref().map(TracedItem::work);
        let result = self.now(move || match &op {
            QueueItem::Record(mark) => {
                mark.reach(None);
                Ok(())
            }
            QueueItem::Wait(mark) => wait::until_reached(mark, self.spin_ns(), Deadline::NEVER)
                .and_then(|()| mark.failure().map_or(Ok(()), |origin| Err(self.derived(origin)))),
            QueueItem::Work(work) => match self.poll(Arc::clone(work)) {
                Poll::Ready(result) => result,
                Poll::Pending => Err(Error::internal("work on a synchronous stream is pending")),
            },
            QueueItem::Task(task) => {
                task.adopt();
                self.named(|| task.run())
            }
        });
        drop(working);
        if let Some(traced) = traced {
            traced.end(result.is_err(), false);
        }
        result
    }

    /// Runs and drops an item in this thread, once no other thread runs one.
    #[inline]
    fn now(self: &Arc<Self>, item: impl FnOnce() -> Result<()>) -> Result<()> {
        if ambient::within(ambient::ActiveWork::Queue(self.id())) {
            return Err(Error::precondition(format!(
                "stream '{}' is synchronous and is used from inside its own work",
                self.name()
            )));
        }
        let guard = self.hold()?;
        self.count_submitted();
        let outermost = !DRAINING.with(|draining| draining.replace(true));
        let frame = ambient::enter(ambient::ActiveWork::Queue(self.id()));
        let result = item();
        drop(frame);
        drop(guard);
        self.complete_one();
        if outermost {
            // Queues that the item resumed and no pool took: not on top of it, since they may wait for this one.
            run_later();
            DRAINING.with(|draining| draining.set(false));
        }
        result
    }

    /// Takes a synchronous queue's drain lock; waits while another thread holds it, where that cannot deadlock unseen.
    fn hold(self: &Arc<Self>) -> Result<DrainGuard<'_, Items>> {
        loop {
            let seen = self.completed();
            if let Some(guard) = self.try_hold() {
                return Ok(guard);
            }
            let next = |spin_ns, deadline| self.wait_completed(seen + 1, spin_ns, deadline);
            let must_not_sleep = ambient::within_device() || ambient::within(ambient::ActiveWork::Unknown);
            if !must_not_sleep && ambient::depth() > 0 {
                run_later();
                wait::nested("other work", self, &next, self.spin_ns(), Deadline::NEVER)?;
                continue;
            }
            let limit = if must_not_sleep { Deadline::after(self.spin_ns()) } else { Deadline::NEVER };
            if !next(self.spin_ns(), limit) {
                return Err(Error::precondition(format!(
                    "synchronous stream '{}' is in use by another thread, and waiting for it here would block a \
                     worker of a thread pool",
                    self.name()
                )));
            }
        }
    }
}
