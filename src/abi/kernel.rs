//! Kernels: descriptors and callback types; and the integers that name parts of a graph.
//!
//! Chapter: Kernel.
use super::handles::{weir_completion, weir_kernel_context};
use super::tensor::weir_tensor_desc;
use super::threadpool::weir_destroy_fn;
use std::ffi::c_void;

/// The body of a host kernel. Inputs, outputs, scratch and the pool come from `context`, which is valid until the
/// function returns. Returns WEIR_OK or the code of its failure; weir_kernel_context_fail adds a text. May run on any
/// thread, several calls at once. Must not throw, longjmp or unwind.
pub type weir_compute_fn = Option<unsafe extern "C" fn(user: *mut c_void, context: *mut weir_kernel_context) -> i32>;

/// Begins the work of an asynchronous host kernel, and returns without waiting for it. When the work is done, from any
/// thread and at any time, also before this function returns, the host calls weir_completion_done with `done`, once.
/// Until then `context`, the tensors and the scratch memory stay valid. Returns WEIR_OK, or the code of a failure to
/// begin; then the call has failed and weir_completion_done must not be called. May run on any thread, several calls at
/// once. Must not block, throw, longjmp or unwind.
pub type weir_compute_async_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, context: *mut weir_kernel_context, done: *mut weir_completion) -> i32,
>;

/// Computes a host kernel's output descriptors from its input descriptors, when they depend on them. Must give the same
/// answer for the same inputs. Returns WEIR_OK, or the code with which it refuses these inputs.
pub type weir_infer_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        inputs: *const weir_tensor_desc,
        num_inputs: usize,
        outputs: *mut weir_tensor_desc,
        num_outputs: usize,
    ) -> i32,
>;

/// A kernel that the host implements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_host_kernel_desc {
    /// sizeof(weir_host_kernel_desc) of the caller's header.
    pub struct_size: usize,
    /// Name for error texts and dumps, UTF-8; copied. NULL = "host".
    pub name: *const std::ffi::c_char,
    /// The body. Either this or `compute_async` is given.
    pub compute: weir_compute_fn,
    /// First argument of `compute` and `infer`.
    pub user: *mut c_void,
    /// Optional: releases `user` when the kernel dies. Not called if the creation fails.
    pub destroy: weir_destroy_fn,
    /// Number of inputs, at most WEIR_MAX_ARGS.
    pub num_inputs: usize,
    /// Pattern that each input must match (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied.
    pub inputs: *const weir_tensor_desc,
    /// Number of outputs, at most WEIR_MAX_ARGS.
    pub num_outputs: usize,
    /// Descriptors of the outputs; NULL if `infer` computes them. Copied.
    pub outputs: *const weir_tensor_desc,
    /// Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1,
    /// except for dimensions that stay open until the body runs (WEIR_KERNEL_DYNAMIC).
    pub infer: weir_infer_fn,
    /// Estimated run time in nanoseconds; 0 = unknown: the executor measures it.
    pub cost_ns: u64,
    /// Scratch memory per slot, in bytes (weir_kernel_context_get_scratch).
    pub scratch_bytes: usize,
    /// OR of weir_kernel_flags.
    pub flags: u64,
    /// The beginning of a body that completes later. Such kernels run as nodes of graphs and on streams (weir_enqueue).
    pub compute_async: weir_compute_async_fn,
}

/// Flags of a host kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_kernel_flags {
    /// Output i may share memory with an input. Without this flag overlapping arguments are refused.
    WEIR_KERNEL_IN_PLACE = 1,
    /// The outputs depend on the inputs alone, and there are no side effects: compile may call it once and keep the
    /// outputs.
    WEIR_KERNEL_PURE = 2,
    /// The body may block: wait for a file, a socket, a lock. A graph with such a kernel compiles only with a pool for
    /// it (weir_compile_options.blocking_threadpool). A worker of another pool runs it only while that worker waits
    /// for it, and only if the pool has not begun it for 50 ms.
    WEIR_KERNEL_MAY_BLOCK = 4,
    /// Shapes may be known only when the body runs. In a graph, inputs may leave dimensions open (WEIR_DIM_DYNAMIC) as
    /// far as `inputs` does; the body gets views with the shapes of the run. The body allocates outputs that `outputs`
    /// or `infer` leaves open (weir_kernel_context_allocate_output); `infer` is not required for them, and may be given
    /// open dimensions. Such kernels run as nodes of graphs, and on a stream if no output is open.
    WEIR_KERNEL_DYNAMIC = 8,
}

