//! One type for all pools: who is in it, what it can do, how many helpers it has out.
#![forbid(unsafe_code)]

use super::backend::Backend;
use super::costs::{Cost, Way};
use super::door::Door;
use super::host::group::Crew;
use super::host::{self, Checks, HostVtable, Life, Regions, Shell, Task, Tickets};
use super::inline;
use super::learned::{Family, Learned};
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

/// Something that a pool's thread can do for the library. It must not panic; if it does, the panic ends here and
/// the job counts as done.
pub trait Job: Send + Sync {
    /// `pool` is the one that was asked; `index` counts the closures of one `parallel_for`.
    fn run(self: Arc<Self>, tag: u64, index: usize, pool: &Ref<ThreadPool>);
}

/// Work of some kind that is wanted of any thread that the pool has: does some of it, within the budget. True if there
/// was room in the budget for that.
pub type Hand = fn(&Ref<ThreadPool>) -> bool;

/// A pool's functions. The host's stand here themselves, so that a pool of a call needs no memory.
#[derive(Debug)]
pub(super) enum Behind {
    Host(HostVtable),
    Other(Box<dyn Backend>),
}

impl Deref for Behind {
    type Target = dyn Backend;

    fn deref(&self) -> &(dyn Backend + 'static) {
        match self {
            Behind::Host(vtable) => vtable,
            Behind::Other(backend) => &**backend,
        }
    }
}

/// After how long a sleep a wait looks whether a pool in checking mode does anything.
const LOOK_NS: u64 = 1_000_000_000;

/// How long a release waits for closures that are about to leave.
const LEAVING_NS: u64 = 100_000;

/// A thread pool. The alignment tells the heap that it is one, which it keeps for the next.
#[derive(Debug)]
#[repr(align(64))]
pub struct ThreadPool {
    id: u64,
    flags: u64,
    /// None only while the pool is being dropped.
    behind: Option<Behind>,
    /// What a pool in checking mode is watched with.
    checks: Option<Arc<Checks>>,
    family: Family,
    hands: &'static [Hand],
    /// Last, so that it is kept for another pool when nothing of this one is left.
    shell: Shell<dyn Job>,
}

const _: () = assert!(
    align_of::<Object<ThreadPool>>() == object::KEPT_ALIGN
        && align_of::<Object<ThreadPool>>() + size_of::<Object<ThreadPool>>() == object::KEPT_SIZE,
    "object::KEPT_SIZE is not the size of a pool with its counts"
);

impl Kind for ThreadPool {
    const TAG: u32 = tag::THREADPOOL;
    const NAME: &'static str = "threadpool";
    const COUNTER: live::Counter = live::Counter::Threadpools;
}

impl ThreadPool {
    /// A pool of these parts.
    pub(super) fn assemble(
        id: u64,
        behind: Behind,
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

    /// For a host's pool: its creation can't fail any more, so its context is the library's to release.
    pub fn adopt(&self) {
        self.backend().adopt();
    }

    /// For what asks the host nothing; the others go through `ask`.
    pub(super) fn backend(&self) -> &dyn Backend {
        self.behind.as_deref().unwrap_or(&inline::Inline)
    }

    /// Asks something of the host's functions. Once the pool is closed the answer is `closed`, and they are left alone.
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

    pub(in crate::threadpool) fn regions(&self) -> &Regions {
        &self.shell.regions
    }

    pub(in crate::threadpool) fn crew(&self) -> &Crew {
        &self.shell.crew
    }

    /// What is known of this pool and its like.
    #[inline]
    pub(in crate::threadpool) fn learned(&self) -> &Learned {
        self.family.learned()
    }

    /// The number of all pools like this one: what they learn, they learn together.
    pub fn family(&self) -> u64 {
        self.family.id()
    }

    /// The first clause of docs/threadpool.md that the pool broke, and how; else what looks as if one will be. None
    /// outside of checking mode.
    pub fn broken_clause(&self) -> Option<String> {
        let checks = self.checks.as_ref()?;
        checks.first().map(|finding| finding.to_string()).or_else(|| checks.remark())
    }

    /// Sleeps in a wait for work that the pool may have: `sleep` does until the deadline, and says whether that has
    /// come. A pool in checking mode is looked at meanwhile.
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
        !self.has_flag(F::WEIR_THREADPOOL_OWN_THREADS_ONLY) || self.in_parallel()
    }

    /// Whether a call that waits for tasks of the pool may be made from the calling thread.
    pub fn may_block(&self) -> bool {
        self.has_flag(F::WEIR_THREADPOOL_NESTED) || !self.in_parallel()
    }

    /// Whether helpers may be asked for from the calling thread: always if closures are only handed over; a
    /// `parallel_for` that blocks inside a task is for pools that say so.
    pub fn may_nest(&self) -> bool {
        self.can_spawn() || self.may_block()
    }

    /// Runs one queued task of the pool here.
    pub fn help(&self) -> bool {
        self.ask(false, |backend| backend.help())
    }

    /// How many more helpers make sense now: threads that do not have a closure of weir's already.
    pub fn idle_threads(&self) -> usize {
        self.num_threads().saturating_sub(self.shell.life.budget.out())
    }

