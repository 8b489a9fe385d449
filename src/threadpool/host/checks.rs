//! The clauses that a checked pool must keep, and those that it broke.
//!
//! Each call of the pool is a `Record`. The pool gets the record's *key*, a number that is never reused, instead of a
//! pointer. So a pool may call a task too often, too late, or after the end of everything: the lookup of the key finds
//! the call wrong, and no memory of weir's is touched. The last records that ended are kept, so that the clause can be
//! named; of older ones only the key's pool is known.
//!
//! An index is claimed under its record's lock, by the pool's call or by a thread that takes it back from the pool.
//! That makes "exactly once" true for weir's own task whatever the pool does: duplicates are dropped, and weir runs the
//! indices that a blocking `parallel_for` has left out, or that a pool has not begun for `OVERDUE_NS`.
#![forbid(unsafe_code)]

use super::keys::{self, Watched};
use super::record::{Body, Finding, Function, IndexVerdict, Record, TaskOwner};
use super::vtable::{HostCalls, width};
use super::{PoolLife, frame};
use crate::base::time::now_ns;
use crate::sync::{Mutex, OnceLock, ambient, thread};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;

/// A task that the pool accepted and has not begun after this time counts as lost.
pub const OVERDUE_NS: u64 = 5_000_000_000;
/// An index that comes within this time after its `parallel_for` returned is late rather than lost.
const GRACE_NS: u64 = 500_000_000;
/// Records that are kept after their end.
const KEPT: usize = 4096;
/// So many calls of help in a row may run only foreign tasks while weir's wait.
const STREAK: u32 = 100_000;
/// Threads whose index is remembered.
const KNOWN: usize = 4096;

/// The reaction to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// The pool gets no more work.
    Guard,
    /// Everything continues, to collect further findings.
    Observe,
}

#[derive(Default)]
struct Records {
    next: usize,
    open: BTreeMap<usize, Arc<Record>>,
    ended: BTreeMap<usize, Arc<Record>>,
}

/// The threads that run tasks of the pool now.
#[derive(Default)]
struct Threads {
    /// Thread and index; not those that are inside a call of the pool.
    running: Vec<(u64, Option<i32>)>,
    known: HashMap<u64, i32>,
}

pub struct Checks {
    number: usize,
    calls: HostCalls,
    /// Of the pool: the threads of a closed one are not asked for their identity.
    life: OnceLock<Arc<PoolLife>>,
    conduct: Conduct,
    max_threads: Option<i32>,
    /// Most that num_threads ever said.
    widest: AtomicI32,
    records: Mutex<Records>,
    threads: Mutex<Threads>,
    /// The first of each clause, in the order in which they came.
    findings: Mutex<Vec<Finding>>,
    broken: AtomicBool,
    /// A likely mistake of the host's that breaks no clause.
    remark: Mutex<Option<String>>,
    /// When a task was begun last, in nanoseconds of `now_ns`.
    begun_ns: AtomicU64,
    /// Calls of help in a row that claimed to run a foreign task.
    streak: AtomicU32,
    releasing: AtomicBool,
    released: AtomicBool,
}

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checks({}, broken: {})", self.number, self.is_broken())
    }
}

impl Checks {
    pub(super) fn new(number: usize, calls: HostCalls, conduct: Conduct) -> Checks {
        Checks {
            number,
            calls,
            life: OnceLock::new(),
            conduct,
            max_threads: calls.max_threads(),
            widest: AtomicI32::new(1),
            records: Mutex::default(),
            threads: Mutex::default(),
            findings: Mutex::default(),
            broken: AtomicBool::new(false),
            remark: Mutex::new(None),
            begun_ns: AtomicU64::new(0),
            streak: AtomicU32::new(0),
            releasing: AtomicBool::new(false),
            released: AtomicBool::new(false),
        }
    }

    pub(super) fn watch_through(&self, life: Arc<PoolLife>) {
        self.life.get_or_init(|| life);
    }

    // ---- Findings

