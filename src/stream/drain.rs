//! Draining: which thread drains a queue, and what it may do there.
//!
//! Draining a device queue issues its items. Any thread may do that: one that submits, one that reaches an event, even
//! a device's own. A host function among its items needs a host thread: a worker of the queue's pool, or a dedicated
//! thread, started on first use if there is no pool that takes single jobs, or if the pool refuses. The submitting
//! thread never runs it, since submission must not block.
//!
//! *A device's thread* runs no host function on any queue, which could block the device for ever: where a pool refuses
//! a queue that a device resumed, or runs it inline in the offering thread, a dedicated thread takes it
//! (`on_host_thread`).
#![forbid(unsafe_code)]

use super::dedicated_thread::Drainable;
use super::notice::tell_put_off;
use super::queue::{DeviceQueue, Items, JoinOutcome, Mode, Queue, QueueItem};
use super::relief::{Submitter, pause, relieve};
use super::traced::TracedItem;
use crate::base::{Error, Ref, Result};
use crate::device::Device;
use crate::sync::{DrainGuard, DrainLock, ambient};
use crate::threadpool::{Job, ThreadPool};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::task::Poll;

/// The role of a draining thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadRole {
    /// All.
    Host,
    /// Issue to a device, but run no host functions or runs.
    Issuer,
}

/// Why draining stopped.
enum Drained {
    All,
    /// The first item is pending.
    Pending,
    /// The first item can continue, on a host thread.
    ForHost,
    /// There are more items, for other threads.
    Enough,
    /// The same, and one of them takes over.
    Relieved,
}

/// The result of issuing an item.
pub(super) enum IssueOutcome<T> {
    Done(T),
    Pending,
    ForHost,
}

impl<T> From<Poll<T>> for IssueOutcome<T> {
    fn from(poll: Poll<T>) -> IssueOutcome<T> {
        match poll {
            Poll::Ready(value) => IssueOutcome::Done(value),
            Poll::Pending => IssueOutcome::Pending,
        }
    }
}

impl Queue {
    /// The event that a pending item waits for has happened.
    pub fn resume(self: &Arc<Self>) {
        if self.drain_lock().resume() {
            self.call();
        }
    }

    /// Schedules a drain: by a thread that waits for the queue, if there is one, else according to the mode.
    pub(super) fn call(self: &Arc<Self>) {
        match self.mode() {
            Mode::Device(device_queue) if !device_queue.is_at_host() => self.drain(ThreadRole::Issuer),
            _ if self.call_waiter() => {}
            Mode::DedicatedThread(thread) => thread.call(Arc::clone(self) as Arc<dyn Drainable>),
            Mode::Device(_) => self.call_host(),
            Mode::Pool | Mode::Synchronous => {
                if !self.call_pool() {
                    self.on_host_thread();
                }
            }
        }
    }

    /// False if there is no waiter that would drain.
    fn call_waiter(&self) -> bool {
        let any = self.claimers().are_there();
        if any {
            self.nudge();
        }
        any
    }

    /// By a waiter that has left: its presence may have kept a caller from calling another thread.
    pub(super) fn pass_on(self: &Arc<Self>) {
        if self.drain_lock().is_called() {
            self.call();
        }
    }

    /// False if there is no pool that takes single jobs, or it refuses.
    fn call_pool(self: &Arc<Self>) -> bool {
        let Some(pool) = self.pool().filter(|pool| pool.can_spawn()) else { return false };
        // ORDERING: SeqCst, after the lock's CALLED: the closure clears the flag before it looks at the lock.
        if self.is_sent().swap(true, SeqCst) {
            return true;
        }
        let accepted = pool.spawn(Arc::clone(self) as Arc<dyn Job>, 0, 0, self.priority());
        if !accepted {
            // A caller that relied on the flag meanwhile relies on this thread now, which drains.
            self.is_sent().store(false, SeqCst);
        }
        accepted
    }

    /// Drains the queue here, or on a dedicated thread if this is a device's thread.
    fn on_host_thread(self: &Arc<Self>) {
        if !ambient::within_device() {
            return self.drain(ThreadRole::Host);
        }
        match self.spare_thread() {
            Ok(thread) => thread.call(Arc::clone(self) as Arc<dyn Drainable>),
            Err(error) => {
                // Then items that have not begun are skipped. One that has begun has no other thread.
                self.fail(error);
                self.drain(if self.device_queue().is_some() { ThreadRole::Issuer } else { ThreadRole::Host });
            }
        }
    }

    /// Calls a thread that may run host functions.
    fn call_host(self: &Arc<Self>) {
        if self.call_pool() {
            return;
        }
        match self.spare_thread() {
            Ok(thread) => thread.call(Arc::clone(self) as Arc<dyn Drainable>),
            Err(error) => {
                // Then it is skipped, which any thread may do.
                self.fail(error);
                self.drain(ThreadRole::Issuer);
            }
        }
    }

