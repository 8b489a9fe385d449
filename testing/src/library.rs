//! libweir, as this library calls it, and how a function of this library fails.

use crate::abi::*;
use crate::base::Error;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[allow(improper_ctypes, reason = "handles are pointers to what only libweir knows")]
unsafe extern "C" {
    fn weir_last_error_message() -> *const c_char;
    fn weir_last_error_set(status: weir_status, function: *const c_char, text: *const c_char);
    pub fn weir_device_register(
        name: *const c_char,
        priority: i32,
        vtable: *const weir_device_vtable,
        ctx: *mut c_void,
    ) -> weir_status;
    pub fn weir_engine_attr_get_kind(attr: *const weir_engine_attr, out_kind: *mut weir_engine_kind) -> weir_status;
    pub fn weir_engine_attr_set_device_settings(
        attr: *mut weir_engine_attr,
        settings: *const c_void,
        bytes: usize,
    ) -> weir_status;
    pub fn weir_engine_attr_get_device_settings(
        attr: *const weir_engine_attr,
        out_settings: *mut c_void,
        capacity: usize,
        out_bytes: *mut usize,
    ) -> weir_status;
    pub fn weir_engine_kind_name(kind: weir_engine_kind) -> *const c_char;
    pub fn weir_engine_get_info(engine: *const weir_engine, out_info: *mut weir_engine_info) -> weir_status;
    pub fn weir_engine_get_name(
        engine: *const weir_engine,
        buffer: *mut c_char,
        capacity: usize,
        out_length: *mut usize,
    ) -> weir_status;
    pub fn weir_engine_get_native_handle(engine: *const weir_engine, out_handle: *mut u64) -> weir_status;
    pub fn weir_threadpool_create(
        vtable: *const weir_threadpool_vtable,
        ctx: *mut c_void,
        options: *const weir_threadpool_options,
        out_pool: *mut *mut weir_threadpool,
    ) -> weir_status;
}

/// Why a function of this library fails.
pub enum Failure {
    Own(Error),
    /// libweir has said why, under the name of a function of its own.
    Told(weir_status),
}

pub type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Own(error)
    }
}

/// The answer of a function of libweir.
pub fn told(status: weir_status) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(Failure::Told(status)) }
}

/// The reason that libweir gave, without the name of its function.
fn reason() -> String {
    // SAFETY: a text that is valid until the next call that fails.
    let told = unsafe { CStr::from_ptr(weir_last_error_message()) }.to_string_lossy();
    told.split_once(": ").map_or(&*told, |(_, reason)| reason).to_owned()
}

/// Runs the body of an exported function: failures and panics become a status, and a text for the calling thread.
pub fn guard(function: &str, body: impl FnOnce() -> Result<()>) -> weir_status {
    let (status, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(Failure::Told(status))) => (status, reason()),
        Ok(Err(Failure::Own(error))) => (error.code().status(), error.message().to_owned()),
        Err(payload) => {
            let error = Error::from_panic(&*payload);
            // Dropping it might panic again.
            std::mem::forget(payload);
            (error.code().status(), error.message().to_owned())
        }
    };
    let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let (function, message) = (text(function), text(&message));
    // SAFETY: two texts that live during the call.
    unsafe { weir_last_error_set(status, function.as_ptr(), message.as_ptr()) };
    status
}
