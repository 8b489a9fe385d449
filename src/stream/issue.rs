//! Items of a queue whose work a device does, on their way to the device; and the end of such a queue. `line` says how.
#![forbid(unsafe_code)]

use super::dedicated_thread::Called;
use super::device_queue::Event;
use super::drain::{Hands, Issued};
use super::queue::{DeviceQueue, Op, Queue};
use crate::base::{Error, Result};
use crate::device::Then;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// A queue that the host has let go of while it captured the stream.
struct Left(Option<Arc<Queue>>);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.see_off();
        }
    }
}

impl Queue {
    /// Issues an item, as far as that goes; gives the event that it recorded.
    pub(super) fn issue(self: &Arc<Self>, line: &DeviceQueue, op: &Op, hands: Hands) -> Issued<Result<Option<Event>>> {
        let done = |result: Result<()>| Issued::Done(result.map(|()| None));
        match (op, self.cause()) {
            (Op::Record(mark), Some(cause)) => {
                mark.reach(Some(cause));
                done(Ok(()))
            }
            (Op::Wait(_), Some(_)) => done(Ok(())),
            (Op::Work(_), _) if line.is_begun() && hands == Hands::Issuer => Issued::ForHost,
            // What has begun goes on, whatever happens to the stream.
            (Op::Work(work), _) if line.is_begun() => {
                self.poll(Arc::clone(work)).map(|result| result.map(|()| None)).into()
            }
            (Op::Work(work), Some(cause)) => {
                Arc::clone(work).skip(&cause);
                done(Ok(()))
            }
            (Op::Task(task), Some(_)) => {
                task.adopt();
                done(Ok(()))
            }
            (Op::Record(mark), None) => {
                let recorded = line.record_mark(mark.has_timing());
                match &recorded {
                    Ok(event) => mark.issue(line.device(), Arc::clone(event), self.account().waiting()),
                    Err(error) => mark.reach(Some(self.late(error.clone()))),
                }
                Issued::Done(recorded.map(Some).map_err(|error| self.late(error)))
            }
            (Op::Wait(mark), None) => {
                let wait = |event| done(line.stream().wait(event).map_err(|error| self.late(error)));
                if let Some(event) = mark.event_on(line.device()) {
                    return wait(event);
                }
                if !mark.is_reached() && mark.subscribe(self) {
                    self.set_parked_on(mark.queue());
                    return Issued::Pending;
                }
                self.set_parked_on(Weak::new());
                if let Some(event) = mark.event_on(line.device()) {
                    return wait(event);
                }
                done(mark.failure().map_or(Ok(()), |origin| Err(self.derived(origin))))
            }
            (Op::Work(work), None) if work.is_hosts() => match self.may_begin(line, hands) {
                Ok(None) => self.poll(Arc::clone(work)).map(|result| result.map(|()| None)).into(),
                Ok(Some(not_yet)) => not_yet,
                Err(error) => {
                    Arc::clone(work).skip(&error);
                    done(Err(self.late(error)))
                }
            },
            (Op::Work(work), None) => self.poll(Arc::clone(work)).map(|result| result.map(|()| None)).into(),
            (Op::Task(task), None) => match self.may_begin(line, hands) {
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

    /// The first item was issued, or failed to be. Without `op` it has nothing to let go of.
    pub(super) fn issued(&self, line: &DeviceQueue, op: Option<Op>, event: Result<Option<Event>>) {
        line.leave_host();
        let may_join = match &op {
            Some(Op::Wait(_)) => true,
            Some(Op::Work(work)) => work.may_join_capture(),
            _ => false,
        };
        let event = event.unwrap_or_else(|error| {
            self.fail(error);
            None
        });
        if let Err(error) = line.note(op, event) {
            self.fail_late(error);
        }
        if may_join && matches!(line.is_captured(), Ok(true)) {
            line.joined().store(line.issued(), Relaxed);
            self.has_joined(line);
        }
        if line.is_crowded() {
            self.retire(line);
        }
    }

    /// A failure of the device's, with the stream's name.
    fn late(&self, error: Error) -> Error {
        error.within(format_args!("stream '{}'", self.name()))
    }

    pub(super) fn fail_late(&self, error: Error) {
        self.fail(self.late(error));
    }

    /// The first item is the host's to do: None once the device has got there and these hands may do it.
    fn may_begin<T>(self: &Arc<Self>, line: &DeviceQueue, hands: Hands) -> Result<Option<Issued<T>>> {
        if !line.has_got_to_host(|| Arc::clone(self) as Arc<dyn Called>, hands == Hands::Host)? {
            return Ok(Some(Issued::Pending));
        }
        if hands == Hands::Issuer {
            return Ok(Some(Issued::ForHost));
        }
        line.begin();
        Ok(None)
    }

    /// The host lets go of its queue: what the device is at holds it until it is done, so that nothing it uses goes
    /// before.
    pub fn see_off(self: &Arc<Self>) {
        let Some(line) = self.line() else { return };
        line.abandon();
        let target = self.submitted();
        if self.look(line, target) {
            return;
        }
        let queue = Arc::clone(self);
        if matches!(line.is_captured(), Ok(true)) {
            // Nobody can ask the device until the host has what it captures, which keeps the queue so long.
            return line.stream().put_aside(Box::new(Left(Some(queue))));
        }
        // If it is not issued yet, whoever will resume it holds it until then, and comes back here.
        if let (Some(event), Some(accelerator)) = (line.milestone_for(target), line.device().accelerator()) {
            let then = move || {
                let _ = queue.line().map(|line| queue.look(line, target));
            };
            accelerator.when_reached(&event, Then::once(then));
        }
    }
}
