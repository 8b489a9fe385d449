//! Task groups: tasks spawned while others run, and waits that run them.
//!
//! A thread pushes tasks to a deque of its own (`berth`, `deque`), for the groups of all pools. Any thread can take
//! them at any time, out of the middle, too. So there is a simple rule for waits:
//!
//! - *A wait takes and runs unstarted tasks of the group, or of groups made inside of its tasks, from any deque*; its
//!   own newest first, others' oldest. It never begins anything else: so no unrelated task on its stack can block it,
//!   and its stack is not deeper than that of a program that calls instead of spawning.
//! - It sleeps when all remaining tasks are running on other threads. Those continue with the tasks that these spawn: a
//!   thread takes the newest of its own deque before it looks elsewhere. So no wait depends on being woken for new
//!   tasks, only for the end, which `tally` never misses.
//!
//! | thread           | takes                                   | until                                             |
//! |------------------|-----------------------------------------|---------------------------------------------------|
//! | a wait           | the group's tasks, and those below them | the group is done                                 |
//! | a helper         | tasks of all groups of the pool         | it has found none for 20 us                       |
//! | a closure leaving | the same                               | there is none, or no room in the budget           |
//! | an owed closure  | tasks of groups without a waiter        | there is none                                     |
//!
//! *Helpers* are asked for within the pool's budget, as for regions. A spawn does not ask: it adds the task's expected
//! cost to the backlog of its deque, and when that is worth a helper, others are called (`call_others`). The cost of a
//! task is learned for its function and the depth of its group. A task of unknown cost is worth a helper. One that is
//! cheaper than a few hops is run at once, by its spawn, if others have enough without it; and helpers do not steal one
//! that is cheaper than a hop.
//!
//! *Nobody waits* for a group that was released before its end, or that has a notice. Then the pool owes a closure, or,
//! if it refuses, the spawning thread does the work.
//!
//! A pool whose work must stay on its own threads (`WEIR_THREADPOOL_OWN_THREADS_ONLY`) owes such a closure for the
//! tasks that a foreign thread waits for; if it refuses, that thread does the work.

mod berth;
mod cell;
mod crew;
mod deque;
mod lie;
#[cfg(all(test, loom))]
mod models;
mod tally;
mod work;

pub use berth::{alive, grow};
pub use cell::{GroupListener, TaskGroup};
pub use crew::Crew;
pub use lie::{DestroyFn, ROOM, TaskArgument, TaskFn};
pub use work::lend_a_hand;

use super::RawTask;
use super::ticket::serve;
use super::tickets::Need;
use crate::base::{Code, Error, Object, Ref, Result};
use crate::sync::ambient;
use crate::threadpool::ThreadPool;
use berth::{Here, here};
use cell::Hold;
use deque::Record;
use lie::HOP_NS;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use work::{attend, call_others, hand_over, owe};

/// The crew of groups without a pool.
static LONERS: Crew = Crew::new();

/// A task expected to take less than this, in nanoseconds, is run at once if others have enough to take.
const CHEAP_NS: f32 = 1000.0;

/// A new group with one holder, the caller. `None` if there is no cell; `grow` makes some.
#[inline]
pub fn create(pool: Option<&Ref<ThreadPool>>) -> Option<&'static TaskGroup> {
    here(|here| {
        let group = berth::take_cell(here)?;
        let berth = here.berth();
        let home = berth.map_or(0, |berth| berth.number() as u32 + 1);
        let crew = pool.map_or(&LONERS, |pool| pool.crew());
        let parent = here.group();
        // SAFETY: the group is lent its pool or holds it, as below; a crew belongs to its pool, or lives for ever.
        unsafe { group.begin(pool.map_or(std::ptr::null(), Arc::as_ptr), crew, parent, home) };
        // A task that runs here keeps its pool.
        let is_lent = pool.is_some() && parent.is_some_and(|parent| std::ptr::eq(parent.crew(), crew));
        match berth.filter(|_| is_lent) {
            // SAFETY: the calling thread's berth.
            Some(berth) => unsafe { berth.own(|own| own.lend(group)) },
            None => {
                group.hold.store(Hold::Own as u32, Relaxed);
                if let Some(pool) = pool {
                    // SAFETY: a shared object, which the caller holds; `free` gives this reference back.
                    unsafe { Arc::increment_strong_count(Arc::as_ptr(pool)) };
                }
            }
        }
        Some(group)
    })
}

/// Adds a holder.
pub fn retain(group: &TaskGroup) {
    group.tally.retain();
}

/// Removes a holder. The last one leaves unfinished tasks to the pool.
#[inline]
pub fn release(group: &'static TaskGroup) {
    here(|here| work::release(here, group));
}

