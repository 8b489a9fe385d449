//! Creates an elementwise choice between two tensors, see weir_select_desc. desc may be NULL.
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::broadcast;
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::{Desc, Result, dtype};

/// Elementwise choice: a where the condition holds, else b, with broadcasting of all three as in weir_binary_desc.
/// Inputs: condition, bool; a and b of one type, which may be any. Output: of that type.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_select_desc {
    /// sizeof(weir_select_desc) of the caller's header.
    pub struct_size: usize,
}

/// One of two elements where a condition holds, else the other, with broadcasting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Select;

impl Operator for Select {
    type Desc = weir_select_desc;
    const NAME: &'static str = "select";
    const DEFAULT: Option<weir_select_desc> = Some(weir_select_desc { struct_size: size_of::<weir_select_desc>() });

    fn new(_: &mut weir_select_desc, _: Option<PackedShape>) -> Result<Select> {
        Ok(Select)
    }

    fn num_inputs(&self) -> usize {
        3
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        if inputs[0].dtype != dtype::BOOL {
            return Err(signature::mismatch("input", 0, "bool elements", &inputs[0]));
        }
        signature::check_like(inputs, 2, 1)?;
        broadcast::shape(inputs, inputs[1].dtype)
    }
}
