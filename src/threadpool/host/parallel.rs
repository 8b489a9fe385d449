//! Regions: a loop shared among the calling thread and helpers from a pool.
//!
//! The caller plans (`plan`: alone, or how many helpers), opens a region, asks for the helpers, and works itself. An
//! entering thread claims a slot, which is also its home in the loop, and draws pieces (`Ranges`) until none is left.
//! `RunLatch` tells when all units are done *and* no helper touches the region any more; the last one out closes it,
//! runs the epilogue if there is one, and, if it is a helper, advances the event count on which the caller waits. There
//! is no barrier: nobody waits inside a region, and the last one out runs whatever follows all pieces.
//!
//! | state  | access                                            | step to the next one                        |
//! |--------|---------------------------------------------------|---------------------------------------------|
//! | free   | nothing                                           | the caller claims the place                 |
//! | set up | everything, by the caller                         | the caller: `RunLatch::open`                |
//! | open   | `work` (to read), ranges and slots, by all inside | the last one out: `RunLatch::leave` says so |
//! | closed | everything, by that last one                      | it: the epilogue, then the event count      |
//! | over   | everything, by the caller                         | the caller gives the place back             |
//!
//! *Entering.* Any thread may enter while units are left: a helper is sent to a place, not to a loop. One that comes
//! late for its own region finds the place closed, or serves the next region open there, be it shared by `schedule` or
//! by a blocking `parallel_for`. Nothing in a region depends on which threads come, or on the index that the pool calls
//! a task with: a helper's access depends on its slot alone, which it owns until it gives it back.
//!
//! *More may come than were asked for.* The lowest free slot is claimed, and the slots below `team` are the homes of
//! the loop. A thread that gets a slot of `team` or above, or none since all are taken, draws nothing and leaves; so no
//! piece sees a slot that the plan did not allow. That may happen to the caller itself, and the work is done all the
//! same:
//!
//! - A thread that gets such a slot, or none, has found all slots below `team` claimed. Their holders are inside this
//!   very region (a slot is given back before its holder leaves, and a region closes when all have left), and each
//!   draws until it has seen all homes empty before it gives its slot back.
//! - Then no unit is left. A home without a holder only shrinks, so it stays empty once it was seen empty; a held one
//!   is left empty by its holder, which alone may fill it (`Ranges`).
//! - So a region in which a home was held is done when all have left (`models_homes_are_left_empty`). In each region
//!   one is, before the caller leaves: by the caller, or by the threads that it found there.
//!
//! The caller waits only for pieces that some thread is running at that moment, never for a helper that has not come. A
//! piece that opens a region waits for that region's work, which is younger; so no two regions wait for each other.
//! Hence a region ends on any pool, even one that runs nothing, and may be nested. The caller's wait spins for a
//! bounded time and then sleeps. (In a blocking `parallel_for` the pool holds the caller, for tasks that it has
//! accepted.)
//!
//! A region that is worth more helpers than the budget has sets its bit in `HelpWanted`: closures that are done with
//! their own work look there before they leave, and so do helpers that come too late for their own region.
//!
//! Regions live in a fixed set in the pool; when all are in use, the loop runs in the caller.
//!
//! # Entry points
//!
//! Loops planned to run alone run here, the rest in a region.
//!
//! A loop of unknown cost is planned by its function's past cost (`Sites`), if that is clear. Else it begins alone, in
//! pieces that double; when it has taken as long as a helper would take to come, the rest is planned with the observed
//! cost.

use super::RawTask;
use super::region::{Body, Epilogue, PLACES, ParallelRegion, RegionWork};
use super::ticket::serve;
use super::tickets::Need;
use crate::base::time::{Deadline, now_ns};
use crate::base::{Object, Ref, Result};
use crate::sync::{Claim, ambient};
use crate::threadpool::ThreadPool;
use crate::threadpool::costs::{DispatchKind, LoopPlan, Sample};
use crate::threadpool::plan;
use crate::threadpool::sites;
use crate::threadpool::span::{LoopUnits, Span};
use crate::threadpool::trials::NextRun;
use crate::trace::{self, Tape, TraceEvent, TraceRecord, Traces, Working};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// How long the caller spins before it sleeps: the pieces that it waits for are running.
const JOIN_SPIN_NS: u64 = 20_000;

/// A loop that is too small to be shared is measured again once in so many calls; if it is smaller by this factor than
/// a sharable one, more rarely.
const OFTEN: u32 = 16;
const SELDOM: u32 = 256;
const FAR: f32 = 16.0;

