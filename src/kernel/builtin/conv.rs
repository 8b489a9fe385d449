//! Convolution.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::{Desc, Error, Result};
use crate::kernel::vector::conv::{self, Data};
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::Bytes;
use crate::ops::{Conv, Operator};

impl Builtin<Conv> {
    /// The sizes for these inputs, or the reason why they do not fit.
    fn sizes(&self, inputs: &[Desc]) -> Result<conv::ConvShape> {
        let (rows, columns) = self.axes(inputs)?;
        Ok(conv::ConvShape {
            images: usize::try_from(inputs[0].dims[0]).map_err(|_| Error::out_of_range("input 0: too many images"))?,
            groups: self.groups as usize,
            channels: (inputs[0].dims[1] / self.groups) as usize,
            filters: (inputs[1].dims[0] / self.groups) as usize,
            rows,
            columns,
            activation: self.activation,
        })
    }
}

impl BuiltinOperation for Builtin<Conv> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        self.sizes(inputs).map_or(0, |sizes| conv::scratch_bytes(&sizes))
    }

    fn prepared(&self, inputs: &[Desc], constants: &[Option<Bytes<'_>>]) -> Result<Option<Self>> {
        let Some(weights) = constants[1] else { return Ok(None) };
        let weights = &weights.read::<f32>()[..elements(&inputs[1])];
        let filters = conv::packed(self.isa, &self.sizes(inputs)?, weights)?;
        Ok(filters.map(|filters| self.with_filters(filters)))
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.sizes(inputs).map_or(0, |sizes| sizes.cost_ns()).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let mut inputs = [*context.inputs()[0].desc(); 3];
        for (desc, view) in inputs.iter_mut().zip(context.inputs()) {
            *desc = *view.desc();
        }
        let sizes = self.sizes(&inputs[..self.num_inputs()])?;
        let out = outputs.only();
        let all = elements(out.desc());
        if all == 0 {
            return Ok(());
        }
        let rows = sizes.images * sizes.groups * sizes.filters;
        let data = Data {
            x: input(context, 0),
            weights: input(context, 1),
            packed: self.filters.as_deref(),
            bias: self.bias.then(|| input(context, 2)),
        };
        conv::compute(&sizes, &data, MatrixMut::output(out, rows, all / rows), context)
    }
}
