//! loom models of the words that carry a run from node to node: arrivals and merges. Each has broken twins, which loom
//! must find. Loops have a file of their own (`loops::models`).
//!
//! The bound on preemptions keeps the models to seconds; every race that they are about needs two at most.
//!
//! The models' own bookkeeping (which thread owned what, which slot is open) is in std's atomics: loom takes no step
//! for them, so they are always exact and add no interleavings.

use super::arrivals::{Arrival, Arrivals};
use crate::graph::plan::merge::{MergeArrival, MergeOutcome, MergeShape, MergeWord};
use crate::sync::atomic::Ordering::*;
use loom::cell::UnsafeCell;
use loom::thread;
// The models unwind when they fail, so these must not be loom's.
use std::sync::Arc;
use std::sync::atomic::AtomicU32 as Tally;

pub(in crate::graph) fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// The arrivals at a node.
#[derive(Clone, Copy)]
enum ModelArrival {
    Live(u32),
    Dead(u32),
    Drop(u32),
}
use ModelArrival::*;

type Arrive = fn(&Arrivals, ModelArrival, u32) -> Arrival;

fn arrive(word: &Arrivals, step: ModelArrival, start: u32) -> Arrival {
    match step {
        Live(amount) => word.arrive(amount, false, start),
        Dead(amount) => word.arrive(amount, true, start),
        Drop(amount) if word.drop_branch(amount, start) => Arrival::Dropped,
        Drop(_) => Arrival::Waiting,
    }
}

/// A node with three producers on as many threads.
struct CounterModel {
    word: Arrivals,
    start: u32,
    arrive: Arrive,
    /// For each run: each producer's arrival, and the outcome that the owner must get.
    runs: [([ModelArrival; 3], Arrival); 2],
    /// The inputs. loom checks that the owner reads them after they were written, and that no producer writes the next
    /// run's too early.
    inputs: [UnsafeCell<usize>; 3],
    owned: Tally,
}

impl CounterModel {
    /// A producer's part in a run. The owner of the node begins the next run, while the others may still be leaving
    /// this one.
    fn produce(self: &Arc<Self>, run: usize, producer: usize) {
        let (steps, outcome) = self.runs[run];
        // SAFETY: each producer has its own input.
        self.inputs[producer].with_mut(|input| unsafe { *input = run + 1 });
        let arrival = (self.arrive)(&self.word, steps[producer], self.start);
        if arrival == Arrival::Waiting {
            return;
        }
        assert_eq!(self.owned.fetch_add(1, SeqCst) as usize, run, "the node has one owner");
        assert_eq!(arrival, outcome);
        for input in &self.inputs {
            // SAFETY: all producers have arrived, which loom checks here.
            assert_eq!(input.with(|input| unsafe { *input }), run + 1);
        }
        if run + 1 < self.runs.len() {
            self.run(run + 1);
        }
    }

    fn run(self: &Arc<Self>, run: usize) {
        let other = |producer| {
            let join = Arc::clone(self);
            thread::spawn(move || join.produce(run, producer))
        };
        let others = [other(1), other(2)];
        self.produce(run, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
    }
}

fn two_runs(runs: [([ModelArrival; 3], Arrival); 2], arrive: Arrive) {
    let start = runs[0].0.iter().map(|&(Live(n) | Dead(n) | Drop(n))| n).sum();
    bounded(move || {
        let join = Arc::new(CounterModel {
            word: Arrivals::new(start),
            start,
            arrive,
            runs,
            inputs: std::array::from_fn(|_| UnsafeCell::new(0)),
            owned: Tally::new(0),
        });
        join.run(0);
        assert_eq!(join.owned.load(SeqCst), 2, "the node has one owner");
        assert!(join.word.is_clean(start));
    });
}

const LIVE: ([ModelArrival; 3], Arrival) = ([Live(1), Live(1), Live(2)], Arrival::Ready);
const MIXED: ([ModelArrival; 3], Arrival) = ([Live(1), Dead(1), Dead(2)], Arrival::Dead);
const DROPPED: ([ModelArrival; 3], Arrival) = ([Live(1), Dead(1), Drop(2)], Arrival::Dropped);

/// All kinds of arrivals in any order: one owner, which gets the right outcome, sees all inputs and leaves a clean
/// word.
#[test]
fn models_arrivals_have_one_owner() {
    for runs in [[LIVE, MIXED], [MIXED, DROPPED], [DROPPED, LIVE]] {
        two_runs(runs, arrive);
    }
}

/// A subtraction and then a look: both of the last two may find that nothing is pending.
#[test]
#[should_panic(expected = "the node has one owner")]
fn models_broken_arrivals_look_again() {
    fn arrive(word: &Arrivals, step: ModelArrival, start: u32) -> Arrival {
        let (Live(amount) | Dead(amount) | Drop(amount)) = step;
        word.word().fetch_sub(u64::from(amount), AcqRel);
        if word.word().load(Acquire) != 0 {
            return Arrival::Waiting;
        }
        word.reset(start);
        Arrival::Ready
    }
    two_runs([LIVE, LIVE], arrive);
}

/// An addition that only publishes: the last one owns a node whose inputs it cannot see.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_arrivals_acquire_nothing() {
    fn arrive(word: &Arrivals, step: ModelArrival, start: u32) -> Arrival {
        let (Live(amount) | Dead(amount) | Drop(amount)) = step;
        if word.word().fetch_sub(u64::from(amount), Release) != u64::from(amount) {
            return Arrival::Waiting;
        }
        word.reset(start);
        Arrival::Ready
    }
    two_runs([LIVE, LIVE], arrive);
}

