//! Closures as functions of C: nothing unwinds out of one.

use crate::error::check;
use crate::{Error, ErrorKind, Result};
use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use weir_core::abi::{weir_destroy_fn, weir_host_fn, weir_status};

/// Calls a closure, and turns a panic into a failure.
pub(crate) fn contained<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(panicked(payload)))
}

/// Calls a closure whose panic nobody is told of but by the hook for panics.
pub(crate) fn silenced(body: impl FnOnce()) {
    let _ = contained(|| {
        body();
        Ok(())
    });
}

fn panicked(payload: Box<dyn Any + Send>) -> Error {
    let text = panic_text(payload);
    Error::new(ErrorKind::Unknown, format!("the closure panicked: {}", text.as_deref().unwrap_or("not with a text")))
}

/// The text of a panic. Payloads that are none are not dropped: their destructor could panic again.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> Option<String> {
    let other = match payload.downcast::<&'static str>() {
        Ok(text) => return Some((*text).to_owned()),
        Err(other) => other,
    };
    other.downcast::<String>().map(|text| *text).map_err(std::mem::forget).ok()
}

/// Drops a `Box<T>` that C had as a pointer.
///
/// # Safety
/// `owned` came from a `Box<T>` and nobody uses it any more.
pub(crate) unsafe extern "C" fn drop_box<T>(owned: *mut c_void) {
    // SAFETY: as demanded of the caller.
    let owned = unsafe { Box::from_raw(owned.cast::<T>()) };
    silenced(|| drop(owned));
}

/// A closure that is called at most once, as the context of a function of C.
pub(crate) struct Once<F>(Mutex<Option<F>>);

impl<F: FnOnce() -> Result<()> + Send> Once<F> {
    /// Has `ask` take the closure over, with the functions that call and release it. If it is refused the closure is
    /// dropped. A status alone does not tell, since it may be the closure's own: one that was released was accepted.
    pub(crate) fn hand_over(
        closure: F,
        ask: impl FnOnce(weir_host_fn, *mut c_void, weir_destroy_fn) -> weir_status,
    ) -> Result<()> {
        let once = Arc::new(Once(Mutex::new(Some(closure))));
        let context = Arc::into_raw(Arc::clone(&once)).cast_mut();
        let result = check(ask(Some(Once::<F>::call), context.cast(), Some(Once::<F>::release)));
        if result.is_err() && Arc::strong_count(&once) == 2 {
            // SAFETY: weir was given this reference, and did not take it.
            unsafe { Once::<F>::release(context.cast()) }
        }
        silenced(|| drop(once));
        result
    }

    /// # Safety
    /// `context` is a reference to such a value, which `release` has not given up.
    unsafe extern "C" fn call(context: *mut c_void) -> i32 {
        // SAFETY: as demanded of the caller.
        let once = unsafe { &*context.cast_const().cast::<Once<F>>() };
        let closure = once.0.lock().unwrap_or_else(|e| e.into_inner()).take();
        status(contained(|| closure.map_or(Ok(()), |closure| closure())))
    }

    /// # Safety
    /// `context` is a reference to such a value, which is given up here.
    unsafe extern "C" fn release(context: *mut c_void) {
        // SAFETY: as demanded of the caller.
        let once = unsafe { Arc::from_raw(context.cast_const().cast::<Once<F>>()) };
        silenced(|| drop(once));
    }
}

/// A closure that is called often, also by several threads at once, as the context of a function of C.
///
/// # Safety
/// `context` came from a `Box<F>` that is alive.
pub(crate) unsafe extern "C" fn call_often<F: Fn() -> Result<()> + Sync>(context: *mut c_void) -> i32 {
    // SAFETY: as demanded of the caller.
    let closure = unsafe { &*context.cast_const().cast::<F>() };
    status(contained(closure))
}

pub(crate) fn status(result: Result<()>) -> i32 {
    result.map_or_else(|error| error.kind().code(), |()| 0)
}
