//! Creates a reduction, see weir_reduce_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, unknown op, p of a norm other than 1 and 2, eps below 0 or a NaN, p or eps
//! of a reduction other than a norm, WEIR_REDUCE_S64_INDICES where the results are no indices); OUT_OF_RANGE (num_axes
//! above WEIR_MAX_RANK, an axis outside -8..7).
//!
//! Chapter: Reductions and normalisation.
#![forbid(unsafe_code)]

use super::check::{axis_named, flags, value_of};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result, dtype};
use std::mem::offset_of;

/// A reduction: one of enum weir_reduce_op_value.
pub type weir_reduce_op = u32;

/// Reductions. A NaN among the elements gives a NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_reduce_op_value {
    /// The sum; 0 for no elements. Of integers it wraps around.
    WEIR_REDUCE_SUM = 1,
    /// The sum divided by the number of elements; a NaN for no elements. Of integers the sum is one of 64 bits, and the
    /// quotient is rounded toward zero; 0 for no elements.
    WEIR_REDUCE_MEAN = 2,
    /// The least element; infinity for no elements, or the greatest number of the type. Of bools whether all hold.
    WEIR_REDUCE_MIN = 3,
    /// The greatest element; minus infinity for no elements, or the least number of the type. Of bools whether any
    /// holds.
    WEIR_REDUCE_MAX = 4,
    /// The product; 1 for no elements. Of integers it wraps around.
    WEIR_REDUCE_MUL = 5,
    /// With s the sum of |x| to the power of p: the root of max(s, eps).
    WEIR_REDUCE_NORM_MAX = 6,
    /// The root of s + eps.
    WEIR_REDUCE_NORM_SUM = 7,
    /// max(s, eps).
    WEIR_REDUCE_NORM_POWER_MAX = 8,
    /// s + eps.
    WEIR_REDUCE_NORM_POWER_SUM = 9,
    /// Index of the greatest element, as s32 or s64, among those that are reduced to one, in their order in memory. The
    /// first of equals, and the first NaN if there is one. Refused for no elements, and for more than 2147483647, also
    /// with WEIR_REDUCE_S64_INDICES.
    WEIR_REDUCE_ARGMAX = 10,
    /// Index of the least element, likewise.
    WEIR_REDUCE_ARGMIN = 11,
}

/// Reduces some dimensions, each to one element. Floats are computed in f32 or wider, in an order that depends only on
/// the shape; integers are computed exactly.
///
/// Input: x, f32, f16 or bf16; without the norms also s64, s32, s8 or u8; for WEIR_REDUCE_MIN, WEIR_REDUCE_MAX and
/// indices also bool. Output: the shape of x without the axes, or with 1 in their place; of the type of x; indices are
/// s32, or s64 with WEIR_REDUCE_S64_INDICES.
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
    /// WEIR_REDUCE_ARGMAX and WEIR_REDUCE_ARGMIN give s64, as other frameworks do.
    WEIR_REDUCE_S64_INDICES = 2,
}

/// A reduction over some axes, which count from the end if negative; without any, over all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduce {
    pub op: weir_reduce_op_value,
    pub axes: [i32; MAX_RANK],
    pub num_axes: usize,
    pub keep_dims: bool,
    /// Indices are s64 instead of s32.
    pub long_indices: bool,
    /// For norms: the power is 2 instead of 1.
    pub squares: bool,
    pub eps: f32,
}

impl Reduce {
    /// Index of the greatest element along one axis.
    pub fn argmax(axis: i32) -> Reduce {
        let op = weir_reduce_op_value::WEIR_REDUCE_ARGMAX;
        let axes = std::array::from_fn(|i| if i == 0 { axis } else { 0 });
        Reduce { op, axes, num_axes: 1, keep_dims: false, long_indices: false, squares: false, eps: 0.0 }
    }

    /// Whether the results are indices.
    pub fn gives_places(&self) -> bool {
        use weir_reduce_op_value::*;
        matches!(self.op, WEIR_REDUCE_ARGMAX | WEIR_REDUCE_ARGMIN)
    }

    fn is_norm(&self) -> bool {
        self.name() == "reduce_norm"
    }

    /// Refuses a type that the operation does not take.
    fn check_type(&self, input: &Desc) -> Result<()> {
        use weir_reduce_op_value::*;
        let (taken, expected) = match input.dtype {
            dtype::F32 | dtype::F16 | dtype::BF16 => (true, ""),
            dtype::BOOL => {
                let taken = self.gives_places() || matches!(self.op, WEIR_REDUCE_MIN | WEIR_REDUCE_MAX);
                (taken, if self.is_norm() { "f32, f16 or bf16 elements" } else { "elements that are numbers" })
            }
            _ => (!self.is_norm(), "f32, f16 or bf16 elements"),
        };
        if taken { Ok(()) } else { Err(signature::mismatch("input", 0, expected, input)) }
    }

    /// The reduced axes.
    pub fn reduced(&self, input: &Desc) -> Result<[bool; MAX_RANK]> {
        let mut reduced = [self.num_axes == 0; MAX_RANK];
        for &axis in &self.axes[..self.num_axes] {
            let index = signature::axis(axis, input)?;
            if std::mem::replace(&mut reduced[index], true) {
                let expected =
                    format!("a shape in which the axes are different, where axis {axis} is one that was named");
                return Err(signature::mismatch("input", 0, &expected, input));
            }
        }
        Ok(reduced)
    }
}

