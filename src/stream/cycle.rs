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
//!
//! Two things make a chain look like a circle that is none. A thread whose wait has ended is in the list until it wakes
//! up: so a wait is an edge only until its target is reached. And queues go on while others are looked at: so a circle
//! is looked at a second time, backwards from this thread's own queue, which stands still. A queue that waits for one
//! that stands still stands still as well, so what is found then held all the time.
#![forbid(unsafe_code)]

use super::queue::{Mark, Queue};
use crate::sync::{Global, MutexGuard, ambient};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// A part of a queue's work that others wait for.
pub trait Awaited: Send + Sync {
    fn is_over(&self) -> bool;
}

/// The end that a wait for a queue's work has.
#[derive(Clone)]
pub enum WaitTarget {
    /// That so many of its items are completed.
    Items(u64),
    /// An event, or a run.
    Object(Weak<dyn Awaited>),
}

impl WaitTarget {
    /// Whether the wait ends: the waiting thread may not have woken up yet.
    pub(super) fn is_over(&self, queue: &Queue) -> bool {
        match self {
            WaitTarget::Items(count) => queue.has_completed(*count),
            WaitTarget::Object(object) => object.upgrade().is_none_or(|object| object.is_over()),
        }
    }
}

impl Awaited for Mark {
    fn is_over(&self) -> bool {
        self.is_reached()
    }
}

/// Queue `from` (by id) is blocked until `to` has reached the target.
struct WaitEdge {
    from: u64,
    to: Weak<Queue>,
    target: WaitTarget,
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
    pub fn add(from: Vec<u64>, to: &Arc<Queue>, target: &WaitTarget) -> WaitEdges {
        let to = Arc::downgrade(to);
        COUNT.fetch_add(from.len(), Relaxed);
        let edge = |&from| WaitEdge { from, to: Weak::clone(&to), target: target.clone() };
        waits().extend(from.iter().map(edge));
        WaitEdges { from, to }
    }

    /// Whether the chain from the awaited queue leads back to this thread's.
    pub fn closes_a_circle(&self) -> bool {
        // Each queue with the place of the one that waits for it.
        let mut found: Vec<(Arc<Queue>, usize)> = self.to.upgrade().map(|queue| (queue, 0)).into_iter().collect();
        let mut at = 0;
        while let Some((queue, _)) = found.get(at).cloned() {
            if self.from.contains(&queue.id()) && is_chain(&found, at) {
                return true;
            }
            if queue.program_waited_for().is_some_and(ambient::within_runs_of) {
                return true;
            }
            for next in queue.parked_on().into_iter().chain(all_awaited_by(&queue)) {
                if !found.iter().any(|(queue, _)| Arc::ptr_eq(queue, &next)) {
                    found.push((next, at));
                }
            }
            at += 1;
        }
        false
    }
}

/// Whether each queue on the way to the one at `end` is still held up by the next, the last ones first.
fn is_chain(found: &[(Arc<Queue>, usize)], mut end: usize) -> bool {
    while end > 0 {
        let (queue, before) = &found[end];
        if !is_held_up(&found[*before].0, queue) {
            return false;
        }
        end = *before;
    }
    true
}

/// Whether `queue` cannot go on before `next` has.
pub(super) fn is_held_up(queue: &Queue, next: &Arc<Queue>) -> bool {
    let is_next = |awaited: Arc<Queue>| Arc::ptr_eq(&awaited, next);
    queue.parked_on().is_some_and(is_next) || all_awaited_by(queue).into_iter().any(is_next)
}

/// A queue that a thread inside of this one waits for.
pub(super) fn awaited_by(queue: &Queue) -> Option<Arc<Queue>> {
    all_awaited_by(queue).pop()
}

fn all_awaited_by(queue: &Queue) -> Vec<Arc<Queue>> {
    if COUNT.load(Relaxed) == 0 {
        return Vec::new();
    }
    // Not under the lock: a look at an event may complete it, and so call others.
    let edge = |wait: &WaitEdge| (wait.from == queue.id()).then(|| Some((wait.to.upgrade()?, wait.target.clone())));
    let edges: Vec<_> = waits().iter().filter_map(edge).flatten().collect();
    edges.into_iter().filter(|(to, target)| !target.is_over(to)).map(|(to, _)| to).collect()
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
