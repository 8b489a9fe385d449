//! Reductions over any axes.
#![forbid(unsafe_code)]

use super::chain::End;
use super::{Builtin, BuiltinOperation, LEAST_NS};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::convert::{Numbers, Stored, Whole};
use crate::kernel::vector::isa::SimdLevel;
use crate::kernel::vector::reduce::*;
use crate::kernel::{EpilogueStep, Kernel, KernelContext, Outputs};
use crate::memory::{Bf16, Bool, Element, F16};
use crate::ops::{Reduce, weir_reduce_op_value as Op};
use std::sync::Arc;

impl Builtin<Reduce> {
    fn plan(&self, input: &Desc) -> Result<ReductionPlan> {
        let reduced = self.reduced(input)?;
        Ok(ReductionPlan::new(input.shape().iter().zip(reduced).map(|(&size, reduced)| (size as usize, reduced))))
    }

    /// Time per element.
    fn number_ns(&self) -> f32 {
        let vectors = if self.isa.level > SimdLevel::Portable { 1.0 } else { 2.0 };
        vectors * if self.gives_places() { 0.2 } else { 0.08 }
    }

    /// `end` is applied to the results.
    fn floats<T: Stored>(
        &self,
        plan: &ReductionPlan,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        end: Option<&End<'_, T>>,
    ) -> Result<()> {
        let x = Numbers::floats::<T>(context.input(0));
        if self.gives_places() {
            let best = match self.op {
                Op::WEIR_REDUCE_ARGMIN => extreme_index::<true>(),
                _ => extreme_index::<false>(),
            };
            return self.places(plan, &best, context, outputs, &x, |best| best.place);
        }
        let reduction = match self.op {
            Op::WEIR_REDUCE_SUM | Op::WEIR_REDUCE_MEAN => fold::<Sum>(),
            Op::WEIR_REDUCE_MIN => fold::<Least>(),
            Op::WEIR_REDUCE_MAX => fold::<Greatest>(),
            Op::WEIR_REDUCE_MUL => fold::<Product>(),
            _ if self.squares => fold::<Squares>(),
            _ => fold::<Sizes>(),
        };
        let (count, eps) = (plan.reduced() as f64, f64::from(self.eps));
        let of_total = |total: f64| match self.op {
            Op::WEIR_REDUCE_MEAN => total / count,
            Op::WEIR_REDUCE_NORM_MAX => self.root(larger(total, eps)),
            Op::WEIR_REDUCE_NORM_SUM => self.root(total + eps),
            Op::WEIR_REDUCE_NORM_POWER_MAX => larger(total, eps),
            Op::WEIR_REDUCE_NORM_POWER_SUM => total + eps,
            _ => total,
        };
        let results = Finished::new(outputs.only(), |begin, totals: &[f64], out: &mut [T]| {
            out.iter_mut().zip(totals).for_each(|(out, &total)| *out = T::narrowed(of_total(total) as f32));
            end.inspect(|end| end(begin, out));
        });
        plan.compute(self.isa, &reduction, self.number_ns(), context, &x, &results)
    }

    /// Elements of type T, which are reduced as those of type N.
    fn integers<T: Whole, N: Whole + Default>(
        &self,
        plan: &ReductionPlan,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let x = Numbers::<N>::integers::<T>(context.input(0));
        if self.gives_places() {
            let best = match self.op {
                Op::WEIR_REDUCE_ARGMIN => whole_index::<N, true>(),
                _ => whole_index::<N, false>(),
            };
            return self.places(plan, &best, context, outputs, &x, |best| best.place);
        }
        let reduction = match self.op {
            Op::WEIR_REDUCE_SUM | Op::WEIR_REDUCE_MEAN => fold_whole::<SumOfWhole, N>(),
            Op::WEIR_REDUCE_MUL => fold_whole::<ProductOfWhole, N>(),
            Op::WEIR_REDUCE_MIN => fold_whole::<LeastWhole, N>(),
            Op::WEIR_REDUCE_MAX => fold_whole::<GreatestWhole, N>(),
            _ => return Err(Error::internal(format!("{:?} of integers", self.op))),
        };
        let count = plan.reduced() as i64;
        let of_total = |total: i64| match self.op {
            Op::WEIR_REDUCE_MEAN => T::wrapped(total.checked_div(count).unwrap_or(0)),
            // For no elements an extreme is that of the type.
            Op::WEIR_REDUCE_MIN | Op::WEIR_REDUCE_MAX if T::DTYPE == dtype::BOOL => T::wrapped(i64::from(total > 0)),
            Op::WEIR_REDUCE_MIN | Op::WEIR_REDUCE_MAX => T::saturated(total),
            _ => T::wrapped(total),
        };
        let results = Finished::new(outputs.only(), |_, totals: &[i64], out: &mut [T]| {
            out.iter_mut().zip(totals).for_each(|(out, &total)| *out = of_total(total));
        });
        plan.compute(self.isa, &reduction, self.number_ns(), context, &x, &results)
    }

