//! Creates a concatenation, see weir_concat_desc.
//!
//! Errors: OUT_OF_RANGE (num_inputs, axis outside -8..7).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::axis;
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::abi::weir_limit::WEIR_MAX_ARGS;
use crate::base::{Desc, Error, Result, desc::ANY_DIM};

/// Concatenation of tensors along an axis. They have one type, and the same size in all other dimensions.
///
/// Inputs: num_inputs tensors. Output: as the inputs; its size along the axis is the sum of theirs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_concat_desc {
    /// sizeof(weir_concat_desc) of the caller's header.
    pub struct_size: usize,
    /// 1 to WEIR_MAX_ARGS.
    pub num_inputs: u32,
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
}

/// Tensors one behind the other along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Concat {
    pub axis: i32,
    pub inputs: usize,
}

impl Operator for Concat {
    type Desc = weir_concat_desc;
    const NAME: &'static str = "concat";
    const IS_OPEN: bool = false;

    fn new(desc: &mut weir_concat_desc, _: Option<PackedShape>) -> Result<Concat> {
        let (inputs, most) = (desc.num_inputs, WEIR_MAX_ARGS as u32);
        if !(1..=most).contains(&inputs) {
            return Err(Error::out_of_range(format!("desc->num_inputs is {inputs}, expected 1 to {most}")));
        }
        Ok(Concat { axis: axis(desc.axis)?, inputs: inputs as usize })
    }

    fn num_inputs(&self) -> usize {
        self.inputs
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let axis = signature::axis(self.axis, &inputs[0])?;
        let mut pattern = inputs[0];
        pattern.dims[axis] = ANY_DIM;
        let mut sum = 0i64;
        for (i, input) in inputs.iter().enumerate() {
            if !pattern.matches(input) {
                return Err(signature::mismatch("input", i, &pattern.text(), input));
            }
            sum = sum.checked_add(input.dims[axis]).ok_or_else(|| {
                Error::out_of_range(format!("the inputs have more elements along axis {axis} than can be counted"))
            })?;
        }
        let mut output = inputs[0];
        output.dims[axis] = sum;
        output.check()
    }
}
