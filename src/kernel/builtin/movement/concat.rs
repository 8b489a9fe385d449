//! Concatenation of tensors along an axis.
#![forbid(unsafe_code)]

use super::{GRAIN, bytes_span, element, traffic_ns};
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::vector::movement::scatter_runs;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::BytesMut;
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
        if row > GRAIN {
            return long_rows(context, output, row, tail);
        }
        // Some rows at a time, which stay in the first-level cache until they have the parts of all inputs.
        let at_once = GRAIN / row;
        context.parallel_into(&bytes_span(total / row, row), output.byte_shards(row), |out, claim| {
            for (first, rows) in (claim.begin()..).step_by(at_once).zip(out.chunks_mut(at_once * row)) {
                let (count, mut at) = (rows.len() / row, 0);
                for (i, input) in context.inputs().iter().enumerate() {
                    let len = tail(input.desc());
                    if len > 0 {
                        let from = &context.input(i).read_bytes()[first * len..][..count * len];
                        scatter_runs(from, len, rows, row, at);
                    }
                    at += len;
                }
            }
            Ok(())
        })
    }
}

/// Rows that are long enough to be cut. `tail` tells the bytes of a row of an input.
fn long_rows(
    context: &KernelContext<'_>,
    output: BytesMut<'_>,
    row: usize,
    tail: impl Fn(&Desc) -> usize + Sync,
) -> Result<()> {
    let total = output.desc().bytes()?;
    context.parallel_into(&bytes_span(total, 1), output.byte_shards(1), |mut out, claim| {
        let (mut at, mut skip) = (claim.begin() / row, claim.begin() % row);
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