/// Pushes a task, or runs it at once.
#[inline]
pub fn spawn(group: &'static TaskGroup, task: TaskFn, argument: TaskArgument<'_>) {
    here(|here| {
        let record = lie::record(group, task, argument);
        let (pool, crew) = (group.pool(), group.crew());
        let site = lie::site(record[0] as usize, group);
        let cost = pool.map_or(Some(0.0), |pool| pool.learned().tasks.get(site));
        let Some(berth) = here.take_berth() else {
            group.tally.add();
            return overflow(here, group, &record);
        };
        if cost.is_some_and(|cost| cost < CHEAP_NS) && has_enough(berth, crew) && may_work(pool) {
            work::perform(here, group, &record, false);
            return call_for(here, berth, pool, cost.unwrap_or(0.0));
        }
        crew.uses(berth.number());
        let place = berth.deque.place();
        let before = group.tally.add();
        if !berth.deque.push(&record) {
            return overflow(here, group, &record);
        }
        // SAFETY: the calling thread's berth.
        unsafe { berth.own(|own| own.cost_ns[place] = cost.unwrap_or(0.0)) };
        if before.is_unattended() {
            attend(here, group);
        }
        call_for(here, berth, pool, cost.unwrap_or(f32::INFINITY));
    });
}

/// Whether this berth has enough tasks for all others.
#[inline(always)]
fn has_enough(berth: &berth::Berth, crew: &Crew) -> bool {
    let enough = 2 * crew.width.load(Relaxed) as usize + 1;
    berth.deque.extent() > enough && berth.deque.tidy() > enough
}

/// Whether the calling thread may run tasks that belong to this pool.
#[inline(always)]
fn may_work(pool: Option<&Object<ThreadPool>>) -> bool {
    pool.is_none_or(|pool| pool.may_work_here())
}

/// A task that was counted, but has no room in the deque.
#[cold]
fn overflow(here: &Here, group: &'static TaskGroup, record: &Record) {
    if may_work(group.pool()) || !send(group, record) {
        work::run(here, record);
    }
}

/// Sends a task to the pool as a closure of its own, since the deque has no room and this thread may not run it. False
/// if the pool refuses.
fn send(group: &'static TaskGroup, record: &Record) -> bool {
    /// The one closure of this task.
    unsafe extern "C" fn come(parcel: *mut c_void, _index: i32) {
        // SAFETY: from `Box::into_raw` below, once; it includes a reference to the pool.
        let (record, pool) = unsafe {
            let (record, pool) = *Box::from_raw(parcel.cast::<(Record, *const Object<ThreadPool>)>());
            (record, Arc::from_raw(pool))
        };
        serve(pool, Need::Owed, |_| here(|here| work::run(here, &record)));
    }
    let Some(pool) = group.pool() else { return false };
    let parcel: *mut (Record, *const Object<ThreadPool>) = Box::into_raw(Box::new((*record, std::ptr::from_ref(pool))));
    // SAFETY: `come` may run on any thread, once, and does not unwind.
    let accepted = hand_over(pool, Need::Owed, unsafe { RawTask::new(come, parcel.cast()) });
    if !accepted {
        // SAFETY: refused, so this thread owns it again.
        drop(unsafe { Box::from_raw(parcel) });
    }
    accepted
}

/// Adds `cost_ns` to the backlog. When the backlog is worth a helper, others are called.
#[inline(always)]
fn call_for(here: &Here, berth: &berth::Berth, pool: Option<&Object<ThreadPool>>, cost_ns: f32) {
    let Some(pool) = pool.filter(|_| cost_ns >= HOP_NS) else { return };
    // SAFETY: the calling thread's berth.
    let backlog_ns = unsafe {
        berth.own(|own| {
            own.backlog_ns += cost_ns;
            own.backlog_ns
        })
    };
    if backlog_ns >= pool.crew().worth_ns() {
        call_others(here, pool);
    }
}

/// Calls `notice` once, when all spawned tasks are done; at once if they are.
pub fn notify(group: &'static TaskGroup, notice: Arc<dyn GroupListener>) -> Result<()> {
    here(|here| {
        let mut place = group.notice.lock();
        if place.is_some() {
            return Err(Error::precondition("the task group has a notice that was not told yet"));
        }
        notice.adopt();
        *place = Some(notice);
        drop(place);
        if group.tally.notice() {
            attend(here, group);
        } else {
            group.tally.retain();
            work::tell(here, group);
        }
        Ok(())
    })
}

/// Skips tasks that have not begun, of this group and of those that were made inside of its tasks.
pub fn cancel(group: &TaskGroup) {
    group.stop_with(Code::Cancelled.status());
}

/// Waits until all spawned tasks are done, and runs them. Returns the error that stopped the group, if any.
#[inline]
pub fn wait(group: &'static TaskGroup) -> Result<()> {
    here(|here| {
        if let Some(inner) = here.group().filter(|inner| !group.is_made_in(*inner)) {
            refuse_inside(here, inner, group)?;
        }
        let pool = group.pool();
        let may_work = may_work(pool);
        if may_work {
            bring_in_bulk(here, group);
            while group.tally.look().pending() > 0 {
                let Some(record) = lie::take_own(here, |other| is_below(other, group)) else { break };
                work::run(here, &record);
            }
        }
        if group.tally.look().pending() > 0 {
            wait_for_others(here, group, may_work);
        }
        match work::outcome(group.take_stop()) {
            Some(error) => Err(error),
            None => pool.map_or(Ok(()), |pool| pool.intact()),
        }
    })
}

