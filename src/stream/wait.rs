//! Waiting for a queue's work, from any thread: a waiting thread works.
//!
//! # The wait loop
//!
//! The waiter loops until the work is done:
//!
//! 1. It drains the queue if the drain lock is free, and the queues that this one is parked on, or for which a thread
//!    inside of its work waits. It stops after the item that it waits for, or at its deadline; threads that the queue
//!    calls do the rest. It joins a run in progress (`Joinable`).
//! 2. Otherwise another thread or a device is working. The waiter spins within its budget, and then sleeps on the event
//!    count of the queue at which the chain ends, which advances when that queue progresses, is called, parks, or is
//!    shared.
//!
//! So a wait sleeps only for work that some thread is running, or that completes by itself. All threads of a pool may
//! wait: they do the work themselves. No pool has to know its threads. A worker runs other tasks of its pool before it
//! sleeps, if the host has `help`.
//!
//! # Calls
//!
//! A waiter on a queue counts among its `claimers`, so that a call of the queue wakes it instead of a pool.
//!
//! # Where a wait is refused
//!
//! - Inside of the stream's own work, or where the stream waits for the caller in turn (`cycle`).
//! - In a worker of a pool, when no thread is working on it: a later completion may need that very thread. The thread
//!   that has a synchronous stream is not working while it sleeps for one (`Queue::share`).
//! - In a helper of a run or a region nested too deep to know what it blocks, when another thread is working on it.
//! - On a thread that a device needs, after a moment.
#![forbid(unsafe_code)]

use super::cycle::{WaitEdges, WaitTarget, awaited_by, is_held_up};
use super::dedicated_thread::answer_calls;
use super::drain::{ThreadRole, are_later, run_later};
use super::queue::{JoinOutcome, Mark, Queue};
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result};
use crate::device::in_a_capture;
use crate::sync::ambient::{self, ActiveWork};
use crate::threadpool;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// A wait for a queue's work.
pub struct Wait<'a> {
    /// Names the work in error messages.
    pub what: &'a str,
    pub done: &'a dyn Fn() -> bool,
    /// Its end, as others see it.
    pub target: WaitTarget,
    /// Whether all of it was issued to a device, which needs no host thread for it.
    pub on_device: &'a dyn Fn() -> bool,
    /// Blocks until done or the deadline, after spinning for so many nanoseconds; used for work on a device, or of a
    /// dead queue. Fails if nobody can say when it is done.
    pub sleep: &'a dyn Fn(u64, Deadline) -> Result<bool>,
    pub spin_ns: u64,
}

/// Waits until done. `queue` has the work, if it still lives. With a deadline in the past, only looks.
pub fn until(wait: &Wait<'_>, queue: Option<&Arc<Queue>>, deadline: Deadline) -> Result<()> {
    let &Wait { what, done, .. } = wait;
    if done() {
        return Ok(());
    }
    // Also if it does not wait: who asks again and again would never learn that it is in vain.
    if let Some(queue) = queue.filter(|queue| ambient::within(ActiveWork::Queue(queue.id()))) {
        return Err(Error::precondition(format!(
            "waiting for {what} of stream '{}' from inside that stream's own work would never end",
            queue.name()
        )));
    }
    if deadline.is_past() {
        return Err(late(what, queue));
    }
    if ambient::within_device() {
        return on_device_thread(wait, queue, deadline);
    }
    let Some(queue) = queue else { return without_queue(wait, deadline) };
    let from_ns = if deadline.left().is_none() || threadpool::within_any() { 0 } else { now_ns() + GRACE_NS };
    let (nested, slept, rounds) = (NestedWait::enter(), Cell::new(false), Cell::new(0));
    QueueWaiter { wait, queue, deadline, nested, waiting: None, is_worker: None, slept, rounds, from_ns }.work()
}

/// Waits until a mark is reached; the error of the queue that reached it is not this call's.
pub fn until_reached(mark: &Arc<Mark>, spin_ns: u64, deadline: Deadline) -> Result<()> {
    if mark.is_captured() {
        return Err(in_a_capture());
    }
    let queue = mark.queue().upgrade();
    let (done, on_device) = (|| mark.is_reached(), || mark.is_on_device());
    let sleep = |spin_ns, deadline| Ok(mark.sleep(spin_ns, deadline));
    let target = WaitTarget::Object(Arc::<Mark>::downgrade(mark));
    let wait = Wait { what: "an event", done: &done, target, on_device: &on_device, sleep: &sleep, spin_ns };
    until(&wait, queue.as_ref(), deadline)
}