impl Operator for Reduce {
    type Desc = weir_reduce_desc;
    const NAME: &'static str = "reduce";
    const SETTINGS: &'static [Setting<weir_reduce_desc>] =
        &[Setting::int32("axes", offset_of!(weir_reduce_desc, axes)).times(|desc| desc.num_axes as usize)];

    fn stand_in(desc: &mut weir_reduce_desc) {
        if desc.axes == [0; MAX_RANK] {
            desc.axes = std::array::from_fn(|axis| axis as i32);
        }
    }

    fn new(desc: &mut weir_reduce_desc, _: Option<PackedShape>) -> Result<Reduce> {
        use weir_reduce_flags::*;
        let known = WEIR_REDUCE_KEEP_DIMS as u64 | WEIR_REDUCE_S64_INDICES as u64;
        let bits = flags(desc.flags, known, "desc->flags")?;
        let op = value_of!("op", desc.op, weir_reduce_op_value {
            WEIR_REDUCE_SUM, WEIR_REDUCE_MEAN, WEIR_REDUCE_MIN, WEIR_REDUCE_MAX, WEIR_REDUCE_MUL, WEIR_REDUCE_NORM_MAX,
            WEIR_REDUCE_NORM_SUM, WEIR_REDUCE_NORM_POWER_MAX, WEIR_REDUCE_NORM_POWER_SUM, WEIR_REDUCE_ARGMAX,
            WEIR_REDUCE_ARGMIN,
        })?;
        let num_axes = desc.num_axes as usize;
        if num_axes > MAX_RANK {
            return Err(Error::out_of_range(format!("desc->num_axes is {num_axes}, expected 0 to {MAX_RANK}")));
        }
        for (i, &axis) in desc.axes[..num_axes].iter().enumerate() {
            axis_named(format_args!("axes[{i}]"), axis)?;
        }
        desc.axes[num_axes..].fill(0);
        let (p, eps) = (desc.p, desc.eps);
        let has = |flag: weir_reduce_flags| bits & flag as u64 != 0;
        let reduce = Reduce {
            op,
            axes: desc.axes,
            num_axes,
            keep_dims: has(WEIR_REDUCE_KEEP_DIMS),
            long_indices: has(WEIR_REDUCE_S64_INDICES),
            squares: p == 2.0,
            eps,
        };
        if reduce.long_indices && !reduce.gives_places() {
            return Err(Error::invalid("desc->flags has WEIR_REDUCE_S64_INDICES, but the operation gives no indices"));
        }
        let is_norm = reduce.is_norm();
        if !(if is_norm { [1.0, 2.0].contains(&p) } else { p == 0.0 }) {
            let expected = if is_norm { "1 or 2" } else { "0, as the operation is no norm" };
            return Err(Error::invalid(format!("desc->p is {p}, expected {expected}")));
        }
        if !(if is_norm { eps >= 0.0 } else { eps == 0.0 }) {
            let expected = if is_norm { "0 or more" } else { "0, as the operation is no norm" };
            return Err(Error::invalid(format!("desc->eps is {eps}, expected {expected}")));
        }
        Ok(reduce)
    }

    fn name(&self) -> &'static str {
        use weir_reduce_op_value::*;
        match self.op {
            WEIR_REDUCE_SUM => "reduce_sum",
            WEIR_REDUCE_MEAN => "reduce_mean",
            WEIR_REDUCE_MIN => "reduce_min",
            WEIR_REDUCE_MAX => "reduce_max",
            WEIR_REDUCE_MUL => "reduce_mul",
            WEIR_REDUCE_ARGMAX => "argmax",
            WEIR_REDUCE_ARGMIN => "argmin",
            WEIR_REDUCE_NORM_MAX
            | WEIR_REDUCE_NORM_SUM
            | WEIR_REDUCE_NORM_POWER_MAX
            | WEIR_REDUCE_NORM_POWER_SUM => "reduce_norm",
        }
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let input = &inputs[0];
        self.check_type(input)?;
        let reduced = self.reduced(input)?;
        let mut output = Desc::new(
            match (self.gives_places(), self.long_indices) {
                (false, _) => input.dtype,
                (true, false) => dtype::S32,
                (true, true) => dtype::S64,
            },
            &[],
        );
        // `None`: some dimension is open.
        let mut count = Some(1u64);
        for (&size, reduced) in input.shape().iter().zip(reduced) {
            if reduced {
                count = count.filter(|_| size != ANY_DIM).map(|count| count.saturating_mul(size as u64));
            }
            if !reduced || self.keep_dims {
                output.dims[output.rank as usize] = if reduced { 1 } else { size };
                output.rank += 1;
            }
        }
        if self.gives_places() && count.is_some_and(|count| !(1..=i32::MAX as u64).contains(&count)) {
            let expected = format!("1 to {} elements along the axes together", i32::MAX);
            return Err(signature::mismatch("input", 0, &expected, input));
        }
        output.check_open()
    }
}
