//! Probes of the two ways to hand work over: H4 to H9.

use super::observe;
use super::subject::{Outcome, PoolSubject, ProbeBench};
use super::traffic::spin;
use crate::abi::weir_threadpool_flags as F;
use crate::base::time::{Deadline, now_ns};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;

const BATCH: u64 = 64;

pub fn schedule(subject: &PoolSubject) {
    subject.probe("H4", "schedule runs each task once", |bench| {
        if !bench.checks.has_schedule() {
            return Outcome::NotOffered("there is no schedule".to_owned());
        }
        bench.step("schedule");
        let before = bench.accepted();
        let mut accepted = 0;
        for _ in 0..bench.rounds() {
            for _ in 0..BATCH {
                let long = bench.draw(8) == 0;
                accepted += u64::from(bench.schedule(move || spin(if long { 20_000 } else { 0 })));
            }
            std::thread::sleep(Duration::from_micros(bench.draw(300)));
        }
        observe::queue(bench);
        let lost = bench.settle(bench.deadline());
        bench.linger();
        if lost > 0 {
            return Outcome::Fail(format!("{lost} of {accepted} accepted tasks were not run in {}", bench.budget()));
        }
        bench.seen_unless_refused(before, format!("{accepted} tasks"))
    });
}

/// Numbers of tasks: below, at and above the width.
fn sizes(width: usize) -> Vec<usize> {
    let mut sizes = vec![1, 2, 3, width, width + 1, 2 * width + 3, 64];
    sizes.dedup();
    sizes
}

pub fn parallel_for(subject: &PoolSubject) {
    subject.probe("H5", "parallel_for runs each index once", |bench| {
        if !bench.checks.has_parallel_for() {
            return Outcome::NotOffered("there is no parallel_for".to_owned());
        }
        bench.step("parallel_for");
        let before = bench.accepted();
        let enough = bench.deadline();
        let mut calls = 0;
        for round in 0..bench.rounds() {
            for n in sizes(bench.width()) {
                let long = round % 2 == 1;
                calls += u64::from(bench.parallel_for(n, move |_| spin(if long { 5_000 } else { 0 })));
            }
            if enough.is_past() || bench.checks.of_clause("H5").is_some() {
                break;
            }
        }
        let lost = bench.settle(bench.deadline());
        bench.linger();
        if lost > 0 {
            return Outcome::Fail(format!("{lost} tasks of {calls} calls were not run in {}", bench.budget()));
        }
        bench.seen_unless_refused(before, format!("{calls} calls"))
    });
}

pub fn early_return(subject: &PoolSubject) {
    subject.probe("H6", "parallel_for returns when all its tasks have", |bench| {
        if !bench.checks.has_parallel_for() {
            return Outcome::NotOffered("there is no parallel_for".to_owned());
        }
        if !bench.checks.waits() {
            return Outcome::Pass("it is ASYNCHRONOUS, and may return before".to_owned());
        }
        bench.step("parallel_for");
        let before = bench.accepted();
        let n = bench.width() + 1;
        let mut calls = 0;
        for _ in 0..bench.rounds() {
            calls +=
                u64::from(bench.parallel_for(n, |index| std::thread::sleep(Duration::from_micros(50 * index as u64))));
        }
        bench.settle(bench.deadline());
        bench.seen_unless_refused(before, format!("{calls} calls"))
    });
}

pub fn refusal(subject: &PoolSubject) {
    subject.probe("H7", "what is refused is never run", |bench| {
        bench.step("schedule");
        // Enough to fill a queue that has a bound.
        for _ in 0..bench.rounds() * 128 {
            if bench.hand_over(|| ()).is_none() {
                break;
            }
        }
        bench.settle(bench.deadline());
        bench.linger();
        let (offered, refused) = (bench.seen.offered.load(Relaxed), bench.seen.refused.load(Relaxed));
        Outcome::Pass(format!("{refused} of {offered} calls were refused"))
    });
}

/// One thread that the pool has never seen.
fn call_from_outside(bench: &ProbeBench) {
    for _ in 0..bench.rounds() {
        for _ in 0..8 {
            bench.hand_over(|| ());
        }
        if bench.checks.has_parallel_for() {
            bench.parallel_for(3, |_| ());
        }
        bench.checks.num_threads();
        bench.checks.max_threads();
        bench.checks.in_parallel();
        bench.checks.thread_index();
        bench.checks.help();
    }
}

