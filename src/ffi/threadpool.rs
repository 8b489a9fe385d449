//! Thread pools: the host's vtable, the reference pools, and weir_parallel_for.

use super::argument::{flags, out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::{handle, task, versioned};
use crate::abi::*;
use crate::threadpool::{self, HostVtable, PoolAttr, ThreadPool};
use std::ffi::c_void;

/// Makes a pool of the host's threads. The vtable is copied; `ctx` is passed to its functions. Several pools may
/// exist, and one pool may serve any number of engines and streams. weir calls vtable->release(ctx) exactly once,
/// after the last reference went and the last task returned; if this call fails, it is never called.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool.
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, num_threads missing, neither parallel_for nor schedule).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create(
    vtable: *const weir_threadpool_vtable,
    ctx: *mut c_void,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_threadpool_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, vtable) = unsafe { (out_ptr(out_pool, "out_pool")?, versioned::read(vtable, "vtable")?) };
        const KNOWN: u64 = weir_threadpool_flags::WEIR_THREADPOOL_ASYNCHRONOUS as u64
            | weir_threadpool_flags::WEIR_THREADPOOL_AUTO_BALANCING as u64
            | weir_threadpool_flags::WEIR_THREADPOOL_NESTED as u64;
        flags(vtable.flags, KNOWN, "vtable->flags")?;
        // SAFETY: the host promises that the vtable's functions follow docs/threadpool.md.
        let host = unsafe { HostVtable::new(vtable, ctx) }?;
        handle::into_c(ThreadPool::host(host), out)
    })
}

/// Makes weir's own work-stealing pool. weir_runtime_get_info counts its threads. NULL attr: as many threads as
/// this process may use processors (affinity mask and cgroup limit), or WEIR_NUM_THREADS from the environment.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool; attr is copied.
/// Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED if threads cannot be started.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create_builtin(
    attr: *const weir_threadpool_attr,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_threadpool_create_builtin", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_ptr(out_pool, "out_pool")?, handle::borrow_opt(attr, "attr")?) };
        let default = PoolAttr::default();
        handle::into_c(ThreadPool::builtin(attr.map_or(&default, |attr| &**attr))?, out)
    })
}

/// Makes a pool without threads: whatever is handed to it runs at once in the calling thread.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool.
/// Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create_inline(out_pool: *mut *mut weir_threadpool) -> weir_status {
    guard("weir_threadpool_create_inline", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_pool, "out_pool") }?;
        handle::into_c(ThreadPool::inline(), out)
    })
}

/// Makes a pool for tests: `num_threads` threads that run tasks in an order drawn from `seed`, delay some, run some
/// inline in the submitting thread and refuse some. Results must not depend on it. Its threads are counted.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_pool.
/// Errors: INVALID_ARGUMENT (num_threads outside 1..256); RESOURCE_EXHAUSTED if threads cannot be started.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create_seeded(
    seed: u64,
    num_threads: i32,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_threadpool_create_seeded", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_pool, "out_pool") }?;
        let threads = threadpool::checked_num_threads(num_threads)?;
        handle::into_c(ThreadPool::seeded(seed, threads)?, out)
    })
}

/// Takes one more reference.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_retain(pool: *mut weir_threadpool) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_threadpool_retain", || unsafe { handle::retain(pool, "pool") })
}

/// Gives up one reference. NULL does nothing. Engines, streams and queued work hold references of their own. If the
/// last reference goes inside a task of the pool itself, vtable->release comes with the next call of weir from
/// elsewhere; weir_threadpool_release(NULL) is such a call.
///
/// Thread safety: any thread. Blocking: never (a built-in pool's threads end by themselves). Ownership: one
/// reference less.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_release(pool: *mut weir_threadpool) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_threadpool_release", || unsafe { handle::release_with_pool(pool, |pool| Some(pool)) });
}

/// How many threads the pool has now: vtable->num_threads, at least 1. The inline pool has 1.
///
/// Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_get_num_threads(
    pool: *const weir_threadpool,
    out_num_threads: *mut i32,
) -> weir_status {
    guard("weir_threadpool_get_num_threads", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, pool) = unsafe { (out_value(out_num_threads, "out_num_threads")?, handle::borrow(pool, "pool")?) };
        out.set(i32::try_from(pool.num_threads()).unwrap_or(i32::MAX));
        Ok(())
    })
}

