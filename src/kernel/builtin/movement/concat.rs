//! Concatenation of tensors along an axis.
#![forbid(unsafe_code)]

use super::{bytes_span, element, traffic_ns};
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::{KernelContext, Outputs};
use crate::ops::{Concat, signature};

impl BuiltinOperation for Builtin<Concat> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(output)
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