    pub(in crate::threadpool) fn find(&self, finding: Finding) {
        let mut findings = self.findings.lock();
        if findings.iter().all(|known| known.clause != finding.clause) {
            findings.push(finding);
        }
        // ORDERING: Release pairs with the Acquire in `is_broken`.
        self.broken.store(true, Release);
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Acquire)
    }

    /// Whether the pool gets no more work.
    pub(super) fn is_shut(&self) -> bool {
        self.conduct == Conduct::Guard && self.is_broken()
    }

    /// The first finding of all.
    pub fn first(&self) -> Option<Finding> {
        self.findings.lock().first().cloned()
    }

    /// The first finding of a clause.
    pub fn of_clause(&self, clause: &str) -> Option<Finding> {
        self.findings.lock().iter().find(|finding| finding.clause == clause).cloned()
    }

    // ---- Width

    pub fn num_threads(&self) -> i32 {
        let now = self.calls.num_threads();
        self.widest.fetch_max(now, Relaxed);
        if let Some(max) = self.max_threads.filter(|&max| width(max) < width(now)) {
            self.find(Finding::new("H3", format!("num_threads says {now}, max_threads said {max}")));
        }
        now
    }

    /// Most that num_threads has said.
    pub fn widest(&self) -> i32 {
        self.widest.load(Relaxed)
    }

    /// None if the pool has no such function.
    pub fn max_threads(&self) -> Option<i32> {
        let now = self.calls.max_threads();
        if now != self.max_threads {
            let (before, now) = (self.max_threads.unwrap_or(0), now.unwrap_or(0));
            self.find(Finding::new("H3", format!("max_threads says {now}, and said {before} before")));
        }
        now
    }

    // ---- The calling thread

    pub fn in_parallel(&self) -> Option<bool> {
        self.calls.in_parallel()
    }

    pub fn thread_index(&self) -> Option<i32> {
        self.calls.thread_index()
    }

    pub fn knows_its_threads(&self) -> bool {
        self.calls.knows_its_threads()
    }

    /// A task begins on this thread, which does not call the pool: it must belong to the pool.
    fn enter_thread(&self) {
        let thread = thread::me();
        if self.calls.in_parallel() == Some(false) {
            self.find(Finding::new("H10", "in_parallel says 0 inside a task, on a thread of the pool"));
        }
        let index = self.calls.thread_index();
        let most = self.widest.load(Relaxed).max(self.max_threads.unwrap_or(1));
        let mut threads = self.threads.lock();
        if let Some(index) = index {
            self.look_at_index(&mut threads, thread, index);
        }
        threads.running.push((thread, index));
        let mut on_pool: Vec<u64> = threads.running.iter().map(|&(thread, _)| thread).collect();
        drop(threads);
        on_pool.sort_unstable();
        on_pool.dedup();
        // It may have grown since the last query.
        if on_pool.len() > width(most) && on_pool.len() > width(self.num_threads()) {
            let text = format!("{} threads run tasks at once, num_threads never said more than {most}", on_pool.len());
            self.find(Finding::new("H2", text));
        }
    }

    fn look_at_index(&self, threads: &mut Threads, thread: u64, index: i32) {
        if index < 0 {
            self.find(Finding::new("H10", format!("thread_index says {index} inside a task, on a thread of the pool")));
            return;
        }
        if let Some(max) = self.max_threads.filter(|&max| index >= max) {
            self.find(Finding::new("H3", format!("thread_index says {index}, max_threads said {max}")));
        }
        if threads.running.iter().any(|&(other, of)| other != thread && of == Some(index)) {
            self.find(Finding::new("H10", format!("thread_index says {index} on two threads that run tasks at once")));
        }
        if threads.known.len() >= KNOWN {
            threads.known.clear();
        }
        if let Some(before) = threads.known.insert(thread, index).filter(|&before| before != index) {
            self.find(Finding::new("H10", format!("thread_index says {index} on a thread where it said {before}")));
        }
    }

    fn leave_thread(&self) {
        let thread = thread::me();
        let mut threads = self.threads.lock();
        if let Some(at) = threads.running.iter().rposition(|&(running, _)| running == thread) {
            threads.running.remove(at);
        }
    }

    // ---- Handing over

    pub fn has_schedule(&self) -> bool {
        self.calls.has_schedule()
    }

    pub fn has_parallel_for(&self) -> bool {
        self.calls.has_parallel_for()
    }

    pub fn has_help(&self) -> bool {
        self.calls.has_help()
    }

    pub fn flags(&self) -> u64 {
        self.calls.flags()
    }

    /// Whether parallel_for waits for its tasks.
    pub fn waits(&self) -> bool {
        self.flags() & crate::abi::weir_threadpool_flags::WEIR_THREADPOOL_ASYNCHRONOUS as u64 == 0
    }

    /// Hands over a probe's task. False = refused.
    pub(in crate::threadpool) fn probe_schedule(self: &Arc<Self>, body: Body) -> bool {
        self.schedule(body, TaskOwner::Probe, 0, 0)
    }

    /// Hands over a probe's tasks. False = refused.
    pub(in crate::threadpool) fn probe_parallel_for(self: &Arc<Self>, n: usize, body: Body) -> bool {
        self.parallel_for(n, body, TaskOwner::Probe)
    }

    pub(super) fn schedule(self: &Arc<Self>, body: Body, owner: TaskOwner, cost_ns: u64, priority: i32) -> bool {
        let (key, record) = self.add(Record::new(Function::Schedule, 1, body, owner, true));
        let accepted = {
            let _call = frame::call(self.number);
            self.calls.schedule(keys::task(key), cost_ns, priority)
        };
        self.settle(key, &record, accepted)
    }

    pub(super) fn parallel_for(self: &Arc<Self>, n: usize, body: Body, owner: TaskOwner) -> bool {
        let (key, record) = self.add(Record::new(Function::ParallelFor, n, body, owner, !self.waits()));
        let accepted = {
            let _call = frame::call(self.number);
            self.calls.parallel_for(n, keys::task(key))
        };
        if accepted && self.waits() {
            self.check_return(key, &record);
        }
        self.settle(key, &record, accepted)
    }

    fn add(&self, record: Record) -> (usize, Arc<Record>) {
        let record = Arc::new(record);
        let mut records = self.records.lock();
        let key = keys::key(self.number, records.next);
        records.next = records.next.wrapping_add(1);
        records.open.insert(key, Arc::clone(&record));
        (key, record)
    }

    /// Handles the pool's answer. True if weir must treat it as accepted.
    fn settle(&self, key: usize, record: &Record, accepted: bool) -> bool {
        if accepted {
            record.accept(now_ns());
            return true;
        }
        if record.refuse() {
            self.close(key);
            return false;
        }
        let text = format!("{} refused a call whose tasks it had begun to run", record.function.name());
        self.find(Finding::new("H7", text));
        self.take_over(key, record);
        true
    }

    /// A parallel_for that waits has returned: all its tasks must have.
    fn check_return(&self, key: usize, record: &Record) {
        let (running, waiting) = record.come_back();
        let n = record.len();
        if let Some(index) = running {
            let text = format!("parallel_for returned while index {index} of {n} was running");
            self.find(Finding::new("H6", text));
        }
        if !waiting {
            return;
        }
        let patient = self.of_clause("H5").is_none();
        let start = now_ns();
        while patient && record.is_waiting() && now_ns() - start < GRACE_NS {
            std::thread::sleep(Duration::from_micros(200));
        }
        if let Some(index) = self.take_over(key, record) {
            self.find(Finding::new("H5", format!("parallel_for returned and has not run index {index} of {n}")));
        }
    }

    /// Runs the indices that the pool has not begun (a probe's are given up). Returns the first one.
    fn take_over(&self, key: usize, record: &Record) -> Option<i32> {
        let (taken, body) = record.take_waiting();
        for &index in &taken {
            if let Some(body) = body.as_ref().filter(|_| record.owner == TaskOwner::Weir) {
                body(index);
            }
            if record.end(index) {
                self.close(key);
            }
        }
        taken.first().copied()
    }

    /// Nothing of the record is open any more.
    fn close(&self, key: usize) {
        let mut records = self.records.lock();
        if let Some(record) = records.open.remove(&key) {
            records.ended.insert(key, record);
        }
        let oldest = if records.ended.len() > KEPT { records.ended.pop_first() } else { None };
        drop(records);
        drop(oldest);
    }

    /// A task arrives. Called on any thread, by a pool that may be wrong about it.
    pub(super) fn came(&self, key: usize, index: i32) {
        let inside = frame::came(self.number);
        let record = {
            let records = self.records.lock();
            records.open.get(&key).or_else(|| records.ended.get(&key)).cloned()
        };
        let Some(record) = record else {
            return self
                .find_stray(Finding::new("H4", "a task was run that had ended long before, or was none of weir's"));
        };
        let (body, index) = match record.begin(index) {
            IndexVerdict::Ignore(finding) => return self.find_stray(finding),
            IndexVerdict::Run(body, index, wrong) => {
                if let Some(finding) = wrong {
                    self.find(finding);
                }
                (body, index)
            }
        };
        self.begun_ns.store(now_ns(), Relaxed);
        let open = self.life.get().map(|life| life.door.enter());
        // None within: the pool is closed.
        let asked = !inside && !matches!(open, Some(None));
        if asked {
            self.enter_thread();
        }
        {
            let _task = frame::task(self.number);
            body(index);
            drop(body);
        }
        if asked {
            self.leave_thread();
        }
        drop(open);
        if record.end(index) {
            self.close(key);
        }
    }

    /// A repeated call of a task. Since release was called the pool has no task of weir's.
    fn find_stray(&self, finding: Finding) {
        // Tasks that a closed pool had not begun were taken back, and may still come.
        if finding.clause == "H9" && self.life.get().is_some_and(|life| life.door.is_closed()) {
            return;
        }
        if self.releasing.load(Acquire) && ["H4", "H5"].contains(&finding.clause) {
            return self.find(Finding::new("H13", "a task was run in or after release, which had run before"));
        }
        self.find(finding);
    }

    /// Calls `help`: its answer, and how many of weir's tasks it ran.
    pub(in crate::threadpool) fn help(&self) -> (bool, u32) {
        let call = frame::call(self.number);
        let said = self.calls.help();
        let ran = call.ran();
        drop(call);
        if ran > 1 {
            self.find(Finding::new("H11", format!("help ran {ran} tasks in one call")));
        } else if ran == 1 && !said {
            self.find(Finding::new("H11", "help ran a task and returned 0"));
        }
        if !said || ran > 0 {
            self.streak.store(0, Relaxed);
        } else if self.streak.fetch_add(1, Relaxed) + 1 >= STREAK {
            self.streak.store(0, Relaxed);
            if self.open() > 0 {
                let text = format!("help returned nonzero {STREAK} times in a row and left weir's tasks waiting");
                self.find(Finding::new("H11", text));
            }
        }
        (said, ran)
    }

    // ---- The end

    /// Tasks that the pool has.
    pub fn open(&self) -> usize {
        let records: Vec<_> = self.records.lock().open.values().cloned().collect();
        records.iter().map(|record| record.open()).sum()
    }

    /// Takes back tasks that the pool accepted at least `age_ns` ago and has not begun; gives their number. Runs weir's
    /// here.
    pub fn take_back(&self, age_ns: u64) -> usize {
        let now = now_ns();
        let open: Vec<_> = self.records.lock().open.iter().map(|(&key, record)| (key, Arc::clone(record))).collect();
        let overdue = open.iter().filter(|(_, record)| record.is_overdue(now, age_ns));
        overdue.fold(0, |count, (key, record)| count + usize::from(self.take_over(*key, record).is_some()))
    }

    /// Looks for tasks that are lost.
    pub(super) fn sweep(&self) {
        let Some(oldest) = self.records.lock().open.values().next().cloned() else { return };
        if self.conduct != Conduct::Guard || !oldest.is_overdue(now_ns(), OVERDUE_NS) || ambient::within_any_queue() {
            return;
        }
        let text = format!(
            "{} accepted a task and has not begun it after {} s",
            oldest.function.name(),
            OVERDUE_NS / 1_000_000_000
        );
        self.find(Finding::new("H9", text));
        self.take_back(OVERDUE_NS);
    }

    /// A likely mistake of the host's.
    pub fn remark(&self) -> Option<String> {
        self.remark.lock().clone()
    }

    /// By a thread that has slept for `slept_ns` in a wait for weir's work: notes if the pool has begun no task in that
    /// time, and runs none now.
    pub fn looked_at_by_sleeper(&self, slept_ns: u64) {
        let now = now_ns();
        let open: Vec<_> = self.records.lock().open.values().cloned().collect();
        let waiting = open.iter().filter(|record| record.is_overdue(now, slept_ns)).count();
        let is_running = open.iter().any(|record| record.is_running());
        // ORDERING: Relaxed, as where it is set; a figure for people.
        if waiting == 0 || is_running || now.saturating_sub(self.begun_ns.load(Relaxed)) < slept_ns {
            return;
        }
        let missing = if self.knows_its_threads() {
            ""
        } else {
            ", or who sleeps is a thread that they need (the pool has neither in_parallel nor thread_index)"
        };
        let seconds = slept_ns / 1_000_000_000;
        self.remark.lock().get_or_insert_with(|| {
            format!(
                "H9: a wait has slept for {seconds} s, and the pool has begun none of {waiting} calls that it \
                had accepted: it is late or busy{missing}"
            )
        });
    }

    /// The host's release is about to be called.
    pub(super) fn releasing(&self) {
        self.releasing.store(true, Release);
        if frame::in_task(self.number) {
            self.find(Finding::new("W5", "release is called inside a task of the pool"));
        }
        let open = self.open_of_weir();
        if open > 0 {
            self.find(Finding::new("W5", format!("release is called while {open} tasks are with the pool")));
        }
    }

    fn open_of_weir(&self) -> usize {
        let records: Vec<_> = self.records.lock().open.values().cloned().collect();
        records.iter().filter(|record| record.owner == TaskOwner::Weir && record.is_waiting()).count()
    }

    /// The host's release has returned.
    pub(super) fn released(&self) {
        self.released.store(true, Release);
    }

    pub fn is_released(&self) -> bool {
        self.released.load(Acquire)
    }
}

impl Watched for Checks {
    fn came(&self, key: usize, index: i32) {
        Checks::came(self, key, index);
    }

    fn sweep(&self) {
        Checks::sweep(self);
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        keys::forget(self.number);
    }
}
