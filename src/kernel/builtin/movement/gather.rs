//! Gather: rows of a table by their indices, as for an embedding.
#![forbid(unsafe_code)]

use super::{NS_PER_BYTE, bytes_span, element};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::builtin::BuiltinOperation;
use crate::kernel::builtin::LEAST_NS;
use crate::kernel::{KernelContext, Outputs, signature};
use crate::memory::Element;

/// The elements of input 0 along `axis` at the indices of input 1, of s32 or s64: the output has the indices' shape in
/// place of the axis. An index below zero or beyond the axis is refused before anything is written.
#[derive(Clone, Copy, Debug)]
pub struct Gather {
    pub axis: i32,
}

/// Time per index: its row may be anywhere in memory.
const INDEX_NS: f32 = 5.0;

impl Gather {
    fn check_indices<I: GatherIndex>(indices: &[I], table: &Desc, axis: usize) -> Result<()> {
        let size = table.shape()[axis];
        // The first check is a loop without branches.
        let good = indices.iter().fold(true, |good, &index| good & (index.into() >= 0 && index.into() < size));
        let bad = |&index: &I| index.into() < 0 || index.into() >= size;
        match indices.iter().position(bad).filter(|_| !good) {
            None => Ok(()),
            Some(i) => Err(Error::out_of_range(format!(
                "input 1: element {i} is {}, expected an index from 0 to {} along axis {axis} of input 0, {}",
                indices[i].into(),
                size - 1,
                table.text()
            ))),
        }
    }
}

impl BuiltinOperation for Gather {
    fn name(&self) -> &str {
        "gather"
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (table, indices) = (&inputs[0], &inputs[1]);
        let axis = signature::axis(self.axis, table)?;
        if ![dtype::S32, dtype::S64].contains(&indices.dtype) {
            return Err(signature::mismatch("input", 1, "s32 or s64 elements", indices));
        }
        let (before, after) = (&table.shape()[..axis], &table.shape()[axis + 1..]);
        let rank = before.len() + indices.shape().len() + after.len();
        let mut output = Desc { dtype: table.dtype, rank: rank as u32, dims: [0; MAX_RANK] };
        let dims = before.iter().chain(indices.shape()).chain(after);
        output.dims.iter_mut().zip(dims).for_each(|(to, &dim)| *to = dim);
        output.check_open()
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let indices = inputs[1].elements().unwrap_or(0) as f32 * INDEX_NS;
        let bytes = output.bytes().unwrap_or(0) as f32 * NS_PER_BYTE;
        ((indices + bytes) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match context.inputs()[1].desc().dtype {
            dtype::S64 => self.gather::<i64>(context, outputs),
            _ => self.gather::<i32>(context, outputs),
        }
    }
}

/// An index type.
trait GatherIndex: Element + Into<i64> {}

impl GatherIndex for i32 {}
impl GatherIndex for i64 {}

impl Gather {
    fn gather<I: GatherIndex>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (table, output) = (context.input(0), outputs.only());
        let axis = signature::axis(self.axis, table.desc())?;
        let indices = &context.input(1).read::<I>()[..context.inputs()[1].desc().elements()?];
        let total = output.desc().bytes()?;
        Gather::check_indices(indices, table.desc(), axis)?;
        if total == 0 {
            return Ok(());
        }
        let shape = table.desc().shape();
        let (size, unit) =
            (shape[axis] as usize, shape[axis + 1..].iter().product::<i64>() as usize * element(table.desc()));
        let from = table.read_bytes();
        context.parallel_into(&bytes_span(total / unit, unit), output.byte_shards(unit), |mut out, claim| {
            let (mut block, mut at) = (claim.begin() / indices.len(), claim.begin() % indices.len());
            while !out.is_empty() {
                let rows = (indices.len() - at).min(out.len() / unit);
                let (part, rest) = out.split_at_mut(rows * unit);
                let table = &from[block * size * unit..][..size * unit];
                match unit {
                    1 => rows_of::<1>(table, &indices[at..], part),
                    2 => rows_of::<2>(table, &indices[at..], part),
                    4 => rows_of::<4>(table, &indices[at..], part),
                    8 => rows_of::<8>(table, &indices[at..], part),
                    _ => {
                        for (row, &index) in part.chunks_exact_mut(unit).zip(&indices[at..]) {
                            row.copy_from_slice(&table[index.into() as usize * unit..][..unit]);
                        }
                    }
                }
                (out, block, at) = (rest, block + 1, 0);
            }
            Ok(())
        })
    }
}

/// For elements of a size known to the compiler.
fn rows_of<const UNIT: usize>(table: &[u8], indices: &[impl GatherIndex], out: &mut [u8]) {
    for (row, &index) in out.as_chunks_mut::<UNIT>().0.iter_mut().zip(indices) {
        *row = table.as_chunks::<UNIT>().0[index.into() as usize];
    }
}
