//! Concatenation of tensors along an axis.
#![forbid(unsafe_code)]

use super::{bytes_span, element, traffic_ns};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result};
use crate::kernel::{Kernel, KernelContext, Outputs, signature};

/// The inputs one after the other along `axis`, which counts from the end if negative. They have one type, and the same
/// size in all other dimensions.
#[derive(Clone, Copy, Debug)]
pub struct Concat {
    pub axis: i32,
    pub inputs: usize,
}

impl Kernel for Concat {
    fn name(&self) -> &str {
        "concat"
    }

    fn num_inputs(&self) -> usize {
        self.inputs
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let axis = signature::axis(self.axis, &inputs[0])?;
        let mut pattern = inputs[0];
        pattern.dims[axis] = ANY_DIM;
        let mut sum = 0i64;
        for (i, input) in inputs.iter().enumerate() {
            if !pattern.matches(input) {
                return Err(signature::mismatch("input", i, &pattern.text(), input));
            }
            sum = sum.checked_add(input.dims[axis]).ok_or_else(|| {
                Error::out_of_range(format!("the inputs have more elements along axis {axis} than can be counted"))
            })?;
        }
        let mut output = inputs[0];
        output.dims[axis] = sum;
        Ok(vec![output.check()?])
    }

    fn cost_ns(&self, _inputs: &[Desc], outputs: &[Desc]) -> u64 {
        traffic_ns(&outputs[0])
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let output = outputs.only();
        let axis = signature::axis(self.axis, output.desc())?;
        let total = output.desc().bytes()?;
        if total == 0 {
            return Ok(());
        }
        // Contiguous bytes of an input from the axis on; the output's rows are the sum of these.
        let tail = |desc: &Desc| desc.shape()[axis..].iter().product::<i64>() as usize * element(desc);
        let row = tail(output.desc());
        context.parallel_into(&bytes_span(total, 1), output.byte_shards(1), |mut out, claim| {
            let (mut at, begin) = (claim.begin() / row, claim.begin() % row);
            let mut skip = begin;
            while !out.is_empty() {
                for (i, input) in context.inputs().iter().enumerate() {
                    let len = tail(input.desc());
                    if skip >= len {
                        skip -= len;
                        continue;
                    }
                    let (part, rest) = out.split_at_mut((len - skip).min(out.len()));
                    part.copy_from_slice(&context.input(i).read_bytes()[at * len + skip..][..part.len()]);
                    (out, skip) = (rest, 0);
                }
                at += 1;
            }
            Ok(())
        })
    }
}
