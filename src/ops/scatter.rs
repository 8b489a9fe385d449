//! Creates a scatter, see weir_scatter_desc. NULL desc = elements along the last axis, without a reduction.
//!
//! Errors: INVALID_ARGUMENT (unknown mode, reduction or flags, an axis of WEIR_SCATTER_ND, reserved not 0);
//! OUT_OF_RANGE (axis outside -8..7).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{axis, flags, reserved, value_of};
use super::gather_elements::check_elements;
use super::gather_nd::place_depth;
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result, dtype};

/// The targets of the updates of a scatter: one of enum weir_scatter_mode_value.
pub type weir_scatter_mode = u32;

/// The meaning of an index of a scatter.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_scatter_mode_value {
    /// The place of one element along an axis: the reverse of weir_gather_elements_desc.
    WEIR_SCATTER_ELEMENTS = 0,
    /// Q indices are the place of a block: the reverse of weir_gather_nd_desc.
    WEIR_SCATTER_ND = 1,
}

/// The result of an element and its update: one of enum weir_scatter_reduction_value.
pub type weir_scatter_reduction = u32;

/// Reductions of a scatter, as weir_binary_op_value has them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_scatter_reduction_value {
    /// The update.
    WEIR_SCATTER_NONE = 0,
    /// Their sum.
    WEIR_SCATTER_ADD = 1,
    /// Their product.
    WEIR_SCATTER_MUL = 2,
    /// The lesser one; a NaN if one is NaN.
    WEIR_SCATTER_MIN = 3,
    /// The greater one; a NaN if one is NaN.
    WEIR_SCATTER_MAX = 4,
}

/// Flags of weir_scatter_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_scatter_flags {
    /// Indices below 0 count from the end of their dimension.
    WEIR_SCATTER_FROM_END = 1,
}

/// Scatter: a tensor in which some elements are replaced, or reduced with others.
///
/// Inputs: x; indices, s32 or s64; updates, of x's type. With WEIR_SCATTER_ELEMENTS indices and updates have one shape,
/// of x's rank, and along the other axes of at most its sizes: for matrices and axis 0 updates[i, j] goes to
/// x[indices[i, j], j]. With WEIR_SCATTER_ND each Q of indices[..., Q] are the place of a block in the first Q
/// dimensions of x, and updates have the indices' shape without Q, and a block's; in a graph Q is not open. Output: as
/// x.
///
/// Updates of one element are applied in their order in the tensor, on every pool; without a reduction the last one
/// remains. Types are any, with a reduction all but bool; f16 and bf16 are computed in f32 and rounded after each
/// update, integers wrap around. A call with an index below 0 or beyond its dimension fails with OUT_OF_RANGE, which
/// names it, and writes nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_scatter_desc {
    /// sizeof(weir_scatter_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_scatter_flags.
    pub flags: u64,
    /// One of weir_scatter_mode_value.
    pub mode: weir_scatter_mode,
    /// One of weir_scatter_reduction_value.
    pub reduction: weir_scatter_reduction,
    /// The axis of WEIR_SCATTER_ELEMENTS; negative counts from the end, -1 = last. For WEIR_SCATTER_ND 0.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
}

/// Updates of some elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    pub mode: weir_scatter_mode_value,
    pub reduction: weir_scatter_reduction_value,
    pub axis: i32,
    /// Indices below 0 count from the end.
    pub from_end: bool,
}

impl Operator for Scatter {
    type Desc = weir_scatter_desc;
    const NAME: &'static str = "scatter";
    const DEFAULT: Option<weir_scatter_desc> = Some(weir_scatter_desc {
        struct_size: size_of::<weir_scatter_desc>(),
        flags: 0,
        mode: weir_scatter_mode_value::WEIR_SCATTER_ELEMENTS as u32,
        reduction: weir_scatter_reduction_value::WEIR_SCATTER_NONE as u32,
        axis: -1,
        reserved: 0,
    });

    fn new(desc: &mut weir_scatter_desc, _: Option<PackedShape>) -> Result<Scatter> {
        reserved(desc.reserved)?;
        let from_end = flags(desc.flags, weir_scatter_flags::WEIR_SCATTER_FROM_END as u64, "desc->flags")? != 0;
        let mode = value_of!("mode", desc.mode, weir_scatter_mode_value { WEIR_SCATTER_ELEMENTS, WEIR_SCATTER_ND })?;
        let reduction = value_of!("reduction", desc.reduction, weir_scatter_reduction_value {
            WEIR_SCATTER_NONE, WEIR_SCATTER_ADD, WEIR_SCATTER_MUL, WEIR_SCATTER_MIN, WEIR_SCATTER_MAX,
        })?;
        if mode == weir_scatter_mode_value::WEIR_SCATTER_ND && desc.axis != 0 {
            return Err(Error::invalid(format!("desc->axis is {}, expected 0 with WEIR_SCATTER_ND", desc.axis)));
        }
        Ok(Scatter { mode, reduction, axis: axis(desc.axis)?, from_end })
    }

    fn num_inputs(&self) -> usize {
        3
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (x, indices) = (&inputs[0], &inputs[1]);
        let mut pattern = Desc { dtype: x.dtype, ..*indices };
        match self.mode {
            weir_scatter_mode_value::WEIR_SCATTER_ELEMENTS => {
                let axis = signature::axis(self.axis, x)?;
                signature::check_indices(1, indices)?;
                check_elements(x, axis, 1, indices)?;
            }
            weir_scatter_mode_value::WEIR_SCATTER_ND => {
                let depth = place_depth(x, 0, 1, indices)?;
                let (rows, block) = (&indices.shape()[..indices.shape().len() - 1], &x.shape()[depth..]);
                pattern = Desc { rank: (rows.len() + block.len()) as u32, dims: [0; MAX_RANK], ..pattern };
                pattern.dims.iter_mut().zip(rows.iter().chain(block)).for_each(|(to, &dim)| *to = dim);
                pattern = pattern.check_open()?;
            }
        }
        signature::check_like(inputs, 2, 0)?;
        let all = [*x, *indices, pattern];
        signature::check_fit("input", &all, inputs)?;
        if self.reduction != weir_scatter_reduction_value::WEIR_SCATTER_NONE && x.dtype == dtype::BOOL {
            return Err(signature::mismatch("input", 0, "elements that are numbers, for a reduction", x));
        }
        x.check_open()
    }
}
