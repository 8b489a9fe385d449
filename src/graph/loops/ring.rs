//! The gates of a while loop whose iterations overlap: which of its slots are in use, and which condition waits for
//! one.
//!
//! A loop that may run K iterations at once has K + 1 slots: copies of its nodes, with their words and values, in which
//! iteration i has slot i mod (K + 1). The newest open slot only evaluates the condition, so the bodies of at most K
//! iterations run. A slot has a head (the condition and its predecessors), a body (released by the condition's guard)
//! and a *retirement*: a node that joins all work of the slot, and has an `Arrivals`. The ring holds the rest: a gate
//! per slot, and whether the iteration in it has a next one. `compile::layout::overlap` describes how loops are laid
//! out so, and what delivers what.
//!
//! # The gate
//!
//! The gate is the number of iterations that have the slot or want it, so that each step is one addition:
//!
//! | step             | by                                    | gate           | then                                 |
//! |------------------|---------------------------------------|----------------|--------------------------------------|
//! | begin            | the loop's entry, when it is at rest  | FREE -> BUSY   | iteration 0 has slot 0               |
//! | open: `Opened`   | the true condition in the slot before | FREE -> BUSY   | it releases its guard: its body runs |
//! | open: `Parked`   | the same                              | BUSY -> WAITED | it leaves; its guard stays           |
//! | retire: `Free`   | the slot's retirement                 | BUSY -> FREE   | the next slot's previous-token       |
//! | retire: `Resume` | the same                              | WAITED -> BUSY | the parked guard, then as for `Free` |
//! | retire: `Last`   | the same, if its condition was false  | BUSY -> FREE   | the loop is over                     |
//!
//! *No blocking and no lost condition.* A parked condition is only a mark in the gate: its thread continues with other
//! work, and the slot's retirement continues for the condition, that is, releases the guard of the slot *before* the
//! one that it retires. If the opener's addition comes first, the retirement finds the mark; if the retirement's comes
//! first, the opener finds the slot free. A look and then a mark would lose the opener
//! (`models_broken_ring_looks_and_then_marks`).
//!
//! *One opener.* Slot c is opened only by the condition of the iteration in slot c - 1. The next iteration to have slot
//! c - 1 begins after this one was retired, and this one is not retired while its condition is parked, since its guard
//! has not been released. So a gate never exceeds WAITED, and cannot return to a value while a thread looks at it (no
//! ABA).
//!
//! *A slot is open before anything is delivered to it.* Values for the next iteration come from the body, the body
//! waits for the guard, and the guard is released after the next slot was opened.
//!
//! # The retirement's count
//!
//! The word of a slot's retirement starts with 1 + the sinks of the slot. A sink is a node without successors in its
//! iteration: a body node that delivers to the next iteration, one that only has an effect, a nested loop whose results
//! are not used here. A node that only leads into a part with a guard of its own (the body, a side of a cond) is a
//! sink, too: that part may be dropped, and then nothing waits for the node in its place
//! (`models_broken_loop_counts_on_the_body`). Only the condition is not a sink, since it arrives for the body itself. A
//! sink arrives after it has delivered. There is no counting while the loop runs, so nothing can be published before it
//! is counted (`models_broken_loop_counts_what_it_has_published`):
//!
//! | arrival                    | amount              | by                                                 |
//! |----------------------------|---------------------|----------------------------------------------------|
//! | the previous-token         | 1                   | the retirement of the iteration before             |
//! | ... of the first iteration | 1                   | the join of the loop's inputs, all being delivered |
//! | a sink of the head         | 1 each              | the sink                                           |
//! | a sink of the body         | 1 each              | the sink, if the condition was true                |
//! | ... of the last iteration  | all of them, as one | the condition that is false, at its end            |
//!
//! Parts within the body do as the body does: the guard of a cond arrives, at its end, for all sinks of the side that
//! is not taken. So does a true condition, if the path of the results out of the loop has sinks in the slot.
//!
//! The join of the inputs stands for an iteration -1, so that no word needs a special value for the first iteration.
//! Sinks may have a join of their own, which arrives for all of them; the executor has one for the body, and none for
//! the head, because all of a condition's graph leads to the condition.
//!
//! *Words of a body that never ran.* The previous iteration and the head deliver values to the body of the last
//! iteration as to any other, but its guard is not released: their words stay half counted. The retirement of the last
//! iteration resets these words. It may, because every node that delivers there has been retired, or has arrived at
//! this very retirement; so a sink arrives after it has delivered. The false condition may not: the previous iteration
//! may still be about to deliver (`models_broken_loop_resets_too_early`). A false condition could also drop the entries
//! of the body (`Arrivals::drop_branch`), at the cost of a step for each; as the retirement is waited for anyway, this
//! gains nothing.
//!
//! A loop whose body has no sinks counts its condition as one, which arrives when it releases its guard: a parked
//! condition always keeps its slot. The last iteration opens nothing, so its retirement sends no previous-token: the
//! next slot's word has its start value, and `has_next` says so. The loop begins with slot 0 again the next time.
//!
//! *Why the previous-token.* The last iteration may have nothing to wait for while an earlier one still works: its
//! condition is false, its body was dropped. Without the token the loop would be over, and the slot be closed to which
//! the earlier iteration delivers (`models_broken_loop_has_no_previous_token`). With it, iterations are retired in
//! their order, and the retirement of the last is the end of all of them, effects included. Nodes of the parent that a
//! loop's results release do not wait for that; so the parent counts the loop's end among its own sinks. A retirement
//! that makes the next one ready puts it onto the worker's list, like any node: the depth does not grow.
//!
//! *The gate goes before the token.* A retirement first changes the gate and then sends the token. In the other order
//! the loop could be over with a gate that is BUSY (`models_broken_loop_sends_the_token_first`).
//!
//! *`has_next`* is written by the iteration's condition when it opens the next slot, and read and cleared by the
//! iteration's retirement, which comes after it; before the gate is changed, because the slot may have its next
//! iteration at once. Both are ordered by the arrivals between them.
//!
//! *Cancelled loops.* When a run is cancelled its nodes are skipped and their arrivals made, and conditions count as
//! false. A parked guard is released as ever, the iteration that it opens does nothing, and the ring ends clean. If
//! arrivals were left out, use `reset`.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::*;

