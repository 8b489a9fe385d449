//! Waiting for something that a queue will do, from any thread.

use super::cycle::Waiting;
use super::drain::{Hands, run_later};
use super::lane::answer_calls;
use super::queue::Queue;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Ref, Result};
use crate::sync::ambient::{self, Work};
use crate::threadpool::ThreadPool;
use std::cell::Cell;
use std::sync::Arc;

/// A wait for something that a queue will do.
pub struct Wait<'a> {
    /// Names the thing in the refusals.
    pub what: &'a str,
    pub done: &'a dyn Fn() -> bool,
    /// Works on the thing itself, in a worker; true if it could.
    pub join: &'a dyn Fn() -> bool,
    /// Blocks until done or the deadline, after looking for so many nanoseconds; used outside of workers only.
    pub sleep: &'a dyn Fn(u64, Deadline) -> bool,
    pub spin_ns: u64,
}

/// Waits until done. `queue` is what the work lies in, if it still lives.
pub fn until(wait: &Wait<'_>, queue: Option<&Arc<Queue>>, deadline: Deadline) -> Result<()> {
    let &Wait { what, done, sleep, spin_ns, .. } = wait;
    if done() {
        return Ok(());
    }
    if ambient::within_device() {
        return on_device_thread(wait, queue, deadline);
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
            return help(wait, queue, deadline);
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
        Some(queue) if ambient::within_any_queue() || ambient::within_numbered_run() => {
            nested(what, queue, sleep, spin_ns, deadline)
        }
        _ if sleep(spin_ns, deadline) => Ok(()),
        _ => Err(late(what, queue)),
    }
}

/// Waits on a thread that a device needs: for a moment, since the device may be the one that is waited for.
fn on_device_thread(wait: &Wait<'_>, queue: Option<&Arc<Queue>>, deadline: Deadline) -> Result<()> {
    let start = now_ns();
    while !(wait.done)() {
        if deadline.is_past() {
            return Err(late(wait.what, queue));
        }
        if now_ns() - start >= wait.spin_ns {
            let of = queue.map_or(String::new(), |queue| format!(" of stream '{}'", queue.name()));
            return Err(Error::precondition(format!(
                "waiting for {}{of} here would hold up a thread that a device needs",
                wait.what
            )));
        }
        std::hint::spin_loop();
    }
    Ok(())
}

/// How often a sleeper inside a queue's work looks whether its wait has become part of a circle.
const LOOK_AGAIN_NS: u64 = 10_000_000;

/// Waits inside a queue's work, on a thread that may sleep (a lane, or the caller of a synchronous stream): refuses
/// when nobody could ever get on. A lane does its own queue's work meanwhile.
pub(super) fn nested(
    what: &str,
    queue: &Arc<Queue>,
    sleep: &dyn Fn(u64, Deadline) -> bool,
    spin_ns: u64,
    deadline: Deadline,
) -> Result<()> {
    let waiting = Waiting::add(ambient::queues(), queue);
    loop {
        let _ = answer_calls();
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

/// Looks for something that no queue does, in a thread that must not sleep; runs other tasks of the pool meanwhile if the host lets
/// threads do that. False if it was not done for so many nanoseconds without such a task.
pub fn help_briefly(done: &dyn Fn() -> bool, pool: Option<&Ref<ThreadPool>>, spin_ns: u64) -> bool {
    let nested = Nested::enter();
    let mut start = now_ns();
    while !done() {
        if nested.may_take_more() && pool.is_some_and(|pool| pool.in_parallel() && pool.help()) {
            start = now_ns();
        } else if now_ns() - start >= spin_ns {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

/// Sleeps, inside the work of a synchronous queue and in no worker, until something has happened that no queue does: `sleep` says
/// whether it has. A lane does its own queue's work meanwhile.
pub fn asleep(sleep: &dyn Fn(u64, Deadline) -> bool, spin_ns: u64) {
    loop {
        run_later();
        let look_again = if answer_calls() { Deadline::after(LOOK_AGAIN_NS) } else { Deadline::NEVER };
        if sleep(spin_ns, look_again) {
            return;
        }
    }
}

/// How many streams a wait follows from the one that it is for to what that one waits for itself.
const CHAIN: usize = 8;
/// How many waits may lie on top of one another on a stack because each has taken up other work.
const HELP_DEPTH: usize = 8;

thread_local! {
    static HELPING: Cell<usize> = const { Cell::new(0) };
}

/// Waits in a worker, and never sleeps: does the very work that it waits for, as far as that can be done here. If the
/// host gave `help` it may run other queued tasks of the pool meanwhile, to a bounded depth.
fn help(wait: &Wait<'_>, queue: &Arc<Queue>, deadline: Deadline) -> Result<()> {
    let nested = Nested::enter();
    loop {
        if nested.may_take_more() {
            run_later();
        }
        advance(queue);
        if (wait.done)() {
            return Ok(());
        }
        if deadline.is_past() {
            return Err(late(wait.what, queue));
        }
        if (wait.join)() || (nested.may_take_more() && help_pool(queue)) {
            continue;
        }
        // Another thread is at it. If it gets on, look again; if not, this worker must not be kept.
        let (start, before) = (now_ns(), queue.completed());
        while !(wait.done)() && queue.completed() == before {
            if now_ns() - start >= wait.spin_ns {
                return Err(would_block(wait.what, queue.name()));
            }
            if (wait.join)() {
                break;
            }
            std::hint::spin_loop();
        }
    }
}

/// Does the queue's work here, and that of the queues which it waits for: of all that belong to no pool, or to one
/// that this thread works for.
fn advance(queue: &Arc<Queue>) {
    advance_within(queue, CHAIN);
}

fn advance_within(queue: &Arc<Queue>, chain: usize) {
    // Without a pool a device's queue has a lane for functions of the host's, and that is not this thread.
    let hands = if queue.pool().is_some() { Hands::Host } else { Hands::Issuer };
    if is_ours(queue) {
        queue.drain_here(hands);
    }
    if let Some(next) = queue.parked_on().filter(|_| chain > 0) {
        advance_within(&next, chain - 1);
        // It may go on now.
        if is_ours(queue) {
            queue.drain_here(hands);
        }
    }
}

fn is_ours(queue: &Queue) -> bool {
    queue.pool().is_none_or(|pool| pool.in_parallel())
}

/// Runs one queued task of the pool here, if the host lets threads do that.
fn help_pool(queue: &Queue) -> bool {
    queue.pool().is_some_and(|pool| pool.in_parallel() && pool.help())
}

/// One wait more on this stack that may take up other work while it lasts.
struct Nested(usize);

impl Nested {
    fn enter() -> Nested {
        let depth = HELPING.get() + 1;
        HELPING.set(depth);
        Nested(depth)
    }

    /// Whether other work may be taken up: queues that were put off in this thread, and tasks of the pool.
    fn may_take_more(&self) -> bool {
        self.0 <= HELP_DEPTH
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        HELPING.set(self.0 - 1);
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
