//! Task groups: tasks that are laid down while others run, and waits that do them.
//!
//! A thread lays down tasks in a deque of its own (`berth`, `sync::Deque`), for the groups of all pools. What is laid
//! down can be taken by anybody at any time, out of the middle, too. So there is a simple rule for waits:
//!
//! - *A wait takes what has not begun of the group, or of groups that were made inside of its tasks, wherever it lies*,
//!   and does it; its own newest first, others' oldest. It never begins anything else: what it needs cannot lie below a
//!   stranger on its stack, and its stack is not deeper than that of a program that calls instead of spawning.
//! - It sleeps when all that is left has begun, and other threads are at it. They go on to what these tasks lay down:
//!   who runs a task takes the newest of its own before it looks elsewhere. So no wait depends on being told of new
//!   tasks, only of the end, which `sync::Tally` does without a gap.
//!
//! | who              | takes                                   | until                                             |
//! |------------------|-----------------------------------------|---------------------------------------------------|
//! | a wait           | the group's tasks, and those below them | the group is done                                 |
//! | a helper         | tasks of all groups of the pool         | it has found none for 20 us                       |
//! | a closure leaving | the same                               | there is none, or no room in the budget           |
//! | an owed closure  | tasks of groups that nobody waits for   | there is none                                     |
//!
//! *Helpers* are asked for within the pool's budget, as for regions. A spawn does not ask: it adds what the task is
//! expected to cost to what lies here already, and when that is worth a helper, the others are called (`call_others`).
//! What a task costs is learned for its function and the depth of its group. A task that nothing is known of is worth a
//! helper. One that is cheaper than a few hops is run at once, by its spawn, if others would find enough without it; and
//! helpers leave one that is cheaper than a hop where it lies.
//!
//! *Nobody waits* for a group that was released before its end, or that has a notice. Then a closure is owed by the
//! pool, or, if that refuses, the work is done by who spawns.
//!
//! A pool whose work must stay on its own threads (`WEIR_THREADPOOL_OWN_THREADS_ONLY`) owes such a closure for what a
//! foreign thread waits for; if it refuses, the thread does the work.

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
pub use cell::{Done, Group};
pub use crew::Crew;
pub use lie::{Argument, DestroyFn, ROOM, TaskFn};
pub use work::lend_a_hand;

use super::Task;
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

/// Of groups without a pool.
static LONERS: Crew = Crew::new();

/// A task that is expected to take less than this, in nanoseconds, is run at once where there is enough to take.
const CHEAP_NS: f32 = 1000.0;

/// A new group with one holder, the caller. None if there is no cell; `grow` makes some.
#[inline]
pub fn create(pool: Option<&Ref<ThreadPool>>) -> Option<&'static Group> {
    here(|here| {
        let group = berth::take_cell(here)?;
        let berth = here.berth();
        let home = berth.map_or(0, |berth| berth.number() as u32 + 1);
        let crew = pool.map_or(&LONERS, |pool| pool.crew());
        let parent = here.group();
        // SAFETY: the group is lent its pool or holds it, as below; a crew is its pool's, or lives for ever.
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

/// One holder more.
pub fn retain(group: &Group) {
    group.tally.retain();
}

/// One holder less. The last one leaves what is not done to the pool.
#[inline]
pub fn release(group: &'static Group) {
    here(|here| work::release(here, group));
}

/// Lays a task down, or runs it at once.
#[inline]
pub fn spawn(group: &'static Group, task: TaskFn, argument: Argument<'_>) {
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

/// Whether there is enough at this berth for all others to take.
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

/// A task that was counted and for which there is no room.
#[cold]
fn overflow(here: &Here, group: &'static Group, record: &Record) {
    if may_work(group.pool()) || !send(group, record) {
        work::run(here, record);
    }
}

/// A task that goes to the pool by itself, since there is no room and this is no thread for it. False if the pool
/// refuses.
fn send(group: &'static Group, record: &Record) -> bool {
    /// The one closure of this task.
    unsafe extern "C" fn come(parcel: *mut c_void, _index: i32) {
        // SAFETY: from `Box::into_raw` below, once; with it goes a reference to the pool.
        let (record, pool) = unsafe {
            let (record, pool) = *Box::from_raw(parcel.cast::<(Record, *const Object<ThreadPool>)>());
            (record, Arc::from_raw(pool))
        };
        serve(pool, Need::Owed, |_| here(|here| work::run(here, &record)));
    }
    let Some(pool) = group.pool() else { return false };
    let parcel: *mut (Record, *const Object<ThreadPool>) = Box::into_raw(Box::new((*record, std::ptr::from_ref(pool))));
    // SAFETY: `come` may run on any thread, once, and does not unwind.
    let accepted = hand_over(pool, Need::Owed, unsafe { Task::new(come, parcel.cast()) });
    if !accepted {
        // SAFETY: refused, so it is this thread's again.
        drop(unsafe { Box::from_raw(parcel) });
    }
    accepted
}

/// More work is known of: `cost_ns` more. When all that others could do is worth a helper, they are called.
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

/// Has `notice` told once when all that was spawned is done; at once if it is.
pub fn notify(group: &'static Group, notice: Arc<dyn Done>) -> Result<()> {
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

/// Tasks that have not begun are skipped, of this group and of those that were made inside of its tasks.
pub fn cancel(group: &Group) {
    group.stop_with(Code::Cancelled.status());
}

/// Waits until all is done that was spawned, and does it. What stopped the group, if something did.
#[inline]
pub fn wait(group: &'static Group) -> Result<()> {
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

/// Whether a wait for `group` does tasks of `other`, on the same pool.
#[inline(always)]
fn is_below(other: &Group, group: &Group) -> bool {
    std::ptr::eq(other, group) || (std::ptr::eq(other.crew(), group.crew()) && other.is_within(group))
}

/// A task of the group, or of one that was made in it, cannot wait for the group: it would wait for itself.
#[cold]
fn refuse_inside(here: &Here, inner: &Group, group: &Group) -> Result<()> {
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

/// The rest of a wait, when there is nothing left of the thread's own.
#[cold]
fn wait_for_others(here: &Here, group: &'static Group, mut may_work: bool) {
    let crew = group.crew();
    let is_over = || group.tally.look().pending() == 0;
    let below = |other: &Group| is_below(other, group);
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
    group: &'static Group,
    /// Who has called it.
    caller: *const Here,
}

/// On a pool that takes no single tasks: brings helpers by a `parallel_for`, in which this thread waits, if there is
/// work for them.
#[inline(always)]
fn bring_in_bulk(here: &Here, group: &'static Group) {
    let (Some(berth), Some(pool)) = (here.berth(), group.pool()) else { return };
    // SAFETY: the calling thread's berth.
    let backlog_ns = unsafe { berth.own(|own| own.backlog_ns) };
    if backlog_ns >= pool.crew().worth_ns() && !pool.can_spawn() {
        bring(here, berth, pool, group);
    }
}

#[cold]
fn bring(here: &Here, berth: &berth::Berth, pool: &Object<ThreadPool>, group: &'static Group) {
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
    pool.offer_bulk(unsafe { Task::new(come_in_bulk, (&raw const bulk).cast_mut().cast()) }, helpers + 1);
    pool.give_back_helpers(helpers + 1);
}

/// One of those whom a `parallel_for` that waits brings, the caller among them as a rule.
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
        let below = |other: &Group| is_below(other, group);
        let is_over = || group.tally.look().pending() == 0;
        let take = || lie::take(here, crew, below);
        while let Some(record) = take().or_else(|| lie::look(take, is_over)) {
            work::run(here, &record);
        }
    });
}
