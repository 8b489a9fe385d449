//! Options of a new kernel.

use super::argument::string;
use super::versioned;
use crate::abi::weir_kernel_options;
use crate::base::Result;
use crate::engine::KernelOptions;

/// Reads the options of a kernel.
///
/// # Safety
/// `options` is NULL or points to `struct_size` readable bytes, with a name that is NULL or NUL-terminated.
pub(super) unsafe fn kernel_options(options: *const weir_kernel_options) -> Result<KernelOptions> {
    // SAFETY: as demanded of the caller.
    let Some(told) = unsafe { versioned::read_opt(options, "options") }? else { return Ok(KernelOptions::default()) };
    let name = match told.name.is_null() {
        true => "",
        // SAFETY: as demanded of the caller.
        false => unsafe { string(told.name, "options->name") }?,
    };
    Ok(KernelOptions { name: name.to_owned(), cost_ns: told.cost_ns })
}
