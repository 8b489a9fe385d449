//! Packed weights.
//!
//! Chapter: Matrix products.
#![forbid(unsafe_code)]

/// Flags of weir_packed_weights_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_packed_weights_flags {
    /// The tensor is [N, K].
    WEIR_PACKED_WEIGHTS_TRANSPOSED = 1,
}

/// Descriptor of packed weights: B of a matrix product, packed from a tensor [K, N] of f32, f16, bf16 or s8.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_packed_weights_desc {
    /// sizeof(weir_packed_weights_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_packed_weights_flags.
    pub flags: u64,
}
