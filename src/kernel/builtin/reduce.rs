//! Reductions over any axes.
#![forbid(unsafe_code)]

use super::LEAST_NS;
use crate::abi::weir_reduce_op_value as Op;
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::reduce::{
    Best, ExtremeIndex, Fold, Greatest, Least, Product, ReductionInput, ReductionPlan, Sizes, Squares, Sum,
};
use crate::kernel::{Kernel, KernelContext, Outputs, signature};
use crate::memory::{Bf16, F16};

/// A reduction over some axes, which count from the end if negative; without any, over all.
#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    pub op: Op,
    pub axes: [i32; MAX_RANK],
    pub num_axes: usize,
    pub keep_dims: bool,
    /// For norms: the power is 2 instead of 1.
    pub squares: bool,
    pub eps: f32,
    pub isa: Isa,
}

impl Reduce {
    /// The reduced axes.
    fn reduced(&self, input: &Desc) -> Result<[bool; MAX_RANK]> {
        let mut reduced = [self.num_axes == 0; MAX_RANK];
        for &axis in &self.axes[..self.num_axes] {
            let index = signature::axis(axis, input)?;
            if std::mem::replace(&mut reduced[index], true) {
                let expected =
                    format!("a shape in which the axes are different, where axis {axis} is one that was named");
                return Err(signature::mismatch("input", 0, &expected, input));
            }
        }
        Ok(reduced)
    }

    fn plan(&self, input: &Desc) -> Result<ReductionPlan> {
        let reduced = self.reduced(input)?;
        Ok(ReductionPlan::new(input.shape().iter().zip(reduced).map(|(&size, reduced)| (size as usize, reduced))))
    }

    fn gives_places(&self) -> bool {
        matches!(self.op, Op::WEIR_REDUCE_ARGMAX | Op::WEIR_REDUCE_ARGMIN)
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

impl Kernel for Reduce {
    fn name(&self) -> &str {
        match self.op {
            Op::WEIR_REDUCE_SUM => "reduce_sum",
            Op::WEIR_REDUCE_MEAN => "reduce_mean",
            Op::WEIR_REDUCE_MIN => "reduce_min",
            Op::WEIR_REDUCE_MAX => "reduce_max",
            Op::WEIR_REDUCE_MUL => "reduce_mul",
            Op::WEIR_REDUCE_ARGMAX => "reduce_argmax",
            Op::WEIR_REDUCE_ARGMIN => "reduce_argmin",
            _ => "reduce_norm",
        }
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let input = &inputs[0];
        signature::check_floats(inputs)?;
        let reduced = self.reduced(input)?;
        let mut output = Desc::new(if self.gives_places() { dtype::S32 } else { input.dtype }, &[]);
        let mut count = 1u64;
        for (&size, reduced) in input.shape().iter().zip(reduced) {
            count = if reduced { count.saturating_mul(size as u64) } else { count };
            if !reduced || self.keep_dims {
                output.dims[output.rank as usize] = if reduced { 1 } else { size };
                output.rank += 1;
            }
        }
        if self.gives_places() && !(1..=i32::MAX as u64).contains(&count) {
            let expected = format!("1 to {} elements along the axes together", i32::MAX);
            return Err(signature::mismatch("input", 0, &expected, input));
        }
        Ok(vec![output.check()?])
    }

    fn scratch_bytes(&self, inputs: &[Desc], _outputs: &[Desc]) -> usize {
        let bytes = |plan: ReductionPlan| {
            if self.gives_places() {
                plan.scratch_bytes::<ExtremeIndex<true>>()
            } else {
                plan.scratch_bytes::<Fold<Sum>>()
            }
        };
        // `infer` has refused invalid axes.
        self.plan(&inputs[0]).map_or(0, bytes)
    }

    fn cost_ns(&self, inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.plan(&inputs[0]).map_or(0, |plan| plan.cost_ns(self.number_ns())).max(LEAST_NS)
    }

    fn is_pure(&self) -> bool {
        true
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