/// The same for a look before the addition.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_late_arrivals_acquire_nothing() {
    fn late(word: &Arrivals, step: ModelArrival, start: u32) -> Arrival {
        let (Live(amount) | Dead(amount) | Drop(amount)) = step;
        if word.word().load(Relaxed) != u64::from(amount) {
            return arrive(word, step, start);
        }
        word.reset(start);
        Arrival::Ready
    }
    two_runs([LIVE, LIVE], late);
}

/// A cond with an entry on each side. An entry waits for two values from outside, for one from inside its branch, and
/// for its guard.
struct CondModel {
    entries: [Arrivals; 2],
    drop: fn(&Arrivals) -> bool,
    predicate: [usize; 2],
    ran: [Tally; 2],
    released: [Tally; 2],
}

const ENTRY: u32 = 4;

impl CondModel {
    /// An arrival at the entry of one side.
    fn reach(&self, side: usize) {
        match self.entries[side].arrive(1, false, ENTRY) {
            Arrival::Waiting => {}
            Arrival::Ready => drop(self.ran[side].fetch_add(1, SeqCst)),
            Arrival::Dropped => drop(self.released[side].fetch_add(1, SeqCst)),
            Arrival::Dead => unreachable!("nothing is dead in a structured branch"),
        }
    }

    /// A value from outside, which goes to both sides.
    fn outside(&self) {
        self.reach(0);
        self.reach(1);
    }

    /// The predicate's node and its direct successor: the node on the taken side that has no inputs from outside.
    fn guard(&self, run: usize) {
        let (taken, untaken) = (self.predicate[run], 1 - self.predicate[run]);
        self.reach(taken);
        if (self.drop)(&self.entries[untaken]) {
            self.released[untaken].fetch_add(1, SeqCst);
        }
        self.reach(taken);
    }
}

fn cond_twice(predicate: [usize; 2], drop: fn(&Arrivals) -> bool) {
    bounded(move || {
        let cond = Arc::new(CondModel {
            entries: [Arrivals::new(ENTRY), Arrivals::new(ENTRY)],
            drop,
            predicate,
            ran: Default::default(),
            released: Default::default(),
        });
        for run in 0..2 {
            let others = [0, 1].map(|part| {
                let cond = Arc::clone(&cond);
                thread::spawn(move || if part == 0 { cond.outside() } else { cond.guard(run) })
            });
            cond.outside();
            others.into_iter().for_each(|other| other.join().unwrap());
            for side in [0, 1] {
                assert!(cond.entries[side].is_clean(ENTRY), "the word of an entry is dirty");
                let taken = u32::from(predicate[run] == side);
                assert_eq!(cond.ran[side].swap(0, SeqCst), taken);
                assert_eq!(cond.released[side].swap(0, SeqCst), 1 - taken);
            }
        }
    });
}

/// The taken side runs, the other one releases its inputs; each once, and all words are clean, whichever side was taken
/// before.
#[test]
fn models_cond_runs_one_side_and_cleans_the_other() {
    for predicate in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        cond_twice(predicate, |entry| entry.drop_branch(2, ENTRY));
    }
}