/// Whether a wait for `group` runs tasks of `other`, on the same pool.
#[inline(always)]
fn is_below(other: &TaskGroup, group: &TaskGroup) -> bool {
    std::ptr::eq(other, group) || (std::ptr::eq(other.crew(), group.crew()) && other.is_within(group))
}

/// A task of the group, or of one that was made in it, cannot wait for the group: it would wait for itself.
#[cold]
fn refuse_inside(here: &Here, inner: &TaskGroup, group: &TaskGroup) -> Result<()> {
    let mut frame = here.frame.get();
    let mut is_inside = inner.is_within(group);
    // SAFETY: frames are on the stack of this thread, and their tasks keep their groups.
    while let Some((link, inner)) = unsafe { frame.as_ref().map(|link| (link, &*link.group)) } {
        is_inside |= inner.is_within(group);
        frame = link.before;
    }
    if is_inside {
        return Err(Error::precondition(
            "a task waits for the group that it belongs to, which is not done before it is",
        ));
    }
    Ok(())
}

/// The rest of a wait, when the thread's own deque has no task.
#[cold]
fn wait_for_others(here: &Here, group: &'static TaskGroup, mut may_work: bool) {
    let crew = group.crew();
    let is_over = || group.tally.look().pending() == 0;
    let below = |other: &TaskGroup| is_below(other, group);
    let take = || lie::take(here, crew, below);
    while !is_over() {
        if may_work {
            if let Some(record) = take().or_else(|| lie::look(take, is_over)) {
                work::run(here, &record);
                continue;
            }
        } else if lie::any(crew, below) && !group.pool().is_some_and(|pool| owe(here, pool)) {
            may_work = true;
            continue;
        }
        let count = group.tally.sleep();
        if count.pending() > 0 {
            crew.sleep(|| !(is_over() || may_work && lie::any(crew, below)));
        }
        group.tally.wake_up();
    }
}

/// A `parallel_for` that a wait has called.
struct Bulk {
    group: &'static TaskGroup,
    /// The caller.
    caller: *const Here,
}

/// On a pool that takes no single tasks: brings helpers by a `parallel_for`, in which this thread waits, if there is
/// work for them.
#[inline(always)]
fn bring_in_bulk(here: &Here, group: &'static TaskGroup) {
    let (Some(berth), Some(pool)) = (here.berth(), group.pool()) else { return };
    // SAFETY: the calling thread's berth.
    let backlog_ns = unsafe { berth.own(|own| own.backlog_ns) };
    if backlog_ns >= pool.crew().worth_ns() && !pool.can_spawn() {
        bring(here, berth, pool, group);
    }
}

#[cold]
fn bring(here: &Here, berth: &berth::Berth, pool: &Object<ThreadPool>, group: &'static TaskGroup) {
    // SAFETY: the calling thread's berth.
    unsafe { berth.own(|own| own.backlog_ns = 0.0) };
    let tasks = berth.deque.tidy();
    if tasks == 0 || !pool.has_blocking_bulk() || !pool.may_nest() {
        return;
    }
    let width = pool.num_threads();
    let helpers = pool.take_helpers(tasks.min(width), width);
    if helpers == 0 {
        return;
    }
    pool.add_to_budget(1);
    let bulk = Bulk { group, caller: here };
    // SAFETY: `come_in_bulk` may run on any thread, once for each index, and does not unwind; the call returns when all
    // have, so `bulk` outlives them.
    pool.offer_bulk(unsafe { RawTask::new(come_in_bulk, (&raw const bulk).cast_mut().cast()) }, helpers + 1);
    pool.give_back_helpers(helpers + 1);
}

/// A thread of a blocking `parallel_for`, usually also the caller.
unsafe extern "C" fn come_in_bulk(bulk: *mut c_void, _index: i32) {
    // SAFETY: `bring` keeps it while its closures run.
    let bulk = unsafe { &*bulk.cast_const().cast::<Bulk>() };
    let (group, crew) = (bulk.group, bulk.group.crew());
    let Some(pool) = group.pool() else { return };
    let _frame = ambient::enter(ambient::ActiveWork::Pool(pool.id()));
    here(|here| {
        if std::ptr::eq(here, bulk.caller) {
            return wait_for_others(here, group, true);
        }
        let below = |other: &TaskGroup| is_below(other, group);
        let is_over = || group.tally.look().pending() == 0;
        let take = || lie::take(here, crew, below);
        while let Some(record) = take().or_else(|| lie::look(take, is_over)) {
            work::run(here, &record);
        }
    });
}
