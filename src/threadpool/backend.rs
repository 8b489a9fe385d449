//! The interface of a kind of pool.
#![forbid(unsafe_code)]

use super::host::{PoolLife, RawTask};
use std::fmt::Debug;
use std::sync::Arc;

/// A kind of pool. All functions may be called from any thread, also from tasks of the pool.
pub trait Backend: Send + Sync + Debug {
    /// OR of weir_threadpool_flags.
    fn flags(&self) -> u64;
    /// Threads that can run tasks at once, at least 1.
    fn num_threads(&self) -> usize;
    /// Upper bound of `num_threads`.
    fn max_threads(&self) -> usize;
    /// Whether `schedule` exists.
    fn has_schedule(&self) -> bool;
    /// Runs the task once, at some time; false = refused, and it will not run.
    fn schedule(&self, task: RawTask, cost_ns: u64, priority: i32) -> bool;
    /// Whether `bulk` exists.
    fn has_bulk(&self) -> bool;
    /// Runs the task for each index below `n`; false = refused, and none will run.
    fn bulk(&self, n: usize, task: RawTask) -> bool;
    /// Whether the calling thread belongs to the pool, as far as the pool itself knows.
    fn in_parallel(&self) -> bool;
    /// Whether `in_parallel` can be true.
    fn knows_its_threads(&self) -> bool {
        true
    }
    /// Runs one queued task here, if there is one and the pool can do that.
    fn help(&self) -> bool;
    /// The pool exists: from now on it owns the host's context.
    fn adopt(&self) {}
    /// The gate to the pool's functions, for a checker that calls them itself.
    fn watch_through(&self, _life: &Arc<PoolLife>) {}
    /// Ends the pool: nobody calls it any more, though closures may come still. Releases the context, once.
    fn end(&self) {}
    /// Whether the pool may be dropped inside one of its own tasks.
    fn may_end_inside(&self) -> bool {
        false
    }
}
