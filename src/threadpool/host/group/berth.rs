//! A thread's storage for tasks: a deque, which it has from its first task until it ends, for the groups of all pools;
//! free cells; and the groups that were lent their pools.

use super::cell::{Hold, TaskGroup};
use super::deque::{Deque, LEN};
use crate::sync::{Global, Keepsake, Slots, fork};
use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::*};

pub(super) const BERTHS: usize = Slots::MAX;

#[repr(align(128))]
pub(super) struct Berth {
    pub(super) deque: Deque,
    own: UnsafeCell<Own>,
    /// Groups made here less groups that ended here. ORDERING: Release pairs with the Acquire in `alive`; only the
    /// owner writes it.
    alive: AtomicI64,
}

/// Accessed by the owner only.
pub(super) struct Own {
    /// The expected duration of each record in the deque, in nanoseconds.
    pub(super) cost_ns: [f32; LEN],
    /// The known sum of these since helpers were last called.
    pub(super) backlog_ns: f32,
    /// Free cells, and how many.
    free: *mut TaskGroup,
    count: usize,
    /// The newest group that was lent its pool, and their number so far.
    pub(super) lent: *mut TaskGroup,
    pub(super) lends: u64,
}

// SAFETY: only the thread that holds the berth touches `own`.
unsafe impl Sync for Berth {}

static ALL: [Berth; BERTHS] = [const { Berth::new() }; BERTHS];
static HELD: Slots = Slots::new(BERTHS);

/// The same for groups that were made or ended by threads without a berth.
static OTHERS_ALIVE: AtomicI64 = AtomicI64::new(0);

/// Most cells kept at one berth; half of them are given away when there are more.
const KEPT: usize = 128;
/// Cells made at a time.
const CHUNK: usize = 16;

struct CellStore {
    free: *mut TaskGroup,
    /// All chunks, so that a leak checker finds them.
    made: *mut Chunk,
}

#[repr(C)]
struct Chunk {
    cells: [TaskGroup; CHUNK],
    before: *mut Chunk,
}

// SAFETY: lists of cells that it owns.
unsafe impl Send for CellStore {}
static FREE: Global<CellStore> = Global::new(|| CellStore { free: std::ptr::null_mut(), made: std::ptr::null_mut() });

/// A link in the chain of group tasks on a thread's stack.
pub(super) struct TaskFrame {
    pub(super) group: *const TaskGroup,
    pub(super) before: *const TaskFrame,
}

/// The calling thread's state for groups.
pub(super) struct Here {
    berth: Cell<Option<&'static Berth>>,
    /// The innermost task on its stack.
    pub(super) frame: Cell<*const TaskFrame>,
    /// The crew that it helps, with no wait below on its stack.
    pub(super) drains: Cell<*const super::crew::Crew>,
    /// Whether it is asking the pool for a helper.
    pub(super) asks: Cell<bool>,
    pub(super) tasks: Cell<u32>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            berth: Cell::new(None),
            frame: Cell::new(std::ptr::null()),
            drains: Cell::new(std::ptr::null()),
            asks: Cell::new(false),
            tasks: Cell::new(0),
        }
    };
}

/// Gives the berth back when its thread ends.
struct Stay(usize);

impl Drop for Stay {
    fn drop(&mut self) {
        let _ = HERE.try_with(|here| here.berth.set(None));
        HELD.give_back(self.0);
    }
}

static STAY: Keepsake<Arc<Stay>> = Keepsake::new();

/// Runs `f` with the calling thread's state.
#[inline(always)]
pub(super) fn here<R>(f: impl FnOnce(&Here) -> R) -> R {
    HERE.with(f)
}

impl Here {
    /// The thread's berth, if it has one.
    #[inline(always)]
    pub(super) fn berth(&self) -> Option<&'static Berth> {
        self.berth.get()
    }

    /// The thread's berth, claimed if needed; `None` if all are taken.
    #[inline(always)]
    pub(super) fn take_berth(&self) -> Option<&'static Berth> {
        self.berth.get().or_else(|| self.first_berth())
    }

    #[cold]
    fn first_berth(&self) -> Option<&'static Berth> {
        let at = HELD.claim()?;
        let stay = Arc::new(Stay(at));
        if STAY.set(Some(stay)) {
            self.berth.set(Some(&ALL[at]));
        }
        self.berth.get()
    }

    /// The group of the innermost task on the stack.
    #[inline(always)]
    pub(super) fn group(&self) -> Option<&TaskGroup> {
        // SAFETY: frames are on the stack of this thread, and their tasks keep their groups.
        unsafe { self.frame.get().as_ref().map(|frame| &*frame.group) }
    }
}

/// The berth with this number.
#[inline(always)]
pub(super) fn at(number: usize) -> &'static Berth {
    &ALL[number]
}

