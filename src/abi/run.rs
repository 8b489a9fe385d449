//! Failures and figures of runs.
//!
//! Chapter: Failures.
#![forbid(unsafe_code)]

use super::{weir_engine, weir_run, weir_status, weir_tensor_desc};

/// A failure: of the calling thread's last failed call, of a stream, or of a run. Texts are NUL-terminated UTF-8, cut
/// if they are too long.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_failure {
    /// sizeof(weir_failure), set by the caller before the call.
    pub struct_size: usize,
    /// WEIR_OK if there is no failure, and then the rest is empty.
    pub code: weir_status,
    /// Reserved, 0.
    pub reserved: i32,
    /// Of a run: completed iterations of the innermost loop around the node; -1 if the node is in no loop.
    pub iteration: i64,
    /// Of a run: the node that failed; "" if the run was cancelled or its deadline has passed.
    pub node: [std::ffi::c_char; 128],
    /// The node of the innermost loop, or "".
    pub loop_node: [std::ffi::c_char; 128],
    /// The engine that the node ran on (its name, "cpu:0"), or "".
    pub engine: [std::ffi::c_char; 64],
    /// The text: the object and the cause. A thread's begins with the function that failed.
    pub message: [std::ffi::c_char; 1024],
    /// Of a run: number of nodes that were not begun because of the failure. A cond, case or while that was not begun
    /// counts as one node, whatever is inside.
    pub num_not_run: usize,
    /// Bytes that their names take, each with a NUL.
    pub not_run_bytes: usize,
    /// Set by the caller: NULL, or where the names go, one after the other in the order of the program, those that fit.
    pub not_run: *mut std::ffi::c_char,
    /// Bytes at not_run, set by the caller.
    pub not_run_capacity: usize,
}

/// A program, and the runs that it has had since it was compiled.
///
/// Chapter: Program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_program_info {
    /// sizeof(weir_program_info), set by the caller before the call.
    pub struct_size: usize,
    /// Number of inputs of a run.
    pub num_inputs: usize,
    /// Number of outputs of a run.
    pub num_outputs: usize,
    /// Number of nodes that a run goes through: those that compile has kept, including nested ones, and copies of the
    /// inside of loops whose iterations overlap; the figures of such a node are those of its first copy.
    pub num_nodes: usize,
    /// Runs that have begun. A run cancelled before its turn in a stream never begins.
    pub begun: u64,
    /// Runs that have ended.
    pub ended: u64,
    /// Of these, the ones that failed, deadlines included, but were not cancelled.
    pub failed: u64,
    /// Of these, the ones that were cancelled.
    pub cancelled: u64,
    /// Runs that have begun and not ended.
    pub running: u64,
}

/// Inputs or outputs of a program: one of enum weir_port_kind_value.
///
/// Chapter: Program.
pub type weir_port_kind = u32;

/// Inputs or outputs of a program.
///
/// Chapter: Program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_port_kind_value {
    WEIR_PORT_INPUT = 1,
    WEIR_PORT_OUTPUT = 2,
}

/// An input or output of a program.
///
/// Chapter: Program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_port_info {
    /// sizeof(weir_port_info), set by the caller before the call.
    pub struct_size: usize,
    /// Element type and shape.
    pub desc: weir_tensor_desc,
    /// The engine in whose memory runs receive it; borrowed, it lives as long as the program.
    pub engine: *mut weir_engine,
    /// Its name, NUL-terminated UTF-8, cut if too long.
    pub name: [std::ffi::c_char; 128],
}

/// How far a run is (weir_run_options.progress).
///
/// Chapter: Run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_run_progress {
    /// sizeof(weir_run_progress), set by the library: a newer one may have more members than the caller's header.
    pub struct_size: usize,
    /// The run, borrowed for the call, for instance to cancel it; NULL for a run of weir_program_run.
    pub run: *mut weir_run,
    /// Nodes that are over: each kernel, task or other node that computes, in a loop once for each iteration. Conds,
    /// cases and loops themselves do not count. A node that is passed over because an input is absent counts. A program
    /// as a node, a node that fusion has made of several, and work that a device does as one piece are one node each;
    /// work that is only handed to a device is over when it is handed over. More of them with each report.
    pub nodes_done: u64,
    /// These, and all that are known to come: those outside of branches and loops, of each branch that was taken and of
    /// each iteration that has begun. So it grows while branches and iterations begin, and never shrinks. When a run
    /// succeeds all of them are over.
    pub nodes_total: u64,
    /// Nanoseconds since the run began; time in a stream's queue does not count.
    pub elapsed_ns: u64,
    /// How much longer the run takes, by the costs and the iterations that the program had learned, or was told, when
    /// the run began: the nodes that are over have taken elapsed_ns, the rest is expected at the same rate. UINT64_MAX
    /// if costs were unknown, and in a program with loops if no run had been measured.
    pub estimated_remaining_ns: u64,
    /// The node that has just come to its end, NUL-terminated UTF-8, cut if too long.
    pub node: [std::ffi::c_char; 128],
}

/// Receives how far a run is (weir_run_options.progress). `progress` is valid during the call. Must not throw, longjmp
/// or unwind.
///
/// Chapter: Run.
pub type weir_progress_fn =
    Option<unsafe extern "C" fn(ctx: *mut std::ffi::c_void, progress: *const weir_run_progress)>;

/// Time that a node has taken, over all runs since the program was compiled.
///
/// Chapter: Statistics.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_node_stats {
    /// sizeof(weir_node_stats), set by the caller before the call.
    pub struct_size: usize,
    /// How often it ran, in a loop once for each iteration; always 0 for control nodes (cond, case, while).
    pub count: u64,
    /// Total nanoseconds of all runs; the cost of reading the clock is subtracted.
    pub total_ns: u64,
    /// Nanoseconds of the shortest run; 0 while count is 0.
    pub min_ns: u64,
    /// Nanoseconds of the longest run.
    pub max_ns: u64,
    /// The node's name, NUL-terminated UTF-8, cut if too long.
    pub name: [std::ffi::c_char; 128],
    /// Total nanoseconds between the node becoming ready (all that it waits for is done) and its beginning. 0 for runs
    /// that one thread makes in the nodes' order: there a node becomes ready when its turn comes.
    pub waited_ns: u64,
}
