//! The kernel cache: reuses built-in kernels that were created before with the same settings.
//!
//! *Contents.* A kernel is its type and its settings, nothing else: no engine, no pool, no stream, no name. The host's
//! handle, a `weir_kernel`, is a small object of its own (`engine::BoundKernel`) with the engine, the name and the cost
//! that the host gave, and a reference to the kernel. The cache keeps kernels, not those objects, so it keeps no engine
//! and no pool alive, and two handles share one kernel. Anything that a kernel computes once from its settings (the
//! instruction set, checked and completed numbers) belongs into the kernel, and is then shared with it. Kernels of the
//! host are never cached: two of them are not the same because they look alike.
//!
//! *Key.* The type, the device (its kind and index: engines of one device share), and the operator's descriptor byte by
//! byte, as `Operator::new` has completed it: nothing behind the end of a list of axes, a scale of 0 as the 1 that it
//! means. So a descriptor from an older header and one with garbage behind its rank find the same kernel, and 0 and -0
//! do not. Pool and width are not part of it, as nothing in a kernel depends on them. Attributes: a name and a cost,
//! which stay with the handle; one that changed the kernel would be a setting.
//!
//! *Packed weights* are identified by address. A kernel keeps its weights alive, and they may be large, so the cache
//! only holds a weak reference to such a kernel: the entry finds it as long as it has another owner. That makes the
//! address exact too: other weights can lie at the same address only when the first are gone, and their kernels with
//! them; the entry then finds nothing and is replaced.
//!
//! *Bounds.* At most `capacity` entries; the least recently used goes first. Kernels are dropped outside of the lock.
//! The last engine that is released removes all entries (`clear`), so a host that has released everything finds the
//! memory as it was; there is nothing to do at exit. A child of fork has a cache of its own.
//!
//! *One build for concurrent requests.* A thread that finds neither an entry nor a build in progress registers its own
//! build and builds outside of the lock. A later thread finds the registration. If it is not working for others it
//! waits for the promise. A thread that is inside a task, a queue's item or a node (`ambient`) must not sleep: waiters
//! for the task would wait for a build that may have lost its processor, and on a pool of one thread everything would.
//! A build cannot be shared, so that thread builds the kernel itself. The first to finish counts: it enters its kernel,
//! keeps the promise, and the others drop theirs and take that one. So all hold the same kernel, and nobody waits for
//! the slowest. A build that fails or panics breaks the promise: the waiting threads look again, and one of them
//! builds, and gets the error for its own call. Errors are not cached.
//!
//! A build takes no lock, uses no pool and does not come back here; so a thread that waits for it waits for nothing
//! else. The lock is held for some tens of nanoseconds, like that of an allocator, and a thread that finds it taken may
//! sleep a moment.
//!
//! *Out of memory.* A call that has used the reserve of `memory::heap` must give it back, so no kernel created in it is
//! entered; and the cache releases everything else, as memory is needed elsewhere.
#![forbid(unsafe_code)]

mod key;
mod table;

pub use key::KernelKey;

use super::Kernel;
use crate::base::{Error, Result};
use crate::memory::heap;
use crate::sync::{Global, OnceLock, Promise, ambient};
use crate::trace;
use std::sync::Arc;
use table::{CachedKernel, LruTable};

pub use table::MOST;

const VARIABLE: &str = "WEIR_KERNEL_CACHE_CAPACITY";
const DEFAULT: usize = 1024;

/// A kernel being built: `None` if the build has failed.
type Work = Arc<Promise<Option<Arc<dyn Kernel>>>>;

pub struct KernelCache {
    state: Global<CacheState>,
    /// The default capacity, used until one is set.
    default: fn() -> Result<usize>,
}

struct CacheState {
    table: LruTable,
    under_way: Vec<(KernelKey, Work)>,
    capacity: Option<usize>,
    counts: CacheCounts,
}

/// Counters since the library was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Kernels found.
    pub hits: u64,
    /// Kernels that had to be built.
    pub misses: u64,
    /// Kernels that another thread was building.
    pub shared: u64,
    /// Kernels evicted for others, or for a smaller capacity.
    pub evictions: u64,
}

