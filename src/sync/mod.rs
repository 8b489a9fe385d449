//! Cells and protocols between threads. Everything here is small, has an essay where it is subtle, and is the only
//! place besides the border where threads meet raw memory.
//!
//! - `futex`: sleep on a word with a time-out, wake sleepers. Nothing else in the library blocks a thread.
//! - `Mutex`, `Condvar`, `OnceLock`: for lists and errors that are touched only when something fails or is created.
//! - `Gate`: a counter that others wait for.
//! - `Turn`: who drains a queue.
//! - `Inbox`: many producers, one consumer, no lock, and no allocation up to 64 waiting items.
//! - `HandOff`: a cell that is empty or full.
//! - `Tokens`: who is in a run, how much of it is left, who closes it.
//! - `Ranges`: a loop's units, taken at home and stolen elsewhere.
//! - `Budget`: how many helpers are out.
//! - `Board`: where more of them are wanted.
//! - `Keepsake`: a value of each thread's own that is dropped with it.
//! - `ambient`: which pools and queues the calling thread is working for.
//! - `thread`: threads that the library starts: named, counted, listed.
//! - `fork`: whether this process is a child of the one that made the first object.

pub mod ambient;
pub mod atomic;
mod board;
mod budget;
mod claim;
pub mod fork;
pub mod futex;
mod gate;
mod handoff;
mod inbox;
mod keepsake;
mod lock;
mod ranges;
mod slots;
pub mod thread;
mod tokens;
mod turn;

pub use board::Board;
pub use budget::Budget;
pub use claim::Claim;
pub use gate::Gate;
pub use handoff::HandOff;
pub use inbox::Inbox;
pub use keepsake::Keepsake;
pub use lock::{Condvar, Mutex, MutexGuard, OnceLock};
pub use ranges::{Draw, Ranges};
pub use slots::Slots;
pub use tokens::{Entry, Exit, Tokens};
pub use turn::{Turn, TurnGuard};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, loom))]
mod models_of_regions;
