//! Waiting for something that a queue will do, from any thread: whoever waits, works.
//!
//! # What a waiter does
//!
//! It goes round until the thing is done:
//!
//! 1. It drains the queue if the turn is free, and the queues that this one is parked on. It stops behind the item that
//!    it waits for, or behind which its time is over; the rest is for whoever the queue calls. It joins a run that is
//!    under way (`Joinable`).
//! 2. What it finds taken is being done by another thread or by a device. It looks for the spin budget, and then sleeps
//!    on the gate of the queue at which the chain ends. That gate tells when this queue gets on, is called, is parked,
//!    or is shared.
//!
//! So a wait sleeps only for what some thread is running, or what completes by itself. The threads of a pool may all
//! wait: what they wait for is done by themselves. It needs no pool to know its threads.
//!
//! # Who is called
//!
//! A waiter on a gate counts among the queue's `claimers`, so that whoever calls the queue wakes it instead of a pool.
//!
//! # Where a wait is refused
//!
//! - Inside of the very stream's work, or where the stream waits for the caller in turn (`cycle`).
//! - In a worker of a pool, when nobody is at it: what completes later may need that very thread.
//! - In a helper of a run or a region that lies so deep inside of others that what it holds up is not known, when
//!   another thread is at it.
//! - On a thread that a device needs, after a moment.
#![forbid(unsafe_code)]

use super::cycle::Waiting;
use super::dedicated_thread::answer_calls;
use super::drain::{Hands, run_later};
use super::queue::{Joined, Mark, Queue};
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Ref, Result};
use crate::device::in_a_capture;
use crate::sync::ambient::{self, Work};
use crate::threadpool::{self, ThreadPool};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// A wait for something that a queue will do.
pub struct Wait<'a> {
    /// Names the thing in the refusals.
    pub what: &'a str,
    pub done: &'a dyn Fn() -> bool,
    /// Whether all of it is with a device, which needs no thread of the host's for it.
    pub on_device: &'a dyn Fn() -> bool,
    /// Blocks until done or the deadline, after looking for so many nanoseconds; used for what a device is at, or a
    /// queue that is gone.
    pub sleep: &'a dyn Fn(u64, Deadline) -> bool,
    pub spin_ns: u64,
}

/// Waits until done. `queue` is what the work lies in, if it still lives. A deadline that has passed already only
/// looks.
pub fn until(wait: &Wait<'_>, queue: Option<&Arc<Queue>>, deadline: Deadline) -> Result<()> {
    let &Wait { what, done, .. } = wait;
    if done() {
        return Ok(());
    }
    if deadline.is_past() {
        return Err(late(what, queue));
    }
    if ambient::within_device() {
        return on_device_thread(wait, queue, deadline);
    }
    let Some(queue) = queue else { return without_queue(wait, deadline) };
    if ambient::within(Work::Queue(queue.id())) {
        return Err(Error::precondition(format!(
            "waiting for {what} of stream '{}' from inside that stream's own work would never end",
            queue.name()
        )));
    }
    let from_ns = if deadline.left().is_none() || threadpool::within_any() { 0 } else { now_ns() + GRACE_NS };
    let (nested, slept, rounds) = (Nested::enter(), Cell::new(false), Cell::new(0));
    Waiter { wait, queue, deadline, nested, waiting: None, is_worker: None, slept, rounds, from_ns }.work()
}