/// A value in a graph under construction: one output of one node. Meaningful only for the graph that gave it.
///
/// Chapter: Graph.
pub type weir_value = u64;

/// A node in a graph under construction. Meaningful only for the graph that gave it.
///
/// Chapter: Graph.
pub type weir_node = u64;

/// A text format of reports: one of enum weir_report_format_value.
///
/// Chapter: Drawings and reports.
pub type weir_report_format = u32;

/// Text formats of reports.
///
/// Chapter: Drawings and reports.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_report_format_value {
    /// Lines to read.
    WEIR_REPORT_TEXT = 1,
    /// JSON (RFC 8259).
    WEIR_REPORT_JSON = 2,
}

/// Values of weir_graph_set_forwarding other than the index of an input.
///
/// Chapter: Graph.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_forwarding_value {
    /// The default: the output takes over an input's memory if the kernel has WEIR_KERNEL_IN_PLACE and is the last
    /// reader of that input.
    WEIR_FORWARD_AUTO = -1,
    /// The output has memory of its own.
    WEIR_FORWARD_NEVER = -2,
}

/// Options of a new kernel. All-zero, and NULL, is the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_kernel_options {
    /// sizeof(weir_kernel_options) of the caller's header.
    pub struct_size: usize,
    /// A name for error texts and dumps, UTF-8, which is copied; NULL or "" = the name of the operation, "matmul".
    pub name: *const std::ffi::c_char,
    /// Estimated run time of one call, in nanoseconds; 0 = the kernel's own estimate. It guides scheduling and never
    /// changes a result.
    pub cost_ns: u64,
    /// Names of members of a built-in kernel's descriptor whose values are read from input tensors at each call instead
    /// of from the descriptor, with blanks between them: "begin end step". NULL or "" = none. Each name adds one input
    /// after the usual ones, in this order: as many numbers as the member has, s32 or s64 for integers and f32 for
    /// floats, of rank 1, or 0 for one number. In the descriptor such a member is 0, or what may stand there until a
    /// call has read the tensor. The call checks it as the creation would. Where shapes depend on such members, all
    /// dimensions of the outputs are open, for nodes of graphs alone; where the tensors are constants compile knows
    /// them as well. For engines of the processor, with these members:
    ///
    /// eltwise: alpha, beta. slice: begin, end, step. pad: before, after, value. reshape: dims. reduce: axes,
    /// num_axes of them. cumsum: axis. topk: k, axis. one_hot: depth. resize: sizes, scales. nms: most_boxes,
    /// most_overlap, least_score. tile: counts.
    pub settings: *const std::ffi::c_char,
}

/// The placement of a node: one of enum weir_placement_value.
///
/// Chapter: Graph.
pub type weir_placement = u32;

/// How the engine of a node is chosen.
///
/// Chapter: Graph.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_placement_value {
    /// By the compile options; if they leave it open, the engine of its kernel.
    WEIR_PLACEMENT_DEFAULT = 0,
    /// The engine of its kernel.
    WEIR_PLACEMENT_KERNEL = 1,
    /// Among the program's engines that have the kernel, the one with the fewest bytes to copy: of its inputs, and of
    /// outputs that are needed on an engine already chosen. Constants in host memory count as nothing; ties go to the
    /// first engine in the list given to weir_graph_compile. Kernels of variables, of other programs, with packed
    /// weights, and those that only their engine's device knows (weir_kernel_create_named) stay on their own engine.
    WEIR_PLACEMENT_ANY = 2,
}

/// A text format for dumps: one of enum weir_dump_format_value.
///
/// Chapter: Drawings and reports.
pub type weir_dump_format = u32;

/// Text formats for dumps.
///
/// Chapter: Drawings and reports.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_dump_format_value {
    /// Graphviz DOT.
    WEIR_DUMP_DOT = 1,
    /// JSON (RFC 8259).
    WEIR_DUMP_JSON = 2,
}

/// A kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_kernel_info {
    /// sizeof(weir_kernel_info), set by the caller before the call.
    pub struct_size: usize,
    /// Number of inputs.
    pub num_inputs: usize,
    /// Number of outputs.
    pub num_outputs: usize,
    /// Its name, NUL-terminated UTF-8, cut if too long.
    pub name: [std::ffi::c_char; 128],
}
