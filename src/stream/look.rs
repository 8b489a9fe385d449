//! What is known of the items of a `line`: looks at the device, what they complete, and waits. Who may look, and what a
//! milestone is, `line` says.
#![forbid(unsafe_code)]

use super::device_queue::{Event, InFlight};
use super::fences::{AllLook, Fence, Look};
use super::queue::{DeviceQueue, Op, Queue};
use super::wait;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result};
use crate::sync::{MutexGuard, ambient};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// So many items are taken out under one lock, and count as completed together.
const AT_ONCE: usize = 16;

/// What came of a short wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brief {
    Done,
    /// There was none, or it ended early.
    No,
    /// The time for looking is over.
    Spent,
}

/// What is known of items that count as completed.
#[derive(Clone, Copy)]
enum Over {
    /// The device is done with them; whether nothing has failed up to there.
    Known { is_well: bool },
    /// They are kept.
    Unknown,
}

/// How long to wait for a thread that completes items before looking again. It looks for us, and needs no help; but a
/// device that gives one thread another answer than the other must not keep anybody for ever.
const LOOK_AGAIN_NS: u64 = 10_000_000;

impl Queue {
    /// Waits until `target` items are completed.
    pub fn wait(self: &Arc<Self>, target: u64, deadline: Deadline) -> Result<()> {
        self.wait_looking(target, self.spin_ns(), deadline)
    }

    fn wait_looking(self: &Arc<Self>, target: u64, spin_ns: u64, deadline: Deadline) -> Result<()> {
        let done = || self.has_completed(target);
        let is_unknown = |line: &DeviceQueue| {
            matches!(line.is_captured(), Ok(true))
                && !(line.is_foreseen(target) || line.is_retiring() || self.look(line, target))
        };
        if !done() && self.line().is_some_and(is_unknown) {
            self.check_not_captured()?;
        }
        let sleep = |spin_ns, deadline| match (self.line(), self.pool()) {
            (None, None) => self.wait_completed(target, spin_ns, deadline),
            (None, Some(pool)) => pool.watched(deadline, |deadline| self.wait_completed(target, spin_ns, deadline)),
            (Some(line), _) => self.sleep(line, target, spin_ns, deadline),
        };
        let on_device = || self.line().is_some_and(|line| line.issued() >= target);
        let wait = wait::Wait { what: "the work", done: &done, on_device: &on_device, sleep: &sleep, spin_ns };
        wait::until(&wait, Some(self), deadline)
    }

    /// Waits for everything submitted so far, and reports the failure once.
    pub fn synchronize(self: &Arc<Self>, timeout_ns: u64) -> Result<()> {
        self.check_not_captured()?;
        let (target, deadline) = (self.submitted(), Deadline::after(timeout_ns));
        let brief = self.line().map_or(Brief::No, |line| self.look_briefly(line, target, deadline));
        if brief != Brief::Done {
            self.line().map(|line| self.look(line, target));
            let spin_ns = if brief == Brief::Spent { 0 } else { self.spin_ns() };
            self.wait_looking(target, spin_ns, deadline)?;
        }
        self.latch().tell().map_or(Ok(()), Err)
    }

    /// Whether all items up to `target` are completed, after a look at the device.
    pub(super) fn look(&self, line: &DeviceQueue, target: u64) -> bool {
        if self.completed() >= target {
            return true;
        }
        if self.look_at_all(line) && self.completed() >= target {
            return true;
        }
        self.retire(line);
        if self.completed() >= target || line.milestone_for(target).is_some() {
            return self.completed() >= target;
        }
        let asked = match line.is_captured() {
            Ok(false) => line.ask(target),
            Err(error) if error.code() == Code::DeviceLost => Err(error),
            // No event can be had of a stream that the host captures.
            _ => {
                self.has_joined(line);
                return self.completed() >= target;
            }
        };
        if let Err(error) = asked {
            self.give_up(line, error, target);
        }
        self.retire(line);
        self.completed() >= target
    }

    /// Lets go of all that was issued, if the device says that nothing of it is left; false if it does not say.
    fn look_at_all(&self, line: &DeviceQueue) -> bool {
        if !line.tells_idle {
            return false;
        }
        // First: what is counted, the device has.
        let last = line.issued();
        if !line.flight().under_way.begin_all(last) {
            return false;
        }
        let is_idle = line.stream().is_idle();
        let mut flight = line.flight();
        let InFlight { under_way, spare, .. } = &mut *flight;
        let look = under_way.answer_all(last, is_idle, |milestone| {
            if milestone.is_own && Arc::strong_count(&milestone.event) == 1 {
                spare.push(milestone.event);
            }
        });
        drop(flight);
        match look {
            AllLook::Over => {}
            AllLook::Again => self.retire(line),
            AllLook::Reached(count) => self.let_all_go(line, count, true),
        }
        is_idle
    }

    /// Completes so many items that are over, and what came before.
    fn let_all_go(&self, line: &DeviceQueue, count: u64, is_well: bool) {
        self.let_go(line, count, Over::Known { is_well });
        let known = std::mem::take(&mut line.flight().unknown);
        drop(known);
    }

    /// The last item made the stream take part in a capture, and has nothing to do any more. If all before it is known
    /// to be over, so is it.
    #[cold]
    pub(super) fn has_joined(&self, line: &DeviceQueue) {
        let last = line.joined().load(Relaxed);
        if self.completed() + 1 != last || last != line.issued() || !line.flight().under_way.begin_all(last) {
            return;
        }
        let look = line.flight().under_way.answer_all(last, true, drop);
        match look {
            AllLook::Over => {}
            AllLook::Again => self.retire(line),
            // Not of what nobody knows of: the device was not asked.
            AllLook::Reached(count) => self.let_go(line, count, Over::Known { is_well: true }),
        }
    }

