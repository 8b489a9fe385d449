//! Creates a quantization or dequantization, see weir_quantize_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, dtype); OUT_OF_RANGE (axis outside -8..7).
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::check::{axis, flags};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::abi::weir_dtype;
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};

/// Quantization: round(x / scale) + zero_point, saturated. Inputs: x, f32, bf16 or f16; scale, f32; with
/// WEIR_QUANTIZE_ZERO_POINT zero_point, s32. Output: the shape of x, s8, u8 or s32. With WEIR_QUANTIZE_DEQUANTIZE the
/// way back: (x - zero_point) scale, computed in f32, from s8, u8 or s32 to f32, bf16 or f16.
///
/// scale and zero_point have one element (of rank 0 or 1), for the whole tensor, or as many as x has along the axis.
/// Rounding is to nearest, ties to even; a NaN becomes 0. An s32 is computed in f32: zero points and sums beyond
/// 2^24 are rounded to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_quantize_desc {
    /// sizeof(weir_quantize_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_quantize_flags.
    pub flags: u64,
    /// The type of the output; for a dequantization 0 stands for WEIR_F32.
    pub dtype: weir_dtype,
    /// The axis of scale and zero_point, unless they have one element; negative counts from the end, -1 = last.
    pub axis: i32,
}

/// Flags of weir_quantize_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_quantize_flags {
    /// A third input, zero_point. Without it zero points are 0.
    WEIR_QUANTIZE_ZERO_POINT = 1,
    /// From integers to floats.
    WEIR_QUANTIZE_DEQUANTIZE = 2,
}

/// round(x / scale) + zero point, or (x - zero point) scale. Inputs: x, scale, and the zero point on request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantize {
    /// From integers to floats.
    pub dequantize: bool,
    /// The output's type.
    pub dtype: u32,
    pub zero_point: bool,
    pub axis: i32,
}

impl Quantize {
    /// Refuses a scale or zero point that does not fit x.
    fn check_channels(&self, index: usize, dtype: u32, inputs: &[Desc]) -> Result<()> {
        let (x, given) = (&inputs[0], &inputs[index]);
        // An open dimension may turn out to be 1.
        let may_be_one = given.shape().iter().all(|dim| [1, ANY_DIM].contains(dim));
        if given.dtype == dtype && given.rank <= 1 && may_be_one {
            return Ok(());
        }
        let axis = signature::axis(self.axis, x)?;
        let pattern = Desc::new(dtype, &[x.shape()[axis]]);
        if signature::check_fit("input", &[pattern], std::slice::from_ref(given)).is_err() {
            let expected = format!("{} or {}", Desc::new(dtype, &[1]).text(), pattern.text());
            return Err(signature::mismatch("input", index, &expected, given));
        }
        Ok(())
    }
}

impl Operator for Quantize {
    type Desc = weir_quantize_desc;
    const NAME: &'static str = "quantize";

    fn new(desc: &mut weir_quantize_desc, _: Option<PackedShape>) -> Result<Quantize> {
        use weir_quantize_flags::*;
        let known = WEIR_QUANTIZE_ZERO_POINT as u64 | WEIR_QUANTIZE_DEQUANTIZE as u64;
        let bits = flags(desc.flags, known, "desc->flags")?;
        let dequantize = bits & WEIR_QUANTIZE_DEQUANTIZE as u64 != 0;
        if dequantize && desc.dtype == dtype::ANY {
            desc.dtype = dtype::F32;
        }
        let (taken, text) = match dequantize {
            false => ([dtype::S8, dtype::U8, dtype::S32], "s8, u8 or s32"),
            true => ([dtype::F32, dtype::BF16, dtype::F16], "f32, bf16 or f16"),
        };
        if !taken.contains(&desc.dtype) {
            let (name, number) = (dtype::name(desc.dtype), desc.dtype);
            return Err(Error::invalid(format!("desc->dtype is {name} ({number}), expected {text}")));
        }
        let zero_point = bits & WEIR_QUANTIZE_ZERO_POINT as u64 != 0;
        Ok(Quantize { dequantize, dtype: desc.dtype, zero_point, axis: axis(desc.axis)? })
    }

    fn name(&self) -> &'static str {
        if self.dequantize { "dequantize" } else { "quantize" }
    }

    fn num_inputs(&self) -> usize {
        if self.zero_point { 3 } else { 2 }
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (known, text) = match self.dequantize {
            false => ([dtype::F32, dtype::BF16, dtype::F16], "f32, f16 or bf16 elements"),
            true => ([dtype::S8, dtype::U8, dtype::S32], "s8, u8 or s32 elements"),
        };
        if !known.contains(&inputs[0].dtype) {
            return Err(signature::mismatch("input", 0, text, &inputs[0]));
        }
        self.check_channels(1, dtype::F32, inputs)?;
        if self.zero_point {
            self.check_channels(2, dtype::S32, inputs)?;
            let known = inputs[1].is_concrete() && inputs[2].is_concrete();
            if known && inputs[1].elements()? != inputs[2].elements()? {
                let expected = format!("as many elements as input 1, {}, has", inputs[1].text());
                return Err(signature::mismatch("input", 2, &expected, &inputs[2]));
            }
        }
        Desc { dtype: self.dtype, ..inputs[0] }.check_open()
    }
}
