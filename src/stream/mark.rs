//! One record of an event: a point in a queue that is reached once.

use super::queue::Queue;
use super::wait::{self, Wait};
use crate::base::time::{Deadline, now_ns};
use crate::base::{Error, Result};
use crate::sync::{Gate, Mutex, OnceLock};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

#[derive(Debug)]
pub struct Mark {
    /// 0 = not reached, 1 = reached.
    gate: Gate,
    time_ns: AtomicU64,
    /// Why the queue that reached it had failed.
    failure: OnceLock<Error>,
    /// Parked queues whose first item waits for this mark.
    waiters: Mutex<Vec<Arc<Queue>>>,
    /// The queue that will reach it.
    queue: Weak<Queue>,
}

impl Mark {
    pub fn new(queue: &Arc<Queue>) -> Arc<Mark> {
        Arc::new(Mark {
            gate: Gate::new(),
            time_ns: AtomicU64::new(0),
            failure: OnceLock::new(),
            waiters: Mutex::new(Vec::new()),
            queue: Arc::downgrade(queue),
        })
    }

    /// The queue that will reach it.
    pub(super) fn queue(&self) -> Weak<Queue> {
        Weak::clone(&self.queue)
    }

    pub fn is_reached(&self) -> bool {
        self.gate.reached() > 0
    }

    /// Why the queue had failed when it got here.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// When it was reached, in nanoseconds of the monotonic clock.
    pub fn time_ns(&self) -> u64 {
        // ORDERING: Relaxed; callers have seen `is_reached`, whose Acquire covers it.
        self.time_ns.load(Relaxed)
    }

    /// The queue has got here.
    pub(super) fn reach(&self, failure: Option<Error>) {
        self.time_ns.store(now_ns(), Relaxed);
        if let Some(error) = failure {
            let _ = self.failure.set(error);
        }
        // Under the lock, so that nobody subscribes after the list was taken.
        let waiters = {
            let mut waiters = self.waiters.lock();
            self.gate.advance(1);
            std::mem::take(&mut *waiters)
        };
        waiters.iter().for_each(Queue::resume);
    }

    /// Has the queue resumed when the mark is reached; false if it is reached already.
    pub(super) fn subscribe(&self, queue: &Arc<Queue>) -> bool {
        let mut waiters = self.waiters.lock();
        if self.is_reached() {
            return false;
        }
        if !waiters.iter().any(|waiter| Arc::ptr_eq(waiter, queue)) {
            waiters.push(Arc::clone(queue));
        }
        true
    }

    /// Waits until it is reached; the error of the queue that reached it is not this call's.
    pub fn wait(&self, spin_ns: u64, deadline: Deadline) -> Result<()> {
        let queue = self.queue.upgrade();
        let sleep = |spin_ns, deadline| self.gate.wait(1, spin_ns, deadline);
        let wait = Wait { what: "an event", done: &|| self.is_reached(), join: &|| false, sleep: &sleep, spin_ns };
        wait::until(&wait, queue.as_ref(), deadline)
    }
}
