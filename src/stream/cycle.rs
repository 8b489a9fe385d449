//! Which queue's work waits for which queue: a wait that would close a circle is refused instead of hanging.
//!
//! A thread that runs an item of queue A and waits for queue B holds A up until B gets on. B may be held up in turn,
//! by a thread that runs B's item and waits for C, or because B is parked until an event of C is reached. When that
//! chain leads back to A, nobody gets on.
//!
//! A queue may also be held up because its first item is a run of a program that has as many as it may have. A thread
//! that is inside of a run of that program does not wait for such a queue.
//!
//! Such waits are rare and slow anyway, so they are kept in one list under one lock. The end of the chain may change
//! while a thread sleeps, so it looks again from time to time (`wait`).
#![forbid(unsafe_code)]

use super::queue::Queue;
use crate::sync::{Global, MutexGuard, ambient};
use std::sync::{Arc, Weak};

/// Queue `from` (by id) is held up until `to` gets on.
struct Wait {
    from: u64,
    to: Weak<Queue>,
}

static WAITS: Global<Vec<Wait>> = Global::new(Vec::new);

fn waits() -> MutexGuard<'static, Vec<Wait>> {
    WAITS.lock()
}

/// The entries of one waiting thread; taken off again when dropped.
pub(super) struct Waiting {
    from: Vec<u64>,
    to: Weak<Queue>,
}

impl Waiting {
    /// The queues `from` wait for `to` from now on.
    pub fn add(from: Vec<u64>, to: &Arc<Queue>) -> Waiting {
        let to = Arc::downgrade(to);
        waits().extend(from.iter().map(|&from| Wait { from, to: Weak::clone(&to) }));
        Waiting { from, to }
    }

    /// Whether the chain from the queue that is waited for leads back.
    pub fn closes_a_circle(&self) -> bool {
        let mut seen: Vec<u64> = Vec::new();
        let mut next: Vec<Arc<Queue>> = self.to.upgrade().into_iter().collect();
        while let Some(queue) = next.pop() {
            if self.from.contains(&queue.id()) {
                return true;
            }
            if seen.contains(&queue.id()) {
                continue;
            }
            seen.push(queue.id());
            if queue.program_waited_for().is_some_and(ambient::within_runs_of) {
                return true;
            }
            next.extend(queue.parked_on());
            let waits = waits();
            next.extend(waits.iter().filter(|wait| wait.from == queue.id()).filter_map(|wait| wait.to.upgrade()));
        }
        false
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waits = waits();
        for from in &self.from {
            let mine = |wait: &Wait| wait.from == *from && Weak::ptr_eq(&wait.to, &self.to);
            if let Some(at) = waits.iter().position(mine) {
                waits.swap_remove(at);
            }
        }
    }
}
