//! One type for all pools: its backend, abilities and budget of helpers.
#![forbid(unsafe_code)]

use super::backend::Backend;
use super::costs::{Cost, DispatchKind};
use super::door::Door;
use super::host::group::Crew;
use super::host::{self, Checks, HostVtable, ParallelRegions, PoolLife, RawTask, Shell, Tickets};
use super::inline;
use super::learned::{Family, FamilyData};
use crate::abi::weir_threadpool_flags as F;
use crate::base::object::{self, tag};
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Kind, Object, Ref, Result, live};
use crate::sync::{Global, ambient};
use smallvec::SmallVec;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Weak};

/// Work that a pool's thread can run for the library. It must not panic; if it does, the panic is caught and the job
/// counts as done.
pub trait Job: Send + Sync {
    /// `pool` is the one that was asked; `index` counts the closures of one `parallel_for`.
    fn run(self: Arc<Self>, tag: u64, index: usize, pool: &Ref<ThreadPool>);
}

/// Does some pending work of one kind that any thread of the pool may do, within the budget. True if the budget had
/// room.
pub type Hand = fn(&Ref<ThreadPool>) -> bool;

/// A pool's functions. The host's are stored inline, so that a pool for one call needs no allocation.
#[derive(Debug)]
pub(super) enum PoolBackend {
    Host(HostVtable),
    Other(Box<dyn Backend>),
}

impl Deref for PoolBackend {
    type Target = dyn Backend;

    fn deref(&self) -> &(dyn Backend + 'static) {
        match self {
            PoolBackend::Host(vtable) => vtable,
            PoolBackend::Other(backend) => &**backend,
        }
    }
}

/// After how long a sleep a wait checks the progress of a pool in checking mode.
const LOOK_NS: u64 = 1_000_000_000;

/// How long a release waits for closures that are about to leave.
const LEAVING_NS: u64 = 100_000;

/// A thread pool. The alignment identifies it to the heap, which keeps the block for the next one.
#[derive(Debug)]
#[repr(align(64))]
pub struct ThreadPool {
    id: u64,
    flags: u64,
    /// `None` only during the drop.
    behind: Option<PoolBackend>,
    /// The checker of a pool in checking mode.
    checks: Option<Arc<Checks>>,
    family: Family,
    hands: &'static [Hand],
    /// Last, so that it goes to the next pool when all else of this one is dropped.
    shell: Shell<dyn Job>,
}

const _: () = {
    let (size, align) = object::block::<ThreadPool>();
    assert!(size == object::KEPT[0].0 && align == object::KEPT[0].1, "object::KEPT has not the block of a pool");
};

impl Kind for ThreadPool {
    const TAG: u32 = tag::THREADPOOL;
    const NAME: &'static str = "threadpool";
    const COUNTER: live::Counter = live::Counter::Threadpools;
}

impl ThreadPool {
    /// A pool of these parts.
    pub(super) fn assemble(
        id: u64,
        behind: PoolBackend,
        checks: Option<Arc<Checks>>,
        family: Family,
        shell: Shell<dyn Job>,
        hands: &'static [Hand],
    ) -> Ref<ThreadPool> {
        let knows_its_threads = behind.knows_its_threads();
        let flags = behind.flags();
        let pool = Object::shared(ThreadPool { id, flags, behind: Some(behind), checks, family, hands, shell });
        if knows_its_threads {
            LIVE.lock().push((id, Arc::downgrade(&pool)));
        }
        pool
    }

    /// For a host's pool: its creation can't fail any more, so the library owns its context.
    pub fn adopt(&self) {
        self.backend().adopt();
    }

    /// For calls that do not reach the host; others go through `ask`.
    pub(super) fn backend(&self) -> &dyn Backend {
        self.behind.as_deref().unwrap_or(&inline::Inline)
    }

    /// Calls the host's functions. Once the pool is closed it returns `closed` without calling them.
    #[inline]
    fn ask<R>(&self, closed: R, ask: impl FnOnce(&dyn Backend) -> R) -> R {
        match self.shell.life.door.enter() {
            Some(_inside) => ask(self.backend()),
            None => closed,
        }
    }

    pub(in crate::threadpool) fn tickets(&self) -> &Tickets<dyn Job> {
        &self.shell.tickets
    }

