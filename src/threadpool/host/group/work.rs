//! Running, taking and helping with tasks.

use super::berth::{self, Here, TaskFrame, here};
use super::cell::{Hold, TaskGroup};
use super::crew::Crew;
use super::deque::Record;
use super::lie::{
    BYTES, DestroyFn, TaskFn, any, any_record, group_of, is_worth_a_hop, look, site, steal, take, take_own,
};
use super::tally::TallyWord;
use crate::base::time::now_ns;
use crate::base::{Code, Error, Object, Ref};
use crate::sync::ambient;
use crate::threadpool::ThreadPool;
use crate::threadpool::host::RawTask;
use crate::threadpool::host::ticket::serve;
use crate::threadpool::host::tickets::Need;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*, fence};

/// One in so many tasks of known cost is timed again.
const TIMED: u32 = 32;
/// Runs a task that was counted and taken.
#[inline(always)]
pub(super) fn run(here: &Here, record: &Record) {
    let group = group_of(record);
    perform(here, group, record, false);
    finish(here, group);
}

/// As `run`, timed: the gain of a hop must be known.
fn run_timed(here: &Here, record: &Record) {
    let group = group_of(record);
    perform(here, group, record, true);
    finish(here, group);
}

/// Calls a task's function, unless the group was stopped.
#[inline(always)]
pub(super) fn perform(here: &Here, group: &TaskGroup, record: &Record, timed: bool) {
    let mut words = *record;
    let is_bytes = record[1] & BYTES != 0;
    let arg = if is_bytes { (&raw mut words[2]).cast::<c_void>() } else { record[2] as usize as *mut c_void };
    if !group.is_stopped() {
        let before = here.frame.get();
        let frame = TaskFrame { group, before };
        let berth = here.berth();
        let lends = berth.map_or(0, lends_now);
        here.frame.set(&raw const frame);
        // SAFETY: `record` was given a task, its address with nothing changed.
        let task = unsafe { std::mem::transmute::<usize, TaskFn>(record[0] as usize) };
        // SAFETY: the task that the group was given, taken out of it.
        let status = unsafe { call(here, group, (task, arg), before.is_null(), timed) };
        here.frame.set(before);
        if let Some(berth) = here.berth()
            && lends_now(berth) != lends
        {
            take_over(here, berth, lends);
        }
        if status != 0 {
            group.stop_with(status);
        }
    }
    if !is_bytes && record[3] != 0 {
        // SAFETY: `record` was given a destroy function, its address with nothing changed.
        let destroy = unsafe { std::mem::transmute::<usize, DestroyFn>(record[3] as usize) };
        // SAFETY: the host's function with the argument that it was given with, once.
        ambient::call(|| unsafe { destroy(arg) });
    }
}

/// The number of groups that were lent their pools on this thread.
#[inline(always)]
fn lends_now(berth: &berth::Berth) -> u64 {
    // SAFETY: the calling thread's berth.
    unsafe { berth.own(|own| own.lends) }
}

/// Calls the function, and times some calls. `is_first`: there is no other task on the stack.
///
/// # Safety
/// The host's function with its own argument, which is called once.
#[inline(always)]
unsafe fn call(here: &Here, group: &TaskGroup, (task, arg): (TaskFn, *mut c_void), is_first: bool, timed: bool) -> i32 {
    // The outermost task has marked this stack already.
    let _calling = is_first.then(ambient::calling);
    // The maker's thread has the group's ancestors on its stack already.
    let is_home = here.berth().is_some_and(|berth| berth.number() as u32 + 1 == group.home.load(Relaxed));
    let _lineage = (!is_home).then(|| group.lineage.enter());
    let count = here.tasks.get().wrapping_add(1);
    here.tasks.set(count);
    let Some(pool) = group.pool() else {
        // SAFETY: as demanded of the caller.
        return unsafe { task(arg) };
    };
    let (sites, site) = (&pool.learned().tasks, site(task as usize, group));
    if !timed && !count.is_multiple_of(TIMED) && sites.get(site).is_some() {
        // SAFETY: as above.
        return unsafe { task(arg) };
    }
    let begin = now_ns();
    // SAFETY: as above.
    let status = unsafe { task(arg) };
    sites.put_mean(site, (now_ns() - begin) as f32);
    status
}

/// A task of the group is done.
#[inline(always)]
pub(super) fn finish(here: &Here, group: &'static TaskGroup) {
    let crew = group.crew.load(Relaxed);
    let count = group.tally.done();
    if count.pending() == 0 && (count.sleepers() > 0 || count.is_unattended()) {
        // SAFETY: this thread helps the crew, or waits for or spawns into a group of it; so the pool is there.
        unsafe { ended(here, group, crew, count) };
    }
}

