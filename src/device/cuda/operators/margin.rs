//! A tensor with a margin.
#![forbid(unsafe_code)]

use super::attributes::DescriptorBytes;
use crate::abi::weir_pad_desc;
use crate::base::desc::MAX_RANK;
use crate::base::{Result, dtype};
use crate::device::cuda::images::{PAD_1, PAD_2, PAD_4, PAD_8};
use crate::device::cuda::plan::{Emit, Operator, Params, count, small};
use crate::memory::View;
use std::mem::offset_of;

/// `before` elements in front in each dimension; how many are behind the output says.
#[derive(Clone, Copy, Debug)]
pub struct Pad {
    before: [i64; MAX_RANK],
    mode: u32,
    value: f64,
}

impl Pad {
    pub fn new(attributes: DescriptorBytes<'_>) -> Pad {
        Pad {
            before: attributes.i64s(offset_of!(weir_pad_desc, before)),
            mode: attributes.u32(offset_of!(weir_pad_desc, mode)),
            value: attributes.f64(offset_of!(weir_pad_desc, value)),
        }
    }
}

/// The bits of a value as an element: floats are rounded to the nearest; that an integer type holds it was seen before.
fn element(value: f64, of: u32) -> u32 {
    match of {
        dtype::F32 => (value as f32).to_bits(),
        dtype::F16 => narrow(value, 5, 10).into(),
        dtype::BF16 => narrow(value, 8, 7).into(),
        _ => value as i32 as u32,
    }
}

/// A value as a small float: so many bits of exponent and of fraction, rounded once to the nearest, ties to even.
fn narrow(value: f64, exponent_bits: u32, fraction_bits: u32) -> u16 {
    let sign = u16::from(value.is_sign_negative()) << 15;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let infinity = ((1u16 << exponent_bits) - 1) << fraction_bits;
    if value.is_nan() {
        return sign | infinity | 1 << (fraction_bits - 1);
    }
    // The exponent of the last bit that is kept; small numbers keep fewer bits.
    let exponent = (((value.abs().to_bits() >> 52) as i32) - 1023).max(1 - bias);
    let units = (value.abs() * 2f64.powi(fraction_bits as i32 - exponent)).round_ties_even();
    if !units.is_finite() || exponent > bias {
        return sign | infinity;
    }
    let normal = ((exponent + bias - 1) as u32) << fraction_bits;
    sign | (normal + units as u32).min(u32::from(infinity)) as u16
}

impl Operator for Pad {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        let count = count(y)?;
        let rank = x.shape().len();
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(count).word(self.mode).word(rank as u32);
        params.word(element(self.value, y.dtype));
        for of in [&x.dims, &y.dims, &self.before] {
            for from_last in 0..MAX_RANK {
                let size = if from_last < rank { of[rank - 1 - from_last] } else { 0 };
                params.word(small(&[size as usize])?);
            }
        }
        let entry = match dtype::size(y.dtype)? {
            1 => &PAD_1,
            2 => &PAD_2,
            4 => &PAD_4,
            _ => &PAD_8,
        };
        params.launch_each(emit, entry, count)
    }
}
