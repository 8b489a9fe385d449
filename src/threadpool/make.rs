//! Makes pools: with the host's threads, the library's own, or none.
#![forbid(unsafe_code)]

use super::attr::{self, ThreadPoolOptions};
use super::backend::Backend;
use super::host::{self, Checked, Checks, Conduct, HostVtable, Shell, ShellStore, group};
use super::learned::{Family, FamilyKey};
use super::pool::{self, Hand, Job, PoolBackend, ThreadPool};
use super::{builtin, inline, measure};
use crate::base::{Ref, Result};
use crate::sync::fork;
use crate::sync::thread::{ThreadGroup, ThreadOrigin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Shells of ended pools, for reuse.
static STORE: ShellStore<dyn Job> = ShellStore::new();

/// Other work that a finished closure tries, in order, before it leaves the pool's thread.
const HANDS: &[Hand] = &[host::lend_a_hand, group::lend_a_hand];

impl ThreadPool {
    fn next_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Relaxed)
    }

    fn over(id: u64, backend: Box<dyn Backend>) -> Ref<ThreadPool> {
        ThreadPool::with(id, PoolBackend::Other(backend), None, Family::own(id, None))
    }

    fn with(id: u64, behind: PoolBackend, checks: Option<Arc<Checks>>, family: Family) -> Ref<ThreadPool> {
        fork::arm();
        measure::prepare();
        // A pool without `max_threads` may still grow.
        let most_threads = behind.max_threads().max(attr::num_processors()) + 1;
        let shell = Shell::new(&STORE, most_threads);
        behind.watch_through(&shell.life);
        ThreadPool::assemble(id, behind, checks, family, shell, HANDS)
    }

    /// The host's threads.
    pub fn host(vtable: HostVtable, attr: &ThreadPoolOptions) -> Ref<ThreadPool> {
        if attr.checking {
            return ThreadPool::checking(vtable, attr);
        }
        let key = FamilyKey::new(vtable.functions(), vtable.flags(), vtable.num_threads(), attr.costs);
        let family = Family::of(&key, attr.costs, ThreadPool::next_id);
        ThreadPool::with(ThreadPool::next_id(), PoolBackend::Host(vtable), None, family)
    }

    /// The host's threads, in checking mode.
    fn checking(vtable: HostVtable, attr: &ThreadPoolOptions) -> Ref<ThreadPool> {
        let checked = Checked::new(vtable, Conduct::Guard);
        let checks = Arc::clone(checked.checks());
        pool::expect_losses();
        let id = ThreadPool::next_id();
        ThreadPool::with(id, PoolBackend::Other(Box::new(checked)), Some(checks), Family::own(id, attr.costs))
    }

    /// The host's threads, for the conformance kit: findings are collected, and change nothing.
    pub(in crate::threadpool) fn observed(vtable: HostVtable) -> (Ref<ThreadPool>, Arc<Checks>) {
        let checked = Checked::new(vtable, Conduct::Observe);
        let checks = Arc::clone(checked.checks());
        checked.adopt();
        (ThreadPool::over(ThreadPool::next_id(), Box::new(checked)), checks)
    }

    /// The library's own work-stealing pool.
    pub fn builtin(attr: &ThreadPoolOptions) -> Result<Ref<ThreadPool>> {
        let id = ThreadPool::next_id();
        let group = ThreadGroup {
            origin: ThreadOrigin::BuiltinPool,
            name: format!("weir-pool{id}"),
            owner: String::new(),
            pool: id,
        };
        ThreadPool::start(attr, group)
    }

    /// The same, owned by an engine or a kind of engines.
    pub fn builtin_for(
        attr: &ThreadPoolOptions,
        origin: ThreadOrigin,
        name: String,
        owner: String,
    ) -> Result<Ref<ThreadPool>> {
        ThreadPool::start(attr, ThreadGroup { origin, name, owner, pool: ThreadPool::next_id() })
    }

    fn start(attr: &ThreadPoolOptions, group: ThreadGroup) -> Result<Ref<ThreadPool>> {
        let threads = attr.num_threads.map_or_else(attr::default_num_threads, Ok)?;
        let id = group.pool;
        let backend = Box::new(builtin::WorkStealingPool::start(threads, attr.spin_ns, group)?);
        Ok(ThreadPool::with(id, PoolBackend::Other(backend), None, Family::own(id, attr.costs)))
    }

    /// The pool of libweir_testing.
    #[cfg(all(test, not(loom)))]
    pub fn seeded(seed: u64, threads: usize) -> Result<Ref<ThreadPool>> {
        let pool = ThreadPool::host(HostVtable::seeded(seed, threads)?, &ThreadPoolOptions::default());
        pool.adopt();
        Ok(pool)
    }

    /// Everything in the calling thread.
    pub fn inline() -> Ref<ThreadPool> {
        ThreadPool::over(ThreadPool::next_id(), Box::new(inline::Inline))
    }
}
