//! Engines, streams and events: kinds and flags.
//!
//! Chapter: Stream.
use super::weir_status;
use std::ffi::{c_char, c_void};

/// The kind of an engine: one of enum weir_engine_kind_value.
///
/// Chapter: Engine.
pub type weir_engine_kind = u32;

/// Kinds of engines. A build or a machine may lack some: weir_engine_count counts the devices of a kind.
///
/// Chapter: Engine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_engine_kind_value {
    /// The host's processors, through a thread pool or the calling thread.
    WEIR_ENGINE_CPU = 1,
    /// NVIDIA GPUs through the CUDA driver.
    WEIR_ENGINE_CUDA = 2,
    /// Devices that the library emulates on a thread of its own, in memory that the host cannot access: for tests, with
    /// a seeded order of work, faults on request, and a checker of the order (weir_emulation).
    WEIR_ENGINE_EMULATED = 3,
}

/// The first number of plug-in kinds. Kinds are numbered in the order in which their names were first registered in the
/// process (weir_engine_kind_from_name).
///
/// Chapter: Engine.
pub const WEIR_ENGINE_PLUGIN_FIRST: weir_engine_kind = 4096;

/// How threads wait for the device of an engine: one of enum weir_wait_policy_value.
///
/// Chapter: Engine.
pub type weir_wait_policy = u32;

/// Wait policies: how a thread waits for a device after its spin budget.
///
/// Chapter: Engine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_wait_policy_value {
    /// Spins and sleeps as suits the device.
    WEIR_WAIT_DEFAULT = 0,
    /// Sleeps until the device wakes it.
    WEIR_WAIT_BLOCK = 1,
    /// Keeps polling, and yields the processor in between: least latency, at the price of a busy processor during the
    /// wait.
    WEIR_WAIT_YIELD = 2,
}

/// The source of an engine's threads: one of enum weir_thread_mode_value.
///
/// Chapter: Engine.
pub type weir_thread_mode = u32;

/// Thread modes of engines. In every mode a pool of the call comes before a pool of the stream, and that before the
/// engine's. weir_engine_attr_set_thread_mode describes the modes of accelerator engines.
///
/// Chapter: Engine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_thread_mode_value {
    /// The default: the pool given by weir_engine_attr_set_threadpool, which others may share; without one the calling
    /// thread.
    WEIR_THREAD_MODE_GLOBAL = 1,
    /// A built-in pool for this engine alone. It starts and ends with the engine.
    WEIR_THREAD_MODE_PRIVATE = 2,
    /// A built-in pool shared by all engines of this kind in this mode. It starts with the first and ends with the
    /// last.
    WEIR_THREAD_MODE_KIND = 3,
    /// No pool: the calling thread, regardless of the environment.
    WEIR_THREAD_MODE_CALLER = 4,
}

/// Flags of weir_stream_create.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_stream_flags {
    /// In order; on the CPU the work runs before the enqueuing call returns.
    WEIR_STREAM_DEFAULT = 0,
    /// In order; enqueuing calls return at once. The same as weir_stream_attr_set_asynchronous(attr, 1).
    WEIR_STREAM_ASYNCHRONOUS = 1,
}

/// Flags of weir_event_create.
///
/// Chapter: Event.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_event_flags {
    /// No time stamp.
    WEIR_EVENT_DEFAULT = 0,
    /// Records the time at which the stream reached the event, for weir_event_elapsed_ns.
    WEIR_EVENT_TIMING = 1,
}

/// No time limit. All time-outs are relative and in nanoseconds.
///
/// Chapter: Library.
pub const WEIR_TIMEOUT_INFINITE: u64 = u64::MAX;

/// A host function that runs as one piece of work: on a stream (weir_enqueue_task) or as a node of a graph
/// (weir_graph_add_task). Returns WEIR_OK or the code of its failure. Must not throw, longjmp or unwind.
pub type weir_host_fn = Option<unsafe extern "C" fn(arg: *mut c_void) -> i32>;

/// The result of synchronising one engine.
///
/// Chapter: Everything at once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_engine_sync {
    /// sizeof(weir_engine_sync), set by the caller in the first entry of an array.
    pub struct_size: usize,
    /// WEIR_OK, DEADLINE_EXCEEDED, or the code of the engine's first late error.
    pub status: weir_status,
    /// 0.
    pub reserved: u32,
    /// The engine's name after the word "engine": "engine cpu:0", "engine torch/encoder".
    pub engine: [c_char; 64],
    /// The text of the failure, cut if too long.
    pub message: [c_char; 256],
}
