//! Storage types, and integers that stand for floats.
#![forbid(unsafe_code)]

use super::attributes::DescriptorBytes;
use super::axis::AxisView;
use super::movement::copy_bytes;
use crate::abi::{weir_convert_desc, weir_dequantize_desc, weir_quantize_desc};
use crate::base::{Result, dtype};
use crate::device::cuda::images::{CONVERT, DEQUANTIZE, QUANTIZE};
use crate::device::cuda::plan::{Emit, Operator, Params, count, small};
use crate::memory::View;
use std::mem::offset_of;

/// x scale + shift in another type.
#[derive(Clone, Copy, Debug)]
pub struct Convert {
    scale: f32,
    shift: f32,
}

impl Convert {
    pub fn new(attributes: DescriptorBytes<'_>) -> Convert {
        let scale = attributes.f32(offset_of!(weir_convert_desc, scale));
        let shift = attributes.f32(offset_of!(weir_convert_desc, shift));
        Convert { scale: if scale == 0.0 { 1.0 } else { scale }, shift }
    }
}

impl Operator for Convert {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (from, to) = (inputs[0].desc().dtype, outputs[0].desc().dtype);
        let plain = self.scale == 1.0 && self.shift == 0.0;
        if plain && from == to {
            return copy_bytes(&inputs[0], &outputs[0], emit);
        }
        let count = count(outputs[0].desc())?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(count).word(from).word(to).flag(plain);
        params.float(self.scale).float(self.shift);
        params.launch_each(emit, &CONVERT, count)
    }
}

/// round(x / scale) + zero point, or (x - zero point) scale.
#[derive(Clone, Copy, Debug)]
pub struct Quantization {
    forth: bool,
    axis: i32,
}

impl Quantization {
    pub fn quantize(attributes: DescriptorBytes<'_>) -> Quantization {
        Quantization { forth: true, axis: attributes.i32(offset_of!(weir_quantize_desc, axis)) }
    }

    pub fn dequantize(attributes: DescriptorBytes<'_>) -> Quantization {
        Quantization { forth: false, axis: attributes.i32(offset_of!(weir_dequantize_desc, axis)) }
    }
}

impl Operator for Quantization {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (x, y) = (inputs[0].desc(), outputs[0].desc());
        let count = count(y)?;
        let (channels, inner) = match inputs[1].desc().elements()? {
            1 => (1, 1),
            _ => AxisView::new(self.axis, x).map(|columns| (columns.len, columns.inner))?,
        };
        debug_assert!(dtype::size(x.dtype).is_ok());
        let mut params = Params::new();
        params.view(&inputs[0]).view(&inputs[1]).optional(inputs.get(2)).view(&outputs[0]);
        params.word(count).word(x.dtype).word(y.dtype).word(small(&[channels])?).word(small(&[inner])?).word(0);
        params.launch_each(emit, if self.forth { &QUANTIZE } else { &DEQUANTIZE }, count)
    }
}
