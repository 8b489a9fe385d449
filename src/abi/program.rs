//! Options of a compilation and of a run.
//!
//! Chapter: Program.
#![forbid(unsafe_code)]

use super::{weir_notice, weir_placement, weir_progress_fn, weir_threadpool, weir_trace};

/// Flags of a compilation. Other bits are refused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_compile_flags {
    /// Outputs of the program may be absent (weir_graph_add_switch). A run leaves the tensor of an absent output
    /// unchanged; weir_run_options has a list that tells which were absent.
    WEIR_COMPILE_ALLOW_ABSENT = 1,
    /// The program keeps figures of every node (weir_program_get_node_stats): each run reads the clock twice for each
    /// node. Without it there is no cost.
    WEIR_COMPILE_STATISTICS = 2,
    /// With this flag the host, not the device, decides each branch and iteration, so a cancelled run can end between
    /// two iterations. A branch or a loop (weir_graph_add_cond, _case, _while) that contains only kernels of one
    /// accelerator's engine is work of that engine: its values stay there. The host reads back only the predicate and
    /// issues the work that follows, without holding a thread. Without the flag a device that records and supports
    /// branches and loops decides itself; then a cancel or the time limit of a run does not end a loop before it ends
    /// by itself. Results are the same; weir_program_report says for each node who decides, and why.
    WEIR_COMPILE_NO_DEVICE_CONTROL = 4,
    /// Devices are not offered regions. Without it, nodes on a plug-in's device that takes regions
    /// (WEIR_DEVICE_REGIONS) with no other node between them are offered to it together, also inside of branches and
    /// loops. It may compile some of them to one kernel, which is then one node of the program with all of their names.
    /// Results are the same if the device computes the same; weir_program_report has the numbers offered and taken, and
    /// the reasons.
    WEIR_COMPILE_NO_REGIONS = 8,
    /// Elementwise nodes stay apart. Without it, an activation or a sum on a cpu engine whose input is a matrix product
    /// or a convolution of weir's, and which alone reads it, becomes the end of that node (its activation, its bias or
    /// its addend), also inside of branches and loops: one node of the program with the names of both, "conv1+relu1".
    /// Large elementwise nodes behind one another become one, which goes over memory once. Results are the same bit by
    /// bit, but for which NaN a sum of two NaN is; weir_program_report has the nodes, and the reasons for others that
    /// stay apart.
    WEIR_COMPILE_NO_FUSION = 16,
}

/// Whether work on devices is recorded: one of enum weir_segments_value.
pub type weir_segments = u32;

/// A segment is at least four nodes of one device with no other node between them. The second run of the program makes
/// the device record it, with the copies of inputs that only it reads, and later runs submit the recording by one call.
/// Results are the same; weir_program_report has the number of recordings, or why there are none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_segments_value {
    /// Recorded; but where the nodes may be spread over several streams (weir_engine_attr_set_max_streams) the program
    /// times some of its first runs both ways, and keeps the faster one.
    WEIR_SEGMENTS_TIMED = 0,
    /// Every run issues each node by itself.
    WEIR_SEGMENTS_NEVER = 1,
    /// Recorded wherever the device can.
    WEIR_SEGMENTS_ALWAYS = 2,
}

/// For weir_compile_options.hop_ns: bringing work to another thread costs nothing.
pub const WEIR_HOP_NONE: u64 = u64::MAX;

