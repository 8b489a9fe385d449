//! The arrival counter of a plain node in one instance of its region: how many arrivals are pending, and which have
//! come.
//!
//! ```text
//! | dropped : 1 | dead : 31 | pending : 32 |
//! ```
//!
//! A node of a graph has one word in each copy of its region (each run, each iteration in flight). The producer of one
//! of its inputs arrives; the last one to arrive owns the node and is told what to do with it. An arrival is an
//! addition of a constant, so one `fetch_add` both makes it and tells whether it was the last: there is no lock, no
//! second look and no loop.
//!
//! | arrival | by                                     | change                     |
//! |---------|----------------------------------------|----------------------------|
//! | live    | a producer that ran                    | pending - amount           |
//! | dead    | a producer without a value             | pending - amount, dead + 1 |
//! | drop    | the guard of a branch that isn't taken | pending - amount, dropped  |
//! | reset   | the arrival that made pending 0        | the start value, a store   |
//!
//! *One owner.* `pending` starts as the number of arrivals that the compiler counted, and each takes off its part. So
//! it gets to 0 in exactly one addition, and no field can borrow from its neighbour or run into it: at most `MOST`
//! arrivals are counted. A version that subtracts and then looks gives a node to two threads
//! (`models_broken_arrivals_look_again`).
//!
//! *Parallel edges.* All edges from one producer to one consumer are one arrival: `amount` is the number of edges that
//! it stands for.
//!
//! *Self-reset.* The owner stores the start value before it does anything else, so that a run neither copies nor clears
//! the words of the last one. No other thread can see the word then: all arrivals of this instance have been made, and
//! those of the next one come after the instance is closed, which is ordered behind the owner by what closes it (the
//! latch of the run, the retirement of the iteration). Only a run that was given up leaves words that are not clean;
//! `reset` them.
//!
//! *Branches that are not taken.* The nodes of a structured branch get no dead inputs. The guard of the branch is an
//! edge to each of its entries, that is, the nodes that have an input from outside the branch. On the side that is not
//! taken those inputs still arrive, and the others never do: the guard itself, and all edges from inside the branch.
//! The guard makes these in their place, as one arrival, the drop. So the word is completed by the arrivals from
//! outside alone, and the last one finds the flag, resets the word and releases the inputs without running the node.
//! Its successors in the branch were never touched. Of two nested branches that are not entered the outer guard makes
//! the drop for the entries of both, as the inner one never runs: no word is dropped twice. A drop that forgets the
//! edges from inside leaves a half counted word for the next run (`models_broken_drop_forgets_the_inside`).
//!
//! *Order.* All additions are AcqRel on one word, and additions do not end each other's release sequences: the last
//! arrival has acquired the releases of all earlier ones, that is, the values in the consumer's inputs.
//!
//! The start value is not in the word but with the program, once for all instances, and comes with each call.
#![forbid(unsafe_code)]

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

const DEAD_SHIFT: u32 = 32;
const DROPPED: u64 = 1 << 63;

#[derive(Debug)]
pub struct Arrivals(AtomicU64);

/// The action after an arrival. Exactly one per instance gets another value than `Waiting`, and it finds the word
/// reset.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Others are pending.
    Waiting,
    /// Run the node.
    Ready,
    /// Some input has no value: the node does not run, and its outputs have no value either.
    Dead,
    /// The node is in a branch that is not taken: release the inputs that came, and make no arrivals.
    Dropped,
}

/// The addend of an arrival that sets these flags.
#[inline]
const fn change(amount: u32, flags: u64) -> u64 {
    flags.wrapping_sub(amount as u64)
}

#[inline]
const fn dead_flag(dead: bool) -> u64 {
    (dead as u64) << DEAD_SHIFT
}

/// The meaning of a word in which nothing is pending.
#[inline]
fn outcome(word: u64) -> Arrival {
    if word == 0 {
        Arrival::Ready
    } else if word & DROPPED == 0 {
        Arrival::Dead
    } else {
        Arrival::Dropped
    }
}

impl Arrivals {
    /// The most arrivals that one word counts: each may be dead.
    pub const MOST: u32 = i32::MAX as u32;

    #[inline]
    pub fn new(start: u32) -> Arrivals {
        debug_assert!(0 < start && start <= Arrivals::MOST, "a word for {start} arrivals");
        Arrivals(AtomicU64::new(u64::from(start)))
    }

    /// `amount` edges arrive, with a value or dead.
    #[inline]
    pub fn arrive(&self, amount: u32, dead: bool, start: u32) -> Arrival {
        self.shared(amount, dead_flag(dead), start)
    }

    /// The guard of a branch that is not taken arrives at an entry: for itself and for all edges from inside the
    /// branch, which are `amount` together. True: all inputs from outside have come before, release them. Otherwise the
    /// last of them gets `Dropped`.
    #[inline]
    pub fn drop_branch(&self, amount: u32, start: u32) -> bool {
        self.shared(amount, DROPPED, start) != Arrival::Waiting
    }

