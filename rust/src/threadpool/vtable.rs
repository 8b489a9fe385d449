//! The border: a `Pool` as C functions. Nothing unwinds through one.

use super::task::TaskFn;
use super::{Features, Hint, Pool, Task, Tasks};
use crate::callback::panic_text;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Acquire};
use std::time::Duration;
use weir_core::abi::{weir_task_hint, weir_threadpool_flags as F, weir_threadpool_vtable};

/// The vtable and the context of `pool`, for a `libweir.so` that somebody else has opened. The pool is dropped when
/// `release` is called with the context, once and last of all; if nobody does, it leaks.
pub fn vtable<P: Pool>(pool: P) -> (weir_threadpool_vtable, *mut c_void) {
    let Features {
        schedule: takes_tasks,
        parallel_for: takes_loops,
        asynchronous,
        nested,
        auto_balancing,
        in_parallel: knows_threads,
        thread_index: knows_indices,
        help: can_help,
        max_threads: is_bounded,
    } = answer(Features::default(), || pool.features());
    let flag = |on: bool, flag: F| if on { flag as u64 } else { 0 };
    let bulk = if asynchronous { parallel_for::<P, false> } else { parallel_for::<P, true> };
    let table = weir_threadpool_vtable {
        struct_size: size_of::<weir_threadpool_vtable>(),
        flags: flag(asynchronous, F::WEIR_THREADPOOL_ASYNCHRONOUS)
            | flag(nested, F::WEIR_THREADPOOL_NESTED)
            | flag(auto_balancing, F::WEIR_THREADPOOL_AUTO_BALANCING),
        num_threads: Some(num_threads::<P>),
        parallel_for: takes_loops.then_some(bulk),
        schedule: takes_tasks.then_some(schedule::<P>),
        in_parallel: knows_threads.then_some(in_parallel::<P>),
        thread_index: knows_indices.then_some(thread_index::<P>),
        help: can_help.then_some(help::<P>),
        release: Some(release::<P>),
        max_threads: is_bounded.then_some(max_threads::<P>),
    };
    (table, Box::into_raw(Box::new(pool)).cast())
}

/// `f()`, or `otherwise` if it panics.
fn answer<T>(otherwise: T, f: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => value,
        Err(payload) => {
            drop(panic_text(payload));
            otherwise
        }
    }
}

fn clamped(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// # Safety
/// `ctx` came from `vtable::<P>` and was not released.
unsafe fn pool<'a, P: Pool>(ctx: *mut c_void) -> &'a P {
    // SAFETY: as demanded of the caller.
    unsafe { &*ctx.cast_const().cast::<P>() }
}

unsafe extern "C" fn num_threads<P: Pool>(ctx: *mut c_void) -> i32 {
    // SAFETY: weir passes the context.
    let pool = unsafe { pool::<P>(ctx) };
    clamped(answer(1, || pool.num_threads()))
}

unsafe extern "C" fn max_threads<P: Pool>(ctx: *mut c_void) -> i32 {
    // SAFETY: weir passes the context.
    let pool = unsafe { pool::<P>(ctx) };
    clamped(answer(1, || pool.max_threads()))
}

unsafe extern "C" fn in_parallel<P: Pool>(ctx: *mut c_void) -> i32 {
    // SAFETY: weir passes the context.
    let pool = unsafe { pool::<P>(ctx) };
    i32::from(answer(false, || pool.in_parallel()))
}

unsafe extern "C" fn thread_index<P: Pool>(ctx: *mut c_void) -> i32 {
    // SAFETY: weir passes the context.
    let pool = unsafe { pool::<P>(ctx) };
    answer(None, || pool.thread_index()).map_or(-1, clamped)
}

unsafe extern "C" fn help<P: Pool>(ctx: *mut c_void) -> i32 {
    // SAFETY: weir passes the context.
    let pool = unsafe { pool::<P>(ctx) };
    i32::from(answer(false, || pool.help()))
}

/// A task is refused only if it is here again. In all other cases, a panic included, it has run or somebody has it, and
/// then it will.
unsafe extern "C" fn schedule<P: Pool>(
    ctx: *mut c_void,
    task: Option<TaskFn>,
    arg: *mut c_void,
    hint: *const weir_task_hint,
) -> i32 {
    let Some(call) = task else { return 1 };
    // SAFETY: weir passes the context, and a hint that is NULL or lives during the call.
    let (pool, hint) = unsafe { (pool::<P>(ctx), hint.as_ref()) };
    let hint = hint.map_or(Hint::default(), |hint| Hint { cost_ns: hint.cost_ns, priority: hint.priority });
    // SAFETY: weir's closures run once, on any thread, and do not unwind.
    let task = unsafe { Task::new(call, arg, 0, hint) };
    match answer(Ok(()), || pool.schedule(task)) {
        Err(task) if task.is(call, arg, 0) => {
            task.forget();
            1
        }
        _ => 0, // a task of another call that was given back here runs as it is dropped
    }
}

/// As `schedule`: refused only if all are here again. If weir relies on it (`WAITS`), this returns when all have
/// returned, whatever the pool does with them: they use what is weir's caller's.
unsafe extern "C" fn parallel_for<P: Pool, const WAITS: bool>(
    ctx: *mut c_void,
    n: i32,
    task: Option<TaskFn>,
    arg: *mut c_void,
) -> i32 {
    let Some(call) = task else { return 1 };
    // SAFETY: weir passes the context.
    let pool = unsafe { pool::<P>(ctx) };
    let counter = AtomicUsize::new(usize::try_from(n).unwrap_or(0));
    let left = if WAITS { &raw const counter } else { std::ptr::null() };
    // SAFETY: weir's closures run once for each index, on any thread, and do not unwind. The counter lives until it is
    // 0, or the tasks are forgotten, below.
    let tasks = unsafe { Tasks::new(call, arg, n, left) };
    match answer(Ok(()), || pool.parallel_for(tasks)) {
        Err(tasks) if tasks.are_all(call, arg, n, left) => {
            tasks.forget();
            return 1;
        }
        given_back => drop(given_back), // those of a part run as they are dropped
    }
    if WAITS {
        wait(&counter);
    }
    0
}

/// Waits until the counter is 0. It is at once, unless the pool has returned too early.
fn wait(left: &AtomicUsize) {
    let mut pause = Duration::from_micros(50);
    // ORDERING: Acquire pairs with the Release as a task is dropped.
    while left.load(Acquire) > 0 {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}

pub(super) unsafe extern "C" fn release<P: Pool>(ctx: *mut c_void) {
    // SAFETY: the context of `vtable::<P>`, which weir gives back once.
    let pool = unsafe { Box::from_raw(ctx.cast::<P>()) };
    answer((), || drop(pool));
}