/// Runs `body` over all items and returns when all pieces have returned; the first error (or panic) wins and stops
/// pieces that have not begun.
pub fn parallel_for(pool: Option<&Ref<ThreadPool>>, span: &Span, body: Body<'_>) -> Result<()> {
    parallel_for_then(pool, span, body, None)
}

/// As `parallel_for`; then the epilogue, once, in the last thread to leave. Not if a piece has failed.
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

/// A loop whose items cost about `cost_ns`: follows the plan, unless trials proved it wrong. `otherwise` runs if the
/// plan asks for no helpers.
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
            NextRun::Alone { timed: true } => {
                let begin = now_ns();
                alone(span, 0, body, epilogue)?;
                let ns = (now_ns() - begin) as f32;
                trial.was_alone(ns);
                trial.ended();
                seen(pool, span, ns);
                return Ok(());
            }
            NextRun::Alone { timed: false } => {
                let result = alone(span, 0, body, epilogue);
                trial.ended();
                return result;
            }
            NextRun::Shared { timed: wanted } => timed = wanted,
        }
    }
    let Some(plan) = plan::plan(pool, &known) else { return otherwise() };
    let begin = if timed { now_ns() } else { 0 };
    shared(pool, &known, 0, plan, body, epilogue)?;
    let Some(trial) = trial else { return Ok(()) };
    if timed && plan.taken > 0 {
        let ns = (now_ns() - begin) as f32;
        trial.was_shared(ns);
        seen(pool, span, ns * (plan.taken + 1) as f32);
    }
    trial.ended();
    Ok(())
}

/// Records the single-thread time of a loop without an estimate: the next one of its function may cost something else.
fn seen(pool: &Ref<ThreadPool>, span: &Span, ns: f32) {
    if span.cost_ns <= 0.0 {
        pool.learned().sites.put(span.site, ns / span.items as f32);
    }
}

/// The items from `first` on, in this thread.
#[inline]
fn alone(span: &Span, first: usize, body: Body<'_>, epilogue: Option<Epilogue<'_>>) -> Result<()> {
    // SAFETY: the only claim of this region on these items, and the only one now.
    body(unsafe { Claim::new(first, span.items, 0) })?;
    epilogue.map_or(Ok(()), |epilogue| epilogue())
}

/// A loop of unknown cost: by its function's past cost, if that is clear, and else by exploring.
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

/// Begins alone, in pieces that double, until the cost of an item is known.
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

/// The items from `first` on, in this thread and with helpers taken from the budget.
fn shared(
    pool: &Ref<ThreadPool>,
    span: &Span,
    first: usize,
    plan: LoopPlan,
    body: Body<'_>,
    epilogue: Option<Epilogue<'_>>,
) -> Result<()> {
    let Some(place) = pool.regions().free.claim() else {
        pool.give_back_helpers(plan.taken);
        return alone(span, first, body, epilogue);
    };
    let region = &pool.regions().all[place];
    let units = Span { items: span.items - first, ..*span }.units();
    let draw = plan::draw(pool, plan.helpers + 1, units.count, units.items as f32 * span.cost_ns, span.coarse);
    let sampled = plan.sampled;
    // SAFETY: the place was claimed and its last use is over, so nobody is inside. The lifetimes are erased: body and
    // epilogue are used only by threads inside and by the closer, and `run` does not return before the region is
    // closed.
    unsafe {
        let body = std::mem::transmute::<Body<'_>, Body<'static>>(body);
        let epilogue = std::mem::transmute::<Option<Epilogue<'_>>, Option<Epilogue<'static>>>(epilogue);
        *region.work.get() =
            Some(RegionWork { body, epilogue, first, end: span.items, unit: units.items, draw, sampled });
    }
    if let Some(item_ns) = run(pool, place, plan, units, span.cost_ns) {
        pool.learned().sites.put(span.site, item_ns);
    }
    // ORDERING: Acquire pairs with the Release in `fail`.
    let result = if region.failed.load(Acquire) { region.error.lock().take().map_or(Ok(()), Err) } else { Ok(()) };
    pool.regions().free.give_back(place);
    result
}