    #[inline]
    fn shared(&self, amount: u32, flags: u64, start: u32) -> Arrival {
        // ORDERING: AcqRel; Release publishes the caller's value to the last arrival, and Acquire shows the last one
        // the values of all others.
        let before = self.0.fetch_add(change(amount, flags), AcqRel);
        let after = before.wrapping_add(change(amount, flags));
        check(before, after, amount);
        if before as u32 != amount {
            return Arrival::Waiting;
        }
        self.reset(start);
        outcome(after)
    }

    /// Sets the start value. Only for the owner of the node, or of a run that is closed.
    #[inline]
    pub fn reset(&self, start: u32) {
        // ORDERING: Relaxed; the next instance's arrivals are ordered behind the closing of this one.
        self.0.store(u64::from(start), Relaxed);
    }

    /// Whether the word has its start value. For checks between runs.
    #[inline]
    pub fn is_clean(&self, start: u32) -> bool {
        self.0.load(Relaxed) == u64::from(start)
    }

    /// The word itself, for the models' broken twins.
    #[cfg(all(test, loom))]
    pub(in crate::graph) fn word(&self) -> &AtomicU64 {
        &self.0
    }
}

#[inline]
fn check(before: u64, after: u64, amount: u32) {
    debug_assert!(amount > 0, "an arrival of nothing");
    debug_assert!(before as u32 >= amount, "{amount} arrive where {} are pending", before as u32);
    debug_assert!(before & DROPPED <= after & DROPPED, "dropped twice");
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum TestArrival {
        Live(u32),
        Dead(u32),
        Drop(u32),
    }
    use TestArrival::*;

    fn dropped(last: bool) -> Arrival {
        if last { Arrival::Dropped } else { Arrival::Waiting }
    }

    fn take(word: &Arrivals, step: TestArrival, start: u32) -> Arrival {
        match step {
            Live(amount) => word.arrive(amount, false, start),
            Dead(amount) => word.arrive(amount, true, start),
            Drop(amount) => dropped(word.drop_branch(amount, start)),
        }
    }

    fn permutations(steps: &[TestArrival]) -> Vec<Vec<TestArrival>> {
        if steps.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for (i, &first) in steps.iter().enumerate() {
            let mut others = steps.to_vec();
            others.remove(i);
            for mut rest in permutations(&others) {
                rest.insert(0, first);
                all.push(rest);
            }
        }
        all
    }

    /// In any order: the last step gets the outcome, all others wait, and the word is as before. Several instances in
    /// the same word.
    fn ends_in(steps: &[TestArrival], outcome: Arrival) {
        let start = steps.iter().map(|&(Live(n) | Dead(n) | Drop(n))| n).sum();
        let word = Arrivals::new(start);
        for order in permutations(steps) {
            assert!(word.is_clean(start));
            let (last, first) = order.split_last().unwrap();
            for &step in first {
                assert_eq!(take(&word, step, start), Arrival::Waiting, "{order:?}");
                assert!(!word.is_clean(start));
            }
            assert_eq!(take(&word, *last, start), outcome, "{order:?}");
        }
        assert!(word.is_clean(start));
    }

    #[test]
    fn the_last_arrival_gets_the_outcome_in_any_order() {
        ends_in(&[Live(1)], Arrival::Ready);
        ends_in(&[Dead(1)], Arrival::Dead);
        ends_in(&[Live(1), Live(1), Live(3), Live(2)], Arrival::Ready);
        ends_in(&[Live(1), Dead(2), Live(3)], Arrival::Dead);
        ends_in(&[Dead(1), Dead(2), Dead(3)], Arrival::Dead);
    }

    #[test]
    fn a_dropped_node_is_completed_by_what_comes_from_outside() {
        ends_in(&[Drop(1)], Arrival::Dropped);
        ends_in(&[Drop(4), Live(1)], Arrival::Dropped);
        ends_in(&[Drop(1), Live(1), Live(2)], Arrival::Dropped);
        // No value from outside, and no successor to tell: dropped goes before dead.
        ends_in(&[Drop(3), Dead(1), Live(2)], Arrival::Dropped);
    }

    #[test]
    fn the_fields_do_not_run_into_each_other() {
        const MOST: u32 = Arrivals::MOST;
        ends_in(&[Live(MOST)], Arrival::Ready);
        ends_in(&[Dead(MOST - 1), Live(1)], Arrival::Dead);
        ends_in(&[Drop(MOST - 2), Dead(1), Dead(1)], Arrival::Dropped);
        let start = 70_000;
        let word = Arrivals::new(start);
        for _ in 1..start {
            assert_eq!(word.arrive(1, true, start), Arrival::Waiting);
        }
        assert_eq!(word.arrive(1, false, start), Arrival::Dead);
        assert!(word.is_clean(start));
    }

    #[test]
    fn a_word_that_was_given_up_is_made_whole() {
        let word = Arrivals::new(3);
        assert!(!word.drop_branch(1, 3));
        assert_eq!(word.arrive(1, true, 3), Arrival::Waiting);
        assert!(!word.is_clean(3));
        word.reset(3);
        assert!(word.is_clean(3));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "2 arrive where 1 are pending")]
    fn an_arrival_that_was_not_counted_is_noticed() {
        let word = Arrivals::new(2);
        assert_eq!(word.arrive(1, false, 2), Arrival::Waiting);
        let _ = word.arrive(2, false, 2);
    }
}
