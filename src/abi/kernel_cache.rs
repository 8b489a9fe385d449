//! What the kernel cache tells about itself.
#![forbid(unsafe_code)]

/// The kernel cache of this process in numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_kernel_cache_info {
    /// sizeof(weir_kernel_cache_info), set by the caller before the call.
    pub struct_size: usize,
    /// Most kernels that are kept; 0 = there is no cache.
    pub capacity: u64,
    /// Kernels in the cache now.
    pub entries: u64,
    /// Creations that found their kernel, since the library was loaded.
    pub hits: u64,
    /// Creations that had to make it.
    pub misses: u64,
    /// Creations that found another thread making it, and waited for that.
    pub shared_builds: u64,
    /// Kernels that made room for others, or went as the capacity was lowered.
    pub evictions: u64,
}
