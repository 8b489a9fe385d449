//! Gather of elements, each by an index of its own.
#![forbid(unsafe_code)]

use super::places::{INDEX_NS, Indices, Walk, strides};
use super::{GRAIN, element};
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation, LEAST_NS, elements};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::BytesMut;
use crate::ops::{GatherElements, signature};
use crate::threadpool::Span;

impl Builtin<GatherElements> {
    /// For elements of UNIT bytes.
    fn gather<const UNIT: usize>(
        axis: usize,
        indices: Indices<'_>,
        context: &KernelContext<'_>,
        output: BytesMut<'_>,
    ) -> Result<()> {
        let (x, shape) = (context.input(0), context.inputs()[1].desc().shape());
        let (size, mut steps) = (x.desc().shape()[axis] as usize, strides(x.desc()));
        let (along, from) = (std::mem::take(&mut steps[axis]), x.read_bytes().as_chunks::<UNIT>().0);
        let items = elements(output.desc());
        let span = Span { items, cost_ns: INDEX_NS, grain: GRAIN / UNIT, ..Span::default() };
        context.parallel_into(&span, output.byte_shards(UNIT), |out, claim| {
            let mut walk = Walk::new(shape, &steps, claim.begin());
            for (number, y) in (claim.begin()..).zip(out.as_chunks_mut::<UNIT>().0) {
                *y = from[walk.offset + indices.place(number, size) * along];
                walk.step();
            }
            Ok(())
        })
    }
}

impl BuiltinOperation for Builtin<GatherElements> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        ((elements(output) as f32 * INDEX_NS) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let x = context.inputs()[0].desc();
        let (axis, indices, output) = (signature::axis(self.axis, x)?, Indices::of(context.input(1))?, outputs.only());
        indices.check(x, axis, 1, self.from_end)?;
        if elements(output.desc()) == 0 {
            return Ok(());
        }
        match element(x) {
            1 => Self::gather::<1>(axis, indices, context, output),
            2 => Self::gather::<2>(axis, indices, context, output),
            4 => Self::gather::<4>(axis, indices, context, output),
            _ => Self::gather::<8>(axis, indices, context, output),
        }
    }
}
