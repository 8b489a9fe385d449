//! The same elements in another shape.
#![forbid(unsafe_code)]

use super::{bytes_span, traffic_ns};
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result};
use crate::kernel::{Kernel, KernelContext, Outputs, signature};
use crate::memory::overlaps;

/// The elements in their order, in another shape. One of the sizes may be -1, to be inferred. Where the output shares
/// the input's memory nothing is done; otherwise the elements are copied.
#[derive(Clone, Copy, Debug)]
pub struct Reshape {
    pub(in crate::kernel::builtin) shape: [i64; MAX_RANK],
    pub(in crate::kernel::builtin) rank: usize,
}

impl Reshape {
    /// Refuses impossible sizes.
    pub fn new(shape: &[i64]) -> Result<Reshape> {
        let mut all = [0; MAX_RANK];
        all[..shape.len()].copy_from_slice(shape);
        if let Some(i) = shape.iter().position(|&dim| dim < ANY_DIM) {
            return Err(Error::invalid(format!("desc->dims[{i}] is {}, expected -1 (the rest), 0 or more", shape[i])));
        }
        let mut open = shape.iter().enumerate().filter(|(_, dim)| **dim == ANY_DIM).map(|(i, _)| i);
        if let (Some(first), Some(second)) = (open.next(), open.next()) {
            return Err(Error::invalid(format!("desc->dims[{second}] is -1, and so is desc->dims[{first}]")));
        }
        Ok(Reshape { shape: all, rank: shape.len() })
    }
}

impl Kernel for Reshape {
    fn name(&self) -> &str {
        "reshape"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        let input = &inputs[0];
        let mut output = Desc::new(input.dtype, &self.shape[..self.rank]);
        let wanted = output.text();
        let refused = || signature::mismatch("input", 0, &format!("as many elements as {wanted} has"), input);
        let elements = input.elements()?;
        if let Some(open) = output.shape().iter().position(|&dim| dim == ANY_DIM) {
            output.dims[open] = 1;
            let others = output.elements()?;
            if others == 0 || !elements.is_multiple_of(others) {
                return Err(refused());
            }
            output.dims[open] = (elements / others) as i64;
        }
        if output.elements()? != elements {
            return Err(refused());
        }
        Ok(vec![output.check()?])
    }

    fn cost_ns(&self, _inputs: &[Desc], outputs: &[Desc]) -> u64 {
        traffic_ns(&outputs[0])
    }

    fn in_place(&self) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (input, output) = (&context.inputs()[0], outputs.only());
        if input.data() == output.data() {
            return Ok(());
        }
        let bytes = output.desc().bytes()?;
        if overlaps((input.data(), bytes), (output.data(), bytes)) {
            return Err(Error::invalid("output 0 shares a part of its memory with input 0, expected all or nothing"));
        }
        let from = context.input(0).read_bytes();
        context.parallel_into(&bytes_span(bytes, 1), output.byte_shards(1), |to, claim| {
            to.copy_from_slice(&from[claim.begin()..claim.end()]);
            Ok(())
        })
    }
}
