//! What the library tells about itself and about engines.

/// Counters of the whole library in this process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_runtime_info {
    /// sizeof(weir_runtime_info), set by the caller before the call.
    pub struct_size: usize,
    /// Threads that weir has started since it was loaded (built-in and seeded pools, lanes of asynchronous streams).
    pub threads_started: u64,
    /// Of these, threads that are running now.
    pub threads_alive: u64,
    /// Heap allocations (malloc, realloc) that weir has made since it was loaded.
    pub allocations: u64,
    /// Bytes that weir holds on the heap now.
    pub bytes_in_use: u64,
    /// Thread pools alive.
    pub threadpools: u64,
    /// Engines alive.
    pub engines: u64,
    /// Streams alive.
    pub streams: u64,
    /// Events alive.
    pub events: u64,
    /// Tensors alive.
    pub tensors: u64,
    /// Kernels alive.
    pub kernels: u64,
    /// Graphs under construction.
    pub graphs: u64,
    /// Programs alive.
    pub programs: u64,
    /// Runs alive: handles of weir_program_start.
    pub runs: u64,
    /// Attributes and options alive, of all kinds.
    pub attrs: u64,
}

/// Facts about an engine.
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
}
