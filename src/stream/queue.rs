//! An in-order queue. The module's essay says who runs what.
#![forbid(unsafe_code)]

use super::account::{Account, Member};
use super::claimers::Claimers;
use super::dedicated_thread::DedicatedThread;
use super::domain::DomainId;
use super::inbox::Inbox;
use super::latch::Latch;
use super::notice::{Listener, Notice};
use super::resubmit_table::Issuer;
use super::{device_queue, mark};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Fifo, Ref, Result};
use crate::device::Device;
use crate::kernel::Task;
use crate::sync::{DrainGuard, DrainLock, EventCount, Mutex, OnceLock};
use crate::threadpool::ThreadPool;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};
use std::task::Poll;

/// A piece of a queue's work.
pub trait Work: Send + Sync {
    /// Runs it, or goes on after a resume. Pending: it will call `Queue::resume` on `queue` at least once. On a
    /// synchronous queue it must not answer Pending.
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>>;

    /// On a queue whose work a device does: gives it to the device, if that is all there is to it. None: it is to be
    /// polled.
    fn give(&self, _queue: &Arc<Queue>) -> Option<Result<()>> {
        None
    }

    /// On a queue whose work a device does: gives it to the device once more, while earlier times may be under way.
    /// What it has given before was all there is to it. None: it is to be submitted anew.
    fn again(&self, _queue: &Arc<Queue>) -> Option<Result<()>> {
        None
    }

    /// On a queue whose work a device does: whether it is done by the host's hands when the device has got there.
    fn is_hosts(&self) -> bool {
        false
    }

    /// Whether `capture` can be called.
    fn may_be_captured(&self) -> Result<()> {
        Err(Error::new(Code::Unimplemented, "this cannot be captured, as it takes the host each time"))
    }

    /// On a stream of a device's that the host captures: gives the device all that there is to it, to be done as often
    /// as the host has that done.
    fn capture(&self, _queue: &Arc<Queue>) -> Result<()> {
        self.may_be_captured()
    }

    /// Whether a device's stream that does it may take part in a capture of the host's from then on.
    fn may_join_capture(&self) -> bool {
        false
    }

    /// It will not run, because the queue failed before.
    fn skip(self: Arc<Self>, _cause: &Error) {}

    /// On a queue whose work a device does: the device is done with it, and whether it and all before it went well is
    /// known.
    fn over(self: Arc<Self>, _is_well: bool) {}
}

/// What an item of a queue has become that is under way on several threads: others may join in.
pub trait Joinable: Send + Sync {
    /// Works in the part of this number as long as there is something to do; where it may not, begins what has been left
    /// to a pool for too long, and nothing else.
    fn join(self: Arc<Self>, part: u64, may_work: bool) -> Joined;
}

/// What came of joining in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// Something was done.
    Worked,
    /// There was nothing to do; others are at it.
    Others,
    /// Nobody is at it: it waits for something that completes later, or is over.
    Nobody,
}

/// A point in a queue.
pub type Mark = mark::Mark<Queue>;

/// A device's half of a queue.
pub type DeviceQueue = device_queue::DeviceQueue<Op, Arc<dyn Work>>;

/// An item of a queue.
pub enum Op {
    Work(Arc<dyn Work>),
    Task(Arc<dyn Task>),
    Record(Arc<Mark>),
    Wait(Arc<Mark>),
}

/// What whoever drains has: items in order, and on a queue whose work a device does, who gives again what stands.
pub(super) struct Items {
    ops: Fifo<Op>,
    pub(super) giver: Option<Issuer<Arc<dyn Work>>>,
}

impl Deref for Items {
    type Target = Fifo<Op>;

    fn deref(&self) -> &Fifo<Op> {
        &self.ops
    }
}

impl DerefMut for Items {
    fn deref_mut(&mut self) -> &mut Fifo<Op> {
        &mut self.ops
    }
}

/// How items are run.
pub enum Mode {
    /// In the thread that submits them.
    Synchronous,
    /// By whoever the pool sends.
    Pool,
    /// By a thread of the queue's own.
    DedicatedThread(DedicatedThread),
    /// By a device.
    Device(Box<DeviceQueue>),
}

