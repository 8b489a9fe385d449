//! Convolution.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result};
use crate::kernel::vector::conv::{self, Data};
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::{EpilogueStep, Kernel, KernelContext, OtherShape, Outputs, PreparedForms};
use crate::memory::Bytes;
use crate::ops::axis::folded;
use crate::ops::weir_binary_op_value::WEIR_BINARY_ADD;
use crate::ops::windows::MAX_STEP;
use crate::ops::{Activation, Conv};
use std::sync::Arc;

impl Builtin<Conv> {
    /// The sizes for these inputs, or the reason why they do not fit.
    fn sizes(&self, inputs: &[Desc]) -> Result<conv::ConvShape> {
        let [slices, rows, columns] = folded(self.axes(inputs)?);
        Ok(conv::ConvShape {
            images: usize::try_from(inputs[0].dims[0]).map_err(|_| Error::out_of_range("input 0: too many images"))?,
            groups: self.groups as usize,
            channels: (inputs[0].dims[1] / self.groups) as usize * slices.taps,
            filters: (inputs[1].dims[0] / self.groups) as usize,
            slices,
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

    fn with_epilogue(&self, step: EpilogueStep, _: &[Desc]) -> Option<Arc<dyn Kernel>> {
        if self.activation != Activation::NONE {
            return None;
        }
        let operator = match step {
            EpilogueStep::Unary(function) => Conv { activation: function.activation()?, ..**self },
            EpilogueStep::Binary { of, other: OtherShape::Same, .. } if of.op == WEIR_BINARY_ADD && !self.sum => {
                Conv { sum: true, ..**self }
            }
            // Some algorithms begin with the bias, which is not the same.
            EpilogueStep::Binary { .. } => return None,
        };
        Some(Arc::new(self.with_operator(operator)))
    }

    fn prepared(
        &self,
        inputs: &[Desc],
        constants: &[Option<Bytes<'_>>],
        _: &mut PreparedForms,
    ) -> Result<Option<Self>> {
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
        let mut inputs = [*context.inputs()[0].desc(); 4];
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
            addend: self.sum.then(|| input(context, self.num_inputs() - 1)),
        };
        conv::compute(&sizes, &data, MatrixMut::output(out, rows, all / rows), context)
    }
}
