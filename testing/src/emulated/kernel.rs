//! Kernels: host functions that compute the same.

use crate::abi::{weir_destroy_fn, weir_device_host_call_fn, weir_device_recipe, weir_tensor_view};
use crate::base::{Code, Error, Result};
use crate::memory::View;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};

/// The capacity of a failure's text, in bytes.
const TEXT: usize = 2048;

/// # Safety
/// A text that ends with a NUL, or NULL.
pub(super) unsafe fn text<'a>(text: *const c_char) -> Cow<'a, str> {
    // SAFETY: as demanded of the caller.
    if text.is_null() { Cow::Borrowed("") } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() }
}

pub(super) struct EmulatedKernel {
    call: weir_device_host_call_fn,
    user: *mut c_void,
    release: weir_destroy_fn,
}

// SAFETY: the function may be called from any thread, several at a time, and so may the release (docs of
// weir_device_host_call_fn and weir_device_recipe).
unsafe impl Send for EmulatedKernel {}
// SAFETY: as above.
unsafe impl Sync for EmulatedKernel {}

impl EmulatedKernel {
    /// # Safety
    /// A recipe of weir's.
    pub(super) unsafe fn new(recipe: &weir_device_recipe) -> Result<EmulatedKernel> {
        if recipe.host_call.is_none() {
            // SAFETY: the operation is a text.
            let operation = unsafe { text(recipe.operation) };
            let text = format!("an emulated device has no kernel '{operation}' of its own");
            return Err(Error::new(Code::Unimplemented, text));
        }
        if let Some(retain) = recipe.host_retain {
            // SAFETY: as demanded of the caller.
            unsafe { retain(recipe.host_user) };
        }
        Ok(EmulatedKernel { call: recipe.host_call, user: recipe.host_user, release: recipe.host_release })
    }

    /// # Safety
    /// The views' bytes are there during the call. Nobody writes the inputs, and nobody else has the outputs.
    pub(super) unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        let Some(call) = self.call else { return Ok(()) };
        let mut why: [c_char; TEXT] = [0; TEXT];
        let views = |views: &[View]| (views.as_ptr().cast::<weir_tensor_view>(), views.len());
        let ((inputs, num_inputs), (outputs, num_outputs)) = (views(inputs), views(outputs));
        // SAFETY: the function was retained; the views are as demanded of the caller, and a View is a weir_tensor_view.
        let status = unsafe { call(self.user, inputs, num_inputs, outputs, num_outputs, why.as_mut_ptr(), why.len()) };
        match Code::from_status(status) {
            None if status == 0 => Ok(()),
            // SAFETY: a text, which ends in the array.
            Some(code) => Err(Error::new(code, unsafe { text(why.as_ptr()) })),
            None => Err(Error::from_status(status, "a kernel")),
        }
    }
}

impl Drop for EmulatedKernel {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was retained in `new`.
            unsafe { release(self.user) };
        }
    }
}