    pub(in crate::threadpool) fn door(&self) -> &Door {
        &self.shell.life.door
    }

    pub(in crate::threadpool) fn hands(&self) -> &'static [Hand] {
        self.hands
    }

    pub(in crate::threadpool) fn regions(&self) -> &ParallelRegions {
        &self.shell.regions
    }

    pub(in crate::threadpool) fn crew(&self) -> &Crew {
        &self.shell.crew
    }

    /// The data learned about this pool's family.
    #[inline]
    pub(in crate::threadpool) fn learned(&self) -> &FamilyData {
        self.family.learned()
    }

    /// The number of this pool's family, which shares all learned data.
    pub fn family(&self) -> u64 {
        self.family.id()
    }

    /// The first clause of docs/threadpool.md that the pool broke, and how; else a suspicion. `None` outside of
    /// checking mode.
    pub fn broken_clause(&self) -> Option<String> {
        let checks = self.checks.as_ref()?;
        checks.first().map(|finding| finding.to_string()).or_else(|| checks.remark())
    }

    /// Sleeps in a wait for work that the pool may have: `sleep` sleeps until its deadline, and says whether the work
    /// is done. Checks a pool in checking mode meanwhile.
    pub fn watched(&self, deadline: Deadline, sleep: impl Fn(Deadline) -> bool) -> bool {
        let Some(checks) = &self.checks else { return sleep(deadline) };
        loop {
            if sleep(deadline.earlier(Deadline::after(LOOK_NS))) {
                return true;
            }
            if deadline.is_past() {
                return false;
            }
            checks.looked_at_by_sleeper(LOOK_NS);
            host::sweep();
        }
    }

    /// Fails if the pool broke a clause.
    pub fn intact(&self) -> Result<()> {
        match &self.checks {
            Some(checks) if checks.is_broken() => Err(Error::precondition(format!(
                "threadpool breaks clause {}; the work is done all the same",
                self.broken_clause().unwrap_or_default()
            ))),
            _ => Ok(()),
        }
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn flags(&self) -> u64 {
        self.flags
    }

    pub fn has_flag(&self, flag: F) -> bool {
        self.flags & flag as u64 != 0
    }

    pub fn num_threads(&self) -> usize {
        self.ask(1, |backend| backend.num_threads())
    }

    pub fn max_threads(&self) -> usize {
        self.ask(1, |backend| backend.max_threads())
    }

    /// Whether single jobs can be handed over (`spawn`).
    pub fn can_spawn(&self) -> bool {
        let backend = self.backend();
        backend.has_schedule() || (backend.has_bulk() && self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS))
    }

    /// Whether the calling thread works for this pool.
    pub fn in_parallel(&self) -> bool {
        ambient::within(ambient::ActiveWork::Pool(self.id)) || self.host_says_in_parallel()
    }

    /// Whether the calling thread belongs to the pool, as far as the pool itself knows.
    pub(in crate::threadpool) fn host_says_in_parallel(&self) -> bool {
        self.ask(false, |backend| backend.in_parallel())
    }

    /// Whether the calling thread may do work that was given to the pool.
    pub fn may_work_here(&self) -> bool {
        self.is_for_all() || self.in_parallel()
    }

    /// Whether every thread may.
    pub fn is_for_all(&self) -> bool {
        !self.has_flag(F::WEIR_THREADPOOL_OWN_THREADS_ONLY)
    }

    /// Whether a call that waits for tasks of the pool may be made from the calling thread.
    pub fn may_block(&self) -> bool {
        self.has_flag(F::WEIR_THREADPOOL_NESTED) || !self.in_parallel()
    }

    /// Whether the calling thread may ask for helpers: always if closures are only handed over; a blocking
    /// `parallel_for` inside a task needs a pool that declares it.
    pub fn may_nest(&self) -> bool {
        self.can_spawn() || self.may_block()
    }

    /// Runs one queued task of the pool here.
    pub fn help(&self) -> bool {
        self.ask(false, |backend| backend.help())
    }

    /// How many more helpers make sense now: threads without a closure of weir's.
    pub fn idle_threads(&self) -> usize {
        self.num_threads().saturating_sub(self.shell.life.budget.out())
    }

    /// Takes up to `wanted` helpers from the budget of a pool of `width` threads. Each is then sent (`spawn_taken`,
    /// `spawn_bulk_taken`, or by a region) and given back after its work, or given back at once.
    pub fn take_helpers(&self, wanted: usize, width: usize) -> usize {
        self.shell.life.budget.take(wanted, width)
    }

    pub fn give_back_helpers(&self, count: usize) {
        self.shell.life.budget.give_back(count);
    }

    /// The current cost of bringing a helper, for a hot pool and in its cheaper way.
    pub fn cost(&self) -> Cost {
        let bulk_only = !self.can_spawn();
        let single = self.learned().costs.get(DispatchKind::Single, true);
        let bulk = self.learned().costs.get(DispatchKind::Bulk, true);
        if bulk_only || (self.has_blocking_bulk() && bulk.worth() < 0.9 * single.worth()) { bulk } else { single }
    }

    /// The smallest loop that can be worth a helper, in nanoseconds.
    pub fn worth_ns(&self) -> f32 {
        self.learned().costs.worth_ns()
    }

    pub(in crate::threadpool) fn closures_went_out(&self, count: usize) {
        // ORDERING: Relaxed; the sender holds a reference to the pool of its own.
        self.shell.life.closures.fetch_add(count, Relaxed);
    }

    /// Outlives the pool by a moment: a closure drops the pool first, and then reports here.
    pub(in crate::threadpool) fn life(&self) -> Arc<PoolLife> {
        Arc::clone(&self.shell.life)
    }

    /// Whether `spawn_bulk` is possible, and blocks.
    pub fn has_blocking_bulk(&self) -> bool {
        self.backend().has_bulk() && !self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS)
    }
}

