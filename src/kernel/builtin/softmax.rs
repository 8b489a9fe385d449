//! Softmax along an axis, and its logarithm.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, axis, elements};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::columns::{ColumnStripes, WIDTH};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::Pairs;
use crate::kernel::vector::{softmax, softmax_halves};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::Softmax;
use crate::threadpool::Span;

impl Builtin<Softmax> {
    fn halves<T: Stored>(
        &self,
        columns: &ColumnStripes,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        if columns.inner == 1 {
            let rows = Pairs::<T, T>::of_rows(context, outputs, columns.len)?;
            return context.parallel_into(&span(columns, 2.0), rows, |rows, _| {
                softmax_halves::rows(self.isa, self.log, rows, columns.len);
                Ok(())
            });
        }
        let stripes = columns.divide::<T>(Pairs::of(context, outputs)?);
        context.parallel_into(&span(columns, 2.0), stripes, |stretches, _| {
            stretches.for_each(|stretch, rows| softmax_halves::columns(self.isa, self.log, stretch, rows));
            Ok(())
        })
    }

    fn floats(&self, columns: &ColumnStripes, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if columns.inner == 1 {
            let rows = Pairs::<f32, f32>::of_rows(context, outputs, columns.len)?;
            return context.parallel_into(&span(columns, 1.0), rows, |rows, _| {
                softmax::rows(self.isa, self.log, rows, columns.len);
                Ok(())
            });
        }
        let stripes = columns.divide::<f32>(Pairs::of(context, outputs)?);
        context.parallel_into(&span(columns, 1.0), stripes, |stretches, _| {
            stretches.for_each(|stretch, rows| softmax::columns(self.isa, self.log, stretch, rows));
            Ok(())
        })
    }
}

impl BuiltinOperation for Builtin<Softmax> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        // `infer` has refused invalid axes.
        let factor = if inputs[0].dtype == dtype::F32 { 1.0 } else { 2.0 };
        let cost = axis::split(self.axis, &inputs[0]).map_or(0.0, |columns| {
            let span = span(&columns, factor);
            span.items as f32 * span.cost_ns
        });
        (cost as u64).max(LEAST_NS)
    }

    fn in_place_of(&self, _: usize) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let input = context.inputs()[0].desc();
        let columns = axis::split(self.axis, input)?;
        if elements(input) == 0 {
            return Ok(());
        }
        match input.dtype {
            dtype::F32 => self.floats(&columns, context, outputs),
            dtype::F16 => self.halves::<F16>(&columns, context, outputs),
            dtype::BF16 => self.halves::<Bf16>(&columns, context, outputs),
            _ => Err(Error::internal(format!("a softmax of {}", input.text()))),
        }
    }
}

/// The loop over rows, or over ranges of columns where the axis is not the last.
fn span(columns: &ColumnStripes, factor: f32) -> Span {
    let (items, cost_ns) = match columns.inner {
        1 => (columns.outer, softmax::row_ns(columns.len)),
        inner => (columns.stretches(), softmax::columns_ns(columns.len, inner.min(WIDTH))),
    };
    Span { items, cost_ns: cost_ns * factor, ..Span::default() }
}

#[cfg(all(test, not(loom)))]
mod tests;
