//! Observations of legal behaviour.

use super::subject::{ClauseVerdict, PoolSubject, ProbeBench, ReportLine, seconds};
use crate::base::time::Deadline;
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::time::Duration;

/// A hop that takes longer is a delay.
const LONG_HOP_NS: u64 = 1_000_000;
const QUEUED: usize = 32;

/// In which order queued tasks are begun: all threads are kept busy while a queue builds up.
pub fn queue(bench: &ProbeBench) {
    let open = Arc::new(AtomicBool::new(false));
    let arrived = Arc::new(AtomicUsize::new(0));
    let until = Deadline::after(100_000_000);
    let width = bench.width().min(256);
    for _ in 0..width {
        let (open, arrived) = (Arc::clone(&open), Arc::clone(&arrived));
        bench.schedule(move || {
            arrived.fetch_add(1, Release);
            while !open.load(Acquire) && !until.is_past() {
                std::thread::sleep(Duration::from_micros(20));
            }
        });
    }
    while arrived.load(Acquire) < width && !until.is_past() {
        std::thread::sleep(Duration::from_micros(20));
    }
    let begun = Arc::new(Mutex::new(Vec::new()));
    for number in 0..QUEUED {
        let begun = Arc::clone(&begun);
        bench.schedule(move || begun.lock().push(number));
    }
    open.store(true, Release);
    bench.settle(bench.deadline());
    let begun = begun.lock();
    let overtaken = begun.windows(2).filter(|pair| pair[0] > pair[1]).count();
    *bench.seen.overtaken.lock() = (overtaken, begun.len().saturating_sub(1));
}

/// The notes, after all probes.
pub fn notes(subject: &PoolSubject) -> Vec<ReportLine> {
    let bench = &subject.bench;
    let seen = &bench.seen;
    let mut notes = Vec::new();
    let mut note = |clause, title, text| notes.push(ReportLine { clause, title, verdict: ClauseVerdict::Note, text });

    if bench.checks.widest() <= 1 {
        note("H2", "width is 1", "work that needs two threads at once would wait for ever on it".to_owned());
    }
    let at_once = seen.at_once.load(Relaxed);
    note("H2", "tasks at once", format!("{at_once} were seen, the caller's included"));
    let (inline, scheduled) = (seen.inline.load(Relaxed), seen.scheduled.load(Relaxed));
    if inline > 0 {
        let what = if inline == scheduled { "all" } else { "some" };
        note("H4", "runs tasks inside schedule", format!("{what}: {inline} of {scheduled}, in its caller"));
    }
    let (overtaken, pairs) = *seen.overtaken.lock();
    if pairs > 0 && overtaken * 4 >= pairs * 3 {
        note("H4", "runs the newest task first", format!("{overtaken} of {pairs} queued tasks were overtaken"));
    }
    let (in_caller, bulk) = (seen.in_caller.load(Relaxed), seen.bulk.load(Relaxed));
    if in_caller > 0 {
        note("H5", "runs tasks in the caller of parallel_for", format!("{in_caller} of {bulk}"));
    }
    let (refused, offered) = (seen.refused.load(Relaxed), seen.offered.load(Relaxed));
    if refused > 0 {
        let what = if refused == offered { "all" } else { "some" };
        note("H7", "refuses work", format!("{what}: {refused} of {offered} calls"));
    }
    if !bench.checks.knows_its_threads() {
        let text = "weir knows the tasks that it handed over, and no other work on these threads: give in_parallel or \
                    thread_index if such work calls weir";
        note("H10", "does not say who its threads are", text.to_owned());
    }
    let mut hops = seen.hops.lock().clone();
    hops.sort_unstable();
    if let Some(&median) = hops.get(hops.len() / 2) {
        let title = if median >= LONG_HOP_NS { "delays tasks" } else { "time from the call to the task" };
        note("H9", title, format!("median {} of {} tasks, on an idle pool", seconds(median), hops.len()));
    }
    notes
}
