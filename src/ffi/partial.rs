//! Runs that compute a part of a program's outputs.
//!
//! Chapter: Run.

use super::argument::{array, out_const, out_value};
use super::guard::guard;
use super::handle;
use crate::abi::*;
use crate::base::Error;
use crate::graph::MOST_PARTS;

/// Maximum number of different output lists for which the program keeps compiled parts, so that runs may ask for a part
/// of its outputs (weir_run_options_set_outputs): 1 to 256, or 0 (the default) for no such runs. With it the program
/// keeps the nodes of the graph, constants included, as long as it lives. The first run with a list compiles the part
/// that the list needs, and later runs find it; when the maximum is reached, a list that was not used recently is
/// dropped, and compiled again if it comes back. Each list that is kept counts as a program in weir_runtime_info.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT;
/// OUT_OF_RANGE (more than 256).
///
/// Chapter: Program.
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

/// The value set by weir_compile_options_set_partial_runs.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
///
/// Chapter: Program.
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

/// Selects the outputs that a run computes, by their indices in the program, for a program compiled with
/// weir_compile_options_set_partial_runs: the run then takes `count` tensors as its outputs, for these outputs in this
/// order, and executes only the nodes that they depend on, along data and control edges. Everything else is left out,
/// including tasks and kernels without outputs, unless one of these outputs depends on them; the inside of a cond, a
/// case or a loop that runs is complete as always. The run still takes all of the program's inputs, but those that none
/// of its nodes needs are ignored and may be NULL. Lists of the length of the program's outputs (flags for absent
/// outputs) have the length of `indices` here. NULL and 0 (the default) = all outputs, and everything with side
/// effects.
///
/// Such runs count in the program's counters and node figures. The costs that the program learns
/// (weir_program_save_costs) are those of whole runs; a part begins with the costs known for the whole, and then
/// learns its own.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: the indices are copied. Errors:
/// INVALID_ARGUMENT (a duplicate index; NULL); RESOURCE_EXHAUSTED. The running call fails with OUT_OF_RANGE if the
/// program has no such output, and with FAILED_PRECONDITION if it was compiled without partial runs; the first run with
/// a list may fail with RESOURCE_EXHAUSTED.
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

/// The list set by weir_run_options_set_outputs: NULL and 0 if none.
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
