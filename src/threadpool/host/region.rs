//! Regions: a loop shared among the calling thread and helpers from a pool.
//!
//! The caller opens a region, asks for as many helpers as the estimated work is worth, and works itself. Pieces are
//! claimed one by one from a counter. `Tokens` says when all pieces are done *and* no helper touches the region any
//! more; the last one out closes it and, if that is a helper, opens the gate on which the caller waits. The caller
//! waits only for pieces that some thread is running at that moment, never for a helper that has not come: those
//! find the region over, by its generation. So a region ends on any pool, also one that runs nothing, and may be
//! opened inside another region.
//!
//! Regions live in a fixed set in the pool; when all are in use, the loop runs in the caller.

use super::Job;
use crate::abi::weir_threadpool_flags as F;
use crate::base::{Error, Object, Ref, Result, time::Deadline};
use crate::sync::{Claim, Entry, Exit, Gate, Slots, Tokens};
use crate::threadpool::ThreadPool;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};

/// Most slots of a region: the caller and 63 helpers.
pub const MAX_SLOTS: usize = Slots::MAX;

/// What bringing work to another thread is taken to cost, in nanoseconds.
pub const DEFAULT_HOP_NS: u64 = 5_000;
/// What an item is taken to cost when nobody says.
const DEFAULT_ITEM_NS: u64 = 1_000;
/// How long the caller looks at the gate before it sleeps: the pieces it waits for are running.
const JOIN_SPIN_NS: u64 = 20_000;
/// Pieces per thread on a pool that balances by itself.
const PIECES: usize = 4;

/// What a region runs over, and what is known of it. Zero means "unknown", or "you choose".
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub items: usize,
    pub cost_ns: u64,
    pub grain: usize,
    pub max_slots: usize,
}

type Body<'a> = &'a (dyn Fn(Claim) -> Result<()> + Sync);

#[derive(Debug)]
struct Region {
    tokens: Tokens,
    gate: Gate,
    next: AtomicUsize,
    slots: Slots,
    failed: AtomicBool,
    error: Mutex<Option<Error>>,
    work: UnsafeCell<Work>,
}

#[derive(Clone, Copy)]
struct Work {
    body: Option<Body<'static>>,
    items: usize,
    piece: usize,
    pieces: usize,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Work({} items in {} pieces)", self.items, self.pieces)
    }
}

// SAFETY: `work` is written by the caller before `open` and read by those inside (`Tokens`); the body is Sync.
unsafe impl Sync for Region {}
// SAFETY: as above.
unsafe impl Send for Region {}

impl Region {
    fn new() -> Region {
        Region {
            tokens: Tokens::new(),
            gate: Gate::new(),
            next: AtomicUsize::new(0),
            slots: Slots::new(MAX_SLOTS),
            failed: AtomicBool::new(false),
            error: Mutex::new(None),
            work: UnsafeCell::new(Work { body: None, items: 0, piece: 1, pieces: 0 }),
        }
    }

    /// Runs pieces until none is left; gives how many.
    fn drain(&self) -> u32 {
        // SAFETY: the calling thread is inside, so the region is open and `work` is not written.
        let work = unsafe { *self.work.get() };
        let (Some(body), Some(slot)) = (work.body, self.slots.claim()) else { return 0 };
        let mut done = 0;
        loop {
            // ORDERING: Relaxed; the counter only divides, `Tokens` orders the work.
            let at = self.next.fetch_add(1, Relaxed);
            if at >= work.pieces {
                break;
            }
            if !self.failed.load(Relaxed) {
                let begin = at * work.piece;
                let end = (begin + work.piece).min(work.items);
                // SAFETY: each piece is drawn once from the counter, and the slot is this thread's until it is
                // given back.
                let claim = unsafe { Claim::new(begin, end, slot) };
                // A panic must not skip the count of pieces: others wait for it.
                let result = catch_unwind(AssertUnwindSafe(|| body(claim)));
                match result {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => self.fail(error),
                    Err(payload) => {
                        self.fail(Error::from_panic(&*payload));
                        std::mem::forget(payload);
                    }
                }
            }
            done += 1;
        }
        self.slots.give_back(slot);
        done
    }

    fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
        self.failed.store(true, Release);
    }
}

impl Job for Region {
    fn run(self: Arc<Self>, generation: u64, _pool: &Ref<ThreadPool>) {
        if self.tokens.enter(generation) == Entry::Inside {
            let done = self.drain();
            if self.tokens.leave(done) == Exit::Closed {
                self.gate.advance(1);
            }
        }
    }
}