/// What a queue is made from.
#[derive(Debug)]
pub struct QueueAttr {
    pub name: String,
    pub asynchronous: bool,
    pub pool: Option<Ref<ThreadPool>>,
    pub spin_ns: u64,
    pub priority: i32,
}

/// Whose work a queue's is.
pub enum Executor<'a> {
    Host,
    /// On a stream of the device's own, or on one of the host's.
    Device(&'a Arc<dyn Device>, Option<u64>),
}

pub struct Queue {
    id: u64,
    name: String,
    mode: Mode,
    /// See `spare_lane`.
    spare: OnceLock<DedicatedThread>,
    pool: Option<Ref<ThreadPool>>,
    spin_ns: u64,
    priority: i32,
    account: Arc<Account>,
    submitted: AtomicU64,
    /// Shared with those who must know how far the queue got and must not keep it.
    completed: Arc<EventCount>,
    inbox: Inbox<Op>,
    /// Items taken from the inbox and not done.
    turn: DrainLock<Items>,
    latch: Latch,
    /// The queue whose event the first item waits for, or has waited for.
    parked_on: Mutex<Weak<Queue>>,
    /// The number of the program that the first item, a run, waits for a place of; 0 = none. ORDERING: Relaxed; who
    /// waits looks again and again.
    program_waited_for: AtomicU32,
    /// How often the failure of a device's stream was cleared.
    epoch: AtomicU64,
    /// Whether a closure is with the pool that has not come yet: it will do for every call until then.
    is_sent: AtomicBool,
    /// Threads that wait for this queue to get on, and drain it when it is called.
    claimers: Claimers,
    /// The first item, while several threads may be at it.
    shared: Mutex<Option<(Arc<dyn Joinable>, u64)>>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue('{}', {} of {})", self.name, self.completed(), self.submitted())
    }
}

impl Queue {
    /// Makes a queue. An asynchronous one of the host's gets a lane if its pool cannot take single jobs; a device's is
    /// always asynchronous.
    pub fn create(attr: QueueAttr, doer: Executor<'_>, account: Arc<Account>) -> Result<Arc<Queue>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Relaxed);
        let (name, label) = match attr.name {
            none if none.is_empty() => (format!("stream {id}"), id.to_string()),
            name => (name.clone(), name),
        };
        let mut giver = None;
        let mode = if let Executor::Device(device, wrapped) = doer {
            let (line, its_giver) = DeviceQueue::create(device, &name, attr.priority, wrapped)?;
            giver = Some(its_giver);
            Mode::Device(Box::new(line))
        } else if !attr.asynchronous {
            Mode::Synchronous
        } else if attr.pool.as_ref().is_some_and(|pool| pool.can_spawn()) {
            Mode::Pool
        } else {
            Mode::DedicatedThread(DedicatedThread::start(&name, &label)?)
        };
        let queue = Arc::new(Queue {
            id,
            name,
            mode,
            spare: OnceLock::new(),
            pool: attr.pool,
            spin_ns: attr.spin_ns,
            priority: attr.priority,
            account,
            submitted: AtomicU64::new(0),
            completed: Arc::new(EventCount::new()),
            inbox: Inbox::default(),
            turn: DrainLock::new(Items { ops: Fifo::with_capacity(64), giver }),
            latch: Latch::default(),
            parked_on: Mutex::default(),
            program_waited_for: AtomicU32::new(0),
            epoch: AtomicU64::new(0),
            is_sent: AtomicBool::new(false),
            claimers: Claimers::new(),
            shared: Mutex::default(),
        });
        queue.account.add(&queue);
        Ok(queue)
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// The pool that the queue's work may use.
    pub fn pool(&self) -> Option<&Ref<ThreadPool>> {
        self.pool.as_ref()
    }

    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    pub fn is_synchronous(&self) -> bool {
        matches!(self.mode, Mode::Synchronous)
    }

    /// Whether its items are done by a certain thread: the one that submits them, or a lane.
    pub(super) fn has_own_thread(&self) -> bool {
        matches!(self.mode, Mode::Synchronous | Mode::DedicatedThread(_))
    }

    pub(super) fn mode(&self) -> &Mode {
        &self.mode
    }

    pub(super) fn turn(&self) -> &DrainLock<Items> {
        &self.turn
    }

    /// Takes what was submitted meanwhile.
    pub(super) fn take_news(&self, items: &mut Items) {
        self.inbox.take_all(|op| items.push_back(op));
    }

    pub(super) fn push(&self, op: Op) {
        self.inbox.push(op);
    }

    pub(super) fn has_no_news(&self) -> bool {
        self.inbox.is_empty()
    }

    pub(super) fn priority(&self) -> i32 {
        self.priority
    }

    /// Whether its work is run by workers of a pool.
    pub fn is_on_pool(&self) -> bool {
        matches!(self.mode, Mode::Pool)
    }

    /// The device's half, if a device does its work.
    pub fn line(&self) -> Option<&DeviceQueue> {
        match &self.mode {
            Mode::Device(line) => Some(line),
            _ => None,
        }
    }

    /// The thread for what a device's must not do and no pool takes, started with the first such item.
    pub(super) fn spare_lane(&self) -> Result<&DedicatedThread> {
        if self.spare.get().is_none() {
            // If two come here, one thread ends at once.
            let _ = self.spare.set(DedicatedThread::start(&self.name, &self.id.to_string())?);
        }
        self.spare.get().ok_or_else(|| Error::internal("a lane that is not there"))
    }

    /// Tells the listener of what this queue ends.
    pub fn notice(&self, listener: &Arc<dyn Listener>) -> Result<Notice> {
        match self.line() {
            Some(_) => self.account.notice(listener),
            None => Ok(Notice::by_turn(listener)),
        }
    }

    pub(super) fn domain(&self) -> DomainId {
        self.account.domain()
    }

    pub fn submitted(&self) -> u64 {
        // ORDERING: SeqCst, so that a synchronisation in one thread covers what another had submitted before, by
        // whatever order the two know of.
        self.submitted.load(SeqCst)
    }

    /// The count of completed items alone.
    pub fn progress(&self) -> &Arc<EventCount> {
        &self.completed
    }

    pub fn completed(&self) -> u64 {
        self.completed.reached()
    }

    pub fn is_idle(&self) -> bool {
        // Completed first: it can only lag behind.
        let completed = self.completed();
        let submitted = self.submitted();
        completed >= submitted || self.line().is_some_and(|line| self.look(line, submitted))
    }

    /// Whether so many items are completed.
    pub(super) fn has_completed(&self, target: u64) -> bool {
        match self.line() {
            None => self.completed() >= target,
            Some(line) => self.look(line, target),
        }
    }

    pub(super) fn count_submitted(&self) {
        self.submitted.fetch_add(1, SeqCst);
    }

    /// The turn, if nobody has it.
    pub(super) fn try_hold(&self) -> Option<DrainGuard<'_, Items>> {
        self.turn.hold()
    }

