//! Options of a new kernel.

use super::argument::string;
use super::versioned;
use crate::abi::weir_kernel_options;
use crate::base::{Error, Result};
use crate::engine::KernelOptions;

/// Reads the options of a kernel.
///
/// # Safety
/// `options` is NULL or points to `struct_size` readable bytes, with a name that is NULL or NUL-terminated.
pub(super) unsafe fn kernel_options(options: *const weir_kernel_options) -> Result<KernelOptions> {
    // SAFETY: as demanded of the caller.
    let (options, settings) = unsafe { with_settings(options) }?;
    match settings {
        "" => Ok(options),
        names => Err(Error::invalid(format!("options->settings is '{names}', expected NULL: no built-in kernel"))),
    }
}

/// The options of a built-in kernel, and its settings that are tensors.
///
/// # Safety
/// As of `kernel_options`; settings as the name.
pub(super) unsafe fn with_settings<'a>(options: *const weir_kernel_options) -> Result<(KernelOptions, &'a str)> {
    // SAFETY: as demanded of the caller.
    let Some(told) = (unsafe { versioned::read_opt(options, "options") })? else {
        return Ok((KernelOptions::default(), ""));
    };
    let name = match told.name.is_null() {
        true => "",
        // SAFETY: as demanded of the caller.
        false => unsafe { string(told.name, "options->name") }?,
    };
    let settings = match told.settings.is_null() {
        true => "",
        // SAFETY: as demanded of the caller.
        false => unsafe { string(told.settings, "options->settings") }?,
    };
    Ok((KernelOptions { name: name.to_owned(), cost_ns: told.cost_ns }, settings.trim_ascii()))
}
