//! A pool of weir's exported as a vtable over a reference to it.

use super::RawTask;
use crate::abi::{weir_task_fn, weir_task_hint, weir_threadpool_vtable};
use crate::base::{Object, Ref};
use crate::threadpool::ThreadPool;
use std::ffi::c_void;
use std::sync::Arc;

/// The context of `vtable_of`'s functions; `release` gives the reference up.
pub fn into_ctx(pool: Ref<ThreadPool>) -> *mut c_void {
    Arc::into_raw(pool).cast_mut().cast()
}

/// The pool's functions; NULL for those that it lacks.
pub fn vtable_of(pool: &Object<ThreadPool>) -> weir_threadpool_vtable {
    let backend = pool.backend();
    weir_threadpool_vtable {
        struct_size: size_of::<weir_threadpool_vtable>(),
        flags: pool.flags(),
        num_threads: Some(num_threads),
        parallel_for: if backend.has_bulk() { Some(parallel_for) } else { None },
        schedule: if backend.has_schedule() { Some(schedule) } else { None },
        in_parallel: if backend.knows_its_threads() { Some(in_parallel) } else { None },
        thread_index: None,
        help: Some(help),
        release: Some(release),
        max_threads: Some(max_threads),
    }
}

/// # Safety
/// `ctx` came from `into_ctx` and has not been released.
unsafe fn pool<'a>(ctx: *mut c_void) -> &'a Object<ThreadPool> {
    // SAFETY: as demanded of the caller.
    unsafe { &*ctx.cast_const().cast::<Object<ThreadPool>>() }
}

fn number(threads: usize) -> i32 {
    i32::try_from(threads).unwrap_or(i32::MAX)
}

unsafe extern "C" fn num_threads(ctx: *mut c_void) -> i32 {
    // SAFETY: the caller's context.
    number(unsafe { pool(ctx) }.num_threads())
}

unsafe extern "C" fn max_threads(ctx: *mut c_void) -> i32 {
    // SAFETY: the caller's context.
    number(unsafe { pool(ctx) }.max_threads())
}

unsafe extern "C" fn parallel_for(ctx: *mut c_void, n: i32, task: weir_task_fn, arg: *mut c_void) -> i32 {
    let (Some(run), Ok(n)) = (task, usize::try_from(n)) else { return 1 };
    // SAFETY: the caller's context, and its task, which it promises to be callable on any thread.
    i32::from(!unsafe { pool(ctx).offer_bulk(RawTask::new(run, arg), n) })
}

unsafe extern "C" fn schedule(
    ctx: *mut c_void,
    task: weir_task_fn,
    arg: *mut c_void,
    hint: *const weir_task_hint,
) -> i32 {
    let Some(run) = task else { return 1 };
    // SAFETY: the caller's context, task and hint (NULL or readable).
    unsafe {
        let (cost_ns, priority) = hint.as_ref().map_or((0, 0), |hint| (hint.cost_ns, hint.priority));
        i32::from(!pool(ctx).offer(RawTask::new(run, arg), cost_ns, priority))
    }
}

unsafe extern "C" fn in_parallel(ctx: *mut c_void) -> i32 {
    // SAFETY: the caller's context.
    i32::from(unsafe { pool(ctx) }.host_says_in_parallel())
}

unsafe extern "C" fn help(ctx: *mut c_void) -> i32 {
    // SAFETY: the caller's context.
    i32::from(unsafe { pool(ctx) }.help())
}

unsafe extern "C" fn release(ctx: *mut c_void) {
    // SAFETY: `into_ctx` gave one reference away, and this is its end.
    drop(unsafe { Arc::from_raw(ctx.cast_const().cast::<Object<ThreadPool>>()) });
}
