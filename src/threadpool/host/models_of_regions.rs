//! loom models of the parts of a region: the division of its units, its join, and the budget of helpers. Each has
//! broken twins, which loom must find.

use super::budget::Budget;
use super::help_wanted::HelpWanted;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;
use crate::sync::event_count::{self, CountWord};
use crate::sync::lock::Word;
use crate::sync::models::Futex;
use crate::sync::{Exit, RunEntry, RunLatch};
use crate::threadpool::ranges::{Draw, Ranges};
use loom::cell::UnsafeCell;
use loom::thread;
// The panic of a failing model unwinds through these values, so they must not be loom's.
use std::sync::Arc;

fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Two threads draw from their homes and steal from each other until each finds nothing: each unit is drawn once.
fn draw_all(units: u32, draw: fn(&Ranges, usize) -> Option<(u32, u32)>) {
    let ranges = Arc::new(Ranges::new(2));
    let drawn: Arc<Vec<UnsafeCell<u32>>> = Arc::new((0..units).map(|_| UnsafeCell::new(0)).collect());
    ranges.fill(2, units);
    let work = move |home: usize, ranges: &Ranges, drawn: &[UnsafeCell<u32>]| {
        while let Some((begin, end)) = draw(ranges, home) {
            for unit in begin..end {
                // SAFETY: drawn once, which loom checks here.
                drawn[unit as usize].with_mut(|count| unsafe { *count += 1 });
            }
        }
    };
    let other = {
        let (ranges, drawn) = (Arc::clone(&ranges), Arc::clone(&drawn));
        thread::spawn(move || work(1, &ranges, &drawn))
    };
    work(0, &ranges, &drawn);
    other.join().unwrap();
    for unit in drawn.iter() {
        // SAFETY: the other thread has ended.
        assert_eq!(unit.with(|count| unsafe { *count }), 1, "each unit is drawn once");
    }
}

const DRAW: Draw = Draw { team: 2, parts: 2, least: 1 };

#[test]
fn models_ranges_give_each_unit_once() {
    for units in 1..=5 {
        bounded(move || draw_all(units, |ranges, home| ranges.draw(home, DRAW)));
    }
}

/// Taking from the home without comparing takes units that were stolen in between.
#[test]
#[should_panic(expected = "unit")]
fn models_broken_ranges_take_without_comparing() {
    fn draw(ranges: &Ranges, home: usize) -> Option<(u32, u32)> {
        let word = ranges.word(home);
        let seen = word.load(Relaxed);
        let (begin, end) = ((seen >> 32) as u32, seen as u32);
        if begin == end {
            return ranges.draw(home, DRAW);
        }
        word.store(u64::from(begin + 1) << 32 | u64::from(end), Relaxed);
        Some((begin, begin + 1))
    }
    // If two threads draw the same unit, loom sees unordered accesses, or the count is wrong.
    let found = std::panic::catch_unwind(|| bounded(|| draw_all(4, draw)));
    assert!(found.is_ok(), "a unit was drawn twice");
}

/// A region with one home and two threads: the caller and a helper.
struct HomeModel {
    latch: RunLatch,
    free: AtomicU64,
    ranges: Ranges,
    drawn: Vec<UnsafeCell<u32>>,
}

const UNITS: u32 = 2;

fn two_come_for_one_home(draw: fn(&HomeModel) -> u32) {
    let home = Arc::new(HomeModel {
        latch: RunLatch::new(),
        free: AtomicU64::new(1),
        ranges: Ranges::new(1),
        drawn: (0..UNITS).map(|_| UnsafeCell::new(0)).collect(),
    });
    home.ranges.fill(1, UNITS);
    let generation = home.latch.open(UNITS);
    // True if this thread leaves last.
    let come = move |home: &HomeModel| {
        let done = if home.free.fetch_and(0, Acquire) == 1 {
            let done = draw(home);
            home.free.fetch_or(1, Release);
            done
        } else {
            0
        };
        home.latch.leave(done) == Exit::Closed
    };
    let helper = {
        let home = Arc::clone(&home);
        thread::spawn(move || home.latch.enter(generation) == RunEntry::Inside && come(&home))
    };
    let last = come(&home);
    assert!(last != helper.join().unwrap(), "the region is closed once");
    for unit in &home.drawn {
        // SAFETY: the other thread has ended.
        assert_eq!(unit.with(|count| unsafe { *count }), 1, "each unit is drawn once");
    }
}

fn draw_one(home: &HomeModel) -> u32 {
    let Some((begin, end)) = home.ranges.draw(0, Draw { team: 1, parts: 2, least: 1 }) else { return 0 };
    for unit in begin..end {
        // SAFETY: drawn once, which loom checks here.
        home.drawn[unit as usize].with_mut(|count| unsafe { *count += 1 });
    }
    end - begin
}

/// A thread that finds no home leaves, even the caller: the holder of the home does all the work.
#[test]
fn models_homes_are_left_empty() {
    fn draw(home: &HomeModel) -> u32 {
        std::iter::from_fn(|| Some(draw_one(home)).filter(|&done| done > 0)).sum()
    }
    bounded(|| two_come_for_one_home(draw));
}

/// A holder that gives its home back with units in it: the other thread may have left already.
#[test]
#[should_panic(expected = "the region is closed once")]
fn models_broken_homes_are_left_with_units() {
    bounded(|| two_come_for_one_home(draw_one));
}

/// A region's join: the caller and a helper each do a unit; the last one out wakes the caller.
struct JoinModel {
    latch: RunLatch,
    reached: AtomicU64,
    sleepers: Futex,
    epoch: Futex,
    /// Written by the helper, read by the caller after the join.
    result: UnsafeCell<u32>,
    /// Written by the closer.
    epilogue: UnsafeCell<u32>,
}

