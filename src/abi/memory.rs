//! An engine's memory: where it comes from, and figures.
use std::ffi::c_void;

/// An allocator of the host's, for the memory of engines: of the host's on CPU engines, of the engine's device on others.
///
/// Copied by weir_allocator_create. The functions may be called from any thread, several at a time. They must not
/// throw, longjmp or unwind, and must not call weir for an engine that they serve. weir holds no lock while it calls
/// them.
///
/// On an engine of another kind `allocate` gives an address that the engine's device can use, as weir_tensor_create_from
/// takes one, and the host may be unable to touch it. Tensors, scratch and the values of runs lie there; what the
/// device needs for itself (libraries, recordings) and pinned memory of the host's do not. What is given back is used by
/// nothing that a stream was given before.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_allocator_vtable {
    /// sizeof(weir_allocator_vtable) of the host's header. Members beyond it read as NULL.
    pub struct_size: usize,
    /// Reserved, 0.
    pub flags: u64,
    /// What the address of each tensor in this memory shall be a multiple of, in bytes: a power of two up to 2 MiB. 0,
    /// and anything less than the engine's own alignment (64 on the CPU), stand for the engine's own. weir_engine_info tells it.
    pub alignment: usize,
    /// Required. `bytes` bytes (never 0) at a multiple of `alignment`, a power of two; what they hold does not matter.
    /// NULL: there is no more. An address that is not aligned is given back at once, and the call that needed it fails.
    pub allocate: Option<unsafe extern "C" fn(ctx: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void>,
    /// Required. Takes back what `allocate` gave for the same numbers, each address exactly once.
    pub deallocate: Option<unsafe extern "C" fn(ctx: *mut c_void, data: *mut c_void, bytes: usize, alignment: usize)>,
    /// Optional: called exactly once, when everything was given back and nothing refers to the allocator any more, in
    /// the thread that let go of it last. Never called in a forked child.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
}

/// How an engine keeps its memory: one of enum weir_memory_mode_value.
pub type weir_memory_mode = u32;

/// How an engine keeps its memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_memory_mode_value {
    /// The engine gets regions of 1 MiB and more and cuts tensors, scratch and the values of runs out of them; what
    /// comes back is kept for the next (weir_engine_trim). The default but of emulated engines.
    WEIR_MEMORY_MODE_POOLED = 1,
    /// Each tensor and so on is one call of the allocator, and is given back at once: for tools that look for errors in
    /// memory, and for allocators that are pools themselves. The default of emulated engines.
    WEIR_MEMORY_MODE_DIRECT = 2,
}

/// What an engine's memory is like at one moment. Sizes are in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_memory_info {
    /// sizeof(weir_memory_info), set by the caller before the call.
    pub struct_size: usize,
    /// Most that may be reserved; UINT64_MAX = no limit.
    pub limit: u64,
    /// In tensors, buffers, scratch and the values of runs, rounded up to the sizes of blocks.
    pub in_use: u64,
    /// The most that was ever in use, or was since weir_engine_reset_memory_peak.
    pub peak_in_use: u64,
    /// In regions, whether in use or not.
    pub reserved: u64,
    /// The most that was ever reserved, or was since weir_engine_reset_memory_peak.
    pub peak_reserved: u64,
    /// The largest piece that is free, without what is kept for requests of its size.
    pub largest_free: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Regions.
    pub regions: u64,
    /// Blocks given out since the engine was made.
    pub allocations: u64,
    /// Regions asked for and got since the engine was made: calls of the allocator.
    pub region_allocations: u64,
    /// 1 - largest_free / (reserved - in_use); 0 if nothing is free.
    pub fragmentation: f64,
    /// Most of the host's memory that may be reserved for copies (weir_engine_attr_set_pinned_limit); UINT64_MAX = no
    /// limit. This and what follows is 0 for an engine that works in the host's memory, but for the limit, which is
    /// that of all its memory.
    pub host_limit: u64,
    /// Of the host's memory, in tensors and buffers that are pinned for this engine, and in what programs copy through.
    pub host_in_use: u64,
    /// The most of it that was ever in use, or was since weir_engine_reset_memory_peak.
    pub host_peak_in_use: u64,
    /// Of the host's memory, in regions for copies, whether in use or not.
    pub host_reserved: u64,
    /// Bytes of buffers that weir_buffer_pin has pinned for this engine.
    pub registered: u64,
    /// OR of enum weir_pinning: what is pinned. 0: the memory for copies is ordinary memory.
    pub pinning: u32,
    /// 0.
    pub reserved0: u32,
}

/// What memory of the host's a device's copies go straight from and to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_pinning {
    /// What weir allocates for it: weir_tensor_create_pinned, weir_buffer_create_pinned.
    WEIR_PINNING_ALLOCATES = 1,
    /// What others have allocated, too: weir_buffer_pin.
    WEIR_PINNING_REGISTERS = 2,
}