/// Waits until a mark is reached; the error of the queue that reached it is not this call's.
pub fn until_reached(mark: &Mark, spin_ns: u64, deadline: Deadline) -> Result<()> {
    if mark.is_captured() {
        return Err(in_a_capture());
    }
    let queue = mark.queue().upgrade();
    let (done, on_device) = (|| mark.is_reached(), || mark.is_on_device());
    let sleep = |spin_ns, deadline| mark.sleep(spin_ns, deadline);
    let wait = Wait { what: "an event", done: &done, on_device: &on_device, sleep: &sleep, spin_ns };
    until(&wait, queue.as_ref(), deadline)
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

/// Waits for the work of a queue that is gone: a device has it.
fn without_queue(wait: &Wait<'_>, deadline: Deadline) -> Result<()> {
    run_later();
    if (wait.done)() || (wait.sleep)(wait.spin_ns, deadline) { Ok(()) } else { Err(late(wait.what, None)) }
}

/// How often a sleeper inside of other work looks whether its wait has become part of a circle.
const LOOK_AGAIN_NS: u64 = 10_000_000;
/// How many waits may lie on top of one another on a stack because each has taken up work that is not what it waits
/// for.
const HELP_DEPTH: usize = 8;

struct Waiter<'a, 'b> {
    wait: &'a Wait<'b>,
    queue: &'a Arc<Queue>,
    deadline: Deadline,
    nested: Nested,
    /// Inside of other queues' work: on the list of such waits.
    waiting: Option<Waiting>,
    /// Whether the thread belongs to any pool. Asked once, before the first sleep.
    is_worker: Option<bool>,
    /// The spin budget is spent, and nothing has happened since.
    slept: Cell<bool>,
    /// Sleeps in turn that ended without news.
    rounds: Cell<u32>,
    /// Before that moment only the threads that were called work; 0 = at once.
    from_ns: u64,
}

/// How long a wait with a time-out leaves its work to the threads that were called for it: what it takes up itself it
/// has to end, also when the time is over.
pub const GRACE_NS: u64 = 50_000_000;

/// Where the chain of what is waited for ends.
struct Front {
    /// From the queue that is waited for to the last one: each is parked on the next.
    chain: SmallVec<[Arc<Queue>; 4]>,
    /// Whether a thread or a device is at the last one.
    is_at_work: bool,
}

impl Waiter<'_, '_> {
    /// Whether this thread may do the queue's work now. A lane is a thread of the queue's own, which is there.
    fn may_claim(&self, queue: &Queue) -> bool {
        !queue.has_own_thread() && self.is_able_now() && queue.pool().is_none_or(|pool| pool.may_work_here())
    }

    fn is_able_now(&self) -> bool {
        self.from_ns == 0 || now_ns() >= self.from_ns
    }

    fn join(&self, queue: &Queue) -> Joined {
        queue.join(self.is_able_now())
    }

    fn is_over(&self) -> bool {
        (self.wait.done)() || self.deadline.is_past()
    }

    fn work(mut self) -> Result<()> {
        loop {
            if self.nested.may_take_more() {
                // Queues that this thread has put off, and a lane's own calls.
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
            if self.nested.may_take_more() && help_pool(self.queue) {
                self.slept.set(false);
                continue;
            }
            if (self.wait.on_device)() {
                // No thread of the host's is needed for that, so no circle can close.
                let spin_ns = if self.slept.get() { 0 } else { self.wait.spin_ns };
                let slice = if ambient::depth() > 0 { Deadline::after(LOOK_AGAIN_NS) } else { Deadline::NEVER };
                if (self.wait.sleep)(spin_ns, self.deadline.earlier(slice)) {
                    return Ok(());
                }
                self.slept.set(true);
            } else {
                self.sleep(&front)?;
            }
        }
    }

    /// Does what can be done here of the queue and of what it is parked on. None: it has got on, and is worth another
    /// look.
    fn advance(&mut self) -> Option<Front> {
        let mut chain = SmallVec::<[Arc<Queue>; 4]>::new();
        chain.push(Arc::clone(self.queue));
        loop {
            let queue = Arc::clone(&chain[chain.len() - 1]);
            let before = chain.len().checked_sub(2).map(|i| Arc::clone(&chain[i]));
            // Of the queues behind it only so much that this one can go on.
            let enough = || self.is_over() || before.as_ref().is_some_and(|before| !before.turn().is_parked());
            if enough() {
                return None;
            }
            if self.may_claim(&queue) && queue.drain_until(Hands::Host, &enough) {
                self.slept.set(false);
                if enough() {
                    return None;
                }
            }
            if !queue.turn().is_parked() {
                // Whoever has the turn may be in a run that lets others in.
                if self.join(&queue) == Joined::Worked {
                    self.slept.set(false);
                    return None;
                }
                if before.is_some() && !queue.has_more_on_host() {
                    // The one in front of it waits for something that a device has.
                    chain.pop();
                }
                return Some(Front { chain, is_at_work: true });
            }
            let is_new = |next: &Arc<Queue>| !chain.iter().any(|queue| Arc::ptr_eq(queue, next));
            if let Some(next) = queue.parked_on().filter(|next| next.has_more_on_host() && is_new(next)) {
                chain.push(next);
                continue;
            }
            // Whoever ends the item there calls this thread, which is about to look.
            let claimer = queue.claimers().enter(self.may_claim(&queue));
            let joined = self.join(&queue);
            drop(claimer);
            if joined == Joined::Worked || queue.turn().is_called() {
                self.slept.set(false);
                if !self.may_claim(&queue) || !queue.drain_until(Hands::Host, &enough) {
                    queue.pass_on();
                }
                return None;
            }
            let is_at_work = joined == Joined::Others || queue.waits_for_device();
            return Some(Front { chain, is_at_work });
        }
    }

    /// Sleeps until the queue at the end of the chain gets on, is called, or is shared.
    fn sleep(&mut self, front: &Front) -> Result<()> {
        let end = &front.chain[front.chain.len() - 1];
        let registered = end.claimers().enter(self.may_claim(end));
        let watch = end.progress_gate().watch();
        // What a device has got meanwhile moves this gate no more.
        let is_with_device = || (self.wait.on_device)() || (front.chain.len() > 1 && !end.has_more_on_host());
        let is_news = || {
            watch.is_over()
                || self.is_over()
                || is_with_device()
                || (registered.is_able && end.turn().is_called())
                || front.chain[..front.chain.len() - 1].iter().any(|queue| !queue.turn().is_parked())
        };
        let mut is_news_now = is_news();
        if !is_news_now && !self.slept.get() && self.wait.spin_ns > 0 {
            let start = now_ns();
            while !is_news_now && now_ns() - start < self.wait.spin_ns {
                // Who has more to do than he wants to keep finds company there.
                is_news_now = self.join(end) == Joined::Worked;
                (0..16).for_each(|_| std::hint::spin_loop());
                is_news_now |= is_news();
            }
        }
        let mut result = Ok(());
        if !is_news_now {
            self.slept.set(true);
            result = self.may_sleep(front.is_at_work);
            if result.is_ok() {
                watch.sleep(self.slice(end));
                self.rounds.set(if watch.is_over() { 0 } else { self.rounds.get() + 1 });
            }
        }
        self.slept.set(self.slept.get() && !watch.is_over());
        drop(watch);
        drop(registered);
        // What was left to this thread it does, or passes on.
        if result.is_err() || self.is_over() || !self.may_claim(end) {
            end.pass_on();
        } else if end.turn().is_called() {
            end.drain_until(Hands::Host, &|| self.is_over());
        }
        result
    }

    /// Until when to sleep before it is to be looked again whether the wait has become part of a circle, or a lane is
    /// called.
    fn slice(&self, end: &Queue) -> Deadline {
        let deadline =
            if self.is_able_now() { self.deadline } else { self.deadline.earlier(Deadline::at(self.from_ns)) };
        match self.waiting {
            Some(_) => deadline.earlier(Deadline::after(LOOK_AGAIN_NS)),
            // What others hand to a pool meanwhile, and nobody begins, tells nobody.
            None if end.is_shared() => deadline.earlier(Deadline::after(GRACE_NS << self.rounds.get().min(4))),
            None => deadline,
        }
    }

    /// Refuses the sleep where nobody could ever get on, or this thread may be needed.
    fn may_sleep(&mut self, is_at_work: bool) -> Result<()> {
        let is_worker = *self.is_worker.get_or_insert_with(threadpool::within_any);
        if (is_worker && !is_at_work) || ambient::within(Work::Unknown) {
            return Err(would_block(self.wait.what, self.queue.name()));
        }
        if ambient::depth() == 0 {
            return Ok(());
        }
        let waiting = self.waiting.get_or_insert_with(|| Waiting::add(ambient::queues(), self.queue));
        if waiting.closes_a_circle() {
            return Err(Error::precondition(format!(
                "waiting for {} of stream '{}' here would never end: that stream waits for the work that calls",
                self.wait.what,
                self.queue.name()
            )));
        }
        Ok(())
    }
}

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

/// Looks for something that no queue does, in a thread that must not sleep; runs other tasks of the pool meanwhile if
/// the host lets threads do that. False if it was not done for so many nanoseconds without such a task.
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

/// Sleeps, inside the work of a synchronous queue and in no worker, until something has happened that no queue does:
/// `sleep` says whether it has. A lane does its own queue's work meanwhile.
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
