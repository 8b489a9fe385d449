//! A pool's regions: where those who share a loop draw its pieces. `parallel` says how a region comes and goes.

use super::help_wanted::HelpWanted;
use crate::base::time::now_ns;
use crate::base::{Error, Result};
use crate::sync::ambient::Lineage;
use crate::sync::{Claim, EventCount, Exit, Mutex, RunEntry, RunLatch, Slots};
use crate::threadpool::ranges::{Draw, Ranges};
use crate::threadpool::span::MAX_SLOTS;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};

pub(super) type Body<'a> = &'a (dyn Fn(Claim) -> Result<()> + Sync);
/// What runs once, after all pieces.
pub type Epilogue<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// The first members are what everybody who comes and goes writes: one line of the cache.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Region {
    pub(super) tokens: RunLatch,
    /// What the caller is inside of.
    pub(super) lineage: Lineage,
    pub(super) slots: Slots,
    pub(super) gate: EventCount,
    /// The pool whose region it is (`parallel`), set when it is first opened.
    pub(super) pool: AtomicPtr<()>,
    pub(super) failed: AtomicBool,
    pub(super) ranges: Ranges,
    pub(super) error: Mutex<Option<Error>>,
    pub(super) stamps: Stamps,
    pub(super) work: UnsafeCell<Option<Work>>,
}

/// Times of a sampled region, of `now_ns`.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    pub(super) last_arrival: AtomicU64,
    pub(super) last_end: AtomicU64,
}

#[derive(Clone, Copy)]
pub(super) struct Work {
    pub(super) body: Body<'static>,
    pub(super) epilogue: Option<Epilogue<'static>>,
    /// The items `first..end`, in units of `unit` items from `first` on.
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) unit: usize,
    pub(super) draw: Draw,
    pub(super) sampled: bool,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Work(items {}..{} by {}, {:?})", self.first, self.end, self.unit, self.draw)
    }
}

// SAFETY: `work` is written by the caller before `open` and read by those inside (`RunLatch`); the body is Sync.
unsafe impl Sync for Region {}
// SAFETY: as above.
unsafe impl Send for Region {}

impl Region {
    fn new(most_threads: usize) -> Region {
        Region {
            tokens: RunLatch::new(),
            lineage: Lineage::default(),
            slots: Slots::new(most_threads),
            gate: EventCount::new(),
            pool: AtomicPtr::new(std::ptr::null_mut()),
            ranges: Ranges::new(most_threads),
            failed: AtomicBool::new(false),
            error: Mutex::new(None),
            stamps: Stamps::default(),
            work: UnsafeCell::new(None),
        }
    }

    /// What a thread does that is inside and has claimed this slot.
    pub(super) fn drain_and_give_back(&self, slot: usize) -> u32 {
        let done = self.drain(slot);
        self.slots.give_back(slot);
        done
    }

    /// Draws and runs pieces until none is left; gives how many units that were.
    fn drain(&self, slot: usize) -> u32 {
        // SAFETY: the calling thread is inside, so the region is open and `work` is not written.
        let Some(work) = (unsafe { &*self.work.get() }) else { return 0 };
        if slot >= work.draw.team {
            // One more than the plan has homes for. Those below are all held, by threads that do the work.
            return 0;
        }
        let mut done = 0;
        while let Some((begin, end)) = self.ranges.draw(slot, work.draw) {
            if !self.failed.load(Relaxed) {
                let item = |unit: u32| (work.first + unit as usize * work.unit).min(work.end);
                // SAFETY: each unit is drawn once, and the slot is this thread's until it is given back.
                self.run_piece(work.body, unsafe { Claim::new(item(begin), item(end), slot) });
            }
            done += end - begin;
        }
        done
    }

    /// A panic must not skip the count of units: others wait for it.
    fn run_piece(&self, body: Body<'_>, claim: Claim) {
        match catch_unwind(AssertUnwindSafe(|| body(claim))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(error),
            Err(payload) => {
                self.fail(Error::from_panic(&*payload));
                std::mem::forget(payload);
            }
        }
    }

    fn fail(&self, error: Error) {
        self.error.lock().get_or_insert(error);
        self.failed.store(true, Release);
    }

    /// Leaves, with so many units done. The last one out runs the epilogue; true if that was this thread.
    pub(super) fn leave(&self, done: u32) -> bool {
        if self.tokens.leave(done) == Exit::Open {
            return false;
        }
        // SAFETY: the region is closed, and by this thread: `work` is its alone until it opens the gate or returns.
        let epilogue = unsafe { (*self.work.get()).as_ref().and_then(|work| work.epilogue) };
        if let Some(epilogue) = epilogue.filter(|_| !self.failed.load(Acquire)) {
            match catch_unwind(AssertUnwindSafe(epilogue)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.fail(error),
                Err(payload) => {
                    self.fail(Error::from_panic(&*payload));
                    std::mem::forget(payload);
                }
            }
        }
        true
    }

    /// Whether the work of this open region is to be timed.
    pub(super) fn is_sampled(&self) -> bool {
        // SAFETY: the calling thread is inside.
        unsafe { (*self.work.get()).as_ref().is_some_and(|work| work.sampled) }
    }
}

impl Region {
    /// A helper's part in whatever is open here; false if there was nothing left for it to do.
    pub(super) fn help(&self) -> bool {
        if self.tokens.enter(self.tokens.generation()) == RunEntry::Over {
            return false;
        }
        let _lineage = self.lineage.enter();
        let sampled = self.is_sampled();
        if sampled {
            self.stamps.last_arrival.fetch_max(now_ns(), Relaxed);
        }
        let done = self.slots.claim().map_or(0, |slot| self.drain_and_give_back(slot));
        if sampled {
            self.stamps.last_end.fetch_max(now_ns(), Relaxed);
        }
        if self.leave(done) {
            self.gate.advance(1);
        }
        done > 0
    }
}

/// A pool's regions.
#[derive(Debug)]
pub struct Regions {
    pub(super) free: Slots,
    pub(super) all: Box<[Region]>,
    /// Regions that were worth more helpers than there were.
    pub(super) board: HelpWanted,
    pub(super) most_threads: usize,
}

pub(super) const PLACES: usize = 32;

/// The largest team that there can be, if so many threads are wanted.
pub(super) fn most_threads(wanted: usize) -> usize {
    wanted.clamp(2, MAX_SLOTS)
}

impl Regions {
    /// For teams of up to so many threads, the caller among them.
    pub fn new(wanted: usize) -> Regions {
        let most_threads = most_threads(wanted);
        let all = (0..PLACES).map(|_| Region::new(most_threads)).collect();
        Regions { free: Slots::new(PLACES), all, board: HelpWanted::new(), most_threads }
    }

    /// Largest team.
    pub fn most_threads(&self) -> usize {
        self.most_threads
    }
}
