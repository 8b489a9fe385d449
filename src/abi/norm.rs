//! Descriptor of the normalisations.
//!
//! Chapter: Rows and columns.
#![forbid(unsafe_code)]

/// A normalisation: one of enum weir_norm_op_value.
pub type weir_norm_op = u32;

/// Normalisations.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_norm_op_value {
    /// Layer: (x - mean) / sqrt(variance + epsilon), with mean and variance of the elements along `axis` and all axes
    /// behind it. Scale and shift have the shape of these axes.
    WEIR_NORM_LAYER = 1,
    /// Root mean square: x / sqrt(mean of x * x + epsilon), of the same elements, with the same scale and shift.
    WEIR_NORM_RMS = 2,
    /// Batch, with given statistics: (x - mean) / sqrt(variance + epsilon), where mean and variance are further inputs,
    /// with one element for each element along `axis`, the channels. So have scale and shift.
    WEIR_NORM_BATCH = 3,
    /// Group: as layer, with mean and variance over all elements of a group of channels and of the axes behind them,
    /// for each position in front of the channels. Scale and shift have one element for each channel.
    WEIR_NORM_GROUP = 4,
}

/// Normalisation, then times scale and plus shift on request. The variance is that of the elements themselves: divided
/// by their number.
///
/// Inputs: x, f32, f16 or bf16; for WEIR_NORM_BATCH mean and variance, f32; with WEIR_NORM_SCALE scale; with
/// WEIR_NORM_SHIFT shift: f32, or both of the type of x. Output: as x. All types are computed in f32 or wider, and
/// rounded once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_norm_desc {
    /// sizeof(weir_norm_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_norm_flags.
    pub flags: u64,
    /// One of weir_norm_op_value.
    pub op: weir_norm_op,
    /// The first axis that is normalised, or the axis of the channels; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Number of groups of WEIR_NORM_GROUP, a divisor of the number of channels; equal to it for an instance
    /// normalisation. 0 for other operations.
    pub groups: u32,
    /// Added to the variance, 0 or more.
    pub epsilon: f32,
}

/// Flags of weir_norm_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_norm_flags {
    /// The result is multiplied with an input.
    WEIR_NORM_SCALE = 1,
    /// An input is added to the result, after the multiplication.
    WEIR_NORM_SHIFT = 2,
}