/// Whether parallel_for may be called inside a task.
fn may_nest(bench: &ProbeBench) -> bool {
    let nested = bench.checks.flags() & F::WEIR_THREADPOOL_NESTED as u64 != 0;
    bench.checks.has_parallel_for() && (nested || !bench.checks.waits())
}

/// Calls from inside of tasks.
fn call_from_inside(bench: &Arc<ProbeBench>) {
    for _ in 0..bench.rounds() {
        let inner = Arc::clone(bench);
        bench.hand_over(move || {
            for _ in 0..2 {
                inner.hand_over(|| ());
            }
            if may_nest(&inner) {
                inner.parallel_for(3, |_| ());
            }
            inner.checks.num_threads();
            inner.checks.help();
        });
        if may_nest(bench) {
            let inner = Arc::clone(bench);
            bench.parallel_for(3, move |_| {
                inner.parallel_for(2, |_| ());
            });
        }
    }
}

pub fn callers(subject: &PoolSubject) {
    const CALLERS: usize = 4;
    let shared = Arc::clone(&subject.bench);
    subject.probe("H8", "every thread may call, also a task, several at a time", move |bench| {
        let left_behind = bench.left_behind();
        let before = bench.accepted();
        let returned = Arc::new(AtomicUsize::new(0));
        let mut started = 0;
        for index in 0..CALLERS {
            let (caller, returned) = (Arc::clone(&shared), Arc::clone(&returned));
            let run = move || {
                call_from_outside(&caller);
                returned.fetch_add(1, Release);
            };
            started += usize::from(bench.start(Some(index), run).is_ok());
        }
        bench.step("a call from inside of a task, or from one of several threads,");
        call_from_inside(&shared);
        // Waits until this probe is abandoned: a caller that does not return makes the later clauses useless.
        while returned.load(Acquire) < started && !left_behind.is_past() {
            std::thread::sleep(Duration::from_micros(200));
        }
        drop(shared);
        let lost = bench.settle(bench.deadline());
        bench.linger();
        if lost > 0 {
            return Outcome::Fail(format!("{lost} accepted tasks were not run in {}", bench.budget()));
        }
        bench.seen_unless_refused(before, format!("{started} threads at a time, and tasks"))
    });
}

pub fn progress(subject: &PoolSubject) {
    subject.probe("H9", "an accepted task runs without another call", |bench| {
        bench.step("schedule");
        let before = bench.accepted();
        let mut tasks = 0;
        for round in 0..bench.rounds().max(8) {
            // Threads without work may have gone to sleep in the meantime.
            std::thread::sleep(Duration::from_micros([0, 50, 500, 3_000][round as usize % 4]));
            let begun = Arc::new(AtomicU64::new(0));
            let (task, start) = (Arc::clone(&begun), now_ns());
            match bench.hand_over(move || task.store(now_ns().max(1), Release)) {
                None => return Outcome::NotOffered("there is only a parallel_for that waits".to_owned()),
                Some(false) => continue,
                Some(true) => {}
            }
            if !wait_for(&begun, bench.deadline()) {
                return Outcome::Fail(stalled(bench, &begun));
            }
            let hop = begun.load(Acquire).saturating_sub(start);
            bench.seen.hops.lock().push(hop);
            tasks += 1;
        }
        bench.settle(bench.deadline());
        bench.seen_unless_refused(before, format!("{tasks} tasks, one at a time"))
    });
}

fn wait_for(begun: &AtomicU64, deadline: Deadline) -> bool {
    while begun.load(Acquire) == 0 {
        if deadline.is_past() {
            return false;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    true
}

/// A task did not run. Does another call bring it?
fn stalled(bench: &ProbeBench, begun: &AtomicU64) -> String {
    bench.hand_over(|| ());
    let came = wait_for(begun, Deadline::after(50_000_000));
    let then = if came { ", and was when the pool was called again" } else { "" };
    format!("an accepted task was not begun in {}{then}", bench.budget())
}