/// Waits on a device's thread: only for a moment, since the wait may be for that device.
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

/// Waits for the work of a dead queue: a device has it.
fn without_queue(wait: &Wait<'_>, deadline: Deadline) -> Result<()> {
    run_later();
    if (wait.done)() || (wait.sleep)(wait.spin_ns, deadline)? { Ok(()) } else { Err(late(wait.what, None)) }
}

/// How often a sleeper inside of other work checks for a deadlock.
const LOOK_AGAIN_NS: u64 = 10_000_000;
/// Most nested waits on one stack that took up work other than their own.
const HELP_DEPTH: usize = 8;

struct QueueWaiter<'a, 'b> {
    wait: &'a Wait<'b>,
    queue: &'a Arc<Queue>,
    deadline: Deadline,
    nested: NestedWait,
    /// Inside of other queues' work: its edges in the waits-for graph.
    waiting: Option<WaitEdges>,
    /// Whether the thread belongs to any pool. Asked once, before the first sleep.
    is_worker: Option<bool>,
    /// The spin budget is spent, and there was no progress since.
    slept: Cell<bool>,
    /// Consecutive sleeps without progress.
    rounds: Cell<u32>,
    /// Until then only the called threads work; 0 = help at once.
    from_ns: u64,
}

/// How long a wait with a time-out leaves the work to the called threads: an item that it begins itself it must finish,
/// even past the deadline.
pub const GRACE_NS: u64 = 50_000_000;

/// The end of the chain of awaited queues.
struct Front {
    /// From the awaited queue to the last one: each is parked on the next, or a thread inside of it waits for that.
    chain: SmallVec<[Arc<Queue>; 4]>,
    /// Whether a thread or a device is working on the last one.
    is_at_work: bool,
}

impl Front {
    /// Whether one of the chain goes on without the next.
    fn has_moved(&self) -> bool {
        has_moved(&self.chain)
    }
}

/// Whether a queue of the chain goes on without the next. The last ones first: while a queue is held up, the one before
/// it cannot have got past it in between.
fn has_moved(chain: &[Arc<Queue>]) -> bool {
    chain.windows(2).rev().any(|pair| !is_held_up(&pair[0], &pair[1]))
}

impl QueueWaiter<'_, '_> {
    /// Whether this thread may run the queue's work now. A dedicated thread is always available for its queue. A
    /// synchronous queue is held only to run an item of it: other threads wait for that item's end.
    fn may_claim(&self, queue: &Queue) -> bool {
        !queue.has_own_thread()
            && !queue.is_synchronous()
            && self.is_able_now()
            && queue.pool().is_none_or(|pool| pool.may_work_here())
    }

    fn is_able_now(&self) -> bool {
        self.from_ns == 0 || now_ns() >= self.from_ns
    }

    fn join(&self, queue: &Queue) -> JoinOutcome {
        queue.join(self.is_able_now())
    }

    /// Drains a queue until there is enough, or others wait for this thread. False if its lock was not free.
    fn drain(&self, queue: &Arc<Queue>, enough: &dyn Fn() -> bool) -> bool {
        match self.nested.may_take_more() {
            true => queue.drain_awaited(enough),
            false => queue.drain_until(ThreadRole::Host, enough),
        }
    }

    fn are_later(&self) -> bool {
        self.nested.may_take_more() && are_later()
    }

    fn is_over(&self) -> bool {
        (self.wait.done)() || self.deadline.is_past()
    }

    /// Whether no thread has to run or to issue anything more for it. Behind it on a device's queue there may be a
    /// function that does not end, or that waits for the caller.
    fn needs_no_host(&self) -> bool {
        self.is_over() || (self.wait.on_device)()
    }

    fn work(mut self) -> Result<()> {
        loop {
            if self.nested.may_take_more() {
                // Queues that this thread has deferred, and a dedicated thread's own calls.
                run_later();
                let _ = answer_calls();
            }
            let front = self.advance();
            if (self.wait.done)() {
                return Ok(());
            }
            if self.deadline.is_past() {
                return Err(late(self.wait.what, self.queue));
            }
            let Some(front) = front else { continue };
            if self.nested.may_take_more() && (help_pool(self.queue) || self.helps_own_pool()) {
                self.slept.set(false);
                continue;
            }
            if (self.wait.on_device)() {
                // That needs no host thread, so it cannot deadlock.
                let spin_ns = if self.slept.get() { 0 } else { self.wait.spin_ns };
                let slice = if ambient::depth() > 0 { Deadline::after(LOOK_AGAIN_NS) } else { Deadline::NEVER };
                if (self.wait.sleep)(spin_ns, self.deadline.earlier(slice))? {
                    return Ok(());
                }
                self.slept.set(true);
            } else {
                self.sleep(&front)?;
            }
        }
    }

