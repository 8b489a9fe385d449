//! A function of the host's, with its argument.

use crate::base::Error;
use std::ffi::c_void;

/// A C function that returns a status, and its argument.
#[derive(Clone, Copy, Debug)]
pub struct HostCall {
    f: unsafe extern "C" fn(*mut c_void) -> i32,
    arg: *mut c_void,
}

// SAFETY: by the contract of `new` it may run on any thread.
unsafe impl Send for HostCall {}
// SAFETY: as above.
unsafe impl Sync for HostCall {}

impl HostCall {
    /// # Safety
    /// `f(arg)` may be called from any thread, any number of times at once while the HostCall exists, and does not
    /// unwind.
    pub unsafe fn new(f: unsafe extern "C" fn(*mut c_void) -> i32, arg: *mut c_void) -> HostCall {
        HostCall { f, arg }
    }

    /// The error for a status other than OK.
    #[cold]
    pub fn failed(self, status: i32) -> Error {
        Error::from_status(status, "the host's function")
    }

    /// Calls it; gives its status.
    #[inline]
    pub fn run(self) -> i32 {
        // SAFETY: by the contract of `new`.
        unsafe { (self.f)(self.arg) }
    }
}
