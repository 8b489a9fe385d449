//! Softmax along an axis.
#![forbid(unsafe_code)]

use super::{LEAST_NS, Operation, axis, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::columns::{Columns, WIDTH};
use crate::kernel::vector::softmax;
use crate::kernel::{KernelContext, signature};
use crate::threadpool::Span;

/// exp(x - max) / sum along `axis`, which counts from the end if negative. A row whose greatest element is an
/// infinity, or that holds a NaN, becomes NaN.
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    pub axis: i32,
}

impl Operation for Softmax {
    fn name(&self) -> &str {
        "softmax"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_f32(inputs)?;
        signature::axis(self.axis, &inputs[0])?;
        Ok(inputs[0])
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        // An axis that is not one has been refused by `infer`.
        let cost = axis::split(self.axis, &inputs[0]).map_or(0.0, |columns| {
            let span = span(&columns);
            span.items as f32 * span.cost_ns
        });
        (cost as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let (x, output) = (input(context, 0), &context.outputs()[0]);
        let columns = axis::split(self.axis, output.desc())?;
        let len = columns.len;
        if x.is_empty() {
            return Ok(());
        }
        if columns.inner == 1 {
            let y = output.shards::<f32>();
            return context.parallel_for(&span(&columns), &|mut claim| {
                let x = &x[claim.begin() * len..claim.end() * len];
                softmax::rows(x, y.part(&mut claim, len), len);
                Ok(())
            });
        }
        context.parallel_for(&span(&columns), &|mut claim| {
            columns.for_each(&mut claim, output, |stretch, rows| softmax::columns(x, stretch, rows));
            Ok(())
        })
    }
}

/// The loop over rows, or over stretches of columns where the axis is not the last.
fn span(columns: &Columns) -> Span {
    let (items, cost_ns) = match columns.inner {
        1 => (columns.outer, softmax::row_ns(columns.len)),
        inner => (columns.stretches(), softmax::columns_ns(columns.len, inner.min(WIDTH))),
    };
    Span { items, cost_ns, ..Span::default() }
}
