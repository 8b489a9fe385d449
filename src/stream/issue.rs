//! Issuing the items of a device queue to the device; and the end of such a queue (see `device_queue`).
#![forbid(unsafe_code)]

use super::dedicated_thread::Drainable;
use super::device_queue::Event;
use super::drain::{IssueOutcome, ThreadRole, put_off_others};
use super::queue::{DeviceQueue, Queue, QueueItem};
use crate::base::{Error, Result};
use crate::device::Then;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// A queue that the host released while it captured the stream.
struct AbandonedQueue(Option<Arc<Queue>>);

impl Drop for AbandonedQueue {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.see_off();
        }
    }
}

impl Queue {
    /// Issues an item as far as possible; gives the event that it recorded.
    pub(super) fn issue(
        self: &Arc<Self>,
        device_queue: &DeviceQueue,
        op: &QueueItem,
        role: ThreadRole,
    ) -> IssueOutcome<Result<Option<Event>>> {
        let done = |result: Result<()>| IssueOutcome::Done(result.map(|()| None));
        match (op, self.cause()) {
            (QueueItem::Record(mark), Some(cause)) => {
                put_off_others(|| mark.reach(Some(cause)));
                done(Ok(()))
            }
            (QueueItem::Wait(_), Some(_)) => done(Ok(())),
            (QueueItem::Work(_), _) if device_queue.is_begun() && role == ThreadRole::Issuer => IssueOutcome::ForHost,
            // Work that has begun continues even if the stream fails.
            (QueueItem::Work(work), _) if device_queue.is_begun() => {
                self.poll(Arc::clone(work)).map(|result| result.map(|()| None)).into()
            }
            (QueueItem::Work(work), Some(cause)) => {
                Arc::clone(work).skip(&cause);
                done(Ok(()))
            }
            (QueueItem::Task(task), Some(_)) => {
                task.adopt();
                done(Ok(()))
            }
            (QueueItem::Record(mark), None) => {
                let recorded = self.insist(|| device_queue.record_mark(mark.has_timing()));
                put_off_others(|| match &recorded {
                    Ok(event) => mark.issue(device_queue.device(), Arc::clone(event), self.account().waiting()),
                    Err(error) => mark.reach(Some(self.late(error.clone()))),
                });
                IssueOutcome::Done(recorded.map(Some).map_err(|error| self.late(error)))
            }
            (QueueItem::Wait(mark), None) => {
                let wait = |event| done(device_queue.stream().wait(event).map_err(|error| self.late(error)));
                if let Some(event) = mark.event_on(device_queue.device()) {
                    return wait(event);
                }
                if !mark.is_reached() && mark.subscribe(self) {
                    self.set_parked_on(Arc::downgrade(mark));
                    return IssueOutcome::Pending;
                }
                self.set_parked_on(Weak::new());
                if let Some(event) = mark.event_on(device_queue.device()) {
                    return wait(event);
                }
                done(mark.failure().map_or(Ok(()), |origin| Err(self.derived(origin))))
            }
            (QueueItem::Work(work), None) if work.is_hosts() => match self.may_begin(device_queue, role) {
                Ok(None) => self.poll(Arc::clone(work)).map(|result| result.map(|()| None)).into(),
                Ok(Some(not_yet)) => not_yet,
                Err(error) => {
                    Arc::clone(work).skip(&error);
                    done(Err(self.late(error)))
                }
            },
            (QueueItem::Work(work), None) => self.poll(Arc::clone(work)).map(|result| result.map(|()| None)).into(),
            (QueueItem::Task(task), None) => match self.may_begin(device_queue, role) {
                Ok(Some(not_yet)) => not_yet,
                Ok(None) => {
                    task.adopt();
                    done(self.named(|| task.run()))
                }
                Err(error) => {
                    task.adopt();
                    done(Err(self.late(error)))
                }
            },
        }
    }

    /// The first item was issued, or failed to be. Without `op` it has nothing to release.
    pub(super) fn issued(&self, device_queue: &DeviceQueue, op: Option<QueueItem>, event: Result<Option<Event>>) {
        device_queue.leave_host();
        let may_join = match &op {
            Some(QueueItem::Wait(_)) => true,
            Some(QueueItem::Work(work)) => work.may_join_capture(),
            _ => false,
        };
        let event = event.unwrap_or_else(|error| {
            self.fail(error);
            None
        });
        if let Err(error) = device_queue.note(op, event) {
            self.fail_late(error);
        }
        if may_join && matches!(device_queue.is_captured(), Ok(true)) {
            device_queue.joined().store(device_queue.issued(), Relaxed);
            self.has_joined(device_queue);
        }
        if device_queue.is_crowded() {
            self.retire(device_queue);
        }
    }

    /// A device failure, with the stream's name.
    pub(super) fn late(&self, error: Error) -> Error {
        error.within(format_args!("stream '{}'", self.name()))
    }

    pub(super) fn fail_late(&self, error: Error) {
        self.fail(self.late(error));
    }

    /// The first item is a host function or run: `None` once the device has reached it and this role may run it.
    fn may_begin<T>(self: &Arc<Self>, device_queue: &DeviceQueue, role: ThreadRole) -> Result<Option<IssueOutcome<T>>> {
        if !device_queue.has_got_to_host(|| Arc::clone(self) as Arc<dyn Drainable>, role == ThreadRole::Host)? {
            return Ok(Some(IssueOutcome::Pending));
        }
        if role == ThreadRole::Issuer {
            return Ok(Some(IssueOutcome::ForHost));
        }
        device_queue.begin();
        Ok(None)
    }

    /// The host releases its queue: the work in flight holds it until done, so that nothing in use is freed.
    pub fn see_off(self: &Arc<Self>) {
        let Some(device_queue) = self.device_queue() else { return };
        device_queue.abandon();
        let target = self.submitted();
        if self.look(device_queue, target) {
            return;
        }
        let queue = Arc::clone(self);
        if matches!(device_queue.is_captured(), Ok(true)) {
            // The device cannot be queried until the host's capture ends, which keeps the queue until then.
            return device_queue.stream().put_aside(Box::new(AbandonedQueue(Some(queue))));
        }
        // If it is not issued yet, the event that will resume it holds it until then, and comes back here.
        if let (Some(event), Some(accelerator)) = (device_queue.fence_for(target), device_queue.device().accelerator())
        {
            let then = move || {
                let _ = queue.device_queue().map(|device_queue| queue.look(device_queue, target));
            };
            accelerator.when_reached(&event, Then::once(then));
        } else if device_queue.issued() >= target {
            // The device refuses to tell: the queue holds itself until somebody who waits for all of it knows more.
            device_queue.keep(queue);
            if self.look(device_queue, target) {
                device_queue.release_kept();
            }
        }
    }
}
