//! Gather of blocks by their places.
#![forbid(unsafe_code)]

use super::places::{INDEX_NS, Indices, strides};
use super::{bytes_span, element, traffic_ns};
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation, elements};
use crate::kernel::{KernelContext, Outputs};
use crate::ops::GatherNd;
use crate::ops::gather_nd::place_depth;
use crate::threadpool::Span;

impl BuiltinOperation for Builtin<GatherNd> {
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        (elements(&inputs[1]) as f32 * INDEX_NS) as u64 + traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (table, shape, output) = (context.input(0), context.inputs()[1].desc(), outputs.only());
        let (batch, sizes) = (self.batch_dims, table.desc().shape());
        let (depth, indices) = (place_depth(table.desc(), batch, 1, shape)?, Indices::of(context.input(1))?);
        indices.check(table.desc(), batch, depth, self.from_end)?;
        let total = output.desc().bytes()?;
        if total == 0 {
            return Ok(());
        }
        let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        let (steps, bytes) = (strides(table.desc()), element(table.desc()));
        let (unit, all) = (product(&sizes[batch + depth..]) * bytes, product(&sizes[batch..]) * bytes);
        let rows = product(&shape.shape()[batch..shape.shape().len() - 1]);
        let from = table.read_bytes();
        let span = bytes_span(total / unit, unit);
        let span = Span { cost_ns: span.cost_ns + INDEX_NS * depth as f32, ..span };
        context.parallel_into(&span, output.byte_shards(unit), |out, claim| {
            for (number, out) in (claim.begin()..).zip(out.chunks_exact_mut(unit)) {
                let place = (0..depth).fold(number / rows * all, |place, i| {
                    let size = sizes[batch + i] as usize;
                    place + indices.place(number * depth + i, size) * steps[batch + i] * bytes
                });
                copy(&from[place..][..unit], out);
            }
            Ok(())
        })
    }
}

/// Blocks as small as an element are many.
#[inline(always)]
pub fn copy(from: &[u8], to: &mut [u8]) {
    match to.len() {
        4 => to.copy_from_slice(&from[..4]),
        8 => to.copy_from_slice(&from[..8]),
        len => to.copy_from_slice(&from[..len]),
    }
}