    /// Drains the queue in this thread. Where that means host functions, and the thread runs another queue's item, it
    /// begins after that item; issuing runs none, and begins at once, unless the thread issues another queue. An inline
    /// pool and chains of events would otherwise nest without bound.
    pub(super) fn drain(self: &Arc<Self>, role: ThreadRole) {
        DRAINING.with(|here| {
            let is_later = match role {
                ThreadRole::Host => here.is_draining.get(),
                ThreadRole::Issuer => here.is_issuing.get(),
            };
            if is_later {
                return here.later.borrow_mut().push((Arc::clone(self), role));
            }
            here.before_others(|| match role {
                ThreadRole::Host => self.drain_beside_others(),
                ThreadRole::Issuer => {
                    here.is_issuing.set(true);
                    self.drain_here(role);
                    while let Some(queue) = here.next_to_issue() {
                        queue.drain_here(role);
                    }
                    here.is_issuing.set(false);
                }
            });
        });
    }

    /// Drains the queue if its drain lock is free, on top of this thread's current work.
    pub(super) fn drain_here(self: &Arc<Self>, role: ThreadRole) {
        self.drain_until(role, &|| false);
    }

    /// The same, as a host thread, until queues wait for this thread and it has run an item.
    fn drain_beside_others(self: &Arc<Self>) {
        self.drain_awaited(&|| false);
    }

    /// The same, or until there is `enough`. False if the lock was not free.
    pub(super) fn drain_awaited(self: &Arc<Self>, enough: &dyn Fn() -> bool) -> bool {
        let before = self.taken_up();
        self.drain_until(ThreadRole::Host, &|| enough() || are_later() && self.taken_up() > before)
    }

    /// The same, until there is `enough` after an item: called threads do the rest. False if the lock was not free.
    pub(super) fn drain_until(self: &Arc<Self>, role: ThreadRole, enough: &dyn Fn() -> bool) -> bool {
        self.drain_own(role, self.submitted(), enough)
    }

    /// The same; a thread that submits more may take over after the first `own` items.
    pub(super) fn drain_own(self: &Arc<Self>, role: ThreadRole, own: u64, enough: &dyn Fn() -> bool) -> bool {
        let Some(guard) = self.drain_lock().hold() else { return false };
        DRAINING.with(|here| {
            if here.is_draining.get() {
                let drained = self.drain_held(guard, role, own, enough);
                self.leave_to_others(drained);
                return;
            }
            let before = self.taken_up();
            let are_next = || role == ThreadRole::Host && here.are_others() && self.taken_up() > before;
            let drained = self.drain_held(guard, role, own, &|| enough() || are_next());
            // Not on top of this queue: others may wait for it, and its lock is held there.
            here.before_others(|| self.leave_to_others(drained));
        });
        true
    }

    /// Items that no thread has to run or to issue any more.
    fn taken_up(&self) -> u64 {
        self.device_queue().map_or_else(|| self.completed(), DeviceQueue::issued)
    }

