//! Probes of a pool's statements about itself and its threads: H2, H3, H10, H11.

use super::subject::{Outcome, PoolSubject, ProbeBench};
use super::traffic::{TaskBarrier, spin};
use crate::base::time::Deadline;
use crate::sync::thread::me;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// How long tasks wait for one another.
const MEETING_NS: u64 = 100_000_000;

/// Runs as many tasks as the pool claims to have threads, at once if it can.
fn meet(bench: &Arc<ProbeBench>, work: impl Fn(&ProbeBench) + Send + Sync + Clone + 'static) -> usize {
    let wanted = bench.width() + 1;
    let meeting = Arc::new(TaskBarrier::default());
    let until = Deadline::after(MEETING_NS.min(bench.options.budget_ns / 4));
    let task = {
        let (meeting, bench) = (Arc::clone(&meeting), Arc::clone(bench));
        move || {
            work(&bench);
            // One more than there are threads: all of them meet.
            meeting.attend(wanted, until);
        }
    };
    for _ in 0..wanted {
        if bench.hand_over(task.clone()).is_none() {
            bench.parallel_for(wanted, move |_| task());
            break;
        }
    }
    bench.settle(bench.deadline());
    meeting.most()
}

/// How many observations count as evidence that a pool counts its caller.
const COUNTS_ITS_CALLER: usize = 3;

/// Whether a blocking parallel_for runs on no more threads, its caller included, than num_threads says. Then
/// num_threads counts the caller. With one thread this cannot be seen: a pool may not say less.
fn counts_its_caller(bench: &ProbeBench) -> bool {
    let width = bench.width();
    if width == 1 || bench.checks.has_schedule() || !bench.checks.has_parallel_for() || !bench.checks.waits() {
        return false;
    }
    bench.step("parallel_for");
    (0..COUNTS_ITS_CALLER).all(|_| {
        let meeting = Arc::new(TaskBarrier::default());
        let until = Deadline::after(MEETING_NS.min(bench.options.budget_ns / 4));
        let (caller, came) = (me(), Arc::new(AtomicBool::new(false)));
        let (all, in_caller) = (Arc::clone(&meeting), Arc::clone(&came));
        let accepted = bench.parallel_for(width + 1, move |_| {
            in_caller.fetch_or(me() == caller, Relaxed);
            all.attend(width + 1, until);
        });
        accepted && meeting.most() == width && came.load(Relaxed) && bench.width() == width
    })
}

pub fn width(subject: &PoolSubject) {
    let shared = Arc::clone(&subject.bench);
    subject.probe("H2", "num_threads says how many tasks can run at once", move |bench| {
        bench.step("num_threads");
        let (before, accepted) = (bench.checks.num_threads(), bench.accepted());
        let at_once = meet(&shared, |bench| {
            bench.checks.num_threads();
        });
        bench.seen.at_once.fetch_max(at_once, Relaxed);
        if counts_its_caller(bench) {
            return Outcome::Fail(format!(
                "it says {before}, and parallel_for runs {before} tasks at once with its caller: weir's caller \
                 counts apart"
            ));
        }
        let after = bench.checks.num_threads();
        drop(shared);
        let counts = if before < 1 { ", which counts as 1" } else { "" };
        let says = if before == after {
            format!("it says {before}{counts}")
        } else {
            format!("it said {before}, and then {after}")
        };
        bench.seen_unless_refused(accepted, says)
    });
    subject.probe("H3", "max_threads bounds num_threads and thread_index", |bench| {
        bench.step("max_threads");
        let Some(max) = bench.checks.max_threads() else {
            return Outcome::NotOffered("there is no max_threads".to_owned());
        };
        bench.checks.num_threads();
        bench.checks.max_threads();
        Outcome::Pass(format!("it says {max}"))
    });
}

/// The pool's answers about the probe's thread, which does not belong to it.
fn outside(bench: &ProbeBench) -> Option<String> {
    if bench.checks.in_parallel() == Some(true) {
        return Some("in_parallel is nonzero on a thread that is none of the pool's".to_owned());
    }
    match bench.checks.thread_index() {
        Some(index) if index >= 0 => Some(format!("thread_index says {index} on a thread that is none of the pool's")),
        _ => None,
    }
}

pub fn threads(subject: &PoolSubject) {
    let shared = Arc::clone(&subject.bench);
    subject.probe("H10", "threads know whether and where they belong", move |bench| {
        if !bench.checks.knows_its_threads() {
            return Outcome::NotOffered("there is neither in_parallel nor thread_index".to_owned());
        }
        bench.step("in_parallel or thread_index");
        if let Some(wrong) = outside(bench) {
            return Outcome::Fail(wrong);
        }
        let (differ, accepted) = (Arc::new(AtomicBool::new(false)), bench.accepted());
        for _ in 0..bench.rounds().min(4) {
            let differ = Arc::clone(&differ);
            meet(&shared, move |bench| {
                if let (Some(inside), Some(index)) = (bench.checks.in_parallel(), bench.checks.thread_index()) {
                    differ.fetch_or(inside != (index >= 0), Relaxed);
                }
            });
        }
        drop(shared);
        if let Some(wrong) = outside(bench) {
            return Outcome::Fail(format!("{wrong}, after it had called the pool"));
        }
        if differ.load(Relaxed) {
            return Outcome::Fail("in_parallel and thread_index contradict one another in a task".to_owned());
        }
        bench.seen_unless_refused(accepted, "inside and outside".to_owned())
    });
}

pub fn help(subject: &PoolSubject) {
    subject.probe("H11", "help runs one queued task, or says no", |bench| {
        if !bench.checks.has_help() {
            return Outcome::NotOffered("there is no help".to_owned());
        }
        bench.step("help");
        let accepted = bench.accepted();
        let enough = bench.deadline();
        let mut helped = 0;
        for round in 0..bench.rounds() {
            for _ in 0..4 * (round % 4) {
                bench.hand_over(|| spin(10_000));
            }
            // Also asks the empty pool, which nobody else uses.
            for _ in 0..32 {
                let (said, ran) = bench.checks.help();
                if said && ran == 0 {
                    return Outcome::Fail("help returned nonzero and ran nothing".to_owned());
                }
                helped += ran;
            }
            if enough.is_past() {
                break;
            }
        }
        bench.settle(bench.deadline());
        bench.seen_unless_refused(accepted, format!("it ran {helped} tasks"))
    });
}
