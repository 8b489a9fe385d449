//! A run from opening its state to its result: how many threads it gets, and whether it is measured.

use crate::base::time::{Deadline, now_ns, ticks, ticks_ns};
use crate::base::{Code, Error, Ref, Result, RunFailure};
use crate::graph::carry::host::ops::cancelled;
use crate::graph::carry::host::role::Role;
use crate::graph::carry::host::run_tape::RunTape;
use crate::graph::carry::host::visit::JOIN_SPIN_NS;
use crate::graph::carry::host::walk_timer::{Looks, WalkTimer};
use crate::graph::carry::host::worker::{CAREFUL, FAST, MEASURED, SHARE_NS, TRACED, Worker};
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::RunState;
use crate::graph::carry::traced::Carrier;
use crate::graph::plan::Plan;
use crate::kernel::{Attached, BeginOutcome, RunListener, Stop, Stoppable};
use crate::sync::{Exit, RunEntry, ambient};
use crate::threadpool::ThreadPool;
use crate::trace::{self, NONE, TraceEvent};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// A run in which a helper saves this many hops asks for one as soon as there is something to share.
const MANY_HOPS: u64 = 4;
/// The first runs measure the nodes, and then one in this many.
const MEASURE_FIRST: u64 = 4;
const MEASURE_EVERY: u64 = 509;
/// A run shorter than this, in nanoseconds, is slowed by reading the time, and a tiny one even by two reads.
const SHORT_NS: u64 = 2_000;
const TINY_NS: u64 = 300;

/// The way of a run.
struct RunDecision {
    /// The number of helpers that may be asked for.
    width: u32,
    is_shared: bool,
    measures: bool,
    /// The costs of its nodes are unknown.
    is_unknown: bool,
    /// Whether several threads could share it, if it were worth it.
    may_share: bool,
}

/// The call or run around a run.
#[derive(Clone, Copy)]
pub struct Outer<'a> {
    pub stop: &'a Stop,
    /// Set once one of the runs that belong together has failed; the others are then stopped.
    pub failed: Option<&'a AtomicBool>,
}

impl<'a> Outer<'a> {
    /// A number for the runs that belong together.
    fn group(&self) -> usize {
        self.failed.map_or(0, |failed| std::ptr::from_ref(failed).addr())
    }

    /// One of them has failed.
    pub fn fail(&self) {
        if let Some(failed) = self.failed {
            // ORDERING: Relaxed here and in `attach`; the lock of the list orders the two: the later one sees the
            // other.
            failed.store(true, Relaxed);
            self.stop.stop_group(self.group());
        }
    }

    pub(in crate::graph) fn attach(self, state: &Arc<RunState>) -> Attached<&'a Stop> {
        let attached = self.stop.attach(self.group(), Arc::clone(state) as Arc<dyn Stoppable>);
        if self.failed.is_some_and(|failed| failed.load(Relaxed)) {
            state.stop();
        }
        attached
    }
}

impl Stoppable for RunState {
    fn stop(&self, cause: Option<&Error>) {
        self.note_in_trace(TraceEvent::Cancel, NONE);
        self.stop_because(cause);
    }

    fn begin_here(&self) -> BeginOutcome {
        self.begin_blocking()
    }
}

impl RunState {
    /// Runs the program in this thread with helpers from the pool, and returns when it is done.
    pub(in crate::graph) fn run_here(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        self.may_wait_here(pool)?;
        self.work_to_the_end(pool);
        self.result()
    }

    /// The same nested in something whose stop also stops this run.
    pub(in crate::graph) fn run_inside(
        self: &Arc<Self>,
        pool: Option<&Ref<ThreadPool>>,
        outer: Outer<'_>,
    ) -> Result<()> {
        self.may_wait_here(pool)?;
        let attached = outer.attach(self);
        self.work_to_the_end(pool);
        // Before the result is taken: a stop is part of it or does nothing; else it would stop the state's next run.
        drop(attached);
        self.result()
    }

    /// Opens the run and returns when it is closed.
    #[inline]
    fn work_to_the_end(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) {
        let closed = self.closed.reached() + 1;
        if self.has_calls() {
            self.calls.has_waiter.store(true, Relaxed);
            if self.open_and_work(pool) == Exit::Open {
                self.see_to_the_end(pool, closed);
            }
            self.calls.has_waiter.store(false, Relaxed);
        } else if self.open_and_work(pool) == Exit::Open {
            self.stay_within_call(pool, closed);
        }
    }

