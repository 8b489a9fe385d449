//! Normalisation by the elements' own statistics or by given ones, with scale and shift on request, for f32, f16 and
//! bf16.
#![forbid(unsafe_code)]

use super::chain::{BLOCK, End};
use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, axis, elements, input};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::Pairs;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::norm::{Affine, Channels, RowNorm, RowStatistic, element_ns};
use crate::kernel::{EpilogueStep, Kernel, KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::{Norm, weir_norm_op_value as Op};
use crate::threadpool::Span;
use std::sync::Arc;

/// The grouping of the elements.
#[derive(Clone, Copy, Debug)]
struct Grouping {
    /// Number of elements with common statistics.
    len: usize,
    /// Number of consecutive elements with one scale.
    inner: usize,
    /// Number of rows of `len` until the scales repeat.
    cycle: usize,
}

impl Builtin<Norm> {
    fn cut(&self, x: &Desc) -> Result<Grouping> {
        let columns = axis::split(self.axis, x)?;
        Ok(match self.op {
            Op::WEIR_NORM_GROUP => {
                Grouping { len: columns.len / self.groups * columns.inner, inner: columns.inner, cycle: self.groups }
            }
            _ => Grouping { len: columns.len * columns.inner, inner: 1, cycle: 1 },
        })
    }

    /// Mean and variance are inputs 1 and 2; scale and shift come after them, or after x.
    fn affine<'a, P: Stored>(&self, context: &'a KernelContext<'_>) -> Affine<'a, P> {
        let first = self.first_affine();
        let read = |index: usize| context.input(index).read::<P>();
        let scale = self.scale.then(|| read(first));
        let shift = self.shift.then(|| read(first + usize::from(self.scale)));
        Affine { scale, shift }
    }

    /// `end` is applied to what is written, whose first element has this number.
    fn rows<T: Stored, P: Stored>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        end: Option<&End<'_, T>>,
    ) -> Result<()> {
        let x = context.inputs()[0].desc();
        let (Grouping { len, inner, cycle }, count) = (self.cut(x)?, elements(x));
        if count == 0 {
            return Ok(());
        }
        let affine = self.affine::<P>(context);
        let by = if self.op == Op::WEIR_NORM_RMS { RowStatistic::Squares } else { RowStatistic::Variance };
        let span = Span { items: count / len, cost_ns: row_ns(len, self.isa), ..Span::default() };
        context.parallel_into(&span, Pairs::<T, T>::of_rows(context, outputs, len)?, |mut rows, claim| {
            // Small blocks, so that an end finds them in a near cache.
            let block = if end.is_some() { len * (BLOCK / len).max(1) } else { rows.num_elements() };
            rows.for_chunks(block, |at, mut pair| {
                let begin = claim.begin() * len + at;
                let (first, all) = (begin / len, 0..pair.num_elements());
                let pair_of = pair.part(all);
                let norm = RowNorm { by, epsilon: self.epsilon, pair: pair_of, len, inner, first, cycle, affine };
                norm.normalise(self.isa);
                end.inspect(|end| end(begin, pair.y()));
            });
            Ok(())
        })
    }

    fn channels<T: Stored, P: Stored>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        end: Option<&End<'_, T>>,
    ) -> Result<()> {
        let (x, mean, variance) = (context.inputs()[0].desc(), input(context, 1), input(context, 2));
        let inner = axis::split(self.axis, x)?.inner;
        let affine = self.affine::<P>(context);
        let span = Span { items: elements(x), cost_ns: element_ns(self.isa), grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, Pairs::<T, T>::of(context, outputs)?, |mut some, claim| {
            let block = if end.is_some() { BLOCK } else { some.num_elements() };
            some.for_chunks(block, |at, mut pair| {
                let (first, all) = (claim.begin() + at, 0..pair.num_elements());
                let pair_of = pair.part(all);
                Channels { mean, variance, epsilon: self.epsilon, affine, inner, pair: pair_of, first }
                    .normalise(self.isa);
                end.inspect(|end| end(first, pair.y()));
            });
            Ok(())
        })
    }

    fn go<T: Stored, P: Stored>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        end: Option<&End<'_, T>>,
    ) -> Result<()> {
        if self.is_batch() {
            self.channels::<T, P>(context, outputs, end)
        } else {
            self.rows::<T, P>(context, outputs, end)
        }
    }
}

fn row_ns(len: usize, isa: Isa) -> f32 {
    20.0 + len as f32 * element_ns(isa)
}

impl BuiltinOperation for Builtin<Norm> {
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

    fn in_place_of(&self, input: usize) -> bool {
        input == 0
    }

    fn with_epilogue(&self, step: EpilogueStep, _: &[Desc]) -> Option<Arc<dyn Kernel>> {
        self.ending_with(step)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if context.inputs().len() != Kernel::num_inputs(self) {
            return Err(Error::internal(format!("{} inputs of a {}", context.inputs().len(), Kernel::name(self))));
        }
        let (x, affine) = (context.inputs()[0].desc().dtype, context.inputs().get(self.first_affine()));
        match (x, affine.is_some_and(|affine| affine.desc().dtype != dtype::F32)) {
            (dtype::F32, _) => match self.end() {
                Some(end) => {
                    let end = |begin: usize, out: &mut [f32]| end.apply(context, begin, out);
                    self.go::<f32, f32>(context, outputs, Some(&end))
                }
                None => self.go::<f32, f32>(context, outputs, None),
            },
            (dtype::F16, false) => self.go::<F16, f32>(context, outputs, None),
            (dtype::F16, true) => self.go::<F16, F16>(context, outputs, None),
            (dtype::BF16, false) => self.go::<Bf16, f32>(context, outputs, None),
            (dtype::BF16, true) => self.go::<Bf16, Bf16>(context, outputs, None),
            _ => Err(Error::internal(format!("a {} of {}", Kernel::name(self), context.inputs()[0].desc().text()))),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod halves_tests;
#[cfg(all(test, not(loom)))]
mod tests;
