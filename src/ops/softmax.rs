//! Creates a softmax, see weir_softmax_desc. NULL desc = the last axis.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
//!
//! Chapter: Reductions and normalisation.
#![forbid(unsafe_code)]

use super::check::{axis, flags, reserved};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::{Desc, Result};

/// Softmax along one axis: exp(x - max) / sum; or its logarithm. f32, f16 and bf16, computed in f32. Input: x. Output:
/// as x, in the same memory or in other memory. A row whose greatest element is an infinity or that holds a NaN becomes
/// NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_softmax_desc {
    /// sizeof(weir_softmax_desc) of the caller's header.
    pub struct_size: usize,
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
    /// OR of weir_softmax_flags.
    pub flags: u64,
}

/// Flags of weir_softmax_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_softmax_flags {
    /// The logarithm of the softmax: x - max - ln(sum).
    WEIR_SOFTMAX_LOG = 1,
}

/// exp(x - max) / sum along an axis, or its logarithm. A row whose greatest element is an infinity, or that holds a
/// NaN, becomes NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    pub axis: i32,
    pub log: bool,
}

impl Operator for Softmax {
    type Desc = weir_softmax_desc;
    const NAME: &'static str = "softmax";
    const DEFAULT: Option<weir_softmax_desc> =
        Some(weir_softmax_desc { struct_size: size_of::<weir_softmax_desc>(), axis: -1, reserved: 0, flags: 0 });

    fn new(desc: &mut weir_softmax_desc, _: Option<PackedShape>) -> Result<Softmax> {
        reserved(desc.reserved)?;
        let log = flags(desc.flags, weir_softmax_flags::WEIR_SOFTMAX_LOG as u64, "desc->flags")? != 0;
        Ok(Softmax { axis: axis(desc.axis)?, log })
    }

    fn name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn dim_from(&self, _: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        [Some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_floats(inputs)?;
        signature::axis(self.axis, &inputs[0])?;
        Ok(inputs[0])
    }
}