/// Opens a region that is set up, works in it, and returns when it is over; gives the cost of an item if it was
/// measured.
fn run(pool: &Ref<ThreadPool>, place: usize, mut plan: LoopPlan, units: LoopUnits, item_ns: f32) -> Option<f32> {
    let (region, help_wanted) = (&pool.regions().all[place], &pool.regions().help_wanted);
    let team = plan.helpers + 1;
    // SAFETY: nobody is inside yet.
    let sampled = region.is_sampled();
    region.ranges.fill(team, units.count);
    region.failed.store(false, Relaxed);
    let begin = if sampled { now_ns() } else { 0 };
    if sampled {
        region.stamps.last_arrival.store(0, Relaxed);
        region.stamps.last_end.store(0, Relaxed);
    }
    let closed = region.closings.reached() + 1;
    region.pool.store(Arc::as_ptr(pool).cast_mut().cast(), Relaxed);
    region.lineage.note();
    region.traces.find_around();
    let traced = region.traces.are_there().then(|| TracedRegion::begin(&region.traces));
    region.latch.open(units.count);
    let wanting = plan.taken < plan.helpers && plan.way == DispatchKind::Single;
    if wanting {
        help_wanted.set(place);
        plan.taken += pool.take_helpers(plan.helpers - plan.taken, plan.width);
    }
    let (asked, took);
    match plan.way {
        DispatchKind::Single => {
            // Before asking, so that its home is usually the first.
            let slot = region.slots.claim();
            let share_ns = (units.count as f32 * units.items as f32 * item_ns / team as f32) as u64;
            let mut taken = plan.taken;
            while taken > 0 && !region.latch.is_finished() {
                taken -= 1;
                if !ask(pool, region, share_ns) {
                    break;
                }
            }
            pool.give_back_helpers(taken);
            asked = if sampled { now_ns() } else { 0 };
            took = finish(region, slot, closed, asked);
        }
        DispatchKind::Bulk => {
            asked = begin;
            // Blocks until its closures have returned; refused or not, the rest is done below.
            if plan.taken > 0 {
                ask_in_bulk(pool, region, plan.taken);
            }
            // Usually they have left nothing.
            let slot = if region.latch.is_finished() { None } else { region.slots.claim() };
            finish(region, slot, closed, 0);
            took = None;
        }
    }
    if let Some(traced) = traced {
        traced.end(plan.helpers as u32);
    }
    if wanting {
        help_wanted.clear(place);
    }
    if sampled && plan.taken > 0 {
        refine(pool, region, plan, begin, asked);
    }
    took.map(|unit_ns| unit_ns / units.items as f32)
}

/// The calling thread's part in a region that is traced.
struct TracedRegion<'a> {
    traces: &'a Traces,
    tape: Tape,
    working: Working,
    begin: u64,
}

impl TracedRegion<'_> {
    #[cold]
    fn begin(traces: &Traces) -> TracedRegion<'_> {
        traces.told().region_begin(traces.frame(), false);
        let tape = Tape::open(traces);
        let working = tape.work();
        TracedRegion { traces, tape, working, begin: trace::now() }
    }

    /// All helpers have left.
    #[cold]
    fn end(self, helpers: u32) {
        let TracedRegion { traces, tape, working, begin } = self;
        drop(working);
        let length = trace::now().wrapping_sub(begin);
        tape.record(TraceRecord {
            length,
            other: helpers,
            ..TraceRecord::new(TraceEvent::Region, tape.frame(), begin)
        });
        traces.told().region_end(traces.frame(), false);
        traces.leave_hooks();
    }
}

/// The caller's own part, and its wait for the end. Gives the cost of a unit, if the region is sampled and the part
/// began at `begin`.
fn finish(region: &ParallelRegion, slot: Option<usize>, closed: u64, begin: u64) -> Option<f32> {
    let done = slot.map_or(0, |slot| region.drain_and_give_back(slot));
    let mut took = None;
    if region.is_sampled() {
        let now = now_ns();
        region.stamps.last_end.fetch_max(now, Relaxed);
        took = (begin > 0 && done > 0).then(|| (now - begin) as f32 / done as f32);
    }
    if !region.leave(done) {
        region.closings.wait(closed, JOIN_SPIN_NS, Deadline::NEVER);
    }
    took
}

/// Refines the pool's costs by a sampled region.
fn refine(pool: &ThreadPool, region: &ParallelRegion, plan: LoopPlan, begin: u64, asked: u64) {
    let end = now_ns();
    let (arrival, last_end) = (region.stamps.last_arrival.load(Relaxed), region.stamps.last_end.load(Relaxed));
    let old = pool.learned().costs.get(plan.way, plan.hot);
    let submit = match plan.way {
        DispatchKind::Single => asked.saturating_sub(begin) as f32 / plan.taken as f32,
        // The first arrival has no time stamp of its own.
        DispatchKind::Bulk => old.submit,
    };
    let arrive = (arrival > 0).then(|| arrival.saturating_sub(begin) as f32);
    let join = end.saturating_sub(last_end) as f32;
    pool.learned().costs.refine(plan.way, plan.hot, Sample { submit, arrive, lasted: (end - begin) as f32, join });
    pool.learned().costs.used_until(end);
}

