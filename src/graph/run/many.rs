//! Many runs of one program at once, joined: inside of a kernel's call, or from outside.
//!
//! If kernels complete later, one thread goes from run to run (`run::together`). Else the runs are the items of one
//! region, so they take the pool's threads as any region does: the calling thread does its share, helpers come out of
//! the one budget, and a pool that has one thread or runs everything inline works too. Each run may in turn ask for
//! helpers. The first failure stops the other runs, those in flight too, and its error is returned.
//!
//! Runs that communicate come one after the other, in the order of their numbers, so that all ranks have the same.
#![forbid(unsafe_code)]

use super::bind::Bound;
use super::program::Program;
use super::together::Together;
use crate::base::{Code, Error, Ref, Result};
use crate::graph::build::options::RunOptions;
use crate::graph::carry::admission::Asks;
use crate::graph::carry::host::execute::Outer;
use crate::graph::carry::orders::Orders;
use crate::kernel::{KernelContext, Stop};
use crate::sync::{Claim, Mutex};
use crate::threadpool::{self, Span, ThreadPool};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The action on a run's tensors once they are checked.
type Then<'a> = &'a dyn Fn(&Bound<'_>) -> Result<()>;

/// Binds run number `i` and passes it to the action.
pub type Binds<'a> = &'a (dyn Fn(usize, Then<'_>) -> Result<()> + Sync);

type Region<'a> = &'a dyn Fn(&Span, &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()>;

impl Program {
    /// Runs the program `count` times in a region of a kernel's call. All tensors are checked before the first is run.
    pub fn run_many_in(
        program: &Ref<Program>,
        context: &KernelContext<'_>,
        count: usize,
        with: Binds<'_>,
    ) -> Result<()> {
        let stop = context.stop();
        let orders = Orders::inside(stop);
        let region: Region<'_> = &|span, body| context.parallel_for(span, body);
        if program.has_later_kernels() {
            return context
                .with_pool(|pool| many_later(program, stop, count, with, (pool, orders, width(program, pool, count))));
        }
        many(program, stop, count, with, region, &|bound, outer| {
            context.with_pool(|pool| bound.run_inside(pool, orders, outer))
        })
    }

    /// The same outside of kernels, in this thread, with helpers from the options' pool, else the engine's.
    pub fn run_many(program: &Ref<Program>, options: Option<&RunOptions>, count: usize, with: Binds<'_>) -> Result<()> {
        options.map_or(Ok(()), RunOptions::refuse_listener)?;
        let orders = Orders::of(options, program.plan())?;
        if orders.is_some_and(|orders| orders.asks_what_is_absent()) {
            return Err(Error::invalid("options->absent is given, which is for one run"));
        }
        if orders.is_some_and(|orders| orders.asks_for_progress()) {
            return Err(Error::invalid("options->progress is given, which is for one run"));
        }
        let own = options.and_then(|options| options.threadpool.as_ref());
        let pool: Option<&Ref<ThreadPool>> = own.or_else(|| program.plan().engines[0].pool());
        pool.map_or(Ok(()), |pool| pool.usable())?;
        // Waits for one permit; of the others, uses those that are free.
        let no_wait = options.is_some_and(|options| options.no_wait);
        let deadline_at_ns = orders.map_or(0, |orders| orders.deadline_at_ns());
        let asks = Asks { name: program.name(), no_wait, pool, deadline_at_ns };
        let admission =
            program.runs.compiled.admission.as_ref().filter(|admission| count > 0 && !admission.is_inside());
        let _first = admission.map_or(Ok(None), |admission| admission.enter(&asks))?;
        let width = width(program, pool, count);
        let more = admission.map(|admission| admission.more(width));
        if program.has_later_kernels() {
            let width = more.as_ref().map_or(width, |more| more.count);
            return many_later(program, &program.together, count, with, (pool, orders, width));
        }
        let max_slots = more.as_ref().map_or(0, |more| more.count + 1);
        let region: Region<'_> =
            &|span, body| threadpool::parallel_for_then(pool, &Span { max_slots, ..*span }, body, None);
        many(program, &program.together, count, with, region, &|bound, outer| bound.run_inside(pool, orders, outer))?;
        pool.map_or(Ok(()), |pool| pool.intact())
    }
}

/// How many runs besides one may be in flight.
fn width(program: &Program, pool: Option<&Ref<ThreadPool>>, count: usize) -> usize {
    if one_by_one(program) { 0 } else { pool.map_or(0, |pool| pool.num_threads()).min(count.saturating_sub(1)) }
}

/// Whether something must know how each run ends: a communicator, which one run has at a time. Runs come in one order
/// then, on all ranks.
fn one_by_one(program: &Program) -> bool {
    !program.runs.compiled.listeners.is_empty()
}

/// Run number `i` of `count` has failed. If they come one by one, those behind it have not begun.
fn failed(program: &Program, i: usize, count: usize, error: &Error) {
    if i + 1 < count {
        program.runs.not_begun(error);
    }
}

/// For kernels that complete later: no run may keep a thread, so the calling thread goes from one run to the next.
fn many_later(
    program: &Ref<Program>,
    stop: &Stop,
    count: usize,
    with: Binds<'_>,
    (pool, orders, width): (Option<&Ref<ThreadPool>>, Option<Orders>, usize),
) -> Result<()> {
    check_all(program, count, with)?;
    let failed = AtomicBool::new(false);
    let first: Mutex<Option<Error>> = Mutex::new(None);
    let outer = Outer { stop, failed: Some(&failed) };
    let together = Together {
        count,
        width: width + 1,
        pool,
        orders,
        outer,
        with: &|i, then| with(i, then),
        failed: &|i, error| {
            self::failed(program, i, count, &error);
            let mut kept = first.lock();
            if kept.is_none() {
                *kept = Some(named(program, error, i));
                drop(kept);
                outer.fail();
            }
        },
    };
    together.run()?;
    let error = first.lock().take();
    error.map_or_else(|| pool.map_or(Ok(()), |pool| pool.intact()), Err)
}

fn named(program: &Program, error: Error, i: usize) -> Error {
    error.within(format_args!("program '{}' instance {i}", program.name()))
}

/// Checks all tensors of all runs, before the first is run.
fn check_all(program: &Program, count: usize, with: Binds<'_>) -> Result<()> {
    (0..count).try_for_each(|i| with(i, &|_| Ok(())).map_err(|error| named(program, error, i)))
}

fn many(
    program: &Ref<Program>,
    stop: &Stop,
    count: usize,
    with: Binds<'_>,
    region: Region<'_>,
    run: &(dyn Fn(&Bound<'_>, Outer<'_>) -> Result<()> + Sync),
) -> Result<()> {
    check_all(program, count, with)?;
    // Kept here and not by the region: the region may report the runs that are stopped for it before the failure
    // itself.
    let first: Mutex<Option<Error>> = Mutex::new(None);
    let failed = AtomicBool::new(false);
    let outer = Outer { stop, failed: Some(&failed) };
    let one = |i: usize| {
        if failed.load(Relaxed) {
            return Err(Error::new(Code::Cancelled, "another run has failed"));
        }
        with(i, &|bound| run(bound, outer)).inspect_err(|error| {
            self::failed(program, i, count, error);
            let mut kept = first.lock();
            if kept.is_none() {
                *kept = Some(named(program, error.clone(), i));
                drop(kept);
                outer.fail();
            }
        })
    };
    if one_by_one(program) {
        return (0..count).try_for_each(one).map_err(|error| first.lock().take().unwrap_or(error));
    }
    let cost_ns = program.runs.compiled.learned.all_ns.load(Relaxed) as f32;
    let span = Span { items: count, cost_ns, grain: 1, ..Span::default() };
    let result = region(&span, &|claim| (claim.begin()..claim.end()).try_for_each(one));
    result.map_err(|error| first.lock().take().unwrap_or(error))
}