/// A drop that stands for the guard alone waits for an edge from a branch that was not entered.
#[test]
#[should_panic(expected = "the word of an entry is dirty")]
fn models_broken_drop_forgets_the_inside() {
    cond_twice([0, 1], |entry| entry.drop_branch(1, ENTRY));
}

/// The arrivals at a merge.
#[derive(Clone, Copy)]
enum Input {
    Control,
    NoValue,
    Value(u16),
}
use Input::*;

type ArriveAtMerge = fn(&MergeWord, Input, MergeShape) -> MergeArrival;
/// The arrivals of each of three threads in one run.
type Parts = [&'static [Input]; 3];

fn arrive_at_merge(merge: &MergeWord, input: Input, shape: MergeShape) -> MergeArrival {
    match input {
        Control => merge.arrive_control(shape),
        NoValue => merge.arrive_dead(shape),
        Value(index) => merge.arrive_live(index, shape),
    }
}

struct MergeModel {
    merge: MergeWord,
    shape: MergeShape,
    arrive: ArriveAtMerge,
    values: [UnsafeCell<usize>; 3],
    fired: Tally,
    fired_dead: Tally,
    second: Tally,
    completed: Tally,
    /// The index of each input that was named as the winner, as bits.
    winners: Tally,
}

impl MergeModel {
    fn bring(&self, run: usize, inputs: &[Input]) {
        for &input in inputs {
            if let Value(index) = input {
                // SAFETY: each input has its own value, and runs are one after the other.
                self.values[usize::from(index)].with_mut(|value| unsafe { *value = run + 1 });
            }
            let arrival = (self.arrive)(&self.merge, input, self.shape);
            match arrival.outcome {
                MergeOutcome::Waiting => {}
                MergeOutcome::Fire(winner) => {
                    // SAFETY: the winner has arrived, which loom checks here.
                    let value = self.values[usize::from(winner)].with(|value| unsafe { *value });
                    assert_eq!(value, run + 1, "the winner has a value");
                    self.fired.fetch_add(1, SeqCst);
                    self.winners.fetch_or(1 << winner, SeqCst);
                }
                MergeOutcome::FireDead => drop(self.fired_dead.fetch_add(1, SeqCst)),
                MergeOutcome::SecondLive { first } => {
                    self.second.fetch_add(1, SeqCst);
                    self.winners.fetch_or(1 << first, SeqCst);
                }
            }
            self.completed.fetch_add(u32::from(arrival.completed), SeqCst);
        }
    }
}

fn merge_twice(shape: MergeShape, runs: [Parts; 2], arrive: ArriveAtMerge) {
    bounded(move || {
        let meeting = Arc::new(MergeModel {
            merge: MergeWord::new(shape),
            shape,
            arrive,
            values: std::array::from_fn(|_| UnsafeCell::new(0)),
            fired: Tally::new(0),
            fired_dead: Tally::new(0),
            second: Tally::new(0),
            completed: Tally::new(0),
            winners: Tally::new(0),
        });
        for (run, parts) in runs.into_iter().enumerate() {
            let others = [parts[1], parts[2]].map(|inputs| {
                let meeting = Arc::clone(&meeting);
                thread::spawn(move || meeting.bring(run, inputs))
            });
            meeting.bring(run, parts[0]);
            others.into_iter().for_each(|other| other.join().unwrap());
            let values = parts.iter().flat_map(|part| part.iter()).filter(|input| matches!(input, Value(_))).count();
            let took = |tally: &Tally| tally.swap(0, SeqCst) as usize;
            let (fired, fired_dead) = (took(&meeting.fired), took(&meeting.fired_dead));
            assert_eq!((fired, fired_dead), (values.min(1), 1 - values.min(1)), "the merge fires once");
            assert_eq!(took(&meeting.second), values.saturating_sub(1));
            assert_eq!(took(&meeting.winners).count_ones() as usize, values.min(1), "all name the same winner");
            assert_eq!(took(&meeting.completed), 1, "the word is completed once");
            assert!(meeting.merge.is_clean(shape), "the word of the merge is dirty");
        }
    });
}

const TWO_AND_CONTROL: MergeShape = MergeShape { data: 2, controls: 1 };
const THREE: MergeShape = MergeShape { data: 3, controls: 0 };
const ONE_VALUE: Parts = [&[Control], &[Value(1)], &[NoValue]];
const TWO_VALUES: Parts = [&[Control], &[Value(1)], &[Value(0)]];
const NO_VALUE: Parts = [&[Control], &[NoValue], &[NoValue]];

/// Live, dead and control edges in any order, and twice: one firing with the winner's value, one completion, a clean
/// word.
#[test]
fn models_merge_fires_once_and_is_completed_once() {
    for runs in [[ONE_VALUE, NO_VALUE], [NO_VALUE, ONE_VALUE]] {
        merge_twice(TWO_AND_CONTROL, runs, arrive_at_merge);
    }
    // Nothing delays the firing: the dead inputs may all come after it.
    let one: Parts = [&[NoValue], &[Value(2)], &[NoValue]];
    let none: Parts = [&[NoValue], &[NoValue], &[NoValue]];
    merge_twice(THREE, [one, none], arrive_at_merge);
    // Two control edges and an input on one thread.
    let long: Parts = [&[Control, NoValue, Control], &[Value(1)], &[NoValue]];
    merge_twice(MergeShape { data: 3, controls: 2 }, [long, long], arrive_at_merge);
}

/// A second and a third live input are told which was the first, and the word is clean for the next run.
#[test]
fn models_merge_reports_a_second_value() {
    for runs in [[TWO_VALUES, ONE_VALUE], [TWO_VALUES, NO_VALUE]] {
        merge_twice(TWO_AND_CONTROL, runs, arrive_at_merge);
    }
    let three: Parts = [&[Value(0)], &[Value(1)], &[Value(2)]];
    let two: Parts = [&[Value(0)], &[NoValue], &[Value(2)]];
    merge_twice(THREE, [three, two], arrive_at_merge);
}

/// A merge that is reset by its firing counts late arrivals for the next run.
#[test]
#[should_panic(expected = "the word of the merge is dirty")]
fn models_broken_merge_resets_when_it_fires() {
    fn arrive(merge: &MergeWord, input: Input, shape: MergeShape) -> MergeArrival {
        let arrival = arrive_at_merge(merge, input, shape);
        let fires = matches!(arrival.outcome, MergeOutcome::Fire(_));
        if fires {
            merge.reset(shape);
        }
        // The run itself is not affected: all arrivals are counted elsewhere, too.
        MergeArrival { completed: fires, ..arrival }
    }
    merge_twice(TWO_AND_CONTROL, [ONE_VALUE, ONE_VALUE], arrive);
}

/// A count and then the winner: the control edge in between fires the merge with an input that has no value.
#[test]
#[should_panic(expected = "the winner has a value")]
fn models_broken_merge_writes_the_winner_later() {
    fn arrive(merge: &MergeWord, input: Input, shape: MergeShape) -> MergeArrival {
        let Value(index) = input else { return arrive_at_merge(merge, input, shape) };
        let arrival = merge.arrive_live(0, shape);
        merge.word().fetch_add(u64::from(index) << 48, AcqRel);
        match arrival.outcome {
            MergeOutcome::Fire(_) => MergeArrival { outcome: MergeOutcome::Fire(index), ..arrival },
            _ => arrival,
        }
    }
    // The dead input comes after both steps, so the word is not completed between them.
    let parts: Parts = [&[Control], &[Value(1), NoValue], &[]];
    merge_twice(TWO_AND_CONTROL, [parts, parts], arrive);
}

/// A control edge that acquires nothing fires the merge with a value that it cannot see.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_merge_acquires_nothing() {
    fn arrive(merge: &MergeWord, input: Input, shape: MergeShape) -> MergeArrival {
        let Control = input else { return arrive_at_merge(merge, input, shape) };
        // The last control edge, after a value: controls 1, live 1.
        let before = merge.word().fetch_sub(1, Release);
        let fires = before >> 32 & 0xffff == 1;
        let completed = fires && before >> 16 & 0xffff == 1;
        if completed {
            merge.reset(shape);
        }
        let outcome = if fires { MergeOutcome::Fire((before >> 48) as u16) } else { MergeOutcome::Waiting };
        MergeArrival { outcome, completed }
    }
    merge_twice(TWO_AND_CONTROL, [ONE_VALUE, ONE_VALUE], arrive);
}