    /// The caller, after it has left a run that is open: sleeps until the run is closed, or until a worker has more
    /// work than it wants to keep (`away`), and then works in it again. `closed` is the value that the event count of
    /// that name will have reached at the end.
    fn stay_within_call(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>, closed: u64) {
        let news = &self.calls.news;
        loop {
            let seen = news.reached();
            // A thread that calls it back advances the event count, which orders the rest.
            let is_away = self.helpers.goes_away(|| self.shows_work());
            if self.closed.reached() >= closed {
                break;
            }
            if is_away {
                news.wait(seen + 1, JOIN_SPIN_NS, Deadline::NEVER);
                if self.closed.reached() >= closed {
                    break;
                }
            }
            self.helpers.is_back();
            let generation = self.latch.generation();
            if self.latch.enter(generation) == RunEntry::Over {
                continue;
            }
            let _frame = ambient::enter(ambient::ActiveWork::Run(self.id));
            let role = Role::of_caller(pool);
            let exit = self.work_as(role, pool, generation);
            if exit == Exit::Closed {
                break;
            }
        }
        self.helpers.is_back();
    }

    /// The same over the memory of these inputs and outputs.
    ///
    /// # Safety
    /// As of `bind`.
    pub unsafe fn run_over(
        self: &Arc<Self>,
        pool: Option<&Ref<ThreadPool>>,
        input: impl Fn(usize) -> *mut u8,
        output: impl Fn(usize) -> *mut u8,
        outer: Outer<'_>,
    ) -> Result<()> {
        self.obey(Orders::inside(outer.stop).as_ref());
        // SAFETY: as demanded of the caller.
        unsafe { self.bind(Some(outer.stop.run()), input, output) };
        self.run_inside(pool, outer)
    }

