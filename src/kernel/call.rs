//! A kernel's body as a plain C function.

use super::{KernelContext, Outputs};
use crate::abi::weir_kernel_context;
use crate::base::{Error, Result};
use std::ffi::c_void;

/// A host function and its argument. A node of a graph has a copy of it, so that a run need not read the kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelCall {
    f: unsafe extern "C" fn(*mut c_void, *mut weir_kernel_context) -> i32,
    user: *mut c_void,
}

// SAFETY: the maker of a KernelCall promises that it may run on any thread.
unsafe impl Send for KernelCall {}
// SAFETY: as above.
unsafe impl Sync for KernelCall {}

impl KernelCall {
    /// # Safety
    /// `f(user, context)` may be called from any thread, any number of times at once while the kernel exists, reads the
    /// context through the C API alone and not after its return, and does not unwind.
    pub unsafe fn new(
        f: unsafe extern "C" fn(*mut c_void, *mut weir_kernel_context) -> i32,
        user: *mut c_void,
    ) -> KernelCall {
        KernelCall { f, user }
    }

    /// Calls the function. No failure stays in the context.
    #[inline]
    pub fn run(self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        // SAFETY: by the contract of `new`. The context is behind a tag, and outlives the call, which has the outputs.
        let status = unsafe { (self.f)(self.user, std::ptr::from_ref(context).cast_mut().cast()) };
        if status == 0 && !context.has_failed() { Ok(()) } else { failed(context, status) }
    }
}

#[cold]
fn failed(context: &KernelContext<'_>, status: i32) -> Result<()> {
    match (context.take_failure(), status) {
        (Some(error), _) => Err(error),
        (None, 0) => Ok(()),
        (None, status) => Err(Error::from_status(status, "its compute function")),
    }
}
