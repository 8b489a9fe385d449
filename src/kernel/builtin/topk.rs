//! The best elements along an axis.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, axis, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::topk::{Ordered, Rows, TopkPlaces};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::Topk;

/// Time per element that is compared, and per one that is sorted, for each time their number doubles.
const ELEMENT_NS: f32 = 0.6;
const SORT_NS: f32 = 2.0;

impl Builtin<Topk> {
    fn row_ns(&self, len: usize) -> f32 {
        let sorted = self.count as f32;
        ELEMENT_NS * len as f32 + SORT_NS * sorted * (sorted + 1.0).log2()
    }

    fn choose<T: Ordered>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, [values, places]) = (context.input(0), outputs.split());
        let columns = axis::split(self.axis, x.desc())?;
        let rows = Rows {
            outer: columns.outer,
            len: columns.len,
            stride: columns.inner,
            count: self.count,
            least: self.least,
        };
        let places = match self.long_indices {
            true => TopkPlaces::S64(places.shards(1)),
            false => TopkPlaces::S32(places.shards(1)),
        };
        rows.choose(x.read::<T>(), values, &places, self.row_ns(rows.len), context)
    }
}

impl BuiltinOperation for Builtin<Topk> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        let len = axis::split(self.axis, &inputs[0]).map_or(0, |columns| columns.len);
        match inputs[0].dtype {
            dtype::S64 => Rows::scratch_bytes::<i64>(self.count, len),
            _ => Rows::scratch_bytes::<i32>(self.count, len),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        let len = axis::split(self.axis, &inputs[0]).map_or(1, |columns| columns.len.max(1));
        let rows = (elements(&inputs[0]) / len) as f32;
        ((rows * self.row_ns(len)) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if elements(outputs.desc(0)) == 0 {
            return Ok(());
        }
        match context.inputs()[0].desc().dtype {
            dtype::F32 => self.choose::<f32>(context, outputs),
            dtype::F16 => self.choose::<F16>(context, outputs),
            dtype::BF16 => self.choose::<Bf16>(context, outputs),
            dtype::S64 => self.choose::<i64>(context, outputs),
            dtype::S32 => self.choose::<i32>(context, outputs),
            dtype::S8 => self.choose::<i8>(context, outputs),
            _ => self.choose::<u8>(context, outputs),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
