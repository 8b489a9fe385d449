//! A host's pool with a watch between it and weir. `checks` says what is watched, and how.

use super::checks::{Checks, Conduct};
use super::record::Owner;
use super::vtable::width;
use super::{HostVtable, Life, Task, frame};
use crate::sync::{Mutex, MutexGuard, ambient};
use crate::threadpool::pool::Backend;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Weak};

/// Bits of a key that number the call; the others number the pool.
const CALL_BITS: u32 = usize::BITS / 8 * 5;

static POOLS: Mutex<BTreeMap<usize, Weak<Checks>>> = Mutex::new(BTreeMap::new());
/// Pools in checking mode that are alive.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

fn pools() -> MutexGuard<'static, BTreeMap<usize, Weak<Checks>>> {
    POOLS.lock()
}

/// What the pool gets for a pointer.
pub(super) fn key(pool: usize, call: usize) -> usize {
    (pool << CALL_BITS) | (call & ((1 << CALL_BITS) - 1))
}

/// The closure with this key.
pub(super) fn task(key: usize) -> Task {
    // SAFETY: `run` takes any key on any thread, any number of times, and does not unwind.
    unsafe { Task::new(run, std::ptr::without_provenance_mut(key)) }
}

/// The one C function that a watched pool gets. Its argument is a key and never followed.
unsafe extern "C" fn run(key: *mut c_void, index: i32) {
    let came = || {
        let key = key.addr();
        // Tasks of a pool that is gone are nobody's.
        let checks = pools().get(&(key >> CALL_BITS)).and_then(Weak::upgrade);
        if let Some(checks) = checks {
            checks.came(key, index);
        }
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(came)) {
        // Its destructor could panic again.
        std::mem::forget(payload);
    }
}

/// The pool's number is nobody's any more.
pub(super) fn forget(number: usize) {
    pools().remove(&number);
}

/// A watched pool.
#[derive(Debug)]
pub struct Checked {
    checks: Arc<Checks>,
    /// None only while it is being dropped.
    host: Option<HostVtable>,
    conduct: Conduct,
}

impl Checked {
    pub fn new(host: HostVtable, conduct: Conduct) -> Checked {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        let checks = Arc::new(Checks::new(number, host.calls(), conduct));
        pools().insert(checks.number(), Arc::downgrade(&checks));
        if conduct == Conduct::Guard {
            GUARDED.fetch_add(1, Relaxed);
        }
        Checked { checks, host: Some(host), conduct }
    }

    pub fn checks(&self) -> &Arc<Checks> {
        &self.checks
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        if !self.checks.is_released() {
            self.checks.releasing();
            drop(self.host.take());
            self.checks.released();
        }
        if self.conduct == Conduct::Guard {
            GUARDED.fetch_sub(1, Relaxed);
        }
    }
}

impl Backend for Checked {
    fn adopt(&self) {
        self.host.iter().for_each(Backend::adopt);
    }

    fn watch_through(&self, life: &Arc<Life>) {
        self.checks.watch_through(Arc::clone(life));
    }

    /// The pool was closed: what it has not begun is nobody's any more.
    fn end(&self) {
        self.checks.take_back(0);
        self.checks.releasing();
        self.host.iter().for_each(Backend::end);
        self.checks.released();
    }

    fn flags(&self) -> u64 {
        self.checks.flags()
    }

    fn num_threads(&self) -> usize {
        width(self.checks.num_threads())
    }

    fn max_threads(&self) -> usize {
        let now = self.num_threads();
        self.checks.max_threads().map_or(now, |max| width(max).max(now))
    }

    fn has_schedule(&self) -> bool {
        self.checks.has_schedule()
    }

    fn schedule(&self, task: Task, cost_ns: u64, priority: i32) -> bool {
        let body = Arc::new(move |index| task.run(index));
        !self.checks.is_shut() && self.checks.schedule(body, Owner::Weir, cost_ns, priority)
    }

    fn has_bulk(&self) -> bool {
        self.checks.has_parallel_for()
    }

    fn bulk(&self, n: usize, task: Task) -> bool {
        let body = Arc::new(move |index| task.run(index));
        !self.checks.is_shut() && self.checks.parallel_for(n, body, Owner::Weir)
    }

    fn in_parallel(&self) -> bool {
        let by_index = || self.checks.thread_index().is_some_and(|index| index >= 0);
        self.checks.in_parallel().unwrap_or_else(by_index)
    }

    fn knows_its_threads(&self) -> bool {
        self.checks.knows_its_threads()
    }

    fn help(&self) -> bool {
        !self.checks.is_shut() && self.checks.help().0
    }
}

/// Whether any pool is in checking mode.
pub fn any_guarded() -> bool {
    GUARDED.load(Relaxed) > 0
}

/// Looks for tasks that pools in checking mode have lost. Runs them, so it must not be called inside a task.
pub fn sweep() {
    if !any_guarded() || frame::busy() || ambient::within_any_pool() {
        return;
    }
    let all: Vec<_> = pools().values().filter_map(Weak::upgrade).collect();
    all.iter().for_each(|checks| checks.sweep());
}
