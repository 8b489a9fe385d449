//! Pooling.
#![forbid(unsafe_code)]

use super::window::{Windows, check_data, output};
use super::{LEAST_NS, NS_PER_FLOAT, elements, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::pooling;
use crate::kernel::vector::window::Axis;
use crate::kernel::{Kernel, KernelContext, Outputs, signature};
use crate::threadpool::Span;

pub use crate::kernel::vector::pooling::PoolingOp;

/// Pooling: one number for each window of each channel of x [N, C, W] or [N, C, H, W].
#[derive(Clone, Copy, Debug)]
pub struct Pooling {
    pub op: PoolingOp,
    /// `None` for windows as large as the input.
    pub kernel: Option<[i64; 2]>,
    pub windows: Windows,
}

impl Pooling {
    /// Rows and columns for this input, or the reason why they do not fit.
    fn axes(&self, x: &Desc) -> Result<(Axis, Axis)> {
        check_data(x)?;
        let sizes = &x.shape()[2..];
        if self.kernel.is_none() && sizes.contains(&0) {
            return Err(signature::mismatch("input", 0, "something to pool in each channel", x));
        }
        let axes = sizes.len();
        if let Some([_, second]) = self.kernel
            && (second != 0) != (axes == 2)
        {
            let expected = if second == 0 { "a signal, f32[?,?,?]" } else { "an image, f32[?,?,?,?]" };
            return Err(signature::mismatch("input", 0, &format!("{expected}, as desc->kernel says"), x));
        }
        let taps = match &self.kernel {
            Some(kernel) => &kernel[..],
            None => sizes,
        };
        self.windows.axes(x, taps, "of a window")
    }
}

impl Kernel for Pooling {
    fn name(&self) -> &str {
        "pooling"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let (rows, columns) = self.axes(&inputs[0])?;
        Ok(vec![output(&inputs[0], inputs[0].dims[1], (&rows, &columns))?])
    }

    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        let taps = self.axes(&inputs[0]).map_or(1, |(rows, columns)| rows.taps * columns.taps);
        let reads = elements(&outputs[0]) as f32 * taps as f32 + elements(&inputs[0]) as f32;
        ((reads * NS_PER_FLOAT) as u64).max(LEAST_NS)
    }

    fn is_pure(&self) -> bool {
        true
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
        let cost_ns = self.cost_ns(&[*desc], &[*out.desc()]) as f32 / items as f32;
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
