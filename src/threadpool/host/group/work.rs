//! What threads do with tasks: run them, take them, help.

use super::berth::{self, Frame, Here, here};
use super::cell::{Group, Hold};
use super::crew::Crew;
use crate::base::time::now_ns;
use crate::base::{Code, Error, Ref};
use crate::sync::{Count, Record, ambient};
use crate::threadpool::ThreadPool;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*, fence};

/// A task of the host's: gives a status.
pub type TaskFn = unsafe extern "C" fn(*mut c_void) -> i32;
/// Releases a task's argument.
pub type DestroyFn = unsafe extern "C" fn(*mut c_void);

/// Bytes that a record has room for, besides the function and the group.
pub const ROOM: usize = 40;

/// What a task is called with.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    Pointer(*mut c_void, Option<DestroyFn>),
    /// A copy of these, `ROOM` at most.
    Bytes(&'a [u8]),
}

/// In the lowest bit of the word with the group: bytes, not a pointer.
const BYTES: u64 = 1;

#[inline(always)]
pub(super) fn record(group: &Group, task: TaskFn, argument: Argument<'_>) -> Record {
    let mut record: Record = [task as usize as u64, std::ptr::from_ref(group) as u64, 0, 0, 0, 0, 0];
    match argument {
        Argument::Pointer(arg, destroy) => {
            record[2] = arg as u64;
            record[3] = destroy.map_or(0, |destroy| destroy as usize as u64);
        }
        Argument::Bytes(bytes) => {
            record[1] |= BYTES;
            let mut room = [0u8; ROOM];
            room[..bytes.len()].copy_from_slice(bytes);
            for (word, eight) in record[2..].iter_mut().zip(room.chunks_exact(8)) {
                *word = u64::from_ne_bytes(std::array::from_fn(|i| eight[i]));
            }
        }
    }
    record
}

/// The group of a record that lies in a deque, or lay there a moment ago.
#[inline(always)]
pub(super) fn group_of(record: &Record) -> &'static Group {
    // SAFETY: only `record` makes the records of these deques, and cells stay groups for ever.
    unsafe { &*((record[1] & !BYTES) as usize as *const Group) }
}

/// How often a task whose cost is known is timed again.
const TIMED: u32 = 32;
/// Depths that are told apart.
const DEPTHS: u32 = 31;

/// Where what a task of this function takes is kept: groups inside of tasks get smaller, as a rule.
#[inline(always)]
pub(super) fn site(task: usize, group: &Group) -> usize {
    task.wrapping_add(group.depth.load(Relaxed).min(DEPTHS) as usize * 0x9E37_79B1)
}

/// What a hop to another thread and back takes at best, in nanoseconds. Shorter tasks are left where they lie.
pub(super) const HOP_NS: f32 = 250.0;

/// Whether a helper gains time by taking the task, as far as that is known.
#[inline]
fn is_worth_a_hop(record: &Record) -> bool {
    let group = group_of(record);
    let cost = |pool: &ThreadPool| pool.learned().tasks.get(site(record[0] as usize, group));
    group.pool().and_then(|pool| cost(pool)).is_none_or(|cost_ns| cost_ns >= HOP_NS)
}

/// Runs a task that was counted and taken.
#[inline(always)]
pub(super) fn run(here: &Here, record: &Record) {
    let group = group_of(record);
    perform(here, group, record, false);
    finish(here, group);
}

/// As `run`, with a look at the time: what a hop brings is to be known.
fn run_timed(here: &Here, record: &Record) {
    let group = group_of(record);
    perform(here, group, record, true);
    finish(here, group);
}

