//! Slice of a tensor: begin, end, and step.
#![forbid(unsafe_code)]

use super::{go, movement, strides, traffic_ns};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::vector::movement::Movement;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::Slice;

impl Builtin<Slice> {
    fn movement(&self, input: &Desc, output: &Desc) -> Movement {
        let strides = strides(input);
        let (mut from, mut steps) = (0, [0; MAX_RANK]);
        for (axis, &size) in input.shape().iter().enumerate() {
            let (begin, step, count) = self.range(axis, size);
            if count > 0 {
                from += begin as isize * strides[axis];
            }
            if count > 1 {
                steps[axis] = step as isize * strides[axis];
            }
        }
        movement(input, output, from, &steps)
    }
}

impl BuiltinOperation for Builtin<Slice> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        go(&self.movement(context.inputs()[0].desc(), outputs.desc(0)), context, outputs)
    }
}
