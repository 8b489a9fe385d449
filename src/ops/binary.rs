//! Creates a binary elementwise function, see weir_binary_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown op, rounding or overflow, reserved not 0).
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::broadcast;
use super::check::{reserved, value_of};
use super::number::{weir_overflow, weir_overflow_value, weir_rounding, weir_rounding_value};
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
    /// a / b; of integers rounded as weir_binary_desc says.
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
    /// The remainder a - b q, where q is a / b rounded as weir_binary_desc says: with WEIR_ROUNDING_ZERO that of C
    /// (fmod and %), with the sign of a; with WEIR_ROUNDING_FLOOR that of Python and NumPy, with the sign of b; with
    /// WEIR_ROUNDING_NEAREST that of IEEE 754. Of floats a NaN if b is 0 or a is infinite.
    WEIR_BINARY_REM = 14,
}

/// Binary elementwise kernel with broadcasting: shapes are aligned at the last dimension, and a
/// dimension of 1 is broadcast. Inputs: a and b, both f32, bf16, f16, s64, s32, s8 or u8; for WEIR_BINARY_EQ and the
/// other comparisons, WEIR_BINARY_MIN (and) and WEIR_BINARY_MAX (or) also bool. Output: of the same type, in memory of
/// its own or in that of an operand that has its shape; or, if the function compares, bool in memory of its own.
///
/// Floats are computed in f32. Integers are computed exactly: quotients are rounded toward zero, as in C, and what the
/// type cannot hold wraps around, as in NumPy, unless `rounding` and `overflow` say otherwise. An integer divided by 0
/// is 0, or, with WEIR_OVERFLOW_SATURATE, the greatest or the least integer for a above or below 0; its remainder is 0.
/// Integers have no WEIR_BINARY_POW.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_binary_desc {
    /// sizeof(weir_binary_desc) of the caller's header.
    pub struct_size: usize,
    /// The function.
    pub op: weir_binary_op,
    /// Reserved, 0.
    pub reserved: u32,
    /// How quotients are rounded, those of integers and of WEIR_BINARY_REM: one of weir_rounding_value. Other functions
    /// do not look at it.
    pub rounding: weir_rounding,
    /// How integers that the type cannot hold are stored: one of weir_overflow_value. Floats do not look at it.
    pub overflow: weir_overflow,
}

impl weir_binary_op_value {
    /// Whether the result is a truth value.
    pub fn compares(self) -> bool {
        use weir_binary_op_value::*;
        (WEIR_BINARY_EQ as u32..=WEIR_BINARY_GE as u32).contains(&(self as u32))
    }
}

/// A function of two elements, with broadcasting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binary {
    pub op: weir_binary_op_value,
    pub rounding: weir_rounding_value,
    pub overflow: weir_overflow_value,
}

impl Binary {
    /// A function with the defaults of C.
    pub const fn of(op: weir_binary_op_value) -> Binary {
        use weir_overflow_value::WEIR_OVERFLOW_WRAP;
        use weir_rounding_value::WEIR_ROUNDING_ZERO;
        Binary { op, rounding: WEIR_ROUNDING_ZERO, overflow: WEIR_OVERFLOW_WRAP }
    }

    /// The same in the form of C.
    pub fn desc(op: weir_binary_op_value) -> weir_binary_desc {
        let struct_size = size_of::<weir_binary_desc>();
        weir_binary_desc { struct_size, op: op as u32, reserved: 0, rounding: 0, overflow: 0 }
    }
}

impl Operator for Binary {
    type Desc = weir_binary_desc;
    const NAME: &'static str = "binary";

    fn new(desc: &mut weir_binary_desc, _: Option<PackedShape>) -> Result<Binary> {
        reserved(desc.reserved)?;
        let op = value_of!(
            "op",
            desc.op,
            weir_binary_op_value {
                WEIR_BINARY_ADD,
                WEIR_BINARY_SUB,
                WEIR_BINARY_MUL,
                WEIR_BINARY_DIV,
                WEIR_BINARY_MIN,
                WEIR_BINARY_MAX,
                WEIR_BINARY_POW,
                WEIR_BINARY_EQ,
                WEIR_BINARY_NE,
                WEIR_BINARY_LT,
                WEIR_BINARY_LE,
                WEIR_BINARY_GT,
                WEIR_BINARY_GE,
                WEIR_BINARY_REM,
            }
        )?;
        let (rounding, overflow) = (weir_rounding_value::of(desc.rounding)?, weir_overflow_value::of(desc.overflow)?);
        Ok(Binary { op, rounding, overflow })
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
            WEIR_BINARY_REM => "rem",
        }
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn dim_from(&self, inputs: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        let rank = inputs.iter().map(|input| input.shape().len()).max().unwrap_or(0);
        // Of a size that is not there, or 1, the other one decides.
        let of = |input: usize| {
            let at = (dim + inputs[input].shape().len()).checked_sub(rank)?;
            (inputs[input].dims[at] != 1).then_some((input, at))
        };
        match (of(0), of(1)) {
            (None, other) => [other, None],
            both => both.into(),
        }
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let is_power = self.op == weir_binary_op_value::WEIR_BINARY_POW;
        let taken = match inputs[0].dtype {
            dtype::F32 | dtype::BF16 | dtype::F16 => true,
            dtype::BOOL => {
                use weir_binary_op_value::*;
                self.op.compares() || matches!(self.op, WEIR_BINARY_MIN | WEIR_BINARY_MAX)
            }
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
