//! Standalone matrix products.
//!
//! Chapter: Matrix products without an engine.
#![forbid(unsafe_code)]

/// The offset that weir_gemm_u8s8s32 and weir_gemm_s8s8s32 add to C: one of enum weir_gemm_offset_value.
pub type weir_gemm_offset = u32;

/// Shape of the offset in `co`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_gemm_offset_value {
    /// One number, for all elements.
    WEIR_GEMM_OFFSET_FIXED = 1,
    /// A row of n numbers, added to each row of C.
    WEIR_GEMM_OFFSET_ROW = 2,
    /// A column of m numbers, added to each column of C.
    WEIR_GEMM_OFFSET_COLUMN = 3,
}
