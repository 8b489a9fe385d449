//! Copies of a tensor along its dimensions.
//!
//! A dimension of the output is two: the number of a copy, and the place in it. Those of more than one element remain,
//! and neighbours that continue one another in the input and in the output are one. Copies behind the first one are
//! made of what was just written, so most bytes come from a cache. A claim may begin inside of a copy, and makes a
//! whole one from there.
#![forbid(unsafe_code)]

use super::{GRAIN, bytes_span, element, go, repeat, strides, traffic_ns};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::vector::movement::{Movement, StridedDim};
use crate::kernel::{KernelContext, Outputs};
use crate::ops::Tile;
use crate::ops::broadcast::size;

/// Copies of an element that take fewer bytes are written across rows, as a transposition.
const SHORT_BYTES: usize = 256;

/// The dimensions of a repetition that are left, the innermost first; those of copies have no step in the input.
#[derive(Debug)]
struct TilePlan {
    dims: [StridedDim; 2 * MAX_RANK],
    rank: usize,
    /// Bytes that lie together in the input and in the output.
    unit: usize,
}

impl TilePlan {
    /// The output has elements.
    fn new(input: &Desc, output: &Desc) -> TilePlan {
        let (from, to) = (strides(input), strides(output));
        let (own, rank) = (input.shape().len(), output.shape().len());
        let mut plan = TilePlan { dims: [StridedDim::default(); 2 * MAX_RANK], rank: 0, unit: element(input) };
        for from_last in 0..rank {
            let (len, to) = (size(input, from_last), to[rank - 1 - from_last]);
            let copies = (output.dims[rank - 1 - from_last] / len) as usize;
            if len > 1 {
                plan.push(StridedDim { size: len as usize, from: from[own - 1 - from_last], to });
            }
            if copies > 1 {
                plan.push(StridedDim { size: copies, from: 0, to: to * len as isize });
            }
        }
        plan
    }

    fn push(&mut self, dim: StridedDim) {
        let unit = self.unit as isize;
        if self.rank == 0 && (dim.from, dim.to) == (unit, unit) {
            self.unit *= dim.size;
            return;
        }
        match self.dims[..self.rank].last_mut() {
            Some(last) if last.joins(&dim) => last.size *= dim.size,
            _ => {
                self.dims[self.rank] = dim;
                self.rank += 1;
            }
        }
    }

    /// The same as a strided copy, if single elements have few copies side by side.
    fn turned(&self) -> Option<Movement> {
        let mut all = self.dims;
        let dims = &mut all[..self.rank];
        let (first, rows) = (dims.first()?, dims.get(1)?);
        let unit = self.unit as isize;
        let is_short = first.from == 0 && first.size * self.unit < SHORT_BYTES && rows.from == unit;
        if !is_short || ![1, 2, 4, 8].contains(&unit) || dims.len() > MAX_RANK {
            return None;
        }
        dims.reverse();
        Some(Movement::new(self.unit, dims, 0, 0))
    }
}

/// Writes a part of the output, which begins at byte `at` of these dimensions.
fn fill(dims: &[StridedDim], from: &[u8], at: usize, mut out: &mut [u8]) {
    let Some((dim, inner)) = dims.split_last() else { return out.copy_from_slice(&from[at..][..out.len()]) };
    let (step, mut number, mut at) = (dim.to as usize, at / dim.to as usize, at % dim.to as usize);
    if dim.from == 0 {
        let first = step.min(out.len());
        let (end, begin) = out[..first].split_at_mut(first.min(step - at));
        fill(inner, from, at, end);
        if !begin.is_empty() {
            fill(inner, from, 0, begin);
        }
        return extend(out, first);
    }
    while !out.is_empty() {
        let (part, rest) = out.split_at_mut((step - at).min(out.len()));
        fill(inner, &from[number * dim.from as usize..], at, part);
        (out, number, at) = (rest, number + 1, 0);
    }
}

/// Repeats the first bytes to the end.
fn extend(out: &mut [u8], period: usize) {
    let len = out.len();
    if len == period {
        return;
    }
    if [1, 2, 4, 8].contains(&period) {
        let (first, rest) = out.split_at_mut(period);
        repeat(first, rest);
        return out.copy_within(..len % period, len - len % period);
    }
    // Whole copies, as many as stay in the first-level cache.
    let most = (GRAIN / period).max(1) * period;
    let mut done = period;
    while done < len {
        let count = done.min(most).min(len - done);
        out.copy_within(..count, done);
        done += count;
    }
}

impl BuiltinOperation for Builtin<Tile> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (input, output) = (context.inputs()[0].desc(), outputs.desc(0));
        let (total, unit) = (output.bytes()?, element(output));
        if total == 0 {
            return Ok(());
        }
        let plan = TilePlan::new(input, output);
        if let Some(movement) = plan.turned() {
            return go(&movement, context, outputs);
        }
        let (from, output) = (context.input(0).read_bytes(), outputs.only());
        context.parallel_into(&bytes_span(total / unit, unit), output.byte_shards(unit), |out, claim| {
            fill(&plan.dims[..plan.rank], from, claim.begin() * unit, out);
            Ok(())
        })
    }
}
