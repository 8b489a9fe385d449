//! Waiting for something that a queue will do, from any thread.

use super::cycle::Waiting;
use super::queue::{Queue, run_later};
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result};
use crate::sync::ambient::{self, Work};
use std::sync::Arc;

/// Waits until `done`. `queue` is what the work lies in, if it still lives; `sleep(spin_ns, deadline)` blocks until
/// done and is used outside of workers only. `what` names the thing in the refusals.
pub fn until(
    what: &str,
    queue: Option<&Arc<Queue>>,
    done: &dyn Fn() -> bool,
    sleep: &dyn Fn(u64, Deadline) -> bool,
    spin_ns: u64,
    deadline: Deadline,
) -> Result<()> {
    if done() {
        return Ok(());
    }
    if let Some(queue) = queue {
        if ambient::within(Work::Queue(queue.id())) {
            return Err(Error::precondition(format!(
                "waiting for {what} of stream '{}' from inside that stream's own work would never end",
                queue.name()
            )));
        }
        let pool = queue.pool();
        if ambient::within_any_pool() || pool.is_some_and(|pool| pool.in_parallel()) {
            return help(what, queue, done, spin_ns, deadline);
        }
    } else if ambient::within_any_pool() {
        return Err(would_block(what, "a stream that is gone"));
    }
    // This thread may have put off the very queue (it was refused by its pool while another one was being drained
    // here).
    run_later();
    if done() {
        return Ok(());
    }
    match queue {
        Some(queue) if ambient::within_any_queue() => nested(what, queue, sleep, spin_ns, deadline),
        _ if sleep(spin_ns, deadline) => Ok(()),
        _ => Err(late(what, queue)),
    }
}

/// How often a sleeper inside a queue's work looks whether its wait has become part of a circle.
const LOOK_AGAIN_NS: u64 = 10_000_000;

/// Waits inside a queue's work, on a thread that may sleep (a lane, or the caller of a synchronous stream): refuses when nobody could ever get on.
fn nested(
    what: &str,
    queue: &Arc<Queue>,
    sleep: &dyn Fn(u64, Deadline) -> bool,
    spin_ns: u64,
    deadline: Deadline,
) -> Result<()> {
    let waiting = Waiting::add(ambient::queues(), queue);
    loop {
        if waiting.closes_a_circle() {
            return Err(Error::precondition(format!(
                "waiting for {what} of stream '{}' here would never end: that stream waits for the work that calls",
                queue.name()
            )));
        }
        if sleep(spin_ns, deadline.earlier(Deadline::after(LOOK_AGAIN_NS))) {
            return Ok(());
        }
        if deadline.is_past() {
            return Err(late(what, queue));
        }
    }
}

/// Waits in a worker: does the queue's work here, or any queued task of the pool, and never sleeps.
fn help(what: &str, queue: &Arc<Queue>, done: &dyn Fn() -> bool, spin_ns: u64, deadline: Deadline) -> Result<()> {
    let mine = queue.pool().is_none_or(|pool| pool.in_parallel());
    loop {
        run_later();
        if mine {
            queue.drain_here();
        }
        if done() {
            return Ok(());
        }
        if deadline.is_past() {
            return Err(late(what, queue));
        }
        if mine && queue.pool().is_some_and(|pool| pool.help()) {
            continue;
        }
        // Another thread is at it. If it gets on, look again; if not, this worker must not be kept.
        let (start, before) = (now_ns(), queue.completed());
        while !done() && queue.completed() == before {
            if now_ns() - start >= spin_ns {
                return Err(would_block(what, queue.name()));
            }
            std::hint::spin_loop();
        }
    }
}

fn would_block(what: &str, stream: &str) -> Error {
    Error::precondition(format!(
        "waiting for {what} of stream '{stream}' here would block a worker of a thread pool; use weir_stream_wait_event, or wait in another thread"
    ))
}

fn late<'a>(what: &str, queue: impl Into<Option<&'a Arc<Queue>>>) -> Error {
    let of = queue.into().map_or(String::new(), |queue| format!(" of stream '{}'", queue.name()));
    Error::new(Code::DeadlineExceeded, format!("the time to wait for {what}{of} has passed"))
}