impl ThreadPool {
    /// Offers a single closure to the pool; false if it refuses.
    pub(in crate::threadpool) fn offer(&self, task: RawTask, cost_ns: u64, priority: i32) -> bool {
        self.ask(false, |backend| {
            if backend.has_schedule() {
                backend.schedule(task, cost_ns, priority)
            } else {
                self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS) && backend.bulk(1, task)
            }
        })
    }

    /// Offers a closure for each index below `n` to the pool's `parallel_for`.
    pub(in crate::threadpool) fn offer_bulk(&self, task: RawTask, n: usize) -> bool {
        self.ask(false, |backend| backend.bulk(n, task))
    }

    /// Counts closures sent without a free thread, or the caller's own part.
    pub(in crate::threadpool) fn add_to_budget(&self, count: usize) {
        self.shell.life.budget.add(count);
    }
}

/// How long `close` looks around before it sleeps.
const CLOSE_SPIN_NS: u64 = 20_000;

impl ThreadPool {
    /// "threadpool 7".
    fn label(&self) -> String {
        format!("threadpool {}", self.id)
    }

    /// Fails if the pool was closed.
    #[inline]
    pub fn usable(&self) -> Result<()> {
        if self.shell.life.door.is_closed() { Err(self.closed()) } else { Ok(()) }
    }

    #[cold]
    fn closed(&self) -> Error {
        Error::precondition(format!("{} is closed (weir_threadpool_close)", self.label()))
    }

    /// Stops calls of the host, waits until none is in progress, and ends the pool. Waits for closures that have begun
    /// or are owed; later helpers find the door closed.
    pub fn close(&self, deadline: Deadline) -> Result<()> {
        if ambient::within_device() || self.in_parallel() {
            return Err(Error::precondition(format!(
                "{} cannot be closed inside of a task of its own, or on a thread that a device needs",
                self.label()
            )));
        }
        let life = &self.shell.life;
        life.door.close();
        let late = |what: &str| {
            let text = format!("{} is closed to new work, and the time to wait for {what} has passed", self.label());
            Err(Error::new(Code::DeadlineExceeded, text))
        };
        if !life.door.wait_until_empty(CLOSE_SPIN_NS, deadline) {
            return late("what it runs");
        }
        // ORDERING: AcqRel; of concurrent closers one ends the pool, and the others see that done.
        if !life.ending.swap(true, AcqRel) {
            self.backend().end();
            life.ended.advance(1);
        } else if !life.ended.wait(1, CLOSE_SPIN_NS, deadline) {
            return late("its release");
        }
        Ok(())
    }
}

/// Backends whose last reference was dropped inside a task of their own pool. A host's `release` may join its threads,
/// so it must not run there.
static BURIED: Global<Vec<Buried>> = Global::new(Vec::new);
static ANY_BURIED: AtomicBool = AtomicBool::new(false);

