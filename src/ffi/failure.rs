//! Failures: of the calling thread's last failed call, of a stream, of a run.
//!
//! Chapter: Failures.

use super::argument::{MAX_TEXT, array_mut};
use super::guard::{guard, guard_value};
use super::{last_error, versioned};
use crate::abi::*;
use crate::base::text::fixed;
use crate::base::{Code, Error, Result, RunFailure};
use std::ffi::{CStr, c_char};

/// Describes the calling thread's last failed weir call: the code that it returned and the text of
/// weir_last_error_message. Node, engine, iteration and the nodes that were not begun are there if a run failed:
/// weir_program_run, weir_run_synchronize, or a call that reported the late error of a stream. Successful calls leave
/// it unchanged.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_thread_get_failure(failure: *mut weir_failure) -> weir_status {
    guard("weir_thread_get_failure", || {
        let run = last_error::failure();
        // SAFETY: the caller's pointer, as documented.
        last_error::with(|code, message| unsafe { write(failure, code, message, run.as_ref().and_then(Error::run)) })
    })
}

/// # Safety
/// As `write`.
pub(super) unsafe fn describe(failure: *mut weir_failure, error: Option<&Error>) -> Result<()> {
    let code = error.map_or(0, |error| error.code().status());
    // SAFETY: as demanded of the caller.
    unsafe { write(failure, code, error.map_or("", Error::message), error.and_then(Error::run)) }
}

/// # Safety
/// `failure` is NULL or points to a struct of the caller's that is as its documentation demands.
unsafe fn write(failure: *mut weir_failure, code: weir_status, message: &str, run: Option<&RunFailure>) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let asked = unsafe { versioned::read(failure.cast_const(), "failure") }?;
    // SAFETY: as demanded of the caller.
    let names = unsafe { array_mut(asked.not_run, asked.not_run_capacity, "failure->not_run") };
    let names = names.map_err(|error| match asked.not_run.is_null() {
        true => Error::invalid(format!(
            "failure->not_run is NULL, but failure->not_run_capacity is {}",
            asked.not_run_capacity
        )),
        false => error,
    })?;
    let nothing = RunFailure::default();
    let run = run.unwrap_or(&nothing);
    let iteration = run.iteration.as_ref();
    let described = weir_failure {
        struct_size: 0,
        code,
        reserved: 0,
        iteration: iteration.map_or(-1, |&(_, n)| i64::try_from(n).unwrap_or(i64::MAX)),
        node: fixed(run.node.as_deref().unwrap_or_default()),
        loop_node: fixed(iteration.map_or("", |(name, _)| name)),
        engine: fixed(run.engine.as_deref().unwrap_or_default()),
        message: fixed(message),
        num_not_run: run.left_out.len(),
        not_run_bytes: run.left_out.iter().map(|name| name.len() + 1).sum(),
        not_run: asked.not_run,
        not_run_capacity: asked.not_run_capacity,
    };
    let mut room = &mut names[..];
    for name in &run.left_out {
        let Some((place, rest)) = std::mem::take(&mut room).split_at_mut_checked(name.len() + 1) else { break };
        for (to, from) in place.iter_mut().zip(name.bytes().chain([0])) {
            *to = from as c_char;
        }
        room = rest;
    }
    // SAFETY: as demanded of the caller.
    unsafe { versioned::write(failure, &described, "failure") }
}

/// Makes "`function`: `text`" with the code `status` the calling thread's last error, as if weir's function had failed:
/// for libraries on top of weir whose functions fail as weir's do. `function` and `text` are copied; NULL is "". A
/// status that is no error's is UNKNOWN.
///
/// Chapter: Device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_last_error_set(status: weir_status, function: *const c_char, text: *const c_char) {
    guard_value((), || {
        let read = |text: *const c_char| {
            // SAFETY: the caller's text, as documented.
            let bytes = if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() };
            String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)])
        };
        let code = Code::from_status(status).unwrap_or(Code::Unknown);
        // It may be the text that is about to be overwritten.
        let function = read(function).into_owned();
        last_error::set(&function, &Error::new(code, read(text).into_owned()));
    });
}
