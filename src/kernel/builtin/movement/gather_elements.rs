//! Gather of elements, each by an index of its own.
#![forbid(unsafe_code)]

use super::places::{INDEX_NS, IndexType, Indices, Walk, strides};
use super::{GRAIN, element};
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation, LEAST_NS, elements};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::BytesMut;
use crate::ops::{GatherElements, signature};
use crate::threadpool::Span;

impl Builtin<GatherElements> {
    fn of_indices<I: IndexType>(
        context: &KernelContext<'_>,
        output: BytesMut<'_>,
        axis: usize,
        indices: &[I],
    ) -> Result<()> {
        match element(context.inputs()[0].desc()) {
            1 => Self::gather::<1, I>(context, output, axis, indices),
            2 => Self::gather::<2, I>(context, output, axis, indices),
            4 => Self::gather::<4, I>(context, output, axis, indices),
            _ => Self::gather::<8, I>(context, output, axis, indices),
        }
    }

    /// For elements of UNIT bytes.
    fn gather<const UNIT: usize, I: IndexType>(
        context: &KernelContext<'_>,
        output: BytesMut<'_>,
        axis: usize,
        indices: &[I],
    ) -> Result<()> {
        let (x, shape) = (context.input(0), context.inputs()[1].desc().shape());
        let (size, mut steps) = (x.desc().shape()[axis] as usize, strides(x.desc()));
        let (along, from) = (std::mem::take(&mut steps[axis]), x.read_bytes().as_chunks::<UNIT>().0);
        // Rows of the indices, and the distance between the elements that they select from.
        let (outer, row) = (shape.len() - 1, shape[shape.len() - 1] as usize);
        let (items, step) = (elements(output.desc()), steps[outer]);
        let span = Span { items, cost_ns: INDEX_NS, grain: GRAIN / UNIT, ..Span::default() };
        context.parallel_into(&span, output.byte_shards(UNIT), |out, claim| {
            let mut walk = Walk::new(&shape[..outer], &steps, claim.begin() / row);
            let (mut out, mut indices) = (out.as_chunks_mut::<UNIT>().0, &indices[claim.begin()..claim.end()]);
            let mut at = claim.begin() % row;
            while !out.is_empty() {
                let (some, rest) = out.split_at_mut((row - at).min(out.len()));
                let (of_some, of_rest) = indices.split_at(some.len());
                if step == 0 {
                    // Elements of one row.
                    let row = &from[walk.offset..][..size];
                    some.iter_mut().zip(of_some).for_each(|(y, &index)| *y = row[index.place(size)]);
                } else {
                    let from = &from[walk.offset + at * step..];
                    for (i, (y, &index)) in some.iter_mut().zip(of_some).enumerate() {
                        *y = from[i * step + index.place(size) * along];
                    }
                }
                walk.step();
                (out, indices, at) = (rest, of_rest, 0);
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
        match indices {
            Indices::S32(indices) => Self::of_indices(context, output, axis, indices),
            Indices::S64(indices) => Self::of_indices(context, output, axis, indices),
        }
    }
}