    /// Lets go of what the device has done.
    pub(super) fn retire(&self, line: &DeviceQueue) {
        loop {
            let Some(event) = line.flight().under_way.begin() else { return };
            let reached = event.is_reached();
            drop(event);
            let mut flight = line.flight();
            match flight.under_way.answer(!matches!(reached, Ok(false))) {
                Look::Over => return,
                Look::Again => {}
                Look::Reached(milestone, count) => self.complete(line, flight, milestone, count, reached.err()),
            }
        }
    }

    /// Completes the items up to a milestone.
    fn complete(
        &self,
        line: &DeviceQueue,
        mut flight: MutexGuard<'_, InFlight<Op>>,
        milestone: Fence<Event>,
        count: u64,
        failure: Option<Error>,
    ) {
        // Not one that somebody is about to wait for, who would wait for its next place.
        if milestone.is_own && failure.is_none() && Arc::strong_count(&milestone.event) == 1 {
            flight.spare.push(milestone.event);
        }
        drop(flight);
        let is_well = failure.is_none();
        if let Some(error) = failure {
            self.fail_late(error);
        }
        self.let_all_go(line, count, is_well);
    }

    /// Completes so many items, which are `over` or kept. What they hold is the host's, whose functions may come back
    /// here: not under the lock.
    fn let_go(&self, line: &DeviceQueue, count: u64, over: Over) {
        let mut done = line.flight().under_way.over();
        let upto = done + count;
        while done < upto {
            let mut some = SmallVec::<[(u64, Op); AT_ONCE]>::new();
            let mut flight = line.flight();
            while some.len() < AT_ONCE
                && let Some(item) = flight.under_way.take(upto)
            {
                some.push(item);
            }
            let last = if some.len() == AT_ONCE { some[AT_ONCE - 1].0 } else { upto };
            flight.under_way.set_over(last);
            drop(flight);
            some.into_iter().for_each(|(_, op)| self.let_one_go(line, op, over));
            line.standing().sweep(last, |work| self.let_one_go(line, Op::Work(work), over));
            self.count_completed(last - done);
            done = last;
        }
        line.flight().under_way.end();
    }

    fn let_one_go(&self, line: &DeviceQueue, op: Op, over: Over) {
        if let Op::Record(mark) = &op {
            mark.reach_on_device();
        }
        match (over, op) {
            (Over::Known { is_well }, Op::Work(work)) => work.over(is_well),
            (Over::Known { .. }, op) => drop(op),
            (Over::Unknown, op) => line.flight().unknown.push(op),
        }
    }

    /// The device does not even take an event, so nobody is told any more: what was issued counts as completed. If the
    /// device is lost, it is; if not, what it may still use is kept.
    fn give_up(&self, line: &DeviceQueue, error: Error, target: u64) {
        let is_lost = error.code() == Code::DeviceLost;
        self.fail_late(error);
        let count = line.flight().under_way.give_up(target, line.issued());
        if let Some(count) = count {
            let over = if is_lost { Over::Known { is_well: false } } else { Over::Unknown };
            self.let_go(line, count, over);
        }
    }

    /// Waits for a moment without an event: short work is over before one would be recorded and reached. Not while
    /// others go on submitting: then it takes an event to tell where the wait ends.
    pub(super) fn look_briefly(&self, line: &DeviceQueue, target: u64, deadline: Deadline) -> Brief {
        if self.completed() >= target {
            return Brief::Done;
        }
        let is_worker = || ambient::is_inside() || self.pool().is_some_and(|pool| pool.in_parallel());
        if !line.tells_idle || self.spin_ns() == 0 || line.issued() < target || is_worker() {
            return Brief::No;
        }
        let begin = now_ns();
        while now_ns() - begin < self.spin_ns() && !deadline.is_past() {
            self.look_at_all(line);
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

    /// Waits until the items up to `target` are completed.
    pub(super) fn sleep(&self, line: &DeviceQueue, target: u64, spin_ns: u64, deadline: Deadline) -> bool {
        // A short wait needs no event.
        let begin = now_ns();
        while line.tells_idle && line.issued() >= target && now_ns() - begin < spin_ns && !deadline.is_past() {
            if self.completed() >= target || (self.look_at_all(line) && self.completed() >= target) {
                return true;
            }
            std::hint::spin_loop();
        }
        loop {
            if self.look(line, target) {
                return true;
            }
            if deadline.is_past() {
                return false;
            }
            if line.issued() < target {
                line.wait_issued(target, spin_ns, deadline);
                continue;
            }
            let milestone = line.milestone_for(target);
            if milestone.is_none() && matches!(line.is_captured(), Ok(true)) {
                std::thread::sleep(Duration::from_nanos(LOOK_AGAIN_NS).min(deadline.left().unwrap_or(Duration::MAX)));
            }
            if let Some(event) = milestone {
                // A failure is found by the look.
                let _ = event.wait(self.account().waiting(), deadline);
            }
            if !self.look(line, target) && line.is_retiring() {
                // Another thread is at it, and has our word.
                self.wait_completed(target, spin_ns, deadline.earlier(Deadline::after(LOOK_AGAIN_NS)));
            }
        }
    }
}