/// The values of a gate: the number of iterations that have the slot or want it.
const FREE: u32 = 0;
const BUSY: u32 = 1;
const WAITED: u32 = 2;

#[derive(Debug)]
struct RingSlot {
    gate: AtomicU32,
    /// 1: the condition of the iteration in this slot was true.
    has_next: AtomicU32,
}

#[derive(Debug)]
pub struct Ring {
    slots: Box<[RingSlot]>,
}

/// The next step of a true condition.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The slot is open: release the guard.
    Opened,
    /// The slot is in use; its retirement releases the guard.
    Parked,
}

/// The next step of a retirement.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// Send the previous-token to the next slot.
    Free,
    /// The slot is open again, for the condition in the slot before, which is parked: release its guard. Then send the
    /// previous-token to the next slot.
    Resume,
    /// There is no next iteration: the loop is over.
    Last,
}

impl Ring {
    /// The gates for `parallel` iterations at once, at least 1.
    pub fn create(parallel: u32) -> Result<Ring> {
        debug_assert!(parallel > 0, "a loop of no iterations at once");
        let count = parallel as usize + 1;
        let mut slots = Vec::new();
        slots
            .try_reserve_exact(count)
            .map_err(|_| Error::exhausted("the gates of a loop", count.saturating_mul(size_of::<RingSlot>())))?;
        slots.extend((0..count).map(|_| RingSlot { gate: AtomicU32::new(FREE), has_next: AtomicU32::new(0) }));
        Ok(Ring { slots: slots.into_boxed_slice() })
    }

    /// The number of slots.
    #[inline]
    pub fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The slot of the iteration after the one in `slot`.
    #[inline]
    pub fn after(&self, slot: u32) -> u32 {
        if slot + 1 == self.count() { 0 } else { slot + 1 }
    }

    /// The slot of the iteration before the one in `slot`.
    #[inline]
    pub fn before(&self, slot: u32) -> u32 {
        if slot == 0 { self.count() - 1 } else { slot - 1 }
    }

    /// Opens slot 0 for the first iteration. Only while nothing of the loop runs, and before any of its inputs is
    /// delivered.
    #[inline]
    pub fn begin(&self) {
        debug_assert!(self.is_clean(), "a loop begins in a ring that is in use");
        // ORDERING: Relaxed; published by what delivers the inputs.
        self.slots[0].gate.store(BUSY, Relaxed);
    }

    /// The condition of the iteration in `slot` is true: the slot after it is to be opened.
    #[inline]
    pub fn open_after(&self, slot: u32) -> Opening {
        // ORDERING: Relaxed; the retirement of `slot` reads it after the arrivals of the guard's followers.
        self.slots[slot as usize].has_next.store(1, Relaxed);
        // ORDERING: Acquire pairs with the Release in `retire`: the slot's last iteration is over, and all its writes
        // to words and values came before. Release pairs with the Acquire there: the retirement that releases a parked
        // guard sees the iteration to which it belongs.
        let before = self.slots[self.after(slot) as usize].gate.fetch_add(1, AcqRel);
        opened(before)
    }

    /// The iteration in `slot` is over: all arrivals at the slot's retirement have been made.
    #[inline]
    pub fn retire(&self, slot: u32) -> Retired {
        let has_next = self.take_has_next(slot);
        // ORDERING: AcqRel; as in `open_after`.
        let before = self.slots[slot as usize].gate.fetch_sub(1, AcqRel);
        retired(before, has_next)
    }

