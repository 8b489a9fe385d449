//! Reductions over any axes.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::convert::Whole;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::reduce::*;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, Bool, F16};
use crate::ops::{Reduce, weir_reduce_op_value as Op};
use std::marker::PhantomData;

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

    fn numbers<T: ReductionInput<Number = f32>>(
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

    fn places<R, T: ReductionInput<Number = R::Number>>(
        &self,
        plan: &ReductionPlan,
        reduction: R,
        (context, outputs): (&KernelContext<'_>, Outputs<'_>),
        place: impl Fn(&R::Partial) -> u32 + Sync,
    ) -> Result<()>
    where
        R: Reduction,
    {
        let (ns, call) = (self.number_ns(), (context, outputs.only()));
        if self.long_indices {
            let finish = |best: &[R::Partial], out: &mut [i64]| {
                out.iter_mut().zip(best).for_each(|(out, best)| *out = place(best).into());
            };
            return plan.compute::<R, T, i64>(self.isa, reduction, ns, call, &finish);
        }
        let finish = |best: &[R::Partial], out: &mut [i32]| {
            out.iter_mut().zip(best).for_each(|(out, best)| *out = place(best) as i32);
        };
        plan.compute::<R, T, i32>(self.isa, reduction, ns, call, &finish)
    }

    fn floats<T: ReductionInput<Number = f32>>(
        &self,
        plan: &ReductionPlan,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let (place, call) = (|best: &Best| best.place, (context, outputs));
        match self.op {
            Op::WEIR_REDUCE_ARGMIN => self.places::<_, T>(plan, ExtremeIndex::<true>, call, place),
            Op::WEIR_REDUCE_ARGMAX => self.places::<_, T>(plan, ExtremeIndex::<false>, call, place),
            _ => self.numbers::<T>(plan, call.0, call.1),
        }
    }

    fn integers<T: ReductionInput<Number = T> + Whole>(
        &self,
        plan: &ReductionPlan,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let place = |best: &BestWhole| best.place;
        match self.op {
            Op::WEIR_REDUCE_ARGMIN => {
                return self.places::<_, T>(plan, WholeIndex::<T, true>(PhantomData), (context, outputs), place);
            }
            Op::WEIR_REDUCE_ARGMAX => {
                return self.places::<_, T>(plan, WholeIndex::<T, false>(PhantomData), (context, outputs), place);
            }
            _ => {}
        }
        let (ns, call, count) = (self.number_ns(), (context, outputs.only()), plan.reduced() as i64);
        let each = |totals: &[i64], out: &mut [T], f: fn(i64) -> T| {
            out.iter_mut().zip(totals).for_each(|(out, &total)| *out = f(total));
        };
        let wrapped = |totals: &[i64], out: &mut [T]| each(totals, out, T::wrapped);
        // For no elements an extreme is that of the type.
        let nearest = |total: i64| match T::DTYPE {
            dtype::BOOL => T::wrapped(i64::from(total > 0)),
            _ => T::saturated(total),
        };
        let saturated = |totals: &[i64], out: &mut [T]| each(totals, out, nearest);
        let averages = |totals: &[i64], out: &mut [T]| {
            let mean = |total: i64| T::wrapped(total.checked_div(count).unwrap_or(0));
            out.iter_mut().zip(totals).for_each(|(out, &total)| *out = mean(total));
        };
        match self.op {
            Op::WEIR_REDUCE_SUM => {
                plan.compute::<_, T, T>(self.isa, WholeFold(SumOfWhole, PhantomData), ns, call, &wrapped)
            }
            Op::WEIR_REDUCE_MEAN => {
                plan.compute::<_, T, T>(self.isa, WholeFold(SumOfWhole, PhantomData), ns, call, &averages)
            }
            Op::WEIR_REDUCE_MUL => {
                plan.compute::<_, T, T>(self.isa, WholeFold(ProductOfWhole, PhantomData), ns, call, &wrapped)
            }
            Op::WEIR_REDUCE_MIN => {
                plan.compute::<_, T, T>(self.isa, WholeFold(LeastWhole, PhantomData), ns, call, &saturated)
            }
            Op::WEIR_REDUCE_MAX => {
                plan.compute::<_, T, T>(self.isa, WholeFold(GreatestWhole, PhantomData), ns, call, &saturated)
            }
            _ => Err(Error::internal(format!("{:?} of integers", self.op))),
        }
    }

    /// Whether integers are reduced, whose best ones take more room.
    fn is_whole(input: &Desc) -> bool {
        ![dtype::F32, dtype::F16, dtype::BF16].contains(&input.dtype)
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
        let Ok(plan) = self.plan(&inputs[0]) else { return 0 };
        match (self.gives_places(), Self::is_whole(&inputs[0])) {
            (true, true) => plan.scratch_bytes::<WholeIndex<i64, true>>(),
            (true, false) => plan.scratch_bytes::<ExtremeIndex<true>>(),
            (false, true) => plan.scratch_bytes::<WholeFold<SumOfWhole, i64>>(),
            (false, false) => plan.scratch_bytes::<Fold<Sum>>(),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.plan(&inputs[0]).map_or(0, |plan| plan.cost_ns(self.number_ns())).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let input = context.inputs()[0].desc();
        let plan = self.plan(input)?;
        match input.dtype {
            dtype::F32 => self.floats::<f32>(&plan, context, outputs),
            dtype::F16 => self.floats::<F16>(&plan, context, outputs),
            dtype::BF16 => self.floats::<Bf16>(&plan, context, outputs),
            dtype::S64 => self.integers::<i64>(&plan, context, outputs),
            dtype::S32 => self.integers::<i32>(&plan, context, outputs),
            dtype::S8 => self.integers::<i8>(&plan, context, outputs),
            dtype::U8 => self.integers::<u8>(&plan, context, outputs),
            _ => self.integers::<Bool>(&plan, context, outputs),
        }
    }
}

#[cfg(test)]
mod tests;