fn join(wait: fn(&JoinModel), leave: fn(&RunLatch) -> Exit) {
    let region = Arc::new(JoinModel {
        latch: RunLatch::new(),
        reached: AtomicU64::new(0),
        sleepers: Futex::new(),
        epoch: Futex::new(),
        result: UnsafeCell::new(0),
        epilogue: UnsafeCell::new(0),
    });
    let generation = region.latch.open(2);
    let close = |region: &JoinModel| {
        // SAFETY: the closer is alone, which loom checks.
        region.epilogue.with_mut(|epilogue| unsafe { *epilogue += 1 });
    };
    let helper = {
        let region = Arc::clone(&region);
        thread::spawn(move || {
            if region.latch.enter(generation) == RunEntry::Over {
                return false;
            }
            // SAFETY: its own unit.
            region.result.with_mut(|result| unsafe { *result = 7 });
            if leave(&region.latch) == Exit::Closed {
                close(&region);
                event_count::advance(&region.reached, &region.sleepers, &region.epoch, 1);
            }
            true
        })
    };
    // The helper does its unit, or the caller if it never comes: here it always comes in time.
    if leave(&region.latch) == Exit::Closed {
        close(&region);
    } else {
        wait(&region);
    }
    // SAFETY: the region is over: nobody is inside.
    let (result, epilogues) =
        unsafe { (region.result.with(|result| *result), region.epilogue.with(|epilogue| *epilogue)) };
    assert_eq!((result, epilogues), (7, 1));
    assert!(helper.join().unwrap());
}

fn wait_asleep(region: &JoinModel) {
    event_count::sleep_until(&region.reached, &region.sleepers, &region.epoch, 1, |epoch| {
        region.epoch.sleep(epoch);
        true
    });
}

/// Whichever leaves last: the caller continues once, and sees the helper's work.
#[test]
fn models_join_wakes_the_caller_after_the_last_one_out() {
    bounded(|| join(wait_asleep, |latch| latch.leave(1)));
}

/// A caller that looks at the count before it counts itself among the sleepers sleeps for ever.
#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_join_looks_too_early() {
    fn wait(region: &JoinModel) {
        let epoch = region.epoch.load(SeqCst);
        if region.reached.look() == 0 {
            region.sleepers.fetch_add(1, SeqCst);
            region.epoch.sleep(epoch);
            region.sleepers.fetch_add(u32::MAX, SeqCst);
        }
    }
    bounded(|| join(wait, |latch| latch.leave(1)));
}

/// A thread that reports its units before it leaves may close a region with another one inside.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_join_closes_by_two_steps() {
    // Both count their units first and then look whether all are done: either may find so while the other is inside.
    fn leave(latch: &RunLatch) -> Exit {
        latch.finish(1);
        if latch.is_finished() { Exit::Closed } else { Exit::Open }
    }
    bounded(|| {
        join(
            |region| {
                while region.reached.look() == 0 && region.latch.inside() > 0 && !region.latch.is_finished() {
                    thread::yield_now()
                }
            },
            leave,
        );
    });
}

/// Two regions begin at once on a pool with one free thread: one of them gets it.
fn take_the_last(take: fn(&Budget) -> usize) {
    let budget = Arc::new(Budget::new());
    let other = {
        let budget = Arc::clone(&budget);
        thread::spawn(move || take(&budget))
    };
    let mine = take(&budget);
    let theirs = other.join().unwrap();
    assert!(mine + theirs <= 1, "granted {mine} and {theirs} of 1");
    assert_eq!(budget.out(), mine + theirs);
}

#[test]
fn models_budget_is_never_exceeded() {
    loom::model(|| take_the_last(|budget| budget.take(1, 1)));
    // A helper returns while two ask: never more than one is out.
    loom::model(|| {
        let budget = Arc::new(Budget::new());
        assert_eq!(budget.take(1, 1), 1);
        let other = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.take(1, 1))
        };
        budget.give_back(1);
        let mine = budget.take(1, 1);
        assert_eq!(mine + other.join().unwrap(), 1);
    });
}

/// A load and then an addition grants the last thread twice.
#[test]
#[should_panic(expected = "granted 1 and 1 of 1")]
fn models_broken_budget_looks_and_then_adds() {
    loom::model(|| {
        take_the_last(|budget| {
            let free = 1usize.saturating_sub(budget.out());
            budget.add(free);
            free
        });
    });
}

/// A region begins while the only helper is on its way out: the region gets the budget, or the helper sees the bit.
fn begin_while_one_leaves() {
    let shared = Arc::new((HelpWanted::new(), Budget::new()));
    assert_eq!(shared.1.take(1, 1), 1);
    let helper = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            shared.1.give_back(1);
            shared.0.wanted_now() != 0
        })
    };
    shared.0.set(3);
    let found = shared.1.take(1, 1) == 1;
    let seen = helper.join().unwrap();
    assert!(found || seen, "the region is left alone");
}

#[test]
fn models_help_wanted_misses_nobody() {
    loom::model(begin_while_one_leaves);
}

/// A helper that reads the bits before it gives back its part of the budget.
#[test]
#[should_panic(expected = "left alone")]
fn models_broken_help_wanted_looks_too_early() {
    loom::model(|| {
        let shared = Arc::new((HelpWanted::new(), Budget::new()));
        assert_eq!(shared.1.take(1, 1), 1);
        let helper = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let seen = shared.0.wanted_now() != 0;
                shared.1.give_back(1);
                seen
            })
        };
        shared.0.set(3);
        let found = shared.1.take(1, 1) == 1;
        let seen = helper.join().unwrap();
        assert!(found || seen, "the region is left alone");
    });
}