/// The result of a cache lookup.
enum Found {
    Kernel(Arc<dyn Kernel>),
    /// Another thread is building it.
    UnderWay(Work),
    /// Not found; the caller is registered as its builder.
    Nothing(Work),
    /// The cache is off.
    Off,
}

/// The cache of this process.
pub static CACHE: KernelCache = KernelCache::new(from_environment);

/// This kernel, or one created before with the same key.
pub fn shared(key: &KernelKey, kernel: impl Kernel + 'static) -> Result<Arc<dyn Kernel>> {
    let mut kernel = Some(kernel);
    let mut build = || -> Result<Arc<dyn Kernel>> {
        match kernel.take() {
            Some(kernel) => Ok(Arc::new(kernel)),
            None => Err(Error::internal("a kernel that is built twice")),
        }
    };
    CACHE.get(key, &|| ambient::depth() == 0, &mut || trace::made(0, &mut build, |kernel| kernel.name().to_owned()))
}

fn from_environment() -> Result<usize> {
    static CHOICE: OnceLock<Result<usize, String>> = OnceLock::new();
    let choice = CHOICE.get_or_init(|| match std::env::var_os(VARIABLE) {
        None => Ok(DEFAULT),
        Some(text) => parse(&text.to_string_lossy()),
    });
    choice.clone().map_err(Error::invalid)
}

fn parse(text: &str) -> Result<usize, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|&capacity| capacity <= MOST)
        .ok_or_else(|| format!("the environment variable {VARIABLE} is '{text}', expected 0 to {MOST}"))
}

impl KernelCache {
    pub const fn new(default: fn() -> Result<usize>) -> KernelCache {
        KernelCache { state: Global::new(CacheState::new), default }
    }

    /// The kernel of this key. `may_sleep` is called if another thread is building it; `build` is called at most once.
    pub fn get(
        &self,
        key: &KernelKey,
        may_sleep: &dyn Fn() -> bool,
        build: &mut dyn FnMut() -> Result<Arc<dyn Kernel>>,
    ) -> Result<Arc<dyn Kernel>> {
        let hash = key.hash();
        loop {
            match self.look(key, hash)? {
                Found::Kernel(kernel) => return Ok(kernel),
                Found::Off => return build(),
                Found::Nothing(work) => {
                    let _broken = BuildGuard { cache: self, work };
                    let kernel = build()?;
                    return self.enter(key, hash, kernel);
                }
                Found::UnderWay(work) if may_sleep() => {
                    if let Some(kernel) = work.wait() {
                        self.state.lock().counts.shared += 1;
                        return Ok(kernel);
                    }
                }
                Found::UnderWay(_) => {
                    self.state.lock().counts.misses += 1;
                    return self.enter(key, hash, build()?);
                }
            }
        }
    }

    fn look(&self, key: &KernelKey, hash: u64) -> Result<Found> {
        let default = (self.default)();
        let mut state = self.state.lock();
        let capacity = match state.capacity {
            Some(capacity) => capacity,
            None => default?,
        };
        if capacity == 0 {
            return Ok(Found::Off);
        }
        if let Some(at) = state.table.find(key, hash) {
            if let Some(kernel) = state.table.take_up(at) {
                state.counts.hits += 1;
                return Ok(Found::Kernel(kernel));
            }
            // A weak entry whose kernel is gone: only the entry is left to drop.
            state.table.remove(at);
        }
        if let Some((_, work)) = state.under_way.iter().find(|(other, _)| other == key) {
            return Ok(Found::UnderWay(Arc::clone(work)));
        }
        let work = Work::default();
        state.under_way.push((key.clone(), Arc::clone(&work)));
        state.counts.misses += 1;
        Ok(Found::Nothing(work))
    }

