//! Who drains a queue, on which thread, and what that thread may do there.
//!
//! A queue whose work a device does is drained to issue it, by whoever comes: who submits, who reaches an event, also
//! on a thread of the device's. A function of the host's among its items is for hands of the host: a worker of the
//! queue's pool, or the thread of a lane that is started when the first one comes and there is no pool that takes
//! single jobs, or when that refuses. It is never run by who submits, who is not to be kept.
//!
//! *A device's thread* runs nothing of the host's on any queue, which could hold the device up for ever: where a pool
//! refuses what a device has brought back, or runs it at once in the thread that offers it, a lane takes it
//! (`by_host_hands`).
#![forbid(unsafe_code)]

use super::dedicated_thread::Called;
use super::notice::tell_put_off;
use super::queue::{DeviceQueue, Items, Joined, Mode, Op, Queue};
use crate::base::{Error, Ref, Result};
use crate::device::Device;
use crate::sync::{DrainGuard, ambient};
use crate::threadpool::{Job, ThreadPool};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::task::Poll;

/// What a thread that drains may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hands {
    /// All.
    Host,
    /// Issue to a device, and no function or run of the host's among its items.
    Issuer,
}

/// How far draining came.
enum Drained {
    All,
    /// The first item is pending.
    Pending,
    /// The first item can go on, by other hands.
    ForHost,
    /// There are more items, which others are to do.
    Enough,
}

/// What became of an item that is to be issued.
pub(super) enum Issued<T> {
    Done(T),
    Pending,
    ForHost,
}

impl<T> From<Poll<T>> for Issued<T> {
    fn from(poll: Poll<T>) -> Issued<T> {
        match poll {
            Poll::Ready(value) => Issued::Done(value),
            Poll::Pending => Issued::Pending,
        }
    }
}

impl Queue {
    /// What a pending item waited for has happened.
    pub fn resume(self: &Arc<Self>) {
        if self.turn().resume() {
            self.call();
        }
    }

    /// Sees to it that somebody drains: a thread that waits for the queue, if there is one, else whoever the mode says.
    pub(super) fn call(self: &Arc<Self>) {
        match self.mode() {
            Mode::Device(line) if !line.is_at_host() => self.drain(Hands::Issuer),
            _ if self.call_waiter() => {}
            Mode::DedicatedThread(lane) => lane.call(Arc::clone(self) as Arc<dyn Called>),
            Mode::Device(_) => self.call_host(),
            Mode::Pool | Mode::Synchronous => {
                if !self.call_pool() {
                    self.by_host_hands();
                }
            }
        }
    }

    /// False if nobody waits who would drain.
    fn call_waiter(&self) -> bool {
        let any = self.claimers().are_there();
        if any {
            self.nudge();
        }
        any
    }

    /// By a waiter that has left: nobody else was called in the belief that it would come.
    pub(super) fn pass_on(self: &Arc<Self>) {
        if self.turn().is_called() {
            self.call();
        }
    }

    /// False if there is no pool that takes single jobs, or it refuses.
    fn call_pool(self: &Arc<Self>) -> bool {
        let Some(pool) = self.pool().filter(|pool| pool.can_spawn()) else { return false };
        // ORDERING: SeqCst, and the turn's CALLED before it: the closure takes the flag back before it looks at the
        // turn.
        if self.is_sent().swap(true, SeqCst) {
            return true;
        }
        let accepted = pool.spawn(Arc::clone(self) as Arc<dyn Job>, 0, 0, self.priority());
        if !accepted {
            // Who has relied on the flag meanwhile relies on this thread now, which drains.
            self.is_sent().store(false, SeqCst);
        }
        accepted
    }

