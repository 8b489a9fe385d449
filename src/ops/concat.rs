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

    fn dim_from(&self, inputs: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        let is_other = signature::axis(self.axis, &inputs[0]).is_ok_and(|axis| axis != dim);
        [is_other.then_some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let axis = signature::axis(self.axis, &inputs[0])?;
        let mut output = inputs[0];
        output.dims[axis] = ANY_DIM;
        // `None`: the size of some input is open.
        let mut sum = Some(0i64);
        for (i, input) in inputs.iter().enumerate() {
            if signature::check_fit("input", &[output], std::slice::from_ref(input)).is_err() {
                return Err(signature::mismatch("input", i, &output.text(), input));
            }
            let sizes = output.dims.iter_mut().zip(input.dims).enumerate().filter(|(at, _)| *at != axis);
            sizes.for_each(|(_, (dim, size))| *dim = signature::known(*dim, size));
            let more =
                || Error::out_of_range(format!("the inputs have more elements along axis {axis} than can be counted"));
            sum = match (sum, input.dims[axis]) {
                (None, _) | (_, ANY_DIM) => None,
                (Some(sum), size) => Some(sum.checked_add(size).ok_or_else(more)?),
            };
        }
        output.dims[axis] = sum.unwrap_or(ANY_DIM);
        output.check_open()
    }
}
