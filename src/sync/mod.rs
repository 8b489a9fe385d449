//! Cells and protocols between threads. Everything here is small, has an essay where it is subtle, and is the only
//! place besides the border where threads meet raw memory.
//!
//! - `futex`: sleep on a word with a time-out, wake sleepers. Nothing else in the library blocks a thread.
//! - `Mutex`, `Condvar`, `OnceLock`: for lists and errors that are touched only when something fails or is created.
//! - `EventCount`: a counter that others wait for.
//! - `Promise`: a value that one thread makes and others wait for.
//! - `DrainLock`: the consumer's side of a queue; its holder may park.
//! - `Mailbox`: a cell that is empty or full; taking the value takes ownership of it.
//! - `RunLatch`: which workers are in a run, how many nodes are left, which worker closes it.
//! - `Rendezvous` and `Returns`: calls that complete after they were started, and the run that they belong to.
//! - `Keepsake`: a thread-local value that is dropped with its thread, and reports when there is no memory for that.
//! - `Slots`: up to 64 numbered places, claimed and given back without a lock.
//! - `ambient`: which pools and queues the calling thread is working for.
//! - `progress`: what moves only while a thread asks it to; whoever waits asks.
//! - `thread`: threads that the library starts: named, counted, listed.
//! - `Global`: process-wide state under a lock; a child of fork starts with a fresh one.
//! - `environment`: variables that lead to files.
//! - `fork`: whether this process is a child of one that has used the library, and which objects it is then refused.
//!   Protocols that only one room uses stand in that room (docs/internals.md has the list).

pub mod ambient;
pub mod atomic;
mod claim;
mod drain_lock;
pub mod environment;
pub(crate) mod event_count;
pub mod fork;
pub mod futex;
mod global;
mod keepsake;
pub(crate) mod lock;
mod mailbox;
mod pending;
pub mod progress;
mod promise;
mod run_latch;
mod slots;
pub mod thread;

pub use claim::Claim;
pub use drain_lock::{DrainGuard, DrainLock};
pub use event_count::{EventCount, EventWatch};
pub use global::Global;
pub use keepsake::Keepsake;
pub use lock::{Condvar, Mutex, MutexGuard, OnceLock};
pub use mailbox::Mailbox;
pub use pending::{Rendezvous, Returns};
pub use promise::Promise;
pub use run_latch::{Exit, RunEntry, RunLatch};
pub use slots::Slots;

#[cfg(all(test, loom))]
pub(crate) mod models;
#[cfg(all(test, loom))]
mod models_of_pending;
#[cfg(all(test, loom))]
mod models_of_progress;
#[cfg(all(test, loom))]
mod models_of_promises;
#[cfg(all(test, loom))]
mod models_of_rounds;
