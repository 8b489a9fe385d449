//! Measures the cost of bringing a pool's threads, with rounds of empty work.
//!
//! The first loop for which it matters measures, or `weir_threadpool_measure`. Not the creation of the pool: its
//! threads may not run yet, and a `parallel_for` would wait for them.
//!
//! One by one: the caller asks for helpers and looks until all have begun, for a bounded time. Through
//! `parallel_for`: each of the tasks works by the clock for a moment, so that one thread does not take them all
//! before another one comes. The first round finds a pool that sleeps, and its figures are the cold ones; the hot
//! ones are the medians of the others.
#![forbid(unsafe_code)]

use super::costs::{Cost, DispatchKind, PRIOR, SLOWEST_NS};
use super::pool::{Job, ThreadPool};
use crate::base::Ref;
use crate::base::time::{Deadline, now_ns};
use crate::sync::{EventCount, Global, thread};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const ROUNDS: usize = 9;
/// The least number of rounds; more only if all together take less than `ALL_NS`.
const FEWEST: usize = 3;
const ALL_NS: u64 = 400_000;
/// How long a round waits for helpers that were asked for one by one. A later one gives no figure: the machine may be
/// busy.
const ROUND_NS: u64 = 2_000_000;
/// How long it looks before it sleeps.
const SPIN_NS: u64 = 100_000;
/// How long a task of a `parallel_for` works.
const WORK_NS: u64 = 2_000;
/// The pool runs everything in its caller: nothing short is worth asking.
const NOBODY_NS: f32 = 1_000_000.0;
/// Counts and times arriving threads.
#[derive(Debug)]
struct Visitors {
    caller: u64,
    work_ns: u64,
    all_came: EventCount,
    /// The first and the last arrival, the last end; in nanoseconds of `now_ns`.
    first: AtomicU64,
    last: AtomicU64,
    end: AtomicU64,
    /// Whether another thread than the caller came.
    others: AtomicBool,
}

impl Job for Visitors {
    fn run(self: Arc<Self>, _tag: u64, _index: usize, _pool: &Ref<ThreadPool>) {
        let now = now_ns();
        self.first.fetch_min(now, Relaxed);
        self.last.fetch_max(now, Relaxed);
        if thread::me() != self.caller {
            self.others.store(true, Relaxed);
        }
        while now_ns() - now < self.work_ns {
            std::hint::spin_loop();
        }
        self.end.fetch_max(now_ns(), Relaxed);
        self.all_came.advance(1);
    }
}

impl Visitors {
    fn new(work_ns: u64) -> Visitors {
        Visitors {
            caller: thread::me(),
            work_ns,
            all_came: EventCount::new(),
            first: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            end: AtomicU64::new(0),
            others: AtomicBool::new(false),
        }
    }
}

/// Prepared when a pool is made, so that a measuring loop never allocates. Several: another thread may be measuring,
/// and a visitor of an earlier round may still be on its way.
static SPARE: Global<[Option<Arc<Visitors>>; 4]> = Global::new(|| [const { None }; 4]);

/// From here on the loops of a new pool need no memory.
pub fn prepare() {
    for spare in &mut *SPARE.lock() {
        spare.get_or_insert_with(|| Arc::new(Visitors::new(0)));
    }
}

/// Visitors for one round; they are spare again behind it.
struct Round(Arc<Visitors>);

impl Round {
    /// `None` if visitors of other rounds have not left.
    fn begin(work_ns: u64) -> Option<Round> {
        for spare in &mut *SPARE.lock() {
            if let Some(visitors) = spare.as_mut().and_then(Arc::get_mut) {
                *visitors = Visitors::new(work_ns);
                return spare.take().map(Round);
            }
        }
        None
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        if let Some(place) = SPARE.lock().iter_mut().find(|place| place.is_none()) {
            *place = Some(Arc::clone(&self.0));
        }
    }
}

/// Measures a pool that was not measured yet, unless another thread is measuring or the pool is busy.
pub fn once(pool: &Ref<ThreadPool>) {
    if pool.learned().measured.load(Relaxed) || pool.idle_threads() < pool.num_threads() {
        return;
    }
    if !pool.learned().measured.swap(true, Relaxed) {
        now(pool);
    }
}