    pub(super) fn latch(&self) -> &Latch {
        &self.latch
    }

    pub(super) fn complete_one(&self) {
        self.count_completed(1);
    }

    pub(super) fn count_completed(&self, items: u64) {
        self.completed.advance(items);
    }

    pub(super) fn wait_completed(&self, target: u64, spin_ns: u64, deadline: Deadline) -> bool {
        self.completed.wait(target, spin_ns, deadline)
    }

    /// The queue that this one is parked on, if it is.
    pub(super) fn parked_on(&self) -> Option<Arc<Queue>> {
        let on = self.turn.is_parked().then(|| self.parked_on.lock().upgrade());
        on.flatten()
    }

    pub(super) fn set_parked_on(&self, queue: Weak<Queue>) {
        *self.parked_on.lock() = queue;
    }

    /// Whether the first item waits for what a device does.
    pub(super) fn waits_for_device(&self) -> bool {
        self.line().is_some() || !self.parked_on.lock().ptr_eq(&Weak::new())
    }

    /// Whether there are items that a thread of the host's has to do, or to give to a device.
    pub(super) fn has_more_on_host(&self) -> bool {
        self.line().map_or_else(|| self.completed(), DeviceQueue::issued) < self.submitted()
    }

    /// By the first item: others may join in, or no more.
    pub fn share(&self, item: Option<(Arc<dyn Joinable>, u64)>) {
        let before = std::mem::replace(&mut *self.shared.lock(), item);
        drop(before);
        self.nudge();
    }

    pub(super) fn is_shared(&self) -> bool {
        self.shared.lock().is_some()
    }

