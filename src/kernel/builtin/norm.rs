//! Normalisation by the elements' own statistics or by given ones, with scale and shift on request.
#![forbid(unsafe_code)]

use super::{GRAIN, LEAST_NS, Operation, axis, elements, input};
use crate::abi::weir_norm_op_value as Op;
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::norm::{Affine, By, Channels, Rows, element_ns};
use crate::kernel::{KernelContext, signature};
use crate::threadpool::Span;

/// A normalisation; `weir_norm_op_value` says of what.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    pub op: Op,
    /// The first axis that is normalised, or that of the channels; counts from the end if negative.
    pub axis: i32,
    pub groups: usize,
    pub epsilon: f32,
    pub scale: bool,
    pub shift: bool,
    pub isa: Isa,
}

/// How the elements are grouped.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Elements with one mean.
    len: usize,
    /// Elements in a row with one scale.
    inner: usize,
    /// Rows of `len` until the scales begin again.
    cycle: usize,
}

impl Norm {
    fn is_batch(&self) -> bool {
        self.op == Op::WEIR_NORM_BATCH
    }

    /// Inputs of statistics behind x.
    fn statistics(&self) -> usize {
        if self.is_batch() { 2 } else { 0 }
    }

    fn cut(&self, x: &Desc) -> Result<Cut> {
        let columns = axis::split(self.axis, x)?;
        Ok(match self.op {
            Op::WEIR_NORM_GROUP => {
                Cut { len: columns.len / self.groups * columns.inner, inner: columns.inner, cycle: self.groups }
            }
            _ => Cut { len: columns.len * columns.inner, inner: 1, cycle: 1 },
        })
    }

    /// Mean and variance are inputs 1 and 2; what is behind them, or behind x, is scale and shift.
    fn affine<'a>(&self, context: &'a KernelContext<'_>) -> Affine<'a> {
        let first = 1 + self.statistics();
        let scale = self.scale.then(|| input(context, first));
        let shift = self.shift.then(|| input(context, first + usize::from(self.scale)));
        Affine { scale, shift }
    }

    fn rows(&self, context: &KernelContext<'_>) -> Result<()> {
        let x = input(context, 0);
        let Cut { len, inner, cycle } = self.cut(context.inputs()[0].desc())?;
        if x.is_empty() {
            return Ok(());
        }
        let (affine, output) = (self.affine(context), context.outputs()[0].shards::<f32>());
        let by = if self.op == Op::WEIR_NORM_RMS { By::Squares } else { By::Variance };
        let span = Span { items: x.len() / len, cost_ns: row_ns(len, self.isa), ..Span::default() };
        context.parallel_for(&span, &|mut claim| {
            let (first, x) = (claim.begin(), &x[claim.begin() * len..claim.end() * len]);
            let out = output.part(&mut claim, len);
            Rows { by, epsilon: self.epsilon, x, out, len, inner, first, cycle, affine }.normalise(self.isa);
            Ok(())
        })
    }

    fn channels(&self, context: &KernelContext<'_>) -> Result<()> {
        let (x, mean, variance) = (input(context, 0), input(context, 1), input(context, 2));
        let inner = axis::split(self.axis, context.inputs()[0].desc())?.inner;
        let (affine, output) = (self.affine(context), context.outputs()[0].shards::<f32>());
        let span = Span { items: x.len(), cost_ns: element_ns(self.isa), grain: GRAIN, ..Span::default() };
        context.parallel_for(&span, &|mut claim| {
            let (first, x) = (claim.begin(), &x[claim.begin()..claim.end()]);
            let out = output.part(&mut claim, 1);
            Channels { mean, variance, epsilon: self.epsilon, affine, inner, x, out, first }.normalise(self.isa);
            Ok(())
        })
    }
}

fn row_ns(len: usize, isa: Isa) -> f32 {
    20.0 + len as f32 * element_ns(isa)
}

impl Operation for Norm {
    fn name(&self) -> &str {
        match self.op {
            Op::WEIR_NORM_LAYER => "layer_norm",
            Op::WEIR_NORM_RMS => "rms_norm",
            Op::WEIR_NORM_BATCH => "batch_norm",
            Op::WEIR_NORM_GROUP => "group_norm",
        }
    }

    fn num_inputs(&self) -> usize {
        1 + self.statistics() + usize::from(self.scale) + usize::from(self.shift)
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_f32(inputs)?;
        let x = &inputs[0];
        let at = signature::axis(self.axis, x)?;
        let channels = x.shape()[at];
        let of_channels = [Op::WEIR_NORM_BATCH, Op::WEIR_NORM_GROUP].contains(&self.op);
        if self.op == Op::WEIR_NORM_GROUP && channels != ANY_DIM && !(channels as usize).is_multiple_of(self.groups) {
            let expected = format!("a multiple of {} channels along axis {}", self.groups, self.axis);
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        let want = Desc::new(dtype::F32, if of_channels { &x.shape()[at..=at] } else { &x.shape()[at..] });
        let fits = |input: &Desc| signature::check_fit("input", &[want], std::slice::from_ref(input)).is_ok();
        match inputs.iter().skip(1).position(|input| !fits(input)) {
            Some(i) => Err(signature::mismatch("input", i + 1, &want.text(), &inputs[i + 1])),
            None => Ok(*x),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        let count = elements(&inputs[0]);
        if count == 0 {
            return LEAST_NS;
        }
        let cost = match self.cut(&inputs[0]) {
            Ok(cut) if !self.is_batch() => row_ns(cut.len, self.isa) * (count / cut.len.max(1)) as f32,
            _ => count as f32 * element_ns(self.isa),
        };
        (cost as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        if context.inputs().len() != self.num_inputs() {
            return Err(Error::internal(format!("{} inputs of a {}", context.inputs().len(), self.name())));
        }
        if self.is_batch() { self.channels(context) } else { self.rows(context) }
    }
}

#[cfg(test)]
mod tests;