    fn drain_held<'a>(
        self: &'a Arc<Self>,
        mut guard: DrainGuard<'a, Items>,
        role: ThreadRole,
        own: u64,
        enough: &dyn Fn() -> bool,
    ) -> Drained {
        let _frame = ambient::enter(ambient::ActiveWork::Queue(self.id()));
        loop {
            let drained = self.drain_items(&mut guard, role, (own, enough));
            if self.device_queue().is_some_and(DeviceQueue::is_abandoned) {
                self.see_off();
            }
            let kept = match drained {
                Drained::All => {
                    drop(guard);
                    if self.has_no_news() { None } else { self.drain_lock().hold() }
                }
                Drained::Relieved => guard.hand_over().err(),
                Drained::Enough => {
                    drop(guard);
                    None
                }
                Drained::Pending | Drained::ForHost => guard.park().err(),
            };
            match kept {
                Some(kept) => guard = kept,
                None => return drained,
            }
        }
    }

    /// Calls who goes on, if another thread does.
    fn leave_to_others(self: &Arc<Self>, drained: Drained) {
        match drained {
            Drained::All | Drained::Relieved => return,
            Drained::Enough => {
                if self.drain_lock().call() {
                    self.call();
                }
                return;
            }
            Drained::ForHost => self.resume(),
            Drained::Pending => {}
        }
        // This queue's waiters may have to wait for another queue now.
        self.nudge();
    }

    /// Takes over from a thread that issues others' items (`relief`). By the submitter of item `number`.
    pub(super) fn relieve(self: &Arc<Self>, device_queue: &DeviceQueue, number: u64) {
        // Inside of a queue's work the other thread may need this one, and a device's thread must not wait.
        if !ambient::within_any_queue() && !ambient::within_device() {
            relieve(&QueueSubmitter { queue: self, device_queue, number, pauses: Cell::new(0) });
        }
    }

    /// Runs an item of it here, or joins in, if it is called and no thread has come: for a thread whose wait depends on
    /// this queue. False if there was nothing to do.
    pub fn help(self: &Arc<Self>) -> bool {
        if ambient::within(ambient::ActiveWork::Queue(self.id()))
            || self.pool().is_some_and(|pool| !pool.may_work_here())
        {
            return false;
        }
        let before = self.completed();
        if self.drain_lock().is_called() && !self.has_own_thread() {
            return self.drain_until(ThreadRole::Host, &|| self.completed() > before);
        }
        self.program_waited_for().is_none() && self.join(true) == JoinOutcome::Worked
    }

    /// Refuses to wait for a stream that the host captures.
    pub(super) fn check_not_captured(&self) -> Result<()> {
        match self.device_queue() {
            Some(device_queue) if device_queue.is_captured()? => Err(Error::precondition(format!(
                "stream '{}' is being captured: what it is given is not done now, and nobody can say how far it is \
                 with what came before",
                self.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Runs one item as far as it goes.
    pub(super) fn step(self: &Arc<Self>, op: &QueueItem) -> Poll<Result<()>> {
        match op {
            QueueItem::Record(mark) => {
                put_off_others(|| mark.reach(self.cause()));
                Poll::Ready(Ok(()))
            }
            // After a failure nothing is waited for.
            QueueItem::Wait(_) if self.cause().is_some() => Poll::Ready(Ok(())),
            QueueItem::Wait(mark) if !mark.is_reached() && mark.subscribe(self) => {
                self.set_parked_on(Arc::downgrade(mark));
                Poll::Pending
            }
            QueueItem::Wait(mark) => {
                self.set_parked_on(Weak::new());
                Poll::Ready(mark.failure().map_or(Ok(()), |origin| Err(self.derived(origin))))
            }
            QueueItem::Work(work) => match self.cause() {
                Some(cause) => {
                    Arc::clone(work).skip(&cause);
                    Poll::Ready(Ok(()))
                }
                None => self.poll(Arc::clone(work)),
            },
            QueueItem::Task(task) => {
                // It was accepted, so the library owns its argument now, whether it runs or is skipped.
                task.adopt();
                Poll::Ready(if self.cause().is_some() { Ok(()) } else { self.named(|| task.run()) })
            }
        }
    }

    /// Runs items in order.
    fn drain_items(
        self: &Arc<Self>,
        guard: &mut DrainGuard<'_, Items>,
        role: ThreadRole,
        (own, enough): (u64, &dyn Fn() -> bool),
    ) -> Drained {
        loop {
            self.take_news(guard);
            let Some(op) = guard.front() else { return Drained::All };
            if enough() {
                return Drained::Enough;
            }
            if let Mode::Device(device_queue) = self.mode() {
                if device_queue.issued() >= own && !device_queue.is_begun() && guard.may_leave() {
                    return Drained::Relieved;
                }
                if matches!(device_queue.is_captured(), Ok(true)) && self.cause().is_none() {
                    // It would become part of the host's capture, and not be executed.
                    self.fail(Error::precondition(format!(
                        "stream '{}' is being captured, and its device had not been given all that came before",
                        self.name()
                    )));
                }
                let traced = self.trace_item(op);
                let working = traced.as_ref().map(TracedItem::work);
                let outcome = self.issue(device_queue, op, role);
                drop(working);
                if let Some(traced) = traced {
                    let failed = matches!(outcome, IssueOutcome::Done(Err(_)));
                    traced.end(failed, !matches!(outcome, IssueOutcome::Done(_)));
                }
                match outcome {
                    IssueOutcome::Pending => return Drained::Pending,
                    IssueOutcome::ForHost => return Drained::ForHost,
                    IssueOutcome::Done(event) => self.issued(device_queue, guard.pop_front(), event),
                }
                continue;
            }
            let traced = self.trace_item(op);
            let working = traced.as_ref().map(TracedItem::work);
            let result = self.step(op);
            drop(working);
            if let Some(traced) = traced {
                traced.end(matches!(result, Poll::Ready(Err(_))), result.is_pending());
            }
            match result {
                Poll::Pending => return Drained::Pending,
                Poll::Ready(Err(error)) => self.fail(error),
                Poll::Ready(Ok(())) => {}
            }
            // The item is dropped before it counts as completed: after a wait, its tensors and callbacks are released.
            drop(guard.pop_front());
            self.complete_one();
            tell_put_off();
        }
    }
}

/// A thread that has put item `number` into a device queue.
struct QueueSubmitter<'a> {
    queue: &'a Arc<Queue>,
    device_queue: &'a DeviceQueue,
    number: u64,
    pauses: Cell<u32>,
}

impl Submitter for QueueSubmitter<'_> {
    type Items = Items;

    fn lock(&self) -> &DrainLock<Items> {
        self.queue.drain_lock()
    }

    fn drain(&self) -> bool {
        self.queue.drain_until(ThreadRole::Issuer, &|| false)
    }

    fn is_elsewhere(&self) -> bool {
        self.lock().is_parked() || self.device_queue.is_begun()
    }

    fn unissued(&self) -> u64 {
        self.queue.submitted().saturating_sub(self.device_queue.issued())
    }

    fn is_issued(&self) -> bool {
        self.device_queue.issued() >= self.number
    }

    fn pause(&self) {
        pause(self.pauses.replace(self.pauses.get() + 1));
    }
}

impl Drainable for Queue {
    fn resume(self: Arc<Self>) {
        Queue::resume(&self);
    }

    fn drain(self: Arc<Self>, on_top: bool) {
        match on_top {
            true => self.drain_here(ThreadRole::Host),
            false => Queue::drain(&self, ThreadRole::Host),
        }
    }

    fn device(&self) -> Option<&Arc<dyn Device>> {
        self.device_queue().map(DeviceQueue::device)
    }
}

impl Job for Queue {
    fn run(self: Arc<Self>, _tag: u64, _index: usize, _pool: &Ref<ThreadPool>) {
        // ORDERING: SeqCst, as in `call_pool`.
        self.is_sent().store(false, SeqCst);
        self.on_host_thread();
    }
}

/// Queues to drain, and in which role.
type Later = SmallVec<[(Arc<Queue>, ThreadRole); 4]>;

/// The state of a thread that drains, and the queues that it has put off. One object, since each access to a
/// thread-local of a shared library is a call.
struct Draining {
    /// Whether it comes to the queues that are put off when its current item is over.
    is_draining: Cell<bool>,
    /// Whether it issues the items of a queue that was called.
    is_issuing: Cell<bool>,
    /// Queues to drain, in this order; of a few no memory is asked for. Emptied and freed before the thread leaves the
    /// library, so that it needs no destructor: registering one allocates on each host thread.
    later: ManuallyDrop<RefCell<Later>>,
}

thread_local! {
    static DRAINING: Draining = const {
        Draining {
            is_draining: Cell::new(false),
            is_issuing: Cell::new(false),
            later: ManuallyDrop::new(RefCell::new(SmallVec::new_const())),
        }
    };
}

impl Draining {
    fn are_others(&self) -> bool {
        !self.later.borrow().is_empty()
    }

    fn next_to_issue(&self) -> Option<Arc<Queue>> {
        let mut later = self.later.borrow_mut();
        let first = later.iter().position(|(_, role)| *role == ThreadRole::Issuer)?;
        Some(later.remove(first).0)
    }

    /// Runs `work`, and then drains the queues that it put off, unless work around it will.
    fn before_others<T>(&self, work: impl FnOnce() -> T) -> T {
        let is_draining = self.is_draining.replace(true);
        let result = work();
        if !is_draining {
            self.run_later();
            self.is_draining.set(false);
        }
        result
    }

    fn run_later(&self) {
        loop {
            // Not borrowed while a queue is drained.
            let next = {
                let mut later = self.later.borrow_mut();
                if later.is_empty() {
                    // Where there were many of them they were on the heap.
                    if later.spilled() {
                        later.shrink_to_fit();
                    }
                    return;
                }
                later.remove(0)
            };
            match next {
                (queue, ThreadRole::Host) => queue.drain_beside_others(),
                (queue, role) => queue.drain_here(role),
            }
        }
    }
}

/// Runs `reach`, which reaches a mark under a drain lock: host functions of the queues that wait for it come later.
pub(super) fn put_off_others(reach: impl FnOnce()) {
    DRAINING.with(|here| {
        let before = here.is_draining.replace(true);
        reach();
        here.is_draining.set(before);
    });
}

/// Runs `work`, and then drains the queues that it put off, unless work around it will.
pub(super) fn before_others<T>(work: impl FnOnce() -> T) -> T {
    DRAINING.with(|here| here.before_others(work))
}

/// Whether queues wait for this thread.
pub(super) fn are_later() -> bool {
    DRAINING.with(Draining::are_others)
}

/// Drains the queues that this thread has put off.
pub(super) fn run_later() {
    DRAINING.with(Draining::run_later);
}