    /// Works in the first item, if several threads may be at it (`Joinable::join`).
    pub(super) fn join(&self, may_work: bool) -> Joined {
        let shared = self.shared.lock().clone();
        shared.map_or(Joined::Nobody, |(item, part)| item.join(part, may_work))
    }

    /// What tells that the queue got on, was called, or is parked.
    pub(super) fn progress_gate(&self) -> &EventCount {
        self.line().map_or(&*self.completed, DeviceQueue::issued_gate)
    }

    /// Whoever waits for the queue is to look again.
    pub fn nudge(&self) {
        self.progress_gate().nudge();
    }

    pub(super) fn is_sent(&self) -> &AtomicBool {
        &self.is_sent
    }

    pub(super) fn claimers(&self) -> &Claimers {
        &self.claimers
    }

    /// The program whose runs the first item waits for.
    pub(super) fn program_waited_for(&self) -> Option<u32> {
        Some(self.program_waited_for.load(Relaxed)).filter(|&number| number != 0)
    }

    /// By the first item: it waits for a place of this program, or no more (0).
    pub fn set_program_waited_for(&self, number: u32) {
        self.program_waited_for.store(number, Relaxed);
    }

    pub fn error(&self) -> Option<Error> {
        if let Some(line) = self.line() {
            self.look(line, self.submitted());
        }
        self.latch.error()
    }

    /// What was issued in one epoch was done if anything later in it was.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Refuses new work while the queue has failed, and when its pool is closed.
    pub fn admit(&self) -> Result<()> {
        match self.latch.error() {
            None => self
                .pool
                .as_ref()
                .map_or(Ok(()), |pool| pool.usable())
                .map_err(|error| error.within(format_args!("stream '{}'", self.name))),
            Some(error) => Err(Error::precondition(format!(
                "stream '{}' has failed and takes no work until weir_stream_clear_error: {}",
                self.name,
                error.message()
            ))),
        }
    }

    /// Forgets the failure. What was submitted before stays skipped.
    pub fn clear_error(&self) {
        if let Some(line) = self.line() {
            self.look(line, self.submitted());
            line.stream().clear_error();
            // ORDERING: Relaxed; what is issued before the latch is cleared is skipped, and who issues later sees both.
            self.epoch.fetch_add(1, Relaxed);
        }
        self.latch.clear(self.submitted(), || self.account.failures().clear(self.id));
    }

    /// Keeps the error if it is the queue's first.
    pub(super) fn fail(&self, error: Error) {
        self.latch.set(error, |first| self.account.failures().add(self.id, first.clone()));
    }

    /// Why the item in hand must be skipped, if it must.
    #[inline]
    pub(super) fn cause(&self) -> Option<Error> {
        let before = self.line().map_or_else(|| self.completed(), DeviceQueue::issued);
        self.latch.cause(before + 1)
    }

    /// Runs work that may stay pending.
    pub(super) fn poll(self: &Arc<Self>, work: Arc<dyn Work>) -> Poll<Result<()>> {
        let mut pending = false;
        let result = self.named(|| match work.poll(self) {
            Poll::Ready(result) => result,
            Poll::Pending => {
                pending = true;
                Ok(())
            }
        });
        if pending { Poll::Pending } else { Poll::Ready(result) }
    }

    /// Runs something of the host's or the library's; errors and panics are given the stream's name.
    pub(super) fn named(&self, run: impl FnOnce() -> Result<()>) -> Result<()> {
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            Err(error)
        });
        result.map_err(|error| error.within(format_args!("stream '{}'", self.name)))
    }

    /// The error of a queue that waited for an event of a failed one.
    pub(super) fn derived(&self, origin: &Error) -> Error {
        let text = format!("stream '{}': waited for an event of a failed stream: {}", self.name, origin.message());
        Error::derived(origin, text)
    }
}

impl Member for Queue {
    fn id(&self) -> u64 {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn submitted(&self) -> u64 {
        Queue::submitted(self)
    }

    fn has_completed(&self, target: u64) -> bool {
        Queue::has_completed(self, target)
    }

    fn wait(self: Arc<Self>, target: u64, deadline: Deadline) -> Result<()> {
        Queue::wait(&self, target, deadline)
    }

    fn check_not_captured(&self) -> Result<()> {
        Queue::check_not_captured(self)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.latch.is_failed() {
            self.account.failures().end(self.id);
        }
    }
}
