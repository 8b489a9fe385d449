//! loom models of threads that submit to one device queue (`relief`), and their broken twins.
//!
//! The steps are those of `Queue::submit_as`, `drain_own` and `drain_items`. loom treats SeqCst accesses as AcqRel, so
//! the looks at the inbox are changes by 0.

use super::relief::{Submitter, relieve};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use crate::sync::lock::Word;
use crate::sync::models::Futex;
use crate::sync::{DrainGuard, DrainLock};
use loom::cell::UnsafeCell;
use loom::thread;
// The panic of a failing model unwinds through these values, so they must not be loom's.
use std::cell::Cell;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq)]
enum ReliefTwin {
    None,
    /// The holder leaves to a thread that has come, and may be gone.
    LeavesWithoutALook,
    /// The holder leaves the lock free, as after the last item.
    LeavesUncalled,
    /// A submitter that withdraws does not look whether the holder has left already.
    WithdrawsWithoutALook,
}

/// The kind of the first item.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Plain,
    /// A host function.
    Function,
    /// It waits for an event.
    Wait,
}

enum Drained {
    All,
    Relieved,
    Pending,
}

/// Items that were taken from the inbox and not issued.
struct Taken(UnsafeCell<u64>);

// SAFETY: loom checks the cell.
unsafe impl Send for Taken {}

struct ModelQueue {
    lock: DrainLock<Taken>,
    submitted: AtomicU64,
    inbox: AtomicU64,
    issued: AtomicU64,
    is_begun: AtomicU32,
    /// 1: a thread has parked the queue for it. 2: it was reached.
    event: AtomicU32,
    /// Changes of the holder's: a submitter sleeps instead of pausing, so one that waits for nothing is a deadlock.
    changes: Futex,
    first: First,
    twin: ReliefTwin,
}

impl ModelQueue {
    fn tell(&self) {
        self.changes.fetch_add(1, SeqCst);
        self.changes.wake(u32::MAX);
    }

    fn take(&self, guard: &mut DrainGuard<'_, Taken>) -> u64 {
        // SAFETY: none: loom reports another thread that has it.
        guard.0.with_mut(|taken| unsafe {
            *taken += self.inbox.swap(0, SeqCst);
            *taken
        })
    }

    /// `Queue::drain_items`.
    fn drain_items(&self, guard: &mut DrainGuard<'_, Taken>, own: u64) -> Drained {
        while self.take(guard) > 0 {
            let issued = self.issued.load(SeqCst);
            if issued >= own && guard.may_leave() {
                return Drained::Relieved;
            }
            match self.first {
                First::Wait if issued == 0 && self.event.compare_exchange(0, 1, SeqCst, SeqCst) != Err(2) => {
                    return Drained::Pending;
                }
                First::Function if issued == 0 => {
                    self.is_begun.store(1, SeqCst);
                    self.tell();
                    self.is_begun.store(0, SeqCst);
                }
                _ => {}
            }
            // SAFETY: as above.
            guard.0.with_mut(|taken| unsafe { *taken -= 1 });
            self.issued.fetch_add(1, SeqCst);
            self.tell();
        }
        Drained::All
    }

    /// `Queue::drain_own`.
    fn drain_own(&self, own: u64) -> bool {
        let Some(guard) = self.lock.hold() else { return false };
        self.drain_held(guard, own);
        self.tell();
        true
    }

    fn drain_held<'a>(&'a self, mut guard: DrainGuard<'a, Taken>, own: u64) {
        loop {
            let kept = match self.drain_items(&mut guard, own) {
                Drained::All => {
                    drop(guard);
                    if self.inbox.fetch_add(0, SeqCst) == 0 {
                        return;
                    }
                    self.lock.hold().ok_or(())
                }
                Drained::Relieved if self.twin == ReliefTwin::LeavesUncalled => return,
                Drained::Relieved => match guard.hand_over() {
                    Err(_) if self.twin == ReliefTwin::LeavesWithoutALook => return,
                    left => left.map_or_else(Ok, |()| Err(())),
                },
                Drained::Pending => guard.park().map_or_else(Ok, |()| Err(())),
            };
            match kept {
                Ok(kept) => guard = kept,
                Err(()) => return,
            }
        }
    }

    /// `Queue::submit_as`.
    fn submit(&self) {
        let number = self.submitted.fetch_add(1, SeqCst) + 1;
        self.inbox.fetch_add(1, SeqCst);
        if self.lock.call() {
            self.drain_own(number);
        } else {
            relieve(&ModelSubmitter { queue: self, number, seen: Cell::new(0) });
        }
    }

    /// The thread that reaches the event.
    fn reach(&self) {
        if self.event.swap(2, SeqCst) == 1 && self.lock.resume() {
            self.drain_own(self.submitted.load(SeqCst));
        }
    }
}

