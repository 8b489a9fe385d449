//! An in-order queue. The module's essay says which thread runs an item.
#![forbid(unsafe_code)]

use super::account::{Account, Member};
use super::claimers::Claimers;
use super::dedicated_thread::DedicatedThread;
use super::domain::DomainId;
use super::inbox::Inbox;
use super::latch::Latch;
use super::listener::Listener;
use super::notice::Notice;
use super::resubmit_table::Resubmitter;
use super::{device_queue, mark};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Fifo, Ref, Result};
use crate::device::Device;
use crate::kernel::{LateFailure, Task};
use crate::sync::{DrainGuard, DrainLock, EventCount, Mutex, OnceLock};
use crate::threadpool::ThreadPool;
use crate::trace::Explained;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};
use std::task::Poll;

/// A piece of a queue's work.
pub trait QueueWork: Send + Sync {
    /// Runs it, or continues after a resume. Pending: it will call `Queue::resume` on `queue` at least once. Never
    /// Pending on a synchronous queue.
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>>;

    /// Device queues only. Submits it to the device, if it needs nothing else. `None`: it must be polled.
    fn give(&self, _queue: &Arc<Queue>) -> Option<Result<()>> {
        None
    }

    /// Device queues only. Re-issues this work while earlier submissions may still be in flight. `None` if it cannot be
    /// repeated and must be submitted again.
    fn again(&self, _queue: &Arc<Queue>) -> Option<Result<()>> {
        None
    }

    /// Device queues only. Whether a host thread runs it when the device has reached it.
    fn is_hosts(&self) -> bool {
        false
    }

    /// Whether `capture` can be called.
    fn may_be_captured(&self) -> Result<()> {
        Err(Error::new(Code::Unimplemented, "this cannot be captured, as it takes the host each time"))
    }

    /// Captured device streams only. Submits all of it to the device, to be executed with each launch of the capture.
    fn capture(&self, _queue: &Arc<Queue>) -> Result<()> {
        self.may_be_captured()
    }

    /// Whether it may make its device stream join a capture of the host's.
    fn may_join_capture(&self) -> bool {
        false
    }

    /// It will not run, because the queue failed earlier.
    fn skip(self: Arc<Self>, _cause: &Error) {}

    /// Device queues only. The device has completed it; `is_well` if it and all earlier items succeeded.
    fn over(self: Arc<Self>, _is_well: bool) {}
}

/// A queue item that runs on several threads: others may join in.
pub trait Joinable: Send + Sync {
    /// Works in part number `part` as long as there is work. Without `may_work`, only begins work that a pool has left
    /// for too long.
    fn join(self: Arc<Self>, part: u64, may_work: bool) -> JoinOutcome;
}

/// The result of `join`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinOutcome {
    /// Something was done.
    Worked,
    /// There was nothing to do; other threads are working.
    Others,
    /// No thread is working: it waits for a later completion, or is over.
    Nobody,
}

/// A point in a queue.
pub type Mark = mark::Mark<Queue>;

/// The device's part of a queue.
pub type DeviceQueue = device_queue::DeviceQueue<QueueItem, Arc<dyn QueueWork>>;

/// An item of a queue.
pub enum QueueItem {
    Work(Arc<dyn QueueWork>),
    Task(Arc<dyn Task>),
    Record(Arc<Mark>),
    Wait(Arc<Mark>),
}

/// The draining thread's data: items in order, and on a device queue the resubmitter.
pub(super) struct Items {
    ops: Fifo<QueueItem>,
    pub(super) resubmitter: Option<Resubmitter<Arc<dyn QueueWork>>>,
}

impl Deref for Items {
    type Target = Fifo<QueueItem>;

    fn deref(&self) -> &Fifo<QueueItem> {
        &self.ops
    }
}

impl DerefMut for Items {
    fn deref_mut(&mut self) -> &mut Fifo<QueueItem> {
        &mut self.ops
    }
}

/// How items are run.
pub enum Mode {
    /// In the thread that submits them.
    Synchronous,
    /// By workers of the pool.
    Pool,
    /// By a thread of the queue's own.
    DedicatedThread(DedicatedThread),
    /// By a device.
    Device(Box<DeviceQueue>),
}

/// The attributes of a new queue.
#[derive(Debug)]
pub struct QueueAttr {
    pub name: String,
    pub asynchronous: bool,
    pub pool: Option<Ref<ThreadPool>>,
    pub spin_ns: u64,
    pub priority: i32,
}

/// The executor of a queue's items.
pub enum Executor<'a> {
    Host,
    /// On a stream of the device's own, or on one of the host's.
    Device(&'a Arc<dyn Device>, Option<u64>),
}