    /// Opens the run, works in it, and leaves it.
    pub(in crate::graph) fn open_and_work(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> Exit {
        self.lineage.note();
        // By this state's own count, which no other thread writes.
        let run = self.tally.begin();
        let planned = self.plan_run(pool, run);
        if trace::is_on() {
            self.begin_trace(run);
        }
        if self.is_serial() {
            // ORDERING: Relaxed; read by the thread that completes a call of this run, which is started later. It asks
            // for no helper.
            self.helpers.open(0);
        }
        if self.is_independent() {
            let _frame = ambient::enter(ambient::ActiveWork::Run(self.id));
            self.run_independent(pool);
            return Exit::Closed;
        }
        if !planned.is_shared && (!self.has_calls() || self.is_serial()) {
            // A thread alone in a run need not be found in it, unless the program counts its runs.
            let is_asked = self.compiled.admission.is_some() || self.has_calls();
            let _frame = is_asked.then(|| ambient::enter(ambient::ActiveWork::Run(self.id)));
            let mode = self.mode();
            let is_as_ever = mode == FAST || mode == TRACED && !planned.measures && !self.is_careful();
            let timer = pool.filter(|_| planned.may_share).and_then(|pool| self.time(pool, mode, is_as_ever));
            match mode {
                TRACED => self.walk_traced(pool, timer.as_ref()),
                _ => self.run_alone(pool, mode, None, timer.as_ref()),
            }
            return match (timer, pool) {
                (Some(timer), Some(pool)) => self.end_walk(pool, &timer),
                _ => Exit::Closed,
            };
        }
        // The time of a kernel that completes later does not depend on the number of workers.
        let is_timed = planned.is_shared && !planned.measures && !self.is_careful() && !self.has_calls();
        if let Some(pool) = pool.filter(|_| is_timed) {
            self.began.set(pool.family(), now_ns());
        }
        self.share(pool, planned.width, planned.is_unknown && planned.width > 0, 0)
    }

    /// Decides how the next run is made.
    fn plan_run(&self, pool: Option<&Ref<ThreadPool>>, run: u64) -> RunDecision {
        let (plan, learned) = (self.plan(), self.learned());
        let doubt = learned.ways.take_doubt();
        let number = learned.runs.load(Relaxed);
        let measures = doubt.is_some() || number < MEASURE_FIRST || (run > 0 && run.is_multiple_of(MEASURE_EVERY));
        let is_unknown = doubt == Some(true) || (measures && learned.is_unknown.load(Relaxed));
        let may_share = plan.is_parallel && self.workers() > 1 && !self.is_serial();
        let pool = pool.filter(|pool| may_share && pool.may_nest());
        let width = pool.map_or(0, |pool| self.helpers_worth(pool, is_unknown)) as u32;
        let has_dear = learned.has_dear.load(Relaxed);
        // Nodes measured beside other workers are dearer by the cache lines that two threads take from each other,
        // which matters for cheap nodes.
        let is_alone = (measures && number == 1 && !has_dear) || (doubt == Some(false) && !has_dear);
        let is_shared = match pool {
            Some(_) if width > 0 && (plan.hop_ns.is_some() || self.has_calls()) => true,
            Some(_) if width > 0 && is_unknown => true,
            Some(_) if width > 0 && is_alone => false,
            Some(pool) if width > 0 => learned.ways.choose(pool.family(), learned.all_ns.load(Relaxed), plan.len()),
            _ => false,
        };
        if measures {
            learned.runs.store(if doubt == Some(true) { 1 } else { number + 1 }, Relaxed);
            let is_first = number == 0 && !learned.primed.load(Relaxed);
            // ORDERING: Relaxed; published to helpers by `open`.
            self.believes.store(doubt.is_some() || is_first || (is_alone && !is_shared), Relaxed);
        }
        self.measuring.store(measures, Relaxed);
        RunDecision { width, is_shared, measures, is_unknown, may_share: pool.is_some() }
    }

    /// Opens the run for up to `width` helpers and works in it. `all`: everything is shown. Nodes before `from` are
    /// done.
    fn share(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>, width: u32, all: bool, from: u32) -> Exit {
        let _frame = ambient::enter(ambient::ActiveWork::Run(self.id));
        // ORDERING: Relaxed; published to helpers by `open`.
        self.helpers.open(width);
        self.ask_above_ns.store(self.ask_above(pool), Relaxed);
        self.set_shown(all);
        let generation = self.latch.open(self.plan().ends);
        let role = Role::of_caller(pool);
        self.work_from(role, pool, generation, Some(from))
    }

    /// Behind a walk.
    #[inline]
    fn end_walk(self: &Arc<Self>, pool: &Ref<ThreadPool>, timer: &WalkTimer) -> Exit {
        match timer.left().filter(|&node| (node as usize) < self.plan().len()) {
            Some(node) => self.promote(pool, timer, node),
            None if timer.is_timed && !self.is_stopped() => {
                self.learned().ways.was_alone(timer.elapsed_ns());
                Exit::Closed
            }
            None => Exit::Closed,
        }
    }

    /// A run by one thread takes far too long at this node: the rest is shared.
    #[cold]
    fn promote(self: &Arc<Self>, pool: &Ref<ThreadPool>, timer: &WalkTimer, node: u32) -> Exit {
        if timer.is_strange() {
            self.learned().ways.was_too_long();
        }
        let width = pool.num_threads().min(self.workers().saturating_sub(1)) as u32;
        self.share(Some(pool), width, true, node)
    }

    /// For a walk that others could share: measures its time, if it may be of interest. `is_as_ever`: it is a run like
    /// most others.
    fn time(&self, pool: &Ref<ThreadPool>, mode: u8, is_as_ever: bool) -> Option<WalkTimer> {
        let began = ticks();
        // ORDERING: Relaxed; the owner's alone.
        let since = began.wrapping_sub(self.last.load(Relaxed));
        self.last.store(began, Relaxed);
        let learned = self.learned();
        let expected_ns = learned.ways.alone_or(learned.all_ns.load(Relaxed));
        // A short run is checked to its end only if the one before it may have been a long one.
        let is_paced = ticks_ns(since) > expected_ns.saturating_mul(8).saturating_add(SHORT_NS);
        let is_timed = is_as_ever && (expected_ns >= SHORT_NS || is_paced);
        let looks = match (learned.stretches.is_empty(), is_paced) {
            (true, _) if !is_timed => return None,
            (true, _) => Looks::Never,
            (false, true) => Looks::Often,
            (false, false) if expected_ns >= TINY_NS => Looks::Early,
            (false, false) => Looks::Seldom,
        };
        Some(WalkTimer::new(learned, (began, self.hop_ns(Some(pool))), looks, mode != FAST, is_timed))
    }

    /// Works in an open run that this thread has entered, until there is nothing to do.
    pub(in crate::graph) fn work_as(
        self: &Arc<Self>,
        role: Role,
        pool: Option<&Ref<ThreadPool>>,
        generation: u64,
    ) -> Exit {
        self.work_from(role, pool, generation, None)
    }

    /// The same; the thread that shares the run begins it, or what is left of it, at this node.
    fn work_from(
        self: &Arc<Self>,
        role: Role,
        pool: Option<&Ref<ThreadPool>>,
        generation: u64,
        from: Option<u32>,
    ) -> Exit {
        match self.mode() {
            TRACED => self.work_in::<TRACED>(role, pool, generation, from),
            CAREFUL => self.work_in::<CAREFUL>(role, pool, generation, from),
            MEASURED => self.work_in::<MEASURED>(role, pool, generation, from),
            _ => self.work_in::<FAST>(role, pool, generation, from),
        }
    }

    /// A frame of its own for each version: programs inside one another have one on the stack for each, and all
    /// versions in one frame would be four times as large.
    #[inline(never)]
    fn work_in<const MODE: u8>(
        self: &Arc<Self>,
        role: Role,
        pool: Option<&Ref<ThreadPool>>,
        generation: u64,
        from: Option<u32>,
    ) -> Exit {
        let worker = Worker::<MODE>::new(self, pool, generation, role);
        match from {
            Some(from) => worker.begin(from).work(),
            None => worker.work(),
        }
    }

    /// Apart from the others, so that they have no tape to look after.
    #[cold]
    #[inline(never)]
    fn walk_traced(&self, pool: Option<&Ref<ThreadPool>>, timer: Option<&WalkTimer>) {
        let tape = RunTape::open(self, Carrier::Walk);
        self.run_alone(pool, TRACED, Some(&tape), timer);
    }

    /// The version of the loop for all workers of this run: nodes are measured by all of them or by none.
    pub(in crate::graph) fn mode(&self) -> u8 {
        if self.is_traced() {
            TRACED
        } else if self.is_careful() {
            CAREFUL
        } else if self.measuring.load(Relaxed) {
            MEASURED
        } else {
            FAST
        }
    }

    /// The estimated cost of moving work to another thread, in nanoseconds.
    fn hop_ns(&self, pool: Option<&Ref<ThreadPool>>) -> u64 {
        self.plan().hop_ns.unwrap_or_else(|| pool.map_or(0, |pool| pool.worth_ns() as u64))
    }

    /// How many helpers this run may ask for: none if they cannot save what a hop costs.
    fn helpers_worth(&self, pool: &Ref<ThreadPool>, is_unknown: bool) -> usize {
        let most = self.workers().saturating_sub(1);
        // The host is asked only if there is something to ask for.
        if !is_unknown && self.learned().saved_by(u64::MAX) <= self.hop_ns(Some(pool)) {
            return 0;
        }
        // Not only idle threads count: others become idle while it runs, and a worker that waits for it helps too. All
        // of them count, since costs are estimates: each helper is asked for a node that is ready.
        pool.num_threads().min(most)
    }

    /// The worth that a list must have for a helper to be asked for: little, if a helper can save the run many hops.
    fn ask_above(&self, pool: Option<&Ref<ThreadPool>>) -> u64 {
        let hop_ns = self.hop_ns(pool);
        if self.learned().saved_by(1) > hop_ns.saturating_mul(MANY_HOPS) { SHARE_NS } else { hop_ns }
    }

    /// By a helper that was the last one out.
    pub(in crate::graph) fn close(&self) {
        match self.waiter.take() {
            Some((waiter, queue)) => {
                waiter.closed();
                queue.resume();
            }
            None => {
                self.closed.advance(1);
                self.calls.news.advance(1);
                self.tell_together();
                self.calls.rounds.tell();
            }
        }
    }

    /// Whether all counters have their start values.
    fn is_whole(&self) -> bool {
        self.plan().counters.iter().enumerate().all(|(i, start)| self.counters[i].is_clean(*start))
            && self.merges.iter().zip(&self.plan().merges).all(|(merged, merge)| merged.is_clean(merge))
    }

    /// After a run that succeeded: records its time, in all or node by node.
    fn learn(&self) {
        let learned = self.learned();
        if let Some((family, start_ns)) = self.began.take() {
            let all_ns = learned.all_ns.load(Relaxed);
            let least_ns = (all_ns / (u64::from(self.helpers.width()) + 1)).max(learned.longest_ns.load(Relaxed));
            learned.ways.was_shared(family, now_ns() - start_ns, least_ns, all_ns);
        }
        if self.measuring.load(Relaxed) {
            self.measuring.store(false, Relaxed);
            learned.is_unknown.store(false, Relaxed);
            learned.weigh(self.plan());
            if self.believes.load(Relaxed) {
                self.believes.store(false, Relaxed);
                learned.ways.forget();
            }
        } else if learned.has_news.load(Relaxed) {
            learned.weigh(self.plan());
        }
    }

    /// After closing: the run's result. The state is ready for another run.
    pub(in crate::graph) fn result(&self) -> Result<()> {
        if !self.is_stopped() && (self.stop.has_told_late() || self.calls.has_told_late()) {
            self.expire_for_a_kernel();
        }
        if !self.is_stopped() {
            for listener in self.listeners() {
                if let Err(error) = listener.run_ends(self.own_run()) {
                    self.keep_failure(None, error);
                    self.stop();
                }
            }
        }
        let result = self.collect();
        if self.is_traced() {
            self.end_trace(&result);
        }
        result
    }

    fn collect(&self) -> Result<()> {
        // ORDERING: Relaxed; the thread that closed the run acquired everything, and this thread knows of it by the
        // event count or the queued run's phase.
        self.tally.ended();
        debug_assert!(self.is_whole(), "a run of '{}' has left counters behind", self.plan().name);
        self.wants_no_thread();
        let stopped = self.is_stopped();
        self.report(!stopped);
        if !stopped {
            self.give_outputs();
            self.learn();
            self.listeners().iter().for_each(|listener| listener.run_ended(self.own_run(), None));
            return Ok(());
        }
        self.began.take();
        self.measuring.store(false, Relaxed);
        self.believes.store(false, Relaxed);
        self.stop.clear();
        self.calls.go_on();
        let failure = std::mem::take(&mut *self.failure.lock());
        // Stopped without a failure: cancelled.
        let error = failure.error.unwrap_or_else(cancelled);
        self.tally.failed(error.code() == Code::Cancelled);
        let mut left_out = failure.left_out;
        // Of iterations side by side, one is reported.
        left_out.iter_mut().for_each(|node| *node = self.plan().origin(*node));
        left_out.sort_unstable();
        left_out.dedup();
        // A loop that a failure ends leaves out iterations, of which the list says nothing.
        let has_begun_all = left_out.is_empty() && !self.compiled.listens_in_loops;
        let is_theirs = |node| self.plan().kernel_of(node).is_some_and(|kernel| !kernel.listeners().is_empty());
        let did_its_part = has_begun_all && failure.node.is_some_and(|node| !is_theirs(node));
        let name = |node: u32| Arc::<str>::from(self.plan().name_of(node));
        // A list without memory is left out, not the failure.
        let mut names = Vec::new();
        if names.try_reserve_exact(left_out.len()).is_ok() {
            names.extend(left_out.into_iter().map(name));
        }
        let error = error.with_run(RunFailure {
            node: failure.node.map(name),
            engine: failure.node.map(|node| Arc::from(self.plan().engine_of(node))),
            iteration: failure.iteration.map(|(index, n)| (name(self.plan().loops[index as usize].first), n)),
            left_out: names,
        });
        let told = (!did_its_part).then_some(&error);
        self.listeners().iter().for_each(|listener| listener.run_ended(self.own_run(), told));
        Err(error)
    }

    /// Those that are told how this run ends.
    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        if self.stop.run() == self.own_run() { &self.compiled.listeners } else { &[] }
    }
}

/// The failure of a run that never began: all nodes were left out.
#[cold]
pub(in crate::graph) fn none_begun(plan: &Plan, error: Error) -> Error {
    let (mut left_out, mut node) = (Vec::new(), 0);
    while (node as usize) < plan.len() {
        if plan.is_step(node) {
            left_out.push(plan.name_of(node).into());
        }
        node = plan.behind(node);
    }
    error.with_run(RunFailure { left_out, ..RunFailure::default() })
}
