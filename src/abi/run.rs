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
    /// How many nodes were not begun because of it. Of what is inside of a cond, case or while that was not begun only
    /// that node itself counts.
    pub num_not_run: usize,
    /// The node that failed; "" if the run was cancelled or its deadline has passed.
    pub node: [std::ffi::c_char; 128],
    /// The node of that loop, or "".
    pub loop_node: [std::ffi::c_char; 128],
    /// The engine that the node ran on (its name, "cpu:0"), or "".
    pub engine: [std::ffi::c_char; 64],
}

/// The runs of a program since it was compiled.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_program_counters {
    /// sizeof(weir_program_counters), set by the caller before the call.
    pub struct_size: usize,
    /// Runs that have begun. One that was cancelled before its turn in a stream never does.
    pub begun: u64,
    /// Runs that have ended.
    pub ended: u64,
    /// Of those, the ones that failed, also by a deadline, but were not cancelled.
    pub failed: u64,
    /// Of those that have ended, the ones that were cancelled.
    pub cancelled: u64,
    /// Runs that have begun and not ended.
    pub running: u64,
}

/// What a node has taken, over all runs since the program was compiled.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_node_stats {
    /// sizeof(weir_node_stats), set by the caller before the call.
    pub struct_size: usize,
    /// How often it was run, in a loop once for each iteration; always 0 for the nodes that only steer others (cond,
    /// case, while).
    pub count: u64,
    /// Nanoseconds of all runs together, of the shortest and of the longest; a look at the clock is taken off.
    pub total_ns: u64,
    /// The shortest; 0 while count is 0.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The node's name, NUL-terminated UTF-8, cut if too long.
    pub name: [std::ffi::c_char; 128],
    /// Nanoseconds of all runs together between the node being ready, all that it waits for being done, and its
    /// beginning. 0 for runs that one thread makes along the nodes' order: there a node is ready when its turn comes.
    pub waited_ns: u64,
}
