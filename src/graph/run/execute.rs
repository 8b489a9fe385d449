//! From opening a state to its result; and the handle of an asynchronous run.

use crate::base::object::tag;
use crate::base::time::{Deadline, now_ns, ticks, ticks_ns};
use crate::base::{Code, Error, Kind, Object, Ref, Result, RunFailure, live};
use crate::graph::carry::host::ops::cancelled;
use crate::graph::carry::host::role::Role;
use crate::graph::carry::host::visit::JOIN_SPIN_NS;
use crate::graph::carry::host::worker::{CAREFUL, FAST, MEASURED, SHARE_NS, Worker};
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::RunState;
use crate::graph::plan::Plan;
use crate::kernel::{Attached, BeginOutcome, Stop, Stoppable};
use crate::memory::heap;
use crate::stream::{Listener, Notice, Queue, Wait, What, until};
use crate::sync::{Entry, EventCount, Exit, Mutex, MutexGuard, OnceLock, ambient};
use crate::threadpool::ThreadPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// A run in which a helper saves so many hops asks for one as soon as there is something to give.
const MANY_HOPS: u64 = 4;
/// The first runs measure the nodes, and then one in so many.
const MEASURE_FIRST: u64 = 4;
const MEASURE_EVERY: u64 = 509;
/// A run shorter than this, in nanoseconds, feels what looks at the time take, and a tiny one feels even two of them.
const SHORT_NS: u64 = 2_000;
const TINY_NS: u64 = 300;
/// A run in one thread is late at a checkpoint when it has taken more than so many times what it should, and this much.
const LATE: u64 = 2;
const LATE_NS: u64 = 10_000;
/// The time of a walk for a node whose memory is not in the caches, in nanoseconds.
const WALK_NS: u64 = 20;

/// How a run is made.
struct Planned {
    /// How many workers may be asked for.
    width: u32,
    is_shared: bool,
    measures: bool,
    /// It is not known what its nodes cost.
    is_unknown: bool,
    /// Whether several threads could make it, if it were worth it.
    may_share: bool,
}

/// A look at how long a run in one thread takes.
struct Watch {
    began: u64,
    expected_ns: u64,
    hop_ns: u64,
    /// Whether it is looked at to its end, or at the first checkpoint alone.
    to_the_end: bool,
}

impl Watch {
    fn elapsed_ns(&self) -> u64 {
        ticks_ns(ticks().wrapping_sub(self.began))
    }

    /// Whether the nodes before this one have taken so much longer than they should that the others are worth sharing.
    fn is_late(&self, nodes: usize, node: u32) -> bool {
        if !self.to_the_end && node as usize > nodes / 8 {
            return false;
        }
        let (done, nodes) = (u64::from(node), nodes as u64);
        let elapsed_ns = self.elapsed_ns();
        let left_ns = elapsed_ns / done.max(1) * (nodes - done);
        // The walk itself costs something, too, more than all nodes where these are next to nothing.
        let expected_ns = self.expected_ns / nodes * done + WALK_NS * done;
        elapsed_ns > expected_ns.saturating_mul(LATE).saturating_add(LATE_NS)
            && left_ns / 2 > self.hop_ns.saturating_mul(MANY_HOPS)
    }
}

