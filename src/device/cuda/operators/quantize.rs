//! Storage types, and integers that stand for floats.
#![forbid(unsafe_code)]

use super::axis::AxisView;
use super::movement::copy_bytes;
use crate::base::{Result, dtype};
use crate::device::cuda::images::{CONVERT, DEQUANTIZE, QUANTIZE};
use crate::device::cuda::plan::{Emit, Operator, Params, count, small};
use crate::memory::View;
use crate::ops::{Convert, Quantize};

impl Operator for Convert {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (from, to) = (inputs[0].desc().dtype, outputs[0].desc().dtype);
        let plain = self.is_plain();
        if plain && from == to {
            return copy_bytes(&inputs[0], &outputs[0], emit);
        }
        let count = count(outputs[0].desc())?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(count).word(from).word(to).flag(plain);
        params.float(self.scale).float(self.shift).word(self.rounding as u32).word(self.overflow as u32);
        params.launch_each(emit, &CONVERT, count)
    }
}

impl Operator for Quantize {
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
        params.launch_each(emit, if self.dequantize { &DEQUANTIZE } else { &QUANTIZE }, count)
    }
}
