//! Descriptors of the data movement kernels, which move elements and compute nothing. They take any element type.
//!
//! Chapter: Moving elements.
#![forbid(unsafe_code)]

/// Transposition: dimension i of the output is dimension permutation[i] of the input.
///
/// Input: x. Output: x with its dimensions in that order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_transpose_desc {
    /// sizeof(weir_transpose_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of dimensions of x; 0 = any number, in reverse order.
    pub rank: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// A permutation of 0 to rank - 1.
    pub permutation: [i32; 8],
}

/// Concatenation of tensors along an axis. They have one type, and the same size in all other dimensions.
///
/// Inputs: num_inputs tensors. Output: as the inputs; its size along the axis is the sum of theirs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_concat_desc {
    /// sizeof(weir_concat_desc) of the caller's header.
    pub struct_size: usize,
    /// 1 to WEIR_MAX_ARGS.
    pub num_inputs: u32,
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
}

/// Slice of a tensor: in each dimension the elements from begin on, at a distance of step, up to end, which is
/// excluded.
///
/// Negative positions count from the end. Positions outside of the tensor are clamped: INT64_MAX as end means "to the
/// last", and with a negative step INT64_MIN means "to the first". Input: x. Output: the slice.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_slice_desc {
    /// sizeof(weir_slice_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of dimensions of x.
    pub rank: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// The first element in each dimension.
    pub begin: [i64; 8],
    /// Where each dimension ends.
    pub end: [i64; 8],
    /// The distance; 0 = 1. A negative step goes backwards, from begin down to end.
    pub step: [i64; 8],
}

/// The contents of the margin of a weir_pad_desc: one of enum weir_pad_mode_value.
pub type weir_pad_mode = u32;

/// Contents of a margin.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_pad_mode_value {
    /// One value.
    WEIR_PAD_CONSTANT = 0,
    /// The tensor, mirrored at its first and its last element, which are not repeated: c b | a b c | b a.
    WEIR_PAD_REFLECT = 1,
    /// The nearest element of the tensor: a a | a b c | c c.
    WEIR_PAD_EDGE = 2,
}

/// Padding: a margin of `before` elements in front and `after` behind in each dimension.
///
/// A reflecting margin is smaller than the dimension. Input: x. Output: x with the margin.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_pad_desc {
    /// sizeof(weir_pad_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of dimensions of x.
    pub rank: u32,
    /// One of weir_pad_mode_value.
    pub mode: weir_pad_mode,
    /// Elements added in front in each dimension, 0 or more.
    pub before: [i64; 8],
    /// Elements added behind in each dimension, 0 or more.
    pub after: [i64; 8],
    /// The element of a WEIR_PAD_CONSTANT margin. Floats are rounded to the nearest; an integer type must be able to
    /// hold it.
    pub value: f64,
}

/// The same elements, in their order, in another shape. In a graph the output takes over the memory of the input where
/// possible, and nothing is copied; on a stream x may be its own output.
///
/// Input: x. Output: x in the shape.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_reshape_desc {
    /// sizeof(weir_reshape_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of dimensions of the output.
    pub rank: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// The output's shape. One dimension may be -1: it follows from the number of elements.
    pub dims: [i64; 8],
}

/// Gather: rows of a table by their indices, as for an embedding.
///
/// Inputs: table; indices, s32 or s64, of any shape. Output: the table with the indices' shape in place of the axis. A
/// call with an index below 0 or beyond the axis fails with OUT_OF_RANGE, which names it, and writes nothing. On a CUDA
/// engine that is a late failure of the stream or run, and the rows of such indices are zeros.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_gather_desc {
    /// sizeof(weir_gather_desc) of the caller's header.
    pub struct_size: usize,
    /// The axis of the table that the indices select from; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
}