    /// Enters a new kernel, and returns the one that counts.
    fn enter(&self, key: &KernelKey, hash: u64, made: Arc<dyn Kernel>) -> Result<Arc<dyn Kernel>> {
        let words: Box<[u64]> = key.words().into();
        let default = (self.default)().unwrap_or(0);
        let mut state = self.state.lock();
        let capacity = state.capacity.unwrap_or(default);
        let found = state.table.find(key, hash);
        let first = found.and_then(|at| state.table.take_up(at));
        let counts = first.as_ref().unwrap_or(&made);
        let held = match key.has_identity() {
            true => CachedKernel::Seen(Arc::downgrade(counts)),
            false => CachedKernel::Kept(Arc::clone(counts)),
        };
        // Evicted entries, dropped after the lock is released.
        let mut gone = [None, None];
        if first.is_none() && capacity > 0 {
            gone[0] = found.and_then(|at| state.table.remove(at));
            // Without memory for the entry the caller alone keeps the kernel.
            let _ = state.table.insert(key, hash, words, held);
            if state.table.len() > capacity {
                gone[1] = state.table.remove_oldest();
                state.counts.evictions += 1;
            }
        }
        let note = state.under_way.iter().position(|(other, _)| other == key);
        let work = note.map(|at| state.under_way.swap_remove(at).1);
        let short = heap::check().map_err(|error| (error, state.let_go()));
        drop(state);
        let counts = first.unwrap_or(made);
        if let Some(work) = work {
            work.settle(short.is_ok().then(|| Arc::clone(&counts)));
        }
        short.map(|()| counts).map_err(|(error, all)| {
            all.drop_all();
            error
        })
    }

    /// Sets the maximum number of entries.
    pub fn set_capacity(&self, capacity: usize) -> Result<()> {
        if capacity > MOST {
            return Err(Error::out_of_range(format!("capacity is {capacity}, expected 0 to {MOST}")));
        }
        let mut state = self.state.lock();
        state.capacity = Some(capacity);
        if capacity == 0 {
            let all = std::mem::replace(&mut state.table, LruTable::new());
            state.counts.evictions += all.len() as u64;
            drop(state);
            drop(all);
            return Ok(());
        }
        while state.table.len() > state.capacity.unwrap_or(MOST) {
            let gone = state.table.remove_oldest();
            state.counts.evictions += 1;
            drop(state);
            drop(gone);
            state = self.state.lock();
        }
        Ok(())
    }

    /// The maximum number of entries, or the error in the environment variable.
    pub fn capacity(&self) -> Result<usize> {
        let set = self.state.lock().capacity;
        set.map_or_else(self.default, Ok)
    }

    /// The number of entries, and the counters.
    pub fn figures(&self) -> (usize, CacheCounts) {
        let state = self.state.lock();
        (state.table.len(), state.counts)
    }

    /// Releases all kernels.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        let all = std::mem::replace(&mut state.table, LruTable::new());
        drop(state);
        drop(all);
    }
}

impl CacheState {
    fn new() -> CacheState {
        CacheState { table: LruTable::new(), under_way: Vec::new(), capacity: None, counts: CacheCounts::default() }
    }

    /// Moves everything out.
    fn let_go(&mut self) -> Gone {
        Gone {
            _table: std::mem::replace(&mut self.table, LruTable::new()),
            under_way: std::mem::take(&mut self.under_way),
        }
    }
}

/// Former contents of the cache. Builds in progress continue, but nothing waits for them.
struct Gone {
    _table: LruTable,
    under_way: Vec<(KernelKey, Work)>,
}

impl Gone {
    fn drop_all(self) {
        self.under_way.iter().for_each(|(_, work)| {
            work.settle(None);
        });
    }
}

/// Breaks a promise that was not kept: the build has failed, or panics.
struct BuildGuard<'a> {
    cache: &'a KernelCache,
    work: Work,
}

impl Drop for BuildGuard<'_> {
    fn drop(&mut self) {
        if self.work.is_settled() {
            return;
        }
        let mut state = self.cache.state.lock();
        // If the registration is gone, the thread that removed it is about to keep the promise.
        let note = state.under_way.iter().position(|(_, work)| Arc::ptr_eq(work, &self.work));
        let note = note.map(|at| state.under_way.swap_remove(at));
        let gone = heap::check().is_err().then(|| state.let_go());
        drop(state);
        if let Some((_, work)) = note {
            work.settle(None);
        }
        if let Some(gone) = gone {
            gone.drop_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
