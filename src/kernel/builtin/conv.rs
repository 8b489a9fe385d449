//! Convolution.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result};
use crate::kernel::vector::conv::{self, Data};
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::Bytes;
use crate::ops::windows::MAX_STEP;
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
        let (mut x, axes) = (inputs[0], 2..inputs[0].shape().len());
        let is_open = x.dims[axes.clone()].contains(&ANY_DIM);
        x.dims[axes].iter_mut().filter(|dim| **dim == ANY_DIM).for_each(|dim| *dim = MAX_STEP);
        // Neither the batch nor a channel count of the input's own decides how the weights are read.
        (x.dims[0], x.dims[1]) = (1, inputs[1].dims[1] * self.groups);
        let sizes = self.sizes(&[x, inputs[1]])?;
        let filters = match is_open {
            true => conv::packed_for_smaller(self.isa, &sizes, weights)?,
            false => conv::packed(self.isa, &sizes, weights)?.into_iter().collect(),
        };
        Ok((!filters.is_empty()).then(|| self.with_filters(filters)))
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
            packed: self.filters.iter().find(|packed| conv::fits(self.isa, &sizes, packed)),
            bias: self.bias.then(|| input(context, 2)),
        };
        conv::compute(&sizes, &data, MatrixMut::output(out, rows, all / rows), context)
    }
}
