//! Cells and protocols between threads. Everything here is small, has an essay where it is subtle, and is the only
//! place besides the border where threads meet raw memory.
//!
//! - `futex`: sleep on a word with a time-out, wake sleepers. Nothing else in the library blocks a thread (except
//!   the built-in pool's own idle sleep, which uses it too, and `std::sync::Mutex` around lists that are touched
//!   only when something fails or is created).
//! - `Gate`: a counter that others wait for.
//! - `Turn`: who drains a queue.
//! - `Inbox`: many producers, one consumer, no lock, and no allocation up to 64 waiting items.
//! - `HandOff`: a cell that is empty or full.
//! - `Tokens`: who is in a run, how much of it is left, who closes it.
//! - `ambient`: which pools and queues the calling thread is working for.
//! - `fork`: whether this process is a child of the one that made the first object.

pub mod ambient;
pub mod atomic;
mod claim;
pub mod fork;
pub mod futex;
mod gate;
mod handoff;
mod inbox;
mod slots;
mod tokens;
mod turn;

pub use claim::Claim;
pub use gate::Gate;
pub use handoff::HandOff;
pub use inbox::Inbox;
pub use slots::Slots;
pub use tokens::{Entry, Exit, Tokens};
pub use turn::{Turn, TurnGuard};

#[cfg(all(test, loom))]
mod models;
