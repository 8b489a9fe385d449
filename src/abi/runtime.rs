//! Information about the library and its engines.
//!
//! Chapter: Runtime.
#![forbid(unsafe_code)]

/// Counters of the whole library in this process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_runtime_info {
    /// sizeof(weir_runtime_info), set by the caller before the call.
    pub struct_size: usize,
    /// Threads that weir has started since it was loaded, for any reason. Threads of host pools are not counted; ask a
    /// pool for them with weir_threadpool_get_num_threads.
    pub threads_started: u64,
    /// Of these, threads that are running now.
    pub threads_alive: u64,
    /// Heap allocations (malloc, realloc) that weir has made since it was loaded.
    pub allocations: u64,
    /// Bytes that weir holds on the heap now.
    pub bytes_in_use: u64,
    /// Live thread pools. This count and those below fall when the object is gone: for a host pool, when its `release`
    /// has returned.
    pub threadpools: u64,
    /// Live engines.
    pub engines: u64,
    /// Live streams.
    pub streams: u64,
    /// Live events.
    pub events: u64,
    /// Live tensors.
    pub tensors: u64,
    /// Live kernels.
    pub kernels: u64,
    /// Graphs under construction.
    pub graphs: u64,
    /// Live programs.
    pub programs: u64,
    /// Live runs: handles of weir_program_start.
    pub runs: u64,
    /// Live attributes, of all kinds.
    pub attrs: u64,
    /// Threads running now in built-in pools created by the host.
    pub threads_of_builtin_pools: u64,
    /// Dedicated threads running now, each for one asynchronous stream or for the notices of one engine.
    pub threads_of_lanes: u64,
    /// Threads running now in private pools of engines.
    pub threads_of_engines: u64,
    /// Threads running now in pools shared by the engines of a kind.
    pub threads_of_kinds: u64,
    /// Live packed weights; handles of kernels are not counted.
    pub packed_weights: u64,
    /// Threads running now that watch events of devices.
    pub threads_of_devices: u64,
    /// Live host allocators, including those that only engines or their memory refer to.
    pub allocators: u64,
    /// Live buffers, including those that only tensors refer to.
    pub buffers: u64,
    /// Resources: variables, lookup tables, host objects.
    pub resources: u64,
    /// Of these, the ones whose engine is gone: see weir_resource_get_leaks.
    pub leaked_resources: u64,
    /// Live domains, including those that only engines refer to.
    pub domains: u64,
    /// Task groups that are held or have tasks left.
    pub task_groups: u64,
    /// Traces that were started and not released.
    pub traces: u64,
    /// Communicators, including those that only kernels refer to.
    pub comms: u64,
    /// Prepared calls.
    pub calls: u64,
}

/// Why weir started a thread: one of enum weir_thread_origin_value.
pub type weir_thread_origin = u32;

/// Reasons for which weir starts a thread. There are no others.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_thread_origin_value {
    /// weir_threadpool_create_builtin.
    WEIR_THREAD_ORIGIN_BUILTIN_POOL = 1,
    /// An asynchronous stream whose pool cannot take single tasks, or that has no pool; or the notices (weir_notice) of
    /// an accelerator's engine.
    WEIR_THREAD_ORIGIN_LANE = 2,
    /// An engine in mode WEIR_THREAD_MODE_PRIVATE.
    WEIR_THREAD_ORIGIN_ENGINE_POOL = 3,
    /// Engines in mode WEIR_THREAD_MODE_KIND.
    WEIR_THREAD_ORIGIN_KIND_POOL = 4,
    /// weir_threadpool_conformance, which calls the pool from threads that the pool has never seen.
    WEIR_THREAD_ORIGIN_CONFORMANCE = 5,
    /// A device that cannot report when an event was reached, from the first wait on that does not hold a host thread.
    WEIR_THREAD_ORIGIN_WATCH = 6,
}

/// A thread that weir has started.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_thread_info {
    /// sizeof(weir_thread_info).
    pub struct_size: usize,
    /// Why it was started.
    pub origin: weir_thread_origin,
    /// Index in its pool; 0 for a dedicated thread.
    pub index: u32,
    /// Id of its pool, as weir_threadpool_get_id returns it; 0 for a dedicated thread.
    pub pool: u64,
    /// The system's thread id (Linux: gettid); 0 until the new thread has reported it.
    pub os_id: u64,
    /// Its name, NUL-terminated UTF-8: "weir-pool3-0" (of pool 3), "weir-lane-ingest" (of stream 'ingest'),
    /// "weir-cpu0-1" (of an engine cpu:0), "weir-kind-cpu-0". The system's own lists show the first 15 bytes; a longer
    /// name loses its middle there and keeps the index.
    pub name: [std::ffi::c_char; 32],
    /// The object that it works for, NUL-terminated UTF-8, cut if too long: the stream's name, the engine ("cpu:0"),
    /// the kind ("cpu"); "" in a pool created by the host.
    pub owner: [std::ffi::c_char; 64],
}

/// Facts about an engine.
///
/// Chapter: Engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_engine_info {
    /// sizeof(weir_engine_info), set by the caller before the call.
    pub struct_size: usize,
    /// Kind of the engine.
    pub kind: u32,
    /// Index among the engines of its kind.
    pub index: u32,
    /// Processors that this process may use (from the affinity mask and the cgroup limit).
    pub num_processors: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Alignment of memory that the engine allocates, in bytes.
    pub alignment: u64,
    /// Name of the device, NUL-terminated UTF-8.
    pub name: [std::ffi::c_char; 64],
    /// The engine's thread mode: one of enum weir_thread_mode_value.
    pub thread_mode: u32,
    /// Threads of the pool that weir has started for the engine or for its kind; 0 in the other modes.
    pub thread_count: u32,
    /// The device's memory in bytes; 0 = unknown.
    pub memory_bytes: u64,
}
