//! Softmax along an axis.
#![forbid(unsafe_code)]

use super::{LEAST_NS, axis, elements, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::columns::WIDTH;
use crate::kernel::vector::softmax;
use crate::kernel::{Kernel, KernelContext, signature};
use crate::threadpool::Span;

/// Estimated time per element.
const ELEMENT_NS: u64 = 4;

/// exp(x - max) / sum along `axis`, which counts from the end if negative. A row whose greatest element is an
/// infinity, or that holds a NaN, becomes NaN.
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    pub axis: i32,
}

impl Kernel for Softmax {
    fn name(&self) -> &str {
        "softmax"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        signature::check_f32(inputs)?;
        signature::axis(self.axis, &inputs[0])?;
        Ok(vec![inputs[0]])
    }

    fn cost_ns(&self, inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        (elements(&inputs[0]) as u64 * ELEMENT_NS).max(LEAST_NS)
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
            let span = Span { items: columns.outer, cost_ns: len as u64 * ELEMENT_NS, ..Span::default() };
            return context.parallel_for(&span, &|mut claim| {
                let x = &x[claim.begin() * len..claim.end() * len];
                let rows = x.chunks_exact(len).zip(y.part(&mut claim, len).chunks_exact_mut(len));
                rows.for_each(|(x, y)| softmax::row(x, y));
                Ok(())
            });
        }
        let width = columns.inner.min(WIDTH);
        let span = Span { items: columns.stretches(), cost_ns: (len * width) as u64 * ELEMENT_NS, ..Span::default() };
        context.parallel_for(&span, &|mut claim| {
            columns.for_each(&mut claim, output, |stretch, rows| softmax::columns(x, stretch, rows));
            Ok(())
        })
    }
}
