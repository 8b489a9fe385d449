//! Thread pools: the host's vtable, the reference pools, and weir_parallel_for.
//!
//! Chapter: Thread pool.

use super::argument::{boolean, out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::task::{self, RegionPlace};
use super::{handle, text, versioned};
use crate::abi::*;
use crate::base::time::Deadline;
use crate::base::{Error, Ref, Result};
use crate::ops::check::flags;
use crate::sync::fork;
use crate::threadpool::{self, Cost, HostVtable, PoolEndWatch, ThreadPool, ThreadPoolOptions};
use std::ffi::{c_char, c_void};

/// Creates a pool of host threads. The vtable is copied; `ctx` is passed to its functions. Several pools may exist, and
/// one pool may serve any number of engines and streams. weir calls vtable->release(ctx) exactly once, after the last
/// reference is gone and the last task returned, or in weir_threadpool_close; if this call fails, it is never called.
/// Knowledge about a pool applies to all pools with the same functions, flags and width, so a host may create a pool
/// for each call: that costs no memory after the first, and no system call. options may be NULL; what they say for a
/// built-in pool only is refused.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, num_threads missing, neither parallel_for nor schedule;
/// options that are not for a host's pool).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create(
    vtable: *const weir_threadpool_vtable,
    ctx: *mut c_void,
    options: *const weir_threadpool_options,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_threadpool_create", || {
        fork::check()?;
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_pool, "out_pool")?;
            let options = pool_options(options, Owner::Host)?;
            // The last step that can fail: from here on the context would be released.
            hand_out(ThreadPool::host(host_pool(vtable, ctx)?, &options), out)
        }
    })
}

/// The owner of a pool's threads.
#[derive(PartialEq)]
enum Owner {
    Host,
    Library,
}

/// Reads and checks the options of a pool.
///
/// # Safety
/// `options` is NULL or points to `struct_size` readable bytes, and so does its member `costs`.
unsafe fn pool_options(options: *const weir_threadpool_options, owner: Owner) -> Result<ThreadPoolOptions> {
    // SAFETY: as demanded of the caller.
    let Some(told) = unsafe { versioned::read_opt(options, "options") }? else {
        return Ok(ThreadPoolOptions::default());
    };
    // SAFETY: as demanded of the caller.
    let costs = unsafe { versioned::read_opt(told.costs, "options->costs") }?;
    let figure = |ns: f64, what: &str| match ns {
        ns if ns.is_finite() && ns >= 0.0 => Ok(ns as f32),
        ns => Err(Error::invalid(format!("options->costs->{what} is {ns}, expected a finite number of 0 or more"))),
    };
    let cost = |costs: weir_threadpool_costs| {
        Ok(Cost {
            submit: figure(costs.submit_ns, "submit_ns")?,
            arrive: figure(costs.arrive_ns, "arrive_ns")?,
            join: figure(costs.join_ns, "join_ns")?,
        })
    };
    let checking = boolean(told.checking, "options->checking")?;
    if owner == Owner::Host && told.num_threads != 0 {
        let num_threads = told.num_threads;
        let text =
            format!("options->num_threads is {num_threads}, which only vtable->num_threads can say of this pool");
        return Err(Error::invalid(text));
    }
    if owner == Owner::Host && told.spin_ns != 0 {
        let text = format!("options->spin_ns is {}, which is for the threads of a built-in pool", told.spin_ns);
        return Err(Error::invalid(text));
    }
    if owner == Owner::Library && checking {
        return Err(Error::invalid("options->checking is 1, which is for a host's pool"));
    }
    let default = ThreadPoolOptions::default();
    Ok(ThreadPoolOptions {
        num_threads: match told.num_threads {
            0 => None,
            n => Some(threadpool::checked_num_threads("options->num_threads", n)?),
        },
        spin_ns: match told.spin_ns {
            0 => default.spin_ns,
            WEIR_SPIN_NONE => 0,
            spin_ns => threadpool::checked_spin_ns("options->spin_ns", spin_ns)?,
        },
        checking,
        costs: costs.map(cost).transpose()?,
    })
}

