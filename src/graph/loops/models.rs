//! loom models of a while loop: the ring's gates together with the words of its nodes and retirements, as laid out in
//! the ring's essay. Each has broken twins, which loom must find.
//!
//! A loop here has a counter, whose chain goes from node to node in one thread (condition, guard, body, next
//! condition), and a companion in which another thread takes part:
//!
//! - `Variable`: a second variable. Its body node waits for the guard and for its value, and runs on a thread of its
//!   own or on the one that brought the value. Its last value has no user, so the last iteration waits only for its
//!   previous-token.
//! - `Effect`: a node behind the guard without any outputs, run by a thread of its own in each iteration.
//! - `Aside`: a node before the guard that the condition does not need, run by a thread of its own in each iteration.
//!   Its output goes only to a node behind the guard.

use super::ring::{Opening, Retired, Ring};
use crate::graph::carry::arrivals::{Arrival, Arrivals};
use crate::graph::carry::models_of_propagation::bounded;
use crate::sync::atomic::Ordering::*;
use loom::cell::UnsafeCell;
use loom::thread;
// The models unwind when they fail, so these must not be loom's.
use std::sync::atomic::{AtomicI32, AtomicU32 as Tally};
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, PartialEq)]
enum Companion {
    Variable,
    Effect,
    Aside,
}
use Companion::*;

/// How the sinks of an iteration are counted.
#[derive(Clone, Copy, PartialEq)]
enum SinkCount {
    /// By the compiler: the word starts with all of them.
    Fixed,
    /// By the guard, before it releases what it counts.
    First,
    /// By the guard, afterwards: broken.
    Afterwards,
}

/// A loop, and the steps that a twin may break.
#[derive(Clone, Copy)]
struct LoopSetup {
    companion: Companion,
    parallel: u32,
    /// How often the condition is true, in each run. The next run begins as soon as the previous one is over.
    lengths: &'static [u32],
    open: fn(&Ring, u32) -> Opening,
    retire: fn(&Ring, u32) -> Retired,
    count: SinkCount,
    previous_token: bool,
    token_first: bool,
    /// Whether the node aside is a sink: its successors are only in the body, not in the head.
    aside_is_a_sink: bool,
    /// Whether the false condition, and not the retirement, resets the words of its body. Values are still delivered to
    /// that body.
    resets_early: bool,
}

const GOOD: LoopSetup = LoopSetup {
    companion: Variable,
    parallel: 1,
    lengths: &[2, 1],
    open: Ring::open_after,
    retire: Ring::retire,
    count: SinkCount::Fixed,
    previous_token: true,
    token_first: false,
    aside_is_a_sink: true,
    resets_early: false,
};

#[derive(Clone, Copy)]
enum LoopNode {
    /// An input of the loop is delivered: the counter's, the companion's.
    EnterCounter,
    EnterCompanion,
    Condition(u32),
    /// The work of the condition once the next slot is open.
    Guard(u32),
    Counter(u32),
    Variable(u32),
    Effect(u32),
    Aside(u32),
    Retirement(u32),
}

/// The two body nodes of a slot: the counter's and the companion's.
const SINKS: u32 = 2;
/// The companion's node in the body: the guard and a value.
const BODY: u32 = 2;
const INPUTS: u32 = 2;
const CLOSED: i32 = -1;

