//! Convolution.
#![forbid(unsafe_code)]

use super::window::{Windows, check_data, output};
use super::{LEAST_NS, elements, input};
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};
use crate::kernel::vector::activation::Activation;
use crate::kernel::vector::conv::{self, Data};
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::{Kernel, KernelContext, Outputs, signature};

/// x [N, C, W] or [N, C, H, W], weights [O, C / groups, KW] or [O, C / groups, KH, KW], and `bias[O]` on request.
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    pub windows: Windows,
    /// At least 1.
    pub groups: i64,
    pub bias: bool,
    pub activation: Activation,
}

impl Conv {
    /// The sizes for these inputs, or the reason why they do not fit.
    fn sizes(&self, inputs: &[Desc]) -> Result<conv::ConvShape> {
        let (x, weights) = (&inputs[0], &inputs[1]);
        check_data(x)?;
        let channels = x.dims[1];
        if channels < 1 || channels % self.groups != 0 {
            let expected = format!("a multiple of {} channels", self.groups);
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        let mut pattern = Desc::new(dtype::F32, &[ANY_DIM; 4][..x.rank as usize]);
        pattern.dims[1] = channels / self.groups;
        signature::check("input", &[*x, pattern], &inputs[..2])?;
        let filters = weights.dims[0];
        if filters < 1 || filters % self.groups != 0 {
            let expected = format!("a multiple of {} filters", self.groups);
            return Err(signature::mismatch("input", 1, &expected, weights));
        }
        if self.bias {
            signature::check("input", &[*x, pattern, Desc::new(dtype::F32, &[filters])], inputs)?;
        }
        let (rows, columns) = self.windows.axes(x, &weights.shape()[2..], "of the filters (input 1)")?;
        Ok(conv::ConvShape {
            images: usize::try_from(x.dims[0]).map_err(|_| Error::out_of_range("input 0: too many images"))?,
            groups: self.groups as usize,
            channels: (channels / self.groups) as usize,
            filters: (filters / self.groups) as usize,
            rows,
            columns,
            activation: self.activation,
        })
    }
}

impl Kernel for Conv {
    fn name(&self) -> &str {
        "conv"
    }

    fn num_inputs(&self) -> usize {
        2 + self.bias as usize
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let sizes = self.sizes(inputs)?;
        Ok(vec![output(&inputs[0], inputs[1].dims[0], (&sizes.rows, &sizes.columns))?])
    }

    fn scratch_bytes(&self, inputs: &[Desc], _outputs: &[Desc]) -> usize {
        self.sizes(inputs).map_or(0, |sizes| sizes.scratch_bytes())
    }

    fn cost_ns(&self, inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.sizes(inputs).map_or(0, |sizes| sizes.cost_ns()).max(LEAST_NS)
    }

    fn is_pure(&self) -> bool {
        true
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
        let data =
            Data { x: input(context, 0), weights: input(context, 1), bias: self.bias.then(|| input(context, 2)) };
        conv::compute(&sizes, &data, MatrixMut::output(out, rows, all / rows), context)
    }
}
