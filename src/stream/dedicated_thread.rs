//! A thread for one asynchronous queue, where the pool cannot take single tasks or there is none. Counted.
//!
//! Calls come through an inbox. An event count counts them: the thread reads it, looks into the inbox, and sleeps only
//! until the count has moved, so a call between the look and the sleep wakes it.
//!
//! The thread may run another queue's work, if it resumed that queue and its pool refused it. A wait in that work must
//! not block the thread's own queue, so such a wait answers calls (`answer_calls`), those too that the thread has taken
//! from the inbox and not answered yet.
#![forbid(unsafe_code)]

use super::inbox::Inbox;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::device::Device;
use crate::sync::{
    EventCount, fork,
    thread::{self, ThreadGroup, ThreadOrigin},
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Room for calls that were taken and not answered: at most one is in flight, and a few that a helper drained already
/// may wait behind it.
const CALLS: usize = 64;

/// A queue, as seen by its callers.
pub trait Drainable: Send + Sync {
    /// The event that its first item waits for has happened.
    fn resume(self: Arc<Self>);
    /// Drains it in this thread, unless another thread holds it: after the queue work that this thread runs now, or on
    /// top of it.
    fn drain(self: Arc<Self>, on_top: bool);
    /// The device that executes its items.
    fn device(&self) -> Option<&Arc<dyn Device>>;
}

/// Shared by the thread and its callers.
struct Lane {
    calls: Inbox<Arc<dyn Drainable>>,
    /// Calls, and the end.
    called: EventCount,
    is_over: AtomicBool,
}

pub struct DedicatedThread(Arc<Lane>);

impl DedicatedThread {
    /// Starts the thread. It holds no queue between calls, and ends when this is dropped. `label` is short and
    /// distinguishes it from others.
    pub fn start(name: &str, label: &str) -> Result<DedicatedThread> {
        fork::check()?;
        let lane =
            Arc::new(Lane { calls: Inbox::default(), called: EventCount::new(), is_over: AtomicBool::new(false) });
        let its_own = Arc::clone(&lane);
        let group = ThreadGroup {
            origin: ThreadOrigin::Lane,
            name: format!("weir-lane-{label}"),
            owner: name.to_owned(),
            pool: 0,
        };
        thread::spawn(&Arc::new(group), None, move || work(its_own)).map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the lane of stream '{name}': {error}"))
        })?;
        Ok(DedicatedThread(lane))
    }

    /// Asks the thread to drain the queue.
    pub fn call(&self, queue: Arc<dyn Drainable>) {
        self.0.calls.push(queue);
        self.0.called.advance(1);
    }
}

impl Drop for DedicatedThread {
    fn drop(&mut self) {
        // ORDERING: SeqCst pairs with the load in `work`; `advance` wakes the thread after it.
        self.0.is_over.store(true, SeqCst);
        self.0.called.advance(1);
    }
}

/// The dedicated thread's side.
struct Answering {
    lane: Arc<Lane>,
    /// Calls that were taken from the inbox, the oldest first.
    taken: VecDeque<Arc<dyn Drainable>>,
}

thread_local! {
    /// Of a dedicated thread. Without a destructor: registering one allocates on each host thread.
    static OWN: ManuallyDrop<RefCell<Option<Answering>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// The next call, if there is one; `None` on threads that are not dedicated.
fn next_call() -> Option<Option<Arc<dyn Drainable>>> {
    OWN.with(|own| {
        let mut own = own.borrow_mut();
        let Answering { lane, taken } = own.as_mut()?;
        if taken.is_empty() {
            lane.calls.take_all(|queue| taken.push_back(queue));
        }
        Some(taken.pop_front())
    })
}

/// On a dedicated thread that is about to sleep inside a queue's work: drains the called queues on top of it. False on
/// other threads.
pub(super) fn answer_calls() -> bool {
    loop {
        match next_call() {
            Some(Some(queue)) => queue.drain(true),
            Some(None) => return true,
            None => return false,
        }
    }
}

fn work(lane: Arc<Lane>) {
    OWN.with(|own| own.replace(Some(Answering { lane: Arc::clone(&lane), taken: VecDeque::with_capacity(CALLS) })));
    loop {
        let seen = lane.called.reached();
        // ORDERING: SeqCst pairs with the store in `drop`. The last call was pushed before it.
        let is_over = lane.is_over.load(SeqCst);
        match next_call().flatten() {
            Some(queue) => queue.drain(false),
            None if is_over => break,
            None => drop(lane.called.wait(seen + 1, 0, Deadline::NEVER)),
        }
    }
    OWN.with(|own| drop(own.take()));
}
