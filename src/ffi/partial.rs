//! Runs that compute a part of a program's outputs.

use super::argument::{array, out_const, out_value};
use super::guard::guard;
use super::handle;
use crate::abi::*;
use crate::base::Error;
use crate::graph::MOST_PARTS;

/// Whether runs may ask for a part of the program's outputs (weir_run_options_set_outputs), and how many different
/// lists of outputs the program keeps compiled for them: 1 to 256, or 0 (the default) for no such runs. With it the
/// program keeps the nodes of the graph, constants too, as long as it lives. The first run with a list compiles what
/// that list needs, later ones find it; when as many lists are kept as may be, one that was not asked for of late goes,
/// and is compiled again when it comes back. Each list that is kept counts as a program in weir_runtime_info.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT;
/// OUT_OF_RANGE (more than 256).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_partial_runs(
    options: *mut weir_compile_options,
    max_lists: usize,
) -> weir_status {
    guard("weir_compile_options_set_partial_runs", || {
        // SAFETY: the caller's handle, as documented.
        let options = unsafe { handle::borrow_mut(options, "options") }?;
        if max_lists > MOST_PARTS {
            return Err(Error::out_of_range(format!("max_lists is {max_lists}, expected at most {MOST_PARTS}")));
        }
        options.partial_runs = max_lists;
        Ok(())
    })
}

/// What weir_compile_options_set_partial_runs set.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_partial_runs(
    options: *const weir_compile_options,
    out_max_lists: *mut usize,
) -> weir_status {
    guard("weir_compile_options_get_partial_runs", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) =
            unsafe { (out_value(out_max_lists, "out_max_lists")?, handle::borrow(options, "options")?) };
        out.set(options.partial_runs);
        Ok(())
    })
}

/// The outputs that a run computes, by their numbers in the program, for a program compiled with
/// weir_compile_options_set_partial_runs: the run then takes `count` tensors as its outputs, of these outputs in this
/// order, and runs only the nodes that they depend on, along edges for data and for control. All else is left out,
/// tasks and kernels without outputs too, unless one of these outputs comes behind them; what is inside of a cond, a
/// case or a loop that is run is run as always. The run takes the program's inputs all the same, but those that no node
/// of it needs are not looked at, and may be NULL. Where a list is as long as the program's outputs (flags for absent
/// outputs), it is as long as `indices` here. NULL and 0 (the default) = all outputs, and everything that has effects.
///
/// The program's counters and its figures of nodes count such runs too. What it learns of costs
/// (weir_program_save_profile) is of whole runs; a part begins with what is known of the whole, and then learns for
/// itself.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: the indices are copied. Errors:
/// INVALID_ARGUMENT (a number twice; NULL); RESOURCE_EXHAUSTED. Those who run say OUT_OF_RANGE if the program has no
/// such output, and FAILED_PRECONDITION if it was compiled without partial runs; the first run with a list may say
/// RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_set_outputs(
    options: *mut weir_run_options,
    indices: *const usize,
    count: usize,
) -> weir_status {
    guard("weir_run_options_set_outputs", || {
        // SAFETY: the caller's pointers, as documented.
        let (options, indices) =
            unsafe { (handle::borrow_mut(options, "options")?, array(indices, count, "indices")?) };
        let mut sorted: Vec<usize> = Vec::new();
        sorted.try_reserve_exact(count).map_err(|_| Error::exhausted("the outputs", size_of_val(indices)))?;
        sorted.extend_from_slice(indices);
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("indices: {} is there twice", pair[0])));
        }
        sorted.copy_from_slice(indices);
        options.outputs = (count > 0).then(|| sorted.into_boxed_slice());
        Ok(())
    })
}

/// What weir_run_options_set_outputs set: NULL and 0 if nothing.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: *out_indices is borrowed and stays until
/// the options are changed or destroyed. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_get_outputs(
    options: *const weir_run_options,
    out_indices: *mut *const usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_run_options_get_outputs", || {
        // SAFETY: the caller's pointers, as documented.
        let (indices, count, options) = unsafe {
            (
                out_const(out_indices, "out_indices")?,
                out_value(out_count, "out_count")?,
                handle::borrow(options, "options")?,
            )
        };
        *indices = options.outputs.as_ref().map_or(std::ptr::null(), |outputs| outputs.as_ptr());
        count.set(options.outputs.as_ref().map_or(0, |outputs| outputs.len()));
        Ok(())
    })
}