    #[inline]
    fn take_has_next(&self, slot: u32) -> bool {
        let word = &self.slots[slot as usize].has_next;
        // ORDERING: Relaxed; written before the arrivals that made the retirement ready, and written next after the
        // gate is changed.
        let has_next = word.load(Relaxed) != 0;
        if has_next {
            word.store(0, Relaxed);
        }
        has_next
    }

    /// Whether an iteration has the slot. For checks at a delivery, which is ordered behind the opening.
    #[cfg(all(test, not(loom)))]
    #[cfg(all(test, not(loom)))]
    pub fn is_open(&self, slot: u32) -> bool {
        self.slots[slot as usize].gate.load(Relaxed) != FREE
    }

    /// Whether no iteration has a slot. For checks between runs.
    pub fn is_clean(&self) -> bool {
        self.slots.iter().all(|slot| slot.gate.load(Relaxed) == FREE && slot.has_next.load(Relaxed) == 0)
    }

    /// All slots free. Only for the owner of a closed run.
    #[cfg(all(test, not(loom)))]
    #[cfg(all(test, not(loom)))]
    pub fn reset(&self) {
        for slot in &self.slots {
            slot.gate.store(FREE, Relaxed);
            slot.has_next.store(0, Relaxed);
        }
    }

    /// A gate and the mark beside it, for the models' broken twins.
    #[cfg(all(test, loom))]
    pub(in crate::graph) fn words(&self, slot: u32) -> (&AtomicU32, &AtomicU32) {
        let slot = &self.slots[slot as usize];
        (&slot.gate, &slot.has_next)
    }
}

#[inline]
fn opened(before: u32) -> Opening {
    debug_assert!(before < WAITED, "two conditions open one slot");
    if before == FREE { Opening::Opened } else { Opening::Parked }
}

#[inline]
fn retired(before: u32, has_next: bool) -> Retired {
    debug_assert!(before == BUSY || before == WAITED, "a slot is retired that no iteration has");
    debug_assert!(has_next || before == BUSY, "a condition waits for the last iteration");
    if before == WAITED {
        Retired::Resume
    } else if has_next {
        Retired::Free
    } else {
        Retired::Last
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use Opening::*;
    use Retired::*;

    #[test]
    fn slots_are_in_a_ring() {
        let ring = Ring::create(2).unwrap();
        assert_eq!(ring.count(), 3);
        assert_eq!([0, 1, 2].map(|slot| ring.after(slot)), [1, 2, 0]);
        assert_eq!([0, 1, 2].map(|slot| ring.before(slot)), [2, 0, 1]);
    }

    #[test]
    fn a_loop_that_does_not_run_is_over_after_its_condition() {
        let ring = Ring::create(1).unwrap();
        for _ in 0..2 {
            ring.begin();
            assert!(ring.is_open(0) && !ring.is_open(1));
            assert_eq!(ring.retire(0), Last);
            assert!(ring.is_clean());
        }
    }

    #[test]
    fn iterations_one_after_the_other_find_their_slots_free() {
        let ring = Ring::create(1).unwrap();
        for length in [1, 2, 3, 10] {
            ring.begin();
            let mut slot = 0;
            for _ in 0..length {
                assert_eq!(ring.open_after(slot), Opened);
                assert_eq!(ring.retire(slot), Free);
                slot = ring.after(slot);
            }
            assert_eq!(ring.retire(slot), Last);
            assert!(ring.is_clean());
        }
    }

    #[test]
    fn a_condition_that_is_too_early_is_resumed_by_the_slot_it_waits_for() {
        for parallel in 1..=3 {
            let ring = Ring::create(parallel).unwrap();
            ring.begin();
            for slot in 0..parallel {
                assert_eq!(ring.open_after(slot), Opened);
            }
            // All slots are in use, and the newest iteration goes on as well.
            let mut newest = parallel;
            let mut oldest = 0;
            for _ in 0..5 {
                assert_eq!(ring.open_after(newest), Parked);
                assert!(ring.is_open(oldest));
                assert_eq!(ring.retire(oldest), Resume);
                assert_eq!(ring.before(oldest), newest, "whom to resume");
                assert!(ring.is_open(oldest), "for the next iteration already");
                (newest, oldest) = (ring.after(newest), ring.after(oldest));
            }
            for _ in 0..parallel {
                assert_eq!(ring.retire(oldest), Free);
                oldest = ring.after(oldest);
            }
            assert_eq!(ring.retire(oldest), Last);
            assert!(ring.is_clean());
        }
    }

    #[test]
    fn a_ring_that_was_given_up_is_made_whole() {
        let ring = Ring::create(1).unwrap();
        ring.begin();
        assert_eq!(ring.open_after(0), Opened);
        assert_eq!(ring.open_after(1), Parked);
        assert!(!ring.is_clean());
        ring.reset();
        assert!(ring.is_clean());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a slot is retired that no iteration has")]
    fn a_slot_is_not_retired_twice() {
        let ring = Ring::create(1).unwrap();
        ring.begin();
        assert_eq!(ring.retire(0), Last);
        let _ = ring.retire(0);
    }
}
