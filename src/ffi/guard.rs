//! The panic guard: every exported body runs in here.
#![forbid(unsafe_code)]

use super::{environment, last_error};
use crate::abi::weir_status;
use crate::base::{Code, Error, Result};
use crate::device::plugin;
use crate::memory::heap;
use crate::sync::fork;
use crate::threadpool::{any_buried, release_buried};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one exported body: errors and panics become a status and a message.
#[inline]
pub(super) fn guard(function: &'static str, body: impl FnOnce() -> Result<()>) -> weir_status {
    let checked = || {
        if fork::hook() && cfg!(feature = "graph") {
            environment::begin();
        }
        heap::enter().or_else(enter_again)?;
        body()
    };
    let result = catch_unwind(AssertUnwindSafe(checked));
    release_ended_pools();
    if let Ok(Ok(())) = result { 0 } else { failed(function, result) }
}

/// The reserve is short: what this thread keeps of an earlier failure refuses no call.
#[cold]
fn enter_again(short: Error) -> Result<()> {
    if !last_error::moves_out() {
        return Err(short);
    }
    // It may be in the reserve as well.
    drop(short);
    heap::enter()
}

/// Once for all bodies, of which there are hundreds.
#[cold]
fn failed(function: &'static str, result: std::thread::Result<Result<()>>) -> weir_status {
    match result {
        Ok(result) => result.map_or_else(|error| fail(function, &error), |()| 0),
        Err(payload) => fail(function, &panicked(payload)),
    }
}

/// Runs the body of a release or destroy function: legal in a forked child and when memory is short, and silent.
pub(super) fn guard_release(function: &'static str, body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        fail(function, &panicked(payload));
    }
    release_ended_pools();
}

/// Runs the body of a query that cannot fail: legal in a forked child too.
pub(super) fn guard_value<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        std::mem::forget(payload);
        fallback
    })
}

/// Finishes releases that were postponed: of pools whose last reference went inside one of their own tasks, and of
/// objects released inside a plug-in's callback.
#[inline]
pub(super) fn release_ended_pools() {
    if any_buried() || plugin::any_buried() {
        release_all_buried();
    }
}

#[cold]
fn release_all_buried() {
    let _ = catch_unwind(release_buried);
    let _ = catch_unwind(plugin::release_buried);
}

/// Keeps the message for weir_last_error_message and gives the code.
fn fail(function: &'static str, error: &Error) -> weir_status {
    last_error::set(function, error);
    error.code().status()
}

/// Turns a caught panic into an error. The payload is forgotten: its destructor could panic again.
pub(super) fn panicked(payload: Box<dyn Any + Send>) -> Error {
    let error = Error::from_panic(&*payload);
    std::mem::forget(payload);
    debug_assert_eq!(error.code(), Code::Internal);
    error
}
