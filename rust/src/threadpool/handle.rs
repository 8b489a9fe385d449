//! A weir pool as an owned value.

use super::{Pool, vtable};
use crate::error::check;
use crate::handle::shared_handle;
use crate::{Result, region};
use std::ops::Range;
use weir_core::abi::{weir_threadpool, weir_threadpool_options};
use weir_core::ffi;

shared_handle! {
    /// A pool that weir works on: yours, or one of weir's own. Engines, streams and queued work keep what they use.
    ///
    /// The pool of a call counts first, then the stream's, then the engine's. Without any the calling thread does the
    /// work. A pool may have one thread, run its tasks at once, reorder, delay or refuse them: results are the
    /// same bits.
    ThreadPool(weir_threadpool), ffi::weir_threadpool_retain, ffi::weir_threadpool_release
}

impl ThreadPool {
    /// Lends `pool` to weir, which drops it when it has let go of it.
    pub fn new<P: Pool>(pool: P) -> Result<ThreadPool> {
        let (vtable, ctx) = vtable(pool);
        let mut pool = std::ptr::null_mut();
        // SAFETY: the functions of `vtable` keep the contract for every safe `Pool`, see there.
        let status = unsafe { ffi::weir_threadpool_create(&raw const vtable, ctx, std::ptr::null(), &raw mut pool) };
        if let Err(error) = check(status) {
            // SAFETY: weir refused the vtable, so nobody else has the context.
            unsafe { super::vtable::release::<P>(ctx) }
            return Err(error);
        }
        // SAFETY: a new reference.
        unsafe { ThreadPool::from_raw(pool) }
    }

    /// weir's own work-stealing pool, of `num_threads` threads; 0 = one for each processor that the process may use.
    /// Its threads end with the last reference.
    pub fn builtin(num_threads: usize) -> Result<ThreadPool> {
        let options = weir_threadpool_options {
            struct_size: size_of::<weir_threadpool_options>(),
            num_threads: i32::try_from(num_threads).unwrap_or(i32::MAX),
            checking: 0,
            spin_ns: 0,
            costs: std::ptr::null(),
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: options that live during the call.
        check(unsafe { ffi::weir_threadpool_create_builtin(&raw const options, &raw mut pool) })?;
        // SAFETY: a new reference.
        unsafe { ThreadPool::from_raw(pool) }
    }

    /// A pool without threads: all work is done at once, in the thread that asks for it.
    pub fn inline() -> Result<ThreadPool> {
        let mut pool = std::ptr::null_mut();
        // SAFETY: the argument is a place for the handle.
        check(unsafe { ffi::weir_threadpool_create_inline(&raw mut pool) })?;
        // SAFETY: a new reference.
        unsafe { ThreadPool::from_raw(pool) }
    }

    /// The handle, borrowed, for the C interface.
    pub fn as_ptr(&self) -> *mut weir_threadpool {
        self.raw()
    }

    /// The handle with its reference, for the caller to release through the C interface.
    pub fn into_raw(self) -> *mut weir_threadpool {
        std::mem::ManuallyDrop::new(self).raw()
    }

    /// How many tasks can run at once, as the pool says now.
    pub fn num_threads(&self) -> Result<usize> {
        let mut n = 0;
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_threadpool_get_num_threads(self.raw(), &raw mut n) })?;
        Ok(usize::try_from(n).unwrap_or(0))
    }

    /// Whether the calling thread works for the pool.
    pub fn in_parallel(&self) -> Result<bool> {
        let mut inside = 0;
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_threadpool_in_parallel(self.raw(), &raw mut inside) })?;
        Ok(inside != 0)
    }

    /// Calls `body(range, slot)` for the pieces of `0..n`, on the pool and here. No two pieces that run at once have
    /// the same slot. `item_ns`: what an item costs, 0 = unknown.
    ///
    /// Blocks until all pieces have returned. A panic in `body` stops the pieces that have not begun, and goes on here.
    pub fn parallel_for(&self, n: usize, item_ns: f64, body: impl Fn(Range<usize>, usize) + Sync) -> Result<()> {
        region::run(n, item_ns, body, |n, hint, piece, arg| {
            // SAFETY: `piece` has the type of the region behind `arg`, which outlives the call.
            unsafe { ffi::weir_parallel_for(self.raw(), n, hint, piece, arg) }
        })
    }

    /// As [`parallel_for`](Self::parallel_for), over the chunks of a slice: `body(i, chunk)` for the elements from
    /// `i * chunk_len` on. `chunk_ns`: what a chunk costs, 0 = unknown.
    pub fn parallel_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk_len: usize,
        chunk_ns: f64,
        body: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<()> {
        region::run_chunks(data, chunk_len, body, |n, chunks| self.parallel_for(n, chunk_ns, chunks))
    }
}
