//! Quantization and dequantization, with a scale and a zero point for the whole tensor or for each index of an axis.
#![forbid(unsafe_code)]

use super::{BuiltinOperation, GRAIN, LEAST_NS, axis, elements, input};
use crate::base::{Desc, Result, desc::ANY_DIM, dtype};
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::{ClaimInput, SourceRow};
use crate::kernel::vector::{affine, isa::Isa};
use crate::kernel::{KernelContext, Outputs, signature};
use crate::memory::{Bf16, F16};
use crate::threadpool::Span;

/// The direction of the conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizeDirection {
    /// round(x / scale) + zero point, saturated.
    Quantize,
    /// (x - zero point) scale.
    Dequantize,
}

/// Inputs: x, scale, and the zero point on request. `dtype` is the output's, which `create` has checked.
#[derive(Clone, Copy, Debug)]
pub struct Quantization {
    pub way: QuantizeDirection,
    pub dtype: u32,
    pub zero_point: bool,
    pub axis: i32,
}

/// Block of elements between two conversions.
const BLOCK: usize = 512;
/// Time per element.
const ELEMENT_NS: f32 = 0.5;

/// Scales and zero points of the elements: element i uses index i / inner % len.
struct ChannelParameters<'a> {
    scales: &'a [f32],
    zeros: Option<ClaimInput<'a, i32>>,
    len: usize,
    inner: usize,
}

impl ChannelParameters<'_> {
    /// Fills in scales and zero points for the elements from index `from` on.
    fn fill(&self, isa: Isa, from: usize, scales: &mut [f32], zeros: &mut [f32]) {
        let (mut at, count) = (0, scales.len());
        while at < count {
            let (channel, offset) = ((from + at) / self.inner % self.len, (from + at) % self.inner);
            // A run of one channel, or of consecutive channels.
            let (len, stretched) = match self.inner {
                1 => ((self.len - channel).min(count - at), false),
                inner => ((inner - offset).min(count - at), true),
            };
            let (scales, zeros) = (&mut scales[at..at + len], &mut zeros[at..at + len]);
            match stretched {
                true => scales.fill(self.scales[channel]),
                false => scales.copy_from_slice(&self.scales[channel..channel + len]),
            }
            match &self.zeros {
                Some(from) => from.widen(isa, SourceRow { at: channel, stretched }, zeros),
                None => zeros.fill(0.0),
            }
            at += len;
        }
    }
}

impl Quantization {
    fn channels<'a>(&self, context: &'a KernelContext<'_>) -> Result<ChannelParameters<'a>> {
        let scales = input(context, 1);
        let zeros = self.zero_point.then(|| ClaimInput::of(context.input(2)));
        let desc = context.inputs()[0].desc();
        if scales.len() == 1 {
            return Ok(ChannelParameters { scales, zeros, len: 1, inner: elements(desc).max(2) });
        }
        let columns = axis::split(self.axis, desc)?;
        Ok(ChannelParameters { scales, zeros, len: columns.len, inner: columns.inner })
    }

    fn run<T: Stored, U: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (isa, x, output) = (Isa::best(), ClaimInput::<T>::of(context.input(0)), outputs.only());
        let channels = self.channels(context)?;
        let span = Span { items: elements(output.desc()), cost_ns: ELEMENT_NS, grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, output.shards::<U>(1), |y, claim| {
            let (begin, end) = (claim.begin(), claim.end());
            let (mut floats, mut scales, mut zeros) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            let whole = channels.len == 1;
            for from in (begin..end).step_by(BLOCK) {
                let count = BLOCK.min(end - from);
                let (block, scales, zeros) = (&mut floats[..count], &mut scales[..count], &mut zeros[..count]);
                // With a single channel the first block's values serve all blocks.
                if !whole || from == begin {
                    channels.fill(isa, from, scales, zeros);
                }
                x.widen(isa, SourceRow { at: from, stretched: false }, block);
                match self.way {
                    QuantizeDirection::Quantize => affine::quantize(isa, block, scales, zeros),
                    QuantizeDirection::Dequantize => affine::dequantize(isa, block, scales, zeros),
                }
                convert::narrow(isa, block, &mut y[from - begin..][..count]);
            }
            Ok(())
        })
    }

    fn run_from<T: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match self.dtype {
            dtype::F32 => self.run::<T, f32>(context, outputs),
            dtype::F16 => self.run::<T, F16>(context, outputs),
            dtype::BF16 => self.run::<T, Bf16>(context, outputs),
            dtype::S32 => self.run::<T, i32>(context, outputs),
            dtype::S8 => self.run::<T, i8>(context, outputs),
            _ => self.run::<T, u8>(context, outputs),
        }
    }

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

impl BuiltinOperation for Quantization {
    fn name(&self) -> &str {
        match self.way {
            QuantizeDirection::Quantize => "quantize",
            QuantizeDirection::Dequantize => "dequantize",
        }
    }

    fn num_inputs(&self) -> usize {
        if self.zero_point { 3 } else { 2 }
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (known, text) = match self.way {
            QuantizeDirection::Quantize => ([dtype::F32, dtype::BF16, dtype::F16], "f32, bf16 or f16 elements"),
            QuantizeDirection::Dequantize => ([dtype::S8, dtype::U8, dtype::S32], "s8, u8 or s32 elements"),
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

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * ELEMENT_NS) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match context.inputs()[0].desc().dtype {
            dtype::F32 => self.run_from::<f32>(context, outputs),
            dtype::F16 => self.run_from::<F16>(context, outputs),
            dtype::BF16 => self.run_from::<Bf16>(context, outputs),
            dtype::S32 => self.run_from::<i32>(context, outputs),
            dtype::S8 => self.run_from::<i8>(context, outputs),
            _ => self.run_from::<u8>(context, outputs),
        }
    }
}