/// Calls a task's function, unless the group was stopped.
#[inline(always)]
pub(super) fn perform(here: &Here, group: &Group, record: &Record, timed: bool) {
    let mut words = *record;
    let is_bytes = record[1] & BYTES != 0;
    let arg = if is_bytes { (&raw mut words[2]).cast::<c_void>() } else { record[2] as usize as *mut c_void };
    if !group.is_stopped() {
        let before = here.frame.get();
        let frame = Frame { group, before };
        let berth = here.berth();
        let lends = berth.map_or(0, lends_now);
        here.frame.set(&raw const frame);
        // SAFETY: `record` was given a task, its address with nothing changed.
        let task = unsafe { std::mem::transmute::<usize, TaskFn>(record[0] as usize) };
        // SAFETY: what the group was given, taken out of it.
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

/// How many groups were lent their pools on this thread.
#[inline(always)]
fn lends_now(berth: &berth::Berth) -> u64 {
    // SAFETY: the calling thread's berth.
    unsafe { berth.own(|own| own.lends) }
}

/// Calls the function, now and then with a look at the time. `is_first`: there is no other task on the stack.
///
/// # Safety
/// The host's function with its own argument, which is called once.
#[inline(always)]
unsafe fn call(here: &Here, group: &Group, (task, arg): (TaskFn, *mut c_void), is_first: bool, timed: bool) -> i32 {
    // What the host's functions are inside of was said by the outermost task.
    let _calling = is_first.then(ambient::calling);
    // Its maker's thread is inside of what it is inside of.
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
pub(super) fn finish(here: &Here, group: &'static Group) {
    let crew = group.crew.load(Relaxed);
    let count = group.tally.done();
    if count.pending() == 0 && (count.sleepers() > 0 || count.is_unattended()) {
        // SAFETY: this thread helps the crew, or waits for or spawns into a group of it; so the pool is there.
        unsafe { ended(here, group, crew, count) };
    }
}

/// The last task is done, and there is somebody to tell, or nobody who holds the group.
///
/// # Safety
/// The crew is there.
#[cold]
unsafe fn ended(here: &Here, group: &'static Group, crew: *const Crew, count: Count) {
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

/// Tells the notice, which is this thread's to tell, and lets go of the group.
pub(super) fn tell(here: &Here, group: &'static Group) {
    let notice = group.notice.lock().take();
    let error = outcome(group.take_stop());
    if let Some(notice) = notice {
        ambient::call(|| notice.done(error.as_ref()));
    }
    release(here, group);
}

/// What a wait or a notice says of tasks that were stopped with this status.
pub(super) fn outcome(status: i32) -> Option<Error> {
    let cancelled = Code::Cancelled;
    match status {
        0 => None,
        status if status == cancelled.status() => Some(Error::new(cancelled, "the task group was cancelled")),
        status => Some(Error::from_status(status, "a task of the group")),
    }
}

/// One holder less.
#[inline(always)]
pub(super) fn release(here: &Here, group: &'static Group) {
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

/// The last holder of a group with tasks left goes: those that have not begun are skipped.
#[cold]
fn leave(here: &Here, group: &'static Group) {
    // The group lets go of the pool with its last task, which may be skipped here.
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
        super::attend(here, group);
    }
}

/// A group with a pool that was lent to it; false if that is all that can be done here.
fn release_lent(here: &Here, group: &'static Group) -> bool {
    // Only one of those who hold it can be the last.
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
        // The thread that made it sees to the rest, when the task ends in which it did, or it has done so just now.
        None => {
            let (lent, left) = (Hold::Lent as u32, Hold::Left as u32);
            group.hold.compare_exchange(lent, left, AcqRel, Acquire).is_err()
        }
    }
}

/// The group holds its pool itself.
fn own_pool(group: &Group) {
    let pool = group.pool.load(Relaxed);
    if !pool.is_null() {
        // SAFETY: a shared object, which what lent it holds.
        unsafe { Arc::increment_strong_count(pool.cast_const()) };
    }
}

/// The end of a task: groups that it made and that are still there hold their pool themselves from now on. `lends`: as
/// it was when the task began.
#[inline(always)]
fn take_over(here: &Here, berth: &berth::Berth, lends: u64) {
    loop {
        // SAFETY: the calling thread's berth; cells stay groups for ever.
        let newest: Option<&'static Group> = unsafe { berth.own(|own| own.lent.as_ref()) };
        match newest {
            Some(group) if group.serial.load(Relaxed) > lends => take_over_one(here, berth, group),
            _ => return,
        }
    }
}

#[cold]
fn take_over_one(here: &Here, berth: &berth::Berth, group: &'static Group) {
    own_pool(group);
    // SAFETY: the calling thread's berth.
    unsafe { berth.own(|own| own.unlink(group)) };
    // ORDERING: AcqRel; who releases it elsewhere sees a group that holds its pool, or is seen here.
    if group.hold.swap(Hold::Own as u32, AcqRel) == Hold::Left as u32 {
        release(here, group);
    }
}

/// Nobody holds the group and nothing is left of it.
fn free(here: &Here, group: &'static Group) {
    let pool = group.pool.load(Relaxed);
    group.end();
    berth::give_cell(here, group);
    if !pool.is_null() {
        // SAFETY: the group's own reference.
        drop(unsafe { Arc::from_raw(pool.cast_const()) });
    }
}

/// A task that is wanted, of those that this thread laid down.
#[inline(always)]
pub(super) fn take_own(here: &Here, wanted: impl Fn(&Group) -> bool) -> Option<Record> {
    let berth = here.berth()?;
    let mut passed_ns = 0.0;
    let wanted = |record: &Record| wanted(group_of(record));
    // SAFETY: the calling thread's berth.
    unsafe {
        berth.own(|own| {
            let taken = berth.deque.pop(wanted, |place| passed_ns += own.cost_ns[place]);
            if own.backlog_ns > 0.0 {
                own.backlog_ns = (own.backlog_ns - passed_ns).max(0.0);
            }
            taken
        })
    }
}

/// A task that is wanted, of those that others laid down.
fn steal(here: &Here, crew: &Crew, wanted: impl Fn(&Record) -> bool) -> Option<Record> {
    let mine = here.berth().map(berth::Berth::number);
    let mut others = crew.berths().filter(|berth| Some(*berth) != mine);
    others.find_map(|other| berth::at(other).deque.steal(&wanted))
}

/// A task that is wanted, wherever it lies.
pub(super) fn take(here: &Here, crew: &Crew, wanted: impl Fn(&Group) -> bool) -> Option<Record> {
    take_own(here, &wanted).or_else(|| steal(here, crew, |record| wanted(group_of(record))))
}

fn any_record(crew: &Crew, wanted: impl Fn(&Record) -> bool) -> bool {
    crew.berths().any(|berth| berth::at(berth).deque.any(&wanted))
}

/// Whether there is a task that is wanted.
pub(super) fn any(crew: &Crew, wanted: impl Fn(&Group) -> bool) -> bool {
    any_record(crew, |record| wanted(group_of(record)))
}

/// How long who finds nothing looks around, in nanoseconds.
const SPIN_NS: u64 = 20_000;
/// Looks at the end between two looks for work.
const LOOKS: u32 = 4;

/// Looks for a task for a bounded time, or until `is_over`.
pub(super) fn look(take: impl Fn() -> Option<Record>, is_over: impl Fn() -> bool) -> Option<Record> {
    let begin = now_ns();
    loop {
        for _ in 0..LOOKS {
            if is_over() {
                return None;
            }
            std::hint::spin_loop();
        }
        let taken = take();
        if taken.is_some() || now_ns() - begin >= SPIN_NS {
            return taken;
        }
    }
}

/// Why a thread helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    /// It was asked for: takes what is worth a hop, and looks around for a while.
    Asked,
    /// It is done with something else: takes what is worth a hop.
    Passing,
    /// It is owed: takes all.
    Owed,
}

/// A helper's part: whatever is wanted of the crew's tasks, until there is none.
pub(super) fn help(pool: &Ref<ThreadPool>, helper: Helper, wanted: impl Fn(&Group) -> bool) {
    let crew = pool.crew();
    let wanted = |group: &Group| std::ptr::eq(group.crew.load(Relaxed), crew) && wanted(group);
    let worth = |record: &Record| wanted(group_of(record)) && (helper == Helper::Owed || is_worth_a_hop(record));
    here(|here| {
        let before = here.drains.replace(std::ptr::from_ref(crew));
        loop {
            // What it lays down itself it does, however small.
            if let Some(record) = take_own(here, wanted) {
                run(here, &record);
                continue;
            }
            let mut found = steal(here, crew, worth);
            if found.is_none() && helper == Helper::Asked {
                // ORDERING: SeqCst here and the fence; who pushes and calls nobody, since somebody looks, is seen by
                // the look behind.
                crew.lookers.fetch_add(1, SeqCst);
                found = look(|| steal(here, crew, worth), || false);
                crew.lookers.fetch_sub(1, SeqCst);
                fence(SeqCst);
                // There may be work for one more.
                if found.is_some() && any_record(crew, worth) {
                    super::call_others(here, pool);
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

/// By a closure that is done with what it came for, and has room in the budget: whatever lies about of the pool's.
/// True if it had a part of the budget for that.
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

/// Whether this thread may begin strangers' tasks: nothing of the library's is below that waits for something else.
pub(super) fn is_free(here: &Here) -> bool {
    here.frame.get().is_null() && !here.asks.get() && ambient::depth() <= 1
}

/// Counts down when dropped.
pub(super) struct Counted<'a>(pub(super) &'a AtomicU32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