    /// Drains the queue here, or on a lane if a device needs this thread.
    fn by_host_hands(self: &Arc<Self>) {
        if !ambient::within_device() {
            return self.drain(Hands::Host);
        }
        match self.spare_lane() {
            Ok(lane) => lane.call(Arc::clone(self) as Arc<dyn Called>),
            Err(error) => {
                // Then what has not begun is skipped. What has begun has nobody else.
                self.fail(error);
                self.drain(if self.line().is_some() { Hands::Issuer } else { Hands::Host });
            }
        }
    }

    /// Brings hands that may run a function of the host's.
    fn call_host(self: &Arc<Self>) {
        if self.call_pool() {
            return;
        }
        match self.spare_lane() {
            Ok(lane) => lane.call(Arc::clone(self) as Arc<dyn Called>),
            Err(error) => {
                // Then it is skipped, which anybody may do.
                self.fail(error);
                self.drain(Hands::Issuer);
            }
        }
    }

    /// Drains the queue in this thread, or, if this thread is draining another one already, when it has finished
    /// that item. An inline pool and chains of events would otherwise nest without bound.
    pub(super) fn drain(self: &Arc<Self>, hands: Hands) {
        if DRAINING.with(|draining| draining.replace(true)) {
            LATER.with(|later| later.borrow_mut().push_back((Arc::clone(self), hands)));
            return;
        }
        self.drain_here(hands);
        run_later();
        DRAINING.with(|draining| draining.set(false));
    }

    /// Drains the queue if its turn is free, on top of whatever this thread is doing.
    pub(super) fn drain_here(self: &Arc<Self>, hands: Hands) {
        self.drain_until(hands, &|| false);
    }

    /// The same, up to the end of an item behind which there is `enough`: the rest is for whoever is called. False if
    /// the turn was not free.
    pub(super) fn drain_until(self: &Arc<Self>, hands: Hands, enough: &dyn Fn() -> bool) -> bool {
        let _frame = ambient::enter(ambient::Work::Queue(self.id()));
        let Some(mut turn) = self.turn().hold() else { return false };
        loop {
            let drained = self.drain_turn(&mut turn, hands, enough);
            if self.line().is_some_and(DeviceQueue::is_abandoned) {
                self.see_off();
            }
            match drained {
                Drained::All => {
                    drop(turn);
                    if self.has_no_news() {
                        return true;
                    }
                    match self.turn().hold() {
                        Some(again) => turn = again,
                        None => return true,
                    }
                }
                Drained::Enough => {
                    drop(turn);
                    if self.turn().call() {
                        self.call();
                    }
                    return true;
                }
                Drained::Pending | Drained::ForHost => match turn.park() {
                    Ok(()) => {
                        if matches!(drained, Drained::ForHost) {
                            self.resume();
                        }
                        // Who waits for this queue may have to wait for another one now.
                        self.nudge();
                        return true;
                    }
                    Err(kept) => turn = kept,
                },
            }
        }
    }

    /// Does an item of it here, or joins in, if it is called and nobody has come: for who waits for something else that
    /// waits for it. False if there was nothing to do.
    pub fn help(self: &Arc<Self>) -> bool {
        if ambient::within(ambient::Work::Queue(self.id())) || self.pool().is_some_and(|pool| !pool.may_work_here()) {
            return false;
        }
        let before = self.completed();
        if self.turn().is_called() && !self.has_own_thread() {
            return self.drain_until(Hands::Host, &|| self.completed() > before);
        }
        self.program_waited_for().is_none() && self.join(true) == Joined::Worked
    }

