//! One-hot encoding: a row of one value for each index, but for one element.
#![forbid(unsafe_code)]

use super::places::Indices;
use super::{NS_PER_BYTE, bytes_span, element, traffic_ns};
use crate::base::{Desc, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::{KernelContext, Outputs};
use crate::ops::{OneHot, signature};
use crate::threadpool::Span;

impl Builtin<OneHot> {
    /// For elements of UNIT bytes.
    fn encode<const UNIT: usize>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (indices, values) = (Indices::of(context.input(0))?, context.input(1).read_bytes().as_chunks::<UNIT>().0);
        let (output, off, on) = (outputs.only(), values[0], values[1]);
        let (axis, depth) = (signature::axis(self.axis, output.desc())?, self.depth);
        let inner = output.desc().shape()[axis + 1..].iter().product::<i64>() as usize;
        let (row, rows) = match inner {
            1 => (depth as usize, 1),
            _ => (inner, depth as usize),
        };
        let span = bytes_span(output.desc().bytes()? / (row * UNIT), row * UNIT);
        let span = Span { cost_ns: span.cost_ns + row as f32 * NS_PER_BYTE, ..span };
        let number = |at: usize| {
            let index = indices.get(at);
            if index < 0 && self.from_end { index.saturating_add(depth) } else { index }
        };
        context.parallel_into(&span, output.byte_shards(row * UNIT), |out, claim| {
            for (at, out) in (claim.begin()..).zip(out.as_chunks_mut::<UNIT>().0.chunks_exact_mut(row)) {
                if inner == 1 {
                    // The row of an index.
                    out.fill(off);
                    if let Some(y) = usize::try_from(number(at)).ok().and_then(|place| out.get_mut(place)) {
                        *y = on;
                    }
                } else {
                    // One element of the rows of `inner` indices.
                    let (first, place) = (at / rows * inner, (at % rows) as i64);
                    for (i, y) in out.iter_mut().enumerate() {
                        *y = if number(first + i) == place { on } else { off };
                    }
                }
            }
            Ok(())
        })
    }
}

impl BuiltinOperation for Builtin<OneHot> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        2 * traffic_ns(output)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if outputs.desc(0).bytes()? == 0 {
            return Ok(());
        }
        match element(outputs.desc(0)) {
            1 => self.encode::<1>(context, outputs),
            2 => self.encode::<2>(context, outputs),
            4 => self.encode::<4>(context, outputs),
            _ => self.encode::<8>(context, outputs),
        }
    }
}