/// A pool's regions.
#[derive(Debug)]
pub struct Regions {
    free: Slots,
    all: Box<[Arc<Region>]>,
}

const PLACES: usize = 32;

impl Default for Regions {
    fn default() -> Self {
        Regions { free: Slots::new(PLACES), all: (0..PLACES).map(|_| Arc::new(Region::new())).collect() }
    }
}

/// Runs `body` over all items and returns when all pieces have returned; the first error (or panic) wins and stops
/// pieces that have not begun.
pub fn parallel_for(
    pool: Option<&Ref<ThreadPool>>,
    span: &Span,
    body: &(dyn Fn(Claim) -> Result<()> + Sync),
) -> Result<()> {
    if span.items == 0 {
        return Ok(());
    }
    match pool.map(|pool| (pool, helpers(pool, span))) {
        Some((pool, helpers)) if helpers > 0 => shared(pool, span, helpers, body),
        _ => alone(span, body),
    }
}

fn alone(span: &Span, body: Body<'_>) -> Result<()> {
    // SAFETY: the only claim of this region.
    body(unsafe { Claim::new(0, span.items, 0) })
}

/// How many helpers the work is worth, and the pool can spare.
fn helpers(pool: &Object<ThreadPool>, span: &Span) -> usize {
    let item = if span.cost_ns == 0 { DEFAULT_ITEM_NS } else { span.cost_ns };
    let total = (span.items as u64).saturating_mul(item);
    let worth = (total / DEFAULT_HOP_NS).saturating_sub(1).min(MAX_SLOTS as u64 - 1) as usize;
    let pieces = span.items.div_ceil(span.grain.max(1));
    let slots = if span.max_slots == 0 { MAX_SLOTS } else { span.max_slots.min(MAX_SLOTS) };
    let wanted = worth.min(pieces - 1).min(slots - 1);
    if wanted == 0 || !pool.may_nest() {
        return 0;
    }
    wanted.min(pool.idle_threads())
}

fn shared(pool: &Ref<ThreadPool>, span: &Span, helpers: usize, body: Body<'_>) -> Result<()> {
    let Some(place) = pool.regions.free.claim() else { return alone(span, body) };
    let region = &pool.regions.all[place];
    let result = run(pool, region, span, helpers, body);
    pool.regions.free.give_back(place);
    result
}

fn run(pool: &Ref<ThreadPool>, region: &Arc<Region>, span: &Span, helpers: usize, body: Body<'_>) -> Result<()> {
    let threads = helpers + 1;
    let wanted = if pool.has_flag(F::WEIR_THREADPOOL_AUTO_BALANCING) { threads * PIECES } else { threads };
    let grain = span.grain.max(1);
    let piece = span.items.div_ceil(wanted).next_multiple_of(grain);
    let pieces = span.items.div_ceil(piece);
    // SAFETY: the place was claimed and its last use is closed, so nobody is inside. The body's lifetime is erased:
    // it is used only by those inside, and this function does not return before the region is closed.
    unsafe {
        let body = std::mem::transmute::<Body<'_>, Body<'static>>(body);
        *region.work.get() = Work { body: Some(body), items: span.items, piece, pieces };
    }
    region.next.store(0, Relaxed);
    region.failed.store(false, Relaxed);
    let closed = region.gate.reached() + 1;
    let generation = region.tokens.open(pieces as u32);

    let helpers = helpers.min(pieces - 1);
    if pool.can_spawn() {
        for _ in 0..helpers {
            let job = Arc::clone(region) as Arc<dyn Job>;
            if region.tokens.is_finished() || !pool.spawn(job, generation, span.cost_ns.saturating_mul(piece as u64), 0)
            {
                break;
            }
        }
    } else {
        // Blocks until its closures have returned; refused or not, the rest is done below.
        pool.spawn_bulk(Arc::clone(region) as Arc<dyn Job>, generation, helpers + 1);
    }
    let done = region.drain();
    if region.tokens.leave(done) == Exit::Open {
        region.gate.wait(closed, JOIN_SPIN_NS, Deadline::NEVER);
    }
    if !region.failed.load(Acquire) {
        return Ok(());
    }
    region.error.lock().unwrap_or_else(|e| e.into_inner()).take().map_or(Ok(()), Err)
}
