//! Padding: a tensor with a margin.
#![forbid(unsafe_code)]

use super::{bytes_span, check_rank, element, traffic_ns};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::{Kernel, KernelContext, Outputs, signature};

/// The contents of a margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// One value.
    Constant(f64),
    /// The tensor mirrored at its first and last element, which are not repeated.
    Reflect,
    /// The nearest element of the tensor.
    Edge,
}

/// `before` elements in front and `after` behind in each dimension.
#[derive(Clone, Copy, Debug)]
pub struct Pad {
    pub rank: usize,
    pub before: [i64; MAX_RANK],
    pub after: [i64; MAX_RANK],
    pub mode: PadMode,
}

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
            PadMode::Constant(_) => None,
            PadMode::Edge => Some(if below { 0 } else { self.input - 1 }),
            // As far inside as the position is outside.
            PadMode::Reflect if below => Some(self.before - at),
            PadMode::Reflect => Some(2 * (self.input - 1) - (at - self.before)),
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
                PadMode::Constant(_) => repeat(value, margin),
                PadMode::Edge => {
                    let nearest = dim.source(first, mode).unwrap_or(0);
                    repeat(&row[nearest * unit..][..unit], margin);
                }
                PadMode::Reflect => {
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

/// Fills with copies of a pattern.
fn repeat(pattern: &[u8], out: &mut [u8]) {
    match pattern {
        [byte] => out.fill(*byte),
        &[a, b] => out.as_chunks_mut::<2>().0.fill([a, b]),
        &[a, b, c, d] => out.as_chunks_mut::<4>().0.fill([a, b, c, d]),
        _ => out.chunks_exact_mut(pattern.len()).for_each(|out| out.copy_from_slice(pattern)),
    }
}

/// A value as an element of a type: floats are rounded to the nearest, an integer type must be able to hold it.
fn element_of(value: f64, of: &Desc) -> Result<([u8; 4], usize)> {
    use crate::abi::weir_dtype_value as D;
    let whole = |low: f64, high: f64| {
        if (low..=high).contains(&value) && value.fract() == 0.0 {
            return Ok(value as i64);
        }
        let expected = format!("elements that can be {value}, the value of the margin");
        Err(signature::mismatch("input", 0, &expected, of))
    };
    let bytes = |integer: i64| (integer as i32).to_le_bytes();
    let size = dtype::size(of.dtype)?;
    let element = match of.dtype {
        t if t == D::WEIR_F32 as u32 => (value as f32).to_le_bytes(),
        t if t == D::WEIR_S32 as u32 => bytes(whole(f64::from(i32::MIN), f64::from(i32::MAX))?),
        t if t == D::WEIR_U8 as u32 => bytes(whole(0.0, 255.0)?),
        t if t == D::WEIR_S8 as u32 => bytes(whole(-128.0, 127.0)?),
        t if t == D::WEIR_BOOL as u32 => bytes(whole(0.0, 1.0)?),
        t if t == D::WEIR_F16 as u32 => bytes(i64::from(narrow(value, 5, 10))),
        t if t == D::WEIR_BF16 as u32 => bytes(i64::from(narrow(value, 8, 7))),
        _ => return Err(signature::mismatch("input", 0, "a type that has a margin's value", of)),
    };
    let mut native = element;
    if cfg!(target_endian = "big") {
        native[..size].reverse();
    }
    Ok((native, size))
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

impl Kernel for Pad {
    fn name(&self) -> &str {
        "pad"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let input = &inputs[0];
        check_rank(self.rank, input)?;
        let mut output = *input;
        for axis in 0..self.rank {
            let (size, before, after) = (input.dims[axis], self.before[axis], self.after[axis]);
            let (least, why) = match self.mode {
                PadMode::Constant(_) => (0, "for a margin"),
                PadMode::Edge => (i64::from(before > 0 || after > 0), "for a margin of its edge"),
                PadMode::Reflect if before > 0 || after > 0 => {
                    (before.max(after).saturating_add(1), "for a margin that mirrors them")
                }
                PadMode::Reflect => (0, ""),
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
        if let PadMode::Constant(value) = self.mode {
            element_of(value, input)?;
        }
        Ok(vec![output.check()?])
    }

    fn cost_ns(&self, _inputs: &[Desc], outputs: &[Desc]) -> u64 {
        traffic_ns(&outputs[0])
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (input, output) = (context.input(0), outputs.only());
        let total = output.desc().bytes()?;
        if total == 0 {
            return Ok(());
        }
        let plan = PadPlan::new(self, input.desc(), output.desc());
        let value = match self.mode {
            PadMode::Constant(value) => element_of(value, input.desc())?,
            _ => ([0; 4], 1),
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