/// What a run is inside of.
#[derive(Clone, Copy)]
pub struct Outer<'a> {
    pub stop: &'a Stop,
    /// Set once one of the runs that belong together has failed; the others are stopped then.
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
            // ORDERING: Relaxed here and in `attach`; the lock of the list orders the two, whoever comes to it last
            // sees the other.
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
    fn stop(&self) {
        RunState::stop(self);
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

    /// The same inside of something that may be stopped, and with it this run.
    pub(in crate::graph) fn run_inside(
        self: &Arc<Self>,
        pool: Option<&Ref<ThreadPool>>,
        outer: Outer<'_>,
    ) -> Result<()> {
        self.may_wait_here(pool)?;
        let attached = outer.attach(self);
        self.work_to_the_end(pool);
        // Before the result is taken: a stop is part of it or does nothing; else it would hit the state's next run.
        drop(attached);
        self.result()
    }

    /// Opens the run and comes back when it is closed.
    #[inline]
    fn work_to_the_end(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) {
        let closed = self.closed.reached() + 1;
        if self.open_and_work(pool) == Exit::Open {
            if self.has_calls() {
                self.see_to_the_end(pool, closed);
            } else {
                self.stay_within_call(pool, closed);
            }
        }
    }

    /// The caller, after it has left a run that is open: sleeps until the run is closed, or until a worker has more to
    /// do than it wants to keep (`away`), and then works in it again. `closed` is what the gate of that name will have
    /// reached at the end.
    fn stay_within_call(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>, closed: u64) {
        let news = &self.calls.news;
        loop {
            let seen = news.reached();
            // Who calls it back advances the gate, which orders the rest.
            let is_away = self.hands.goes_away(|| self.shows_work());
            if self.closed.reached() >= closed {
                break;
            }
            if is_away {
                news.wait(seen + 1, JOIN_SPIN_NS, Deadline::NEVER);
                if self.closed.reached() >= closed {
                    break;
                }
            }
            self.hands.is_back();
            let generation = self.tokens.generation();
            if self.tokens.enter(generation) == Entry::Over {
                continue;
            }
            let _frame = ambient::enter(ambient::Work::Run(self.id));
            let role = Role::of_caller(pool);
            let exit = self.work_as(role, pool, generation);
            if exit == Exit::Closed {
                break;
            }
        }
        self.hands.is_back();
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
        // SAFETY: as demanded of the caller.
        unsafe { self.bind(input, output) };
        self.obey(Orders::inside(outer.stop).as_ref());
        self.run_inside(pool, outer)
    }

    /// Opens the run, works in it, and leaves it.
    pub(in crate::graph) fn open_and_work(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> Exit {
        let plan = self.plan();
        self.lineage.note();
        // By this state's own count: nothing that other threads write.
        let run = self.tally.begin();
        let planned = self.plan_run(pool, run);
        if self.is_serial() {
            // ORDERING: Relaxed; read by who brings back a call of this run, which is started later. It asks for no
            // helper.
            self.hands.open(0);
        }
        if self.is_independent() {
            let _frame = ambient::enter(ambient::Work::Run(self.id));
            self.run_independent(pool);
            return Exit::Closed;
        }
        if !planned.is_shared && (!self.has_calls() || self.is_serial()) {
            // A thread alone in a run is not asked for it, unless the program counts its runs.
            let is_asked = self.compiled.admission.is_some() || self.has_calls();
            let _frame = is_asked.then(|| ambient::enter(ambient::Work::Run(self.id)));
            let mode = if self.is_careful() { CAREFUL } else { u8::from(planned.measures) };
            let watch = pool.filter(|_| planned.may_share && mode == FAST).and_then(|pool| self.watch(pool));
            let left = match &watch {
                Some(watch) => self.run_alone(pool, mode, |node| watch.is_late(plan.len(), node)),
                None => {
                    self.run_part(0, plan.len() as u32, pool, mode);
                    None
                }
            };
            return match (left, watch, pool) {
                (Some(node), _, Some(pool)) => self.promote(pool, node),
                (None, Some(watch), _) if watch.to_the_end && !self.is_stopped() => {
                    self.learned().ways.was_alone(watch.elapsed_ns());
                    Exit::Closed
                }
                _ => Exit::Closed,
            };
        }
        // A kernel that completes later takes its time, whoever computes.
        let is_timed = planned.is_shared && !planned.measures && !self.is_careful() && !self.has_calls();
        if let Some(pool) = pool.filter(|_| is_timed) {
            self.began.set(pool.family(), now_ns());
        }
        self.share(pool, planned.width, planned.is_unknown && planned.width > 0, 0)
    }

    /// How the next run is made.
    fn plan_run(&self, pool: Option<&Ref<ThreadPool>>, run: u64) -> Planned {
        let (plan, learned) = (self.plan(), self.learned());
        let doubt = learned.ways.take_doubt();
        let number = learned.runs.load(Relaxed);
        let measures = doubt.is_some() || number < MEASURE_FIRST || (run > 0 && run.is_multiple_of(MEASURE_EVERY));
        let is_unknown = doubt == Some(true) || (measures && learned.is_unknown.load(Relaxed));
        let may_share = plan.is_parallel && self.workers() > 1 && !self.is_serial();
        let pool = pool.filter(|pool| may_share && pool.may_nest());
        let width = pool.map_or(0, |pool| self.helpers_worth(pool, is_unknown)) as u32;
        let has_dear = learned.has_dear.load(Relaxed);
        // What is measured beside others is dearer by the cache lines that two threads take from each other, which
        // counts for nodes that are cheap.
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
        Planned { width, is_shared, measures, is_unknown, may_share: pool.is_some() }
    }

    /// Opens the run for up to `width` others and works in it. `all`: everything is shown. Nodes before `from` are done.
    fn share(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>, width: u32, all: bool, from: u32) -> Exit {
        let _frame = ambient::enter(ambient::Work::Run(self.id));
        // ORDERING: Relaxed; published to helpers by `open`.
        self.hands.open(width);
        self.ask_above_ns.store(self.ask_above(pool), Relaxed);
        self.set_shown(all);
        let generation = self.tokens.open(self.plan().ends);
        let role = Role::of_caller(pool);
        match self.mode() {
            CAREFUL => Worker::<CAREFUL>::new(self, pool, generation, role).begin(from).work(),
            MEASURED => Worker::<MEASURED>::new(self, pool, generation, role).begin(from).work(),
            _ => Worker::<FAST>::new(self, pool, generation, role).begin(from).work(),
        }
    }

    /// A run that one thread has made up to this node takes far too long: the rest is shared.
    #[cold]
    fn promote(self: &Arc<Self>, pool: &Ref<ThreadPool>, node: u32) -> Exit {
        self.learned().ways.was_too_long();
        let width = pool.num_threads().min(self.workers().saturating_sub(1)) as u32;
        self.share(Some(pool), width, true, node)
    }

    /// For a run in this thread that others could share: how long it takes, if it may be of interest.
    fn watch(&self, pool: &Ref<ThreadPool>) -> Option<Watch> {
        let began = ticks();
        // ORDERING: Relaxed; the owner's alone.
        let since = began.wrapping_sub(self.last.load(Relaxed));
        self.last.store(began, Relaxed);
        let expected_ns = self.learned().ways.alone_or(self.learned().all_ns.load(Relaxed));
        // A short run is looked at to its end only if the one before it may have been a long one.
        let to_the_end =
            expected_ns >= SHORT_NS || ticks_ns(since) > expected_ns.saturating_mul(8).saturating_add(SHORT_NS);
        if !to_the_end && expected_ns < TINY_NS {
            return None;
        }
        Some(Watch { began, expected_ns, hop_ns: self.hop_ns(Some(pool)), to_the_end })
    }

    /// Works in an open run that this thread has entered, until there is nothing to do.
    pub(in crate::graph) fn work_as(
        self: &Arc<Self>,
        role: Role,
        pool: Option<&Ref<ThreadPool>>,
        generation: u64,
    ) -> Exit {
        match self.mode() {
            CAREFUL => Worker::<CAREFUL>::new(self, pool, generation, role).work(),
            MEASURED => Worker::<MEASURED>::new(self, pool, generation, role).work(),
            _ => Worker::<FAST>::new(self, pool, generation, role).work(),
        }
    }

    /// The version of the loop for all workers of this run: what one of them does not measure nobody does.
    pub(in crate::graph) fn mode(&self) -> u8 {
        if self.is_careful() {
            CAREFUL
        } else if self.measuring.load(Relaxed) {
            MEASURED
        } else {
            FAST
        }
    }

    /// What bringing work to another thread is taken to cost, in nanoseconds.
    fn hop_ns(&self, pool: Option<&Ref<ThreadPool>>) -> u64 {
        self.plan().hop_ns.unwrap_or_else(|| pool.map_or(0, |pool| pool.worth_ns() as u64))
    }

    /// How many helpers this run may ask for: none if they cannot save what a hop costs.
    fn helpers_worth(&self, pool: &Ref<ThreadPool>, is_unknown: bool) -> usize {
        let most = self.workers().saturating_sub(1);
        // The host is asked only where there is something to ask for.
        if !is_unknown && self.learned().saved_by(u64::MAX) <= self.hop_ns(Some(pool)) {
            return 0;
        }
        // Not only those that are idle now: others become idle while it runs, and a worker that waits for it comes too.
        // And as many as there are, since costs are estimates: who is asked for is asked for some node that is ready.
        pool.num_threads().min(most)
    }

    /// What a list must be worth for a helper to be asked for: little, where a helper can save the run many hops.
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

    /// Whether all counters are as at the beginning of a run.
    fn is_whole(&self) -> bool {
        self.plan().counters.iter().enumerate().all(|(i, start)| self.counters[i].is_clean(*start))
            && self.merges.iter().zip(&self.plan().merges).all(|(merged, merge)| merged.is_clean(merge))
    }

    /// After a run that succeeded: what it took, in all or node by node.
    fn learn(&self) {
        let learned = self.learned();
        if let Some((family, start_ns)) = self.began.take() {
            let all_ns = learned.all_ns.load(Relaxed);
            let least_ns = (all_ns / (u64::from(self.hands.width()) + 1)).max(learned.longest_ns.load(Relaxed));
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
        }
    }

    /// After closing: how the run ended. The state is ready for another run.
    pub(in crate::graph) fn result(&self) -> Result<()> {
        // ORDERING: Relaxed; whoever closed the run acquired everything, and this thread knows of it by the gate or
        // the flight's phase.
        self.tally.ended();
        debug_assert!(self.is_whole(), "a run of '{}' has left counters behind", self.plan().name);
        self.wants_no_thread();
        let stopped = self.is_stopped();
        self.report(!stopped);
        if !stopped {
            self.learn();
            return Ok(());
        }
        self.began.take();
        self.measuring.store(false, Relaxed);
        self.believes.store(false, Relaxed);
        self.stop.clear();
        self.calls.set_stop(false);
        let failure = std::mem::take(&mut *self.failure.lock());
        // Stopped without a failure: cancelled.
        let error = failure.error.unwrap_or_else(cancelled);
        self.tally.failed(error.code() == Code::Cancelled);
        let mut left_out = failure.left_out;
        // Of iterations side by side one tells.
        left_out.iter_mut().for_each(|node| *node = self.plan().origin(*node));
        left_out.sort_unstable();
        left_out.dedup();
        let name = |node: u32| Arc::<str>::from(self.plan().name_of(node));
        Err(error.with_run(RunFailure {
            node: failure.node.map(name),
            engine: failure.node.map(|node| Arc::from(self.plan().engine_of(node))),
            iteration: failure.iteration.map(|(index, n)| (name(self.plan().loops[index as usize].first), n)),
            left_out: left_out.into_iter().map(name).collect(),
        }))
    }
}

/// The failure of a run that never began: everything was left out.
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

/// One asynchronous run, as its starter sees it.
pub struct Run {
    queue: Arc<Queue>,
    progress: Mutex<Progress>,
    done: EventCount,
    error: OnceLock<Error>,
}

#[derive(Default)]
struct Progress {
    cancelled: bool,
    /// How it ended is decided.
    over: bool,
    /// Who is told when it is done.
    notices: Vec<Notice>,
    /// The state while it serves this run. Taken before the state's result is, so that a cancel is part of the result or
    /// does nothing; else it would hit the state's next run.
    state: Option<Arc<RunState>>,
}

impl Kind for Run {
    const TAG: u32 = tag::RUN;
    const NAME: &'static str = "run";
    const COUNTER: live::Counter = live::Counter::Runs;
}

impl Run {
    pub(in crate::graph) fn create(queue: &Arc<Queue>) -> Ref<Run> {
        Object::shared(Run {
            queue: Arc::clone(queue),
            progress: Mutex::default(),
            done: EventCount::new(),
            error: OnceLock::new(),
        })
    }

    /// The pool of the stream that the run is on.
    pub fn pool(&self) -> Option<&Ref<ThreadPool>> {
        self.queue.pool()
    }

    pub fn is_done(&self) -> bool {
        self.done.reached() > 0
    }

    /// How it ended, once it is done.
    pub fn error(&self) -> Option<Error> {
        if self.is_done() { self.error.get().cloned() } else { None }
    }

    pub fn wait(&self, timeout_ns: u64) -> Result<()> {
        let sleep = |spin_ns, deadline| self.done.wait(1, spin_ns, deadline);
        let (spin_ns, deadline) = (self.queue.spin_ns(), Deadline::after(timeout_ns));
        let done = || self.is_done();
        let wait = Wait { what: "a run", done: &done, on_device: &|| false, sleep: &sleep, spin_ns };
        until(&wait, Some(&self.queue), deadline)?;
        self.error().map_or(Ok(()), Err)?;
        self.pool().map_or(Ok(()), |pool| pool.intact())
    }

    pub fn cancel(&self) {
        let mut progress = self.progress();
        if !progress.over {
            progress.cancelled = true;
            progress.state.as_ref().inspect(|state| state.stop());
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }

    /// The run begins on this state, unless it was cancelled before.
    pub(in crate::graph) fn attach(&self, state: &Arc<RunState>) -> Result<()> {
        let mut progress = self.progress();
        if progress.cancelled {
            return Err(none_begun(state.plan(), cancelled()));
        }
        progress.state = Some(Arc::clone(state));
        Ok(())
    }

    /// The run is over: from here on a cancel comes too late. The state may serve another run when its result has been
    /// taken, which no cancel may come between.
    pub(in crate::graph) fn detach(&self) {
        let mut progress = self.progress();
        progress.over = true;
        let state = progress.state.take();
        drop(progress);
        drop(state);
    }

    /// The run is over.
    pub(in crate::graph) fn complete(run: &Ref<Run>, error: Option<Error>) {
        if let Some(error) = error {
            let _ = run.error.set(error);
        }
        run.done.advance(1);
        run.queue.nudge();
        // Who comes from here on finds it done.
        let notices = std::mem::take(&mut run.progress().notices);
        let tell = |notice: Notice| notice.tell(run.error.get().cloned(), Some(Arc::clone(run) as What));
        notices.into_iter().for_each(tell);
    }

    /// Tells the listener when the run is done, or now.
    pub fn notify(run: &Ref<Run>, listener: &Arc<dyn Listener>) -> Result<()> {
        let notice = run.queue.notice(listener)?;
        heap::check()?;
        let mut progress = run.progress();
        if run.is_done() {
            drop(progress);
            notice.adopt();
            notice.tell_here(run.error(), Some(Arc::clone(run) as What));
            return Ok(());
        }
        let exhausted = |_| Error::exhausted("the notices of a run", size_of::<Notice>());
        progress.notices.try_reserve(1).map_err(exhausted)?;
        notice.adopt();
        progress.notices.push(notice);
        Ok(())
    }
}
