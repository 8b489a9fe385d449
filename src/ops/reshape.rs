//! Creates a reshape, see weir_reshape_desc.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, a dimension below -1, two that are -1); OUT_OF_RANGE (rank above
//! WEIR_MAX_RANK).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{rank, reserved};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result};

/// The same elements, in their order, in another shape. In a graph the output takes over the memory of the input where
/// possible, and nothing is copied; on a stream x may be its own output.
///
/// Input: x. Output: x in the shape.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_reshape_desc {
    /// sizeof(weir_reshape_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of dimensions of the output.
    pub rank: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// The output's shape. One dimension may be -1: it follows from the number of elements.
    pub dims: [i64; 8],
}

/// The same elements in another shape, one of whose dimensions may be open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reshape {
    pub rank: usize,
    pub shape: [i64; MAX_RANK],
}

impl Operator for Reshape {
    type Desc = weir_reshape_desc;
    const NAME: &'static str = "reshape";
    const IS_OPEN: bool = false;

    fn new(desc: &mut weir_reshape_desc, _: Option<PackedShape>) -> Result<Reshape> {
        reserved(desc.reserved)?;
        let rank = rank(desc.rank)?;
        desc.dims[rank..].fill(0);
        if let Some(i) = desc.dims.iter().position(|&dim| dim < ANY_DIM) {
            let text = format!("desc->dims[{i}] is {}, expected -1 (the rest), 0 or more", desc.dims[i]);
            return Err(Error::invalid(text));
        }
        let mut open = (0..rank).filter(|&i| desc.dims[i] == ANY_DIM);
        if let (Some(first), Some(second)) = (open.next(), open.next()) {
            return Err(Error::invalid(format!("desc->dims[{second}] is -1, and so is desc->dims[{first}]")));
        }
        Ok(Reshape { rank, shape: desc.dims })
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
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
        output.check()
    }
}
