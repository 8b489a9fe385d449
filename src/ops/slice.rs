//! Creates a slice, see weir_slice_desc.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0); OUT_OF_RANGE (rank above WEIR_MAX_RANK).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{rank, reserved};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Result};
use std::mem::offset_of;

/// Slice of a tensor: in each dimension the elements from begin on, at a distance of step, up to end, which is
/// excluded.
///
/// Positions are those of Python and NumPy. Negative ones count from the end; those that are outside of the tensor even
/// so are clamped to the place next to its first or its last element: INT64_MAX as end means "to the last", and with a
/// negative step INT64_MIN means "to the first". A slice that begins there and goes away from the tensor has no
/// elements: with a negative step it begins below the first one, with a positive step behind the last one. (ONNX begins
/// at the first one in the former case.) Input: x. Output: the slice.
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
    /// The end in each dimension.
    pub end: [i64; 8],
    /// The distance; 0 = 1. A negative step goes backwards, from begin down to end.
    pub step: [i64; 8],
}

/// A part of a tensor: from, to, and in steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    pub rank: usize,
    pub begin: [i64; MAX_RANK],
    pub end: [i64; MAX_RANK],
    /// Not 0.
    pub step: [i64; MAX_RANK],
}

impl Slice {
    /// The first element along an axis of this size, the step, and the number of elements. Going backwards, positions
    /// are -1 to size - 1.
    pub fn range(&self, axis: usize, size: i64) -> (i64, i64, i64) {
        let step = self.step[axis];
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let place = |at: i64| (if at < 0 { at.saturating_add(size) } else { at }).clamp(low, high);
        let (begin, end) = (place(self.begin[axis]), place(self.end[axis]));
        let distance = if step > 0 { end - begin } else { begin - end };
        let count = if distance > 0 { (distance as u64 - 1) / step.unsigned_abs() + 1 } else { 0 };
        (begin, step, count as i64)
    }
}

impl Operator for Slice {
    type Desc = weir_slice_desc;
    const NAME: &'static str = "slice";
    const SETTINGS: &'static [Setting<weir_slice_desc>] = &[
        Setting::int64("begin", offset_of!(weir_slice_desc, begin)).times(|desc| desc.rank as usize),
        Setting::int64("end", offset_of!(weir_slice_desc, end)).times(|desc| desc.rank as usize),
        Setting::int64("step", offset_of!(weir_slice_desc, step)).times(|desc| desc.rank as usize),
    ];

    fn new(desc: &mut weir_slice_desc, _: Option<PackedShape>) -> Result<Slice> {
        reserved(desc.reserved)?;
        let rank = rank(desc.rank)?;
        for member in [&mut desc.begin, &mut desc.end, &mut desc.step] {
            member[rank..].fill(0);
        }
        desc.step[..rank].iter_mut().filter(|step| **step == 0).for_each(|step| *step = 1);
        Ok(Slice { rank, begin: desc.begin, end: desc.end, step: desc.step })
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_rank(self.rank, &inputs[0])?;
        let mut output = inputs[0];
        for (axis, dim) in output.dims[..self.rank].iter_mut().enumerate().filter(|(_, dim)| **dim != ANY_DIM) {
            *dim = self.range(axis, *dim).2;
        }
        Ok(output)
    }
}
