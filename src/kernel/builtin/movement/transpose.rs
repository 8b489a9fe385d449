//! Transposition: permutes dimensions.
#![forbid(unsafe_code)]

use super::{check_rank, go, movement, strides, traffic_ns};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result};
use crate::kernel::builtin::BuiltinOperation;
use crate::kernel::vector::movement::Movement;
use crate::kernel::{KernelContext, Outputs};

/// Dimension i of the output is dimension `permutation[i]` of the input.
#[derive(Clone, Copy, Debug)]
pub struct Transpose {
    /// `None` reverses the order of any number of dimensions.
    pub(in crate::kernel::builtin) permutation: Option<([usize; MAX_RANK], usize)>,
}

impl Transpose {
    /// Refuses an invalid permutation; an empty one is the reverse order.
    pub fn new(permutation: &[i32]) -> Result<Transpose> {
        let rank = permutation.len();
        let mut all = [0; MAX_RANK];
        for (i, &axis) in permutation.iter().enumerate() {
            if axis < 0 || axis as usize >= rank {
                return Err(Error::out_of_range(format!(
                    "desc->permutation[{i}] is {axis}, expected 0 to {}",
                    rank - 1
                )));
            }
            if let Some(before) = permutation[..i].iter().position(|&other| other == axis) {
                return Err(Error::invalid(format!(
                    "desc->permutation[{i}] is {axis}, and so is desc->permutation[{before}]"
                )));
            }
            all[i] = axis as usize;
        }
        Ok(Transpose { permutation: (rank > 0).then_some((all, rank)) })
    }

    fn order(&self, input: &Desc) -> [usize; MAX_RANK] {
        let rank = input.shape().len();
        self.permutation.map_or_else(|| std::array::from_fn(|i| rank.wrapping_sub(1 + i)), |(order, _)| order)
    }

    fn movement(&self, input: &Desc, output: &Desc) -> Movement {
        let (order, from) = (self.order(input), strides(input));
        let mut steps = [0; MAX_RANK];
        for (step, &axis) in steps.iter_mut().zip(&order[..input.shape().len()]) {
            *step = from[axis];
        }
        movement(input, output, 0, &steps)
    }
}

impl BuiltinOperation for Transpose {
    fn name(&self) -> &str {
        "transpose"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let input = &inputs[0];
        if let Some((_, rank)) = self.permutation {
            check_rank(rank, input)?;
        }
        let rank = input.shape().len();
        let mut output = *input;
        if rank > 0 {
            let order = self.order(input);
            (0..rank).for_each(|i| output.dims[i] = input.dims[order[i]]);
        }
        Ok(output)
    }

    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        2 * traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        go(&self.movement(context.inputs()[0].desc(), outputs.desc(0)), context, outputs)
    }
}
