//! Thread pools written in Rust, for weir to work on.
//!
//! weir does its work on pools that its host brings. Implement [`Pool`] for yours, and
//! [`ThreadPool::new`](crate::ThreadPool::new) lends it to weir. The border is safe:
//!
//! - A [`Task`] is a value that runs exactly once: [`Task::run`] takes it away, and one that is dropped runs where it
//!   is dropped. A pool that gives it back from [`Pool::schedule`] refuses it.
//! - A panic in your code does not cross into weir: a call that panics counts as its default answer.
//! - Your pool is dropped once, after its last task, and never in one of its own tasks.
//! - A [`Pool::parallel_for`] that returns too early is waited for.
//!
//! Only a leaked task ([`std::mem::forget`]) is not caught. Even then nothing is unsound: weir waits for no task that
//! has not begun, but it will not drop the pool. One of a `parallel_for` without
//! [`asynchronous`](Features::asynchronous) is waited for, for ever.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use weir::ThreadPool;
//! use weir::threadpool::{Pool, Task};
//!
//! /// A thread for each task. Do not try this at work.
//! struct Threads;
//!
//! impl Pool for Threads {
//!     fn num_threads(&self) -> usize {
//!         4
//!     }
//!     fn schedule(&self, task: Task) -> Result<(), Task> {
//!         std::thread::spawn(move || task.run());
//!         Ok(())
//!     }
//! }
//!
//! let pool = ThreadPool::new(Threads)?;
//! let mut squares = vec![0; 100];
//! pool.parallel_chunks(&mut squares, 10, 10_000.0, |chunk, squares| {
//!     for (i, square) in squares.iter_mut().enumerate() {
//!         *square = (10 * chunk + i) * (10 * chunk + i);
//!     }
//! })?;
//! assert_eq!(squares[99], 9801);
//! # Ok::<(), weir::Error>(())
//! ```

mod handle;
mod pool;
mod task;
mod vtable;

pub use handle::ThreadPool;
pub use pool::{Features, Pool};
pub use task::{Hint, Task, Tasks};
pub use vtable::vtable;

/// The vtable that [`vtable`](fn@vtable) fills.
pub use weir_core::abi::weir_threadpool_vtable;
