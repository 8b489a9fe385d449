//! Tensors: element types, descriptors and views.
//!
//! Chapter: Tensor.
#![forbid(unsafe_code)]
use std::ffi::c_void;

/// An element type: one of enum weir_dtype_value.
pub type weir_dtype = u32;

/// Element types. All are storage types; the built-in kernels compute in f32.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_dtype_value {
    /// In a signature: any type. Never the type of a tensor.
    WEIR_DTYPE_ANY = 0,
    /// IEEE 754 binary32.
    WEIR_F32 = 1,
    /// Signed 32-bit integer, two's complement.
    WEIR_S32 = 2,
    /// Unsigned 8-bit integer.
    WEIR_U8 = 3,
    /// Signed 8-bit integer.
    WEIR_S8 = 4,
    /// IEEE 754 binary16.
    WEIR_F16 = 5,
    /// bfloat16: the upper half of a binary32.
    WEIR_BF16 = 6,
    /// One byte, 0 or 1.
    WEIR_BOOL = 7,
    /// Signed 64-bit integer, two's complement: for keys of tables, indices of gather, and data movement kernels
    /// (transpose, concat, slice, reshape, gather). No kernel computes with it.
    WEIR_S64 = 8,
}

/// Limits of the API.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_limit {
    /// Maximum number of dimensions of a tensor.
    WEIR_MAX_RANK = 8,
    /// Maximum number of inputs, and of outputs, of one kernel.
    WEIR_MAX_ARGS = 64,
}

/// A dimension that is known only at run time, or that matches anything in a kernel's signature.
pub const WEIR_DIM_DYNAMIC: i64 = -1;

/// Element type and shape of a dense, row-major tensor. rank 0 is a scalar.
///
/// In a kernel's signature dtype WEIR_DTYPE_ANY and a dimension of WEIR_DIM_DYNAMIC (-1) match anything. An input of a
/// graph, a variable of a loop, the output of a kernel with WEIR_KERNEL_DYNAMIC and a dynamic tensor may have such
/// dimensions too: each run has its own. Texts show them as "f32[?,128]".
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct weir_tensor_desc {
    /// Element type.
    pub dtype: weir_dtype,
    /// Number of dimensions, at most WEIR_MAX_RANK.
    pub rank: u32,
    /// Dimensions, the slowest first; those from `rank` on are ignored.
    pub dims: [i64; 8],
}

/// A tensor as a kernel sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_tensor_view {
    /// First element.
    pub data: *mut c_void,
    /// Size of the data in bytes.
    pub bytes: usize,
    /// Element type and shape.
    pub desc: weir_tensor_desc,
}
