//! Times of the nodes of a program, and its learned costs.
//!
//! Chapter: Statistics.

use super::argument::{long_string, out_value};
use super::guard::guard;
use super::{handle, text, versioned};
use crate::abi::*;
use crate::base::text::fixed;
use std::ffi::c_char;

/// Fills *out_stats with the time that node `index` has taken. Active runs may be counted in part.
///
/// Errors: OUT_OF_RANGE (index); FAILED_PRECONDITION if the program was compiled without WEIR_COMPILE_STATISTICS.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_get_node_stats(
    program: *const weir_program,
    index: usize,
    out_stats: *mut weir_node_stats,
) -> weir_status {
    guard("weir_program_get_node_stats", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let stats = handle::borrow(program, "program")?.node_stats(index)?;
            let stats = weir_node_stats {
                struct_size: 0,
                count: stats.count,
                total_ns: stats.total_ns,
                min_ns: stats.min_ns,
                max_ns: stats.max_ns,
                name: fixed(&stats.name),
                waited_ns: stats.waited_ns,
            };
            versioned::write(out_stats, &stats, "out_stats")
        }
    })
}

/// Copies the program's learned costs of nodes and iterations of loops, as text. Runs change it: ask for the length and
/// copy while no run is active, or repeat if the buffer was too small.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_save_costs(
    program: *const weir_program,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_program_save_costs", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let program = handle::borrow(program, "program")?;
            text::copy(&program.save_costs(), buffer, capacity, out_length)
        }
    })
}

/// Loads saved costs and iterations into the program, so that its first run is scheduled as well as later ones;
/// *out_num_known is the number of nodes that they were saved for. Nodes are found by their names; names known to only
/// one side are ignored. No result changes.
///
/// Errors: INVALID_ARGUMENT (NULL, or no saved costs; the text names the line); then nothing has changed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_load_costs(
    program: *mut weir_program,
    costs: *const c_char,
    out_num_known: *mut usize,
) -> weir_status {
    guard("weir_program_load_costs", || {
        // SAFETY: the caller's pointers, as documented.
        let (program, costs) =
            unsafe { (handle::borrow(program.cast_const(), "program")?, long_string(costs, "costs")?) };
        // SAFETY: as above.
        let out = unsafe { out_value(out_num_known, "out_num_known") }?;
        out.set(program.load_costs(costs)?);
        Ok(())
    })
}
