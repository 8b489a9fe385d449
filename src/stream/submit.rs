//! Submission: where an item goes. To a device it goes at once if nothing is in front of it, without the inbox; to a
//! stream that the host captures it goes as a part of that.
#![forbid(unsafe_code)]

use super::drain::Hands;
use super::queue::{DeviceQueue, Items, Mode, Op, Queue, Work};
use crate::base::time::Deadline;
use crate::base::{Error, Result};
use crate::sync::{DrainGuard, ambient};
use std::sync::Arc;

/// How long a capture waits for another thread that drains.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What the host has captured holds this.
struct Captured(Option<Arc<dyn Work>>);

impl Drop for Captured {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work.over(true);
        }
    }
}

impl Queue {
    /// Adds an item. On a synchronous queue it runs now, and its error comes back; on an asynchronous one nothing
    /// can fail here, unless the host captures the device's stream.
    pub fn submit(self: &Arc<Self>, op: Op) -> Result<()> {
        self.submit_as(op, &[])
    }

    /// As `submit`. Work that a device does, and that may be given again, has a key: no other has the same while it
    /// lives. Then `submit_again` does for later times, as long as this one is under way.
    pub fn submit_as(self: &Arc<Self>, op: Op, key: &[usize]) -> Result<()> {
        if self.is_synchronous() {
            return self.run_now(op);
        }
        if let Some(line) = self.line()
            && line.is_captured()?
        {
            return self.capture(line, op);
        }
        if let (Some(line), Op::Wait(mark)) = (self.line(), &op)
            && mark.is_captured()
        {
            // The stream joins in: what is known now can be known for as long as that lasts.
            self.look(line, self.submitted());
        }
        self.count_submitted();
        let op = match self.line() {
            Some(line) => match self.issue_now(line, op, key) {
                None => return Ok(()),
                Some(op) => op,
            },
            None => op,
        };
        self.push(op);
        if self.turn().call() {
            match self.mode() {
                // Whoever submits to a device issues.
                Mode::Device(_) => self.drain_here(Hands::Issuer),
                _ => self.call(),
            }
        }
        Ok(())
    }

    /// Gives an item to the device in this thread, if nothing is in front of it: then it need not go through the inbox.
    /// Gives it back if not.
    pub(super) fn issue_now(self: &Arc<Self>, line: &DeviceQueue, op: Op, key: &[usize]) -> Option<Op> {
        let Op::Work(work) = &op else { return Some(op) };
        if !self.has_no_news() {
            return Some(op);
        }
        let Some(mut turn) = self.turn().hold() else { return Some(op) };
        // What others push from here on comes behind it, as they would have it: they have not waited for this call.
        if !turn.is_empty() || !self.has_no_news() || self.cause().is_some() {
            return Some(op);
        }
        let _frame = ambient::enter(ambient::Work::Queue(self.id()));
        let mut is_given = true;
        let given = self.named(|| {
            work.give(self).unwrap_or_else(|| {
                is_given = false;
                Ok(())
            })
        });
        if !is_given {
            return Some(op);
        }
        let left = match (op, turn.giver.as_mut()) {
            (Op::Work(work), Some(giver)) if given.is_ok() && !key.is_empty() => {
                // In front of the count: who lets go of what is over finds it there.
                giver.put(key, work, line.issued() + 1).err().map(Op::Work)
            }
            (op, _) => Some(op),
        };
        self.issued(line, left, given.map(|()| None));
        self.leave(line, turn);
        None
    }