    /// Refuses to wait for a stream that the host captures.
    pub(super) fn check_not_captured(&self) -> Result<()> {
        match self.line() {
            Some(line) if line.is_captured()? => Err(Error::precondition(format!(
                "stream '{}' is being captured: what it is given is not done now, and nobody can say how far it is with what came before",
                self.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Runs one item as far as it goes.
    pub(super) fn step(self: &Arc<Self>, op: &Op) -> Poll<Result<()>> {
        match op {
            Op::Record(mark) => {
                mark.reach(self.cause());
                Poll::Ready(Ok(()))
            }
            // Behind a failure nothing is waited for.
            Op::Wait(_) if self.cause().is_some() => Poll::Ready(Ok(())),
            Op::Wait(mark) if !mark.is_reached() && mark.subscribe(self) => {
                self.set_parked_on(mark.queue());
                Poll::Pending
            }
            Op::Wait(mark) => {
                self.set_parked_on(Weak::new());
                Poll::Ready(mark.failure().map_or(Ok(()), |origin| Err(self.derived(origin))))
            }
            Op::Work(work) => match self.cause() {
                Some(cause) => {
                    Arc::clone(work).skip(&cause);
                    Poll::Ready(Ok(()))
                }
                None => self.poll(Arc::clone(work)),
            },
            Op::Task(task) => {
                // It was accepted, so its argument is ours to release, whether it runs or is skipped.
                task.adopt();
                Poll::Ready(if self.cause().is_some() { Ok(()) } else { self.named(|| task.run()) })
            }
        }
    }

    /// Runs items in order.
    fn drain_turn(
        self: &Arc<Self>,
        turn: &mut DrainGuard<'_, Items>,
        hands: Hands,
        enough: &dyn Fn() -> bool,
    ) -> Drained {
        loop {
            self.take_news(turn);
            let Some(op) = turn.front() else { return Drained::All };
            if enough() {
                return Drained::Enough;
            }
            if let Mode::Device(line) = self.mode() {
                if matches!(line.is_captured(), Ok(true)) && self.cause().is_none() {
                    // It would become part of what the host collects, and not be done.
                    self.fail(Error::precondition(format!(
                        "stream '{}' is being captured, and its device had not been given all that came before",
                        self.name()
                    )));
                }
                match self.issue(line, op, hands) {
                    Issued::Pending => return Drained::Pending,
                    Issued::ForHost => return Drained::ForHost,
                    Issued::Done(event) => self.issued(line, turn.pop_front(), event),
                }
                continue;
            }
            match self.step(op) {
                Poll::Pending => return Drained::Pending,
                Poll::Ready(Err(error)) => self.fail(error),
                Poll::Ready(Ok(())) => {}
            }
            // The item goes before it counts as completed: who has waited for it finds its tensors and callbacks
            // released.
            drop(turn.pop_front());
            self.complete_one();
            tell_put_off();
        }
    }
}

impl Called for Queue {
    fn resume(self: Arc<Self>) {
        Queue::resume(&self);
    }

    fn drain(self: Arc<Self>, on_top: bool) {
        match on_top {
            true => self.drain_here(Hands::Host),
            false => Queue::drain(&self, Hands::Host),
        }
    }

    fn device(&self) -> Option<&Arc<dyn Device>> {
        self.line().map(DeviceQueue::device)
    }
}

impl Job for Queue {
    fn run(self: Arc<Self>, _tag: u64, _index: usize, _pool: &Ref<ThreadPool>) {
        // ORDERING: SeqCst, as in `call_pool`.
        self.is_sent().store(false, SeqCst);
        self.by_host_hands();
    }
}

/// Queues to drain, and with which hands.
type Later = VecDeque<(Arc<Queue>, Hands)>;

thread_local! {
    /// Whether this thread is draining a queue.
    pub(super) static DRAINING: Cell<bool> = const { Cell::new(false) };
    /// Queues to drain when the current one is done. Emptied, memory and all, before the thread leaves the library,
    /// so that it needs no destructor: registering one allocates on each thread of the host's.
    static LATER: ManuallyDrop<RefCell<Later>> = const { ManuallyDrop::new(RefCell::new(VecDeque::new())) };
}

/// Drains the queues that were put off in this thread.
pub(super) fn run_later() {
    while let Some((queue, hands)) = LATER.with(|later| later.borrow_mut().pop_front()) {
        queue.drain_here(hands);
    }
    LATER.with(|later| drop(later.take()));
}
