//! Transposition: permutes dimensions.
#![forbid(unsafe_code)]

use super::{go, movement, strides, traffic_ns};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::vector::movement::Movement;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::Transpose;

impl Builtin<Transpose> {
    fn movement(&self, input: &Desc, output: &Desc) -> Movement {
        let (order, from) = (self.order(input.shape().len()), strides(input));
        let mut steps = [0; MAX_RANK];
        for (step, &axis) in steps.iter_mut().zip(&order[..input.shape().len()]) {
            *step = from[axis];
        }
        movement(input, output, 0, &steps)
    }
}

impl BuiltinOperation for Builtin<Transpose> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        2 * traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        go(&self.movement(context.inputs()[0].desc(), outputs.desc(0)), context, outputs)
    }
}
