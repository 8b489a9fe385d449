//! The word of a merge in one instance of its region: what it still waits for, what came, and which input won.
//!
//! ```text
//! | winner : 16 | live : 16 | dead : 16 | controls : 16 |
//! ```
//!
//! A merge has several data inputs of which one is expected to bring a value, and passes that one on. It fires when all
//! its control edges have arrived and either one live input has come, or all of them have come dead. Merges of
//! structured branches have no word at all (both sides write the same place); this is for merges that anything may lead
//! to.
//!
//! | arrival | caller                                  | change                                                 |
//! |---------|-----------------------------------------|--------------------------------------------------------|
//! | control | a control edge's producer, live or dead | controls - 1                                           |
//! | dead    | a data input's producer without a value | dead + 1                                               |
//! | live    | a data input's producer with a value    | live + 1; the first one also sets winner by the same   |
//! |         |                                         | compare and swap                                       |
//! | reset   | the arrival that completes the word     | the start value, a store                               |
//!
//! *One firing.* `controls == 0 && (live > 0 || dead == data inputs)` stays true once it is true, since arrivals only
//! take controls off and add to the rest. Every arrival is one step on the word, so exactly one finds it false before
//! and true after; that one fires the merge. The winner comes into the word together with its count: if it came after
//! it, a control edge could fire the merge in between, with an input that nobody chose
//! (`models_broken_merge_writes_the_winner_later`).
//!
//! *Arrivals after the firing.* Dead inputs may come when the live one has fired the merge long ago. So it is not the
//! firing that resets the word but its completion: the arrival with which all controls and all data inputs have come,
//! live or dead, of which there is exactly one as well. It is often the same as the firing, and need not be. A reset at
//! the firing would count the dead inputs that come later for the next instance
//! (`models_broken_merge_resets_when_it_fires`). Those who come late are part of the instance, by the tokens of the run
//! or the iteration, so it isn't closed before the word is clean.
//!
//! *A second live input* is an error of the graph. Its producer is told the first one's index, and its own it knows, so
//! that the error can name both; which of the two is the first may depend on timing. It counts like any other input:
//! the merge fires once and with the first one's value, whether that happens before (as a rule) or after (controls
//! missing), and the word is completed and reset as if all were well. So the error leaves no word behind that somebody
//! would have to clean. The second value is the arrival's to let go of.
//!
//! *Merges in a branch that is not taken.* There is no drop here. A merge that only has inputs from inside the branch
//! is never touched; one that has data inputs or controls from outside gets a node of its own in front of each of
//! these, and that has an `Arrivals`.
//!
//! *Order.* As for `Arrivals`: the one that fires has acquired the winner's value, the one that completes all that
//! came. No field can run into the next one: there are at most 65535 inputs of a kind.
#![forbid(unsafe_code)]

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

const CONTROL: u64 = 1;
const DEAD: u64 = 1 << 16;
const LIVE: u64 = 1 << 32;
const WINNER_SHIFT: u32 = 48;
const FIELD: u64 = 0xffff;

#[derive(Debug)]
pub struct MergeWord(AtomicU64);

/// The arrivals that a merge waits for: kept with the program, and given with each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeShape {
    /// Data inputs, at least 1.
    pub data: u16,
    /// Control edges.
    pub controls: u16,
}

/// The duties of an arrival.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeArrival {
    pub outcome: MergeOutcome,
    /// This was the last arrival of all; the word is as at the beginning. Exactly one per instance.
    pub completed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The merge still waits, or has fired before.
    Waiting,
    /// Pass on the value of this input. One arrival per instance gets this or `FireDead`.
    Fire(u16),
    /// No input has a value: the merge is dead, and so are its outputs.
    FireDead,
    /// The caller brings a value after another input did: an error of both.
    SecondLive { first: u16 },
}

#[inline]
fn controls(word: u64) -> u64 {
    word & FIELD
}

#[inline]
fn dead(word: u64) -> u64 {
    (word / DEAD) & FIELD
}

#[inline]
fn live(word: u64) -> u64 {
    (word / LIVE) & FIELD
}

#[inline]
fn winner(word: u64) -> u16 {
    (word >> WINNER_SHIFT) as u16
}

#[inline]
fn is_ready(word: u64, shape: MergeShape) -> bool {
    controls(word) == 0 && (live(word) > 0 || dead(word) == u64::from(shape.data))
}