pub struct Queue {
    id: u64,
    name: String,
    mode: Mode,
    /// See `spare_thread`.
    spare: OnceLock<DedicatedThread>,
    pool: Option<Ref<ThreadPool>>,
    spin_ns: u64,
    priority: i32,
    account: Arc<Account>,
    submitted: AtomicU64,
    /// Shared with observers that must not keep the queue alive.
    completed: Arc<EventCount>,
    inbox: Inbox<QueueItem>,
    /// Items taken from the inbox and not completed.
    drain_lock: DrainLock<Items>,
    latch: Latch,
    /// The mark that the first item waits for, or has waited for.
    parked_on: Mutex<Weak<Mark>>,
    /// The number of the program for whose run limit the first item, a run, waits; 0 = none. ORDERING: Relaxed; waiters
    /// poll it.
    program_waited_for: AtomicU32,
    /// How often the failure of a device's stream was cleared.
    epoch: AtomicU64,
    /// Whether a closure is queued in the pool: it serves every call until it runs.
    is_sent: AtomicBool,
    /// Threads that wait for this queue's progress, and drain it when it is called.
    claimers: Claimers,
    /// The first item, while several threads may work in it.
    shared: Mutex<Option<(Arc<dyn Joinable>, u64)>>,
    /// The part that traces know.
    explained: Explained,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue('{}', {} of {})", self.name, self.completed(), self.submitted())
    }
}

