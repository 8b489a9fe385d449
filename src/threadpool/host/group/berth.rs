//! Where a thread lays down tasks: a deque, which it has from its first task until it ends, for the groups of all
//! pools; and what it keeps beside that: free cells, and the groups that were lent their pools.

use super::cell::{Group, Hold};
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

/// What only the owner touches.
pub(super) struct Own {
    /// What is expected of each record that lies in the deque, in nanoseconds.
    pub(super) cost_ns: [f32; LEN],
    /// The sum of that, as far as it is known here, since somebody was last called.
    pub(super) backlog_ns: f32,
    /// Free cells, and how many.
    free: *mut Group,
    count: usize,
    /// The newest group that was lent its pool, and how many have been.
    pub(super) lent: *mut Group,
    pub(super) lends: u64,
}

// SAFETY: `own` is touched by the thread alone that holds the berth.
unsafe impl Sync for Berth {}

static ALL: [Berth; BERTHS] = [const { Berth::new() }; BERTHS];
static HELD: Slots = Slots::new(BERTHS);

/// Of groups that were made or ended by threads without a berth.
static OTHERS_ALIVE: AtomicI64 = AtomicI64::new(0);

/// Cells kept at one berth at most; half of them go when there are more.
const KEPT: usize = 128;
/// Cells made at a time.
const CHUNK: usize = 16;

struct Cells {
    free: *mut Group,
    /// All that were made, so that a search for leaks finds them.
    made: *mut Chunk,
}

#[repr(C)]
struct Chunk {
    cells: [Group; CHUNK],
    before: *mut Chunk,
}

// SAFETY: lists of cells that nobody else has.
unsafe impl Send for Cells {}
static FREE: Global<Cells> = Global::new(|| Cells { free: std::ptr::null_mut(), made: std::ptr::null_mut() });

/// What a thread is doing with groups. Links of the chain of tasks on its stack.
pub(super) struct Frame {
    pub(super) group: *const Group,
    pub(super) before: *const Frame,
}

/// The calling thread, as groups see it.
pub(super) struct Here {
    berth: Cell<Option<&'static Berth>>,
    /// The innermost task on its stack.
    pub(super) frame: Cell<*const Frame>,
    /// The crew that it helps, with nothing below that waits.
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

/// With the calling thread.
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

    /// The thread's berth; None if all are taken.
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
    pub(super) fn group(&self) -> Option<&Group> {
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

    /// Does something with what is the owner's. Not from inside of another such call.
    ///
    /// # Safety
    /// The calling thread holds the berth (`Here::berth`).
    #[inline(always)]
    pub(super) unsafe fn own<R>(&self, f: impl FnOnce(&mut Own) -> R) -> R {
        // SAFETY: as demanded of the caller; `f` is of this module and calls nothing that comes here again.
        f(unsafe { &mut *self.own.get() })
    }

    #[inline(always)]
    fn counts(&self, by: i64) {
        self.alive.store(self.alive.load(Relaxed) + by, Release);
    }
}

impl Own {
    /// One more that was lent its pool.
    #[inline(always)]
    pub(super) fn lend(&mut self, group: &'static Group) {
        let before = self.lent;
        self.lends += 1;
        group.serial.store(self.lends, Relaxed);
        group.hold.store(Hold::Lent as u32, Relaxed);
        group.next.store(before, Relaxed);
        group.later.store(std::ptr::null_mut(), Relaxed);
        // SAFETY: cells stay groups for ever; links are touched by the owner alone.
        if let Some(before) = unsafe { before.as_ref() } {
            before.later.store(std::ptr::from_ref(group).cast_mut(), Relaxed);
        }
        self.lent = std::ptr::from_ref(group).cast_mut();
    }

    /// Off the list of those who were lent their pools.
    #[inline(always)]
    pub(super) fn unlink(&mut self, group: &Group) {
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

/// Takes cells off a list, and says where it goes on.
///
/// # Safety
/// The list is the caller's.
unsafe fn pop(list: &mut *mut Group) -> Option<&'static Group> {
    // SAFETY: cells stay groups for ever.
    let group = unsafe { list.as_ref() }?;
    *list = group.next.load(Relaxed);
    Some(group)
}

fn push(list: &mut *mut Group, group: &'static Group) {
    group.next.store(*list, Relaxed);
    *list = std::ptr::from_ref(group).cast_mut();
}

/// A free cell, which counts as alive from now on. None: `grow` makes more.
#[inline(always)]
pub(super) fn take_cell(here: &Here) -> Option<&'static Group> {
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
fn take_shared(here: &Here) -> Option<&'static Group> {
    let mut free = FREE.lock();
    // SAFETY: the list is the lock's.
    let first = unsafe { pop(&mut free.free) }?;
    let Some(berth) = here.berth() else {
        OTHERS_ALIVE.fetch_add(1, Release);
        return Some(first);
    };
    berth.counts(1);
    // Some more, so that the lock is rare.
    for _ in 1..CHUNK {
        // SAFETY: the list is the lock's, and the berth the calling thread's.
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

/// Makes cells, for ever. One by one where they stay: all of them are too much for the stack of a small thread.
#[cold]
pub fn grow() {
    let chunk = Box::into_raw(Box::<Chunk>::new_uninit()).cast::<Chunk>();
    // SAFETY: just made, and never freed; nobody else knows of it yet, and each field is written once.
    let chunk = unsafe {
        let cells = (&raw mut (*chunk).cells).cast::<Group>();
        (0..CHUNK).for_each(|cell| cells.add(cell).write(Group::free()));
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
pub(super) fn give_cell(here: &Here, group: &'static Group) {
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
fn give_shared(group: &'static Group) {
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
