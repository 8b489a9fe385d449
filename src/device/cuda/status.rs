//! The meaning of the driver's statuses: text, and the library's code.

use super::table::{DriverTable, Status};
use crate::base::Code;
use std::ffi::{CStr, c_char};

pub const SUCCESS: Status = 0;
pub const INVALID_VALUE: Status = 1;
pub const OUT_OF_MEMORY: Status = 2;
pub const DEINITIALIZED: Status = 4;
pub const STUB_LIBRARY: Status = 34;
pub const NO_DEVICE: Status = 100;
pub const PEER_ACCESS_ALREADY_ENABLED: Status = 704;
pub const NOT_READY: Status = 600;

/// After one of these the context is unusable: each call fails with the same again.
pub fn is_sticky(status: Status) -> bool {
    matches!(status, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810)
}

/// The driver's reference says of these: the process is in an inconsistent state, and must end before CUDA can be used
/// again. After the others a new context is enough.
pub fn ends_process(status: Status) -> bool {
    matches!(status, 700 | 702 | 714..=719)
}

/// A capture is in progress: the answer is unknown, and nothing has failed.
pub fn is_of_capture(status: Status) -> bool {
    matches!(status, 900..=908)
}

/// The library's code for a failure.
pub fn code(status: Status) -> Code {
    match status {
        _ if is_sticky(status) => Code::DeviceLost,
        // A value, an image, PTX, a source, or a handle that is none.
        INVALID_VALUE | 200 | 218 | 300 | 400 => Code::InvalidArgument,
        OUT_OF_MEMORY | 701 => Code::ResourceExhausted,
        // Not initialised; no context; a context in use; a capture.
        3 | 201 | 202 | 216 | 708 | 712 | 713 => Code::FailedPrecondition,
        _ if is_of_capture(status) => Code::FailedPrecondition,
        // Deinitialised, a stub, busy or absent devices, no compiler, not ready, MPS.
        DEINITIALIZED | STUB_LIBRARY | 46 | NO_DEVICE | 101 | 221 | 802..=809 => Code::Unavailable,
        // No code for this device, PTX of a newer CUDA, not supported.
        209 | 222 | 223 | 224 | 801 => Code::Unimplemented,
        301 | 302 | 500 => Code::NotFound,
        800 => Code::PermissionDenied,
        999 => Code::Unknown,
        _ => Code::Internal,
    }
}

/// "CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)"
pub fn text(table: &DriverTable, status: Status) -> String {
    let ask = |f: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
        let mut text = std::ptr::null();
        // SAFETY: the driver's function, and a place for the answer, which is static.
        let asked = unsafe { f(status, &raw mut text) };
        // SAFETY: the driver's text, which ends with a NUL.
        (asked == SUCCESS && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    match (ask(table.get_error_name), ask(table.get_error_string)) {
        (Some(name), Some(text)) => format!("{name} ({status}, {text})"),
        (Some(name), None) => format!("{name} ({status})"),
        _ => format!("CUDA error {status}, which this driver has no name for"),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn codes_say_who_can_do_something_about_it() {
        for (status, expected) in [
            (1, Code::InvalidArgument),
            (2, Code::ResourceExhausted),
            (34, Code::Unavailable),
            (100, Code::Unavailable),
            (700, Code::DeviceLost),
            (718, Code::DeviceLost),
            (720, Code::Internal),
            (801, Code::Unimplemented),
            (900, Code::FailedPrecondition),
            (999, Code::Unknown),
            (12345, Code::Internal),
        ] {
            assert_eq!(code(status), expected, "{status}");
        }
        assert!(!is_sticky(OUT_OF_MEMORY) && !is_sticky(NOT_READY) && !is_sticky(701));
    }
}