/// The last task is done, and there is a waiter or notice, or no holder.
///
/// # Safety
/// The crew is there.
#[cold]
unsafe fn ended(here: &Here, group: &'static TaskGroup, crew: *const Crew, count: TallyWord) {
    if count.sleepers() > 0 {
        // SAFETY: as demanded of the caller.
        unsafe { &*crew }.wake();
    }
    if count.noticed() {
        tell(here, group);
    } else if count.holders() == 0 {
        free(here, group);
    }
}

/// Delivers the notice, which this thread has taken, and releases the group.
pub(super) fn tell(here: &Here, group: &'static TaskGroup) {
    let notice = group.notice.lock().take();
    let error = outcome(group.take_stop());
    if let Some(notice) = notice {
        ambient::call(|| notice.done(error.as_ref()));
    }
    release(here, group);
}

/// The error of a wait or a notice for tasks that were stopped with this status.
pub(super) fn outcome(status: i32) -> Option<Error> {
    let cancelled = Code::Cancelled;
    match status {
        0 => None,
        status if status == cancelled.status() => Some(Error::new(cancelled, "the task group was cancelled")),
        status => Some(Error::from_status(status, "a task of the group")),
    }
}

/// Removes a holder.
#[inline(always)]
pub(super) fn release(here: &Here, group: &'static TaskGroup) {
    if group.hold.load(Acquire) != Hold::Own as u32 && !release_lent(here, group) {
        return;
    }
    let count = group.tally.look();
    if count.holders() == 1 && count.pending() > 0 {
        return leave(here, group);
    }
    let count = group.tally.release();
    if count.holders() == 0 && count.pending() == 0 {
        free(here, group);
    }
}

/// The last holder of an unfinished group leaves: unstarted tasks are skipped.
#[cold]
fn leave(here: &Here, group: &'static TaskGroup) {
    // The group releases the pool with its last task, which may be skipped here.
    let pool = group.pool.load(Relaxed);
    // SAFETY: a shared object, which the group holds; made counted, it lives until the end of this function.
    let _pool: Option<Ref<ThreadPool>> = (!pool.is_null()).then(|| unsafe {
        Arc::increment_strong_count(pool.cast_const());
        Arc::from_raw(pool.cast_const())
    });
    group.stop_with(Code::Cancelled.status());
    let count = group.tally.release();
    if count.holders() > 0 {
        return;
    }
    if count.pending() == 0 {
        free(here, group);
    } else {
        attend(here, group);
    }
}

/// Releases a group that was lent its pool; false if nothing more can be done here.
fn release_lent(here: &Here, group: &'static TaskGroup) -> bool {
    // Only one holder can be the last.
    if group.tally.release_unless_last() {
        return false;
    }
    let count = group.tally.look();
    let berth = here.berth().filter(|berth| berth.number() as u32 + 1 == group.home.load(Relaxed));
    match berth {
        // The thread that made it, in the same task.
        Some(berth) => {
            if count.pending() > 0 {
                own_pool(group);
            }
            // SAFETY: the calling thread's berth.
            unsafe { berth.own(|own| own.unlink(group)) };
            if count.pending() == 0 {
                group.pool.store(std::ptr::null_mut(), Relaxed);
            }
            group.hold.store(Hold::Own as u32, Relaxed);
            true
        }
        // The thread that made it does the rest, when the task in which it did ends, or has done so just now.
        None => {
            let (lent, left) = (Hold::Lent as u32, Hold::Left as u32);
            group.hold.compare_exchange(lent, left, AcqRel, Acquire).is_err()
        }
    }
}

/// Makes the group hold its pool itself.
fn own_pool(group: &TaskGroup) {
    let pool = group.pool.load(Relaxed);
    if !pool.is_null() {
        // SAFETY: a shared object, which the lender holds.
        unsafe { Arc::increment_strong_count(pool.cast_const()) };
    }
}

/// The end of a task: live groups that it made hold their pool themselves from now on. `lends`: the count when the task
/// began.
#[inline(always)]
fn take_over(here: &Here, berth: &berth::Berth, lends: u64) {
    loop {
        // SAFETY: the calling thread's berth; cells stay groups for ever.
        let newest: Option<&'static TaskGroup> = unsafe { berth.own(|own| own.lent.as_ref()) };
        match newest {
            Some(group) if group.serial.load(Relaxed) > lends => take_over_one(here, berth, group),
            _ => return,
        }
    }
}

#[cold]
fn take_over_one(here: &Here, berth: &berth::Berth, group: &'static TaskGroup) {
    own_pool(group);
    // SAFETY: the calling thread's berth.
    unsafe { berth.own(|own| own.unlink(group)) };
    // ORDERING: AcqRel; a release elsewhere sees a group that holds its pool, or is seen here.
    if group.hold.swap(Hold::Own as u32, AcqRel) == Hold::Left as u32 {
        release(here, group);
    }
}

