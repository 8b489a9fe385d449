//! Threads that wait for a queue and drain it when it is called.
//!
//! While there is one, a caller wakes the waiters instead of asking a pool. A waiter that leaves without draining
//! passes the call on. Each side changes its own word before it reads the other's, all SeqCst, so no call is lost:
//!
//! | caller                                   | waiter                                      |
//! |------------------------------------------|---------------------------------------------|
//! | the lock becomes CALLED                  | `claimers` - 1                              |
//! | are there claimers? they are woken       | is the lock CALLED? it is drained or passed |
//! | none: pool, own thread, or the caller    |                                             |
//!
//! A waiter enters, begins to watch the event count, looks at the drain lock and at its condition, and then sleeps: in
//! this order, so that a change after the look ends the sleep.
#![forbid(unsafe_code)]

use crate::sync::atomic::{AtomicU32, Ordering::SeqCst};

#[derive(Debug)]
pub struct Claimers(AtomicU32);

impl Claimers {
    pub fn new() -> Claimers {
        Claimers(AtomicU32::new(0))
    }

    /// Counts the calling thread, unless it may not drain.
    pub fn enter(&self, is_able: bool) -> Claimer<'_> {
        self.0.fetch_add(u32::from(is_able), SeqCst);
        Claimer { claimers: self, is_able }
    }

    /// After the lock became CALLED: either this sees that a waiter has left, or the waiter sees that the queue is
    /// called.
    pub fn are_there(&self) -> bool {
        self.0.load(SeqCst) > 0
    }
}

/// A thread that waits on a queue's event count. After dropping it, the thread looks at the drain lock.
#[derive(Debug)]
pub struct Claimer<'a> {
    claimers: &'a Claimers,
    /// Whether it will drain the queue if it is called.
    pub is_able: bool,
}

impl Drop for Claimer<'_> {
    fn drop(&mut self) {
        self.claimers.0.fetch_sub(u32::from(self.is_able), SeqCst);
    }
}

/// Models of a producer, a pool's thread and a waiter at one queue, with broken twins that loom must find. loom treats
/// SeqCst accesses as AcqRel, so the looks are fences or changes by 0 here.
#[cfg(all(test, loom))]
mod models {
    use super::Claimers;
    use crate::sync::DrainLock;
    use crate::sync::atomic::{AtomicU64, Ordering::*, fence};
    use crate::sync::models::ModelEventCount;
    use loom::thread;
    use std::mem::ManuallyDrop;
    // The panic of a failing model unwinds through these values, so they must not be loom's.
    use std::sync::Arc;

    const ITEMS: u64 = 2;

    #[derive(Clone, Copy, PartialEq)]
    enum Twin {
        None,
        LeavesWithoutALook,
        LooksBeforeItWatches,
        CallerLooksFirst,
    }

    struct ModelQueue {
        drain_lock: DrainLock<()>,
        claimers: Claimers,
        events: ModelEventCount,
        pushed: AtomicU64,
        /// Times that the pool was asked.
        asked: AtomicU64,
    }

    impl ModelQueue {
        fn new() -> Arc<ModelQueue> {
            Arc::new(ModelQueue {
                drain_lock: DrainLock::new(()),
                claimers: Claimers::new(),
                events: ModelEventCount::new(),
                pushed: AtomicU64::new(0),
                asked: AtomicU64::new(0),
            })
        }

        fn push(&self, twin: Twin) {
            let early = twin == Twin::CallerLooksFirst && self.claimers.are_there();
            self.pushed.fetch_add(1, SeqCst);
            if self.drain_lock.call() {
                self.call(early);
            }
        }

        fn call(&self, early: bool) {
            fence(SeqCst);
            if early || self.claimers.are_there() {
                self.events.advance(0);
            } else {
                self.asked.fetch_add(1, SeqCst);
            }
        }

        fn is_called(&self) -> bool {
            fence(SeqCst);
            self.drain_lock.is_called()
        }

        fn is_empty(&self) -> bool {
            self.pushed.fetch_add(0, SeqCst) == self.events.reached()
        }

        fn drain(&self) {
            while !self.is_empty() {
                let Some(guard) = self.drain_lock.hold() else { return };
                while !self.is_empty() {
                    self.events.advance(1);
                }
                drop(guard);
            }
        }

        /// One round of a wait, with its sleep unless the time is over; then it leaves the queue alone.
        fn wait(&self, is_over: bool, twin: Twin) {
            self.drain();
            // The panic from a sleep that nobody ends must not touch loom's values.
            let claimer = ManuallyDrop::new(self.claimers.enter(true));
            let early = twin == Twin::LooksBeforeItWatches;
            let seen = early && (self.is_called() || self.is_empty());
            let watch = ManuallyDrop::new(self.events.watch());
            let has_news = if early { seen } else { self.is_called() || self.is_empty() };
            if !is_over && !watch.is_over() && !has_news {
                watch.sleep();
            }
            drop(ManuallyDrop::into_inner(watch));
            drop(ManuallyDrop::into_inner(claimer));
            if !is_over {
                self.drain();
            } else if twin != Twin::LeavesWithoutALook && self.is_called() {
                self.call(false);
            }
        }
    }

    fn model(f: impl Fn() + Send + Sync + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(f);
    }

    /// A producer, and a waiter that gives up or not. Every pushed item is done, or the pool was asked to do it.
    fn push_beside(gives_up: bool, twin: Twin) {
        model(move || {
            let queue = ModelQueue::new();
            let producer = thread::spawn({
                let queue = Arc::clone(&queue);
                move || (0..ITEMS).for_each(|_| queue.push(twin))
            });
            queue.wait(gives_up, twin);
            producer.join().unwrap();
            assert!(queue.is_empty() || queue.asked.load(SeqCst) > 0, "nobody was called");
        });
    }

    /// A pool's thread holds the lock: its progress ends the sleep, and the waiter does the items that it leaves.
    fn sleep_beside(twin: Twin) {
        model(move || {
            let queue = ModelQueue::new();
            queue.pushed.store(1, SeqCst);
            assert!(queue.drain_lock.call());
            let worker = thread::spawn({
                let queue = Arc::clone(&queue);
                move || queue.drain()
            });
            while !queue.is_empty() {
                queue.wait(false, twin);
            }
            worker.join().unwrap();
        });
    }

    #[test]
    fn models_a_call_reaches_the_waiter_or_the_pool() {
        push_beside(true, Twin::None);
        push_beside(false, Twin::None);
    }

    #[test]
    fn models_a_waiter_sleeps_for_another_thread() {
        sleep_beside(Twin::None);
    }

    #[test]
    #[should_panic(expected = "nobody was called")]
    fn models_broken_waiter_leaves_without_a_look() {
        push_beside(true, Twin::LeavesWithoutALook);
    }

    #[test]
    #[should_panic(expected = "nobody was called")]
    fn models_broken_caller_looks_for_waiters_first() {
        push_beside(true, Twin::CallerLooksFirst);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn models_broken_waiter_looks_before_it_watches() {
        sleep_beside(Twin::LooksBeforeItWatches);
    }
}
