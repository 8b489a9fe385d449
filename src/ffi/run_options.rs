//! Options of a run.
//!
//! Chapter: Run.

use super::argument::{boolean, out_ptr, out_value};
use super::guard::guard;
use super::{handle, notice, versioned};
use crate::abi::*;
use crate::base::Error;
use crate::memory::{Flags, heap};

/// Time limit of the run, in nanoseconds from the call of weir_program_run or weir_program_start, including time in the
/// stream's queue; 0 (the default) = no limit. When it expires nothing more is begun: the run ends after the running
/// kernels, with DEADLINE_EXCEEDED, and to them weir_kernel_context_is_cancelled says 1. A run that had nothing left to
/// begin succeeds. There is no timer: with a deadline the clock is read before each node, and without one there is no
/// cost.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_set_deadline_ns(
    options: *mut weir_run_options,
    deadline_ns: u64,
) -> weir_status {
    guard("weir_run_options_set_deadline_ns", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(options, "options") }?.deadline_ns = deadline_ns;
        Ok(())
    })
}

/// The limit set by weir_run_options_set_deadline_ns.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_get_deadline_ns(
    options: *const weir_run_options,
    out_deadline_ns: *mut u64,
) -> weir_status {
    guard("weir_run_options_get_deadline_ns", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) =
            unsafe { (out_value(out_deadline_ns, "out_deadline_ns")?, handle::borrow(options, "options")?) };
        out.set(options.deadline_ns);
        Ok(())
    })
}

/// Flags that report absent outputs: when a run has succeeded, flags[i] is 1 if output i was absent (its tensor is left
/// unchanged), else 0. A run that fails leaves the flags alone. count is the number of the program's outputs; NULL and
/// 0 = no report (the default). Outputs can only be absent if weir_compile_options_set_allow_absent allows it.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: the flags are the caller's; they stay
/// alive until every run with these options is done, and runs that overlap need separate options. Errors:
/// INVALID_ARGUMENT (NULL); weir_program_run and weir_program_start fail with INVALID_ARGUMENT if count is not the
/// number of outputs.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_set_absent(
    options: *mut weir_run_options,
    flags: *mut u8,
    count: usize,
) -> weir_status {
    guard("weir_run_options_set_absent", || {
        // SAFETY: the caller's handle, as documented.
        let options = unsafe { handle::borrow_mut(options, "options") }?;
        if flags.is_null() && count > 0 {
            return Err(Error::invalid(format!("flags is NULL, but its length is {count}")));
        }
        // SAFETY: the caller's bytes, which stay until the runs are over, as documented.
        options.absent = (!flags.is_null()).then(|| unsafe { Flags::new(flags, count) });
        Ok(())
    })
}

/// The flags set by weir_run_options_set_absent: NULL and 0 if none.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: the flags are the caller's of set.
/// Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_get_absent(
    options: *const weir_run_options,
    out_flags: *mut *mut u8,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_run_options_get_absent", || {
        // SAFETY: the caller's pointers, as documented.
        let (flags, count, options) = unsafe {
            (out_ptr(out_flags, "out_flags")?, out_value(out_count, "out_count")?, handle::borrow(options, "options")?)
        };
        *flags = options.absent.map_or(std::ptr::null_mut(), |flags| flags.data());
        count.set(options.absent.map_or(0, |flags| flags.count()));
        Ok(())
    })
}

/// Whether the run takes one thread and executes the nodes in the program's order: 1, or 0 (the default). Nodes that
/// share state outside of their tensors then access it in the same order in every run, and if several nodes would fail,
/// it is always the same one that does. Kernels may still use the pool for their regions, which changes no result.
/// Kernels that complete later, and work on devices, are started in their turn and waited for one by one in that
/// thread. So weir_program_run refuses such a run of a program that contains these (FAILED_PRECONDITION) where that
/// would block a worker of a thread pool: in one, and on an asynchronous stream with a pool that takes single tasks.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_set_deterministic(
    options: *mut weir_run_options,
    deterministic: i32,
) -> weir_status {
    guard("weir_run_options_set_deterministic", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(options, "options") }?.deterministic = boolean(deterministic, "deterministic")?;
        Ok(())
    })
}

/// The value set by weir_run_options_set_deterministic.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_get_deterministic(
    options: *const weir_run_options,
    out_deterministic: *mut i32,
) -> weir_status {
    guard("weir_run_options_get_deterministic", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) =
            unsafe { (out_value(out_deterministic, "out_deterministic")?, handle::borrow(options, "options")?) };
        out.set(i32::from(options.deterministic));
        Ok(())
    })
}

/// Whether a run that fails still executes the nodes that do not depend on the failure: 1, or 0 (the default: nothing
/// more is begun). Nodes that depend on a failed node, directly or not, are left out; a loop with a failure inside
/// ends. The first failure in the program's order is the run's. Outputs that depend on no failed node are written. Such
/// a run takes one thread, as if deterministic, and is refused in the same cases. A cancel or a deadline still ends it.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_set_finish_independent(
    options: *mut weir_run_options,
    finish: i32,
) -> weir_status {
    guard("weir_run_options_set_finish_independent", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(options, "options") }?.finish_independent = boolean(finish, "finish")?;
        Ok(())
    })
}

/// The value set by weir_run_options_set_finish_independent.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_get_finish_independent(
    options: *const weir_run_options,
    out_finish: *mut i32,
) -> weir_status {
    guard("weir_run_options_get_finish_independent", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_value(out_finish, "out_finish")?, handle::borrow(options, "options")?) };
        out.set(i32::from(options.finish_independent));
        Ok(())
    })
}

/// Tells the host about the end of every run with these options, so that none is missed and no second call is needed:
/// as if weir_run_notify were called in weir_program_start, and the same for a run of weir_program_run on an
/// asynchronous stream, which also keeps the failure. NULL (the default) = no notice. There is exactly one notice if
/// the call that starts a run returns WEIR_OK, and none otherwise. From its second time on a run with a notice
/// allocates no more than one without.
///
/// Runs that are over when their call returns have no notice: weir_program_run without a stream or on a synchronous
/// one, and weir_program_run_many, refuse such options (INVALID_ARGUMENT).
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: `notice` is read during the call;
/// `release` is called once with its ctx, when the options have another notice or are destroyed, and the notices of all
/// runs with this one have arrived. Errors: INVALID_ARGUMENT (neither function nor eventfd, an event_fd that is no
/// eventfd or that blocks); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_set_notice(
    options: *mut weir_run_options,
    notice: *const weir_notice,
) -> weir_status {
    guard("weir_run_options_set_notice", || {
        // SAFETY: the caller's pointers, as documented.
        let (options, listener) = unsafe {
            let options = handle::borrow_mut(options, "options")?;
            (options, notice::read_opt("weir_run_options_set_notice", notice)?)
        };
        heap::check()?;
        if let Some(listener) = &listener {
            listener.adopt();
        }
        let before = std::mem::replace(&mut options.listener, listener);
        // Dropping it calls the host.
        drop(before);
        Ok(())
    })
}

/// The notice set by weir_run_options_set_notice; with neither function nor eventfd if none.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's struct, struct_size set;
/// ctx stays the options'.
/// Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_get_notice(
    options: *const weir_run_options,
    out_notice: *mut weir_notice,
) -> weir_status {
    guard("weir_run_options_get_notice", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let listener = handle::borrow(options, "options")?.listener.as_ref();
            let notice = listener.map_or(notice::NONE, |listener| listener.notice());
            versioned::write(out_notice, &notice, "out_notice")
        }
    })
}
