//! Quantization and dequantization, with a scale and a zero point for the whole tensor or for each index of an axis.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, axis, elements, input};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::{self, Numbers, Stored};
use crate::kernel::vector::elements::{ClaimInput, SourceRow};
use crate::kernel::vector::{affine, isa::Isa};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::Quantize;
use crate::threadpool::Span;

/// Block of elements between two conversions.
const BLOCK: usize = 512;
/// Elements of the shortest run of one channel that has blocks of its own.
const SHORT: usize = 64;
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
    /// Elements from index `from` on, at most BLOCK, that are computed at once, and whether the next ones have the same
    /// parameters. Blocks end with a channel, if it is long, or with a channel's last repetition that fits.
    fn block(&self, from: usize) -> (usize, bool) {
        let period = self.len.saturating_mul(self.inner);
        if self.len == 1 {
            (BLOCK, true)
        } else if self.inner >= SHORT {
            let left = self.inner - from % self.inner;
            (left.min(BLOCK), left > BLOCK)
        } else if period <= BLOCK {
            (BLOCK / period * period, true)
        } else {
            (BLOCK, false)
        }
    }

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

impl Builtin<Quantize> {
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

    fn run<U: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, x: &Numbers<'_, f32>) -> Result<()> {
        let (isa, output) = (Isa::best(), outputs.only());
        let channels = self.channels(context)?;
        let span = Span { items: elements(output.desc()), cost_ns: ELEMENT_NS, grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, output.shards::<U>(1), |y, claim| {
            let (begin, end) = (claim.begin(), claim.end());
            let (mut floats, mut scales, mut zeros) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            let (mut from, mut are_filled) = (begin, false);
            while from < end {
                let (most, serves_next) = channels.block(from);
                let count = most.min(end - from);
                let (block, scales, zeros) = (&mut floats[..count], &mut scales[..most], &mut zeros[..most]);
                if !are_filled {
                    channels.fill(isa, from, scales, zeros);
                }
                let (scales, zeros) = (&scales[..count], &zeros[..count]);
                x.convert(isa, from..from + count, block);
                match self.dequantize {
                    false => affine::quantize(isa, block, scales, zeros),
                    true => affine::dequantize(isa, block, scales, zeros),
                }
                convert::narrow(isa, block, &mut y[from - begin..][..count]);
                (from, are_filled) = (from + count, serves_next);
            }
            Ok(())
        })
    }
}

impl Builtin<Quantize> {
    /// As `run`, for parameters that serve long runs of elements.
    fn runs<T: Stored, U: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (isa, output, x) = (Isa::best(), outputs.only(), context.input(0).read::<T>());
        let channels = self.channels(context)?;
        let span = Span { items: elements(output.desc()), cost_ns: ELEMENT_NS, grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, output.shards::<U>(1), |y, claim| {
            let (mut from, mut rest) = (claim.begin(), y);
            while !rest.is_empty() {
                let left = channels.inner - from % channels.inner;
                let (y, behind) = rest.split_at_mut(left.min(rest.len()));
                let (mut scale, mut zero) = ([0.0], [0.0]);
                channels.fill(isa, from, &mut scale, &mut zero);
                let (x, by) = (&x[from..from + y.len()], (scale[0], zero[0]));
                match self.dequantize {
                    false => affine::quantize_by(isa, x, y, by),
                    true => affine::dequantize_by(isa, x, y, by),
                }
                (from, rest) = (from + y.len(), behind);
            }
            Ok(())
        })
    }

    /// Whether they do.
    fn has_runs(&self, context: &KernelContext<'_>) -> Result<bool> {
        Ok(self.channels(context)?.inner >= SHORT)
    }
}

impl BuiltinOperation for Builtin<Quantize> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * ELEMENT_NS) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let bytes = context.input(0);
        if elements(bytes.desc()) > 0 && self.has_runs(context)? {
            match (bytes.desc().dtype, self.dtype) {
                (dtype::F32, dtype::U8) if !self.dequantize => return self.runs::<f32, u8>(context, outputs),
                (dtype::F32, dtype::S8) if !self.dequantize => return self.runs::<f32, i8>(context, outputs),
                (dtype::U8, dtype::F32) if self.dequantize => return self.runs::<u8, f32>(context, outputs),
                (dtype::S8, dtype::F32) if self.dequantize => return self.runs::<i8, f32>(context, outputs),
                _ => {}
            }
        }
        let x = match bytes.desc().dtype {
            dtype::F32 => Numbers::floats::<f32>(bytes),
            dtype::F16 => Numbers::floats::<F16>(bytes),
            dtype::BF16 => Numbers::floats::<Bf16>(bytes),
            dtype::S32 => Numbers::floats::<i32>(bytes),
            dtype::S8 => Numbers::floats::<i8>(bytes),
            _ => Numbers::floats::<u8>(bytes),
        };
        match self.dtype {
            dtype::F32 => self.run::<f32>(context, outputs, &x),
            dtype::F16 => self.run::<F16>(context, outputs, &x),
            dtype::BF16 => self.run::<Bf16>(context, outputs, &x),
            dtype::S32 => self.run::<i32>(context, outputs, &x),
            dtype::S8 => self.run::<i8>(context, outputs, &x),
            _ => self.run::<u8>(context, outputs, &x),
        }
    }
}
