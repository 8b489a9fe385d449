//! A closure as C sees it.

use std::ffi::c_void;

/// A C function and its argument.
#[derive(Clone, Copy, Debug)]
pub struct RawTask {
    run: unsafe extern "C" fn(*mut c_void, i32),
    arg: *mut c_void,
}

// SAFETY: by the contract of `new` it may run on any thread.
unsafe impl Send for RawTask {}
// SAFETY: as above.
unsafe impl Sync for RawTask {}

impl RawTask {
    /// # Safety
    /// `run(arg, i)` may be called from any thread, once for each call that was agreed on, and does not unwind.
    pub unsafe fn new(run: unsafe extern "C" fn(*mut c_void, i32), arg: *mut c_void) -> RawTask {
        RawTask { run, arg }
    }

    /// Runs it.
    pub fn run(self, i: i32) {
        // SAFETY: by the contract of `new`; pools call it once for each agreed index.
        unsafe { (self.run)(self.arg, i) }
    }

    /// The two halves, for a C vtable.
    pub fn parts(self) -> (unsafe extern "C" fn(*mut c_void, i32), *mut c_void) {
        (self.run, self.arg)
    }
}