    /// Runs what this thread can of the queue and of the queues that it is parked on. `None`: there was progress, so
    /// look again.
    fn advance(&mut self) -> Option<Front> {
        let mut chain = SmallVec::<[Arc<Queue>; 4]>::new();
        chain.push(Arc::clone(self.queue));
        if (self.wait.on_device)() {
            return Some(Front { chain, is_at_work: true });
        }
        loop {
            let queue = Arc::clone(&chain[chain.len() - 1]);
            // Of the queues behind it only enough that those before can continue.
            let enough = || self.needs_no_host() || has_moved(&chain);
            if enough() {
                return None;
            }
            if self.may_claim(&queue) && self.drain(&queue, &enough) {
                self.slept.set(false);
                if enough() || self.are_later() {
                    return None;
                }
            }
            let is_new = |next: &Arc<Queue>| !chain.iter().any(|queue| Arc::ptr_eq(queue, next));
            if !queue.drain_lock().is_parked() {
                // The holder of the drain lock may be in a run that others can join.
                let joined = self.join(&queue);
                if joined == JoinOutcome::Worked {
                    self.slept.set(false);
                    return None;
                }
                if let Some(next) = awaited_by(&queue).filter(|next| next.has_more_on_host() && is_new(next)) {
                    chain.push(next);
                    continue;
                }
                if chain.len() > 1 && !queue.has_more_on_host() {
                    // The queue before it waits for work on a device.
                    chain.pop();
                }
                let is_asleep = queue.is_synchronous() && queue.is_shared() && joined == JoinOutcome::Nobody;
                return Some(Front { chain, is_at_work: !is_asleep });
            }
            if let Some(next) = queue.parked_on().filter(|next| next.has_more_on_host() && is_new(next)) {
                chain.push(next);
                continue;
            }
            // The thread that ends the item there calls this one, which is about to look.
            let claimer = queue.claimers().enter(self.may_claim(&queue));
            let joined = self.join(&queue);
            drop(claimer);
            if joined == JoinOutcome::Worked || queue.drain_lock().is_called() {
                self.slept.set(false);
                if !self.may_claim(&queue) || !self.drain(&queue, &enough) {
                    queue.pass_on();
                }
                return None;
            }
            let is_at_work = joined == JoinOutcome::Others || queue.waits_for_device();
            return Some(Front { chain, is_at_work });
        }
    }

    /// Sleeps until the queue at the end of the chain progresses, is called, or is shared.
    fn sleep(&mut self, front: &Front) -> Result<()> {
        let end = &front.chain[front.chain.len() - 1];
        let registered = end.claimers().enter(self.may_claim(end));
        let watch = end.changes().watch();
        // Work issued to a device meanwhile no longer advances this event count.
        let is_with_device = || (self.wait.on_device)() || (front.chain.len() > 1 && !end.has_more_on_host());
        let is_news = || {
            watch.is_over()
                || self.is_over()
                || is_with_device()
                || (registered.is_able && end.drain_lock().is_called())
                || front.has_moved()
        };
        let mut is_news_now = is_news();
        if !is_news_now && !self.slept.get() && self.wait.spin_ns > 0 {
            let start = now_ns();
            while !is_news_now && now_ns() - start < self.wait.spin_ns {
                // A run with work to share is helped from there.
                is_news_now = self.join(end) == JoinOutcome::Worked;
                (0..16).for_each(|_| std::hint::spin_loop());
                is_news_now |= is_news();
            }
        }
        let mut result = Ok(());
        if !is_news_now {
            self.slept.set(true);
            // A worker looks at the tasks of its pool first.
            let is_new_worker = self.is_worker.is_none() && *self.is_worker.insert(threadpool::within_any());
            result = self.may_sleep(front.is_at_work);
            if result.is_ok() && !is_new_worker {
                watch.sleep(self.slice(end));
                self.rounds.set(if watch.is_over() { 0 } else { self.rounds.get() + 1 });
            }
        }
        self.slept.set(self.slept.get() && !watch.is_over());
        drop(watch);
        drop(registered);
        // A call that relied on this thread is served here, or passed on.
        if result.is_err() || self.is_over() || !self.may_claim(end) {
            end.pass_on();
        } else if end.drain_lock().is_called() {
            self.drain(end, &|| self.needs_no_host());
        }
        result
    }