/// The pool's flags: OR of weir_threadpool_flags.
///
/// Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_get_flags(pool: *const weir_threadpool, out_flags: *mut u64) -> weir_status {
    guard("weir_threadpool_get_flags", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, pool) = unsafe { (out_value(out_flags, "out_flags")?, handle::borrow(pool, "pool")?) };
        out.set(pool.flags());
        Ok(())
    })
}

/// Whether the calling thread runs a task of this pool (1) or not (0): what vtable->in_parallel says, or what weir
/// knows of its own tasks.
///
/// Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_in_parallel(
    pool: *const weir_threadpool,
    out_in_parallel: *mut i32,
) -> weir_status {
    guard("weir_threadpool_in_parallel", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, pool) = unsafe { (out_value(out_in_parallel, "out_in_parallel")?, handle::borrow(pool, "pool")?) };
        out.set(i32::from(pool.in_parallel()));
        Ok(())
    })
}

/// Runs fn over the items 0 <= i < n in pieces, on the pool and in the calling thread, and returns when all are
/// done. A NULL pool means the calling thread alone. `hint` may be NULL. May be called from inside a task of the
/// pool; then it never waits for a piece that no thread has begun. A region that is too small to be worth a thread
/// runs in the caller.
///
/// Thread safety: any thread. Blocking: until all pieces have returned. Ownership: arg is the caller's.
/// Errors: INVALID_ARGUMENT; OUT_OF_RANGE (n < 0); else the first nonzero status that fn returned; pieces not begun
/// by then are skipped.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_parallel_for(
    pool: *mut weir_threadpool,
    n: i64,
    hint: *const weir_parallel_hint,
    r#fn: weir_range_fn,
    arg: *mut c_void,
) -> weir_status {
    guard("weir_parallel_for", || {
        // SAFETY: the caller's pointers, as documented.
        let hint = unsafe { versioned::read_opt(hint, "hint") }?;
        let region = task::region(n, hint.as_ref())?;
        task::run_region(pool.cast_const(), &region, r#fn, arg)
    })
}

/// Makes settings for weir_threadpool_create_builtin, all default.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_attr. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_create(out_attr: *mut *mut weir_threadpool_attr) -> weir_status {
    guard("weir_threadpool_attr_create", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_attr, "out_attr") }?;
        handle::into_owned_c(PoolAttr::default(), out)
    })
}

/// Destroys settings. NULL does nothing.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_destroy(attr: *mut weir_threadpool_attr) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_threadpool_attr_destroy", || unsafe { handle::destroy(attr) });
}

/// Number of threads, 1 to 256; 0 = the default (see weir_threadpool_create_builtin).
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_set_num_threads(
    attr: *mut weir_threadpool_attr,
    num_threads: i32,
) -> weir_status {
    guard("weir_threadpool_attr_set_num_threads", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.num_threads = match num_threads {
            0 => None,
            n => Some(threadpool::checked_num_threads(n)?),
        };
        Ok(())
    })
}

/// The number of threads that was set; 0 = the default.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_get_num_threads(
    attr: *const weir_threadpool_attr,
    out_num_threads: *mut i32,
) -> weir_status {
    guard("weir_threadpool_attr_get_num_threads", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_num_threads, "out_num_threads")?, handle::borrow(attr, "attr")?) };
        out.set(attr.num_threads.map_or(0, |n| n as i32));
        Ok(())
    })
}

/// How long a thread of the pool without work looks around before it sleeps, in nanoseconds; 0 = not at all.
/// Default 20 us, at most one second.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_set_spin_ns(
    attr: *mut weir_threadpool_attr,
    spin_ns: u64,
) -> weir_status {
    guard("weir_threadpool_attr_set_spin_ns", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.spin_ns = threadpool::checked_spin_ns(spin_ns)?;
        Ok(())
    })
}

/// The spin budget that was set, in nanoseconds.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_get_spin_ns(
    attr: *const weir_threadpool_attr,
    out_spin_ns: *mut u64,
) -> weir_status {
    guard("weir_threadpool_attr_get_spin_ns", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_spin_ns, "out_spin_ns")?, handle::borrow(attr, "attr")?) };
        out.set(attr.spin_ns);
        Ok(())
    })
}
