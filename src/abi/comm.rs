//! Communicators: ranks, and the transport between them that the host lends.
//!
//! Chapter: Communicator.

use super::{weir_dtype, weir_engine_kind, weir_status, weir_tensor_desc};
use std::ffi::{c_char, c_void};

/// An operation between ranks: one of enum weir_comm_op_value.
pub type weir_comm_op = u32;

/// Operations between ranks. "Rank order" is 0, 1, ... size - 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_comm_op_value {
    /// Sends the input to rank `peer`, another one: a message to oneself is refused. No output.
    WEIR_COMM_SEND = 1,
    /// Receives the output, which has the descriptor `desc`, from rank `peer`, another one. No input.
    WEIR_COMM_RECV = 2,
    /// Every rank's output is the input of rank `peer`. All ranks give an input of that type and shape.
    WEIR_COMM_BROADCAST = 3,
    /// The output of rank `peer` is the reduction of all ranks' inputs; that of the others is their input.
    WEIR_COMM_REDUCE = 4,
    /// Every rank's output is the reduction of all ranks' inputs.
    WEIR_COMM_ALL_REDUCE = 5,
    /// Every rank's output is all ranks' inputs, in rank order, along dimension 0.
    WEIR_COMM_ALL_GATHER = 6,
    /// The input's dimension 0 is cut into as many parts of one size as there are ranks; the output of rank r is the
    /// reduction of all ranks' parts r.
    WEIR_COMM_REDUCE_SCATTER = 7,
    /// The input's dimension 0 is cut as above; part i of rank r's output is part r of rank i's input.
    WEIR_COMM_ALL_TO_ALL = 8,
    /// Ends on no rank before it has begun on all. No input, no output.
    WEIR_COMM_BARRIER = 9,
}

/// How values are reduced: one of enum weir_comm_reduction_value.
pub type weir_comm_reduction = u32;

/// Reductions. weir's own arithmetic goes in rank order, from rank 0 on, with f16 and bf16 summed as f32 and rounded
/// once; a NaN of any rank makes a minimum and a maximum NaN, and -0 is less than +0. Integers wrap. Of booleans the
/// sum and the maximum are true if one of them is, the product and the minimum if all of them are.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_comm_reduction_value {
    WEIR_COMM_SUM = 1,
    WEIR_COMM_PRODUCT = 2,
    WEIR_COMM_MIN = 3,
    WEIR_COMM_MAX = 4,
}

/// How an operation is done. A bit that is not here is refused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_communication_flags {
    /// The same bits whatever the transport: parts are exchanged, and weir adds them up in rank order. For reductions.
    WEIR_COMMUNICATION_DETERMINISTIC = 1,
}

/// The operation of a kernel (weir_kernel_create_communication). All-zero members have the meaning that is said for
/// them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_communication {
    /// sizeof(weir_communication) of the caller's header.
    pub struct_size: usize,
    /// The operation.
    pub op: weir_comm_op,
    /// For REDUCE, ALL_REDUCE and REDUCE_SCATTER; 0 = WEIR_COMM_SUM.
    pub reduction: weir_comm_reduction,
    /// The other rank of SEND and RECV, never this one, and the root of BROADCAST and REDUCE; 0 for the others.
    pub peer: i32,
    /// For SEND and RECV: a message is received by an operation with its tag, 0 to 16,383, in the order in which they
    /// were sent.
    pub tag: i32,
    /// For RECV: the type and shape of what comes.
    pub desc: weir_tensor_desc,
    /// OR of weir_communication_flags.
    pub flags: u64,
    /// For ALL_REDUCE: so many inputs, and outputs, of one type, which are sent as one message (a bucket); 0 = 1.
    pub num_tensors: usize,
}

/// Properties of a transport. Fixed for the life of the communicator.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_comm_flags {
    /// Its functions are called only in the thread that called weir_comm_create: while that thread waits in weir, and
    /// in weir_comm_progress. Only release is called in the thread that gives up the last reference. Without it they
    /// are called in any thread, in one at a time.
    WEIR_COMM_ONE_THREAD = 1,
    /// Its reductions give the same bits in each run.
    WEIR_COMM_FIXED_ORDER = 2,
    /// When abort has returned, it touches no memory of operations any more. Without it that memory is never given
    /// back: it is a loss, but a transport may write there long after it was released.
    WEIR_COMM_ABORT_RELEASES = 4,
    /// test makes no progress by itself: progress is called, too.
    WEIR_COMM_NEEDS_PROGRESS = 8,
}

