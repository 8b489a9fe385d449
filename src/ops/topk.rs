//! Creates a choice of the greatest or least elements, see weir_topk_desc.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7, k outside
//! 0..2147483647).
//!
//! Chapter: Reductions and normalisation.
#![forbid(unsafe_code)]

use super::check::{axis, flags, reserved};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result, dtype};
use std::mem::offset_of;

/// The k greatest or least elements along an axis, with their places, the best ones first.
///
/// Input: x, f32, f16, bf16, s64, s32, s8 or u8. Outputs: the elements, and their places along the axis, s32 or, with
/// WEIR_TOPK_S64_INDICES, s64; both as x with k elements along the axis. Among equals the one with the lower place
/// comes first; the two zeros are equal. A NaN is better than any number, of the greatest and of the least alike, as in
/// WEIR_REDUCE_ARGMAX and WEIR_REDUCE_ARGMIN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_topk_desc {
    /// sizeof(weir_topk_desc) of the caller's header.
    pub struct_size: usize,
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
    /// Number of elements that are chosen; at most as many as there are along the axis, which are at most 2147483647.
    pub k: i64,
    /// OR of weir_topk_flags.
    pub flags: u64,
}

/// Flags of weir_topk_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_topk_flags {
    /// The least elements, the least one first.
    WEIR_TOPK_LEAST = 1,
    /// Places are s64, as other frameworks have them.
    WEIR_TOPK_S64_INDICES = 2,
}

/// The best elements along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Topk {
    pub axis: i32,
    pub count: usize,
    pub least: bool,
    /// Places are s64 instead of s32.
    pub long_indices: bool,
}

impl Operator for Topk {
    type Desc = weir_topk_desc;
    const NAME: &'static str = "topk";
    const SETTINGS: &'static [Setting<weir_topk_desc>] = &[
        Setting::int64("k", offset_of!(weir_topk_desc, k)),
        Setting::int32("axis", offset_of!(weir_topk_desc, axis)),
    ];

    fn new(desc: &mut weir_topk_desc, _: Option<PackedShape>) -> Result<Topk> {
        use weir_topk_flags::*;
        reserved(desc.reserved)?;
        let bits = flags(desc.flags, WEIR_TOPK_LEAST as u64 | WEIR_TOPK_S64_INDICES as u64, "desc->flags")?;
        let has = |flag: weir_topk_flags| bits & flag as u64 != 0;
        let count = i32::try_from(desc.k).ok().and_then(|k| usize::try_from(k).ok());
        let count =
            count.ok_or_else(|| Error::out_of_range(format!("desc->k is {}, expected 0 to {}", desc.k, i32::MAX)))?;
        Ok(Topk {
            axis: axis(desc.axis)?,
            count,
            least: has(WEIR_TOPK_LEAST),
            long_indices: has(WEIR_TOPK_S64_INDICES),
        })
    }

    fn num_outputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let x = &inputs[0];
        if x.dtype == dtype::BOOL {
            return Err(signature::mismatch("input", 0, "elements that are numbers", x));
        }
        let axis = signature::axis(self.axis, x)?;
        let (len, count) = (x.dims[axis], self.count as i64);
        if len != ANY_DIM && !(count..=i32::MAX.into()).contains(&len) {
            let expected = format!("{count} to {} elements along axis {axis}", i32::MAX);
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        let mut output = *x;
        output.dims[axis] = count;
        output.check_open()
    }

    fn output_at(&self, inputs: &[Desc], index: usize) -> Result<Desc> {
        let values = self.output(inputs)?;
        let places = if self.long_indices { dtype::S64 } else { dtype::S32 };
        Desc { dtype: if index == 0 { values.dtype } else { places }, ..values }.check_open()
    }
}