/// How a graph is compiled. All-zero, and NULL, is the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_compile_options {
    /// sizeof(weir_compile_options) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_compile_flags.
    pub flags: u64,
    /// The cost of bringing work to another thread of the pool, in nanoseconds: ready work that is cheaper stays on the
    /// thread that made it ready. 0 = the pool's own costs in each run, as far as they are known; runs that turn out to
    /// be faster on the caller alone then stay there. WEIR_HOP_NONE = nothing. It never changes a result.
    pub hop_ns: u64,
    /// The pool for kernels that may block (WEIR_KERNEL_MAY_BLOCK): each runs as one task of it, without holding
    /// another thread. A thread that waits for such a kernel runs it itself if the pool has not begun it for 50 ms,
    /// unless the pool has WEIR_THREADPOOL_OWN_THREADS_ONLY. The pool must take single tasks (schedule, or an
    /// ASYNCHRONOUS parallel_for), and should have as many threads as kernels may block at once. If it refuses one, the
    /// kernel runs in the thread that came to it, or in the caller of a synchronous run: unless that is a worker of a
    /// pool, or the pool has WEIR_THREADPOOL_OWN_THREADS_ONLY. Else the node fails with UNAVAILABLE. NULL = none:
    /// graphs with such kernels do not compile. The program keeps a reference.
    pub blocking_threadpool: *mut weir_threadpool,
    /// The most lists of outputs for which the program keeps compiled parts, so that runs may ask for a part of its
    /// outputs (weir_run_options.outputs): 1 to 256, or 0 for no such runs. With it the program keeps the nodes of the
    /// graph, constants included, as long as it lives. The first run with a list compiles its part, and later runs find
    /// it; beyond the maximum a list that was not used recently is dropped, and compiled again if it comes back. Each
    /// list that is kept counts as a program in weir_runtime_info.
    pub partial_runs: usize,
    /// The most runs of the program at once, partial ones included; 0 = no limit. A run beyond the limit waits, first
    /// come, first served:
    ///
    /// - in the calling thread (a NULL or synchronous stream) it sleeps until another run is over, or its deadline.
    ///   Inside of a task of a thread pool, of a stream's work, or of a run of a program with such a limit it does not
    ///   sleep: it helps the pool and spins for a while, and is then refused with FAILED_PRECONDITION;
    /// - an asynchronous stream accepts it, and waits without holding a thread when its turn comes.
    ///
    /// WEIR_RUN_NO_WAIT refuses it instead. A run that begins inside of a run of the same program is part of it and
    /// does not count; so are programs as nodes (weir_graph_add_program) and weir_kernel_context_run_program.
    /// weir_program_run_many waits for one slot, and uses as many more as are free then. weir cannot know that a thread
    /// which calls weir_completion_done works for a run. Such a thread must not wait for a run of the same program. A
    /// kernel that waits, outside of a pool, for a stream on which a run of its own program waits for a slot is refused
    /// (FAILED_PRECONDITION).
    pub max_concurrent_runs: u32,
    /// The placement of all nodes without weir_graph_set_placement, in nested graphs too: one of enum
    /// weir_placement_value. WEIR_PLACEMENT_DEFAULT is WEIR_PLACEMENT_KERNEL here.
    pub placement: weir_placement,
    /// Whether work on devices is recorded: one of enum weir_segments_value.
    pub segments: weir_segments,
    /// Reserved, 0.
    pub reserved: u32,
}

/// How a run goes. A bit that is not here is refused.
///
/// Chapter: Run.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_run_flags {
    /// The run takes one thread and executes the nodes in the program's order. Nodes that share state outside of their
    /// tensors then access it in the same order in every run, and if several nodes would fail, it is always the same
    /// one that does. Kernels may still use the pool for their regions, which changes no result. Kernels that complete
    /// later, and work on devices, are started in their turn and waited for one by one in that thread. So
    /// weir_program_run refuses such a run of a program that contains these (FAILED_PRECONDITION) where that would
    /// block a worker of a thread pool: in one, and on an asynchronous stream with a pool that takes single tasks.
    WEIR_RUN_DETERMINISTIC = 1,
    /// A run that fails still executes the nodes that do not depend on the failure; without it nothing more is begun.
    /// Nodes that depend on a failed node, directly or not, are left out; a loop with a failure inside ends. The first
    /// failure in the program's order is the run's. Outputs that depend on no failed node are written. Such a run takes
    /// one thread, as if deterministic, and is refused in the same cases. A cancel or a deadline still ends it.
    /// A device on which work of the run has failed does no more of it; a region or a segment of a device is one node.
    WEIR_RUN_FINISH_INDEPENDENT = 2,
    /// A run that would have to wait for others (weir_compile_options.max_concurrent_runs) is refused at the call with
    /// RESOURCE_EXHAUSTED: in the calling thread while as many runs are active as the limit allows, on an asynchronous
    /// stream while as many are queued on streams or active.
    WEIR_RUN_NO_WAIT = 4,
}