/// A transport, as get_info describes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_comm_transport_info {
    /// sizeof(weir_comm_transport_info), set by weir.
    pub struct_size: usize,
    /// This process's (or thread's) number among the ranks.
    pub rank: i32,
    /// How many ranks there are, 1 to 65,536.
    pub size: i32,
    /// OR of weir_comm_flags.
    pub flags: u64,
    /// The operations that `start` takes: bit 1 << weir_comm_op_value of each. SEND and RECV are required; weir builds
    /// of them what is missing. 0 for a transport without start.
    pub ops: u64,
    /// The types that it reduces: bit 1 << weir_dtype of each. weir reduces the others itself.
    pub dtypes: u64,
    /// The reductions that it knows: bit 1 << weir_comm_reduction_value of each.
    pub reductions: u64,
    /// The largest tag that it takes, at least 32,767.
    pub max_tag: i32,
    /// Reserved, 0.
    pub reserved: u32,
    /// The most bytes of one message, 64 or more; 0 = no limit. weir divides larger sends, and does larger collectives
    /// itself.
    pub max_bytes: u64,
    /// Its name and version, NUL-terminated, for texts: "Open MPI 4.1.4".
    pub name: [c_char; 64],
    /// With enqueue: the kind of the device whose memory and streams it takes, as of weir_engine_info.
    pub engine_kind: weir_engine_kind,
    /// With enqueue: the device's index.
    pub engine_index: i32,
    /// The operations that enqueue takes, as `ops`. weir builds none of what is missing there.
    pub device_ops: u64,
    /// The types that it reduces there, as `dtypes`.
    pub device_dtypes: u64,
    /// The reductions that it knows there, as `reductions`.
    pub device_reductions: u64,
}

/// An operation that a transport starts. Memory is the host's, and stays valid until `test` has reported the end. For
/// enqueue it is the device's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_comm_operation {
    /// sizeof(weir_comm_operation), set by weir.
    pub struct_size: usize,
    /// The operation.
    pub op: weir_comm_op,
    /// 0 if nothing is reduced.
    pub reduction: weir_comm_reduction,
    /// The type of its elements.
    pub dtype: weir_dtype,
    /// SEND: to; RECV: from; BROADCAST and REDUCE: the root; else 0.
    pub peer: i32,
    /// SEND and RECV.
    pub tag: i32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Elements: of the message (SEND, RECV, BROADCAST, REDUCE, ALL_REDUCE), of one rank's part (ALL_GATHER,
    /// REDUCE_SCATTER, ALL_TO_ALL); 0 for BARRIER.
    pub count: u64,
    /// Size of an element in bytes.
    pub element_bytes: usize,
    /// SEND, REDUCE, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, and the root of BROADCAST. Never overlaps
    /// `recv`.
    pub send: *const c_void,
    /// All but SEND and BARRIER; REDUCE writes it on the root alone; BROADCAST on all but the root.
    pub recv: *mut c_void,
}

/// Size of a control message in bytes.
pub const WEIR_COMM_MESSAGE_BYTES: usize = 64;

/// The host's transport between ranks. weir orders the operations, keeps their memory, and says what failed; the
/// transport moves the bytes.
///
/// Copied by weir_comm_create. Calls for one `ctx` come from one thread at a time, with no lock of weir's that another
/// call of the library needs, except where a member says otherwise; those for several come at once. No function blocks.
/// They must not throw, longjmp or unwind. A status is WEIR_OK or the code of the failure, whose text and rank
/// `last_error` tells. docs/ranks.md is the full contract.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_comm_vtable {
    /// sizeof(weir_comm_vtable) of the host's header. Members beyond it read as NULL.
    pub struct_size: usize,
    /// Required. Fills *out_info, whose struct_size says how much of it weir knows. Called once.
    pub get_info:
        Option<unsafe extern "C" fn(ctx: *mut c_void, out_info: *mut weir_comm_transport_info) -> weir_status>,
    /// Required, unless there is enqueue. Begins an operation, and stores what `test` is called with. Operations begin
    /// in the order of these calls.
    pub start: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            operation: *const weir_comm_operation,
            out_request: *mut *mut c_void,
        ) -> weir_status,
    >,
    /// Required with start. Whether the operation is done; makes progress. After a 1, and after a failure, the request
    /// is gone.
    pub test: Option<unsafe extern "C" fn(ctx: *mut c_void, request: *mut c_void, out_done: *mut i32) -> weir_status>,
    /// Optional: makes progress with all operations, for a transport that says WEIR_COMM_NEEDS_PROGRESS.
    pub progress: Option<unsafe extern "C" fn(ctx: *mut c_void) -> weir_status>,
    /// Optional: sends a message of WEIR_COMM_MESSAGE_BYTES bytes, which are copied, to a rank, beside all operations.
    /// It goes out without further calls, or in later ones. Without it and control_poll a rank hears of another one's
    /// failure only by what its operations report, or by its limit.
    pub control_send: Option<unsafe extern "C" fn(ctx: *mut c_void, peer: i32, message: *const c_void) -> weir_status>,
    /// Optional: takes one control message that has come, if there is one. Messages of one rank come in order.
    pub control_poll: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            out_peer: *mut i32,
            out_message: *mut c_void,
            out_got: *mut i32,
        ) -> weir_status,
    >,
    /// Optional: a transport of its own over the same ranks, for runs at once. Collective, and it may block. It is
    /// called in the thread of weir_comm_duplicate, maybe while another thread is in another function; so is split.
    pub duplicate: Option<unsafe extern "C" fn(ctx: *mut c_void, out_ctx: *mut *mut c_void) -> weir_status>,
    /// Optional: a transport among the ranks that pass the same color, ordered by key, then by rank; a color below 0
    /// gives none (*out_ctx = NULL). Collective, and it may block.
    pub split:
        Option<unsafe extern "C" fn(ctx: *mut c_void, color: i32, key: i32, out_ctx: *mut *mut c_void) -> weir_status>,
    /// Optional: gives up all operations that are open. No other function but recover, last_error and release is called
    /// afterwards.
    pub abort: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
    /// Optional: after abort, a transport among the ranks that are left, in their order. Collective among them, and it
    /// may block.
    pub recover: Option<unsafe extern "C" fn(ctx: *mut c_void, out_ctx: *mut *mut c_void) -> weir_status>,
    /// Optional: the rank that the last failure is about (-1 = unknown), and its text, NUL-terminated within
    /// `capacity` bytes.
    pub last_error:
        Option<unsafe extern "C" fn(ctx: *mut c_void, out_rank: *mut i32, text: *mut c_char, capacity: usize)>,
    /// Optional: called once, when the communicator is gone, for `ctx` and for each one that duplicate, split and
    /// recover have made; in any thread, also with WEIR_COMM_ONE_THREAD: the last reference may be a run's.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
    /// Optional: submits operations on the device's memory to a stream of it, and returns: they begin when the stream's
    /// earlier work is done, its later work waits for them, and they count as one. `stream` is its native handle (CUDA:
    /// the CUstream, and the context of the device is current). SEND and RECV have no tag: messages between two ranks
    /// come in their order. `send` and `recv` are different, or the same for ALL_REDUCE, REDUCE and BROADCAST. All
    /// ranks' calls come in one order, from any thread, and never while another function is called. It may wait, within
    /// a limit of the transport's, until the ranks are connected. After abort the streams go on: what was submitted
    /// ends, with any result.
    pub enqueue: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            operations: *const weir_comm_operation,
            num_operations: usize,
            stream: u64,
        ) -> weir_status,
    >,
}