/// Measures the pool now, in every way that it has. Usually takes less than a millisecond, a few if the machine is
/// busy, and longer only if the pool's `parallel_for` does.
pub fn now(pool: &Ref<ThreadPool>) {
    pool.learned().measured.store(true, Relaxed);
    let helpers = pool.num_threads().min(pool.regions().most_threads() - 1).max(1);
    if pool.can_spawn() {
        rounds(pool, DispatchKind::Single, |pool| single(pool, helpers));
    }
    if pool.has_blocking_bulk() && pool.may_block() {
        rounds(pool, DispatchKind::Bulk, |pool| bulk(pool, helpers));
    }
    pool.learned().costs.used_until(now_ns());
}

fn rounds(pool: &Ref<ThreadPool>, way: DispatchKind, round: impl Fn(&Ref<ThreadPool>) -> Option<Cost>) {
    let begin = now_ns();
    let Some(cold) = round(pool) else { return };
    let mut hot = SmallVec::<[Cost; ROUNDS]>::new();
    while hot.len() < FEWEST || (hot.len() < ROUNDS && now_ns() - begin < ALL_NS) {
        let Some(cost) = round(pool) else { return };
        hot.push(cost);
    }
    let median = |figure: fn(&Cost) -> f32| {
        let mut all: SmallVec<[f32; ROUNDS]> = hot.iter().map(figure).collect();
        all.sort_unstable_by(f32::total_cmp);
        let median = all[all.len() / 2];
        if median == NOBODY_NS { median } else { median.min(SLOWEST_NS) }
    };
    let hot = Cost { submit: median(|c| c.submit), arrive: median(|c| c.arrive), join: median(|c| c.join) };
    let dearer = |cold: f32, hot: f32| cold.min(SLOWEST_NS).max(hot);
    let cold =
        Cost { submit: dearer(cold.submit, hot.submit), arrive: dearer(cold.arrive, hot.arrive), join: hot.join };
    pool.learned().costs.measured(way, hot, cold);
}

/// `None` if the pool refused, is in use, or no helper came, and as of `Round::begin`.
fn single(pool: &Ref<ThreadPool>, helpers: usize) -> Option<Cost> {
    let round = Round::begin(0)?;
    let visitors = &round.0;
    let taken = pool.take_helpers(helpers, pool.num_threads());
    if taken == 0 {
        return None;
    }
    let begin = now_ns();
    let mut sent = 0;
    while sent < taken && pool.spawn_taken(Arc::clone(visitors) as Arc<dyn Job>, 0, 0) {
        sent += 1;
    }
    // A refused one was given back already.
    pool.give_back_helpers((taken - sent).saturating_sub(1));
    let asked = now_ns();
    visitors.all_came.wait(sent as u64, SPIN_NS, Deadline::after(ROUND_NS));
    if sent == 0 || visitors.all_came.reached() < sent as u64 {
        return None;
    }
    until_all_have_left(pool);
    let arrived = visitors.last.load(Relaxed).saturating_sub(begin) as f32;
    let arrive = if visitors.others.load(Relaxed) { arrived } else { NOBODY_NS };
    // The way back is a store that the caller polls; it is assumed to cost a cache line's transfer between cores at
    // worst.
    Some(Cost { submit: (asked - begin) as f32 / sent as f32, arrive, join: PRIOR.join / 4.0 })
}

/// `None` if the pool refused, or is in use, and as of `Round::begin`.
fn bulk(pool: &Ref<ThreadPool>, helpers: usize) -> Option<Cost> {
    let round = Round::begin(WORK_NS)?;
    let visitors = &round.0;
    let taken = pool.take_helpers(helpers, pool.num_threads());
    if taken == 0 {
        return None;
    }
    let begin = now_ns();
    if !pool.spawn_bulk_taken(Arc::clone(visitors) as Arc<dyn Job>, 0, taken) {
        return None;
    }
    let back = now_ns();
    until_all_have_left(pool);
    // No task enters a pool that is closed meanwhile.
    if visitors.last.load(Relaxed) == 0 {
        return None;
    }
    let since = |at: &AtomicU64| at.load(Relaxed).saturating_sub(begin) as f32;
    let arrive = if visitors.others.load(Relaxed) { since(&visitors.last) } else { NOBODY_NS };
    let join = ((back - begin) as f32 - since(&visitors.end)).max(0.0);
    let submit = since(&visitors.first);
    Some(Cost { submit, arrive, join })
}

/// The helpers are on their way out; the next round needs the whole budget.
fn until_all_have_left(pool: &ThreadPool) {
    let begin = now_ns();
    while pool.idle_threads() < pool.num_threads() && now_ns() - begin < ROUND_NS {
        std::hint::spin_loop();
    }
}
