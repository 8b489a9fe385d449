//! Thread pools: the host's vtable behind one type, the reference pools, and regions on top of them.
//!
//! A pool can do one or both of two things: run one closure later (`schedule`), or run n closures and wait
//! (`parallel_for`). The rest of the library uses two others: `spawn` (run this job at some time) and `parallel_for`
//! (share this loop). `ThreadPool` derives them:
//!
//! | the host gives             | spawn           | region                                              |
//! |----------------------------|-----------------|-----------------------------------------------------|
//! | schedule                   | schedule        | schedule for each helper, the caller works too      |
//! | parallel_for, ASYNCHRONOUS | parallel_for(1) | parallel_for(1) for each helper, as above           |
//! | parallel_for               | not possible    | parallel_for(helpers + 1), which holds the caller   |
//! | schedule and parallel_for  | schedule        | the one that is measured to be faster               |
//!
//! A pool may refuse a spawn; then the caller does the work itself. Nothing in the library relies on a helper ever
//! coming, on the order in which helpers come, or on more than the calling thread.

mod attr;
mod backend;
mod builtin;
pub mod conformance;
mod costs;
mod door;
mod grid;
mod host;
mod inline;
mod learned;
mod make;
mod measure;
#[cfg(all(test, loom))]
mod models_of_doors;
mod plan;
mod pool;
mod ranges;
mod ring;
mod sites;
mod span;
mod trials;

pub use attr::{MAX_THREADS, ThreadPoolOptions, checked_num_threads, checked_spin_ns, num_processors};
pub use backend::Backend;
pub use costs::{Cost, DispatchKind};
pub use grid::{BoxBody, Grid, MAX_RANK, parallel_nd};
pub use host::group;
pub use host::{
    Checks, Epilogue, HelpAnswer, HelpRequest, HostCall, HostVtable, RawTask, help_region_of, help_wanted, into_ctx,
    parallel_for, parallel_for_then, vtable_of,
};
pub use measure::now as measure;
pub use pool::{Job, PoolEndWatch, ThreadPool, any_buried, help_own, release_buried, within_any};
pub use sites::Level;
pub use span::{MAX_SLOTS, Span};
