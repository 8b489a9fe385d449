//! Keys, which a checked pool gets instead of pointers: numbers that are never reused.

use super::RawTask;
use crate::sync::{Global, MutexGuard};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// Receives the keys that a checked pool brings.
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

/// The key that the pool gets in place of a pointer.
pub(super) fn key(pool: usize, call: usize) -> usize {
    (pool << CALL_BITS) | (call & ((1 << CALL_BITS) - 1))
}

/// The closure with this key.
pub(super) fn task(key: usize) -> RawTask {
    // SAFETY: `run` takes any key on any thread, any number of times, and does not unwind.
    unsafe { RawTask::new(run, std::ptr::without_provenance_mut(key)) }
}

/// The one C function that a checked pool gets. Its argument is a key and never dereferenced.
unsafe extern "C" fn run(key: *mut c_void, index: i32) {
    let came = || {
        let key = key.addr();
        // Tasks of a dead pool are ignored.
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

/// Registers a pool under this number.
pub(super) fn add(number: usize, pool: Weak<dyn Watched>) {
    pools().insert(number, pool);
}

/// All checked pools.
pub(super) fn all() -> Vec<Arc<dyn Watched>> {
    pools().values().filter_map(Weak::upgrade).collect()
}

/// Frees the pool's number.
pub(super) fn forget(number: usize) {
    pools().remove(&number);
}