/// Checks a vtable.
///
/// # Safety
/// `vtable` is NULL or points to struct_size readable bytes; its functions follow docs/threadpool.md.
pub(super) unsafe fn host_pool(vtable: *const weir_threadpool_vtable, ctx: *mut c_void) -> Result<HostVtable> {
    // SAFETY: as demanded of the caller.
    let vtable = unsafe { versioned::read(vtable, "vtable") }?;
    const KNOWN: u64 = weir_threadpool_flags::WEIR_THREADPOOL_ASYNCHRONOUS as u64
        | weir_threadpool_flags::WEIR_THREADPOOL_AUTO_BALANCING as u64
        | weir_threadpool_flags::WEIR_THREADPOOL_NESTED as u64
        | weir_threadpool_flags::WEIR_THREADPOOL_OWN_THREADS_ONLY as u64;
    flags(vtable.flags, KNOWN, "vtable->flags")?;
    // SAFETY: as demanded of the caller.
    unsafe { HostVtable::new(vtable, ctx) }
}

/// If the creation fails, the context stays with the host.
fn hand_out(pool: Ref<ThreadPool>, out: &mut *mut weir_threadpool) -> Result<()> {
    let created = Ref::clone(&pool);
    handle::into_c(pool, out)?;
    created.adopt();
    Ok(())
}

/// The first clause of docs/threadpool.md that a pool in checking mode has broken, and how: "H5: parallel_for ran index
/// 3 of 4 twice". If none is broken, a suspected one: "H9: a wait has slept for 1 s, and the pool has begun none of 2
/// calls that it had accepted: ..."; the pool continues after that. Empty if there is neither, and without checking
/// mode.
///
/// Chapter: Conformance.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_get_broken_clause(
    pool: *const weir_threadpool,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_threadpool_get_broken_clause", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let broken = handle::borrow(pool, "pool")?.broken_clause().unwrap_or_default();
            text::copy(&broken, buffer, capacity, out_length)
        }
    })
}

/// The pool as a vtable: for a library that needs one, for a host that wraps a pool, or for
/// weir_threadpool_conformance. *out_ctx is a reference to the pool, and vtable->release gives it up.
///
/// Ownership: the caller owns *out_ctx until it calls out_vtable->release(*out_ctx), or passes both to a call that
/// does. Errors: INVALID_ARGUMENT (NULL, out_vtable->struct_size, to be set before the call); FAILED_PRECONDITION if
/// the pool is closed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_get_vtable(
    pool: *mut weir_threadpool,
    out_vtable: *mut weir_threadpool_vtable,
    out_ctx: *mut *mut c_void,
) -> weir_status {
    guard("weir_threadpool_get_vtable", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_ctx, "out_ctx")?;
            let pool = handle::share(pool.cast_const(), "pool")?;
            pool.usable()?;
            versioned::write(out_vtable, &threadpool::vtable_of(&pool), "out_vtable")?;
            *out = threadpool::into_ctx(pool);
        }
        Ok(())
    })
}

/// Creates weir's own work-stealing pool. weir_runtime_get_info counts its threads. options may be NULL; what they
/// say for a host's pool only is refused.
///
/// Errors: INVALID_ARGUMENT (an option's value, or one that is not for a built-in pool; WEIR_NUM_THREADS);
/// RESOURCE_EXHAUSTED if threads cannot be started.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create_builtin(
    options: *const weir_threadpool_options,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_threadpool_create_builtin", || {
        fork::check()?;
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_ptr(out_pool, "out_pool")?, pool_options(options, Owner::Library)?) };
        handle::into_c(ThreadPool::builtin(&options)?, out)
    })
}

/// Creates a pool without threads: all work runs at once in the calling thread.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_create_inline(out_pool: *mut *mut weir_threadpool) -> weir_status {
    guard("weir_threadpool_create_inline", || {
        fork::check()?;
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_pool, "out_pool") }?;
        handle::into_c(ThreadPool::inline(), out)
    })
}

