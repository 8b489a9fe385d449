//! Host functions as the rooms see them: tasks, range functions, release callbacks.

use super::handle::{Handle, lend};
use crate::abi::{weir_box_fn, weir_destroy_fn, weir_epilogue_fn, weir_parallel_hint, weir_range_fn};
use crate::base::{Error, Ref, Result};
use crate::kernel::{KernelContext, Task};
use crate::sync::{Claim, ambient};
use crate::threadpool::{self, BoxBody, Epilogue, Grid, HostCall, Level, MAX_RANK, Span, ThreadPool};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// A release callback. It is called when this is dropped, if it was adopted before: while a creation can still fail,
/// the host keeps its context.
#[derive(Debug)]
pub(super) struct Destroy {
    f: weir_destroy_fn,
    ctx: *mut c_void,
    adopted: AtomicBool,
}

// SAFETY: the host promises that its callback may run on any thread.
unsafe impl Send for Destroy {}
// SAFETY: as above.
unsafe impl Sync for Destroy {}

impl Destroy {
    pub(super) fn new(f: weir_destroy_fn, ctx: *mut c_void) -> Destroy {
        Destroy { f, ctx, adopted: AtomicBool::new(false) }
    }

    /// From now on the library releases `ctx`. ORDERING: Release pairs with the Acquire in `drop`.
    pub(super) fn adopt(&self) {
        self.adopted.store(true, Release);
    }
}

impl Drop for Destroy {
    fn drop(&mut self) {
        if let Some(f) = self.f.filter(|_| self.adopted.load(Acquire)) {
            // SAFETY: the host's function with its own context, once.
            ambient::call(|| unsafe { f(self.ctx) });
        }
    }
}

/// A host function without tensors.
pub(super) struct HostTask {
    call: HostCall,
    destroy: Destroy,
}

impl HostTask {
    pub(super) fn new(
        f: unsafe extern "C" fn(*mut c_void) -> i32,
        arg: *mut c_void,
        destroy: weir_destroy_fn,
    ) -> Arc<HostTask> {
        // SAFETY: the host promises that its function may run on any thread and does not unwind.
        let call = unsafe { HostCall::new(f, arg) };
        Arc::new(HostTask { call, destroy: Destroy::new(destroy, arg) })
    }
}

impl Task for HostTask {
    fn run(&self) -> Result<()> {
        match self.call.run() {
            0 => Ok(()),
            status => Err(self.call.failed(status)),
        }
    }

    fn call(&self) -> Option<HostCall> {
        Some(self.call)
    }

    fn adopt(&self) {
        self.destroy.adopt();
    }
}

/// A host's range function with its argument.
#[derive(Clone, Copy)]
struct HostRange {
    f: unsafe extern "C" fn(*mut c_void, i64, i64, i32) -> i32,
    arg: *mut c_void,
}

// SAFETY: the host promises that its function may run on several threads at once.
unsafe impl Send for HostRange {}
// SAFETY: as above.
unsafe impl Sync for HostRange {}

impl HostRange {
    fn call(self, claim: &Claim) -> Result<()> {
        // SAFETY: the host's function with its own argument; the numbers are within what the host gave.
        let call = || unsafe { (self.f)(self.arg, claim.begin() as i64, claim.end() as i64, claim.slot() as i32) };
        match ambient::call(call) {
            0 => Ok(()),
            status => Err(Error::from_status(
                status,
                format_args!("the range function, on items {} to {},", claim.begin(), claim.end()),
            )),
        }
    }
}

/// A host's box function with its argument, and the rank of its region.
#[derive(Clone, Copy)]
struct HostBox {
    f: unsafe extern "C" fn(*mut c_void, *const i64, *const i64, i32) -> i32,
    arg: *mut c_void,
    rank: usize,
}

// SAFETY: the host promises that its function may run on several threads at once.
unsafe impl Send for HostBox {}
// SAFETY: as above.
unsafe impl Sync for HostBox {}

impl HostBox {
    fn call(self, begin: &[i64], end: &[i64], slot: usize) -> Result<()> {
        // SAFETY: the host's function with its own argument; both arrays have `rank` numbers.
        match ambient::call(|| unsafe { (self.f)(self.arg, begin.as_ptr(), end.as_ptr(), slot as i32) }) {
            0 => Ok(()),
            status => Err(Error::from_status(
                status,
                format_args!("the box function, on {:?} to {:?},", &begin[..self.rank], &end[..self.rank]),
            )),
        }
    }
}

/// A host's epilogue with its argument.
#[derive(Clone, Copy)]
struct HostEpilogue {
    f: unsafe extern "C" fn(*mut c_void) -> i32,
    arg: *mut c_void,
}

// SAFETY: the host promises that its function may run on any thread.
unsafe impl Send for HostEpilogue {}
// SAFETY: as above.
unsafe impl Sync for HostEpilogue {}

impl HostEpilogue {
    fn call(self) -> Result<()> {
        // SAFETY: the host's function with its own argument.
        match ambient::call(|| unsafe { (self.f)(self.arg) }) {
            0 => Ok(()),
            status => Err(Error::from_status(status, "the epilogue")),
        }
    }
}

/// Where a region runs: on a pool, or in a kernel's call.
pub(super) enum RegionPlace<'a> {
    Pool(Option<&'a Ref<ThreadPool>>),
    Kernel(&'a KernelContext<'a>),
}

/// A checked hint.
#[derive(Clone, Copy, Default)]
struct Hint {
    cost_ns: f32,
    grain: usize,
    max_slots: usize,
    epilogue: weir_epilogue_fn,
}

