//! Tasks for probes, and their measurements.

use super::subject::{Outcome, ProbeBench};
use crate::base::time::{Deadline, now_ns};
use crate::sync::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;

/// Busy-waits.
pub fn spin(ns: u64) {
    let start = now_ns();
    while now_ns() - start < ns {
        std::hint::spin_loop();
    }
}

impl ProbeBench {
    /// Schedules `work`. False = refused.
    pub(super) fn schedule(&self, work: impl Fn() + Send + Sync + 'static) -> bool {
        let caller = thread::me();
        let inline = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&inline);
        let body = move |_| {
            if thread::me() == caller {
                seen.fetch_add(1, Relaxed);
            }
            work();
        };
        self.seen.offered.fetch_add(1, Relaxed);
        let accepted = self.checks.probe_schedule(Arc::new(body));
        if accepted {
            self.seen.scheduled.fetch_add(1, Relaxed);
            self.seen.inline.fetch_add(inline.load(Relaxed), Relaxed);
        } else {
            self.seen.refused.fetch_add(1, Relaxed);
        }
        accepted
    }

    /// Runs `work(0)` to `work(n - 1)` through parallel_for. False = refused.
    pub(super) fn parallel_for(&self, n: usize, work: impl Fn(usize) + Send + Sync + 'static) -> bool {
        let caller = thread::me();
        let here = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&here);
        let body = move |index: i32| {
            if thread::me() == caller {
                seen.fetch_add(1, Relaxed);
            }
            work(index as usize);
        };
        self.seen.offered.fetch_add(1, Relaxed);
        let accepted = self.checks.probe_parallel_for(n, Arc::new(body));
        if accepted {
            self.seen.bulk.fetch_add(n as u64, Relaxed);
            self.seen.in_caller.fetch_add(here.load(Relaxed), Relaxed);
        } else {
            self.seen.refused.fetch_add(1, Relaxed);
        }
        accepted
    }

    /// Hands one task over in a way that does not wait for it. `None` if there is none; else whether it was accepted.
    pub(super) fn hand_over(&self, work: impl Fn() + Send + Sync + 'static) -> Option<bool> {
        if self.checks.has_schedule() {
            Some(self.schedule(work))
        } else if !self.checks.waits() {
            Some(self.parallel_for(1, move |_| work()))
        } else {
            None
        }
    }

    /// Waits until the pool has no task; gives how many it has at the deadline.
    pub(super) fn settle(&self, deadline: Deadline) -> usize {
        loop {
            let open = self.checks.open();
            if open == 0 {
                return 0;
            }
            if deadline.is_past() {
                self.tasks_are_lost();
                return open;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Waits a moment for tasks that run again.
    pub(super) fn linger(&self) {
        std::thread::sleep(Duration::from_millis(2));
    }

    /// Calls that were accepted so far.
    pub(super) fn accepted(&self) -> u64 {
        self.seen.offered.load(Relaxed) - self.seen.refused.load(Relaxed)
    }

    /// The outcome if the pool has accepted no more calls than `before`.
    pub(super) fn seen_unless_refused(&self, before: u64, text: String) -> Outcome {
        if self.accepted() > before {
            return Outcome::Pass(text);
        }
        Outcome::NotMet("the pool refused every call, so nothing was run".to_owned())
    }

    pub(super) fn width(&self) -> usize {
        usize::try_from(self.checks.num_threads()).unwrap_or(0).max(1)
    }
}

/// Tasks that wait for one another, for a bounded time, and see how many there are at once.
#[derive(Debug, Default)]
pub struct TaskBarrier {
    here: AtomicUsize,
    most: AtomicUsize,
}

impl TaskBarrier {
    /// Arrives, and leaves when `wanted` have arrived or at the deadline.
    pub fn attend(&self, wanted: usize, deadline: Deadline) {
        let now = self.here.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        while self.most.load(SeqCst) < wanted && !deadline.is_past() {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.here.fetch_sub(1, SeqCst);
    }

    pub fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}
