//! The node that compile adds where an output of the program is an input, a constant, or another output: it copies.
#![forbid(unsafe_code)]

use crate::base::{Desc, Result};
use crate::kernel::{Kernel, KernelContext, Outputs};

pub(in crate::graph) struct CopyKernel;

impl Kernel for CopyKernel {
    fn name(&self) -> &str {
        "copy"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(inputs.to_vec())
    }

    fn cost_ns(&self, inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        // About 10 bytes per nanosecond.
        inputs[0].bytes().map_or(0, |bytes| 100 + bytes as u64 / 10)
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        outputs.only().copy_from(context.input(0));
        Ok(())
    }
}

/// The same for a value whose shape only a run knows.
pub(in crate::graph) struct CopyOpen;

impl Kernel for CopyOpen {
    fn name(&self) -> &str {
        "copy"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(inputs.to_vec())
    }

    fn is_open(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        let input = context.input(0);
        // A slot that a fixed shape goes into has its memory already.
        if !outputs.desc(0).is_concrete() {
            outputs.allocate(context, 0, input.desc().shape())?;
        }
        outputs.only().copy_from(input);
        Ok(())
    }
}
