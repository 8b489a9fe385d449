//! The limit of concurrent runs of a program.
//!
//! Chapter: Run.

use super::argument::{boolean, out_value};
use super::guard::guard;
use super::handle;
use crate::abi::*;

/// Maximum number of concurrent runs of the program; 0 (the default) = no limit. Runs of parts of its outputs count
/// too. A run beyond the limit waits, first come, first served:
///
/// - in the calling thread (a NULL or synchronous stream) it sleeps until another run is over, or its deadline. Inside
///   of a task of a thread pool, of a stream's work, or of a run of a program with such a limit it does not sleep: it
///   helps the pool and spins for a while, and is then refused with FAILED_PRECONDITION;
/// - an asynchronous stream accepts it as usual, and the call does not block; when its turn comes, the stream waits
///   without holding a thread. To be refused at the call instead, see weir_run_options_set_no_wait.
///
/// A run that begins inside of a run of the same program is part of it and does not count; so are programs as nodes
/// (weir_graph_add_program) and weir_kernel_context_run_program. A call of weir_program_run_many waits for one slot,
/// and uses as many more as are free then. A host thread that completes a kernel later is inside of nothing: it must
/// not wait for a run of the program that its kernel is part of. A kernel that waits, outside of a pool, for a stream
/// on which a run of its own program waits for a slot is refused (FAILED_PRECONDITION).
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
///
/// Chapter: Program.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_max_concurrent_runs(
    options: *mut weir_compile_options,
    max_runs: u32,
) -> weir_status {
    guard("weir_compile_options_set_max_concurrent_runs", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(options, "options") }?.max_concurrent_runs = max_runs;
        Ok(())
    })
}

/// The limit set by weir_compile_options_set_max_concurrent_runs.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
///
/// Chapter: Program.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_max_concurrent_runs(
    options: *const weir_compile_options,
    out_max_runs: *mut u32,
) -> weir_status {
    guard("weir_compile_options_get_max_concurrent_runs", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_value(out_max_runs, "out_max_runs")?, handle::borrow(options, "options")?) };
        out.set(options.max_concurrent_runs);
        Ok(())
    })
}

/// Whether a run of a program with a limit (weir_compile_options_set_max_concurrent_runs) is refused at the call with
/// RESOURCE_EXHAUSTED where it would have to wait: 1, or 0 (the default). In the calling thread that is while as many
/// runs are active as the limit allows; on an asynchronous stream while as many are queued on streams or active.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_set_no_wait(options: *mut weir_run_options, no_wait: i32) -> weir_status {
    guard("weir_run_options_set_no_wait", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(options, "options") }?.no_wait = boolean(no_wait, "no_wait")?;
        Ok(())
    })
}

/// The value set by weir_run_options_set_no_wait.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_options_get_no_wait(
    options: *const weir_run_options,
    out_no_wait: *mut i32,
) -> weir_status {
    guard("weir_run_options_get_no_wait", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_value(out_no_wait, "out_no_wait")?, handle::borrow(options, "options")?) };
        out.set(i32::from(options.no_wait));
        Ok(())
    })
}
