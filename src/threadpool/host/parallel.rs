//! The doors to a parallel loop: what is planned to be alone runs here, the rest in a region.
//!
//! A loop whose items cost nobody knows what is planned by what its function took before (`Sites`), if that is clear.
//! Else it begins alone, in pieces that double; when it has taken as long as a helper would take to come, what is
//! left is planned with the cost that was seen.

use super::region::{Body, Epilogue, shared};
use crate::base::time::now_ns;
use crate::base::{Ref, Result};
use crate::sync::Claim;
use crate::threadpool::ThreadPool;
use crate::threadpool::plan::{self, Span};
use crate::threadpool::sites;
use crate::threadpool::trials::Next;

/// A loop that is too small to be shared is measured again once in so many calls; and where it is smaller by this factor
/// than one that could be, more seldom.
const OFTEN: u32 = 16;
const SELDOM: u32 = 256;
const FAR: f32 = 16.0;

/// Runs `body` over all items and returns when all pieces have returned; the first error (or panic) wins and stops
/// pieces that have not begun.
pub fn parallel_for(pool: Option<&Ref<ThreadPool>>, span: &Span, body: Body<'_>) -> Result<()> {
    parallel_for_then(pool, span, body, None)
}

/// As `parallel_for`; then the epilogue, once, in the thread that comes out last. Not if a piece has failed.
#[inline]
pub fn parallel_for_then(
    pool: Option<&Ref<ThreadPool>>,
    span: &Span,
    body: Body<'_>,
    epilogue: Option<Epilogue<'_>>,
) -> Result<()> {
    if span.items > 0 {
        let Some(pool) = pool.filter(|_| span.items > span.grain.max(1) && span.max_slots != 1) else {
            return alone(span, 0, body, epilogue);
        };
        if span.cost_ns <= 0.0 {
            return unknown(pool, span, body, epilogue);
        }
        return planned(pool, span, span.cost_ns, body, epilogue, || alone(span, 0, body, epilogue));
    }
    epilogue.map_or(Ok(()), |epilogue| epilogue())
}

/// A loop whose items cost about `cost_ns`: as the plan says, unless it was tried and proved wrong. `otherwise` is what
/// to do if the plan asks for nobody.
#[inline]
fn planned(
    pool: &Ref<ThreadPool>,
    span: &Span,
    cost_ns: f32,
    body: Body<'_>,
    epilogue: Option<Epilogue<'_>>,
    otherwise: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut known = Span { cost_ns, ..*span };
    let (total, worth) = (known.total_ns(), pool.learned().costs.worth_ns());
    let trial = if total < worth { None } else { pool.learned().trials.of(span, total) };
    let mut timed = false;
    if let Some(trial) = &trial {
        if let Some(alone_ns) = trial.alone_ns() {
            known.cost_ns = alone_ns / span.items as f32;
        }
        match trial.next(known.total_ns() < worth) {
            Next::Alone { timed: true } => {
                let begin = now_ns();
                alone(span, 0, body, epilogue)?;
                let ns = (now_ns() - begin) as f32;
                trial.was_alone(ns);
                seen(pool, span, ns);
                return Ok(());
            }
            Next::Alone { timed: false } => return alone(span, 0, body, epilogue),
            Next::Shared { timed: wanted } => timed = wanted,
        }
    }
    let Some(plan) = plan::plan(pool, &known) else { return otherwise() };
    let begin = if timed { now_ns() } else { 0 };
    shared(pool, &known, 0, plan, body, epilogue)?;
    if let Some(trial) = trial.filter(|_| timed && plan.taken > 0) {
        let ns = (now_ns() - begin) as f32;
        trial.was_shared(ns);
        seen(pool, span, ns * (plan.taken + 1) as f32);
    }
    Ok(())
}

/// What a loop without an estimate took, in the time of one thread: the next one of its function may cost something
/// else.
fn seen(pool: &Ref<ThreadPool>, span: &Span, ns: f32) {
    if span.cost_ns <= 0.0 {
        pool.learned().sites.put(span.site, ns / span.items as f32);
    }
}

/// The items from `first` on, in this thread.
#[inline]
pub(super) fn alone(span: &Span, first: usize, body: Body<'_>, epilogue: Option<Epilogue<'_>>) -> Result<()> {
    // SAFETY: the only claim of this region on these items, and the only one now.
    body(unsafe { Claim::new(first, span.items, 0) })?;
    epilogue.map_or(Ok(()), |epilogue| epilogue())
}

/// A loop whose items cost nobody knows: by what its function took before, if that is clear, and else as it turns out.
#[cold]
fn unknown(pool: &Ref<ThreadPool>, span: &Span, body: Body<'_>, epilogue: Option<Epilogue<'_>>) -> Result<()> {
    if let Some(cost_ns) = pool.learned().sites.get(span.site) {
        let (total, worth) = (span.items as f32 * cost_ns, pool.learned().costs.worth_ns());
        let uses = if total < worth / FAR { SELDOM } else { OFTEN };
        if total < worth / 4.0 && !sites::is_due(uses) {
            return alone(span, 0, body, epilogue);
        }
        if total > worth {
            return planned(pool, span, cost_ns, body, epilogue, || explore(pool, span, body, epilogue));
        }
    }
    explore(pool, span, body, epilogue)
}

/// Begins alone, in pieces that double, until it is known what an item costs.
fn explore(pool: &Ref<ThreadPool>, span: &Span, body: Body<'_>, epilogue: Option<Epilogue<'_>>) -> Result<()> {
    let grain = span.grain.max(1);
    let (begin, enough) = (now_ns(), (pool.learned().costs.worth_ns() / 2.0) as u64);
    let (mut first, mut piece) = (0usize, grain);
    loop {
        let end = first.saturating_add(piece).min(span.items);
        // SAFETY: as in `alone`: one claim after the other.
        body(unsafe { Claim::new(first, end, 0) })?;
        first = end;
        let taken = now_ns() - begin;
        if first == span.items || taken >= enough {
            pool.learned().sites.put(span.site, taken as f32 / first as f32);
        }
        if first == span.items {
            return epilogue.map_or(Ok(()), |epilogue| epilogue());
        }
        if taken >= enough {
            let cost_ns = taken as f32 / first as f32;
            let rest = Span { items: span.items - first, cost_ns, ..*span };
            return match plan::plan(pool, &rest) {
                Some(plan) => shared(pool, &Span { cost_ns, ..*span }, first, plan, body, epilogue),
                None => alone(span, first, body, epilogue),
            };
        }
        piece = piece.saturating_mul(2);
    }
}
