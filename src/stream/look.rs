//! Completion of a device queue's items: looks at the device, the items that they complete, and waits (see
//! `device_queue` and `fences`).
#![forbid(unsafe_code)]

use super::cycle::WaitTarget;
use super::device_queue::{Event, InFlight};
use super::fences::{AllLook, Fence, Look};
use super::queue::{DeviceQueue, Queue, QueueItem};
use super::wait;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result};
use crate::sync::{MutexGuard, ambient};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Batch of items taken out under one lock, which count as completed together.
const AT_ONCE: usize = 16;

/// The result of a short wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brief {
    Done,
    /// It did not take place, or ended early.
    No,
    /// The spin budget is spent.
    Spent,
}

/// How long to wait for the completing thread before looking again. It looks for this thread, too; but a device that
/// answers two threads differently must not block one for ever.
const LOOK_AGAIN_NS: u64 = 10_000_000;

/// How often a wait asks a device for an event that it refuses, and the pause in between.
const REFUSALS: usize = 20;
const REFUSED_NS: u64 = 1_000_000;

impl Queue {
    /// Waits until `target` items are completed.
    pub fn wait(self: &Arc<Self>, target: u64, deadline: Deadline) -> Result<()> {
        self.wait_looking(target, self.spin_ns(), deadline)
    }

    fn wait_looking(self: &Arc<Self>, target: u64, spin_ns: u64, deadline: Deadline) -> Result<()> {
        let done = || self.has_completed(target);
        let is_unknown = |device_queue: &DeviceQueue| {
            matches!(device_queue.is_captured(), Ok(true))
                && !(device_queue.is_foreseen(target) || device_queue.is_retiring() || self.look(device_queue, target))
        };
        if !done() && self.device_queue().is_some_and(is_unknown) {
            self.check_not_captured()?;
        }
        let sleep = |spin_ns, deadline| match (self.device_queue(), self.pool()) {
            (None, None) => Ok(self.wait_completed(target, spin_ns, deadline)),
            (None, Some(pool)) => Ok(pool.watched(deadline, |deadline| self.wait_completed(target, spin_ns, deadline))),
            (Some(device_queue), _) => self.sleep(device_queue, target, spin_ns, deadline),
        };
        let on_device = || self.device_queue().is_some_and(|device_queue| device_queue.issued() >= target);
        let target = WaitTarget::Items(target);
        let wait = wait::Wait { what: "the work", done: &done, target, on_device: &on_device, sleep: &sleep, spin_ns };
        wait::until(&wait, Some(self), deadline)
    }

    /// Waits for everything submitted so far, and reports the failure once.
    pub fn synchronize(self: &Arc<Self>, timeout_ns: u64) -> Result<()> {
        self.check_not_captured()?;
        let (target, deadline) = (self.submitted(), Deadline::after(timeout_ns));
        let brief =
            self.device_queue().map_or(Brief::No, |device_queue| self.look_briefly(device_queue, target, deadline));
        if brief != Brief::Done {
            self.device_queue().map(|device_queue| self.look(device_queue, target));
            let spin_ns = if brief == Brief::Spent { 0 } else { self.spin_ns() };
            self.wait_looking(target, spin_ns, deadline)?;
        }
        self.latch().tell().map_or(Ok(()), Err)
    }

    /// Whether all items up to `target` are completed, as far as is known after a look at the device.
    pub(super) fn look(&self, device_queue: &DeviceQueue, target: u64) -> bool {
        self.ask(device_queue, target).unwrap_or(false)
    }

    /// The same; an error if the device refuses the event that would tell when they are.
    fn ask(&self, device_queue: &DeviceQueue, target: u64) -> Result<bool> {
        if self.completed() >= target {
            return Ok(true);
        }
        if self.look_at_all(device_queue) && self.completed() >= target {
            return Ok(true);
        }
        self.retire(device_queue);
        if self.completed() >= target || device_queue.fence_for(target).is_some() {
            return Ok(self.completed() >= target);
        }
        let asked = match device_queue.is_captured() {
            Ok(false) => self.insist(|| device_queue.ask(target)),
            Err(error) if error.code() == Code::DeviceLost => Err(error),
            // A captured stream gives no event.
            _ => {
                self.has_joined(device_queue);
                return Ok(self.completed() >= target);
            }
        };
        match asked {
            Err(error) if error.code() == Code::DeviceLost => self.give_up(device_queue, error, target),
            asked => asked?,
        }
        self.retire(device_queue);
        Ok(self.completed() >= target)
    }

