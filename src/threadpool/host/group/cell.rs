//! A group of tasks: its pending tasks, its parent and pool, and how it was stopped.
//!
//! Groups live in type-stable cells: a cell is reused for the next group, and never for anything else. So a thread that
//! looks at a record in a deque may read the record's group, too, before it has taken the record; the values are valid
//! if the record was still there afterwards.

use super::crew::Crew;
use super::tally::GroupTally;
use crate::base::object::tag;
use crate::base::{Error, Object, process};
use crate::sync::Mutex;
use crate::sync::ambient::Lineage;
use crate::threadpool::ThreadPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

/// Receives the completion of a group.
pub trait GroupListener: Send + Sync {
    /// Called once, with the error that stopped the tasks, if any.
    fn done(&self, error: Option<&Error>);
    /// It was accepted and will be called.
    fn adopt(&self);
}

/// The holder of a group's pool: the group itself, or the task in which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Hold {
    Own = 0,
    Lent = 1,
    /// Lent, and released on another thread than the one that made it.
    Left = 2,
}

/// A group. The first two members are those of every object (`base::Object`).
#[repr(C, align(128))]
pub struct TaskGroup {
    tag: AtomicU32,
    born: AtomicU32,
    pub(super) stop: AtomicI32,
    /// The value of `STOPS` when no ancestor was found to stop this group.
    seen_stops: AtomicU32,
    pub(super) pool: AtomicPtr<Object<ThreadPool>>,
    pub(super) crew: AtomicPtr<Crew>,
    /// The group in whose task this one was made, and that cell's use count then.
    parent: AtomicPtr<TaskGroup>,
    parent_use: AtomicU32,
    uses: AtomicU32,
    pub(super) depth: AtomicU32,
    pub(super) hold: AtomicU32,
    /// The berth of the thread that made it, + 1.
    pub(super) home: AtomicU32,
    /// The next free cell; for a group that was lent its pool: the one made before.
    pub(super) next: AtomicPtr<TaskGroup>,
    /// For a group that was lent its pool: the one made after.
    pub(super) later: AtomicPtr<TaskGroup>,
    /// Its number among those of its thread.
    pub(super) serial: AtomicU64,
    pub(super) lineage: Lineage,
    pub(super) notice: Mutex<Option<Arc<dyn GroupListener>>>,
    /// On a cache line apart from fields that are only read while tasks run.
    pub(super) tally: OwnLine,
}

#[repr(align(128))]
pub(super) struct OwnLine(pub(super) GroupTally);

impl std::ops::Deref for OwnLine {
    type Target = GroupTally;

    #[inline(always)]
    fn deref(&self) -> &GroupTally {
        &self.0
    }
}

impl std::fmt::Debug for TaskGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({:?})", self.tally.look())
    }
}

/// How often any group was stopped. If it has not changed, a group's ancestors need not be checked.
static STOPS: AtomicU32 = AtomicU32::new(1);

const FREE: u32 = 0x7765_0000;

impl TaskGroup {
    /// In error texts.
    pub const NAME: &'static str = "task_group";

    pub(super) fn free() -> TaskGroup {
        TaskGroup {
            tag: AtomicU32::new(FREE),
            born: AtomicU32::new(0),
            stop: AtomicI32::new(0),
            seen_stops: AtomicU32::new(0),
            pool: AtomicPtr::default(),
            crew: AtomicPtr::default(),
            parent: AtomicPtr::default(),
            parent_use: AtomicU32::new(0),
            uses: AtomicU32::new(0),
            depth: AtomicU32::new(0),
            hold: AtomicU32::new(0),
            home: AtomicU32::new(0),
            next: AtomicPtr::default(),
            later: AtomicPtr::default(),
            serial: AtomicU64::new(0),
            lineage: Lineage::default(),
            notice: Mutex::new(None),
            tally: OwnLine(GroupTally::new()),
        }
    }

