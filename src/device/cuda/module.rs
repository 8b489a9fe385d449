//! Modules: images of kernels, loaded into a context.

use super::context::{Context, Handle};
use super::table::{CUfunction, CUmodule};
use crate::base::{Error, Result};
use cudarc::driver::sys::CUjit_option_enum as J;
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// Room for the log of the driver's compiler.
const LOG: usize = 4096;

/// A loaded image.
#[derive(Debug)]
pub(super) struct Module {
    context: Arc<Context>,
    raw: Handle<CUmodule>,
}

impl Module {
    pub(super) fn load_ptx(context: &Arc<Context>, mut ptx: String, what: &str) -> Result<Module> {
        ptx.push('\0');
        Module::load(context, ptx.as_bytes(), what)
    }

    /// Loads PTX, which ends with a NUL, or an image of another form.
    pub(super) fn load(context: &Arc<Context>, image: &[u8], what: &str) -> Result<Module> {
        let mut log = [0u8; LOG];
        let mut options = [J::CU_JIT_ERROR_LOG_BUFFER as c_int, J::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as c_int];
        // The second is a number in the place of a pointer.
        let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG - 1)];
        let mut raw = std::ptr::null_mut();
        let loaded = context.call("cuModuleLoadDataEx", &what, |table| {
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            // SAFETY: the driver's function; the image, the options and what they point to live during the call.
            unsafe { (table.module_load_data_ex)(&raw mut raw, image.as_ptr().cast(), 2, options, values) }
        });
        let said =
            log.split(|&byte| byte == 0).next().map_or(String::new(), |said| String::from_utf8_lossy(said).into());
        loaded.map_err(|error| match said.trim() {
            "" => error,
            said => Error::new(error.code(), format!("{}\n{said}", error.message())),
        })?;
        Ok(Module { context: Arc::clone(context), raw: Handle(raw) })
    }

    /// A kernel of the image.
    pub(super) fn function(&self, name: &CStr) -> Result<Handle<CUfunction>> {
        let mut raw = std::ptr::null_mut();
        self.context.call("cuModuleGetFunction", &format_args!("entry '{}'", name.to_string_lossy()), |table| {
            // SAFETY: the driver's function with a module of this context, and a place for the answer.
            unsafe { (table.module_get_function)(&raw mut raw, self.raw.0, name.as_ptr()) }
        })?;
        Ok(Handle(raw))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the driver's function with a module whose kernels nobody uses any more.
        self.context.take_back("cuModuleUnload", |table| unsafe { (table.module_unload)(self.raw.0) });
    }
}