/// Frees a group without holders and tasks.
fn free(here: &Here, group: &'static TaskGroup) {
    let pool = group.pool.load(Relaxed);
    group.end();
    berth::give_cell(here, group);
    if !pool.is_null() {
        // SAFETY: the group's own reference.
        drop(unsafe { Arc::from_raw(pool.cast_const()) });
    }
}

/// Why a thread helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    /// It was asked for: takes tasks that are worth a hop, and searches for a while.
    Asked,
    /// It is done with other work: takes tasks that are worth a hop.
    Passing,
    /// It is owed: takes all.
    Owed,
}

/// A helper's part: runs wanted tasks of the crew until there are none.
pub(super) fn help(pool: &Ref<ThreadPool>, helper: Helper, wanted: impl Fn(&TaskGroup) -> bool) {
    let crew = pool.crew();
    let wanted = |group: &TaskGroup| std::ptr::eq(group.crew.load(Relaxed), crew) && wanted(group);
    let worth = |record: &Record| wanted(group_of(record)) && (helper == Helper::Owed || is_worth_a_hop(record));
    here(|here| {
        let before = here.drains.replace(std::ptr::from_ref(crew));
        loop {
            // It runs its own tasks, however small.
            if let Some(record) = take_own(here, wanted) {
                run(here, &record);
                continue;
            }
            let mut found = steal(here, crew, worth);
            if found.is_none() && helper == Helper::Asked {
                // ORDERING: SeqCst here and the fence; a push that calls nobody, because of this searcher, is seen by
                // the search after it.
                crew.lookers.fetch_add(1, SeqCst);
                found = look(|| steal(here, crew, worth), || false);
                crew.lookers.fetch_sub(1, SeqCst);
                fence(SeqCst);
                // There may be work for another helper.
                if found.is_some() && any_record(crew, worth) {
                    call_others(here, pool);
                }
            }
            match found {
                Some(record) => run_timed(here, &record),
                None if any_record(crew, worth) => {}
                None => break,
            }
        }
        here.drains.set(before);
    });
}

/// By a closure that is done with its own work, and has room in the budget: runs the pool's queued tasks. True if it
/// had a part of the budget for that.
pub fn lend_a_hand(pool: &Ref<ThreadPool>) -> bool {
    let crew = pool.crew();
    let wanted = |record: &Record| std::ptr::eq(group_of(record).crew.load(Relaxed), crew) && is_worth_a_hop(record);
    if !any_record(crew, wanted) || pool.take_helpers(1, pool.num_threads()) == 0 {
        return false;
    }
    help(pool, Helper::Passing, |_| true);
    pool.give_back_helpers(1);
    true
}

/// Whether this thread may begin unrelated tasks: its stack has no wait of the library's.
pub(super) fn is_free(here: &Here) -> bool {
    here.frame.get().is_null() && !here.asks.get() && ambient::depth() <= 1
}

/// Counts down when dropped.
pub(super) struct CountGuard<'a>(pub(super) &'a AtomicU32);

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// There is work for others: wakes sleeping waiters, or asks the pool for a helper, unless a thread is searching
/// already.
#[cold]
pub(super) fn call_others(here: &Here, pool: &Object<ThreadPool>) {
    let crew = pool.crew();
    let can_spawn = pool.can_spawn();
    if let Some(berth) = here.berth() {
        // Only a wait can ask this pool: it finds the worthwhile tasks.
        let left_ns = if can_spawn { 0.0 } else { crew.worth_ns() };
        // SAFETY: the calling thread's berth.
        unsafe { berth.own(|own| own.backlog_ns = left_ns) };
    }
    // ORDERING: after the push, before the loads. A thread that found nothing stops counting as a searcher, or counts
    // as asleep, has a fence, and looks again.
    fence(SeqCst);
    if crew.lookers.load(Relaxed) > 0 {
        return;
    }
    if crew.sleepers.load(Relaxed) > 0 {
        crew.wake();
    }
    if here.asks.get() || !can_spawn {
        return;
    }
    let width = pool.num_threads();
    crew.width.store(u32::try_from(width).unwrap_or(u32::MAX), Relaxed);
    crew.worth.store(pool.worth_ns().to_bits(), Relaxed);
    let accepted = pool.take_helpers(1, width) == 1 && {
        // SAFETY: `come` may run on any thread, once, and does not unwind.
        let task = unsafe { RawTask::new(come, std::ptr::from_ref(pool).cast_mut().cast()) };
        here.asks.set(true);
        let accepted = ask(pool, task);
        here.asks.set(false);
        accepted
    };
    if let Some(berth) = here.berth().filter(|_| !accepted) {
        // Not so soon again.
        // SAFETY: the calling thread's berth.
        unsafe { berth.own(|own| own.backlog_ns = -AGAIN * crew.worth_ns()) };
    }
}

