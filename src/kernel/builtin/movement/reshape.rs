//! The same elements in another shape.
#![forbid(unsafe_code)]

use super::{bytes_span, traffic_ns};
use crate::base::{Desc, Error, Result};
use crate::kernel::builtin::{Builtin, BuiltinOperation};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::overlaps;
use crate::ops::Reshape;

impl BuiltinOperation for Builtin<Reshape> {
    fn cost_ns(&self, _inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(output)
    }

    fn in_place_of(&self, _: usize) -> bool {
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
