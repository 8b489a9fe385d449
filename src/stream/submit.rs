//! Submission. An item goes to a device at once, without the inbox, if no item is ahead of it; on a stream that the
//! host captures it becomes part of the capture.
#![forbid(unsafe_code)]

use super::drain::ThreadRole;
use super::queue::{DeviceQueue, Items, Mode, Queue, QueueItem, QueueWork};
use crate::base::{Error, Result};
use crate::sync::{DrainGuard, ambient};
use std::sync::Arc;
use std::time::Duration;

/// How often a capture looks whether another thread still drains: at once, then after naps. A count of naps, not a
/// time: a process that stands still, with its machine or for a debugger, does not become impatient by that.
const LOOKS: u32 = 100;
const NAPS: u32 = 1000;
const NAP: Duration = Duration::from_millis(1);

/// The host's capture holds this.
struct CapturedWork(Option<Arc<dyn QueueWork>>);

impl Drop for CapturedWork {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work.over(true);
        }
    }
}

impl Queue {
    /// Adds an item. On a synchronous queue it runs now, and its error comes back; on an asynchronous one nothing
    /// can fail here, unless the host captures the device's stream.
    pub fn submit(self: &Arc<Self>, op: QueueItem) -> Result<()> {
        self.submit_as(op, &[])
    }

    /// As `submit`. Device work that may be resubmitted has a key, unique while it lives. As long as this submission is
    /// in flight, `submit_again` suffices for later ones.
    pub fn submit_as(self: &Arc<Self>, op: QueueItem, key: &[usize]) -> Result<()> {
        if self.is_synchronous() {
            return self.run_now(op);
        }
        if let Some(device_queue) = self.device_queue()
            && device_queue.is_captured()?
        {
            return self.capture(device_queue, op);
        }
        if let (Some(device_queue), QueueItem::Wait(mark)) = (self.device_queue(), &op)
            && mark.is_captured()
        {
            // The stream joins the capture: look now, since nothing more can be learned until that ends.
            self.look(device_queue, self.submitted());
        }
        let number = self.count_submitted();
        self.trace_submit(number);
        let op = match self.device_queue() {
            Some(device_queue) => match self.issue_now(device_queue, op, key) {
                None => return Ok(()),
                Some(op) => op,
            },
            None => op,
        };
        self.push(op);
        if self.drain_lock().call() {
            match self.mode() {
                // The submitting thread issues.
                Mode::Device(_) => _ = self.drain_own(ThreadRole::Issuer, number, &|| false),
                _ => self.call(),
            }
        } else if let Some(device_queue) = self.device_queue() {
            self.relieve(device_queue, number);
        }
        Ok(())
    }

    /// Issues an item to the device in this thread, past the inbox, if no item is ahead of it. Gives it back if not.
    pub(super) fn issue_now(
        self: &Arc<Self>,
        device_queue: &DeviceQueue,
        op: QueueItem,
        key: &[usize],
    ) -> Option<QueueItem> {
        let QueueItem::Work(work) = &op else { return Some(op) };
        if !self.has_no_news() {
            return Some(op);
        }
        let Some(mut guard) = self.drain_lock().hold() else { return Some(op) };
        // Items that others push from here on come after it, which is fine: they have not waited for this call.
        if !guard.is_empty() || !self.has_no_news() || self.cause().is_some() {
            return Some(op);
        }
        let _frame = ambient::enter(ambient::ActiveWork::Queue(self.id()));
        let mut is_given = true;
        let traced = self.trace_item(&op);
        let given = self.named(|| {
            work.give(self).unwrap_or_else(|| {
                is_given = false;
                Ok(())
            })
        });
        if !is_given {
            return Some(op);
        }
        if let Some(traced) = traced {
            traced.end(given.is_err(), false);
        }
        let left = match (op, guard.resubmitter.as_mut()) {
            (QueueItem::Work(work), Some(resubmitter)) if given.is_ok() && !key.is_empty() => {
                // Before the count: the sweep of completed items finds it there.
                resubmitter.put(key, work, device_queue.issued() + 1).err().map(QueueItem::Work)
            }
            (op, _) => Some(op),
        };
        self.issued(device_queue, left, given.map(|()| None));
        self.leave(device_queue, guard);
        None
    }

