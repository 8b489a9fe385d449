//! loom models of device queues (`stream::device_queue`), and their broken twins.
//!
//! The device executes its submissions in order, on a thread of its own: an item, which only then may count as
//! completed, or an event. Every second item is issued as a resubmission (`resubmit_table`), which takes no lock. The
//! steps are those of `Queue::retire`, `look`, `look_at_all`, `sleep` and `see_off`; there are no time-outs, so a
//! forgotten thread is a deadlock.

use super::fences::{AllLook, Fence, FenceRequest, Fences, Look};
use crate::sync::atomic::Ordering::*;
use crate::sync::atomic::{AtomicU32, fence};
use crate::sync::lock::Word;
use crate::sync::models::Futex;
use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread;
use std::collections::VecDeque;
use std::sync::Arc;

const MOST: usize = 4;

/// A submission to the device.
enum ModelSubmission {
    Item(usize),
    Event(u32),
    End,
}

struct ModelDeviceQueue {
    under_way: Mutex<Fences<usize, u32>>,
    issued: Futex,
    completed: Futex,
    /// 1: a thread waits for a fence that is not recorded yet.
    has_wishes: AtomicU32,
    /// Events recorded so far.
    recorded: AtomicU32,
    given: (Mutex<VecDeque<ModelSubmission>>, Futex),
    /// The executed items and the reached events: the device takes no lock to write them.
    done: [UnsafeCell<bool>; MOST],
    reached: [Futex; MOST],
    /// How many submissions the device has executed, where it reports idleness.
    processed: Futex,
    /// An event to be reported, and whether it was; the host has released the queue then.
    told: Mutex<Option<u32>>,
    rules: Rules,
}

// SAFETY: loom checks the cells.
unsafe impl Sync for ModelDeviceQueue {}
// SAFETY: as above.
unsafe impl Send for ModelDeviceQueue {}

/// The steps in which the broken twins differ.
#[derive(Clone, Copy)]
struct Rules {
    begin: fn(&mut Fences<usize, u32>) -> Option<u32>,
    answer: fn(&mut Fences<usize, u32>, bool) -> Look<u32>,
    idle: Idle,
}

/// Whether the device reports a stream as idle.
#[derive(Clone, Copy, PartialEq)]
enum Idle {
    Untold,
    /// Asked once it is settled for which items.
    Told,
    /// Asked before that.
    ToldTooSoon,
}

impl ModelDeviceQueue {
    fn new(rules: Rules) -> ModelDeviceQueue {
        ModelDeviceQueue {
            under_way: Mutex::new(Fences::default()),
            issued: Futex::new(),
            completed: Futex::new(),
            has_wishes: AtomicU32::new(0),
            recorded: AtomicU32::new(0),
            given: (Mutex::new(VecDeque::new()), Futex::new()),
            done: [const { () }; MOST].map(|()| UnsafeCell::new(false)),
            reached: [const { () }; MOST].map(|()| Futex::new()),
            processed: Futex::new(),
            told: Mutex::new(None),
            rules,
        }
    }

    fn give(&self, given: ModelSubmission) {
        self.given.0.lock().unwrap().push_back(given);
        self.given.1.fetch_add(1, Release);
        self.given.1.wake(u32::MAX);
    }

    /// The device's thread.
    fn work(&self) {
        let mut taken = 0;
        loop {
            while self.given.1.load(Acquire) == taken {
                self.given.1.sleep(taken);
            }
            taken += 1;
            let given = self.given.0.lock().unwrap().pop_front().expect("nothing was given");
            match given {
                // SAFETY: none: loom reports a concurrent read.
                ModelSubmission::Item(item) => self.done[item].with_mut(|done| unsafe { *done = true }),
                ModelSubmission::Event(event) => {
                    self.reached[event as usize].fetch_add(1, Release);
                    self.reached[event as usize].wake(u32::MAX);
                    let tell = *self.told.lock().unwrap() == Some(event);
                    if tell {
                        self.retire();
                    }
                }
                ModelSubmission::End => return,
            }
            if self.rules.idle != Idle::Untold {
                self.processed.fetch_add(1, Release);
            }
        }
    }

    fn record(&self) -> u32 {
        // Under the lock of the items in flight.
        let event = self.recorded.load(Relaxed);
        self.recorded.store(event + 1, Relaxed);
        self.give(ModelSubmission::Event(event));
        event
    }