#[inline]
fn is_complete(word: u64, shape: MergeShape) -> bool {
    controls(word) == 0 && live(word) + dead(word) == u64::from(shape.data)
}

impl MergeWord {
    #[inline]
    pub fn new(shape: MergeShape) -> MergeWord {
        debug_assert!(shape.data > 0, "a merge of nothing");
        MergeWord(AtomicU64::new(u64::from(shape.controls)))
    }

    /// A control edge arrives; it makes no difference whether its producer was dead.
    #[inline]
    pub fn arrive_control(&self, shape: MergeShape) -> MergeArrival {
        self.arrive(CONTROL.wrapping_neg(), shape)
    }

    /// A data input arrives without a value.
    #[inline]
    pub fn arrive_dead(&self, shape: MergeShape) -> MergeArrival {
        self.arrive(DEAD, shape)
    }

    /// Data input `index` arrives with a value.
    #[inline]
    pub fn arrive_live(&self, index: u16, shape: MergeShape) -> MergeArrival {
        // ORDERING: Relaxed; what is seen is of use only if the swap succeeds.
        let mut before = self.0.load(Relaxed);
        loop {
            let after = with_live(before, index);
            // ORDERING: AcqRel, as in `arrive`.
            match self.0.compare_exchange_weak(before, after, AcqRel, Relaxed) {
                Ok(_) => return self.arrived_live(before, after, shape),
                Err(now) => before = now,
            }
        }
    }

    #[inline]
    fn arrive(&self, change: u64, shape: MergeShape) -> MergeArrival {
        // ORDERING: AcqRel; Release publishes what the caller brings, to whoever fires or completes; Acquire shows them
        // what all the others have brought.
        let before = self.0.fetch_add(change, AcqRel);
        debug_assert!(change != CONTROL.wrapping_neg() || controls(before) > 0, "a control edge too many");
        self.arrived(before, before.wrapping_add(change), shape)
    }

    #[inline]
    fn arrived_live(&self, before: u64, after: u64, shape: MergeShape) -> MergeArrival {
        let arrival = self.arrived(before, after, shape);
        if live(before) == 0 {
            return arrival;
        }
        debug_assert_eq!(arrival.outcome, MergeOutcome::Waiting, "a second live input fires nothing");
        MergeArrival { outcome: MergeOutcome::SecondLive { first: winner(before) }, ..arrival }
    }

    /// The duties that follow from a step of the word.
    #[inline]
    fn arrived(&self, before: u64, after: u64, shape: MergeShape) -> MergeArrival {
        debug_assert!(live(after) + dead(after) <= u64::from(shape.data), "a data input too many");
        let outcome = if is_ready(before, shape) || !is_ready(after, shape) {
            MergeOutcome::Waiting
        } else if live(after) > 0 {
            MergeOutcome::Fire(winner(after))
        } else {
            MergeOutcome::FireDead
        };
        let completed = is_complete(after, shape);
        if completed {
            self.reset(shape);
        }
        MergeArrival { outcome, completed }
    }

    /// The word as at the beginning. Only by the arrival that completes it, or by the owner of a run that is closed.
    #[inline]
    pub fn reset(&self, shape: MergeShape) {
        // ORDERING: Relaxed; the next instance's arrivals are ordered behind the closing of this one.
        self.0.store(u64::from(shape.controls), Relaxed);
    }

    /// Whether the word is as at the beginning. For checks between runs.
    #[inline]
    pub fn is_clean(&self, shape: MergeShape) -> bool {
        self.0.load(Relaxed) == u64::from(shape.controls)
    }

    /// The word itself, for the models' broken twins.
    #[cfg(all(test, loom))]
    pub(in crate::graph) fn word(&self) -> &AtomicU64 {
        &self.0
    }
}