    /// `place` is that of a partial result.
    fn places<N: Element + Default, P: Copy + Send + Sync>(
        &self,
        plan: &ReductionPlan,
        best: &Reduction<N, P>,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        x: &Numbers<'_, N>,
        place: fn(&P) -> u32,
    ) -> Result<()> {
        let output = outputs.only();
        if self.long_indices {
            let results = Finished::new(output, |_, best: &[P], out: &mut [i64]| {
                out.iter_mut().zip(best).for_each(|(out, best)| *out = place(best).into());
            });
            return plan.compute(self.isa, best, self.number_ns(), context, x, &results);
        }
        let results = Finished::new(output, |_, best: &[P], out: &mut [i32]| {
            out.iter_mut().zip(best).for_each(|(out, best)| *out = place(best) as i32);
        });
        plan.compute(self.isa, best, self.number_ns(), context, x, &results)
    }

    /// Whether integers are reduced, whose best ones take more room.
    fn is_whole(input: &Desc) -> bool {
        ![dtype::F32, dtype::F16, dtype::BF16].contains(&input.dtype)
    }

    fn root(&self, power: f64) -> f64 {
        if self.squares { power.sqrt() } else { power }
    }
}

/// The larger one; NaN propagates.
fn larger(total: f64, eps: f64) -> f64 {
    if total < eps { eps } else { total }
}

impl BuiltinOperation for Builtin<Reduce> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        // `output` has refused invalid axes.
        let Ok(plan) = self.plan(&inputs[0]) else { return 0 };
        match (self.gives_places(), Self::is_whole(&inputs[0])) {
            (true, true) => plan.scratch_bytes::<BestWhole>(),
            (true, false) => plan.scratch_bytes::<Best>(),
            (false, true) => plan.scratch_bytes::<i64>(),
            (false, false) => plan.scratch_bytes::<f64>(),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.plan(&inputs[0]).map_or(0, |plan| plan.cost_ns(self.number_ns())).max(LEAST_NS)
    }

    fn with_epilogue(&self, step: EpilogueStep, _: &[Desc]) -> Option<Arc<dyn Kernel>> {
        self.ending_with(step)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let input = context.inputs()[0].desc();
        let plan = self.plan(input)?;
        match input.dtype {
            dtype::F32 => match self.end() {
                Some(end) => {
                    let end = |begin: usize, out: &mut [f32]| end.apply(context, begin, out);
                    self.floats::<f32>(&plan, context, outputs, Some(&end))
                }
                None => self.floats::<f32>(&plan, context, outputs, None),
            },
            dtype::F16 => self.floats::<F16>(&plan, context, outputs, None),
            dtype::BF16 => self.floats::<Bf16>(&plan, context, outputs, None),
            dtype::S64 => self.integers::<i64, i64>(&plan, context, outputs),
            dtype::S32 => self.integers::<i32, i32>(&plan, context, outputs),
            dtype::S8 => self.integers::<i8, i32>(&plan, context, outputs),
            dtype::U8 => self.integers::<u8, i32>(&plan, context, outputs),
            _ => self.integers::<Bool, i32>(&plan, context, outputs),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