/// How a communicator is used. A bit that is not here is refused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_comm_option_flags {
    /// A thread of weir's own, counted by weir_runtime_info, makes progress. Without it operations go on while a thread
    /// waits in weir (for a run, a stream, an event), and in weir_comm_progress.
    WEIR_COMM_OWN_THREAD = 1,
    /// Each collective operation is compared with that of the rank before, by a control message, before its result is
    /// used (on a device: before the run ends): operation, types, shapes, root, branch, place in the program, and
    /// number of the run. Of ranks that differ at least one fails, with the names of both operations, and tells all
    /// others. Those that agree with the rank before may have finished that operation with OK and a wrong result: their
    /// next one fails. docs/ranks.md says what is not told apart. Requires control_send and control_poll.
    WEIR_COMM_CHECKED = 2,
    /// Operations use the tensors of stream calls and of runs where they are: nothing is copied. You promise that their
    /// memory stays valid as long as the transport lives, and for good if it has no WEIR_COMM_ABORT_RELEASES: after a
    /// failure the transport may still read inputs and write outputs, at any time. A run that fails may have written
    /// some of its outputs. Without it those tensors are copied. Values inside of a run need no such promise.
    WEIR_COMM_TENSORS_STAY = 4,
}

/// Options of weir_comm_create and weir_comm_create_local. NULL and all-zero are the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_comm_options {
    /// sizeof(weir_comm_options) of the caller's header.
    pub struct_size: usize,
    /// For texts, NUL-terminated UTF-8; NULL = "comm". The same on all ranks.
    pub name: *const c_char,
    /// OR of weir_comm_option_flags.
    pub flags: u64,
    /// The longest that an operation may take from its begin on, in nanoseconds; then the other ranks are asked how far
    /// they have come, for 100 ms at most, and all ranks' runs end. 0 = no limit. It counts while another rank has not
    /// begun the operation, for whatever reason: it must exceed the longest time by which ranks come apart, for
    /// instance because one computes.
    pub limit_ns: u64,
}

/// A communicator's figures.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_comm_info {
    /// sizeof(weir_comm_info), set by the caller before the call.
    pub struct_size: usize,
    /// This rank.
    pub rank: i32,
    /// How many ranks there are.
    pub size: i32,
    /// The transport's weir_comm_flags.
    pub flags: u64,
    /// Operations that were begun.
    pub begun: u64,
    /// Those of them that are over.
    pub ended: u64,
    /// The operations (bit 1 << weir_comm_op_value) that weir builds of sends and receives.
    pub built: u64,
    /// Bytes of operations that were given up, and that the transport may still use.
    pub quarantined_bytes: u64,
    /// 1 if an operation has failed or was given up: the communicator takes no more of them.
    pub dead: u32,
    /// 1 if weir_comm_recover may work.
    pub recoverable: u32,
    /// The transport's name, NUL-terminated.
    pub transport: [c_char; 64],
    /// The operations (bit 1 << weir_comm_op_value) that it does in a device's memory.
    pub device_ops: u64,
}