    /// `Queue::issue` and `ModelDeviceQueue::note`.
    fn issue(&self, item: usize) {
        self.give(ModelSubmission::Item(item));
        let number = item as u64 + 1;
        let under_way = (item % 2 == 1).then(|| {
            let mut under_way = self.under_way.lock().unwrap();
            under_way.add(number, item);
            under_way
        });
        self.issued.fetch_add(1, Release);
        fence(SeqCst);
        self.issued.wake(u32::MAX);
        if under_way.is_none() && self.has_wishes.load(Relaxed) == 0 {
            return;
        }
        let mut under_way = under_way.unwrap_or_else(|| self.under_way.lock().unwrap());
        let is_wanted = under_way.is_wanted(number);
        self.has_wishes.store(under_way.has_wishes().into(), Relaxed);
        if is_wanted {
            under_way.put(Fence { item: number, event: self.record(), is_own: true });
        }
    }

    fn ask(&self, target: u64) {
        let mut under_way = self.under_way.lock().unwrap();
        let announce = || {
            self.has_wishes.store(1, Relaxed);
            fence(SeqCst);
        };
        if let FenceRequest::Wanted(item) = under_way.ask(target, || self.issued.load(Acquire).into(), announce) {
            under_way.put(Fence { item, event: self.record(), is_own: true });
        }
    }

    fn is_reached(&self, event: u32) -> bool {
        self.reached[event as usize].load(Acquire) == 1
    }

    fn retire(&self) {
        loop {
            let Some(event) = (self.rules.begin)(&mut self.under_way.lock().unwrap()) else { return };
            let is_reached = self.is_reached(event);
            let look = (self.rules.answer)(&mut self.under_way.lock().unwrap(), is_reached);
            match look {
                Look::Over => return,
                Look::Again => {}
                Look::Reached(_, count) => self.let_go(count),
            }
        }
    }

    fn let_go(&self, count: u64) {
        let done = self.under_way.lock().unwrap().over();
        for number in done + 1..=done + count {
            let mut under_way = self.under_way.lock().unwrap();
            let added = under_way.take(number);
            under_way.set_over(number);
            drop(under_way);
            let item = number as usize - 1;
            assert_eq!(added, (item % 2 == 1).then_some((number, item)), "an item that is not there");
            // SAFETY: as above.
            assert!(self.done[item].with(|done| unsafe { *done }), "an item is completed that is not done");
            assert_eq!(self.completed.fetch_add(1, AcqRel), item as u32, "completed out of order");
            self.completed.wake(u32::MAX);
        }
        self.under_way.lock().unwrap().end();
    }

    fn is_idle(&self) -> bool {
        let given = self.given.1.load(Acquire);
        self.processed.load(Acquire) == given
    }

    fn look_at_all(&self) {
        if self.rules.idle == Idle::Untold {
            return;
        }
        let too_soon = self.rules.idle == Idle::ToldTooSoon && self.is_idle();
        let last = self.issued.load(Acquire).into();
        if !self.under_way.lock().unwrap().begin_all(last) {
            return;
        }
        let is_idle = too_soon || self.is_idle();
        let look = self.under_way.lock().unwrap().answer_all(last, is_idle, drop);
        match look {
            AllLook::Over => {}
            AllLook::Again => self.retire(),
            AllLook::Reached(count) => self.let_go(count),
        }
    }

    fn look(&self, target: u32) -> bool {
        if self.completed.load(Acquire) >= target {
            return true;
        }
        self.look_at_all();
        if self.completed.load(Acquire) >= target {
            return true;
        }
        self.ask(u64::from(target));
        self.retire();
        self.completed.load(Acquire) >= target
    }

    /// `Queue::sleep`.
    fn sleep(&self, target: u32) {
        while !self.look(target) {
            if self.issued.load(Acquire) < target {
                wait(&self.issued, target);
                continue;
            }
            let event = self.under_way.lock().unwrap().covering(u64::from(target));
            if let Some(event) = event {
                wait(&self.reached[event as usize], 1);
            }
            let is_looking = |device_queue: &ModelDeviceQueue| device_queue.under_way.lock().unwrap().is_looking();
            if !self.look(target) && is_looking(self) {
                wait(&self.completed, target);
            }
        }
    }

    /// `Queue::see_off`.
    fn see_off(&self, target: u32) {
        if self.look(target) {
            return;
        }
        let event = self.under_way.lock().unwrap().covering(u64::from(target));
        let Some(event) = event else { return };
        *self.told.lock().unwrap() = Some(event);
        // The device reports at once if it is reached; it may do so twice here, which is harmless.
        if self.is_reached(event) {
            self.retire();
        }
    }
}

