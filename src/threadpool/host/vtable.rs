//! The host's pool: a copied vtable and its context.

use super::Task;
use crate::abi::{weir_task_hint, weir_threadpool_vtable};
use crate::base::{Error, Result};
use crate::sync::fork;
use crate::threadpool::pool::Backend;
use std::ffi::c_void;

/// A checked vtable. Dropping it releases the context.
#[derive(Debug)]
pub struct HostVtable {
    table: weir_threadpool_vtable,
    ctx: *mut c_void,
    num_threads: unsafe extern "C" fn(*mut c_void) -> i32,
}

// SAFETY: the host promises that its functions may be called from any thread (docs of weir_threadpool_vtable).
unsafe impl Send for HostVtable {}
// SAFETY: as above.
unsafe impl Sync for HostVtable {}

impl HostVtable {
    /// Checks that the vtable can serve at all. The context is not the library's until the pool exists (`Drop`).
    ///
    /// # Safety
    /// The functions follow the contract of `weir_threadpool_vtable`.
    pub unsafe fn new(table: weir_threadpool_vtable, ctx: *mut c_void) -> Result<HostVtable> {
        let num_threads = table.num_threads.ok_or_else(|| Error::null("vtable->num_threads"))?;
        if table.parallel_for.is_none() && table.schedule.is_none() {
            return Err(Error::invalid("vtable->parallel_for and vtable->schedule are both NULL, one is required"));
        }
        Ok(HostVtable { table, ctx, num_threads })
    }
}

impl Backend for HostVtable {
    fn flags(&self) -> u64 {
        self.table.flags
    }

    fn num_threads(&self) -> usize {
        // SAFETY: the host's function, with its own context.
        usize::try_from(unsafe { (self.num_threads)(self.ctx) }).unwrap_or(0).max(1)
    }

    fn max_threads(&self) -> usize {
        let now = self.num_threads();
        // SAFETY: the host's function, with its own context.
        let max = self.table.max_threads.map_or(0, |max| unsafe { max(self.ctx) });
        usize::try_from(max).unwrap_or(0).max(now)
    }

    fn has_schedule(&self) -> bool {
        self.table.schedule.is_some()
    }

    fn schedule(&self, task: Task, cost_ns: u64, priority: i32) -> bool {
        let Some(schedule) = self.table.schedule else { return false };
        let (run, arg) = task.parts();
        let hint = weir_task_hint { struct_size: size_of::<weir_task_hint>(), cost_ns, priority, flags: 0 };
        // SAFETY: the host's function; the hint lives during the call.
        unsafe { schedule(self.ctx, Some(run), arg, &raw const hint) == 0 }
    }

    fn has_bulk(&self) -> bool {
        self.table.parallel_for.is_some()
    }

    fn bulk(&self, n: usize, task: Task) -> bool {
        let (Some(parallel_for), Ok(n)) = (self.table.parallel_for, i32::try_from(n)) else { return false };
        let (run, arg) = task.parts();
        // SAFETY: the host's function.
        unsafe { parallel_for(self.ctx, n, Some(run), arg) == 0 }
    }

    fn in_parallel(&self) -> bool {
        match (self.table.in_parallel, self.table.thread_index) {
            // SAFETY: the host's function, with its own context.
            (Some(inside), _) => unsafe { inside(self.ctx) != 0 },
            // SAFETY: the host's function, with its own context.
            (None, Some(index)) => unsafe { index(self.ctx) >= 0 },
            (None, None) => false,
        }
    }

    fn help(&self) -> bool {
        // SAFETY: the host's function, with its own context.
        self.table.help.is_some_and(|help| unsafe { help(self.ctx) != 0 })
    }
}

impl Drop for HostVtable {
    fn drop(&mut self) {
        // In a forked child the host's threads do not exist: a release that joins them would never return.
        if let Some(release) = self.table.release.filter(|_| !fork::forked()) {
            // SAFETY: the host's function; nothing of weir's is with the pool any more, since closures hold references.
            unsafe { release(self.ctx) }
        }
    }
}