impl Berth {
    const fn new() -> Berth {
        Berth {
            deque: Deque::new(),
            own: UnsafeCell::new(Own {
                cost_ns: [0.0; LEN],
                backlog_ns: 0.0,
                free: std::ptr::null_mut(),
                count: 0,
                lent: std::ptr::null_mut(),
                lends: 0,
            }),
            alive: AtomicI64::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn number(&self) -> usize {
        (std::ptr::from_ref(self) as usize - std::ptr::from_ref(&ALL) as usize) / size_of::<Berth>()
    }

    /// Runs `f` with the owner's data. Not reentrant.
    ///
    /// # Safety
    /// The calling thread holds the berth (`Here::berth`).
    #[inline(always)]
    pub(super) unsafe fn own<R>(&self, f: impl FnOnce(&mut Own) -> R) -> R {
        // SAFETY: as demanded of the caller; `f` is of this module and does not come here again.
        f(unsafe { &mut *self.own.get() })
    }

    #[inline(always)]
    fn counts(&self, by: i64) {
        self.alive.store(self.alive.load(Relaxed) + by, Release);
    }
}

impl Own {
    /// Adds a group that was lent its pool.
    #[inline(always)]
    pub(super) fn lend(&mut self, group: &'static TaskGroup) {
        let before = self.lent;
        self.lends += 1;
        group.serial.store(self.lends, Relaxed);
        group.hold.store(Hold::Lent as u32, Relaxed);
        group.next.store(before, Relaxed);
        group.later.store(std::ptr::null_mut(), Relaxed);
        // SAFETY: cells stay groups for ever; only the owner touches links.
        if let Some(before) = unsafe { before.as_ref() } {
            before.later.store(std::ptr::from_ref(group).cast_mut(), Relaxed);
        }
        self.lent = std::ptr::from_ref(group).cast_mut();
    }

    /// Removes it from the list of groups that were lent their pools.
    #[inline(always)]
    pub(super) fn unlink(&mut self, group: &TaskGroup) {
        let (before, later) = (group.next.load(Relaxed), group.later.load(Relaxed));
        // SAFETY: as in `lend`.
        unsafe {
            match later.as_ref() {
                Some(later) => later.next.store(before, Relaxed),
                None => self.lent = before,
            }
            if let Some(before) = before.as_ref() {
                before.later.store(later, Relaxed);
            }
        }
    }
}

/// Pops a cell off a list.
///
/// # Safety
/// The caller owns the list.
unsafe fn pop(list: &mut *mut TaskGroup) -> Option<&'static TaskGroup> {
    // SAFETY: cells stay groups for ever.
    let group = unsafe { list.as_ref() }?;
    *list = group.next.load(Relaxed);
    Some(group)
}

fn push(list: &mut *mut TaskGroup, group: &'static TaskGroup) {
    group.next.store(*list, Relaxed);
    *list = std::ptr::from_ref(group).cast_mut();
}

/// A free cell, which counts as alive from now on. `None`: `grow` makes more.
#[inline(always)]
pub(super) fn take_cell(here: &Here) -> Option<&'static TaskGroup> {
    if let Some(berth) = here.take_berth() {
        // SAFETY: the calling thread's berth, and its list.
        let kept = unsafe { berth.own(|own| pop(&mut own.free).inspect(|_| own.count -= 1)) };
        if kept.is_some() {
            berth.counts(1);
            return kept;
        }
    }
    take_shared(here)
}

#[cold]
fn take_shared(here: &Here) -> Option<&'static TaskGroup> {
    let mut free = FREE.lock();
    // SAFETY: the lock guards the list.
    let first = unsafe { pop(&mut free.free) }?;
    let Some(berth) = here.berth() else {
        OTHERS_ALIVE.fetch_add(1, Release);
        return Some(first);
    };
    berth.counts(1);
    // Takes several, so that the lock is rare.
    for _ in 1..CHUNK {
        // SAFETY: the lock guards the list, and the berth is the calling thread's.
        unsafe {
            let Some(more) = pop(&mut free.free) else { break };
            berth.own(|own| {
                push(&mut own.free, more);
                own.count += 1;
            });
        }
    }
    Some(first)
}

/// Makes cells, for ever. Written in place one by one: all of them are too large for the stack of a small thread.
#[cold]
pub fn grow() {
    let chunk = Box::into_raw(Box::<Chunk>::new_uninit()).cast::<Chunk>();
    // SAFETY: just made, and never freed; nobody else knows of it yet, and each field is written once.
    let chunk = unsafe {
        let cells = (&raw mut (*chunk).cells).cast::<TaskGroup>();
        (0..CHUNK).for_each(|cell| cells.add(cell).write(TaskGroup::free()));
        (&raw mut (*chunk).before).write(std::ptr::null_mut());
        chunk
    };
    let mut all = FREE.lock();
    // SAFETY: as above.
    unsafe { (*chunk).before = std::mem::replace(&mut all.made, chunk) };
    // SAFETY: as above; from here on it is only shared.
    unsafe { &*chunk }.cells.iter().for_each(|group| push(&mut all.free, group));
}

/// The cell of a group that is over.
#[inline(always)]
pub(super) fn give_cell(here: &Here, group: &'static TaskGroup) {
    let Some(berth) = here.berth() else { return give_shared(group) };
    berth.counts(-1);
    // SAFETY: the calling thread's berth.
    let is_full = unsafe {
        berth.own(|own| {
            push(&mut own.free, group);
            own.count += 1;
            own.count > KEPT
        })
    };
    if is_full {
        share(berth);
    }
}

#[cold]
fn give_shared(group: &'static TaskGroup) {
    push(&mut FREE.lock().free, group);
    OTHERS_ALIVE.fetch_sub(1, Release);
}

#[cold]
fn share(berth: &Berth) {
    let mut free = FREE.lock();
    for _ in 0..KEPT / 2 {
        // SAFETY: the calling thread's berth, and its list.
        let one = unsafe { berth.own(|own| pop(&mut own.free).inspect(|_| own.count -= 1)) };
        one.into_iter().for_each(|group| push(&mut free.free, group));
    }
}

/// Groups that are held or have tasks left. A child of fork has none.
pub fn alive() -> u64 {
    if fork::forked() {
        return 0;
    }
    let sum: i64 = ALL.iter().map(|berth| berth.alive.load(Acquire)).sum();
    u64::try_from(sum + OTHERS_ALIVE.load(Acquire)).unwrap_or(0)
}