    /// Whether it was made by a process that this one was forked from.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.born.load(Relaxed) != process::generation()
    }

    /// A cell becomes a group. ORDERING: Relaxed throughout; others get the group by the handle or by a record, which
    /// order it, and a thread that looks at a record earlier checks whether it was still there.
    ///
    /// # Safety
    /// The pool and the crew live as long as the group and its tasks.
    #[inline]
    pub(super) unsafe fn begin(
        &self,
        pool: *const Object<ThreadPool>,
        crew: *const Crew,
        parent: Option<&TaskGroup>,
        home: u32,
    ) {
        self.born.store(process::generation(), Relaxed);
        self.stop.store(0, Relaxed);
        // ORDERING: Acquire, before the look at the parent: a stop that is not seen there changes the number.
        let stops = STOPS.load(Acquire);
        let is_known = parent.is_some_and(|parent| parent.is_known_to_go_on(stops));
        self.seen_stops.store(if is_known { stops } else { 0 }, Relaxed);
        self.pool.store(pool.cast_mut(), Relaxed);
        self.crew.store(crew.cast_mut(), Relaxed);
        self.home.store(home, Relaxed);
        match parent {
            None => {
                self.parent.store(std::ptr::null_mut(), Relaxed);
                self.depth.store(0, Relaxed);
            }
            Some(parent) => {
                self.parent.store(std::ptr::from_ref(parent).cast_mut(), Relaxed);
                self.parent_use.store(parent.uses.load(Relaxed), Relaxed);
                self.depth.store(parent.depth.load(Relaxed) + 1, Relaxed);
            }
        }
        self.lineage.note();
        self.tally.begin();
        self.tag.store(tag::TASK_GROUP, Relaxed);
    }

    /// Whether neither this group nor an ancestor was found stopped, and no group was stopped since.
    #[inline]
    fn is_known_to_go_on(&self, stops: u32) -> bool {
        let is_seen = self.parent.load(Relaxed).is_null() || self.seen_stops.load(Relaxed) == stops;
        is_seen && self.stop.load(Relaxed) == 0
    }

    /// The group is over, and nobody holds it.
    #[inline]
    pub(super) fn end(&self) {
        self.tag.store(FREE, Relaxed);
        // ORDERING: Release; a thread that sees the new number in `parent` knows that the earlier group is gone.
        self.uses.store(self.uses.load(Relaxed).wrapping_add(1), Release);
    }

    #[inline]
    pub(super) fn crew(&self) -> &Crew {
        // SAFETY: set by `begin`; it belongs to the pool, which the group keeps, or lives for ever.
        unsafe { &*self.crew.load(Relaxed) }
    }

    /// The pool, if the group has one.
    #[inline]
    pub(super) fn pool(&self) -> Option<&Object<ThreadPool>> {
        // SAFETY: set by `begin`; the group keeps the pool, or the task does in which it was made.
        unsafe { self.pool.load(Relaxed).as_ref() }
    }

    /// The group in whose task this one was made, as long as that is not over.
    #[inline]
    fn parent(&self) -> Option<&TaskGroup> {
        // SAFETY: cells stay groups for ever.
        let parent = unsafe { self.parent.load(Relaxed).as_ref() }?;
        // ORDERING: Acquire pairs with the Release in `end`.
        (parent.uses.load(Acquire) == self.parent_use.load(Relaxed)).then_some(parent)
    }

    /// Whether `self` is `above` or was made inside of its tasks, however deep.
    #[inline]
    pub(super) fn is_within(&self, above: &TaskGroup) -> bool {
        std::ptr::eq(self, above) || self.is_below(above)
    }

    fn is_below(&self, above: &TaskGroup) -> bool {
        let depth = above.depth.load(Relaxed);
        let mut at = self;
        while at.depth.load(Relaxed) > depth {
            let Some(parent) = at.parent() else { return false };
            at = parent;
        }
        std::ptr::eq(at, above)
    }

    /// Whether it was made in a task of this group.
    #[inline]
    pub(super) fn is_made_in(&self, group: *const TaskGroup) -> bool {
        std::ptr::eq(self.parent.load(Relaxed), group) && self.parent().is_some()
    }

    /// Whether tasks that have not begun are to be skipped.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        if self.stop.load(Relaxed) != 0 {
            return true;
        }
        // ORDERING: Acquire pairs with the Release in `stop_with`.
        let stops = STOPS.load(Acquire);
        if self.parent.load(Relaxed).is_null() || self.seen_stops.load(Relaxed) == stops {
            return false;
        }
        self.is_stopped_above(stops)
    }

    #[cold]
    fn is_stopped_above(&self, stops: u32) -> bool {
        let mut at = self.parent();
        while let Some(above) = at {
            if above.stop.load(Relaxed) != 0 {
                let _first = self.stop.compare_exchange(0, crate::base::Code::Cancelled.status(), Relaxed, Relaxed);
                return true;
            }
            at = above.parent();
        }
        self.seen_stops.store(stops, Relaxed);
        false
    }

    /// The first status wins.
    #[cold]
    pub(super) fn stop_with(&self, status: i32) {
        if self.stop.compare_exchange(0, status, Relaxed, Relaxed).is_ok() {
            STOPS.fetch_add(1, Release);
        }
    }

    /// Takes the status that stopped it.
    #[inline]
    pub(super) fn take_stop(&self) -> i32 {
        if self.stop.load(Relaxed) == 0 {
            return 0;
        }
        self.seen_stops.store(0, Relaxed);
        self.stop.swap(0, Relaxed)
    }
}
