//! The waits-for graph between queues: a wait that would close a cycle is refused instead of deadlocking.
//!
//! A thread that runs an item of queue A and waits for queue B blocks A until B progresses. B may itself be blocked by
//! a thread that runs B's item and waits for C, or because B is parked until an event of C is reached. When that chain
//! leads back to A, it is a deadlock.
//!
//! A queue may also be blocked because its first item is a run of a program that is at its limit of runs. A thread
//! inside of a run of that program does not wait for such a queue.
//!
//! Such waits are rare and slow anyway, so one list under one lock holds them. The chain may change while a thread
//! sleeps, so it looks again from time to time (`wait`).
#![forbid(unsafe_code)]

use super::queue::Queue;
use crate::sync::{Global, MutexGuard, ambient};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Queue `from` (by id) is blocked until `to` progresses.
struct WaitEdge {
    from: u64,
    to: Weak<Queue>,
}

static WAITS: Global<Vec<WaitEdge>> = Global::new(Vec::new);
/// How many there are: most waits find none, and take no lock. ORDERING: Relaxed; a wait that may close a circle looks
/// again.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn waits() -> MutexGuard<'static, Vec<WaitEdge>> {
    WAITS.lock()
}

/// The edges of one waiting thread; removed when dropped.
pub(super) struct WaitEdges {
    from: Vec<u64>,
    to: Weak<Queue>,
}

impl WaitEdges {
    /// The queues `from` wait for `to` from now on.
    pub fn add(from: Vec<u64>, to: &Arc<Queue>) -> WaitEdges {
        let to = Arc::downgrade(to);
        COUNT.fetch_add(from.len(), Relaxed);
        waits().extend(from.iter().map(|&from| WaitEdge { from, to: Weak::clone(&to) }));
        WaitEdges { from, to }
    }

    /// Whether the chain from the awaited queue leads back to this thread's.
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

/// A queue that a thread inside of this one waits for.
pub(super) fn awaited_by(queue: &Queue) -> Option<Arc<Queue>> {
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    waits().iter().filter(|wait| wait.from == queue.id()).find_map(|wait| wait.to.upgrade())
}

/// Whether a thread inside of `queue` waits for `awaited`.
pub(super) fn waits_for(queue: &Queue, awaited: &Queue) -> bool {
    waits().iter().any(|wait| wait.from == queue.id() && std::ptr::eq(wait.to.as_ptr(), awaited))
}

impl Drop for WaitEdges {
    fn drop(&mut self) {
        let mut waits = waits();
        for from in &self.from {
            let mine = |wait: &WaitEdge| wait.from == *from && Weak::ptr_eq(&wait.to, &self.to);
            if let Some(at) = waits.iter().position(mine) {
                waits.swap_remove(at);
                COUNT.fetch_sub(1, Relaxed);
            }
        }
    }
}
