//! Gather: rows of a table by their indices, as for an embedding.
#![forbid(unsafe_code)]

use super::places::IndexType;
use super::{NS_PER_BYTE, bytes_span, element};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::builtin::{Builtin, BuiltinOperation, LEAST_NS};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::Element;
use crate::ops::{Gather, signature};

/// Time per index: its row may be anywhere in memory.
const INDEX_NS: f32 = 5.0;

impl Builtin<Gather> {
    fn check_indices<I: IndexType>(&self, indices: &[I], table: &Desc, axis: usize) -> Result<()> {
        let size = table.shape()[axis];
        let least = self.least(size);
        // The first check is a loop without branches.
        let good = indices.iter().fold(true, |good, &index| good & (index.into() >= least && index.into() < size));
        let bad = |&index: &I| index.into() < least || index.into() >= size;
        match indices.iter().position(bad).filter(|_| !good) {
            None => Ok(()),
            Some(i) => Err(Error::out_of_range(format!(
                "input 1: element {i} is {}, expected an index from {least} to {} along axis {axis} of input 0, {}",
                indices[i].into(),
                size - 1,
                table.text()
            ))),
        }
    }
}

impl BuiltinOperation for Builtin<Gather> {
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

impl Builtin<Gather> {
    fn gather<I: IndexType + Element>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (table, output) = (context.input(0), outputs.only());
        let axis = signature::axis(self.axis, table.desc())?;
        let indices = &context.input(1).read::<I>()[..context.inputs()[1].desc().elements()?];
        let total = output.desc().bytes()?;
        self.check_indices(indices, table.desc(), axis)?;
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
                    1 => rows_of::<1>(table, size, &indices[at..], part),
                    2 => rows_of::<2>(table, size, &indices[at..], part),
                    4 => rows_of::<4>(table, size, &indices[at..], part),
                    8 => rows_of::<8>(table, size, &indices[at..], part),
                    _ => {
                        for (row, &index) in part.chunks_exact_mut(unit).zip(&indices[at..]) {
                            row.copy_from_slice(&table[index.place(size) * unit..][..unit]);
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
fn rows_of<const UNIT: usize>(table: &[u8], size: usize, indices: &[impl IndexType], out: &mut [u8]) {
    for (row, &index) in out.as_chunks_mut::<UNIT>().0.iter_mut().zip(indices) {
        *row = table.as_chunks::<UNIT>().0[index.place(size)];
    }
}
