//! Tasks as records in deques: they are found and taken by their groups.

use super::berth::{self, Here};
use super::cell::TaskGroup;
use super::crew::Crew;
use super::deque::Record;
use crate::base::time::now_ns;
use crate::threadpool::ThreadPool;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

/// A host task: returns a status.
pub type TaskFn = unsafe extern "C" fn(*mut c_void) -> i32;
/// Releases a task's argument.
pub type DestroyFn = unsafe extern "C" fn(*mut c_void);

/// Bytes that a record has room for, besides the function and the group.
pub const ROOM: usize = 40;

/// A task's argument.
#[derive(Clone, Copy, Debug)]
pub enum TaskArgument<'a> {
    Pointer(*mut c_void, Option<DestroyFn>),
    /// A copy of these, `ROOM` at most.
    Bytes(&'a [u8]),
}

/// In the lowest bit of the word with the group: bytes, not a pointer.
pub(super) const BYTES: u64 = 1;

#[inline(always)]
pub(super) fn record(group: &TaskGroup, task: TaskFn, argument: TaskArgument<'_>) -> Record {
    let mut record: Record = [task as usize as u64, std::ptr::from_ref(group) as u64, 0, 0, 0, 0, 0];
    match argument {
        TaskArgument::Pointer(arg, destroy) => {
            record[2] = arg as u64;
            record[3] = destroy.map_or(0, |destroy| destroy as usize as u64);
        }
        TaskArgument::Bytes(bytes) => {
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

/// The group of a record that is, or was a moment ago, in a deque.
#[inline(always)]
pub(super) fn group_of(record: &Record) -> &'static TaskGroup {
    // SAFETY: only `record` makes the records of these deques, and cells stay groups for ever.
    unsafe { &*((record[1] & !BYTES) as usize as *const TaskGroup) }
}

/// Depths with separate costs.
const DEPTHS: u32 = 31;

/// The site of a task's cost: its function and depth, since nested groups usually get smaller.
#[inline(always)]
pub(super) fn site(task: usize, group: &TaskGroup) -> usize {
    task.wrapping_add(group.depth.load(Relaxed).min(DEPTHS) as usize * 0x9E37_79B1)
}

/// The best time of a hop to another thread and back, in nanoseconds. Shorter tasks are not stolen.
pub(super) const HOP_NS: f32 = 250.0;

/// Whether a helper gains time by taking the task, as far as is known.
#[inline]
pub(super) fn is_worth_a_hop(record: &Record) -> bool {
    let group = group_of(record);
    let cost = |pool: &ThreadPool| pool.learned().tasks.get(site(record[0] as usize, group));
    group.pool().and_then(|pool| cost(pool)).is_none_or(|cost_ns| cost_ns >= HOP_NS)
}

/// Takes a wanted task from this thread's deque.
#[inline(always)]
pub(super) fn take_own(here: &Here, wanted: impl Fn(&TaskGroup) -> bool) -> Option<Record> {
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

/// Takes a wanted task from other threads' deques.
pub(super) fn steal(here: &Here, crew: &Crew, wanted: impl Fn(&Record) -> bool) -> Option<Record> {
    let mine = here.berth().map(berth::Berth::number);
    let mut others = crew.berths().filter(|berth| Some(*berth) != mine);
    others.find_map(|other| berth::at(other).deque.steal(&wanted))
}

/// Takes a wanted task from any deque.
pub(super) fn take(here: &Here, crew: &Crew, wanted: impl Fn(&TaskGroup) -> bool) -> Option<Record> {
    take_own(here, &wanted).or_else(|| steal(here, crew, |record| wanted(group_of(record))))
}

pub(super) fn any_record(crew: &Crew, wanted: impl Fn(&Record) -> bool) -> bool {
    crew.berths().any(|berth| berth::at(berth).deque.any(&wanted))
}

/// Whether there is a wanted task.
pub(super) fn any(crew: &Crew, wanted: impl Fn(&TaskGroup) -> bool) -> bool {
    any_record(crew, |record| wanted(group_of(record)))
}

/// How long a thread without work searches, in nanoseconds.
const SPIN_NS: u64 = 20_000;
/// Checks for the end between two searches.
const LOOKS: u32 = 4;

/// Searches for a task for a bounded time, or until `is_over`.
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
