//! In-order queues of work: submission, draining, events, errors that stick, waiting.
//!
//! # Who runs what
//!
//! A *synchronous* queue runs each item in the thread that submits it, one at a time (`queue`).
//!
//! An *asynchronous* queue is an inbox and a turn (`sync::drain_lock`). Producers push; if nobody drains and nobody was
//! called, the producer calls: it asks the pool to run the queue's job once, or sends the queue to its lane, a
//! thread of its own (`lane`). Whoever comes first and gets the turn drains the queue until it is empty. A refused
//! call is drained by the producer itself.
//!
//! An item may not be able to finish now: it waits for an event that was not reached, or for other threads that
//! work for it. It then answers *pending* after it has left word where it will be resumed, the turn is parked, and
//! no thread is held. Resuming calls again.
//!
//! The work of a queue may be a device's (`line`): then draining it means to issue its items to the device, and
//! functions of the host's among them are for other hands (`drain`).
//!
//! # What is done, and when
//!
//! `submitted` counts items before they are pushed, `completed` after they are done or skipped, in order. A wait
//! takes `submitted` as its target when it begins and ends when `completed` has reached it. So it covers everything
//! whose submission had returned before, and it ends although others go on submitting: what comes later lies behind
//! the target. (A submission that is under way at that moment may be covered or not.)
//!
//! # Waiting
//!
//! Whoever waits, works (`wait`): a wait takes the turn of the queue, and of the queues that this one waits for, where
//! they are free; it joins the run that it waits for. It sleeps only for what another thread or a device is at. Where
//! the host gave `help`, a worker may run other tasks of the pool, to a bounded depth.
//!
//! A thread that runs a queue's item may wait for another queue, unless what it waits for waits for it in turn
//! (`cycle`).

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
mod look;
mod mark;
#[cfg(all(test, loom))]
mod models_of_fences;
#[cfg(all(test, loom))]
mod models_of_resubmitting;
mod notice;
mod queue;
mod resubmit_table;
mod snapshot;
mod submit;
mod synchronous;
mod together;
mod wait;

pub use account::{Account, Aside, Extent};
pub use domain::{Domain, DomainId, check_name};
pub use notice::{Listener, Notice, What};
pub use queue::{DeviceQueue, Executor, Joinable, Joined, Mark, Op, Queue, QueueAttr, Work};
pub use resubmit_table::MOST_WORDS;
pub use together::{Scope, Synced, sync_all, sync_each, sync_one, time_ns};
pub use wait::{GRACE_NS, Wait, asleep, help_briefly, until, until_reached};
