//! loom models of task groups: contention for a slot of a deque, and the end of a group against sleepers, notices and
//! releases. Each has broken twins, which loom must find.

use super::deque::{Cell64, DequeSlot};
use super::tally::{GroupTally, TallyWord};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{self, *};
use crate::sync::lock::Word;
use crate::sync::models::Futex;
use loom::cell::UnsafeCell;
use loom::thread;
// The panic of a failing model unwinds through these values, so they must not be loom's.
use std::sync::Arc;

impl Cell64 for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
    fn compare_exchange(&self, from: u64, to: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.compare_exchange(from, to, success, failure)
    }
}

fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

type Two = DequeSlot<AtomicU64, 2>;
const RECORDS: u64 = 2;

/// The owner puts records into one slot whenever it is free, and takes them back; another thread takes twice. Each
/// record is taken once, and whole, with all that was written before it was put.
fn all_are_taken_once(put: fn(&Two, u64), take: fn(&Two) -> Option<[u64; 2]>) {
    let slot = Arc::new(Two { state: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) });
    let tasks: Arc<Vec<UnsafeCell<u32>>> = Arc::new((0..=RECORDS).map(|_| UnsafeCell::new(0)).collect());
    let run = |tasks: &[UnsafeCell<u32>], [one, two]: [u64; 2]| {
        assert_eq!(one, two, "a record is whole");
        // SAFETY: taken once, which loom checks here.
        tasks[one as usize].with_mut(|state| unsafe {
            assert_eq!(*state, 1, "each record is taken once");
            *state = 2;
        });
    };
    let other = {
        let (slot, tasks) = (Arc::clone(&slot), Arc::clone(&tasks));
        thread::spawn(move || (0..2).filter_map(|_| take(&slot)).for_each(|record| run(&tasks, record)))
    };
    for i in 1..=RECORDS {
        if !slot.is_free() {
            take(&slot).into_iter().for_each(|record| run(&tasks, record));
        }
        // SAFETY: nobody knows of this record yet.
        tasks[i as usize].with_mut(|state| unsafe { *state = 1 });
        put(&slot, i);
    }
    take(&slot).into_iter().for_each(|record| run(&tasks, record));
    other.join().unwrap();
    for task in tasks.iter().skip(1) {
        // SAFETY: the other thread has ended.
        assert_eq!(task.with(|state| unsafe { *state }), 2, "each record is taken once");
    }
}

fn put(slot: &Two, value: u64) {
    slot.put(&[value; 2]);
}

fn take(slot: &Two) -> Option<[u64; 2]> {
    let (state, record) = slot.look()?;
    slot.take(state).then_some(record)
}

#[test]
fn models_slots_give_each_record_once() {
    bounded(|| all_are_taken_once(put, take));
}

/// A taker that stores instead of comparing.
#[test]
#[should_panic]
fn models_broken_slots_are_taken_without_comparing() {
    bounded(|| {
        all_are_taken_once(put, |slot| {
            let (state, record) = slot.look()?;
            slot.state.store(state + 1, Release);
            Some(record)
        });
    });
}

/// A state that recurs: the record read may be the former one.
#[test]
#[should_panic]
fn models_broken_slots_have_states_that_come_back() {
    bounded(|| {
        all_are_taken_once(put, |slot| {
            let (state, record) = slot.look()?;
            slot.state.compare_exchange(state, state - 1, AcqRel, Relaxed).is_ok().then_some(record)
        });
    });
}

/// A record that is published before it is written.
#[test]
#[should_panic]
fn models_broken_slots_are_published_without_order() {
    bounded(|| {
        all_are_taken_once(
            |slot, value| {
                slot.words.iter().for_each(|word| word.store(value, Relaxed));
                let state = slot.state.load(Relaxed);
                slot.state.store(state + 1, Relaxed);
            },
            take,
        );
    });
}

/// A wait against the last task (`Crew::sleep`, `work::finish`): the sleeper is woken, or does not fall asleep.
fn a_sleeper_is_woken(is_left: fn(&GroupTally) -> bool) {
    let tally = GroupTally::new();
    tally.begin();
    tally.add();
    let all = Arc::new((tally, Futex::new()));
    let other = {
        let all = Arc::clone(&all);
        thread::spawn(move || {
            let (tally, epoch) = &*all;
            let count = tally.done();
            if count.pending() == 0 && count.sleepers() > 0 {
                epoch.fetch_add(1, Release);
                epoch.wake(u32::MAX);
            }
        })
    };
    let (tally, epoch) = &*all;
    // Another round on a spurious wake-up.
    while tally.look().pending() > 0 {
        if is_left(tally) {
            let seen = epoch.load(Acquire);
            if tally.look().pending() > 0 {
                epoch.sleep(seen);
            }
        }
        tally.wake_up();
    }
    other.join().unwrap();
}

#[test]
fn models_tally_wakes_who_sleeps() {
    bounded(|| a_sleeper_is_woken(|tally| tally.sleep().pending() > 0));
}

/// A sleeper that looks before it counts itself.
#[test]
#[should_panic]
fn models_broken_tally_is_looked_at_before_it_counts() {
    bounded(|| {
        let tally = GroupTally::new();
        tally.begin();
        tally.add();
        let all = Arc::new((tally, Futex::new()));
        let other = {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                let count = all.0.done();
                if count.sleepers() > 0 {
                    all.1.fetch_add(1, Release);
                    all.1.wake(u32::MAX);
                }
            })
        };
        let (tally, epoch) = &*all;
        let seen = epoch.load(Acquire);
        if tally.look().pending() > 0 {
            tally.sleep();
            epoch.sleep(seen);
        }
        other.join().unwrap();
    });
}

/// Two tasks end while a notice is registered and the handle is released: the notice is delivered once, and the group
/// is freed once, by the last thread.
fn ends_once(done: fn(&GroupTally) -> TallyWord, notice: fn(&GroupTally) -> bool) {
    let tally = GroupTally::new();
    tally.begin();
    tally.add();
    tally.add();
    let all = Arc::new((tally, AtomicU64::new(0), AtomicU64::new(0)));
    let end = move |all: &(GroupTally, AtomicU64, AtomicU64)| {
        let count = done(&all.0);
        if count.pending() == 0 && count.noticed() {
            all.1.fetch_add(1, Relaxed);
            if all.0.release().holders() == 0 {
                all.2.fetch_add(1, Relaxed);
            }
        } else if count.pending() == 0 && count.holders() == 0 {
            all.2.fetch_add(1, Relaxed);
        }
    };
    let others: Vec<_> = (0..2)
        .map(|_| {
            let all = Arc::clone(&all);
            thread::spawn(move || end(&all))
        })
        .collect();
    if !notice(&all.0) {
        all.1.fetch_add(1, Relaxed);
    }
    let count = all.0.release();
    if count.holders() == 0 && count.pending() == 0 {
        all.2.fetch_add(1, Relaxed);
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(all.1.load(Relaxed), 1, "the notice is told once");
    assert_eq!(all.2.load(Relaxed), 1, "the group is freed once");
}

#[test]
fn models_tally_ends_once() {
    bounded(|| ends_once(GroupTally::done, GroupTally::notice));
}

/// A notice that checks for pending tasks and registers in two steps.
#[test]
#[should_panic(expected = "once")]
fn models_broken_tally_has_a_notice_in_two_steps() {
    bounded(|| {
        ends_once(GroupTally::done, |tally| {
            let is_pending = tally.look().pending() > 0;
            if is_pending {
                tally.put_up_notice();
            }
            is_pending
        });
    });
}
