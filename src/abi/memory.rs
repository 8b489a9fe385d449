//! An engine's memory: host-provided allocators, and figures.
//!
//! Chapter: Memory.
use std::ffi::c_void;

/// A host-provided allocator for the memory of engines: host memory on CPU engines, device memory on other engines.
///
/// Copied by weir_allocator_create. The functions may be called from any thread, several at a time. They must not
/// throw, longjmp or unwind, and must not call weir for an engine that they serve. weir holds no lock while it calls
/// them.
///
/// On an engine of another kind `allocate` returns an address that the engine's device can use, as
/// weir_memory takes one (`data`); the host may be unable to access it. Tensors, scratch and the values of runs lie
/// there; the device's own needs (libraries, recordings) and pinned host memory do not. Memory is given back only when
/// no work submitted to a stream before uses it any more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_allocator_vtable {
    /// sizeof(weir_allocator_vtable) of the host's header. Members beyond it read as NULL.
    pub struct_size: usize,
    /// Reserved, 0.
    pub flags: u64,
    /// Alignment of each tensor's address in this memory, in bytes: a power of two up to 2 MiB. 0, and anything less
    /// than the engine's own alignment (64 on the CPU), stand for the engine's own, which weir_engine_info has.
    pub alignment: usize,
    /// Required. Returns `bytes` bytes (never 0) at a multiple of `alignment`, a power of two, with any contents. NULL:
    /// out of memory. An address that is not aligned is given back at once, and the call that needed it fails.
    pub allocate: Option<unsafe extern "C" fn(ctx: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void>,
    /// Required. Takes back memory from `allocate`, with the same size and alignment, each address exactly once.
    pub deallocate: Option<unsafe extern "C" fn(ctx: *mut c_void, data: *mut c_void, bytes: usize, alignment: usize)>,
    /// Optional: called exactly once, when all memory was given back and nothing refers to the allocator any more, in
    /// the thread that drops the last reference. Never called in a forked child.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
}

/// How an engine keeps its memory: one of enum weir_memory_mode_value.
pub type weir_memory_mode = u32;

/// How an engine keeps its memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_memory_mode_value {
    /// The engine allocates regions of 1 MiB and more and cuts tensors, scratch and the values of runs out of them;
    /// freed memory is kept for later requests (weir_engine_trim). Default for all engines except emulated ones.
    WEIR_MEMORY_MODE_POOLED = 1,
    /// Each tensor and so on is one call of the allocator, and is given back at once: for tools that look for memory
    /// errors, and for allocators that are pools themselves. Default for emulated engines.
    WEIR_MEMORY_MODE_DIRECT = 2,
}

/// Figures of an engine's memory at one moment. Sizes are in bytes.
///
/// Chapter: Memory figures.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_memory_info {
    /// sizeof(weir_memory_info), set by the caller before the call.
    pub struct_size: usize,
    /// Maximum that may be reserved; UINT64_MAX = no limit.
    pub limit: u64,
    /// Bytes in tensors, buffers, scratch and the values of runs, rounded up to the sizes of blocks.
    pub in_use: u64,
    /// Peak of in_use since the engine was created, or since weir_engine_reset_memory_peak.
    pub peak_in_use: u64,
    /// Bytes in regions, whether in use or not.
    pub reserved: u64,
    /// Peak of reserved since the engine was created, or since weir_engine_reset_memory_peak.
    pub peak_reserved: u64,
    /// The largest free piece, not counting blocks kept for requests of their size.
    pub largest_free: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Regions.
    pub regions: u64,
    /// Blocks handed out since the engine was created.
    pub allocations: u64,
    /// Regions obtained since the engine was created: calls of the allocator.
    pub region_allocations: u64,
    /// 1 - largest_free / (reserved - in_use); 0 if nothing is free.
    pub fragmentation: f64,
    /// Maximum of host memory that may be reserved for copies (weir_engine_attr_set_pinned_limit); UINT64_MAX = no
    /// limit. For an engine that works in host memory this is the limit of all its memory, and the members below are 0.
    pub host_limit: u64,
    /// Host memory in tensors and buffers that are pinned for this engine, and in staging memory of programs.
    pub host_in_use: u64,
    /// Peak of host_in_use since the engine was created, or since weir_engine_reset_memory_peak.
    pub host_peak_in_use: u64,
    /// Host memory in regions for copies, whether in use or not.
    pub host_reserved: u64,
    /// Bytes of buffers that weir_buffer_pin has pinned for this engine.
    pub registered: u64,
    /// OR of enum weir_pinning_flags: the memory that can be pinned. 0: the memory for copies is ordinary memory.
    pub pinning: u32,
    /// 0.
    pub reserved0: u32,
}

/// The host memory that a device copies directly from and to.
///
/// Chapter: Memory figures.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_pinning_flags {
    /// Memory that weir allocates for it: WEIR_MEMORY_PINNED.
    WEIR_PINNING_ALLOCATES = 1,
    /// Memory allocated elsewhere, too: weir_buffer_pin.
    WEIR_PINNING_REGISTERS = 2,
}
