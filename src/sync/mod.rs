//! Cells and protocols between threads. Everything here is small, has an essay where it is subtle, and is the only
//! place besides the border where threads meet raw memory.
//!
//! - `futex`: sleep on a word with a time-out, wake sleepers. Nothing else in the library blocks a thread.
//! - `Mutex`, `Condvar`, `OnceLock`: for lists and errors that are touched only when something fails or is created.
//! - `EventCount`: a counter that others wait for.
//! - `Promise`: a value that one thread makes and others wait for.
//! - `DrainLock`: who drains a queue.
//! - `Inbox`: many producers, one consumer, no lock, and no allocation up to 64 waiting items.
//! - `Mailbox`: a cell that is empty or full.
//! - `Loan`: a cell whose value is lent to one at a time.
//! - `Replaceable`: a cell that many read and one replaces while nobody does.
//! - `RunLatch`: who is in a run, how much of it is left, who closes it.
//! - `Meeting` and `Returns`: calls that complete after they were started, and the run they come back to.
//! - `Places`: so many may be in, and the others wait in a line.
//! - `Ranges`: a loop's units, taken at home and stolen elsewhere.
//! - `Budget`: how many helpers are out.
//! - `Deque`: work that one thread lays down and any thread may take.
//! - `Tally`: what is left of a group of tasks, and who waits for its end.
//! - `Board`: where more of them are wanted.
//! - `Door`: who is inside of something that can be closed for good.
//! - `Keepsake`: a value of each thread's own that is dropped with it.
//! - `Milestones`: what is known of items that a device does in order, by events behind some of them.
//! - `Standing`: work that is given again while it is under way.
//! - `Arrivals`: what a node of a run still waits for.
//! - `Merge`: the same for a node that goes on with the first value that comes.
//! - `ReadySet`: numbers of which any thread may take the least.
//! - `Ring`: which iterations of a loop may begin.
//! - `ambient`: which pools and queues the calling thread is working for.
//! - `thread`: threads that the library starts: named, counted, listed.
//! - `Global`: a list of the whole process's, which a child of fork has anew.
//! - `fork`: whether this process is a child of one that has used the library, and what it is refused then.

pub mod ambient;
pub mod atomic;
mod claim;
mod drain_lock;
pub(crate) mod event_count;
pub mod fork;
pub mod futex;
mod global;
mod keepsake;
pub(crate) mod lock;
mod mailbox;
mod pending;
mod promise;
mod run_latch;
mod slots;
pub mod thread;

pub use claim::Claim;
pub use drain_lock::{DrainGuard, DrainLock};
pub use event_count::{EventCount, Watch};
pub use global::Global;
pub use keepsake::Keepsake;
pub use lock::{Condvar, Mutex, MutexGuard, OnceLock};
pub use mailbox::Mailbox;
pub use pending::{Meeting, Returns};
pub use promise::Promise;
pub use run_latch::{Entry, Exit, RunLatch};
pub use slots::Slots;

#[cfg(all(test, loom))]
pub(crate) mod models;
#[cfg(all(test, loom))]
mod models_of_pending;
#[cfg(all(test, loom))]
mod models_of_promises;
#[cfg(all(test, loom))]
mod models_of_rounds;
