//! The host's pool: a copied vtable and its context.

use super::RawTask;
use crate::abi::{weir_task_hint, weir_threadpool_flags as F, weir_threadpool_vtable};
use crate::base::{Error, Result};
use crate::sync::{ambient, fork};
use crate::threadpool::backend::Backend;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// The host's functions with their context, and their raw answers. A copy may be used as long as its `HostVtable`
/// lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostCalls {
    table: weir_threadpool_vtable,
    ctx: *mut c_void,
    num_threads: unsafe extern "C" fn(*mut c_void) -> i32,
}

// SAFETY: the host promises that its functions may be called from any thread (docs of weir_threadpool_vtable).
unsafe impl Send for HostCalls {}
// SAFETY: as above.
unsafe impl Sync for HostCalls {}

impl HostCalls {
    pub(super) fn flags(&self) -> u64 {
        self.table.flags
    }

    pub(super) fn num_threads(&self) -> i32 {
        // SAFETY: the host's function, with its own context.
        unsafe { (self.num_threads)(self.ctx) }
    }

    /// `None` if the host has no such function; so below.
    pub(super) fn max_threads(&self) -> Option<i32> {
        // SAFETY: the host's function, with its own context.
        self.table.max_threads.map(|max| unsafe { max(self.ctx) })
    }

    pub(super) fn has_schedule(&self) -> bool {
        self.table.schedule.is_some()
    }

    /// False = refused.
    pub(super) fn schedule(&self, task: RawTask, cost_ns: u64, priority: i32) -> bool {
        let Some(schedule) = self.table.schedule else { return false };
        let (run, arg) = task.parts();
        let hint = weir_task_hint { struct_size: size_of::<weir_task_hint>(), cost_ns, priority, flags: 0 };
        // SAFETY: the host's function; the hint lives during the call.
        unsafe { schedule(self.ctx, Some(run), arg, &raw const hint) == 0 }
    }

    pub(super) fn has_parallel_for(&self) -> bool {
        self.table.parallel_for.is_some()
    }

    /// False = refused.
    pub(super) fn parallel_for(&self, n: usize, task: RawTask) -> bool {
        let (Some(parallel_for), Ok(n)) = (self.table.parallel_for, i32::try_from(n)) else { return false };
        let (run, arg) = task.parts();
        // SAFETY: the host's function.
        unsafe { parallel_for(self.ctx, n, Some(run), arg) == 0 }
    }

    pub(super) fn in_parallel(&self) -> Option<bool> {
        // SAFETY: the host's function, with its own context.
        self.table.in_parallel.map(|inside| unsafe { inside(self.ctx) != 0 })
    }

    pub(super) fn thread_index(&self) -> Option<i32> {
        // SAFETY: the host's function, with its own context.
        self.table.thread_index.map(|index| unsafe { index(self.ctx) })
    }

    pub(super) fn knows_its_threads(&self) -> bool {
        self.table.in_parallel.is_some() || self.table.thread_index.is_some()
    }

    pub(super) fn has_help(&self) -> bool {
        self.table.help.is_some()
    }

    pub(super) fn help(&self) -> bool {
        // SAFETY: the host's function, with its own context.
        self.table.help.is_some_and(|help| unsafe { help(self.ctx) != 0 })
    }
}

/// A checked vtable. Dropping it releases the context.
#[derive(Debug)]
pub struct HostVtable {
    calls: HostCalls,
    /// Whether the library owns the context.
    adopted: AtomicBool,
}

impl HostVtable {
    /// The pool of libweir_testing.
    #[cfg(all(test, not(loom)))]
    pub fn seeded(seed: u64, threads: usize) -> Result<HostVtable> {
        let (functions, ctx) = weir_testing::start_seeded(seed, threads).unwrap_or_else(|error| panic!("{error:?}"));
        // SAFETY: the two types are one source, compiled twice, and the functions keep the contract.
        unsafe { HostVtable::new(std::mem::transmute_copy(&functions), ctx) }
    }

    /// Checks that the vtable is usable. The library does not own the context until the pool exists (`Drop`).
    ///
    /// # Safety
    /// The functions follow the contract of `weir_threadpool_vtable`.
    pub unsafe fn new(table: weir_threadpool_vtable, ctx: *mut c_void) -> Result<HostVtable> {
        let num_threads = table.num_threads.ok_or_else(|| Error::null("vtable->num_threads"))?;
        if table.parallel_for.is_none() && table.schedule.is_none() {
            return Err(Error::invalid("vtable->parallel_for and vtable->schedule are both NULL, one is required"));
        }
        if table.flags & F::WEIR_THREADPOOL_OWN_THREADS_ONLY as u64 != 0 && table.in_parallel.is_none() {
            return Err(Error::invalid(
                "vtable->flags has WEIR_THREADPOOL_OWN_THREADS_ONLY, which requires vtable->in_parallel: without it \
                 weir cannot tell the pool's threads from others",
            ));
        }
        Ok(HostVtable { adopted: AtomicBool::new(false), calls: HostCalls { table, ctx, num_threads } })
    }

    pub(super) fn calls(&self) -> HostCalls {
        self.calls
    }

    /// The addresses of the functions that transport work.
    pub fn functions(&self) -> [usize; 7] {
        let table = &self.calls.table;
        [
            self.calls.num_threads as usize,
            table.parallel_for.map_or(0, |f| f as usize),
            table.schedule.map_or(0, |f| f as usize),
            table.in_parallel.map_or(0, |f| f as usize),
            table.thread_index.map_or(0, |f| f as usize),
            table.help.map_or(0, |f| f as usize),
            table.max_threads.map_or(0, |f| f as usize),
        ]
    }
}

/// At least one thread.
pub(super) fn width(num_threads: i32) -> usize {
    usize::try_from(num_threads).unwrap_or(0).max(1)
}

impl Backend for HostVtable {
    /// ORDERING: Release pairs with the Acquire in `end`.
    fn adopt(&self) {
        self.adopted.store(true, Release);
    }

    fn flags(&self) -> u64 {
        self.calls.flags()
    }

    fn num_threads(&self) -> usize {
        width(self.calls.num_threads())
    }

    fn max_threads(&self) -> usize {
        let now = self.num_threads();
        self.calls.max_threads().map_or(now, |max| width(max).max(now))
    }

    fn has_schedule(&self) -> bool {
        self.calls.has_schedule()
    }

    fn schedule(&self, task: RawTask, cost_ns: u64, priority: i32) -> bool {
        self.calls.schedule(task, cost_ns, priority)
    }

    fn has_bulk(&self) -> bool {
        self.calls.has_parallel_for()
    }

    fn bulk(&self, n: usize, task: RawTask) -> bool {
        self.calls.parallel_for(n, task)
    }

    fn in_parallel(&self) -> bool {
        self.calls.in_parallel().unwrap_or_else(|| self.calls.thread_index().is_some_and(|index| index >= 0))
    }

    fn knows_its_threads(&self) -> bool {
        self.calls.knows_its_threads()
    }

    fn help(&self) -> bool {
        self.calls.help()
    }

    fn end(&self) {
        // In a forked child the host's threads do not exist: a release that joins them would never return.
        let is_ours = self.adopted.swap(false, AcqRel) && !fork::forked();
        if let Some(release) = self.calls.table.release.filter(|_| is_ours) {
            // SAFETY: the host's function, with its own context, called once, by the swap. Nobody calls the pool any
            // more: closures hold references to it, or it was closed and all have left.
            ambient::call(|| unsafe { release(self.calls.ctx) });
        }
    }
}

impl Drop for HostVtable {
    fn drop(&mut self) {
        self.end();
    }
}
