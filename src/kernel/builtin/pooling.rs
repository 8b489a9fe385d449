//! Pooling.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, NS_PER_FLOAT, elements, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::pooling;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::Pooling;
use crate::threadpool::Span;

impl BuiltinOperation for Builtin<Pooling> {
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let taps = self.axes(&inputs[0]).map_or(1, |(rows, columns)| rows.taps * columns.taps);
        let reads = elements(output) as f32 * taps as f32 + elements(&inputs[0]) as f32;
        ((reads * NS_PER_FLOAT) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, desc) = (input(context, 0), context.inputs()[0].desc());
        let out = outputs.only();
        if elements(out.desc()) == 0 {
            return Ok(());
        }
        let (rows, columns) = self.axes(desc)?;
        let plane = rows.input * columns.input;
        let whole = self.kernel.is_none();
        let items = elements(out.desc()) / columns.output;
        let cost_ns = self.cost_ns(&[*desc], out.desc()) as f32 / items as f32;
        let span = Span { items, cost_ns, ..Span::default() };
        context.parallel_into(&span, out.shards::<f32>(columns.output), |lines, claim| {
            for (i, line) in lines.chunks_exact_mut(columns.output).enumerate() {
                let at = claim.begin() + i;
                let (number, row) = (at / rows.output, at % rows.output);
                let plane = &x[number * plane..][..plane];
                if whole {
                    line[0] = pooling::whole(self.op, plane);
                } else {
                    pooling::row(self.op, &rows, &columns, plane, row, line);
                }
            }
            Ok(())
        })
    }
}