impl Queue {
    /// Makes a queue. An asynchronous host queue gets a dedicated thread if its pool cannot take single jobs; a device
    /// queue is always asynchronous.
    pub fn create(attr: QueueAttr, executor: Executor<'_>, account: Arc<Account>) -> Result<Arc<Queue>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Relaxed);
        let (name, label) = match attr.name {
            none if none.is_empty() => (format!("stream {id}"), id.to_string()),
            name => (name.clone(), name),
        };
        let mut resubmitter = None;
        let mode = if let Executor::Device(device, wrapped) = executor {
            let (device_queue, its_resubmitter) = DeviceQueue::create(device, &name, attr.priority, wrapped)?;
            resubmitter = Some(its_resubmitter);
            Mode::Device(Box::new(device_queue))
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
            drain_lock: DrainLock::new(Items { ops: Fifo::with_capacity(64), resubmitter }),
            latch: Latch::default(),
            parked_on: Mutex::default(),
            program_waited_for: AtomicU32::new(0),
            epoch: AtomicU64::new(0),
            is_sent: AtomicBool::new(false),
            claimers: Claimers::new(),
            shared: Mutex::default(),
            explained: Explained::default(),
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

    pub(super) fn explained(&self) -> &Explained {
        &self.explained
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

    /// Whether a fixed thread runs its items: the submitting one, or a dedicated one.
    pub(super) fn has_own_thread(&self) -> bool {
        matches!(self.mode, Mode::Synchronous | Mode::DedicatedThread(_))
    }

    pub(super) fn mode(&self) -> &Mode {
        &self.mode
    }

    pub(super) fn drain_lock(&self) -> &DrainLock<Items> {
        &self.drain_lock
    }

    /// Takes newly submitted items from the inbox.
    pub(super) fn take_news(&self, items: &mut Items) {
        self.inbox.take_all(|op| items.push_back(op));
    }

    pub(super) fn push(&self, op: QueueItem) {
        self.inbox.push(op);
    }

    pub(super) fn has_no_news(&self) -> bool {
        self.inbox.is_empty()
    }

    pub(super) fn priority(&self) -> i32 {
        self.priority
    }

    /// Whether workers of a pool run its work.
    pub fn is_on_pool(&self) -> bool {
        matches!(self.mode, Mode::Pool)
    }

    /// The device's part, if it is a device queue.
    pub fn device_queue(&self) -> Option<&DeviceQueue> {
        match &self.mode {
            Mode::Device(device_queue) => Some(device_queue),
            _ => None,
        }
    }

    /// The thread for host functions that no pool takes, started with the first such item.
    pub(super) fn spare_thread(&self) -> Result<&DedicatedThread> {
        if self.spare.get().is_none() {
            // If two threads race here, the loser's thread ends at once.
            let _ = self.spare.set(DedicatedThread::start(&self.name, &self.id.to_string())?);
        }
        self.spare.get().ok_or_else(|| Error::internal("a thread that is not there"))
    }

    /// A notice that tells the listener of this queue's completions.
    pub fn notice(&self, listener: Listener) -> Result<Notice> {
        match self.device_queue() {
            Some(_) => self.account.notice(listener),
            None => Ok(Notice::by_drainer(listener)),
        }
    }

    pub(super) fn domain(&self) -> DomainId {
        self.account.domain()
    }

    pub fn submitted(&self) -> u64 {
        // ORDERING: SeqCst, so that a synchronisation in one thread covers another thread's earlier submissions, by any
        // order that the two know of.
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
        // `completed` is read first: it can only lag behind.
        let completed = self.completed();
        let submitted = self.submitted();
        completed >= submitted || self.device_queue().is_some_and(|device_queue| self.look(device_queue, submitted))
    }

    /// Whether the first `target` items are completed.
    pub(super) fn has_completed(&self, target: u64) -> bool {
        match self.device_queue() {
            None => self.completed() >= target,
            Some(device_queue) => self.look(device_queue, target),
        }
    }

    pub(super) fn count_submitted(&self) -> u64 {
        self.submitted.fetch_add(1, SeqCst) + 1
    }

    /// The drain lock, if it is free.
    pub(super) fn try_hold(&self) -> Option<DrainGuard<'_, Items>> {
        self.drain_lock.hold()
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

    /// The queue that this one is parked on, if that must do something first: a mark that is reached, or that a device
    /// has, needs no queue.
    pub(super) fn parked_on(&self) -> Option<Arc<Queue>> {
        let mark = self.drain_lock.is_parked().then(|| self.parked_on.lock().upgrade()).flatten()?;
        if mark.is_on_device() || mark.is_reached() { None } else { mark.queue().upgrade() }
    }

    pub(super) fn set_parked_on(&self, mark: Weak<Mark>) {
        *self.parked_on.lock() = mark;
    }

    /// Whether the first item waits for a device.
    pub(super) fn waits_for_device(&self) -> bool {
        self.device_queue().is_some() || self.parked_on.lock().strong_count() > 0
    }

    /// Whether there are items that a host thread must run, or issue to a device.
    pub(super) fn has_more_on_host(&self) -> bool {
        self.device_queue().map_or_else(|| self.completed(), DeviceQueue::issued) < self.submitted()
    }

    /// By the first item: others may join in, or (`None`) no longer.
    pub fn share(&self, item: Option<(Arc<dyn Joinable>, u64)>) {
        let before = std::mem::replace(&mut *self.shared.lock(), item);
        drop(before);
        self.nudge();
    }

    pub(super) fn is_shared(&self) -> bool {
        self.shared.lock().is_some()
    }

    /// Works in the first item, if several threads may (`Joinable::join`).
    pub(super) fn join(&self, may_work: bool) -> JoinOutcome {
        let shared = self.shared.lock().clone();
        shared.map_or(JoinOutcome::Nobody, |(item, part)| item.join(part, may_work))
    }

    /// The event count that advances when the queue progresses, is called, or parks.
    pub(super) fn changes(&self) -> &EventCount {
        self.device_queue().map_or(&*self.completed, DeviceQueue::issued_count)
    }

    /// Makes the queue's waiters look again.
    pub fn nudge(&self) {
        self.changes().nudge();
    }

    pub(super) fn is_sent(&self) -> &AtomicBool {
        &self.is_sent
    }

    pub(super) fn claimers(&self) -> &Claimers {
        &self.claimers
    }

    /// The program for whose run limit the first item waits.
    pub(super) fn program_waited_for(&self) -> Option<u32> {
        Some(self.program_waited_for.load(Relaxed)).filter(|&number| number != 0)
    }

    /// By the first item: it waits for this program's run limit, or no longer (0).
    pub fn set_program_waited_for(&self, number: u32) {
        self.program_waited_for.store(number, Relaxed);
    }

    pub fn error(&self) -> Option<Error> {
        if let Some(device_queue) = self.device_queue() {
            self.look(device_queue, self.submitted());
        }
        self.latch.error()
    }

    /// An item issued in one epoch was executed if any later one in it was.
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

    /// Forgets the failure. Earlier submissions stay skipped.
    pub fn clear_error(&self) {
        if let Some(device_queue) = self.device_queue() {
            self.look(device_queue, self.submitted());
            device_queue.stream().clear_error();
            // ORDERING: Relaxed; items issued before the latch is cleared are skipped, and a later issuer sees both.
            self.epoch.fetch_add(1, Relaxed);
        }
        self.latch.clear(self.submitted(), || self.account.failures().clear(self.id));
    }

    /// Keeps the error if it is the queue's first.
    pub(super) fn fail(&self, error: Error) {
        self.latch.set(error, |first| self.account.failures().add(self.id, first.clone()));
    }

    /// Why the current item must be skipped, if it must.
    #[inline]
    pub(super) fn cause(&self) -> Option<Error> {
        let before = self.device_queue().map_or_else(|| self.completed(), DeviceQueue::issued);
        self.latch.cause(before + 1)
    }

    /// Runs work that may stay pending.
    pub(super) fn poll(self: &Arc<Self>, work: Arc<dyn QueueWork>) -> Poll<Result<()>> {
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

    /// Runs a function of the host's or the library's; adds the stream's name to errors and panics.
    pub(super) fn named(&self, run: impl FnOnce() -> Result<()>) -> Result<()> {
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            Err(error)
        });
        result.map_err(|error| error.within(format_args!("stream '{}'", self.name)))
    }

    /// The error for a queue that waited for an event of a failed one.
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
}

/// A call of it on a device has failed, which the device does not know.
impl LateFailure for Queue {
    fn fail(&self, error: Error) {
        Queue::fail(self, error.within(format_args!("stream '{}'", self.name)));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.latch.is_failed() {
            self.account.failures().end(self.id);
        }
    }
}
