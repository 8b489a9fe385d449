//! Rectifier.
#![forbid(unsafe_code)]

use super::{BuiltinOperation, GRAIN, LEAST_NS, NS_PER_FLOAT, elements, input, traffic_ns};
use crate::base::{Desc, Result};
use crate::kernel::vector::{elementwise, isa::Isa};
use crate::kernel::{KernelContext, Outputs, signature};
use crate::threadpool::Span;

/// max(x, 0); a NaN stays a NaN.
#[derive(Clone, Copy, Debug)]
pub struct Relu;

impl BuiltinOperation for Relu {
    fn name(&self) -> &str {
        "relu"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_f32(inputs)?;
        Ok(inputs[0])
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        traffic_ns(2 * elements(&inputs[0])).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (isa, x) = (Isa::best(), input(context, 0));
        let span = Span { items: x.len(), cost_ns: 2.0 * NS_PER_FLOAT, grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, outputs.only().shards(1), |y, claim| {
            elementwise::relu(isa, &x[claim.begin()..claim.end()], y);
            Ok(())
        })
    }
}