    /// Has an event recorded, and asks once more if the device refuses: without an event nobody learns when the work
    /// before it is over. A refusal is the stream's failure, also if the device changes its mind.
    pub(super) fn insist<R>(&self, record: impl Fn() -> Result<R>) -> Result<R> {
        record().or_else(|refusal| {
            if refusal.code() == Code::DeviceLost {
                return Err(refusal);
            }
            self.fail_late(refusal);
            record()
        })
    }

    /// Releases all issued items, if the device reports that it is idle; false if it does not.
    fn look_at_all(&self, device_queue: &DeviceQueue) -> bool {
        if !device_queue.tells_idle {
            return false;
        }
        // Read first: the device was given all items counted here.
        let last = device_queue.issued();
        if !device_queue.flight().under_way.begin_all(last) {
            return false;
        }
        let is_idle = device_queue.stream().is_idle();
        let mut flight = device_queue.flight();
        let InFlight { under_way, spare, .. } = &mut *flight;
        let look = under_way.answer_all(last, is_idle, |fence| {
            if fence.is_own && Arc::strong_count(&fence.event) == 1 {
                spare.push(fence.event);
            }
        });
        drop(flight);
        match look {
            AllLook::Over => {}
            AllLook::Again => self.retire(device_queue),
            AllLook::Reached(count) => self.let_go(device_queue, count, true),
        }
        is_idle
    }

    /// The last item made the stream join a capture, and has no work left. It is over once all before it is known to be
    /// over.
    #[cold]
    pub(super) fn has_joined(&self, device_queue: &DeviceQueue) {
        let last = device_queue.joined().load(Relaxed);
        if self.completed() + 1 != last
            || last != device_queue.issued()
            || !device_queue.flight().under_way.begin_all(last)
        {
            return;
        }
        let look = device_queue.flight().under_way.answer_all(last, true, drop);
        match look {
            AllLook::Over => {}
            AllLook::Again => self.retire(device_queue),
            AllLook::Reached(count) => self.let_go(device_queue, count, true),
        }
    }

    /// Releases the items that the device has executed.
    pub(super) fn retire(&self, device_queue: &DeviceQueue) {
        loop {
            let Some(event) = device_queue.flight().under_way.begin() else { return };
            let reached = event.is_reached();
            drop(event);
            let mut flight = device_queue.flight();
            match flight.under_way.answer(!matches!(reached, Ok(false))) {
                Look::Over => return,
                Look::Again => {}
                Look::Reached(fence, count) => self.complete(device_queue, flight, fence, count, reached.err()),
            }
        }
    }

    /// Completes the items up to a fence.
    fn complete(
        &self,
        device_queue: &DeviceQueue,
        mut flight: MutexGuard<'_, InFlight<QueueItem>>,
        fence: Fence<Event>,
        count: u64,
        failure: Option<Error>,
    ) {
        // Not an event that a thread is about to wait for: it would wait for the event's next use.
        if fence.is_own && failure.is_none() && Arc::strong_count(&fence.event) == 1 {
            flight.spare.push(fence.event);
        }
        drop(flight);
        let is_well = failure.is_none();
        if let Some(error) = failure {
            self.fail_late(error);
        }
        self.let_go(device_queue, count, is_well);
    }