impl Hint {
    #[inline]
    fn new(hint: Option<&weir_parallel_hint>) -> Result<Hint> {
        let Some(hint) = hint else { return Ok(Hint::default()) };
        let legal = hint.flags == 0
            && hint.cost_ns.is_finite()
            && hint.cost_ns >= 0.0
            && hint.grain >= 0
            && hint.max_slots >= 0;
        if !legal {
            return Err(Hint::refusal(hint));
        }
        Ok(Hint {
            cost_ns: hint.cost_ns as f32,
            grain: hint.grain as usize,
            max_slots: hint.max_slots as usize,
            epilogue: hint.epilogue,
        })
    }

    #[cold]
    fn refusal(hint: &weir_parallel_hint) -> Error {
        if hint.flags != 0 {
            return Error::invalid(format!("hint->flags has unknown bits {:#x} (known: 0x0)", hint.flags));
        }
        Error::invalid(match hint {
            hint if hint.grain < 0 => format!("hint->grain is {}, expected 0 or more", hint.grain),
            hint if hint.max_slots < 0 => format!("hint->max_slots is {}, expected 0 or more", hint.max_slots),
            hint => format!("hint->cost_ns is {}, expected a finite number of 0 or more", hint.cost_ns),
        })
    }

    fn epilogue(&self, arg: *mut c_void) -> Option<HostEpilogue> {
        self.epilogue.map(|f| HostEpilogue { f, arg })
    }
}

/// Runs a host's range function.
#[inline]
pub(super) fn run_region(
    place: &RegionPlace<'_>,
    n: i64,
    hint: Option<&weir_parallel_hint>,
    f: weir_range_fn,
    arg: *mut c_void,
) -> Result<()> {
    let items = usize::try_from(n).map_err(|_| Error::out_of_range(format!("n is {n}, expected 0 or more")))?;
    let hint = Hint::new(hint)?;
    let range = HostRange { f: f.ok_or_else(|| Error::null("fn"))?, arg };
    let level = match place {
        RegionPlace::Pool(None) => None,
        _ => (hint.cost_ns <= 0.0).then(Level::of_caller),
    };
    let span = Span {
        items,
        cost_ns: hint.cost_ns,
        grain: hint.grain,
        max_slots: hint.max_slots,
        site: level.map_or(range.f as usize, |level| level.site(range.f as usize)),
        coarse: false,
    };
    let last = hint.epilogue(arg).map(|epilogue| move || epilogue.call());
    let last = last.as_ref().map(|last| last as Epilogue<'_>);
    let body = |claim: Claim| match level {
        Some(level) => level.within(|| range.call(&claim)),
        None => range.call(&claim),
    };
    match place {
        RegionPlace::Pool(pool) => {
            threadpool::parallel_for_then(*pool, &span, &body, last)?;
            pool.map_or(Ok(()), |pool| pool.intact())
        }
        RegionPlace::Kernel(context) => context.parallel_for_then(&span, &body, last),
    }
}

/// Runs a host's box function.
///
/// # Safety
/// `extents` and `tile` are NULL or have `rank` numbers.
pub(super) unsafe fn run_boxes(
    place: &RegionPlace<'_>,
    rank: i32,
    (extents, tile): (*const i64, *const i64),
    hint: Option<&weir_parallel_hint>,
    f: weir_box_fn,
    arg: *mut c_void,
) -> Result<()> {
    let rank = usize::try_from(rank)
        .ok()
        .filter(|rank| (1..=MAX_RANK).contains(rank))
        .ok_or_else(|| Error::invalid(format!("rank is {rank}, expected 1 to {MAX_RANK}")))?;
    if extents.is_null() {
        return Err(Error::null("extents"));
    }
    let hint = Hint::new(hint)?;
    if hint.grain != 0 {
        return Err(Error::invalid(format!("hint->grain is {}, expected 0: the tile is the grain", hint.grain)));
    }
    // SAFETY: as demanded of the caller.
    let (extents, tile) = unsafe {
        let tile = (!tile.is_null()).then(|| std::slice::from_raw_parts(tile, rank));
        (std::slice::from_raw_parts(extents, rank), tile)
    };
    let boxes = HostBox { f: f.ok_or_else(|| Error::null("fn"))?, arg, rank };
    let grid = Grid::new(extents, tile, hint.cost_ns)?;
    let last = hint.epilogue(arg).map(|epilogue| move || epilogue.call());
    let last = last.as_ref().map(|last| last as Epilogue<'_>);
    let body: BoxBody<'_> = &|low, high, slot| boxes.call(low, high, slot);
    match place {
        RegionPlace::Pool(pool) => {
            threadpool::parallel_nd(*pool, &grid, hint.cost_ns, hint.max_slots, body, last)?;
            pool.map_or(Ok(()), |pool| pool.intact())
        }
        RegionPlace::Kernel(context) => context.parallel_nd(&grid, hint.cost_ns, hint.max_slots, body, last),
    }
}

/// A pool for the length of a call, without touching its count. Fails if it is closed.
///
/// # Safety
/// The handle is NULL or the host's own, and outlives the call.
pub(super) unsafe fn borrow_pool<H: Handle<Inner = ThreadPool>>(
    pool: *const H,
) -> Result<Option<ManuallyDrop<Ref<ThreadPool>>>> {
    if pool.is_null() {
        return Ok(None);
    }
    // SAFETY: as demanded of the caller.
    let pool = unsafe { lend(pool, "pool") }?;
    pool.usable()?;
    Ok(Some(pool))
}