    /// A worker, before it sleeps.
    fn helps_own_pool(&self) -> bool {
        self.is_worker == Some(true) && threadpool::help_own()
    }

    /// When to wake to check for a deadlock, or for calls of a dedicated thread.
    fn slice(&self, end: &Queue) -> Deadline {
        let deadline =
            if self.is_able_now() { self.deadline } else { self.deadline.earlier(Deadline::at(self.from_ns)) };
        match self.waiting {
            Some(_) => deadline.earlier(Deadline::after(LOOK_AGAIN_NS)),
            // Work that others give to a pool meanwhile, and that does not begin, wakes nobody.
            None if end.is_shared() || self.is_worker == Some(true) => {
                deadline.earlier(Deadline::after(GRACE_NS << self.rounds.get().min(4)))
            }
            None => deadline,
        }
    }

    /// Refuses the sleep where it would deadlock, or where this thread may be needed.
    fn may_sleep(&mut self, is_at_work: bool) -> Result<()> {
        if (self.is_worker == Some(true) && !is_at_work) || ambient::within(ActiveWork::Unknown) {
            return Err(would_block(self.wait.what, self.queue.name()));
        }
        if ambient::depth() == 0 {
            return Ok(());
        }
        let waiting =
            self.waiting.get_or_insert_with(|| WaitEdges::add(ambient::queues(), self.queue, &self.wait.target));
        // The end may have come before the awaited queue got to where it is now.
        if waiting.closes_a_circle() && !(self.wait.done)() {
            return Err(Error::precondition(format!(
                "waiting for {} of stream '{}' here would never end: that stream waits for the work that calls",
                self.wait.what,
                self.queue.name()
            )));
        }
        Ok(())
    }
}

/// Spins for a condition that no queue brings about, in a thread that must not sleep, and does other `work` meanwhile,
/// which says whether there was any. False if the condition did not come within `spin_ns` without work.
pub fn help_briefly(done: &dyn Fn() -> bool, work: &dyn Fn() -> bool, spin_ns: u64) -> bool {
    let nested = NestedWait::enter();
    let mut start = now_ns();
    while !done() {
        if nested.may_take_more() && work() {
            start = now_ns();
        } else if now_ns() - start >= spin_ns {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

/// Sleeps, inside the work of a synchronous queue and not in a worker, until a condition that no queue brings about:
/// `sleep` says whether it holds. A dedicated thread serves its own queue meanwhile.
pub fn asleep(sleep: &dyn Fn(u64, Deadline) -> bool, spin_ns: u64) {
    loop {
        run_later();
        let look_again = if answer_calls() { Deadline::after(LOOK_AGAIN_NS) } else { Deadline::NEVER };
        if sleep(spin_ns, look_again) {
            return;
        }
    }
}

thread_local! {
    static HELPING: Cell<usize> = const { Cell::new(0) };
}

/// Runs one queued task of the pool here, if the host has `help`.
fn help_pool(queue: &Queue) -> bool {
    queue.pool().is_some_and(|pool| pool.in_parallel() && pool.help())
}

/// A nested wait on this stack that may take up other work while it lasts.
struct NestedWait(usize);

impl NestedWait {
    fn enter() -> NestedWait {
        let depth = HELPING.get() + 1;
        HELPING.set(depth);
        NestedWait(depth)
    }

    /// Whether to take up other work: queues that this thread has deferred, and tasks of the pool.
    fn may_take_more(&self) -> bool {
        self.0 <= HELP_DEPTH
    }
}

impl Drop for NestedWait {
    fn drop(&mut self) {
        HELPING.set(self.0 - 1);
    }
}

fn would_block(what: &str, stream: &str) -> Error {
    Error::precondition(format!(
        "waiting for {what} of stream '{stream}' here would block a worker of a thread pool; use \
         weir_stream_wait_event, or wait in another thread"
    ))
}

fn late<'a>(what: &str, queue: impl Into<Option<&'a Arc<Queue>>>) -> Error {
    let of = queue.into().map_or(String::new(), |queue| format!(" of stream '{}'", queue.name()));
    Error::new(Code::DeadlineExceeded, format!("the time to wait for {what}{of} has passed"))
}
