//! The failed run behind the calling thread's last error, or behind a run handle.
//!
//! Chapter: Failures.

use super::guard::{guard, guard_value};
use super::{handle, last_error, text, versioned};
use crate::abi::*;
use crate::base::text::fixed;
use crate::base::{Error, Result, RunFailure};
use std::ffi::c_char;

/// Fills *out_failure with the failed run behind the calling thread's last failed weir call: weir_program_run,
/// weir_run_wait, or a call that reported the late error of a stream. If that call failed for another reason, or none
/// has failed, code is WEIR_OK and the rest empty. Successful calls leave it unchanged.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
/// Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_last_failure_get(out_failure: *mut weir_run_failure) -> weir_status {
    keeping("weir_last_failure_get", || {
        let failure = describe(last_error::failure().as_ref());
        // SAFETY: the caller's pointer, as documented.
        unsafe { versioned::write(out_failure, &failure, "out_failure") }
    })
}

/// Copies the name of a node that was not begun because of the failure that weir_last_failure_get describes, as
/// weir_last_error_copy copies its text; index is below num_not_run, in the order of the program.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
/// Errors: INVALID_ARGUMENT; OUT_OF_RANGE if there is no such index, or capacity is too small (then out_length is set).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_last_failure_copy_not_run(
    index: usize,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    keeping("weir_last_failure_copy_not_run", || {
        let error = last_error::failure();
        let name = not_run(error.as_ref(), index)?;
        // SAFETY: the caller's buffer, as documented.
        unsafe { text::copy(name, buffer, capacity, out_length) }
    })
}

/// As weir_last_failure_get, for a run that was started with weir_program_start. Its code is WEIR_OK until it is done,
/// and if it succeeded.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set.
/// Errors: INVALID_ARGUMENT (NULL, or a struct_size below the first published one).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_get_failure(run: *const weir_run, out_failure: *mut weir_run_failure) -> weir_status {
    guard("weir_run_get_failure", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let failure = describe(handle::borrow(run, "run")?.error().as_ref());
            versioned::write(out_failure, &failure, "out_failure")
        }
    })
}

/// As weir_last_failure_copy_not_run, for a run that was started with weir_program_start.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
/// Errors: INVALID_ARGUMENT; OUT_OF_RANGE if there is no such index, or capacity is too small (then out_length is set).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_copy_not_run(
    run: *const weir_run,
    index: usize,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_run_copy_not_run", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let error = handle::borrow(run, "run")?.error();
            text::copy(not_run(error.as_ref(), index)?, buffer, capacity, out_length)
        }
    })
}

/// Runs the body of a call that queries the last failure, and must not replace it when it fails itself.
fn keeping(function: &'static str, body: impl FnOnce() -> Result<()>) -> weir_status {
    match guard_value(Err(Error::internal("panic")), body) {
        Ok(()) => 0,
        Err(error) => {
            last_error::set_message(function, error.message());
            error.code().status()
        }
    }
}

fn describe(error: Option<&Error>) -> weir_run_failure {
    let nothing = RunFailure::default();
    let run = error.and_then(Error::run).unwrap_or(&nothing);
    let iteration = run.iteration.as_ref();
    weir_run_failure {
        struct_size: 0,
        code: error.map_or(0, |error| error.code().status()),
        reserved: 0,
        iteration: iteration.map_or(-1, |&(_, n)| i64::try_from(n).unwrap_or(i64::MAX)),
        num_not_run: run.left_out.len(),
        node: fixed(run.node.as_deref().unwrap_or_default()),
        loop_node: fixed(iteration.map_or("", |(name, _)| name)),
        engine: fixed(run.engine.as_deref().unwrap_or_default()),
    }
}

fn not_run(error: Option<&Error>, index: usize) -> Result<&str> {
    let left_out = error.and_then(Error::run).map_or(&[][..], |run| &run.left_out);
    let name = left_out.get(index).map(|name| &**name);
    name.ok_or_else(|| Error::out_of_range(format!("index is {index}, {} nodes were not run", left_out.len())))
}
