//! What a kind of pool must provide.
#![forbid(unsafe_code)]

use super::host::{Life, Task};
use std::fmt::Debug;
use std::sync::Arc;

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
    /// Whether `in_parallel` says more than "no".
    fn knows_its_threads(&self) -> bool {
        true
    }
    /// Runs one queued task here, if there is one and the pool can do that.
    fn help(&self) -> bool;
    /// The pool exists: from now on what belongs to it is released with it.
    fn adopt(&self) {}
    /// What the pool's functions are asked through, for a watch that asks by itself.
    fn watch_through(&self, _life: &Arc<Life>) {}
    /// Nobody calls the pool any more, though closures may come still. What belongs to it is released, once.
    fn end(&self) {}
    /// Whether the pool may be dropped inside one of its own tasks.
    fn may_end_inside(&self) -> bool {
        false
    }
}
