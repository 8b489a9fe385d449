//! In-order queues of work: submission, draining, events, errors that stick, waiting.
//!
//! # Which thread runs an item
//!
//! A *synchronous* queue runs each item in the thread that submits it, one at a time (`queue`).
//!
//! An *asynchronous* queue is an inbox and a drain lock (`sync::drain_lock`). Producers push; if no thread drains and
//! none was called, the producer calls: it asks the pool to run the queue's job once, or sends the queue to its own
//! thread (`dedicated_thread`). The first thread that takes the lock drains the queue until it is empty. If the call is
//! refused, the producer drains.
//!
//! An item may not be able to finish now: it waits for an event that was not reached, or for other threads that work
//! for it. It then registers to be resumed and answers *pending*, the drain lock is parked, and no thread is held.
//! Resuming calls again. Where the thread that reaches the event must drain the resumed queue itself, it issues a
//! device queue at once, since nobody knows how long its own next item takes. A host queue it begins behind its item,
//! and then goes from one to the other after each item.
//!
//! Draining a device queue (`device_queue`) means to issue its items to the device; host functions among them need a
//! host thread (`drain`). A thread that submits issues what was queued before, and leaves the rest to the next one that
//! submits (`relief`).
//!
//! # Completion
//!
//! `submitted` counts items before they are pushed, `completed` after they are done or skipped, in order. A wait takes
//! `submitted` as its target when it begins and ends when `completed` has reached it. So it covers everything whose
//! submission had returned before, and it ends although others go on submitting: later items lie behind the target. (A
//! submission in progress at that moment may be covered or not.)
//!
//! # Waiting
//!
//! A waiting thread works (`wait`): it takes the drain lock of the queue, and of the queues that this one waits for,
//! where they are free; it joins the run that it waits for. It sleeps only for work that another thread or a device is
//! executing. If the host gave `help`, a worker may run other tasks of the pool, to a bounded depth.
//!
//! A thread that runs a queue's item may wait for another queue, unless that one waits for it in turn (`cycle`).

mod account;
mod claimers;
mod cycle;
mod dedicated_thread;
mod device_queue;
mod domain;
mod drain;
mod fences;
mod inbox;
mod issue;
mod latch;
mod late;
mod listener;
mod look;
mod mark;
#[cfg(all(test, loom))]
mod models_of_fences;
#[cfg(all(test, loom))]
mod models_of_relief;
#[cfg(all(test, loom))]
mod models_of_resubmitting;
mod notice;
mod queue;
mod relief;
mod resubmit_table;
mod snapshot;
mod submit;
mod synchronous;
mod together;
mod traced;
mod wait;

pub use account::{Account, Aside, Extent};
pub use cycle::{Awaited, WaitTarget};
pub use domain::{Domain, DomainId, check_name};
pub use listener::{KeptListener, Listener, ProgressListener, ProgressReport};
pub use notice::{Notice, What};
pub use queue::{DeviceQueue, Executor, JoinOutcome, Joinable, Mark, Queue, QueueAttr, QueueItem, QueueWork};
pub use resubmit_table::MOST_WORDS;
pub use together::{Scope, Synced, sync_all, sync_each, sync_one, time_ns};
pub use wait::{GRACE_NS, Wait, asleep, help_briefly, until, until_reached};
