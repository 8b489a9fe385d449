//! One type for all pools: who is in it, what it can do, how many helpers it has out.
#![forbid(unsafe_code)]

use super::attr::{self, PoolAttr};
use super::host::{HostVtable, Job, Regions, Task, Tickets};
use super::{builtin, inline, seeded};
use crate::abi::weir_threadpool_flags as F;
use crate::base::object::tag;
use crate::base::time::now_ns;
use crate::base::{Kind, Object, Ref, Result, live};
use crate::sync::{ambient, fork};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};

/// What a kind of pool must provide. All functions may be called from any thread, also from tasks of the pool.
pub trait Backend: Send + Sync + Debug {
    /// OR of weir_threadpool_flags.
    fn flags(&self) -> u64;
    /// Threads that can run tasks at once, at least 1.
    fn num_threads(&self) -> usize;
    /// Upper bound of `num_threads`.
    fn max_threads(&self) -> usize;
    /// Whether `schedule` exists.
    fn has_schedule(&self) -> bool;
    /// Runs the task once, some time; false = refused, and it will not run.
    fn schedule(&self, task: Task, cost_ns: u64, priority: i32) -> bool;
    /// Whether `bulk` exists.
    fn has_bulk(&self) -> bool;
    /// Runs the task for each index below `n`; false = refused, and none will run.
    fn bulk(&self, n: usize, task: Task) -> bool;
    /// Whether the calling thread belongs to the pool, as far as the pool itself knows.
    fn in_parallel(&self) -> bool;
    /// Runs one queued task here, if there is one and the pool can do that.
    fn help(&self) -> bool;
}

/// What is known of a pool beyond its end.
#[derive(Debug, Default)]
pub(in crate::threadpool) struct Life {
    /// Closures that are with the pool: queued or running.
    out: AtomicUsize,
    gone: AtomicBool,
}

impl Life {
    /// A closure has let go of the pool. ORDERING: Release pairs with the Acquire in `Watch::wait`.
    pub(in crate::threadpool) fn closure_left(&self) {
        self.out.fetch_sub(1, Release);
    }
}

/// How long a release waits for closures that are about to leave.
const LEAVING_NS: u64 = 100_000;

/// A thread pool.
#[derive(Debug)]
pub struct ThreadPool {
    id: u64,
    flags: u64,
    /// None only while the pool is being dropped.
    backend: Option<Box<dyn Backend>>,
    life: Arc<Life>,
    pub(in crate::threadpool) tickets: Tickets,
    pub(in crate::threadpool) regions: Regions,
}

impl Kind for ThreadPool {
    const TAG: u32 = tag::THREADPOOL;
    const NAME: &'static str = "threadpool";
    const COUNTER: live::Counter = live::Counter::Threadpools;
}

impl ThreadPool {
    fn over(backend: Box<dyn Backend>) -> Ref<ThreadPool> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        fork::arm();
        Object::shared(ThreadPool {
            id: NEXT.fetch_add(1, Relaxed),
            flags: backend.flags(),
            backend: Some(backend),
            life: Arc::default(),
            tickets: Tickets::default(),
            regions: Regions::default(),
        })
    }

    /// The host's threads.
    pub fn host(vtable: HostVtable) -> Ref<ThreadPool> {
        ThreadPool::over(Box::new(vtable))
    }

    /// The library's own work-stealing pool.
    pub fn builtin(attr: &PoolAttr) -> Result<Ref<ThreadPool>> {
        let threads = attr.num_threads.map_or_else(attr::default_num_threads, Ok)?;
        Ok(ThreadPool::over(Box::new(builtin::Builtin::start(threads, attr.spin_ns)?)))
    }

    /// Everything in the calling thread.
    pub fn inline() -> Ref<ThreadPool> {
        ThreadPool::over(Box::new(inline::Inline))
    }

    /// The pool for tests.
    pub fn seeded(seed: u64, threads: usize) -> Result<Ref<ThreadPool>> {
        Ok(ThreadPool::over(Box::new(seeded::Seeded::start(seed, threads)?)))
    }

    pub(super) fn backend(&self) -> &dyn Backend {
        self.backend.as_deref().unwrap_or(&inline::Inline)
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
        self.backend().num_threads()
    }

    pub fn max_threads(&self) -> usize {
        self.backend().max_threads()
    }

    /// Whether single jobs can be handed over (`spawn`).
    pub fn can_spawn(&self) -> bool {
        let backend = self.backend();
        backend.has_schedule() || (backend.has_bulk() && self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS))
    }

    /// Whether the calling thread works for this pool.
    pub fn in_parallel(&self) -> bool {
        ambient::within(ambient::Work::Pool(self.id)) || self.backend().in_parallel()
    }

    /// Whether a region may be opened on the pool from the calling thread: always if closures are only handed over; a
    /// `parallel_for` that blocks inside a task is for pools that say so.
    pub fn may_nest(&self) -> bool {
        self.can_spawn() || self.has_flag(F::WEIR_THREADPOOL_NESTED) || !self.in_parallel()
    }

    /// Runs one queued task of the pool here.
    pub fn help(&self) -> bool {
        self.backend().help()
    }

    /// How many more helpers make sense now: threads that do not have a closure of weir's already.
    pub fn idle_threads(&self) -> usize {
        self.num_threads().saturating_sub(self.life.out.load(Relaxed))
    }

    pub(in crate::threadpool) fn closure_went_out(&self, count: usize) {
        // ORDERING: Relaxed; a figure for the helper budget, nothing is read on the strength of it.
        self.life.out.fetch_add(count, Relaxed);
    }

    pub(in crate::threadpool) fn closures_were_refused(&self, count: usize) {
        self.life.out.fetch_sub(count, Relaxed);
    }

    /// What outlives the pool by a moment: a closure lets go of the pool first, and then reports here.
    pub(in crate::threadpool) fn life(&self) -> Arc<Life> {
        Arc::clone(&self.life)
    }

    /// Whether `spawn_bulk` is possible, and blocks.
    pub fn has_blocking_bulk(&self) -> bool {
        self.backend().has_bulk() && !self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS)
    }
}

