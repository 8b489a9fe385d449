//! Counters of the kernel cache.
//!
//! Chapter: Kernel cache.
#![forbid(unsafe_code)]

/// Counters of this process's kernel cache.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_kernel_cache_info {
    /// sizeof(weir_kernel_cache_info), set by the caller before the call.
    pub struct_size: usize,
    /// Maximum number of kernels kept; 0 = no cache.
    pub capacity: u64,
    /// Kernels in the cache now.
    pub entries: u64,
    /// Creations that found their kernel in the cache, since the library was loaded.
    pub hits: u64,
    /// Creations that had to build the kernel.
    pub misses: u64,
    /// Creations that found another thread building the kernel, and waited for it.
    pub shared_builds: u64,
    /// Kernels evicted to make room, or because the capacity was lowered.
    pub evictions: u64,
}
