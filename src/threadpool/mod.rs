//! Thread pools: the host's vtable behind one type, the reference pools, and regions on top of them.
//!
//! A pool can do one or both of two things: run one closure later (`schedule`), or run n closures and wait
//! (`parallel_for`). The rest of the library asks for two others: `spawn` (somebody, run this job some time) and
//! `parallel_for` (share this loop). `ThreadPool` derives them:
//!
//! | the host gives                | spawn                    | region                                                      |
//! |-------------------------------|--------------------------|-------------------------------------------------------------|
//! | schedule                      | schedule                 | spawn helpers, the caller works too                         |
//! | parallel_for, ASYNCHRONOUS    | parallel_for(1)          | parallel_for(helpers), the caller works too, weir waits      |
//! | parallel_for                  | not possible             | parallel_for(helpers + 1), from the caller                   |
//!
//! A pool may refuse a spawn; then whoever asked does the work itself. Nothing in the library relies on a helper
//! ever coming, on the order in which helpers come, or on more than the calling thread.

mod attr;
mod builtin;
mod host;
mod inline;
mod pool;
mod ring;
mod seeded;

pub use attr::{MAX_THREADS, PoolAttr, checked_num_threads, checked_spin_ns, num_processors};
pub use host::{DEFAULT_HOP_NS, HostVtable, Job, MAX_SLOTS, Span, Task, parallel_for};
pub use pool::{Backend, ThreadPool, Watch, release_buried};
