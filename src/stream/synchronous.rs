//! A queue whose items run in the thread that submits them, one at a time.
#![forbid(unsafe_code)]

use super::cycle::WaitTarget;
use super::drain::before_others;
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
        self.now(|| self.hold(), || self.named(work))
    }

    /// Submits to a synchronous queue what needs a permit besides. No thread that has one of the two waits for the
    /// other: while the queue is busy, the permit is given back. `acquire` may wait for it.
    pub fn submit_with<T>(self: &Arc<Self>, op: QueueItem, acquire: &mut dyn FnMut() -> Result<T>) -> Result<()> {
        let mut permit = None;
        self.run_held(op, || {
            loop {
                let seen = self.completed();
                permit = Some(acquire()?);
                if let Some(guard) = self.try_hold() {
                    return Ok(guard);
                }
                permit = None;
                self.wait_for_turn(seen)?;
            }
        })
    }

    /// Runs an item of a synchronous queue.
    pub(super) fn run_now(self: &Arc<Self>, op: QueueItem) -> Result<()> {
        self.run_held(op, || self.hold())
    }

    fn run_held<'a>(
        self: &'a Arc<Self>,
        op: QueueItem,
        hold: impl FnOnce() -> Result<DrainGuard<'a, Items>>,
    ) -> Result<()> {
        let traced = self.trace_item(&op);
        let working = traced.as_ref().map(TracedItem::work);
        let result = self.now(hold, move || match &op {
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

    /// Runs and drops an item in this thread, once it has the drain lock.
    #[inline]
    fn now<'a>(
        self: &'a Arc<Self>,
        hold: impl FnOnce() -> Result<DrainGuard<'a, Items>>,
        item: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if ambient::within(ambient::ActiveWork::Queue(self.id())) {
            return Err(Error::precondition(format!(
                "stream '{}' is synchronous and is used from inside its own work",
                self.name()
            )));
        }
        let guard = hold()?;
        self.count_submitted();
        // Queues that the item resumed and no pool took: not on top of it, since they may wait for this one.
        before_others(|| {
            let frame = ambient::enter(ambient::ActiveWork::Queue(self.id()));
            let result = item();
            drop(frame);
            drop(guard);
            self.complete_one();
            result
        })
    }

    /// Takes a synchronous queue's drain lock; waits while another thread holds it, where that cannot deadlock unseen.
    fn hold(self: &Arc<Self>) -> Result<DrainGuard<'_, Items>> {
        loop {
            let seen = self.completed();
            if let Some(guard) = self.try_hold() {
                return Ok(guard);
            }
            self.wait_for_turn(seen)?;
        }
    }

    /// Waits until an item behind the first `seen` is over.
    fn wait_for_turn(self: &Arc<Self>, seen: u64) -> Result<()> {
        let done = || self.completed() > seen;
        let sleep = |spin_ns, deadline| Ok(self.wait_completed(seen + 1, spin_ns, deadline));
        let wait = wait::Wait {
            what: "other work",
            done: &done,
            target: WaitTarget::Items(seen + 1),
            on_device: &|| false,
            sleep: &sleep,
            spin_ns: self.spin_ns(),
        };
        wait::until(&wait, Some(self), Deadline::NEVER)
    }
}