    /// Takes up to `wanted` helpers from the budget of a pool of `width` threads. Each is then sent (`spawn_taken`,
    /// `spawn_bulk_taken`, or by a region), and is given back when it has done its work; or it is given back at once.
    pub fn take_helpers(&self, wanted: usize, width: usize) -> usize {
        self.shell.life.budget.take(wanted, width)
    }

    pub fn give_back_helpers(&self, count: usize) {
        self.shell.life.budget.give_back(count);
    }

    /// What bringing a helper costs, as it is known now, while the pool is hot and in the cheaper way that it has.
    pub fn cost(&self) -> Cost {
        let bulk_only = !self.can_spawn();
        let single = self.learned().costs.get(Way::Single, true);
        let bulk = self.learned().costs.get(Way::Bulk, true);
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

    /// What outlives the pool by a moment: a closure lets go of the pool first, and then reports here.
    pub(in crate::threadpool) fn life(&self) -> Arc<Life> {
        Arc::clone(&self.shell.life)
    }

    /// Whether `spawn_bulk` is possible, and blocks.
    pub fn has_blocking_bulk(&self) -> bool {
        self.backend().has_bulk() && !self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS)
    }
}

impl ThreadPool {
    /// Offers a single closure to the pool; false if it refuses.
    pub(in crate::threadpool) fn offer(&self, task: Task, cost_ns: u64, priority: i32) -> bool {
        self.ask(false, |backend| {
            if backend.has_schedule() {
                backend.schedule(task, cost_ns, priority)
            } else {
                self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS) && backend.bulk(1, task)
            }
        })
    }

    /// Offers a closure for each index below `n` to the pool's `parallel_for`.
    pub(in crate::threadpool) fn offer_bulk(&self, task: Task, n: usize) -> bool {
        self.ask(false, |backend| backend.bulk(n, task))
    }

    /// Counts closures that no thread was free for, or the caller's own part.
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

    /// Lets nobody call the host any more, waits until nobody does, and ends the pool. What was begun and what is owed
    /// is waited for; helpers that come later find the door closed.
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
        // ORDERING: AcqRel; one of those who close it at once sees to the end, and the others see that done.
        if !life.ending.swap(true, AcqRel) {
            self.backend().end();
            life.ended.advance(1);
        } else if !life.ended.wait(1, CLOSE_SPIN_NS, deadline) {
            return late("its release");
        }
        Ok(())
    }
}

/// Backends whose last reference went inside a task of their own pool. A host's `release` may join its threads, so
/// it must not run there.
static BURIED: Global<Vec<Buried>> = Global::new(Vec::new);
static ANY_BURIED: AtomicBool = AtomicBool::new(false);

struct Buried {
    pool: u64,
    behind: Behind,
    /// The pool counts as alive until the host's `release` has returned.
    _counted: live::Counted,
}

/// The pools alive that know their threads, by their ids.
static LIVE: Global<Vec<(u64, Weak<Object<ThreadPool>>)>> = Global::new(Vec::new);

/// Whether the calling thread belongs to any pool, as far as pools know their threads. Asks all of them: for threads
/// that are about to sleep.
pub fn within_any() -> bool {
    if ambient::within_any_pool() {
        return true;
    }
    // A host's function is called without the lock, and the last reference goes without it.
    let pools: SmallVec<[Ref<ThreadPool>; 8]> =
        LIVE.lock().iter().filter_map(|(_, pool)| Weak::upgrade(pool)).collect();
    pools.iter().any(|pool| pool.host_says_in_parallel())
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        LIVE.lock().retain(|(id, _)| *id != self.id);
        // Of a pool that was closed nothing is left that could be released.
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

/// A look at a pool's end, for a thread that lets go of something that holds the pool.
///
/// A closure whose work is done may still be on its way out and hold the last reference; then a moment's wait is
/// worth it, so that the host's `release` is called in this call and not in some later one.
#[derive(Debug)]
pub struct Watch {
    pool: Weak<Object<ThreadPool>>,
    life: Arc<Life>,
}

impl Watch {
    /// None if no closure is with the pool, or in a task of the pool itself.
    pub fn of(pool: &Ref<ThreadPool>) -> Option<Watch> {
        let life = &pool.shell.life;
        // A closed pool has been released; who comes late finds nothing of the host's.
        let busy = life.closures.load(Relaxed) > 0 && !life.door.is_closed() && !pool.in_parallel();
        busy.then(|| Watch { pool: Arc::downgrade(pool), life: Arc::clone(life) })
    }

    /// Waits until the pool is gone, for a moment at most, if nobody holds it but closures: each of them has one
    /// reference, which it lets go of before it reports.
    pub fn wait(self) {
        let (life, start) = (&self.life, now_ns());
        let is_ending = || !life.gone.load(Acquire) && self.pool.strong_count() <= life.closures.load(Acquire);
        while is_ending() && life.closures.load(Acquire) > 0 && now_ns() - start < LEAVING_NS {
            std::hint::spin_loop();
        }
    }
}

/// A pool in checking mode is made: the end of each call of the API looks for tasks that it has lost.
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

/// Lets go of pools that could not be let go of where their last reference went, and takes back what pools in checking
/// mode have lost. Called at the end of every call of the API.
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
