//! Traces: what ran where and when.
//!
//! Chapter: Trace.

use super::{weir_destroy_fn, weir_domain, weir_engine, weir_program, weir_status};
use std::ffi::{c_char, c_void};

/// How a trace records. A bit that is not here is refused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_trace_flags {
    /// A full ring overwrites its oldest records: a flight recorder, which is saved when something has gone wrong.
    /// Without it the first records are kept, and later ones are lost.
    WEIR_TRACE_KEEP_LAST = 1,
    /// Only runs that ask for this trace (weir_run_options.trace) are part of it, with all that runs inside of them.
    WEIR_TRACE_ONLY_ASKED = 2,
}

/// The scope of a trace, and how much it keeps. All-zero, and NULL, is the default: everything in the process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_trace_options {
    /// sizeof(weir_trace_options) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_trace_flags.
    pub flags: u64,
    /// At most one of the three: the trace is of runs and streams of this domain's engines,
    pub domain: *mut weir_domain,
    /// of runs and streams of this engine,
    pub engine: *mut weir_engine,
    /// or of this program's runs, partial ones included. The trace keeps a reference.
    pub program: *mut weir_program,
    /// Records of 32 bytes that are kept of each thread, rounded up to a power of two: 64 to 2^26; 0 = 65,536.
    pub records_per_thread: usize,
    /// How many threads and tracks can have records, 1 to 4,096; 0 = 64. Their memory is set aside by
    /// weir_trace_start, and the system gives it when it is written to.
    pub threads: u32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// A format of saved traces: one of enum weir_trace_format_value.
pub type weir_trace_format = u32;

/// Formats of saved traces.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_trace_format_value {
    /// Perfetto's protocol buffers, for ui.perfetto.dev and trace_processor: a track for each thread, tracks of runs,
    /// arrows between threads, a counter of threads in runs.
    WEIR_TRACE_PERFETTO = 1,
    /// Chrome's JSON.
    WEIR_TRACE_CHROME = 2,
    /// Folded stacks, for flame graphs: "thread;program;node nanoseconds" in each line, without what lies inside.
    WEIR_TRACE_FOLDED = 3,
    /// A profile for pprof, not compressed, with four values: work, count, waited (of nodes: between ready and begun),
    /// and waiting (of threads, with the label cause).
    WEIR_TRACE_PPROF = 4,
    /// Lines to read: of each program what its runs took, what its threads did with their time, why its median and its
    /// slowest run took as long as they did, and its nodes.
    WEIR_TRACE_REPORT = 5,
    /// A page to look at, in one file that needs no network: the timeline with the path of a run through it, and the
    /// numbers of the report.
    WEIR_TRACE_HTML = 6,
    /// The numbers of the report as JSON.
    WEIR_TRACE_JSON = 7,
}

/// The contents of a trace.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_trace_info {
    /// sizeof(weir_trace_info), set by the caller before the call.
    pub struct_size: usize,
    /// 1 while it records, 0 when it was stopped.
    pub recording: u32,
    /// Threads and tracks that have records.
    pub threads: u32,
    /// Records that are there.
    pub records: u64,
    /// Records that are lost since a thread's ring was full.
    pub lost: u64,
    /// Records that are lost since all rings had a thread.
    pub lost_without_ring: u64,
    /// When it began, on the system's monotonic clock, in nanoseconds.
    pub begin_ns: u64,
    /// When it was stopped; 0 while it records.
    pub end_ns: u64,
    /// How far the times in it may be off the system's clock, all together, in nanoseconds.
    pub clock_error_ns: u64,
    /// The clock of its stamps, NUL-terminated: "TSC", "CNTVCT" or "CLOCK_MONOTONIC".
    pub clock: [c_char; 32],
}

/// A thread in a trace, or a track of what no thread does: of a device's stream, of a communicator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_trace_thread {
    /// sizeof(weir_trace_thread), set by the caller before the call.
    pub struct_size: usize,
    /// The system's thread id (Linux: gettid); 0 for a track.
    pub os_id: u64,
    /// Its records that are there.
    pub records: u64,
    /// Its records that are lost.
    pub lost: u64,
    /// Its name when its first record was written, NUL-terminated UTF-8; a long one is cut.
    pub name: [c_char; 32],
}

/// Receives a piece of a saved trace. A status other than WEIR_OK ends the save, and is what that returns. Must not
/// throw, longjmp or unwind.
pub type weir_trace_write_fn =
    Option<unsafe extern "C" fn(ctx: *mut c_void, data: *const c_void, size: usize) -> weir_status>;