/// Options of one run. All-zero, and NULL, is the default. It is read during the call: only the
/// bytes of `absent` must stay.
///
/// Chapter: Run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_run_options {
    /// sizeof(weir_run_options) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_run_flags.
    pub flags: u64,
    /// Time limit of the run, not a point in time: nanoseconds from the call on, including time in the stream's queue;
    /// 0 = none. When it expires nothing more is begun: the run ends after the running kernels, with DEADLINE_EXCEEDED,
    /// and to them weir_kernel_context_is_cancelled says 1. A run that had nothing left to begin, and that has told no
    /// kernel so, succeeds. There is no timer: with a deadline the clock is read before each node.
    pub deadline_ns: u64,
    /// The pool for this run, before the stream's and the engine's; NULL = those. A run that goes on after the call
    /// keeps a reference.
    pub threadpool: *mut weir_threadpool,
    /// The outputs to compute, by their indices in the program, each once; NULL = all, and everything with side
    /// effects. For a program compiled with weir_compile_options.partial_runs. The run takes num_outputs tensors as its
    /// outputs, for these in this order, and executes only the nodes that they depend on, along data and control edges.
    /// Everything else is left out, including tasks and kernels without outputs, unless one of these outputs depends on
    /// them; the inside of a cond, a case or a loop that runs is complete as always. The run still takes all of the
    /// program's inputs, but those that none of its nodes needs are ignored and may be NULL.
    ///
    /// Such runs count in the program's counters and node figures. The costs that the program learns
    /// (weir_program_save_costs) are those of whole runs; a part begins with the costs known for the whole, and then
    /// learns its own.
    pub outputs: *const usize,
    /// Length of `outputs`.
    pub num_outputs: usize,
    /// NULL, or one byte for each output of the run: when it has succeeded, absent[i] is 1 if output i was absent (its
    /// tensor is left unchanged), else 0. A run that fails leaves the bytes alone. They stay the caller's, and alive
    /// until the run is done. Outputs can only be absent with WEIR_COMPILE_ALLOW_ABSENT.
    pub absent: *mut u8,
    /// Length of `absent`: the number of outputs of the run.
    pub num_absent: usize,
    /// NULL, or how the host is told of the run's end: as by weir_run_notify, but none is missed, no second call is
    /// needed, and a run of weir_program_run on an asynchronous stream can have it, which also keeps the failure.
    /// There is exactly one notice, and one `release` after it, if the call returns WEIR_OK, and neither otherwise: the
    /// host keeps ctx then. Runs that are over when their call returns have none: weir_program_run without a stream or
    /// on a synchronous one, and weir_program_run_many, refuse it.
    pub notice: *const weir_notice,
    /// NULL, or a trace that the run is to be part of, whatever that is a trace of (weir_trace_start).
    pub trace: *mut weir_trace,
    /// NULL, or a function that is told how far the run is, at most once in each progress_interval_ns, and not at all
    /// by a shorter run. A thread that works for the run calls it, between two nodes, and the thread's next node waits
    /// for it; there is never more than one call at once, and none once the run is over: all come before its notice,
    /// and before a wait for the run returns. A run that has failed, was cancelled or is late makes no more.
    ///
    /// There is no timer: with it a clock is read at each node, and while all threads of the run are in long kernels,
    /// or wait for a device, nothing is reported. What it may call is what a host kernel of the run may; it may cancel
    /// the run, and must not wait for it. The first such runs of a program allocate counters; a run for which there
    /// is no memory fails with RESOURCE_EXHAUSTED. It is for one run: weir_program_run_many refuses it.
    pub progress: weir_progress_fn,
    /// For `progress`; alive until the run is over.
    pub progress_ctx: *mut std::ffi::c_void,
    /// The shortest time between two calls of `progress`, and before the first; 0 = 100 ms. 1 = at each node.
    pub progress_interval_ns: u64,
}
