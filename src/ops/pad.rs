//! Creates a padding, see weir_pad_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown mode, a margin below 0); OUT_OF_RANGE (rank above WEIR_MAX_RANK).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{rank, value_of};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result, dtype};
use std::mem::offset_of;

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

/// A tensor with a margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pad {
    pub rank: usize,
    pub before: [i64; MAX_RANK],
    pub after: [i64; MAX_RANK],
    pub mode: weir_pad_mode_value,
    pub value: f64,
}

impl Operator for Pad {
    type Desc = weir_pad_desc;
    const NAME: &'static str = "pad";
    const SETTINGS: &'static [Setting<weir_pad_desc>] = &[
        Setting::int64("before", offset_of!(weir_pad_desc, before)).times(|desc| desc.rank as usize),
        Setting::int64("after", offset_of!(weir_pad_desc, after)).times(|desc| desc.rank as usize),
        Setting::double("value", offset_of!(weir_pad_desc, value)).of_values(),
    ];

    fn new(desc: &mut weir_pad_desc, _: Option<PackedShape>) -> Result<Pad> {
        let rank = rank(desc.rank)?;
        let mode = value_of!("mode", desc.mode, weir_pad_mode_value {
            WEIR_PAD_CONSTANT, WEIR_PAD_REFLECT, WEIR_PAD_EDGE,
        })?;
        for (name, margin) in [("before", &mut desc.before), ("after", &mut desc.after)] {
            if let Some(i) = margin[..rank].iter().position(|&elements| elements < 0) {
                return Err(Error::invalid(format!("desc->{name}[{i}] is {}, expected 0 or more", margin[i])));
            }
            margin[rank..].fill(0);
        }
        if mode != weir_pad_mode_value::WEIR_PAD_CONSTANT {
            desc.value = 0.0;
        }
        Ok(Pad { rank, before: desc.before, after: desc.after, mode, value: desc.value })
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        use weir_pad_mode_value::*;
        let input = &inputs[0];
        signature::check_rank(self.rank, input)?;
        let mut output = *input;
        for axis in (0..self.rank).filter(|&axis| input.dims[axis] != ANY_DIM) {
            let (size, before, after) = (input.dims[axis], self.before[axis], self.after[axis]);
            let (least, why) = match self.mode {
                WEIR_PAD_CONSTANT => (0, "for a margin"),
                WEIR_PAD_EDGE => (i64::from(before > 0 || after > 0), "for a margin of its edge"),
                WEIR_PAD_REFLECT if before > 0 || after > 0 => {
                    (before.max(after).saturating_add(1), "for a margin that mirrors them")
                }
                WEIR_PAD_REFLECT => (0, ""),
            };
            if size < least {
                let expected = format!("at least {least} elements along axis {axis} {why}");
                return Err(signature::mismatch("input", 0, &expected, input));
            }
            output.dims[axis] = before
                .checked_add(after)
                .and_then(|margin| margin.checked_add(size))
                .ok_or_else(|| Error::out_of_range(format!("axis {axis} has more elements than can be counted")))?;
        }
        if self.mode == WEIR_PAD_CONSTANT {
            element(self.value, input)?;
        }
        output.check_open()
    }
}

/// The bits of a value as an element of a type: floats are rounded to the nearest, an integer type must be able to hold
/// it.
pub fn element(value: f64, of: &Desc) -> Result<u64> {
    let whole = |low: f64, high: f64| {
        if (low..=high).contains(&value) && value.fract() == 0.0 {
            // Two's complement, of which as many bits count as the type has.
            return Ok(value as i64 as u64);
        }
        let expected = format!("elements that can be {value}, the value of the margin");
        Err(signature::mismatch("input", 0, &expected, of))
    };
    match of.dtype {
        dtype::F32 => Ok((value as f32).to_bits().into()),
        // The greatest s64 is no f64.
        dtype::S64 => whole(i64::MIN as f64, (i64::MAX as f64).next_down()),
        dtype::S32 => whole(f64::from(i32::MIN), f64::from(i32::MAX)),
        dtype::U8 => whole(0.0, 255.0),
        dtype::S8 => whole(-128.0, 127.0),
        dtype::BOOL => whole(0.0, 1.0),
        dtype::F16 => Ok(narrow(value, 5, 10).into()),
        dtype::BF16 => Ok(narrow(value, 8, 7).into()),
        _ => Err(signature::mismatch("input", 0, "a type that has a margin's value", of)),
    }
}

/// A value as a 16-bit float with this many exponent and fraction bits, rounded to nearest, ties to even.
fn narrow(value: f64, exponent_bits: u32, fraction_bits: u32) -> u16 {
    let sign = u16::from(value.is_sign_negative()) << 15;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let infinity = ((1u16 << exponent_bits) - 1) << fraction_bits;
    if value.is_nan() {
        return sign | infinity | 1 << (fraction_bits - 1);
    }
    let size = value.abs();
    // The exponent of the last kept bit; subnormal numbers keep fewer bits.
    let exponent = (((size.to_bits() >> 52) as i32) - 1023).max(1 - bias);
    let last = exponent - fraction_bits as i32;
    // Exact: powers of two, and a result of few bits.
    let units = (size * 2f64.powi(-last)).round_ties_even();
    if !units.is_finite() || exponent > bias {
        return sign | infinity;
    }
    // A fraction that rounds up to a whole number carries into the exponent, even to infinity.
    let normal = ((exponent + bias - 1) as u32) << fraction_bits;
    sign | (normal + units as u32).min(u32::from(infinity)) as u16
}
