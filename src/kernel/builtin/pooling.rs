//! Pooling.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, NS_PER_FLOAT, elements, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::pooling::{self, PoolingShape};
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::Pooling;
use crate::ops::axis::{Axis, folded};
use crate::threadpool::Span;

impl Builtin<Pooling> {
    fn shape(&self, x: &Desc) -> Result<PoolingShape> {
        let [slices, rows, columns] = folded(self.axes(x)?);
        let planes = x.dims[..2].iter().map(|&dim| dim as usize).product::<usize>();
        // Slices under windows of one are images of their own.
        Ok(match slices.is_plain() {
            true => PoolingShape { planes: planes * slices.input, slices: Axis::ONE, rows, columns },
            false => PoolingShape { planes, slices, rows, columns },
        })
    }
}

impl BuiltinOperation for Builtin<Pooling> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        self.shape(&inputs[0]).map_or(0, |shape| shape.scratch_bytes())
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let taps = self.axes(&inputs[0]).map_or(1, |axes| axes.iter().map(|axis| axis.taps).product());
        let reads = elements(output) as f32 * taps as f32 + elements(&inputs[0]) as f32;
        ((reads * NS_PER_FLOAT) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, desc) = (input(context, 0), context.inputs()[0].desc());
        let out = outputs.only();
        let windows = elements(out.desc());
        if windows == 0 {
            return Ok(());
        }
        let shape = self.shape(desc)?;
        let cost_ns = self.cost_ns(&[*desc], out.desc());
        if self.kernel.is_none() || shape.is_whole() {
            let plane = shape.slices.input * shape.rows.input * shape.columns.input;
            let span = Span { items: windows, cost_ns: cost_ns as f32 / windows as f32, ..Span::default() };
            return context.parallel_into(&span, out.shards::<f32>(1), |out, claim| {
                pooling::whole(self.isa, self.op, &x[claim.begin() * plane..claim.end() * plane], out);
                Ok(())
            });
        }
        let out = MatrixMut::output(out, shape.planes, windows / shape.planes);
        pooling::compute(self.isa, self.op, &shape, x, out, cost_ns, context)
    }
}