struct Buried {
    pool: u64,
    behind: PoolBackend,
    /// The pool counts as alive until the host's `release` has returned.
    _counted: live::Counted,
}

/// Live pools that know their threads, by id.
static LIVE: Global<Vec<(u64, Weak<Object<ThreadPool>>)>> = Global::new(Vec::new);

/// Whether the calling thread belongs to any pool, as far as pools know their threads. Asks all of them: for threads
/// that are about to sleep.
pub fn within_any() -> bool {
    if ambient::within_any_pool() {
        return true;
    }
    live_pools().iter().any(|pool| pool.host_says_in_parallel())
}

/// Runs one queued task of a pool that the calling thread belongs to, if the host of one has `help`.
pub fn help_own() -> bool {
    live_pools().iter().any(|pool| pool.in_parallel() && pool.help())
}

/// Host functions are called, and the last reference is dropped, without the lock.
fn live_pools() -> SmallVec<[Ref<ThreadPool>; 8]> {
    LIVE.lock().iter().filter_map(|(_, pool)| Weak::upgrade(pool)).collect()
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        LIVE.lock().retain(|(id, _)| *id != self.id);
        // A closed pool has nothing left to release.
        let is_over = self.shell.life.ending.load(Acquire);
        let inside = !is_over && (ambient::within(ambient::ActiveWork::Pool(self.id)) || self.backend().in_parallel());
        if let Some(behind) = self.behind.take().filter(|behind| inside && !behind.may_end_inside()) {
            let _counted = live::Counted::new(live::Counter::Threadpools);
            BURIED.lock().push(Buried { pool: self.id, behind, _counted });
            ANY_BURIED.store(true, Release);
        }
        self.shell.life.gone.store(true, Release);
    }
}

/// Waits for a pool's end, for a thread that drops something that holds the pool.
///
/// A finished closure may still be on its way out and hold the last reference. A moment's wait is worth it, so that the
/// host's `release` is called in this call and not in a later one.
#[derive(Debug)]
pub struct PoolEndWatch {
    pool: Weak<Object<ThreadPool>>,
    life: Arc<PoolLife>,
}

impl PoolEndWatch {
    /// `None` if the pool has no closure, or in a task of the pool itself.
    pub fn of(pool: &Ref<ThreadPool>) -> Option<PoolEndWatch> {
        let life = &pool.shell.life;
        // A closed pool has been released; later closures touch nothing of the host's.
        let busy = life.closures.load(Relaxed) > 0 && !life.door.is_closed() && !pool.in_parallel();
        busy.then(|| PoolEndWatch { pool: Arc::downgrade(pool), life: Arc::clone(life) })
    }

    /// Waits until the pool is gone, for a moment at most, if only closures hold it: each drops its one reference
    /// before it reports.
    pub fn wait(self) {
        let (life, start) = (&self.life, now_ns());
        let is_ending = || !life.gone.load(Acquire) && self.pool.strong_count() <= life.closures.load(Acquire);
        while is_ending() && life.closures.load(Acquire) > 0 && now_ns() - start < LEAVING_NS {
            std::hint::spin_loop();
        }
    }
}

/// A pool in checking mode is made: from now on the end of each API call looks for lost tasks.
pub(super) fn expect_losses() {
    let _buried = BURIED.lock();
    ANY_BURIED.store(true, Release);
}

/// Whether `release_buried` may have something to do.
#[inline]
pub fn any_buried() -> bool {
    // ORDERING: Acquire pairs with the Release where it is set; a late look only means a later release.
    ANY_BURIED.load(Acquire)
}

/// Releases the pools that could not be released where their last reference was dropped, and takes back tasks that
/// pools in checking mode have lost. Called at the end of every API call.
pub fn release_buried() {
    host::sweep();
    let ready: Vec<_> = {
        let mut buried = BURIED.lock();
        let (ready, kept) = std::mem::take(&mut *buried)
            .into_iter()
            .partition(|it: &Buried| !ambient::within(ambient::ActiveWork::Pool(it.pool)) && !it.behind.in_parallel());
        *buried = kept;
        ANY_BURIED.store(!buried.is_empty() || host::any_guarded(), Release);
        ready
    };
    drop(ready);
}