/// The word after a live arrival: only the first one is the winner.
#[inline]
fn with_live(before: u64, index: u16) -> u64 {
    let first = if live(before) == 0 { u64::from(index) << WINNER_SHIFT } else { 0 };
    (before + LIVE) | first
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use MergeOutcome::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Control,
        Dead,
        Live(u16),
    }

    fn shape(steps: &[Step]) -> MergeShape {
        let controls = steps.iter().filter(|step| matches!(step, Step::Control)).count();
        MergeShape { data: (steps.len() - controls) as u16, controls: controls as u16 }
    }

    fn take(merge: &MergeWord, step: Step, shape: MergeShape) -> MergeArrival {
        match step {
            Step::Control => merge.arrive_control(shape),
            Step::Dead => merge.arrive_dead(shape),
            Step::Live(index) => merge.arrive_live(index, shape),
        }
    }

    /// The outcomes of these steps, in their order; the last one completes, and only that one.
    fn outcomes(steps: &[Step]) -> Vec<MergeOutcome> {
        let shape = shape(steps);
        let merge = MergeWord::new(shape);
        let twice = [0, 1].map(|_| {
            let arrivals: Vec<_> = steps.iter().map(|&step| take(&merge, step, shape)).collect();
            let completed: Vec<_> = arrivals.iter().map(|arrival| arrival.completed).collect();
            assert_eq!(completed.iter().position(|&completed| completed), Some(steps.len() - 1), "{steps:?}");
            assert!(merge.is_clean(shape));
            arrivals.iter().map(|arrival| arrival.outcome).collect::<Vec<_>>()
        });
        assert_eq!(twice[0], twice[1], "the second instance is as the first");
        twice[0].clone()
    }

    fn expect(steps: &[Step], expected: &[MergeOutcome]) {
        assert_eq!(outcomes(steps), expected, "{steps:?}");
    }

    #[test]
    fn fires_with_the_live_input_and_completes_with_the_last() {
        use Step::*;
        expect(&[Live(0)], &[Fire(0)]);
        expect(&[Live(1), Dead, Dead], &[Fire(1), Waiting, Waiting]);
        expect(&[Dead, Live(65535), Dead], &[Waiting, Fire(65535), Waiting]);
        expect(&[Control, Dead, Control, Live(2)], &[Waiting, Waiting, Waiting, Fire(2)]);
        expect(&[Live(2), Control, Dead, Control], &[Waiting, Waiting, Waiting, Fire(2)]);
        expect(&[Live(0), Control, Dead], &[Waiting, Fire(0), Waiting]);
    }

    #[test]
    fn is_dead_when_all_inputs_are() {
        use Step::*;
        expect(&[Dead], &[FireDead]);
        expect(&[Dead, Dead, Control], &[Waiting, Waiting, FireDead]);
        expect(&[Control, Dead, Dead], &[Waiting, Waiting, FireDead]);
    }

    #[test]
    fn a_second_live_input_hears_of_the_first_and_leaves_a_clean_word() {
        use Step::*;
        expect(&[Live(3), Live(1), Dead], &[Fire(3), SecondLive { first: 3 }, Waiting]);
        expect(&[Live(1), Live(3), Control], &[Waiting, SecondLive { first: 1 }, Fire(1)]);
        let two = [SecondLive { first: 2 }, SecondLive { first: 2 }];
        expect(&[Control, Live(2), Live(0), Live(1)], &[Waiting, Fire(2), two[0], two[1]]);
    }

    #[test]
    fn the_fields_do_not_run_into_each_other() {
        let most = MergeShape { data: u16::MAX, controls: u16::MAX };
        let merge = MergeWord::new(most);
        let waiting = MergeArrival { outcome: Waiting, completed: false };
        for _ in 0..u16::MAX {
            assert_eq!(merge.arrive_dead(most), waiting);
        }
        for _ in 1..u16::MAX {
            assert_eq!(merge.arrive_control(most), waiting);
        }
        assert_eq!(merge.arrive_control(most), MergeArrival { outcome: FireDead, completed: true });
        assert_eq!(merge.arrive_live(u16::MAX, most), waiting);
        for _ in 2..u16::MAX {
            assert_eq!(merge.arrive_live(0, most).outcome, SecondLive { first: u16::MAX });
        }
        for _ in 1..u16::MAX {
            assert_eq!(merge.arrive_control(most), waiting);
        }
        assert_eq!(merge.arrive_control(most), MergeArrival { outcome: Fire(u16::MAX), completed: false });
        assert_eq!(merge.arrive_dead(most), MergeArrival { outcome: Waiting, completed: true });
        assert!(merge.is_clean(most));
    }

    #[test]
    fn a_word_that_was_given_up_is_made_whole() {
        let shape = MergeShape { data: 2, controls: 1 };
        let merge = MergeWord::new(shape);
        assert_eq!(merge.arrive_live(1, shape).outcome, Waiting);
        assert!(!merge.is_clean(shape));
        merge.reset(shape);
        assert!(merge.is_clean(shape));
    }
}