    /// Gives an item to a stream that the host captures. It becomes part of what the host collects, which keeps what it
    /// holds, and is none of the queue's.
    #[cold]
    pub(super) fn capture(self: &Arc<Self>, line: &DeviceQueue, op: Op) -> Result<()> {
        let turn = self.turn_in_capture(line);
        let _frame = ambient::enter(ambient::Work::Queue(self.id()));
        let captured = self.named(|| {
            let refuse = |why: &str| Err(Error::precondition(format!("it is being captured: {why}")));
            if turn.is_none() {
                return refuse("its device has not been given all that came before");
            }
            match &op {
                Op::Record(mark) => {
                    mark.issue(line.device(), line.record_mark(mark.has_timing())?, self.account().waiting());
                    Ok(())
                }
                Op::Wait(mark) => match mark.event_on(line.device()) {
                    Some(event) if event.is_captured() || event.is_exposed() => line.stream().wait(event),
                    _ if mark.is_reached() => mark.failure().map_or(Ok(()), |origin| Err(self.derived(origin))),
                    _ => refuse("an event that is not part of the capture cannot be waited for in it"),
                },
                Op::Task(_) => refuse("a function of the host's cannot be part of it"),
                Op::Work(work) => {
                    work.may_be_captured()?;
                    // First: what fails half way has given the device a part.
                    line.stream().keep(Box::new(Captured(Some(Arc::clone(work)))))?;
                    work.capture(self)
                }
            }
        });
        if let Some(turn) = turn {
            self.leave(line, turn);
        }
        captured
    }

    /// The turn, if the device was given all that came before. Another thread may have it that is about to be done.
    fn turn_in_capture(self: &Arc<Self>, line: &DeviceQueue) -> Option<DrainGuard<'_, Items>> {
        let deadline = Deadline::after(PATIENCE_NS);
        let is_at_host = || line.is_at_host() || ambient::within(ambient::Work::Queue(self.id()));
        loop {
            match self.turn().hold() {
                Some(turn) if turn.is_empty() && self.has_no_news() => return Some(turn),
                Some(turn) => {
                    drop(turn);
                    // Who found the turn taken meanwhile has left it to this thread.
                    if self.turn().call() {
                        self.call();
                    }
                    return None;
                }
                None if self.turn().is_parked() || is_at_host() || deadline.is_past() => return None,
                None => std::thread::yield_now(),
            }
        }
    }

    /// Gives work to the device once more that stands under this key, if nothing is in front of it. False if it does
    /// not stand, or cannot be given now.
    #[inline]
    pub fn submit_again(self: &Arc<Self>, key: &[usize]) -> bool {
        let Some(line) = self.line() else { return false };
        if key.is_empty() || line.standing().is_empty() || !self.has_no_news() {
            return false;
        }
        if !matches!(line.is_captured(), Ok(false)) {
            return false;
        }
        let Some(mut turn) = self.turn().hold() else { return false };
        let is_free = turn.is_empty() && self.has_no_news() && self.cause().is_none();
        let giver = turn.giver.as_mut().filter(|_| is_free);
        // Where it stands is written before it counts as issued.
        let given = giver.and_then(|giver| giver.again(key, line.issued() + 1)).map(|work| self.give_again(&work));
        let is_given = match given {
            // An item of nothing takes its place, behind which it is let go of.
            Some(None) => {
                self.issued(line, None, Ok(None));
                false
            }
            Some(Some(given)) => {
                self.issued(line, None, given.map(|()| None));
                true
            }
            None => false,
        };
        self.leave(line, turn);
        is_given
    }

    /// None: it is to be submitted anew.
    #[inline]
    fn give_again(self: &Arc<Self>, work: &Arc<dyn Work>) -> Option<Result<()>> {
        self.count_submitted();
        let _frame = ambient::enter(ambient::Work::Queue(self.id()));
        let mut is_given = true;
        let given = self.named(|| {
            work.again(self).unwrap_or_else(|| {
                is_given = false;
                Ok(())
            })
        });
        is_given.then_some(given)
    }

    /// Ends a turn in which something was issued.
    #[inline]
    fn leave(self: &Arc<Self>, line: &DeviceQueue, turn: DrainGuard<'_, Items>) {
        drop(turn);
        // Who has pushed meanwhile has found the turn taken, and left it to this thread.
        if !self.has_no_news() || line.is_abandoned() {
            self.drain_here(Hands::Issuer);
        }
    }
}
