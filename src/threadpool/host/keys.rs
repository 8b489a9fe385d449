//! What a watched pool gets instead of pointers: keys, numbers that are never given twice.

use super::Task;
use crate::sync::{Global, MutexGuard};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// Who is told that a watched pool has brought a key.
pub(super) trait Watched: Send + Sync {
    fn came(&self, key: usize, index: i32);
    /// Looks for tasks that the pool has lost.
    fn sweep(&self);
}

/// Bits of a key that number the call; the others number the pool.
const CALL_BITS: u32 = usize::BITS / 8 * 5;

static POOLS: Global<BTreeMap<usize, Weak<dyn Watched>>> = Global::new(BTreeMap::new);

fn pools() -> MutexGuard<'static, BTreeMap<usize, Weak<dyn Watched>>> {
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
        let pool = pools().get(&(key >> CALL_BITS)).and_then(Weak::upgrade);
        if let Some(pool) = pool {
            pool.came(key, index);
        }
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(came)) {
        // Its destructor could panic again.
        std::mem::forget(payload);
    }
}

/// A pool gets this number.
pub(super) fn add(number: usize, pool: Weak<dyn Watched>) {
    pools().insert(number, pool);
}

/// All pools that are watched.
pub(super) fn all() -> Vec<Arc<dyn Watched>> {
    pools().values().filter_map(Weak::upgrade).collect()
}

/// The pool's number is nobody's any more.
pub(super) fn forget(number: usize) {
    pools().remove(&number);
}