/// How much more work must come before asking a pool again that has refused a helper, or has none left.
const AGAIN: f32 = 8.0;

/// Offers a closure that holds the pool and a taken part of its budget. False if it is refused.
fn ask(pool: &Object<ThreadPool>, task: RawTask) -> bool {
    // SAFETY: a shared object, which the caller holds; the closure gives this reference back.
    unsafe { Arc::increment_strong_count(std::ptr::from_ref(pool)) };
    pool.closures_went_out(1);
    let accepted = pool.offer(task, 0, 0);
    if !accepted {
        pool.life().closure_left();
        // SAFETY: refused means that the closure has not and will not run, so its reference is this thread's again.
        unsafe { Arc::decrement_strong_count(std::ptr::from_ref(pool)) };
        pool.give_back_helpers(1);
    }
    accepted
}

/// Offers a closure that must come.
pub(super) fn hand_over(pool: &Object<ThreadPool>, need: Need, task: RawTask) -> bool {
    debug_assert_eq!(need, Need::Owed);
    let life = pool.life();
    if !life.door.owe() {
        return false;
    }
    pool.add_to_budget(1);
    let accepted = ask(pool, task);
    if !accepted {
        life.door.settle();
    }
    accepted
}

/// A helper.
unsafe extern "C" fn come(pool: *mut c_void, _index: i32) {
    // SAFETY: `call_others` gave this closure the pool and one reference to it.
    let pool: Ref<ThreadPool> = unsafe { Arc::from_raw(pool.cast_const().cast::<Object<ThreadPool>>()) };
    serve(pool, Need::Wanted, |pool| {
        // The pool ran it inline in the calling thread, which does the work anyway.
        if here(is_free) {
            help(pool, Helper::Asked, |_| true);
        }
    });
}

/// Whether a closure is owed for this group's tasks.
fn is_owed(group: &TaskGroup, pool: &ThreadPool) -> bool {
    pool.has_flag(crate::abi::weir_threadpool_flags::WEIR_THREADPOOL_OWN_THREADS_ONLY)
        || group.tally.look().is_unattended()
}

/// A closure that was owed.
unsafe extern "C" fn come_owed(pool: *mut c_void, _index: i32) {
    // SAFETY: `owe` gave this closure the pool and one reference to it.
    let pool: Ref<ThreadPool> = unsafe { Arc::from_raw(pool.cast_const().cast::<Object<ThreadPool>>()) };
    serve(pool, Need::Owed, |pool| {
        let crew = pool.crew();
        let wanted = |group: &TaskGroup| std::ptr::eq(group.crew(), crew) && is_owed(group, pool);
        loop {
            help(pool, Helper::Owed, |group| is_owed(group, pool));
            // ORDERING: SeqCst and the fence; a push that asks for nobody, because one is owed, is seen by the search
            // after it.
            drop(CountGuard(&crew.owed));
            fence(SeqCst);
            if !any(crew, wanted) {
                break;
            }
            crew.owed.fetch_add(1, SeqCst);
        }
    });
}

/// Asks for a closure for tasks that no thread here does; false if the pool refuses.
pub(super) fn owe(here: &Here, pool: &Object<ThreadPool>) -> bool {
    let crew = pool.crew();
    // ORDERING: as in `come_owed`.
    fence(SeqCst);
    if crew.owed.load(SeqCst) > 0 {
        return true;
    }
    if !pool.can_spawn() {
        return false;
    }
    crew.owed.fetch_add(1, SeqCst);
    // SAFETY: `come_owed` may run on any thread, once, and does not unwind.
    let task = unsafe { RawTask::new(come_owed, std::ptr::from_ref(pool).cast_mut().cast()) };
    let asks = here.asks.replace(true);
    let accepted = hand_over(pool, Need::Owed, task);
    here.asks.set(asks);
    if !accepted {
        crew.owed.fetch_sub(1, SeqCst);
    }
    accepted
}

/// The group has tasks that no thread may be expected to wait for.
#[cold]
pub(super) fn attend(here: &Here, group: &'static TaskGroup) {
    let crew = group.crew();
    if group.tally.look().holders() == 0 {
        // Released before its end.
        group.stop_with(Code::Cancelled.status());
    } else if std::ptr::eq(here.drains.get(), crew) {
        // This thread will run them itself.
        return;
    } else if group.pool().is_some_and(|pool| owe(here, pool)) {
        return;
    }
    let wanted = |other: &TaskGroup| std::ptr::eq(other, group) && other.tally.look().is_unattended();
    while let Some(record) = take(here, crew, wanted) {
        run(here, &record);
    }
}
