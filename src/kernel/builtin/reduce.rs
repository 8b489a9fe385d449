//! Reductions over any axes.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::reduce::{
    Best, ExtremeIndex, Fold, Greatest, Least, Product, ReductionInput, ReductionPlan, Sizes, Squares, Sum,
};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::{Reduce, weir_reduce_op_value as Op};

impl Builtin<Reduce> {
    fn plan(&self, input: &Desc) -> Result<ReductionPlan> {
        let reduced = self.reduced(input)?;
        Ok(ReductionPlan::new(input.shape().iter().zip(reduced).map(|(&size, reduced)| (size as usize, reduced))))
    }

    /// Time per element.
    fn number_ns(&self) -> f32 {
        let vectors = if self.isa > Isa::Portable { 1.0 } else { 2.0 };
        vectors * if self.gives_places() { 0.2 } else { 0.08 }
    }

    fn numbers<T: ReductionInput>(
        &self,
        plan: &ReductionPlan,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let (count, eps) = (plan.reduced() as f64, f64::from(self.eps));
        // The operation is dispatched once for many results.
        let finish = |totals: &[f64], out: &mut [T]| match self.op {
            Op::WEIR_REDUCE_MEAN => each(totals, out, |total| total / count),
            Op::WEIR_REDUCE_NORM_MAX => each(totals, out, |total| self.root(larger(total, eps))),
            Op::WEIR_REDUCE_NORM_SUM => each(totals, out, |total| self.root(total + eps)),
            Op::WEIR_REDUCE_NORM_POWER_MAX => each(totals, out, |total| larger(total, eps)),
            Op::WEIR_REDUCE_NORM_POWER_SUM => each(totals, out, |total| total + eps),
            _ => each(totals, out, |total| total),
        };
        let (ns, call) = (self.number_ns(), (context, outputs.only()));
        match self.op {
            Op::WEIR_REDUCE_SUM | Op::WEIR_REDUCE_MEAN => {
                plan.compute::<_, T, T>(self.isa, Fold(Sum), ns, call, &finish)
            }
            Op::WEIR_REDUCE_MIN => plan.compute::<_, T, T>(self.isa, Fold(Least), ns, call, &finish),
            Op::WEIR_REDUCE_MAX => plan.compute::<_, T, T>(self.isa, Fold(Greatest), ns, call, &finish),
            Op::WEIR_REDUCE_MUL => plan.compute::<_, T, T>(self.isa, Fold(Product), ns, call, &finish),
            _ if self.squares => plan.compute::<_, T, T>(self.isa, Fold(Squares), ns, call, &finish),
            _ => plan.compute::<_, T, T>(self.isa, Fold(Sizes), ns, call, &finish),
        }
    }

    fn places<T: ReductionInput>(
        &self,
        plan: &ReductionPlan,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let finish = |best: &[Best], out: &mut [i32]| {
            out.iter_mut().zip(best).for_each(|(out, best)| *out = best.place as i32);
        };
        let (ns, call) = (self.number_ns(), (context, outputs.only()));
        match self.op {
            Op::WEIR_REDUCE_ARGMIN => plan.compute::<_, T, i32>(self.isa, ExtremeIndex::<true>, ns, call, &finish),
            _ => plan.compute::<_, T, i32>(self.isa, ExtremeIndex::<false>, ns, call, &finish),
        }
    }

    fn go<T: ReductionInput>(
        &self,
        plan: &ReductionPlan,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        if self.gives_places() {
            self.places::<T>(plan, context, outputs)
        } else {
            self.numbers::<T>(plan, context, outputs)
        }
    }

    fn root(&self, power: f64) -> f64 {
        if self.squares { power.sqrt() } else { power }
    }
}

/// Narrows `f` of the totals.
#[inline(always)]
fn each<T: ReductionInput>(totals: &[f64], out: &mut [T], f: impl Fn(f64) -> f64) {
    out.iter_mut().zip(totals).for_each(|(out, &total)| *out = T::narrowed(f(total) as f32));
}

/// The larger one; NaN propagates.
fn larger(total: f64, eps: f64) -> f64 {
    if total < eps { eps } else { total }
}

impl BuiltinOperation for Builtin<Reduce> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        // `output` has refused invalid axes.
        let plan = inputs[0].is_concrete().then(|| self.plan(&inputs[0]).ok());
        match (plan, self.gives_places()) {
            (Some(plan), true) => plan.map_or(0, |plan| plan.scratch_bytes::<ExtremeIndex<true>>()),
            (Some(plan), false) => plan.map_or(0, |plan| plan.scratch_bytes::<Fold<Sum>>()),
            (None, true) => ReductionPlan::most_scratch_bytes::<ExtremeIndex<true>>(),
            (None, false) => ReductionPlan::most_scratch_bytes::<Fold<Sum>>(),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.plan(&inputs[0]).map_or(0, |plan| plan.cost_ns(self.number_ns())).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let input = context.inputs()[0].desc();
        let plan = self.plan(input)?;
        match input.dtype {
            dtype::F32 => self.go::<f32>(&plan, context, outputs),
            dtype::F16 => self.go::<F16>(&plan, context, outputs),
            dtype::BF16 => self.go::<Bf16>(&plan, context, outputs),
            _ => Err(Error::internal(format!("a reduction of {}", input.text()))),
        }
    }
}

#[cfg(test)]
mod tests;
