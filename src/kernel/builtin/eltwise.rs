//! Unary elementwise functions.
#![forbid(unsafe_code)]

use super::chain::Chain;
use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::Pairs;
use crate::kernel::vector::eltwise;
use crate::kernel::vector::isa::Isa;
use crate::kernel::{EpilogueStep, Kernel, KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::Eltwise;
use crate::threadpool::Span;
use std::sync::Arc;

fn run<T: Stored>(of: &Eltwise, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
    let (isa, items) = (Isa::best(), elements(outputs.desc(0)));
    let pairs = Pairs::<T, T>::of(context, outputs)?;
    let span = Span { items, cost_ns: eltwise::element_ns(of, isa), grain: GRAIN, ..Span::default() };
    context.parallel_into(&span, pairs, |pair, _| {
        eltwise::apply(isa, of, pair);
        Ok(())
    })
}

impl BuiltinOperation for Builtin<Eltwise> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * eltwise::element_ns(self, Isa::best())) as u64).max(LEAST_NS)
    }

    fn in_place_of(&self, _: usize) -> bool {
        true
    }

    fn as_epilogue(&self, inputs: &[Desc], _: usize) -> Option<EpilogueStep> {
        EpilogueStep::unary(**self, inputs)
    }

    fn with_epilogue(&self, step: EpilogueStep, inputs: &[Desc]) -> Option<Arc<dyn Kernel>> {
        Chain::of(self.isa, EpilogueStep::unary(**self, inputs)?, step, inputs)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match context.inputs()[0].desc().dtype {
            dtype::BF16 => run::<Bf16>(self, context, outputs),
            dtype::F16 => run::<F16>(self, context, outputs),
            _ => run::<f32>(self, context, outputs),
        }
    }
}