/// Sleeps until a count is at least this.
fn wait(count: &Futex, target: u32) {
    loop {
        let seen = count.load(Acquire);
        if seen >= target {
            return;
        }
        count.sleep(seen);
    }
}

const RULES: Rules = Rules { begin: Fences::begin, answer: Fences::answer, idle: Idle::Untold };

/// Issues `items` items beside the other threads; then all must be completed.
fn issue_beside(rules: Rules, items: u32, others: &'static [fn(&ModelDeviceQueue)]) {
    let mut model = loom::model::Builder::new();
    // Preemption of four threads at every step gives too many orders, above all with looks at all items.
    let is_large = items * others.len() as u32 > 2 || (rules.idle != Idle::Untold && others.len() > 1);
    model.preemption_bound = Some(if is_large { 1 } else { 2 });
    model.check(move || {
        let device_queue = Arc::new(ModelDeviceQueue::new(rules));
        let spawn = |f: fn(&ModelDeviceQueue)| {
            let device_queue = Arc::clone(&device_queue);
            thread::spawn(move || f(&device_queue))
        };
        let device = spawn(ModelDeviceQueue::work);
        let others: Vec<_> = others.iter().map(|&other| spawn(other)).collect();
        (0..items as usize).for_each(|item| device_queue.issue(item));
        others.into_iter().for_each(|other| other.join().unwrap());
        device_queue.see_off(items);
        device_queue.give(ModelSubmission::End);
        device.join().unwrap();
        assert_eq!(device_queue.completed.load(Acquire), items, "items are held for ever");
    });
}

/// A thread waits for an item that is not issued yet.
#[test]
fn models_fences_end_a_wait_that_begins_early() {
    issue_beside(RULES, 2, &[|device_queue| device_queue.sleep(2)]);
}

/// Two wait for different items: each ends, in order, and none before its item is done.
#[test]
fn models_fences_end_every_wait() {
    issue_beside(RULES, 2, &[|device_queue| device_queue.sleep(1), |device_queue| device_queue.sleep(2)]);
}

/// One waits while another one only looks.
#[test]
fn models_fences_end_a_wait_beside_a_look() {
    issue_beside(
        RULES,
        1,
        &[
            |device_queue| device_queue.sleep(1),
            |device_queue| {
                let _ = device_queue.look(1);
            },
        ],
    );
}

/// The device reports idleness: that covers the items issued before it was asked.
#[test]
fn models_fences_end_a_wait_by_a_look_at_all() {
    issue_beside(Rules { idle: Idle::Told, ..RULES }, 2, &[|device_queue| device_queue.sleep(2)]);
}

/// One looks at all while another one waits and leaves a note.
#[test]
fn models_fences_end_a_wait_beside_a_look_at_all() {
    issue_beside(
        Rules { idle: Idle::Told, ..RULES },
        1,
        &[
            |device_queue| device_queue.sleep(1),
            |device_queue| {
                let _ = device_queue.look(1);
            },
        ],
    );
}

/// A thread that asks the device before it fixes the target completes items issued since.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_fences_ask_for_all_too_soon() {
    issue_beside(Rules { idle: Idle::ToldTooSoon, ..RULES }, 2, &[|device_queue| device_queue.sleep(1)]);
}

/// A looker that ignores a note: the thread that left it has seen its event reached, and nobody else looks.
#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_fences_leave_without_another_look() {
    fn answer(under_way: &mut Fences<usize, u32>, is_reached: bool) -> Look<u32> {
        match under_way.answer(is_reached) {
            Look::Again => Look::Over,
            look => look,
        }
    }
    issue_beside(
        Rules { answer, ..RULES },
        1,
        &[
            |device_queue| device_queue.sleep(1),
            |device_queue| {
                let _ = device_queue.look(1);
            },
        ],
    );
}

/// A thread that looks while another one does completes items that only the other's event covers.
#[test]
#[should_panic]
fn models_broken_fences_are_looked_at_by_two() {
    fn begin(under_way: &mut Fences<usize, u32>) -> Option<u32> {
        if under_way.is_looking() {
            under_way.end();
        }
        under_way.begin()
    }
    issue_beside(
        Rules { begin, ..RULES },
        2,
        &[|device_queue| device_queue.sleep(1), |device_queue| device_queue.sleep(2)],
    );
}
