//! A pool's regions, in which threads share a loop. `parallel` describes a region's life.

use super::help_wanted::HelpWanted;
use crate::base::time::now_ns;
use crate::base::{Error, Result};
use crate::sync::ambient::Lineage;
use crate::sync::{Claim, EventCount, Exit, Mutex, RunEntry, RunLatch, Slots};
use crate::threadpool::ranges::{Draw, Ranges};
use crate::threadpool::span::MAX_SLOTS;
use crate::trace::{self, Tape, TraceEvent, TraceRecord, Traces};
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};

pub(super) type Body<'a> = &'a (dyn Fn(Claim) -> Result<()> + Sync);
/// Runs once, after all pieces.
pub type Epilogue<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// The first members are written by every thread that enters or leaves: one cache line.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct ParallelRegion {
    pub(super) latch: RunLatch,
    /// The work that the caller is inside of.
    pub(super) lineage: Lineage,
    pub(super) slots: Slots,
    pub(super) closings: EventCount,
    /// The pool whose region it is (`parallel`), set when it is first opened.
    pub(super) pool: AtomicPtr<()>,
    pub(super) failed: AtomicBool,
    pub(super) ranges: Ranges,
    pub(super) error: Mutex<Option<Error>>,
    pub(super) stamps: Stamps,
    pub(super) work: UnsafeCell<Option<RegionWork>>,
    /// The traces that it is of.
    pub(super) traces: Traces,
}

/// Times of a sampled region, of `now_ns`.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    pub(super) last_arrival: AtomicU64,
    pub(super) last_end: AtomicU64,
}

#[derive(Clone, Copy)]
pub(super) struct RegionWork {
    pub(super) body: Body<'static>,
    pub(super) epilogue: Option<Epilogue<'static>>,
    /// The items `first..end`, in units of `unit` items from `first` on.
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) unit: usize,
    pub(super) draw: Draw,
    pub(super) sampled: bool,
}

impl std::fmt::Debug for RegionWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Work(items {}..{} by {}, {:?})", self.first, self.end, self.unit, self.draw)
    }
}

// SAFETY: `work` is written by the caller before `open` and read by threads inside (`RunLatch`); the body is Sync.
unsafe impl Sync for ParallelRegion {}
// SAFETY: as above.
unsafe impl Send for ParallelRegion {}

impl ParallelRegion {
    fn new(most_threads: usize) -> ParallelRegion {
        ParallelRegion {
            latch: RunLatch::new(),
            lineage: Lineage::default(),
            slots: Slots::new(most_threads),
            closings: EventCount::new(),
            pool: AtomicPtr::new(std::ptr::null_mut()),
            ranges: Ranges::new(most_threads),
            failed: AtomicBool::new(false),
            error: Mutex::new(None),
            stamps: Stamps::default(),
            work: UnsafeCell::new(None),
            traces: Traces::default(),
        }
    }

    /// The work of a thread that is inside and has claimed this slot.
    pub(super) fn drain_and_give_back(&self, slot: usize) -> u32 {
        let done = self.drain(slot);
        self.slots.give_back(slot);
        done
    }

    /// Draws and runs pieces until none is left; gives their number of units.
    fn drain(&self, slot: usize) -> u32 {
        // SAFETY: the calling thread is inside, so the region is open and `work` is not written.
        let Some(work) = (unsafe { &*self.work.get() }) else { return 0 };
        if slot >= work.draw.team {
            // More threads than the plan has homes for. All homes are held, by threads that do the work.
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

    /// Leaves, with `done` units done. The last one out runs the epilogue; true if that was this thread.
    pub(super) fn leave(&self, done: u32) -> bool {
        if self.latch.leave(done) == Exit::Open {
            return false;
        }
        // SAFETY: this thread has closed the region: `work` is its alone until it advances the event count or returns.
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

impl ParallelRegion {
    #[cold]
    fn help_traced(&self) -> u32 {
        let (told, number) = (self.traces.told(), self.traces.frame());
        told.region_begin(number, true);
        let tape = Tape::open(&self.traces);
        let (begin, working) = (trace::now(), tape.work());
        let done = self.slots.claim().map_or(0, |slot| self.drain_and_give_back(slot));
        drop(working);
        let length = trace::now().wrapping_sub(begin);
        tape.record(TraceRecord { length, other: done, ..TraceRecord::new(TraceEvent::Help, tape.frame(), begin) });
        told.region_end(number, true);
        done
    }

    /// A helper's part in the region open here; false if there was nothing left to do.
    pub(super) fn help(&self) -> bool {
        self.help_if(|_| true)
    }

    /// The same, if the work that its caller is inside of is the wanted one.
    pub(super) fn help_if(&self, is_wanted: impl FnOnce(&Lineage) -> bool) -> bool {
        if self.latch.enter(self.latch.generation()) == RunEntry::Over {
            return false;
        }
        if !is_wanted(&self.lineage) {
            if self.leave(0) {
                self.closings.advance(1);
            }
            return false;
        }
        let _lineage = self.lineage.enter();
        let sampled = self.is_sampled();
        if sampled {
            self.stamps.last_arrival.fetch_max(now_ns(), Relaxed);
        }
        let done = if self.traces.are_there() {
            self.help_traced()
        } else {
            self.slots.claim().map_or(0, |slot| self.drain_and_give_back(slot))
        };
        if sampled {
            self.stamps.last_end.fetch_max(now_ns(), Relaxed);
        }
        if self.leave(done) {
            self.closings.advance(1);
        }
        done > 0
    }
}

/// A pool's regions.
#[derive(Debug)]
pub struct ParallelRegions {
    pub(super) free: Slots,
    pub(super) all: Box<[ParallelRegion]>,
    /// Regions that are worth more helpers than they got.
    pub(super) help_wanted: HelpWanted,
    pub(super) most_threads: usize,
}

pub(super) const PLACES: usize = 32;

/// The largest possible team, if so many threads are wanted.
pub(super) fn most_threads(wanted: usize) -> usize {
    wanted.clamp(2, MAX_SLOTS)
}

impl ParallelRegions {
    /// For teams of up to so many threads, the caller among them.
    pub fn new(wanted: usize) -> ParallelRegions {
        let most_threads = most_threads(wanted);
        let all = (0..PLACES).map(|_| ParallelRegion::new(most_threads)).collect();
        ParallelRegions { free: Slots::new(PLACES), all, help_wanted: HelpWanted::new(), most_threads }
    }

    /// Largest team.
    pub fn most_threads(&self) -> usize {
        self.most_threads
    }
}