impl Object<ThreadPool> {
    /// Asks the pool to run `job.run(tag)` once. False if it refuses or cannot: then it will not be run.
    pub fn spawn(&self, job: Arc<dyn Job>, tag: u64, cost_ns: u64, priority: i32) -> bool {
        self.tickets.send(self, job, tag, 1, |task| {
            let backend = self.backend();
            if backend.has_schedule() {
                backend.schedule(task, cost_ns, priority)
            } else if self.has_flag(F::WEIR_THREADPOOL_ASYNCHRONOUS) {
                backend.bulk(1, task)
            } else {
                false
            }
        })
    }

    /// Asks the pool to run `job.run(tag)` `n` times, through `parallel_for`. Blocks until all ran, unless the pool
    /// is ASYNCHRONOUS. False if refused: then none will be run.
    pub fn spawn_bulk(&self, job: Arc<dyn Job>, tag: u64, n: usize) -> bool {
        self.tickets.send(self, job, tag, n, |task| self.backend().bulk(n, task))
    }
}

/// Backends whose last reference went inside a task of their own pool. A host's `release` may join its threads, so
/// it must not run there.
static BURIED: Mutex<Vec<(u64, Box<dyn Backend>)>> = Mutex::new(Vec::new());
static ANY_BURIED: AtomicBool = AtomicBool::new(false);

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let inside = ambient::within(ambient::Work::Pool(self.id)) || self.backend().in_parallel();
        if let Some(backend) = self.backend.take().filter(|_| inside) {
            BURIED.lock().unwrap_or_else(|e| e.into_inner()).push((self.id, backend));
            ANY_BURIED.store(true, Release);
        }
        self.life.gone.store(true, Release);
    }
}

/// A look at a pool's end, for a thread that lets go of something that holds the pool.
///
/// A closure whose work is done may still be on its way out and hold the last reference; then a moment's wait is worth it, so that the host's `release` is
/// called in this call and not in some later one.
#[derive(Debug)]
pub struct Watch(Arc<Life>);

impl Watch {
    /// None if no closure is with the pool, or in a task of the pool itself.
    pub fn of(pool: &ThreadPool) -> Option<Watch> {
        let busy = pool.life.out.load(Relaxed) > 0 && !pool.in_parallel();
        busy.then(|| Watch(Arc::clone(&pool.life)))
    }

    /// Waits until the pool is gone or has no closures, for a moment at most.
    pub fn wait(self) {
        let start = now_ns();
        while !self.0.gone.load(Acquire) && self.0.out.load(Acquire) > 0 && now_ns() - start < LEAVING_NS {
            std::hint::spin_loop();
        }
    }
}

/// Lets go of pools that could not be let go of where their last reference went. Called at the end of every call of
/// the API.
pub fn release_buried() {
    // ORDERING: Acquire pairs with the Release above; a late look only means a later release.
    if !ANY_BURIED.load(Acquire) {
        return;
    }
    let ready: Vec<_> = {
        let mut buried = BURIED.lock().unwrap_or_else(|e| e.into_inner());
        let (ready, kept) = std::mem::take(&mut *buried)
            .into_iter()
            .partition(|(id, backend)| !ambient::within(ambient::Work::Pool(*id)) && !backend.in_parallel());
        *buried = kept;
        ANY_BURIED.store(!buried.is_empty(), Release);
        ready
    };
    drop(ready);
}