/// A run, as hooks are told of it. The struct is valid during the call; the name as long as the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_trace_run {
    /// sizeof(weir_trace_run), set by weir.
    pub struct_size: usize,
    /// The program's name, NUL-terminated UTF-8. The same address in all runs of the program, so it may be a key.
    pub program: *const c_char,
    /// The run's number: no other run, and no region, that is under way in the process has it.
    pub number: u64,
    /// The number of the run or region inside of which this one was begun; 0 = none.
    pub outer: u64,
}

/// Flags of weir_trace_node.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_trace_node_flags {
    /// A later part of a node that completes later: it began before, perhaps in another thread.
    WEIR_TRACE_NODE_AGAIN = 1,
    /// At the end: it has failed.
    WEIR_TRACE_NODE_FAILED = 2,
    /// At the end: it has been started, and completes later.
    WEIR_TRACE_NODE_LATER = 4,
}

/// A node of a run, as hooks are told of it. The struct is valid during the call; the names as long as the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_trace_node {
    /// sizeof(weir_trace_node), set by weir.
    pub struct_size: usize,
    /// The node's name, NUL-terminated UTF-8. The same address in all runs of the program, so it may be a key.
    pub name: *const c_char,
    /// NULL; or the name of the engine, of a node that is the engine's work rather than that of the threads in the run:
    /// on a device, or a kernel that completes later.
    pub engine: *const c_char,
    /// The node's number in the program. The copies of a node in iterations side by side have numbers of their own.
    pub index: u32,
    /// OR of weir_trace_node_flags.
    pub flags: u32,
}

/// A thread's part in a loop that threads share, as hooks are told of it. Valid during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_trace_region {
    /// sizeof(weir_trace_region), set by weir.
    pub struct_size: usize,
    /// The loop's number: that of none that is under way, and of no run.
    pub number: u64,
    /// 1 = the part of a helper, 0 = that of the thread that began the loop, with its wait for the others.
    pub helps: u32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// Tells of a run, or of a thread in it.
pub type weir_trace_run_fn = Option<unsafe extern "C" fn(ctx: *mut c_void, run: *const weir_trace_run)>;

/// Tells of a node.
pub type weir_trace_node_fn =
    Option<unsafe extern "C" fn(ctx: *mut c_void, run: *const weir_trace_run, node: *const weir_trace_node)>;

/// Tells of a thread's part in a loop.
pub type weir_trace_region_fn = Option<unsafe extern "C" fn(ctx: *mut c_void, region: *const weir_trace_region)>;

/// Functions of a tracer of the host's, which are called while programs run (weir_trace_set_hooks). A member that is
/// NULL is not called.
///
/// They are called in the thread that does the work, from any thread, several at a time. weir holds no lock then, with
/// one exception: while a run that one device executes alone is submitted, the lock of its stream is held. Such a run
/// is told of while it is submitted, and its status is that of submitting it.
///
/// In each thread the pairs of stay, node and region lie in one another; those of run do not, since a run may end in
/// another thread than it began in. They must not throw, longjmp or unwind, and of weir they may call marks, spans and
/// weir_trace_set_hooks. Their time is time of the node or the run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_trace_hooks {
    /// sizeof(weir_trace_hooks) of the host's header. Members beyond it read as NULL.
    pub struct_size: usize,
    /// A run of a program begins. Nothing else is told of it before.
    pub run_begin: weir_trace_run_fn,
    /// It is over, with this status, and nothing else is told of it any more.
    pub run_end: Option<unsafe extern "C" fn(ctx: *mut c_void, run: *const weir_trace_run, status: weir_status)>,
    /// The calling thread comes into the run to work in it.
    pub stay_begin: weir_trace_run_fn,
    /// It leaves the run. It may come again.
    pub stay_end: weir_trace_run_fn,
    /// The calling thread begins a node of the run.
    pub node_begin: weir_trace_node_fn,
    /// It has returned from the node: also if that has failed, or completes later.
    pub node_end: weir_trace_node_fn,
    /// The calling thread begins, or helps in, a loop that threads share (inside of a kernel, or weir_parallel_for).
    pub region_begin: weir_trace_region_fn,
    /// Its part is over.
    pub region_end: weir_trace_region_fn,
    /// Called exactly once, when no thread will call any of these functions with this ctx again; on any thread,
    /// perhaps inside of the call that took the hooks away. Never called in a forked child.
    pub release: weir_destroy_fn,
}

/// Tools that are told of runs by markers in their own format.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_trace_markers {
    /// NVTX, of Nsight Systems and others: ranges in the domain "weir". The variable NVTX_INJECTION64_PATH, which the
    /// tool sets, names its library.
    WEIR_TRACE_NVTX = 1,
    /// ITT, of VTune and others: tasks in the domain "weir". The variable INTEL_LIBITTNOTIFY64, which the tool sets,
    /// names its library.
    WEIR_TRACE_ITT = 2,
}