    /// Completes `count` items that are over, and the resubmissions among them; `is_well` if nothing has failed so far.
    /// Dropping them may call host functions, which may come back here: not under the lock.
    fn let_go(&self, device_queue: &DeviceQueue, count: u64, is_well: bool) {
        let mut done = device_queue.flight().under_way.over();
        let upto = done + count;
        while done < upto {
            let mut some = SmallVec::<[(u64, QueueItem); AT_ONCE]>::new();
            let mut flight = device_queue.flight();
            while some.len() < AT_ONCE
                && let Some(item) = flight.under_way.take(upto)
            {
                some.push(item);
            }
            let last = if some.len() == AT_ONCE { some[AT_ONCE - 1].0 } else { upto };
            flight.under_way.set_over(last);
            drop(flight);
            some.into_iter().for_each(|(_, op)| let_one_go(op, is_well));
            device_queue.resubmits().sweep(last, |work| let_one_go(QueueItem::Work(work), is_well));
            self.count_completed(last - done);
            done = last;
        }
        device_queue.flight().under_way.end();
        if done >= self.submitted() {
            device_queue.release_kept();
        }
    }

    /// The device is lost, so no completion will be reported: issued items are over.
    fn give_up(&self, device_queue: &DeviceQueue, error: Error, target: u64) {
        self.fail_late(error);
        let count = device_queue.flight().under_way.give_up(target, device_queue.issued());
        if let Some(count) = count {
            self.let_go(device_queue, count, false);
        }
    }

    /// Waits for a moment without an event: short work is over before one would be recorded and reached. Not while
    /// others go on submitting: then only an event tells where the wait ends.
    pub(super) fn look_briefly(&self, device_queue: &DeviceQueue, target: u64, deadline: Deadline) -> Brief {
        if self.completed() >= target {
            return Brief::Done;
        }
        let is_worker = || ambient::is_inside() || self.pool().is_some_and(|pool| pool.in_parallel());
        if !device_queue.tells_idle || self.spin_ns() == 0 || device_queue.issued() < target || is_worker() {
            return Brief::No;
        }
        let begin = now_ns();
        while now_ns() - begin < self.spin_ns() && !deadline.is_past() {
            self.look_at_all(device_queue);
            if self.completed() >= target {
                return Brief::Done;
            }
            if self.submitted() != target {
                return Brief::No;
            }
            std::hint::spin_loop();
        }
        Brief::Spent
    }

    /// Waits until the items up to `target` are completed. An error if the device goes on refusing the event that would
    /// tell: they are not known to be over then, and nothing that they use is released.
    fn sleep(&self, device_queue: &DeviceQueue, target: u64, spin_ns: u64, deadline: Deadline) -> Result<bool> {
        // A short wait needs no event.
        let begin = now_ns();
        while device_queue.tells_idle
            && device_queue.issued() >= target
            && now_ns() - begin < spin_ns
            && !deadline.is_past()
        {
            if self.completed() >= target || (self.look_at_all(device_queue) && self.completed() >= target) {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        let mut refusals = 0;
        loop {
            match self.ask(device_queue, target) {
                Ok(true) => return Ok(true),
                Err(refusal) if refusals == REFUSALS => return Err(self.late(refusal)),
                _ if deadline.is_past() => return Ok(false),
                Ok(false) => {}
                Err(_) => {
                    refusals += 1;
                    std::thread::sleep(Duration::from_nanos(REFUSED_NS).min(deadline.left().unwrap_or(Duration::MAX)));
                    continue;
                }
            }
            if device_queue.issued() < target {
                device_queue.wait_issued(target, spin_ns, deadline);
                continue;
            }
            let fence = device_queue.fence_for(target);
            if fence.is_none() && matches!(device_queue.is_captured(), Ok(true)) {
                std::thread::sleep(Duration::from_nanos(LOOK_AGAIN_NS).min(deadline.left().unwrap_or(Duration::MAX)));
            }
            if let Some(event) = fence {
                // The look finds a failure.
                let _ = event.wait(self.account().waiting(), deadline);
            }
            if !self.look(device_queue, target) && device_queue.is_retiring() {
                // Another thread is looking, and has this thread's note.
                self.wait_completed(target, spin_ns, deadline.earlier(Deadline::after(LOOK_AGAIN_NS)));
            }
        }
    }
}

fn let_one_go(op: QueueItem, is_well: bool) {
    match op {
        QueueItem::Work(work) => work.over(is_well),
        QueueItem::Record(mark) => mark.reach_on_device(),
        QueueItem::Task(_) | QueueItem::Wait(_) => {}
    }
}
