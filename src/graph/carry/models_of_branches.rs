//! loom models of a branch in a loop that begins before all of its inputs are there, with broken twins that loom must
//! find.
//!
//! In each iteration a producer outside of the branch arrives at an entry in it, and a guard arrives there as well, or
//! drops the entry if the branch is not taken. Behind both is a join that ends the iteration: of the producer, and of
//! the entry if the branch is taken, else of the guard. The last one to arrive at the join begins the next iteration,
//! while the others may not be done yet: a producer that arrives at the join before the entry would be counted in the
//! wrong iteration.

use super::arrivals::{Arrival, Arrivals};
use super::models_of_propagation::bounded;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32 as Tally, Ordering::SeqCst};

/// Arrivals at the entry, and at the join.
const TWO: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ArrivalOrder {
    EntryFirst,
    JoinFirst,
}

struct BranchModel {
    entry: Arrivals,
    join: Arrivals,
    /// The producer's value for the entry.
    value: UnsafeCell<usize>,
    taken: Vec<bool>,
    producer: ArrivalOrder,
    guard: ArrivalOrder,
    ran: Tally,
    dropped: Tally,
    over: Tally,
}

impl BranchModel {
    fn iterate(self: &Arc<Self>, iteration: usize) {
        if iteration == self.taken.len() {
            return;
        }
        let branch = Arc::clone(self);
        let other = thread::spawn(move || branch.produce(iteration));
        self.choose(iteration);
        other.join().unwrap();
    }

    fn produce(self: &Arc<Self>, iteration: usize) {
        // SAFETY: the entry of the last iteration has been run or dropped: the join is behind it, which loom checks
        // here.
        self.value.with_mut(|value| unsafe { *value = iteration });
        let arrive = || self.entry.arrive(1, false, TWO);
        match self.producer {
            ArrivalOrder::EntryFirst => {
                let arrival = arrive();
                let ended = self.join();
                self.enter(arrival, iteration);
                self.go_on(ended, iteration);
            }
            ArrivalOrder::JoinFirst => {
                let ended = self.join();
                let arrival = arrive();
                self.enter(arrival, iteration);
                self.go_on(ended, iteration);
            }
        }
    }

    fn choose(self: &Arc<Self>, iteration: usize) {
        if self.taken[iteration] {
            let arrival = self.entry.arrive(1, false, TWO);
            self.enter(arrival, iteration);
            return;
        }
        let dropping = || self.dropped.fetch_add(u32::from(self.entry.drop_branch(1, TWO)), SeqCst);
        let ended = match self.guard {
            ArrivalOrder::EntryFirst => {
                dropping();
                self.join()
            }
            ArrivalOrder::JoinFirst => {
                let ended = self.join();
                dropping();
                ended
            }
        };
        self.go_on(ended, iteration);
    }

    /// For the thread that has arrived at the entry.
    fn enter(self: &Arc<Self>, arrival: Arrival, iteration: usize) {
        match arrival {
            Arrival::Waiting => {}
            Arrival::Ready => {
                assert!(self.taken[iteration], "a node of a branch that is not taken has run");
                // SAFETY: the producer has arrived.
                assert_eq!(self.value.with(|value| unsafe { *value }), iteration);
                self.ran.fetch_add(1, SeqCst);
                let ended = self.join();
                self.go_on(ended, iteration);
            }
            Arrival::Dropped => {
                assert!(!self.taken[iteration], "a node of the branch that is taken was dropped");
                self.dropped.fetch_add(1, SeqCst);
            }
            Arrival::Dead => unreachable!("nothing is dead in a structured branch"),
        }
    }

    fn join(&self) -> bool {
        self.join.arrive(1, false, TWO) == Arrival::Ready
    }

    fn go_on(self: &Arc<Self>, ended: bool, iteration: usize) {
        if ended {
            self.over.fetch_add(1, SeqCst);
            self.iterate(iteration + 1);
        }
    }
}

fn iterations(taken: &[bool], producer: ArrivalOrder, guard: ArrivalOrder) {
    let taken = taken.to_vec();
    bounded(move || {
        let branch = Arc::new(BranchModel {
            entry: Arrivals::new(TWO),
            join: Arrivals::new(TWO),
            value: UnsafeCell::new(usize::MAX),
            taken: taken.clone(),
            producer,
            guard,
            ran: Tally::new(0),
            dropped: Tally::new(0),
            over: Tally::new(0),
        });
        branch.iterate(0);
        let ran = taken.iter().filter(|taken| **taken).count() as u32;
        let ended = [&branch.over, &branch.ran, &branch.dropped].map(|tally| tally.load(SeqCst));
        assert_eq!(ended, [taken.len() as u32, ran, taken.len() as u32 - ran]);
        assert!(branch.entry.is_clean(TWO) && branch.join.is_clean(TWO));
    });
}

#[test]
fn models_an_early_branch_is_whole_in_each_iteration() {
    for taken in [[false, true], [true, false], [false, false], [true, true]] {
        iterations(&taken, ArrivalOrder::EntryFirst, ArrivalOrder::EntryFirst);
    }
}

/// The producer arrives at the join first, and then at the entry: perhaps in the next iteration.
#[test]
#[should_panic(expected = "left == right")]
fn models_broken_producer_arrives_at_entries_last() {
    iterations(&[false, true], ArrivalOrder::JoinFirst, ArrivalOrder::EntryFirst);
}

/// The guard publishes its choice before it has dropped the other branch.
#[test]
#[should_panic(expected = "left == right")]
fn models_broken_guard_drops_last() {
    iterations(&[false, true], ArrivalOrder::EntryFirst, ArrivalOrder::JoinFirst);
}
