//! Host functions as the rooms see them: tasks, range functions, release callbacks.

use super::handle::{Handle, borrow_opt};
use crate::abi::{weir_destroy_fn, weir_parallel_hint, weir_range_fn};
use crate::base::{Error, Object, Ref, Result};
use crate::kernel::Task;
use crate::sync::Claim;
use crate::threadpool::{self, Span, ThreadPool};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// A release callback. It is called when this is dropped, if it was adopted before: while a creation can still
/// fail, the host keeps what it has.
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

    /// From now on `ctx` is the library's to release. ORDERING: Release pairs with the Acquire in `drop`.
    pub(super) fn adopt(&self) {
        self.adopted.store(true, Release);
    }
}

impl Drop for Destroy {
    fn drop(&mut self) {
        if let Some(f) = self.f.filter(|_| self.adopted.load(Acquire)) {
            // SAFETY: the host's function with its own context, once.
            unsafe { f(self.ctx) }
        }
    }
}

/// A host function without tensors.
pub(super) struct HostTask {
    f: unsafe extern "C" fn(*mut c_void) -> i32,
    arg: *mut c_void,
    destroy: Destroy,
}

// SAFETY: the host promises that its function may run on any thread.
unsafe impl Send for HostTask {}
// SAFETY: as above.
unsafe impl Sync for HostTask {}

impl HostTask {
    pub(super) fn new(
        f: unsafe extern "C" fn(*mut c_void) -> i32,
        arg: *mut c_void,
        destroy: weir_destroy_fn,
    ) -> Arc<HostTask> {
        Arc::new(HostTask { f, arg, destroy: Destroy::new(destroy, arg) })
    }
}

impl Task for HostTask {
    fn run(&self) -> Result<()> {
        // SAFETY: the host's function with its own argument.
        match unsafe { (self.f)(self.arg) } {
            0 => Ok(()),
            status => Err(Error::from_status(status, "the host's function")),
        }
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
        match unsafe { (self.f)(self.arg, claim.begin() as i64, claim.end() as i64, claim.slot() as i32) } {
            0 => Ok(()),
            status => Err(Error::from_status(
                status,
                format_args!("the range function, on items {} to {},", claim.begin(), claim.end()),
            )),
        }
    }
}

/// A checked region.
pub(super) fn region(n: i64, hint: Option<&weir_parallel_hint>) -> Result<Span> {
    let items = usize::try_from(n).map_err(|_| Error::out_of_range(format!("n is {n}, expected 0 or more")))?;
    let Some(hint) = hint else { return Ok(Span { items, ..Span::default() }) };
    let positive = |value: i64, what: &str| {
        usize::try_from(value).map_err(|_| Error::invalid(format!("hint->{what} is {value}, expected 0 or more")))
    };
    if hint.flags != 0 {
        return Err(Error::invalid(format!("hint->flags has unknown bits {:#x} (known: 0x0)", hint.flags)));
    }
    Ok(Span {
        items,
        cost_ns: hint.cost_ns,
        grain: positive(hint.grain, "grain")?,
        max_slots: positive(i64::from(hint.max_slots), "max_slots")?,
    })
}

/// Runs a host's range function on a pool.
pub(super) fn run_region<H: Handle<Inner = ThreadPool>>(
    pool: *const H,
    span: &Span,
    f: weir_range_fn,
    arg: *mut c_void,
) -> Result<()> {
    let range = HostRange { f: f.ok_or_else(|| Error::null("fn"))?, arg };
    // SAFETY: the caller of the exported function keeps the handle alive during the call.
    let pool = unsafe { borrow_opt(pool, "pool") }?;
    // A reference for the length of the call, without touching the count.
    // SAFETY: shared handles come from Arc::into_raw, and the host's reference outlives the call.
    let pool: Option<ManuallyDrop<Ref<ThreadPool>>> =
        pool.map(|pool| ManuallyDrop::new(unsafe { Arc::from_raw(std::ptr::from_ref::<Object<ThreadPool>>(pool)) }));
    threadpool::parallel_for(pool.as_deref(), span, &|claim| range.call(&claim))
}

/// Runs a host's range function on a kernel's pool.
pub(super) fn run_kernel_region(
    context: &crate::kernel::KernelContext<'_>,
    span: &Span,
    f: weir_range_fn,
    arg: *mut c_void,
) -> Result<()> {
    let range = HostRange { f: f.ok_or_else(|| Error::null("fn"))?, arg };
    context.parallel_for(span, &|claim| range.call(&claim))
}
