//! What is known of runs.
#![forbid(unsafe_code)]

use super::weir_status;

/// How a run failed. Names are NUL-terminated UTF-8, cut if too long; the text of the error has them whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_run_failure {
    /// sizeof(weir_run_failure), set by the caller before the call.
    pub struct_size: usize,
    /// The run's code; WEIR_OK if no run has failed, and then the rest is empty.
    pub code: weir_status,
    /// Reserved, 0.
    pub reserved: i32,
    /// Iterations of the innermost loop around the node that were over; -1 if the node is in no loop.
    pub iteration: i64,
    /// How many nodes were not begun because of it. Of what is inside of a cond, case or while that was not begun only that
    /// node itself counts.
    pub num_not_run: usize,
    /// The node that failed; "" if the run was cancelled or its deadline has passed.
    pub node: [std::ffi::c_char; 128],
    /// The node of that loop, or "".
    pub loop_node: [std::ffi::c_char; 128],
    /// The engine that the node ran on ("cpu:0"), or "".
    pub engine: [std::ffi::c_char; 64],
}
