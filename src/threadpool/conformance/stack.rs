//! Probes of weir's own promises on this pool, through regions: W2, W6, W9, W10, W12.

use super::subject::{Outcome, PoolSubject, ProbeBench};
use super::traffic::spin;
use crate::base::{Code, Error, Ref, Result};
use crate::sync::Claim;
use crate::threadpool::{MAX_SLOTS, Span, ThreadPool, parallel_for};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

const ITEMS: usize = 1000;

/// Dear items, so that every region asks for helpers.
fn span(items: usize) -> Span {
    Span { items, cost_ns: 100_000.0, ..Span::default() }
}

/// Runs `probe` on the pool, which returns the error.
fn on_pool(bench: &ProbeBench, step: &'static str, probe: impl Fn(&Ref<ThreadPool>) -> Option<String>) -> Outcome {
    bench.step(step);
    let Some(pool) = bench.pool() else { return Outcome::Fail("the pool is gone".to_owned()) };
    for round in 0..bench.rounds() {
        if let Some(wrong) = probe(&pool) {
            return Outcome::Fail(format!("{wrong}, in round {round}"));
        }
    }
    // Helpers may still come later: they find their region over.
    bench.seen_unless_refused(0, format!("{} times", bench.rounds()))
}

/// A region that fills an array without atomics of its own, and its caller that reads it.
fn filled(pool: &Ref<ThreadPool>) -> Option<String> {
    // ORDERING: Relaxed; the test is that the region's own synchronisation is enough.
    let cells: Vec<AtomicU64> = (0..ITEMS).map(|_| AtomicU64::new(0)).collect();
    let body = |claim: Claim| -> Result<()> {
        for (i, cell) in cells.iter().enumerate().take(claim.end()).skip(claim.begin()) {
            cell.store(cell.load(Relaxed) + i as u64 + 1, Relaxed);
        }
        Ok(())
    };
    if let Err(error) = parallel_for(Some(pool), &span(ITEMS), &body) {
        return Some(format!("a region failed: {}", error.message()));
    }
    let wrong = cells.iter().enumerate().find(|(i, cell)| cell.load(Relaxed) != *i as u64 + 1);
    wrong.map(|(i, _)| format!("item {i} of {ITEMS} was not done once"))
}

fn slots(pool: &Ref<ThreadPool>) -> Option<String> {
    let held: Vec<AtomicBool> = (0..MAX_SLOTS).map(|_| AtomicBool::new(false)).collect();
    let body = |claim: Claim| -> Result<()> {
        if held[claim.slot()].swap(true, AcqRel) {
            return Err(Error::internal(format!("slot {} is held twice", claim.slot())));
        }
        spin(2_000);
        held[claim.slot()].store(false, Release);
        Ok(())
    };
    parallel_for(Some(pool), &span(64), &body).err().map(|error| error.message().to_owned())
}

fn nested(pool: &Ref<ThreadPool>) -> Option<String> {
    let sum = AtomicU64::new(0);
    let body = |claim: Claim| -> Result<()> {
        let inner = |claim: Claim| -> Result<()> {
            sum.fetch_add((claim.end() - claim.begin()) as u64, Relaxed);
            Ok(())
        };
        (claim.begin()..claim.end()).try_for_each(|_| parallel_for(Some(pool), &span(32), &inner))
    };
    if let Err(error) = parallel_for(Some(pool), &span(24), &body) {
        return Some(format!("a region inside another one failed: {}", error.message()));
    }
    (sum.load(Relaxed) != 24 * 32).then(|| format!("{} of {} inner items were done", sum.load(Relaxed), 24 * 32))
}

fn failing(pool: &Ref<ThreadPool>) -> Option<String> {
    let begun = AtomicU64::new(0);
    let body = |_: Claim| -> Result<()> {
        let first = begun.fetch_add(1, Relaxed) == 0;
        Err(Error::new(if first { Code::DataLoss } else { Code::Aborted }, "as asked"))
    };
    let span = Span { grain: 1, ..span(ITEMS) };
    let result = parallel_for(Some(pool), &span, &body);
    match result {
        Ok(()) => Some("a region with a failure succeeded".to_owned()),
        Err(error) if error.message() != "as asked" => Some(format!("another failure came back: {}", error.message())),
        Err(_) => filled(pool).map(|wrong| format!("after a failure, {wrong}")),
    }
}

pub fn regions(subject: &PoolSubject) {
    subject.probe("W2", "a region ends, whether tasks come or not", |bench| {
        let ended = on_pool(bench, "a region", |pool| {
            let empty = parallel_for(Some(pool), &span(bench.width() + 1), &|_| Ok(()));
            empty.err().map(|error| error.message().to_owned())
        });
        // The promise holds for a pool that runs nothing, too.
        if let Outcome::NotMet(_) = ended { Outcome::Pass(format!("{} times", bench.rounds())) } else { ended }
    });
    subject.probe("W6", "a region does each item once, and its caller sees it", |bench| {
        on_pool(bench, "a region", filled)
    });
    subject.probe("W9", "pieces that run at once have slots of their own", |bench| on_pool(bench, "a region", slots));
    subject.probe("W10", "a region may be opened inside another one", |bench| {
        on_pool(bench, "a region inside another one", nested)
    });
    subject
        .probe("W12", "a failure ends the region and is what it returns", |bench| on_pool(bench, "a region", failing));
}