/// Takes one more reference.
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
/// Blocking: never (a built-in pool's threads end by themselves).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_release(pool: *mut weir_threadpool) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_threadpool_release", || unsafe {
        let watch = handle::share_opt(pool.cast_const(), "pool").ok().flatten().as_ref().and_then(PoolEndWatch::of);
        handle::release(pool);
        watch.into_iter().for_each(PoolEndWatch::wait);
    });
}

/// Ends the use of a pool, for a host that owns it: after this has returned WEIR_OK weir never calls the vtable's
/// functions again, on any thread, and vtable->release has been called, once. The handle stays valid until it is
/// released.
///
/// From the call on, even if it times out, work on the pool is refused: a region, a product, a run, a stream with that
/// pool, or an engine created with it gets FAILED_PRECONDITION, which names the pool by the number of
/// weir_threadpool_get_id. Work in flight continues without further help from the pool: regions and runs in the threads
/// that they have, streams in the threads that submit and wait. The call waits until no thread doing weir's work is
/// inside of the pool any more: calls of the vtable, tasks that have begun, and the turns of streams and the kernels
/// that may block which the pool has accepted. It does not wait for helpers that the pool has accepted and not begun.
/// The host may run them at any later time, after release too: a helper that starts after the close returns at once. If
/// the host drops it instead, the pool's memory (some 40 KB) is never freed.
///
/// May be called several times and by several threads at once: all return when the first has finished, and later calls
/// succeed at once. DEADLINE_EXCEEDED: a thread was still inside; call again to wait on. With timeout_ns 0 it closes
/// the pool and polls once. A pool of weir's own ends its threads. See docs/call_pools.md for pools that belong to a
/// call.
///
/// Blocking: until no work of weir's is inside, or timeout_ns have passed (WEIR_TIMEOUT_INFINITE = no limit), and for
/// as long as vtable->release takes. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION inside of a task of the pool and on
/// a device's thread: then the pool stays open.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_close(pool: *mut weir_threadpool, timeout_ns: u64) -> weir_status {
    guard("weir_threadpool_close", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow(pool.cast_const(), "pool") }?.close(Deadline::after(timeout_ns))
    })
}

/// The current number of threads of the pool: vtable->num_threads, at least 1. The inline pool has 1.
///
/// Errors: FAILED_PRECONDITION if the pool is closed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_get_num_threads(
    pool: *const weir_threadpool,
    out_num_threads: *mut i32,
) -> weir_status {
    guard("weir_threadpool_get_num_threads", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, pool) = unsafe { (out_value(out_num_threads, "out_num_threads")?, handle::borrow(pool, "pool")?) };
        pool.usable()?;
        out.set(i32::try_from(pool.num_threads()).unwrap_or(i32::MAX));
        Ok(())
    })
}

/// The pool's flags: OR of weir_threadpool_flags.
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

/// The pool's id: no other pool in this process ever has it. weir_thread_info.pool is such an id.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_get_id(pool: *const weir_threadpool, out_id: *mut u64) -> weir_status {
    guard("weir_threadpool_get_id", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, pool) = unsafe { (out_value(out_id, "out_id")?, handle::borrow(pool, "pool")?) };
        out.set(pool.id());
        Ok(())
    })
}

/// Whether the calling thread runs a task of this pool (1) or not (0), according to vtable->in_parallel, or else to
/// weir's own tasks.
///
/// Errors: FAILED_PRECONDITION if the pool is closed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_in_parallel(
    pool: *const weir_threadpool,
    out_in_parallel: *mut i32,
) -> weir_status {
    guard("weir_threadpool_in_parallel", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, pool) = unsafe { (out_value(out_in_parallel, "out_in_parallel")?, handle::borrow(pool, "pool")?) };
        pool.usable()?;
        out.set(i32::from(pool.in_parallel()));
        Ok(())
    })
}

