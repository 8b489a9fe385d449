//! Descriptor of the reductions.
//!
//! Chapter: Rows and columns.
#![forbid(unsafe_code)]

/// A reduction: one of enum weir_reduce_op_value.
pub type weir_reduce_op = u32;

/// Reductions. A NaN among the elements gives a NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_reduce_op_value {
    /// The sum; 0 for no elements.
    WEIR_REDUCE_SUM = 1,
    /// The sum divided by the number of elements; a NaN for no elements.
    WEIR_REDUCE_MEAN = 2,
    /// The least element; infinity for no elements.
    WEIR_REDUCE_MIN = 3,
    /// The greatest element; minus infinity for no elements.
    WEIR_REDUCE_MAX = 4,
    /// The product; 1 for no elements.
    WEIR_REDUCE_MUL = 5,
    /// With s the sum of |x| to the power of p: the root of max(s, eps).
    WEIR_REDUCE_NORM_MAX = 6,
    /// The root of s + eps.
    WEIR_REDUCE_NORM_SUM = 7,
    /// max(s, eps).
    WEIR_REDUCE_NORM_POWER_MAX = 8,
    /// s + eps.
    WEIR_REDUCE_NORM_POWER_SUM = 9,
    /// Index of the greatest element, as s32, among those that are reduced to one, in their order in memory. The first
    /// of equals, and the first NaN if there is one. Refused for no elements.
    WEIR_REDUCE_ARGMAX = 10,
    /// Index of the least element, likewise.
    WEIR_REDUCE_ARGMIN = 11,
}

/// Reduces some dimensions, each to one element. f32, f16 and bf16; computed in f32 or wider, in an order that depends
/// only on the shape.
///
/// Input: x. Output: the shape of x without the axes, or with 1 in their place; of the type of x, or s32 for indices.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_reduce_desc {
    /// sizeof(weir_reduce_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_reduce_flags.
    pub flags: u64,
    /// One of weir_reduce_op_value.
    pub op: weir_reduce_op,
    /// Number of axes; 0 = all.
    pub num_axes: u32,
    /// The axes that are reduced, in any order; negative ones count from the end.
    pub axes: [i32; 8],
    /// The power of a norm: 1 or 2. For other operations 0.
    pub p: f32,
    /// The eps of a norm, 0 or more. For other operations 0.
    pub eps: f32,
}

/// Flags of weir_reduce_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_reduce_flags {
    /// The reduced axes stay, with one element each.
    WEIR_REDUCE_KEEP_DIMS = 1,
}
