//! Recording and compilation of work on devices, and device-side branches and loops.
//!
//! Chapter: Program.

use super::argument::{boolean, out_value};
use super::guard::guard;
use super::handle;
use crate::abi::*;
use crate::base::Error;

/// Whether work on devices is recorded: 1 (the default), 0, or 2. Where at least four nodes of one device have no other
/// node between them, the second run of the program makes the device record them, with the copies of inputs that only
/// they read, and later runs submit the recording by one call. With 1, where such nodes may be spread over several
/// streams (weir_engine_attr_set_max_streams), the program times some of its first runs both ways, and keeps the faster
/// one; with 2 it does not try streams. Results are the same. With 0, or where a device cannot record, every run issues
/// each node by itself. The program's report (weir_program_report) has the number of recordings, or why there are none,
/// and the chosen way.
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
        (options.without_segments, options.without_trial) = match segments {
            0 => (true, false),
            1 => (false, false),
            2 => (false, true),
            other => return Err(Error::invalid(format!("segments is {other}, expected 0, 1 or 2"))),
        };
        Ok(())
    })
}

/// The value set by weir_compile_options_set_segments.
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
        out.set(match (options.without_segments, options.without_trial) {
            (true, _) => 0,
            (false, without_trial) => 1 + i32::from(without_trial),
        });
        Ok(())
    })
}

/// Whether devices evaluate branches and loops themselves: 1 (the default), or 0. A branch or a loop
/// (weir_graph_add_cond, weir_graph_add_case, weir_graph_add_while) that contains only kernels of one accelerator's
/// engine is work of that engine: its values stay there. With 1, and where the device records and supports branches and
/// loops, it decides itself, without the host; then a cancel or the time limit of a run does not end a loop before it
/// ends by itself. With 0, or where the device does not decide, the host reads back only the predicate and issues the
/// work that follows, without holding a thread, and a cancelled or late run ends between two iterations. Results are
/// the same. The program's report (weir_program_report) shows for each node whether host or device decides, and why.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_device_control(
    options: *mut weir_compile_options,
    device_control: i32,
) -> weir_status {
    guard("weir_compile_options_set_device_control", || {
        // SAFETY: the caller's handle, as documented.
        let options = unsafe { handle::borrow_mut(options, "options") }?;
        options.without_device_control = !boolean(device_control, "device_control")?;
        Ok(())
    })
}

/// The value set by weir_compile_options_set_device_control.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_device_control(
    options: *const weir_compile_options,
    out_device_control: *mut i32,
) -> weir_status {
    guard("weir_compile_options_get_device_control", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) =
            unsafe { (out_value(out_device_control, "out_device_control")?, handle::borrow(options, "options")?) };
        out.set(i32::from(!options.without_device_control));
        Ok(())
    })
}

/// Whether devices are offered regions: 1 (the default), or 0. With 1, and where a plug-in's device takes regions
/// (WEIR_DEVICE_REGIONS), nodes on it with no other node between them are offered to it together, also inside of
/// branches and loops. It may compile all or some of them to one kernel, which is then one node of the program with all
/// of their names. With 0 each node is a separate call. Results are the same if the device computes the same. The
/// program's report (weir_program_report) has the numbers offered and taken, and the reasons for declined ones.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_regions(
    options: *mut weir_compile_options,
    regions: i32,
) -> weir_status {
    guard("weir_compile_options_set_regions", || {
        // SAFETY: the caller's handle, as documented.
        let options = unsafe { handle::borrow_mut(options, "options") }?;
        options.without_regions = !boolean(regions, "regions")?;
        Ok(())
    })
}

/// The value set by weir_compile_options_set_regions.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_regions(
    options: *const weir_compile_options,
    out_regions: *mut i32,
) -> weir_status {
    guard("weir_compile_options_get_regions", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_value(out_regions, "out_regions")?, handle::borrow(options, "options")?) };
        out.set(i32::from(!options.without_regions));
        Ok(())
    })
}