struct ModelSubmitter<'a> {
    queue: &'a ModelQueue,
    number: u64,
    seen: Cell<u32>,
}

impl Submitter for ModelSubmitter<'_> {
    type Items = Taken;
    const MOST_FOR_OTHERS: u64 = 1;

    fn lock(&self) -> &DrainLock<Taken> {
        &self.queue.lock
    }

    fn drain(&self) -> bool {
        self.seen.set(self.queue.changes.load(SeqCst));
        self.queue.drain_own(self.queue.submitted.load(SeqCst))
    }

    fn is_elsewhere(&self) -> bool {
        self.queue.lock.is_parked() || self.queue.is_begun.load(SeqCst) == 1
    }

    fn unissued(&self) -> u64 {
        self.queue.submitted.load(SeqCst).saturating_sub(self.queue.issued.load(SeqCst))
    }

    fn is_issued(&self) -> bool {
        self.queue.issued.load(SeqCst) >= self.number
    }

    fn pause(&self) {
        self.queue.changes.sleep(self.seen.get());
    }

    fn withdraw(&self) -> bool {
        self.queue.lock.withdraw() || self.queue.twin == ReliefTwin::WithdrawsWithoutALook
    }
}

/// Threads that submit so many items each, the last one beside whoever reaches the event.
fn submit_beside(first: First, items: &'static [u64], twin: ReliefTwin) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let queue = Arc::new(ModelQueue {
            lock: DrainLock::new(Taken(UnsafeCell::new(0))),
            submitted: AtomicU64::new(0),
            inbox: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            is_begun: AtomicU32::new(0),
            event: AtomicU32::new(0),
            changes: Futex::new(),
            first,
            twin,
        });
        let submit = |&items| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..items).for_each(|_| queue.submit()))
        };
        let others: Vec<_> = items.iter().map(submit).collect();
        match first {
            First::Wait => queue.reach(),
            First::Plain | First::Function => queue.submit(),
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        // Neither the lock is held nor is a thread on its way.
        let guard = queue.lock.hold().expect("the lock is not free");
        // SAFETY: as above.
        let taken = guard.0.with(|taken| unsafe { *taken });
        assert_eq!(taken + queue.inbox.fetch_add(0, SeqCst), 0, "items are left behind");
        drop(guard);
        assert_eq!(queue.issued.load(SeqCst), queue.submitted.load(SeqCst), "an item is issued twice");
    });
}

#[test]
fn models_relief_leaves_no_item_to_nobody() {
    submit_beside(First::Plain, &[1, 1], ReliefTwin::None);
}

#[test]
fn models_relief_beside_a_function() {
    submit_beside(First::Function, &[1, 1], ReliefTwin::None);
}

#[test]
fn models_relief_where_the_queue_parks() {
    submit_beside(First::Wait, &[2, 1], ReliefTwin::None);
}

#[test]
#[should_panic(expected = "items are left behind")]
fn models_broken_relief_leaves_without_a_look() {
    submit_beside(First::Function, &[1, 1], ReliefTwin::LeavesWithoutALook);
}

#[test]
#[should_panic(expected = "items are left behind")]
fn models_broken_relief_leaves_uncalled() {
    submit_beside(First::Plain, &[1, 1], ReliefTwin::LeavesUncalled);
}

#[test]
#[should_panic(expected = "items are left behind")]
fn models_broken_relief_withdraws_without_a_look() {
    submit_beside(First::Function, &[1, 1], ReliefTwin::WithdrawsWithoutALook);
}