    /// Submits an item to a stream that the host captures. It becomes part of the capture, which keeps its resources,
    /// and does not count in the queue.
    #[cold]
    pub(super) fn capture(self: &Arc<Self>, device_queue: &DeviceQueue, op: QueueItem) -> Result<()> {
        let guard = self.hold_in_capture(device_queue);
        let _frame = ambient::enter(ambient::ActiveWork::Queue(self.id()));
        let captured = self.named(|| {
            let refuse = |why: &str| Err(Error::precondition(format!("it is being captured: {why}")));
            if guard.is_none() {
                return refuse("its device has not been given all that came before");
            }
            match &op {
                QueueItem::Record(mark) => {
                    mark.issue(
                        device_queue.device(),
                        device_queue.record_mark(mark.has_timing())?,
                        self.account().waiting(),
                    );
                    Ok(())
                }
                QueueItem::Wait(mark) => match mark.event_on(device_queue.device()) {
                    Some(event) if event.is_captured() || event.is_exposed() => device_queue.stream().wait(event),
                    _ if mark.is_reached() => mark.failure().map_or(Ok(()), |origin| Err(self.derived(origin))),
                    _ => refuse("an event that is not part of the capture cannot be waited for in it"),
                },
                QueueItem::Task(_) => refuse("a function of the host's cannot be part of it"),
                QueueItem::Work(work) => {
                    work.may_be_captured()?;
                    // First: an item that fails half way has submitted a part to the device.
                    device_queue.stream().keep(Box::new(CapturedWork(Some(Arc::clone(work)))))?;
                    work.capture(self)
                }
            }
        });
        if let Some(guard) = guard {
            self.leave(device_queue, guard);
        }
        captured
    }

    /// The drain lock, if all earlier items were issued. Another thread may be about to release it.
    fn hold_in_capture(self: &Arc<Self>, device_queue: &DeviceQueue) -> Option<DrainGuard<'_, Items>> {
        let is_at_host = || device_queue.is_at_host() || ambient::within(ambient::ActiveWork::Queue(self.id()));
        for look in 0..LOOKS + NAPS {
            match self.drain_lock().hold() {
                Some(guard) if guard.is_empty() && self.has_no_news() => return Some(guard),
                Some(guard) => {
                    drop(guard);
                    // A caller that found the lock held meanwhile relies on this thread.
                    if self.drain_lock().call() {
                        self.call();
                    }
                    return None;
                }
                None if self.drain_lock().is_parked() || is_at_host() => return None,
                None if look < LOOKS => std::thread::yield_now(),
                None => std::thread::sleep(NAP),
            }
        }
        None
    }

    /// Resubmits the work under this key to the device, if no item is ahead of it. False if the table has none, or it
    /// cannot be submitted now.
    #[inline]
    pub fn submit_again(self: &Arc<Self>, key: &[usize]) -> bool {
        let Some(device_queue) = self.device_queue() else { return false };
        if key.is_empty() || device_queue.resubmits().is_empty() || !self.has_no_news() {
            return false;
        }
        if !matches!(device_queue.is_captured(), Ok(false)) {
            return false;
        }
        let Some(mut guard) = self.drain_lock().hold() else { return false };
        let is_free = guard.is_empty() && self.has_no_news() && self.cause().is_none();
        let resubmitter = guard.resubmitter.as_mut().filter(|_| is_free);
        // The table is written before the item counts as issued.
        let given = resubmitter
            .and_then(|resubmitter| resubmitter.again(key, device_queue.issued() + 1))
            .map(|work| self.give_again(&work));
        let is_given = match given {
            // An empty item takes its number, behind which it is released.
            Some(None) => {
                self.issued(device_queue, None, Ok(None));
                false
            }
            Some(Some(given)) => {
                self.issued(device_queue, None, given.map(|()| None));
                true
            }
            None => false,
        };
        self.leave(device_queue, guard);
        is_given
    }

    /// `None`: it must be submitted again.
    #[inline]
    fn give_again(self: &Arc<Self>, work: &Arc<dyn QueueWork>) -> Option<Result<()>> {
        self.count_submitted();
        let _frame = ambient::enter(ambient::ActiveWork::Queue(self.id()));
        let mut is_given = true;
        let given = self.named(|| {
            work.again(self).unwrap_or_else(|| {
                is_given = false;
                Ok(())
            })
        });
        is_given.then_some(given)
    }

    /// Releases the drain lock after issuing.
    #[inline]
    fn leave(self: &Arc<Self>, device_queue: &DeviceQueue, guard: DrainGuard<'_, Items>) {
        drop(guard);
        // A producer that pushed meanwhile found the lock held, and relies on this thread.
        if !self.has_no_news() || device_queue.is_abandoned() {
            self.drain_own(ThreadRole::Issuer, device_queue.issued(), &|| false);
        }
    }
}
