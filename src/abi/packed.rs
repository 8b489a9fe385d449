//! Packed weights, and the product of bytes that takes them: descriptors.
//!
//! Chapter: Products.
#![forbid(unsafe_code)]

use super::handles::weir_packed_weights;
use super::tensor::weir_dtype;

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

/// Flags of weir_matmul_int8_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_matmul_int8_flags {
    /// A is given as [K, M].
    WEIR_MATMUL_INT8_TRANSPOSE_A = 1,
    /// B is given as [N, K].
    WEIR_MATMUL_INT8_TRANSPOSE_B = 2,
    /// One more input, bias[N] of s32, is added to the sums.
    WEIR_MATMUL_INT8_BIAS = 4,
    /// The last input, scales[N] of f32, has a scale for each column, besides `scale`.
    WEIR_MATMUL_INT8_SCALES = 8,
}

/// Matrix product of bytes: C[..., M, N] = saturate(round(scale * scales[N] * ((A[..., M, K] - zero_a) * (B[K, N] -
/// zero_b) + bias[N])) + zero_c), with A of u8 or s8 and B of s8.
///
/// The sums of products are exact for every K on every processor, and then saturate at 32 bits. Without scales, and
/// with a scale of 1, the rest is exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties
/// to even. A C of f32 is not rounded to an integer.
///
/// Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_INT8_BIAS bias; with WEIR_MATMUL_INT8_SCALES
/// scales. Output: C.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_matmul_int8_desc {
    /// sizeof(weir_matmul_int8_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_matmul_int8_flags.
    pub flags: u64,
    /// The type of C: WEIR_S32 (also if it is 0), WEIR_F32, WEIR_S8 or WEIR_U8.
    pub dtype: weir_dtype,
    /// Finite; 0 = 1.
    pub scale: f32,
    /// Zero point of A, subtracted from each element; a value of its type.
    pub zero_a: i32,
    /// Zero point of B, subtracted from each element: -128 to 127.
    pub zero_b: i32,
    /// Zero point of C, added to each element at the end.
    pub zero_c: i32,
    /// Reserved, 0.
    pub reserved: u32,
    /// B, packed from s8, in place of the input; NULL = B is an input. Excludes WEIR_MATMUL_INT8_TRANSPOSE_B.
    pub weights: *mut weir_packed_weights,
}
