//! Thread pools written in Rust, for weir.
//!
//! weir does its work on pools that its host brings as a vtable of C functions (`docs/threadpool.md` is the contract).
//! This crate is the same vtable as a safe trait: implement [`Pool`] for your pool, and [`create`] makes a weir pool of
//! it. What could go wrong at the border cannot:
//!
//! - A [`Task`] is a value that runs exactly once: [`Task::run`] takes it away, and one that is dropped runs where it
//!   is dropped. Giving it back from [`Pool::schedule`] is how a pool refuses.
//! - A panic in your code does not cross into weir: a call that panics counts as its default answer.
//! - Your pool is dropped once, after its last task, and never in one of its own tasks.
//!
//! Only leaking a task ([`std::mem::forget`]) is not caught. Even then nothing is unsound: weir waits for no task that
//! has not begun, but it will not drop the pool.
//!
//! ```
//! use weir_threadpool::{Pool, Task};
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
//! let pool = weir_threadpool::create(Threads)?;
//! let squares: Vec<_> = (0..100).map(|_| std::sync::atomic::AtomicU64::new(0)).collect();
//! pool.parallel_for(100, 10_000.0, |items, _slot| {
//!     for i in items {
//!         squares[i].store((i * i) as u64, std::sync::atomic::Ordering::Relaxed);
//!     }
//! })?;
//! assert_eq!(squares[99].load(std::sync::atomic::Ordering::Relaxed), 9801);
//! # Ok::<(), weir_threadpool::Error>(())
//! ```
//!
//! The crate contains weir, with the allocator that weir counts with, so a program that uses it has one weir. To pass a
//! pool to a `libweir.so` that somebody else opened, give them the result of [`vtable`].

mod handle;
mod pool;
mod task;
mod vtable;

pub use handle::{Error, ThreadPool};
pub use pool::{Features, Pool};
pub use task::{Hint, Task, Tasks};
pub use vtable::{create, vtable};

/// The vtable that [`vtable`](fn@vtable) fills.
pub use weir_core::abi::weir_threadpool_vtable;
