//! Creates a cumulative sum, see weir_cumsum_desc. NULL desc = along the last axis.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
//!
//! Chapter: Reductions and normalisation.
#![forbid(unsafe_code)]

use super::check::{axis, flags, reserved};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::{Desc, Result, dtype};
use std::mem::offset_of;

/// Cumulative sum: each element is the sum of those of x up to its place along one axis. Input: x, f32, f16, bf16,
/// s32 or s64. Output: as x, in the same memory or in other memory. Floats are added in f64, in the order of the axis, and each sum is rounded to f32, and
/// from there to f16 or bf16; s32 and s64 wrap around.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_cumsum_desc {
    /// sizeof(weir_cumsum_desc) of the caller's header.
    pub struct_size: usize,
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
    /// OR of weir_cumsum_flags.
    pub flags: u64,
}

/// Flags of weir_cumsum_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_cumsum_flags {
    /// A sum leaves out the element at its place: the first one is 0.
    WEIR_CUMSUM_EXCLUSIVE = 1,
    /// Sums begin at the end of the axis.
    WEIR_CUMSUM_REVERSE = 2,
}

/// Sums of all elements up to each one along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cumsum {
    pub axis: i32,
    pub exclusive: bool,
    pub reverse: bool,
}

impl Operator for Cumsum {
    type Desc = weir_cumsum_desc;
    const NAME: &'static str = "cumsum";
    const SETTINGS: &'static [Setting<weir_cumsum_desc>] =
        &[Setting::int32("axis", offset_of!(weir_cumsum_desc, axis)).of_values()];
    const DEFAULT: Option<weir_cumsum_desc> =
        Some(weir_cumsum_desc { struct_size: size_of::<weir_cumsum_desc>(), axis: -1, reserved: 0, flags: 0 });

    fn new(desc: &mut weir_cumsum_desc, _: Option<PackedShape>) -> Result<Cumsum> {
        use weir_cumsum_flags::*;
        reserved(desc.reserved)?;
        let bits = flags(desc.flags, WEIR_CUMSUM_EXCLUSIVE as u64 | WEIR_CUMSUM_REVERSE as u64, "desc->flags")?;
        let has = |flag: weir_cumsum_flags| bits & flag as u64 != 0;
        Ok(Cumsum { axis: axis(desc.axis)?, exclusive: has(WEIR_CUMSUM_EXCLUSIVE), reverse: has(WEIR_CUMSUM_REVERSE) })
    }

    fn dim_from(&self, _: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        [Some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        if ![dtype::F32, dtype::F16, dtype::BF16, dtype::S32, dtype::S64].contains(&inputs[0].dtype) {
            return Err(signature::mismatch("input", 0, "f32, f16, bf16, s32 or s64 elements", &inputs[0]));
        }
        signature::axis(self.axis, &inputs[0])?;
        Ok(inputs[0])
    }
}
