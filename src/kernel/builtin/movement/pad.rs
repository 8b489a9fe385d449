//! Padding: a tensor with a margin.
#![forbid(unsafe_code)]

use super::{bytes_span, element, repeat, traffic_ns};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result, dtype};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::{KernelContext, Outputs};
use crate::ops::pad::{self, Pad};
use crate::ops::weir_pad_mode_value as PadMode;

/// A dimension: its size in the input and the output, and elements in front.
#[derive(Clone, Copy, Debug, Default)]
struct PaddedDim {
    input: usize,
    output: usize,
    before: usize,
}

impl PaddedDim {
    /// The position in the input for a position in the output; `None` in a constant margin.
    fn source(&self, at: usize, mode: &PadMode) -> Option<usize> {
        if at >= self.before && at < self.before + self.input {
            return Some(at - self.before);
        }
        let below = at < self.before;
        match mode {
            PadMode::WEIR_PAD_CONSTANT => None,
            PadMode::WEIR_PAD_EDGE => Some(if below { 0 } else { self.input - 1 }),
            // As far inside as the position is outside.
            PadMode::WEIR_PAD_REFLECT if below => Some(self.before - at),
            PadMode::WEIR_PAD_REFLECT => Some(2 * (self.input - 1) - (at - self.before)),
        }
    }
}

/// A simplified padding: dimensions up to the last one with a margin, of units of contiguous bytes.
#[derive(Debug)]
struct PadPlan {
    /// The last one is a row of units; the others come before it.
    dims: [PaddedDim; MAX_RANK],
    rank: usize,
    unit: usize,
}

impl PadPlan {
    fn new(pad: &Pad, input: &Desc, output: &Desc) -> PadPlan {
        let margins = |i: usize| pad.before[i] > 0 || pad.after[i] > 0;
        let rank = (0..pad.rank).rev().find(|&i| margins(i)).map_or(0, |last| last + 1);
        let mut dims = [PaddedDim { input: 1, output: 1, before: 0 }; MAX_RANK];
        for (i, dim) in dims[..rank].iter_mut().enumerate() {
            *dim = PaddedDim {
                input: input.shape()[i] as usize,
                output: output.shape()[i] as usize,
                before: pad.before[i] as usize,
            };
        }
        let unit = input.shape()[rank..].iter().product::<i64>() as usize * element(input);
        PadPlan { dims, rank: rank.max(1), unit }
    }

    /// Byte offset in the input of row `number`; `None` if the row is all margin.
    fn row(&self, mut number: usize, mode: &PadMode) -> Option<usize> {
        let mut step = self.unit * self.dims[self.rank - 1].input;
        let mut from = 0;
        for dim in self.dims[..self.rank - 1].iter().rev() {
            from += dim.source(number % dim.output, mode)? * step;
            number /= dim.output;
            step *= dim.input;
        }
        Some(from)
    }

    /// Writes units of a row from position `at` on.
    fn fill(&self, row: Option<&[u8]>, at: usize, out: &mut [u8], mode: &PadMode, value: &[u8]) {
        let (dim, unit) = (&self.dims[self.rank - 1], self.unit);
        let Some(row) = row else { return repeat(value, out) };
        let places = out.len() / unit;
        // Positions in front, inside and behind.
        let front = dim.before.saturating_sub(at).min(places);
        let inside = (dim.before + dim.input).saturating_sub(at).min(places) - front;
        let (ahead, rest) = out.split_at_mut(front * unit);
        let (middle, behind) = rest.split_at_mut(inside * unit);
        if inside > 0 {
            let first = at + front - dim.before;
            middle.copy_from_slice(&row[first * unit..][..middle.len()]);
        }
        for (first, margin) in [(at, ahead), (at + front + inside, behind)] {
            if margin.is_empty() {
                continue;
            }
            match mode {
                PadMode::WEIR_PAD_CONSTANT => repeat(value, margin),
                PadMode::WEIR_PAD_EDGE => {
                    let nearest = dim.source(first, mode).unwrap_or(0);
                    repeat(&row[nearest * unit..][..unit], margin);
                }
                PadMode::WEIR_PAD_REFLECT => {
                    // Forward in the margin is backward in the row.
                    let from = dim.source(first, mode).unwrap_or(0);
                    for (i, out) in margin.chunks_exact_mut(unit).enumerate() {
                        out.copy_from_slice(&row[(from - i) * unit..][..unit]);
                    }
                }
            }
        }
    }
}

/// A value as an element of a type: its bytes, and how many of them count.
fn element_of(value: f64, of: &Desc) -> Result<([u8; 8], usize)> {
    let (bits, size) = (pad::element(value, of)?, dtype::size(of.dtype)?);
    let mut bytes = bits.to_ne_bytes();
    if cfg!(target_endian = "big") {
        bytes.rotate_left(8 - size);
    }
    Ok((bytes, size))
}

impl BuiltinOperation for Builtin<Pad> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (input, output) = (context.input(0), outputs.only());
        let total = output.desc().bytes()?;
        if total == 0 {
            return Ok(());
        }
        let plan = PadPlan::new(self, input.desc(), output.desc());
        let value = match self.mode {
            PadMode::WEIR_PAD_CONSTANT => element_of(self.value, input.desc())?,
            _ => ([0; 8], 1),
        };
        let (from, value) = (input.read_bytes(), &value.0[..value.1]);
        let row_places = plan.dims[plan.rank - 1].output;
        let row_bytes = plan.dims[plan.rank - 1].input * plan.unit;
        let span = bytes_span(total / plan.unit, plan.unit);
        context.parallel_into(&span, output.byte_shards(plan.unit), |mut out, claim| {
            let (mut row, mut at) = (claim.begin() / row_places, claim.begin() % row_places);
            while !out.is_empty() {
                let (part, rest) = out.split_at_mut(((row_places - at) * plan.unit).min(out.len()));
                let source = plan.row(row, &self.mode).map(|begin| &from[begin..][..row_bytes]);
                plan.fill(source, at, part, &self.mode, value);
                (out, row, at) = (rest, row + 1, 0);
            }
            Ok(())
        })
    }
}
