//! Settings of thread pools.
//!
//! Chapter: Thread pool.

use super::argument::{boolean, out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::{handle, versioned};
use crate::abi::*;
use crate::base::Error;
use crate::threadpool::{self, Cost, ThreadPoolAttr};

/// Creates settings, all default. num_threads and spin_ns are for weir_threadpool_create_builtin, checking is for
/// weir_threadpool_create_with_attr; either refuses the other's settings, so that none is silently ignored.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_attr. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_create(out_attr: *mut *mut weir_threadpool_attr) -> weir_status {
    guard("weir_threadpool_attr_create", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_attr, "out_attr") }?;
        handle::into_owned_c(ThreadPoolAttr::default(), out)
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

/// How long a thread of the pool without work spins before it sleeps, in nanoseconds; 0 = not at all. Default 20 us, at
/// most one second.
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

/// Whether weir checks a host's pool (1) or not (0, the default). A pool in checking mode is verified on the work that
/// it gets anyway: a task run twice, lost, or run after refusal, a wrong index, a parallel_for that returns early,
/// threads with a wrong in_parallel or thread_index. A faulty pool never affects weir's work: each piece is still done
/// once. The first clause that it breaks is kept (weir_threadpool_get_broken_clause). From then on the pool gets no
/// more work, the callers do all of it, and weir_parallel_for, weir_stream_synchronize, weir_run_synchronize, and calls
/// on synchronous streams that use the pool return FAILED_PRECONDITION with the clause after finishing their work. A
/// task that the pool accepted and has not begun after five seconds counts as lost, and a later call of weir runs it.
/// Each task costs a few microseconds more; without checking mode there is no cost.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
///
/// Chapter: Pools for tests.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_set_checking(
    attr: *mut weir_threadpool_attr,
    checking: i32,
) -> weir_status {
    guard("weir_threadpool_attr_set_checking", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.checking = boolean(checking, "checking")?;
        Ok(())
    })
}

/// Whether checking mode was set (1) or not (0).
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
///
/// Chapter: Pools for tests.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_get_checking(
    attr: *const weir_threadpool_attr,
    out_checking: *mut i32,
) -> weir_status {
    guard("weir_threadpool_attr_get_checking", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_checking, "out_checking")?, handle::borrow(attr, "attr")?) };
        out.set(i32::from(attr.checking));
        Ok(())
    })
}

/// The costs of the pool's threads, for a host that knows them: weir then does not measure them. Shared regions refine
/// the figures all the same. NULL costs: to be measured, the default.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: costs is copied.
/// Errors: INVALID_ARGUMENT (a figure below 0 or not finite).
///
/// Chapter: Costs of a pool.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_set_costs(
    attr: *mut weir_threadpool_attr,
    costs: *const weir_threadpool_costs,
) -> weir_status {
    guard("weir_threadpool_attr_set_costs", || {
        // SAFETY: the caller's pointers, as documented.
        let (attr, costs) = unsafe { (handle::borrow_mut(attr, "attr")?, versioned::read_opt(costs, "costs")?) };
        let figure = |ns: f64, what: &str| match ns {
            ns if ns.is_finite() && ns >= 0.0 => Ok(ns as f32),
            ns => Err(Error::invalid(format!("costs->{what} is {ns}, expected 0 or more"))),
        };
        attr.costs = match costs {
            Some(costs) => Some(Cost {
                submit: figure(costs.submit_ns, "submit_ns")?,
                arrive: figure(costs.arrive_ns, "arrive_ns")?,
                join: figure(costs.join_ns, "join_ns")?,
            }),
            None => None,
        };
        Ok(())
    })
}

/// The costs that were set; all members 0 if none were.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
///
/// Chapter: Costs of a pool.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_attr_get_costs(
    attr: *const weir_threadpool_attr,
    out_costs: *mut weir_threadpool_costs,
) -> weir_status {
    guard("weir_threadpool_attr_get_costs", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let costs = handle::borrow(attr, "attr")?.costs;
            versioned::write(out_costs, &costs.map_or(NO_COSTS, in_c), "out_costs")
        }
    })
}

const NO_COSTS: weir_threadpool_costs =
    weir_threadpool_costs { struct_size: 0, submit_ns: 0.0, arrive_ns: 0.0, join_ns: 0.0 };

pub(super) fn in_c(cost: Cost) -> weir_threadpool_costs {
    weir_threadpool_costs {
        submit_ns: cost.submit.into(),
        arrive_ns: cost.arrive.into(),
        join_ns: cost.join.into(),
        ..NO_COSTS
    }
}
