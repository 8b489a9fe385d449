//! Creates a one-hot encoding, see weir_one_hot_desc.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7, depth below 0).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{axis, flags, reserved};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result};
use std::mem::offset_of;

/// One-hot encoding: for each index a row of one value, but for the element with that number.
///
/// Inputs: indices, s32 or s64; values[2], of any type: that of all elements, and that of the one. Output: the indices'
/// shape with `depth` elements along a new axis, of the values' type. An index below 0 or beyond the depth has a row
/// without the one; with WEIR_ONE_HOT_FROM_END an index below 0 counts from the end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_one_hot_desc {
    /// sizeof(weir_one_hot_desc) of the caller's header.
    pub struct_size: usize,
    /// The axis of the output that is new; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
    /// Number of elements of a row, 0 or more.
    pub depth: i64,
    /// OR of weir_one_hot_flags.
    pub flags: u64,
}

/// Flags of weir_one_hot_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_one_hot_flags {
    /// Indices below 0 count from the end: -1 is the last element of a row.
    WEIR_ONE_HOT_FROM_END = 1,
}

/// A row for each index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneHot {
    pub axis: i32,
    pub depth: i64,
    /// Indices below 0 count from the end.
    pub from_end: bool,
}

impl Operator for OneHot {
    type Desc = weir_one_hot_desc;
    const NAME: &'static str = "one_hot";
    const SETTINGS: &'static [Setting<weir_one_hot_desc>] =
        &[Setting::int64("depth", offset_of!(weir_one_hot_desc, depth))];

    fn new(desc: &mut weir_one_hot_desc, _: Option<PackedShape>) -> Result<OneHot> {
        reserved(desc.reserved)?;
        let from_end = flags(desc.flags, weir_one_hot_flags::WEIR_ONE_HOT_FROM_END as u64, "desc->flags")? != 0;
        if desc.depth < 0 {
            return Err(Error::out_of_range(format!("desc->depth is {}, expected 0 or more", desc.depth)));
        }
        Ok(OneHot { axis: axis(desc.axis)?, depth: desc.depth, from_end })
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (indices, values) = (&inputs[0], &inputs[1]);
        signature::check_indices(0, indices)?;
        let pattern = Desc::new(values.dtype, &[2]);
        signature::check_fit("input", &[*indices, pattern], inputs)?;
        let rank = indices.shape().len() as i32 + 1;
        let axis = if self.axis < 0 { self.axis + rank } else { self.axis };
        if !(0..rank).contains(&axis) {
            let expected = format!("a shape that may have a new axis {}", self.axis);
            return Err(signature::mismatch("input", 0, &expected, indices));
        }
        let (before, after) = indices.shape().split_at(axis as usize);
        let mut output = Desc { dtype: values.dtype, rank: rank as u32, dims: [0; MAX_RANK] };
        let dims = before.iter().chain([&self.depth]).chain(after);
        output.dims.iter_mut().zip(dims).for_each(|(to, &dim)| *to = dim);
        output.check_open()
    }
}