struct LoopModel {
    plan: LoopSetup,
    ring: Ring,
    inputs: Arrivals,
    bodies: Vec<Arrivals>,
    retirements: Vec<Arrivals>,
    /// The variables. loom checks that a slot's next iteration writes them after the last one has read them.
    counters: Vec<UnsafeCell<u32>>,
    variables: Vec<UnsafeCell<u32>>,
    /// The iteration in each slot.
    open: Vec<AtomicI32>,
    running: Tally,
    run: Tally,
    over: Tally,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl LoopModel {
    fn new(plan: LoopSetup) -> LoopModel {
        let ring = Ring::create(plan.parallel).unwrap();
        let slots = ring.count() as usize;
        let variables = || (0..slots).map(|_| UnsafeCell::new(0)).collect();
        LoopModel {
            plan,
            inputs: Arrivals::new(INPUTS),
            bodies: (0..slots).map(|_| Arrivals::new(BODY)).collect(),
            retirements: (0..slots).map(|_| Arrivals::new(LoopModel::count(plan))).collect(),
            counters: variables(),
            variables: variables(),
            open: (0..slots).map(|_| AtomicI32::new(CLOSED)).collect(),
            running: Tally::new(0),
            run: Tally::new(0),
            over: Tally::new(0),
            threads: Mutex::default(),
            ring,
        }
    }

    /// The start value of a retirement's word. If the guard counts, the condition has an arrival of its own, which it
    /// keeps until it has counted.
    fn count(plan: LoopSetup) -> u32 {
        let aside = plan.companion == Aside && plan.aside_is_a_sink;
        u32::from(plan.previous_token) + u32::from(aside) + if plan.count == SinkCount::Fixed { SINKS } else { 1 }
    }

    fn begin(&self) {
        self.ring.begin();
        self.open[0].store(0, SeqCst);
    }

    /// The iteration in a slot, for a node that runs in it.
    fn iteration(&self, slot: u32) -> u32 {
        let iteration = self.open[slot as usize].load(SeqCst);
        assert_ne!(iteration, CLOSED, "an iteration is retired while it runs");
        iteration as u32
    }

    fn deliver(&self, slot: u32, variables: &[UnsafeCell<u32>], value: u32) {
        assert_eq!(self.open[slot as usize].load(SeqCst), value as i32, "delivery to a closed slot");
        // SAFETY: the one delivery of this iteration, which loom checks.
        variables[slot as usize].with_mut(|variable| unsafe { *variable = value });
    }

    fn read(&self, slot: u32, variables: &[UnsafeCell<u32>]) -> u32 {
        // SAFETY: it has been delivered, which loom checks.
        let value = variables[slot as usize].with(|variable| unsafe { *variable });
        assert_eq!(value, self.iteration(slot), "a variable is of another iteration");
        value
    }

    /// The companion's value arrives at its node. If the node is dropped, the value is released.
    fn reach_body(&self, slot: u32, list: &mut Vec<LoopNode>) {
        if self.bodies[slot as usize].arrive(1, false, BODY) == Arrival::Ready {
            list.push(if self.plan.companion == Variable { LoopNode::Variable(slot) } else { LoopNode::Effect(slot) });
        }
    }

    /// The counter's value has arrived: starts its successors.
    fn start(self: &Arc<Self>, slot: u32, list: &mut Vec<LoopNode>) {
        if self.plan.companion == Aside {
            self.spawn(LoopNode::Aside(slot));
        }
        list.push(LoopNode::Condition(slot));
    }

    fn reach_retirement(&self, slot: u32, amount: u32, list: &mut Vec<LoopNode>) {
        if self.retirements[slot as usize].arrive(amount, false, LoopModel::count(self.plan)) == Arrival::Ready {
            list.push(LoopNode::Retirement(slot));
        }
    }

    fn enter(&self, list: &mut Vec<LoopNode>) {
        if self.inputs.arrive(1, false, INPUTS) == Arrival::Ready && self.plan.previous_token {
            self.reach_retirement(0, 1, list);
        }
    }

    fn work(self: &Arc<Self>, first: LoopNode) {
        let mut list = vec![first];
        while let Some(node) = list.pop() {
            self.execute(node, &mut list);
        }
    }

    fn spawn(self: &Arc<Self>, first: LoopNode) {
        let all = Arc::clone(self);
        let thread = thread::spawn(move || all.work(first));
        self.threads.lock().unwrap().push(thread);
    }

    fn execute(self: &Arc<Self>, node: LoopNode, list: &mut Vec<LoopNode>) {
        match node {
            LoopNode::EnterCounter => {
                self.deliver(0, &self.counters, 0);
                self.start(0, list);
                self.enter(list);
            }
            LoopNode::EnterCompanion => {
                if self.plan.companion == Variable {
                    self.deliver(0, &self.variables, 0);
                    self.reach_body(0, list);
                }
                self.enter(list);
            }
            LoopNode::Condition(slot) => self.condition(slot, list),
            LoopNode::Guard(slot) => self.guard(slot, list),
            LoopNode::Counter(slot) => {
                let next = self.ring.after(slot);
                self.deliver(next, &self.counters, self.read(slot, &self.counters) + 1);
                self.start(next, list);
                self.reach_retirement(slot, 1, list);
            }
            LoopNode::Variable(slot) => {
                let next = self.ring.after(slot);
                self.deliver(next, &self.variables, self.read(slot, &self.variables) + 1);
                self.reach_body(next, list);
                self.reach_retirement(slot, 1, list);
            }
            LoopNode::Effect(slot) => {
                self.read(slot, &self.counters);
                self.reach_retirement(slot, 1, list);
            }
            LoopNode::Aside(slot) => {
                self.read(slot, &self.counters);
                self.reach_body(slot, list);
                if self.plan.aside_is_a_sink {
                    self.reach_retirement(slot, 1, list);
                }
            }
            LoopNode::Retirement(slot) => self.retirement(slot, list),
        }
    }

    fn condition(&self, slot: u32, list: &mut Vec<LoopNode>) {
        let length = self.plan.lengths[self.run.load(SeqCst) as usize];
        if self.read(slot, &self.counters) < length {
            if (self.plan.open)(&self.ring, slot) == Opening::Opened {
                list.push(LoopNode::Guard(slot));
            }
            return;
        }
        if self.plan.resets_early {
            self.bodies[slot as usize].reset(BODY);
        }
        self.reach_retirement(slot, if self.plan.count == SinkCount::Fixed { SINKS } else { 1 }, list);
    }

    fn guard(self: &Arc<Self>, slot: u32, list: &mut Vec<LoopNode>) {
        let iteration = self.iteration(slot);
        let before = self.open[self.ring.after(slot) as usize].swap(iteration as i32 + 1, SeqCst);
        assert_eq!(before, CLOSED, "a slot is opened twice");
        assert!(self.running.fetch_add(1, SeqCst) < self.plan.parallel, "too many bodies run");
        let add = || self.retirements[slot as usize].word().fetch_add(u64::from(SINKS), AcqRel);
        if self.plan.count == SinkCount::First {
            add();
        }
        match self.plan.companion {
            Effect => self.spawn(LoopNode::Effect(slot)),
            Aside => self.reach_body(slot, list),
            Variable if self.bodies[slot as usize].arrive(1, false, BODY) == Arrival::Ready => {
                self.spawn(LoopNode::Variable(slot));
            }
            Variable => {}
        }
        if self.plan.count == SinkCount::Afterwards {
            add();
        }
        list.push(LoopNode::Counter(slot));
        if self.plan.count != SinkCount::Fixed {
            self.reach_retirement(slot, 1, list);
        }
    }

    fn retirement(self: &Arc<Self>, slot: u32, list: &mut Vec<LoopNode>) {
        let iteration = self.open[slot as usize].swap(CLOSED, SeqCst);
        assert_ne!(iteration, CLOSED, "an iteration is retired twice");
        if iteration < self.plan.lengths[self.run.load(SeqCst) as usize] as i32 {
            self.running.fetch_sub(1, SeqCst);
        }
        let token = |list: &mut Vec<LoopNode>| {
            if self.plan.previous_token {
                self.reach_retirement(self.ring.after(slot), 1, list);
            }
        };
        if self.plan.token_first && self.ring.words(slot).1.load(Relaxed) != 0 {
            token(list);
        }
        let retired = (self.plan.retire)(&self.ring, slot);
        if retired == Retired::Last {
            if !self.plan.resets_early {
                self.bodies[slot as usize].reset(BODY);
            }
            self.over.fetch_add(1, SeqCst);
            if self.run.fetch_add(1, SeqCst) + 1 < self.plan.lengths.len() as u32 {
                self.is_clean();
                self.begin();
                list.extend([LoopNode::EnterCounter, LoopNode::EnterCompanion]);
            }
            return;
        }
        if retired == Retired::Resume {
            list.push(LoopNode::Guard(self.ring.before(slot)));
        }
        if !self.plan.token_first {
            token(list);
        }
    }

    fn is_clean(&self) {
        assert!(self.ring.is_clean(), "the ring is in use when the loop is over");
        assert!(self.open.iter().all(|slot| slot.load(SeqCst) == CLOSED), "the loop is over while an iteration runs");
        assert!(self.inputs.is_clean(INPUTS));
        assert!(self.bodies.iter().all(|word| word.is_clean(BODY)), "the word of a body is dirty");
        let count = LoopModel::count(self.plan);
        assert!(self.retirements.iter().all(|word| word.is_clean(count)), "the word of a retirement is dirty");
    }
}

fn run(plan: LoopSetup) {
    bounded(move || {
        let all = Arc::new(LoopModel::new(plan));
        all.begin();
        if plan.companion == Aside {
            // The companion's threads start with the iterations.
            all.work(LoopNode::EnterCompanion);
        } else {
            all.spawn(LoopNode::EnterCompanion);
        }
        all.work(LoopNode::EnterCounter);
        // Taken out first: a running thread may add another one.
        while let Some(thread) = { all.threads.lock().unwrap().pop() } {
            thread.join().unwrap();
        }
        assert_eq!(all.over.load(SeqCst) as usize, plan.lengths.len(), "the loop is never over");
        all.is_clean();
    });
}

/// Two variables on two threads, with one and with two iterations at once; loops of no iterations, too.
#[test]
fn models_loop_of_two_variables() {
    for lengths in [&[0, 1], &[1, 2], &[2, 1]] {
        run(LoopSetup { lengths, ..GOOD });
    }
    run(LoopSetup { lengths: &[3], ..GOOD });
    for lengths in [&[2, 1], &[3, 0]] {
        run(LoopSetup { parallel: 2, lengths, ..GOOD });
    }
}

/// One variable, and an effect on another thread in each iteration.
#[test]
fn models_loop_with_an_effect() {
    for lengths in [&[1, 1], &[2, 0], &[3, 0]] {
        for parallel in [1, 2] {
            run(LoopSetup { companion: Effect, parallel, lengths, ..GOOD });
        }
    }
}

/// One variable, and a value from the head to the body that bypasses the condition: it arrives in the last iteration,
/// too.
#[test]
fn models_loop_with_a_node_aside() {
    for lengths in [&[0, 1], &[2, 0]] {
        for parallel in [1, 2] {
            run(LoopSetup { companion: Aside, parallel, lengths, ..GOOD });
        }
    }
}

/// Words that are reset before the previous iteration has delivered are half counted again afterwards.
#[test]
#[should_panic(expected = "the word of a body is dirty")]
fn models_broken_loop_resets_too_early() {
    run(LoopSetup { resets_early: true, lengths: &[1], ..GOOD });
}

/// A node that relies on the body to be waited for is not waited for if the body is dropped.
#[test]
#[should_panic(expected = "an iteration is retired while it runs")]
fn models_broken_loop_counts_on_the_body() {
    run(LoopSetup { companion: Aside, aside_is_a_sink: false, lengths: &[1], ..GOOD });
}

/// Sinks may be counted while the loop runs, if they are counted before they are released.
#[test]
fn models_loop_that_counts_first() {
    run(LoopSetup { count: SinkCount::First, ..GOOD });
}

/// In the other order a sink that is not counted yet takes arrivals that belong to the others.
#[test]
#[should_panic(expected = "an iteration is retired")]
fn models_broken_loop_counts_what_it_has_published() {
    run(LoopSetup { count: SinkCount::Afterwards, ..GOOD });
}

/// The last iteration retires before the previous one has delivered.
#[test]
#[should_panic(expected = "delivery to a closed slot")]
fn models_broken_loop_has_no_previous_token() {
    run(LoopSetup { previous_token: false, lengths: &[1], ..GOOD });
}

/// The next iteration, and with it the loop, is over before the gate says so.
#[test]
#[should_panic(expected = "the ring is in use when the loop is over")]
fn models_broken_loop_sends_the_token_first() {
    run(LoopSetup { token_first: true, lengths: &[1, 0], ..GOOD });
}

/// A condition that parks without a mark is never continued.
#[test]
#[should_panic(expected = "the loop is never over")]
fn models_broken_ring_marks_nothing() {
    fn open(ring: &Ring, slot: u32) -> Opening {
        ring.words(slot).1.store(1, Relaxed);
        match ring.words(ring.after(slot)).0.compare_exchange(0, 1, AcqRel, Acquire) {
            Ok(_) => Opening::Opened,
            Err(_) => Opening::Parked,
        }
    }
    run(LoopSetup { open, ..GOOD });
}

/// A look and then a mark: the slot is retired in between, and the mark is never found.
#[test]
#[should_panic(expected = "the loop is never over")]
fn models_broken_ring_looks_and_then_marks() {
    fn open(ring: &Ring, slot: u32) -> Opening {
        let (gate, _) = ring.words(ring.after(slot));
        ring.words(slot).1.store(1, Relaxed);
        if gate.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
            return Opening::Opened;
        }
        gate.store(2, Release);
        Opening::Parked
    }
    run(LoopSetup { open, ..GOOD });
}

/// An opening that acquires nothing lets an iteration overwrite values that the slot's last iteration still reads.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_ring_acquires_nothing() {
    fn open(ring: &Ring, slot: u32) -> Opening {
        ring.words(slot).1.store(1, Relaxed);
        match ring.words(ring.after(slot)).0.fetch_add(1, Release) {
            0 => Opening::Opened,
            _ => Opening::Parked,
        }
    }
    run(LoopSetup { companion: Effect, open, lengths: &[2], ..GOOD });
}

/// An opening that publishes nothing hides the next iteration from the retirement, if the opener is not the one that
/// continues.
#[test]
#[should_panic(expected = "the ring is in use when the loop is over")]
fn models_broken_ring_publishes_nothing() {
    fn open(ring: &Ring, slot: u32) -> Opening {
        ring.words(slot).1.store(1, Relaxed);
        match ring.words(ring.after(slot)).0.fetch_add(1, Acquire) {
            0 => Opening::Opened,
            _ => Opening::Parked,
        }
    }
    run(LoopSetup { companion: Effect, open, lengths: &[2], ..GOOD });
}
