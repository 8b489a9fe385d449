//! Slice of a tensor: begin, end, and step.
#![forbid(unsafe_code)]

use super::{check_rank, go, movement, strides, traffic_ns};
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Result};
use crate::kernel::builtin::BuiltinOperation;
use crate::kernel::vector::movement::Movement;
use crate::kernel::{KernelContext, Outputs};

/// In each dimension the elements from `begin` on, `step` apart, up to `end`, which is excluded. Negative positions
/// count from the end; positions outside are clamped, so that i64::MAX is "to the end" and i64::MIN, with a negative
/// step, "to the beginning". A step of 0 is 1.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub rank: usize,
    pub begin: [i64; MAX_RANK],
    pub end: [i64; MAX_RANK],
    pub step: [i64; MAX_RANK],
}

impl Slice {
    /// First position, step and number of elements in a dimension.
    fn range(&self, axis: usize, size: i64) -> (i64, i64, i64) {
        let step = if self.step[axis] == 0 { 1 } else { self.step[axis] };
        // Going backwards the positions are -1 to size - 1, with -1 as an end only.
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let place = |at: i64| (if at < 0 { at.saturating_add(size) } else { at }).clamp(low, high);
        let (begin, end) = (place(self.begin[axis]), place(self.end[axis]));
        let distance = if step > 0 { end - begin } else { begin - end };
        // In whole steps, rounded up; the sizes of tensors leave room for that.
        let count = if distance > 0 { (distance as u64 - 1) / step.unsigned_abs() + 1 } else { 0 };
        (begin, step, count as i64)
    }

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

impl BuiltinOperation for Slice {
    fn name(&self) -> &str {
        "slice"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        check_rank(self.rank, &inputs[0])?;
        let mut output = inputs[0];
        for (axis, dim) in output.dims[..self.rank].iter_mut().enumerate() {
            // The size that an open dimension leaves depends on its actual size.
            if *dim != ANY_DIM {
                *dim = self.range(axis, *dim).2;
            }
        }
        Ok(output)
    }

    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        go(&self.movement(context.inputs()[0].desc(), outputs.desc(0)), context, outputs)
    }
}