/// A helper that was asked for alone. If its region is over, it serves the one that is open at that place now.
unsafe extern "C" fn come(region: *mut c_void, _index: i32) {
    // SAFETY: `ask` gave the region, which lives in its pool, and this closure one reference to the pool.
    let (region, pool): (_, Ref<ThreadPool>) = unsafe {
        let region = &*region.cast_const().cast::<ParallelRegion>();
        (region, Arc::from_raw(region.pool.load(Relaxed).cast_const().cast()))
    };
    serve(pool, Need::Wanted, |_| {
        region.help();
    });
}

/// A thread of a blocking `parallel_for`, usually also the caller.
unsafe extern "C" fn come_in_bulk(region: *mut c_void, _index: i32) {
    // SAFETY: `ask_in_bulk` gave the region, and holds the pool while its closures run; its call is inside of the door.
    let (region, pool) = unsafe {
        let region = &*region.cast_const().cast::<ParallelRegion>();
        (region, &*region.pool.load(Relaxed).cast::<Object<ThreadPool>>())
    };
    let _frame = ambient::enter(ambient::ActiveWork::Pool(pool.id()));
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| region.help())) {
        std::mem::forget(payload);
    }
}

/// Asks for one helper taken from the budget. If it is refused, gives it back and returns false.
fn ask(pool: &Ref<ThreadPool>, region: &ParallelRegion, cost_ns: u64) -> bool {
    // SAFETY: the caller's reference keeps the count above zero; `come` gives this one back.
    unsafe { Arc::increment_strong_count(Arc::as_ptr(pool)) }
    pool.closures_went_out(1);
    // SAFETY: `come` may run on any thread, once, and does not unwind.
    let accepted = pool.offer(unsafe { RawTask::new(come, std::ptr::from_ref(region).cast_mut().cast()) }, cost_ns, 0);
    if !accepted {
        pool.life().closure_left();
        // SAFETY: refused means that `come` has not and will not run, so its reference is this thread's again.
        unsafe { Arc::decrement_strong_count(Arc::as_ptr(pool)) }
        pool.give_back_helpers(1);
    }
    accepted
}

/// Asks for helpers taken from the budget through a blocking `parallel_for`, and takes part. Refused or not, they are
/// given back.
fn ask_in_bulk(pool: &Ref<ThreadPool>, region: &ParallelRegion, helpers: usize) {
    pool.add_to_budget(1);
    // SAFETY: `come_in_bulk` may run on any thread, once for each index, and does not unwind.
    let task = unsafe { RawTask::new(come_in_bulk, std::ptr::from_ref(region).cast_mut().cast()) };
    pool.offer_bulk(task, helpers + 1);
    pool.give_back_helpers(helpers + 1);
}

/// The places at which regions want more helpers, as bits.
pub fn help_wanted(pool: &ThreadPool) -> u64 {
    pool.regions().help_wanted.look()
}

/// By a thread that works for the run with this id, and waits for a node of it: helps the first region of the run that
/// is open at one of these places. False if there was nothing to do.
pub fn help_region_of(run: u64, pool: &ThreadPool, places: u64) -> bool {
    let all = pool.regions().all.iter().enumerate();
    let mut asked = all.filter(|(place, _)| places >> place & 1 == 1);
    asked.any(|(_, region)| region.help_if(|lineage| lineage.has_run(run)))
}

/// By a closure that is done with its own work and has given back its part of the budget: helps regions that want more
/// helpers. True if it had a part of the budget for that.
pub fn lend_a_hand(pool: &Ref<ThreadPool>) -> bool {
    let mut had_some = false;
    loop {
        let wanted = pool.regions().help_wanted.wanted_now();
        if wanted == 0 || pool.take_helpers(1, pool.num_threads()) == 0 {
            return had_some;
        }
        let helped = (0..PLACES).any(|place| wanted & (1 << place) != 0 && pool.regions().all[place].help());
        pool.give_back_helpers(1);
        if !helped {
            return true;
        }
        had_some = true;
    }
}
