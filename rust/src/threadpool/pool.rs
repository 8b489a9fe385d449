//! The trait for pools.
#![forbid(unsafe_code)]

use super::{Task, Tasks};

/// The abilities of a [`Pool`] besides `num_threads`. Read once, when the weir pool is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// [`Pool::schedule`] takes single tasks. On unless you say otherwise.
    pub schedule: bool,
    /// There is a [`Pool::parallel_for`].
    pub parallel_for: bool,
    /// `parallel_for` may return before its tasks ran.
    pub asynchronous: bool,
    /// A `parallel_for` that waits may be called inside of a task.
    pub nested: bool,
    /// Many small tasks are welcome.
    pub auto_balancing: bool,
    /// [`Pool::in_parallel`] knows the pool's threads.
    pub in_parallel: bool,
    /// [`Pool::thread_index`] knows the pool's threads.
    pub thread_index: bool,
    /// [`Pool::help`] can run a queued task.
    pub help: bool,
    /// [`Pool::max_threads`] is a bound.
    pub max_threads: bool,
}

impl Default for Features {
    fn default() -> Self {
        Features {
            schedule: true,
            parallel_for: false,
            asynchronous: false,
            nested: false,
            auto_balancing: false,
            in_parallel: false,
            thread_index: false,
            help: false,
            max_threads: false,
        }
    }
}

/// A thread pool that weir can work on. weir calls it from any thread, several at a time, and from inside of tasks.
///
/// Functions that [`Pool::features`] does not name are never called. It must name `schedule` or `parallel_for`.
pub trait Pool: Send + Sync + 'static {
    /// How many tasks can run at once, not counting weir's caller. It may change; 0 counts as 1.
    fn num_threads(&self) -> usize;

    /// Queues a task, or runs it at once. `Err` with the task is a refusal: then weir does the work elsewhere.
    fn schedule(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    /// Which of the other functions there are, and what they are like.
    fn features(&self) -> Features {
        Features::default()
    }

    /// Runs all tasks, on any threads, and returns when they have returned (with `asynchronous`: when they are queued).
    /// `Err` with all of the tasks is a refusal; what is dropped, or given back in part, runs here. Without `asynchronous`
    /// a return that comes too early is waited for, so such a task must not be leaked.
    fn parallel_for(&self, tasks: Tasks) -> Result<(), Tasks> {
        Err(tasks)
    }

    /// Whether the calling thread is one of the pool's.
    fn in_parallel(&self) -> bool {
        self.thread_index().is_some()
    }

    /// The calling thread's number in the pool: always the same one, and no other thread's. `None` elsewhere.
    fn thread_index(&self) -> Option<usize> {
        None
    }

    /// Runs at most one queued task in the calling thread, without waiting; whether it did.
    fn help(&self) -> bool {
        false
    }

    /// A bound that `num_threads` never exceeds, and that no index of `thread_index` reaches.
    fn max_threads(&self) -> usize {
        self.num_threads()
    }
}
