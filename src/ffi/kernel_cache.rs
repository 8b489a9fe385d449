//! The cache of built-in kernels.
//!
//! Chapter: Kernel cache.

use super::guard::guard;
use super::versioned;
use crate::abi::*;
use crate::kernel::cache::CACHE;

/// Sets the maximum number of kernels kept, 0 to 1048576; 0 = no cache. It comes before WEIR_KERNEL_CACHE_CAPACITY from
/// the environment; without either it is 1024. Excess kernels are released, least recently used first.
///
/// Errors: OUT_OF_RANGE.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn weir_kernel_cache_set_capacity(capacity: usize) -> weir_status {
    guard("weir_kernel_cache_set_capacity", || CACHE.set_capacity(capacity))
}

/// Fills *out_info with the cache's capacity, size and counters.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, a meaningless value of WEIR_KERNEL_CACHE_CAPACITY).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_cache_get_info(out_info: *mut weir_kernel_cache_info) -> weir_status {
    guard("weir_kernel_cache_get_info", || {
        let capacity = CACHE.capacity();
        let (entries, counts) = CACHE.figures();
        let info = |capacity: usize| weir_kernel_cache_info {
            struct_size: 0,
            capacity: capacity as u64,
            entries: entries as u64,
            hits: counts.hits,
            misses: counts.misses,
            shared_builds: counts.shared,
            evictions: counts.evictions,
        };
        // SAFETY: the caller's struct, as documented.
        unsafe { versioned::write(out_info, &info(capacity?), "out_info") }
    })
}
