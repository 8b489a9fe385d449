//! The library's own pool: one queue per thread, and work stealing.
//!
//! A task from a thread of the pool goes into that thread's queue, one from outside into the queues in turn. A thread
//! takes from its own queue first and then from the others'. A full queue refuses the task; weir then runs the work in
//! the caller.
//!
//! *Sleep and wake.* A thread without work searches for the spin budget and then sleeps on `epoch`. `searching` counts
//! the threads that search, `asleep` those that sleep or are about to. A pusher wakes one sleeper, unless a thread is
//! searching: that one will find the task. When the last searcher finds a task, it wakes one more thread if there is
//! more work. No task is left lying: a thread that goes to sleep first counts itself into `asleep`, out of `searching`,
//! and then looks at all queues once more; a pusher pushes and then looks at both counts. All of these are SeqCst, so
//! in their single order one of the two sees the other.
//!
//! *End.* When the pool object dies, the threads drain the queues and end by themselves; nobody joins them, since one
//! of them may drop the last reference.
#![forbid(unsafe_code)]

use super::backend::Backend;
use super::host::RawTask;
use super::ring::MpmcRing;
use crate::abi::weir_threadpool_flags as F;
use crate::base::time::now_ns;
use crate::base::{Code, Error, Result};
use crate::sync::{futex, thread};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*, fence};

const QUEUE: usize = 512;

#[derive(Debug)]
pub struct WorkStealingPool(Arc<WorkStealingShared>);

#[derive(Debug)]
struct WorkStealingShared {
    queues: Box<[MpmcRing]>,
    spin_ns: u64,
    /// The queue for the next task from outside.
    next: AtomicUsize,
    searching: AtomicU32,
    asleep: AtomicU32,
    epoch: AtomicU32,
    closing: AtomicBool,
}

thread_local! {
    /// The pool (by address) and the index of a thread of it.
    static HOME: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

impl WorkStealingPool {
    pub fn start(threads: usize, spin_ns: u64, group: thread::ThreadGroup) -> Result<WorkStealingPool> {
        let shared = Arc::new(WorkStealingShared {
            queues: (0..threads).map(|_| MpmcRing::new(QUEUE)).collect(),
            spin_ns,
            next: AtomicUsize::new(0),
            searching: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            closing: AtomicBool::new(false),
        });
        // From here on a failure drops `pool`, which ends the threads that did start.
        let pool = WorkStealingPool(Arc::clone(&shared));
        let group = Arc::new(group);
        for index in 0..threads {
            let shared = Arc::clone(&shared);
            thread::spawn(&group, Some(index), move || {
                shared.work(index);
            })
            .map_err(|error| {
                Error::new(Code::ResourceExhausted, format!("cannot start thread {index} of {threads}: {error}"))
            })?;
        }
        Ok(pool)
    }
}

impl WorkStealingShared {
    fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// The calling thread's index in this pool.
    fn index(&self) -> Option<usize> {
        let (pool, index) = HOME.try_with(Cell::get).unwrap_or((0, 0));
        (pool == self.id()).then_some(index)
    }

    fn work(&self, index: usize) {
        HOME.with(|home| home.set((self.id(), index)));
        while let Some(task) = self.take(index).or_else(|| self.search(index)) {
            task.run(0);
        }
    }

    /// A task from this thread's queue, else stolen from another's.
    fn take(&self, index: usize) -> Option<RawTask> {
        let n = self.queues.len();
        (0..n).find_map(|i| self.queues[(index + i) % n].pop())
    }

    fn has_work(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Searches, then sleeps, until there is a task. `None` when the pool ends.
    fn search(&self, index: usize) -> Option<RawTask> {
        loop {
            self.searching.fetch_add(1, SeqCst);
            let found = self.look_around(index);
            let last = self.searching.fetch_sub(1, SeqCst) == 1;
            if found.is_some() {
                if last && self.has_work() {
                    self.wake_one();
                }
                return found;
            }
            self.asleep.fetch_add(1, SeqCst);
            let epoch = self.epoch.load(SeqCst);
            let closing = self.closing.load(SeqCst);
            if !self.has_work() && !closing {
                futex::wait(&self.epoch, epoch, None);
            }
            self.asleep.fetch_sub(1, SeqCst);
            if closing && !self.has_work() {
                return None;
            }
        }
    }

    fn look_around(&self, index: usize) -> Option<RawTask> {
        let start = now_ns();
        loop {
            if let Some(task) = self.take(index) {
                return Some(task);
            }
            if self.spin_ns == 0 || now_ns() - start >= self.spin_ns || self.closing.load(Relaxed) {
                return None;
            }
            (0..16).for_each(|_| std::hint::spin_loop());
        }
    }

    fn push(&self, task: RawTask) -> bool {
        let at = self.index().unwrap_or_else(|| self.next.fetch_add(1, Relaxed) % self.queues.len());
        if !self.queues[at].push(task) {
            return false;
        }
        // ORDERING: orders the push before the looks at the counts (push against sleep, above).
        fence(SeqCst);
        if self.searching.load(SeqCst) == 0 {
            self.wake_one();
        }
        true
    }

    fn wake_one(&self) {
        if self.asleep.load(SeqCst) > 0 {
            self.epoch.fetch_add(1, SeqCst);
            futex::wake(&self.epoch, 1);
        }
    }
}

impl Backend for WorkStealingPool {
    fn flags(&self) -> u64 {
        F::WEIR_THREADPOOL_AUTO_BALANCING as u64 | F::WEIR_THREADPOOL_NESTED as u64
    }

    fn num_threads(&self) -> usize {
        self.0.queues.len()
    }

    fn max_threads(&self) -> usize {
        self.0.queues.len()
    }

    fn has_schedule(&self) -> bool {
        true
    }

    fn schedule(&self, task: RawTask, _cost_ns: u64, _priority: i32) -> bool {
        self.0.push(task)
    }

    fn has_bulk(&self) -> bool {
        false
    }

    fn bulk(&self, _n: usize, _task: RawTask) -> bool {
        false
    }

    fn in_parallel(&self) -> bool {
        self.0.index().is_some()
    }

    fn may_end_inside(&self) -> bool {
        true
    }

    fn end(&self) {
        self.0.closing.store(true, SeqCst);
        self.0.epoch.fetch_add(1, SeqCst);
        futex::wake(&self.0.epoch, u32::MAX);
    }

    fn help(&self) -> bool {
        self.0.take(self.0.index().unwrap_or(0)).is_some_and(|task| {
            task.run(0);
            true
        })
    }
}

impl Drop for WorkStealingPool {
    fn drop(&mut self) {
        self.end();
    }
}
