//! Creates a binary elementwise function, see weir_binary_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown op, reserved not 0).
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::broadcast;
use super::check::{reserved, value_of};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::{Desc, Result, dtype};

/// A binary elementwise function: one of enum weir_binary_op_value.
pub type weir_binary_op = u32;

/// Binary elementwise functions.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_binary_op_value {
    /// a + b.
    WEIR_BINARY_ADD = 1,
    /// a - b.
    WEIR_BINARY_SUB = 2,
    /// a b.
    WEIR_BINARY_MUL = 3,
    /// a / b.
    WEIR_BINARY_DIV = 4,
    /// The lesser one; a NaN if one is NaN.
    WEIR_BINARY_MIN = 5,
    /// The greater one; a NaN if one is NaN.
    WEIR_BINARY_MAX = 6,
    /// a^b, as the pow of C.
    WEIR_BINARY_POW = 7,
    /// a == b.
    WEIR_BINARY_EQ = 8,
    /// a != b: also if one is NaN, where all other comparisons are false.
    WEIR_BINARY_NE = 9,
    /// a < b.
    WEIR_BINARY_LT = 10,
    /// a <= b.
    WEIR_BINARY_LE = 11,
    /// a > b.
    WEIR_BINARY_GT = 12,
    /// a >= b.
    WEIR_BINARY_GE = 13,
}

/// Binary elementwise kernel with broadcasting: shapes are aligned at the last dimension, and a
/// dimension of 1 is broadcast. Inputs: a and b, both f32, bf16, f16, s32, s8 or u8; for WEIR_BINARY_EQ and the other
/// comparisons also bool. Output: of the same type, or bool if the function compares; it may be the memory of an
/// operand that has the output's shape and type.
///
/// Floats and bytes are computed in f32. Bytes saturate and are rounded to nearest, ties to even; a quotient that is a
/// NaN is 0 as an integer. s32 is computed exactly and wraps around; its quotients are those of f64, rounded and
/// saturated in the same way. Integers have no WEIR_BINARY_POW.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_binary_desc {
    /// sizeof(weir_binary_desc) of the caller's header.
    pub struct_size: usize,
    /// The function.
    pub op: weir_binary_op,
    /// Reserved, 0.
    pub reserved: u32,
}

impl weir_binary_op_value {
    /// Whether the result is a truth value.
    pub fn compares(self) -> bool {
        self as u32 >= weir_binary_op_value::WEIR_BINARY_EQ as u32
    }
}

/// A function of two elements, with broadcasting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binary {
    pub op: weir_binary_op_value,
}

impl Binary {
    /// The function in the form of C.
    pub fn desc(op: weir_binary_op_value) -> weir_binary_desc {
        weir_binary_desc { struct_size: size_of::<weir_binary_desc>(), op: op as u32, reserved: 0 }
    }
}

impl Operator for Binary {
    type Desc = weir_binary_desc;
    const NAME: &'static str = "binary";

    fn new(desc: &mut weir_binary_desc, _: Option<PackedShape>) -> Result<Binary> {
        reserved(desc.reserved)?;
        let op = value_of!("op", desc.op, weir_binary_op_value {
            WEIR_BINARY_ADD, WEIR_BINARY_SUB, WEIR_BINARY_MUL, WEIR_BINARY_DIV, WEIR_BINARY_MIN, WEIR_BINARY_MAX,
            WEIR_BINARY_POW, WEIR_BINARY_EQ, WEIR_BINARY_NE, WEIR_BINARY_LT, WEIR_BINARY_LE, WEIR_BINARY_GT,
            WEIR_BINARY_GE,
        })?;
        Ok(Binary { op })
    }

    fn name(&self) -> &'static str {
        use weir_binary_op_value::*;
        match self.op {
            WEIR_BINARY_ADD => "add",
            WEIR_BINARY_SUB => "sub",
            WEIR_BINARY_MUL => "mul",
            WEIR_BINARY_DIV => "div",
            WEIR_BINARY_MIN => "min",
            WEIR_BINARY_MAX => "max",
            WEIR_BINARY_POW => "pow",
            WEIR_BINARY_EQ => "eq",
            WEIR_BINARY_NE => "ne",
            WEIR_BINARY_LT => "lt",
            WEIR_BINARY_LE => "le",
            WEIR_BINARY_GT => "gt",
            WEIR_BINARY_GE => "ge",
        }
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_computes(inputs)?;
        let is_power = self.op == weir_binary_op_value::WEIR_BINARY_POW;
        let taken = match inputs[0].dtype {
            dtype::F32 | dtype::BF16 | dtype::F16 => true,
            dtype::BOOL => self.op.compares(),
            _ => !is_power,
        };
        if !taken {
            let expected = if is_power { "f32, f16 or bf16 elements" } else { "elements that are numbers" };
            return Err(signature::mismatch("input", 0, expected, &inputs[0]));
        }
        signature::check_like(inputs, 1, 0)?;
        broadcast::shape(inputs, if self.op.compares() { dtype::BOOL } else { inputs[0].dtype })
    }
}
