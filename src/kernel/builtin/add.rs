//! Sum of two tensors of floats: what `Binary` does, in memory of its own.
#![forbid(unsafe_code)]

use super::Binary;
use crate::base::{Desc, Result};
use crate::kernel::vector::binary::Op;
use crate::kernel::{Kernel, KernelContext, signature};

/// a + b. Shapes are aligned at the last dimension, and a dimension of 1 stretches.
#[derive(Clone, Copy, Debug)]
pub struct Add;

const SUM: Binary = Binary { op: Op::Add };

impl Kernel for Add {
    fn name(&self) -> &str {
        SUM.name()
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        signature::check_f32(inputs)?;
        SUM.infer(inputs)
    }

    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        SUM.cost_ns(inputs, outputs)
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        SUM.compute(context)
    }
}