/// Runs fn over the items 0 <= i < n in pieces, on the pool and in the calling thread, and returns when all are done. A
/// NULL pool means the calling thread alone. `hint` may be NULL. May be called from inside a task of the pool; then it
/// never waits for a piece that no thread has begun. A region that is too small to be worth a thread runs in the
/// caller; the limit follows from the costs of the pool's threads (weir_threadpool_get_costs).
///
/// Blocking: until all pieces have returned. Errors: OUT_OF_RANGE (n < 0); else the first nonzero status that fn
/// returned; pieces not begun by then are skipped. FAILED_PRECONDITION if a pool in checking mode has broken a clause;
/// then all is done.
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
        let (pool, hint) = unsafe { (task::borrow_pool(pool)?, versioned::read_opt(hint, "hint")?) };
        // The function may release it.
        let _kept = pool.as_deref().cloned();
        task::run_region(&RegionPlace::Pool(pool.as_deref()), n, hint.as_ref(), r#fn, arg)?;
        pool.as_deref().map_or(Ok(()), |pool| pool.intact())
    })
}

/// As weir_parallel_for, over a box of points in 1 to WEIR_MAX_RANK dimensions: 0 <= i[d] < extents[d]. `extents` and
/// `tile` have `rank` elements. Pieces are boxes of whole tiles; tile[d] is the size of a tile in dimension d. With 0
/// (or a NULL tile) weir chooses: whole lines, planes and so on up to about a microsecond of work. hint->cost_ns is per
/// point.
///
/// Blocking: until all pieces have returned. Errors: INVALID_ARGUMENT (rank, tile, hint); OUT_OF_RANGE (a negative
/// extent, too many points); else the first nonzero status that fn returned; pieces not begun by then are skipped.
/// FAILED_PRECONDITION as of weir_parallel_for.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_parallel_nd(
    pool: *mut weir_threadpool,
    rank: i32,
    extents: *const i64,
    tile: *const i64,
    hint: *const weir_parallel_hint,
    r#fn: weir_box_fn,
    arg: *mut c_void,
) -> weir_status {
    guard("weir_parallel_nd", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let (pool, hint) = (task::borrow_pool(pool)?, versioned::read_opt(hint, "hint")?);
            let _kept = pool.as_deref().cloned();
            task::run_boxes(&RegionPlace::Pool(pool.as_deref()), rank, (extents, tile), hint.as_ref(), r#fn, arg)?;
            pool.as_deref().map_or(Ok(()), |pool| pool.intact())
        }
    })
}

/// Measures the cost of bringing in the pool's threads, with a few rounds of empty work. The first region that could be
/// worth a thread does so too; call this to measure at a time of your choice, with the pool as idle as it will be
/// later.
///
/// Blocking: usually less than a millisecond, a few if the machine is busy, and for as long as the pool keeps a
/// parallel_for. Errors: FAILED_PRECONDITION inside a task of the pool.
///
/// Chapter: Costs of a pool.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_measure(pool: *mut weir_threadpool) -> weir_status {
    guard("weir_threadpool_measure", || {
        // SAFETY: the caller's handle, as documented.
        let pool = unsafe { task::borrow_pool(pool) }?;
        let pool = pool.as_deref().ok_or_else(|| Error::null("pool"))?;
        if pool.in_parallel() {
            return Err(Error::precondition("the calling thread runs a task of the pool, so the pool is not idle"));
        }
        threadpool::measure(pool);
        Ok(())
    })
}

/// The current estimate of the cost of a helper: of a pool that was in use a moment ago, requested as regions would
/// (schedule or parallel_for). Assumed figures until the pool is measured; from then on shared regions refine them.
///
/// Chapter: Costs of a pool.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_get_costs(
    pool: *const weir_threadpool,
    out_costs: *mut weir_threadpool_costs,
) -> weir_status {
    guard("weir_threadpool_get_costs", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let cost = handle::borrow(pool, "pool")?.cost();
            let costs = weir_threadpool_costs {
                struct_size: 0,
                submit_ns: cost.submit.into(),
                arrive_ns: cost.arrive.into(),
                join_ns: cost.join.into(),
            };
            versioned::write(out_costs, &costs, "out_costs")
        }
    })
}
