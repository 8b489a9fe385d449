//! Work on devices that is submitted as one.

use super::argument::{boolean, out_value};
use super::guard::guard;
use super::handle;
use crate::abi::*;

/// Whether work on devices is recorded: 1 (the default), or 0. Where four nodes or more of one device have no other node between
/// them, the second run of the program has the device record them, with the copies of inputs that only they read, and later runs submit the
/// recording by one call. Results are the same. With 0, or where a device does not record, every run issues each node by itself. The
/// program's report (weir_program_report) says how many there are, or why not.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_segments(
    options: *mut weir_compile_options,
    segments: i32,
) -> weir_status {
    guard("weir_compile_options_set_segments", || {
        // SAFETY: the caller's handle, as documented.
        let options = unsafe { handle::borrow_mut(options, "options") }?;
        options.without_segments = !boolean(segments, "segments")?;
        Ok(())
    })
}

/// What weir_compile_options_set_segments set.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_segments(
    options: *const weir_compile_options,
    out_segments: *mut i32,
) -> weir_status {
    guard("weir_compile_options_get_segments", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_value(out_segments, "out_segments")?, handle::borrow(options, "options")?) };
        out.set(i32::from(!options.without_segments));
        Ok(())
    })
}
