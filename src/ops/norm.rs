//! Creates a normalisation, see weir_norm_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, unknown op, groups 0 of a group normalisation or not 0 of another one,
//! epsilon below 0 or a NaN); OUT_OF_RANGE (axis outside -8..7).
//!
//! Chapter: Reductions and normalisation.
#![forbid(unsafe_code)]

use super::check::{axis, flags, value_of};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};

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
/// WEIR_NORM_SHIFT shift: f32, or both of the type of x. Output: as x, in the same memory or in other
/// memory; no other input may share it. All types are computed in f32 or wider, and rounded once.
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

/// A normalisation, with scale and shift on request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    pub op: weir_norm_op_value,
    /// The first normalised axis, or the axis of the channels; counts from the end if negative.
    pub axis: i32,
    pub groups: usize,
    pub epsilon: f32,
    pub scale: bool,
    pub shift: bool,
}

impl Norm {
    pub fn is_batch(&self) -> bool {
        self.op == weir_norm_op_value::WEIR_NORM_BATCH
    }

    /// Number of inputs before scale and shift: x, and the statistics of a batch.
    pub fn first_affine(&self) -> usize {
        if self.is_batch() { 3 } else { 1 }
    }
}

impl Operator for Norm {
    type Desc = weir_norm_desc;
    const NAME: &'static str = "norm";

    fn new(desc: &mut weir_norm_desc, _: Option<PackedShape>) -> Result<Norm> {
        use weir_norm_flags::*;
        let bits = flags(desc.flags, WEIR_NORM_SCALE as u64 | WEIR_NORM_SHIFT as u64, "desc->flags")?;
        let op = value_of!(
            "op",
            desc.op,
            weir_norm_op_value { WEIR_NORM_LAYER, WEIR_NORM_RMS, WEIR_NORM_BATCH, WEIR_NORM_GROUP }
        )?;
        let axis = axis(desc.axis)?;
        let (groups, epsilon) = (desc.groups as usize, desc.epsilon);
        if (op == weir_norm_op_value::WEIR_NORM_GROUP) != (groups > 0) {
            let expected = if groups == 0 { "1 or more" } else { "0, as the operation has no groups" };
            return Err(Error::invalid(format!("desc->groups is {groups}, expected {expected}")));
        }
        if epsilon.is_nan() || epsilon < 0.0 {
            return Err(Error::invalid(format!("desc->epsilon is {epsilon}, expected 0 or more")));
        }
        let has = |flag: weir_norm_flags| bits & flag as u64 != 0;
        Ok(Norm { op, axis, groups, epsilon, scale: has(WEIR_NORM_SCALE), shift: has(WEIR_NORM_SHIFT) })
    }

    fn name(&self) -> &'static str {
        match self.op {
            weir_norm_op_value::WEIR_NORM_LAYER => "layer_norm",
            weir_norm_op_value::WEIR_NORM_RMS => "rms_norm",
            weir_norm_op_value::WEIR_NORM_BATCH => "batch_norm",
            weir_norm_op_value::WEIR_NORM_GROUP => "group_norm",
        }
    }

    fn num_inputs(&self) -> usize {
        self.first_affine() + usize::from(self.scale) + usize::from(self.shift)
    }

    fn dim_from(&self, _: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        [Some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let x = &inputs[0];
        signature::check_floats(&inputs[..1])?;
        let at = signature::axis(self.axis, x)?;
        let channels = x.shape()[at];
        let is_group = self.op == weir_norm_op_value::WEIR_NORM_GROUP;
        if is_group && channels != ANY_DIM && !(channels as usize).is_multiple_of(self.groups) {
            let expected = format!("a multiple of {} channels along axis {}", self.groups, self.axis);
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        let shape = if is_group || self.is_batch() { &x.shape()[at..=at] } else { &x.shape()[at..] };
        let first = self.first_affine();
        for (i, input) in inputs.iter().enumerate().skip(1) {
            // Scale and shift are f32, or both of the type of x.
            let leads = inputs.get(first).filter(|_| i >= first).is_some_and(|scale| scale.dtype == x.dtype);
            let want = Desc::new(if leads { x.dtype } else { dtype::F32 }, shape);
            if signature::check_fit("input", &[want], std::slice::from_ref(input)).is_err() {
                let other = Desc::new(x.dtype, shape).text();
                let either = i == first && !leads && x.dtype != dtype::F32;
                let expected = if either { format!("{} or {other}", want.text()) } else { want.text() };
                return Err(signature::mismatch("input", i, &expected, input));
            }
        }
        Ok(*x)
    }
}
