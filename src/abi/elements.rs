//! Elementwise kernels.
//!
//! Chapter: Elements.
#![forbid(unsafe_code)]
use super::tensor::weir_dtype;

/// A unary elementwise function: one of enum weir_eltwise_op_value.
pub type weir_eltwise_op = u32;

/// Unary functions of x, with the parameters alpha (a) and beta (b) of weir_eltwise_desc where the formula names them.
/// Infinities give the limits of the function, and a NaN stays a NaN.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_eltwise_op_value {
    /// x where x >= 0, else a x: the rectifier, and with a > 0 the leaky one.
    WEIR_ELTWISE_RELU = 1,
    /// x where x >= 0, else a (e^x - 1).
    WEIR_ELTWISE_ELU = 2,
    /// x (1 + erf(x / sqrt 2)) / 2.
    WEIR_ELTWISE_GELU_ERF = 3,
    /// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
    WEIR_ELTWISE_GELU_TANH = 4,
    /// tanh x.
    WEIR_ELTWISE_TANH = 5,
    /// 1 / (1 + e^-x).
    WEIR_ELTWISE_SIGMOID = 6,
    /// x / (1 + e^(-a x)); SiLU with a = 1.
    WEIR_ELTWISE_SWISH = 7,
    /// e^x.
    WEIR_ELTWISE_EXP = 8,
    /// The natural logarithm.
    WEIR_ELTWISE_LOG = 9,
    /// The square root.
    WEIR_ELTWISE_SQRT = 10,
    /// x x.
    WEIR_ELTWISE_SQUARE = 11,
    /// |x|.
    WEIR_ELTWISE_ABS = 12,
    /// -x.
    WEIR_ELTWISE_NEG = 13,
    /// min(max(x, a), b): b for all x if a > b. Either may be an infinity.
    WEIR_ELTWISE_CLIP = 14,
    /// a x + b, as IEEE has it: a NaN of an infinity if a is 0.
    WEIR_ELTWISE_LINEAR = 15,
    /// a x^b, as the pow of C.
    WEIR_ELTWISE_POW = 16,
    /// min(max(a x + b, 0), 1).
    WEIR_ELTWISE_HARDSIGMOID = 17,
    /// x min(max(a x + b, 0), 1).
    WEIR_ELTWISE_HARDSWISH = 18,
    /// The nearest integer, the even one of two.
    WEIR_ELTWISE_ROUND = 19,
    /// x tanh(ln(1 + e^x)).
    WEIR_ELTWISE_MISH = 20,
    /// ln(1 + e^(a x)) / a; a is not 0.
    WEIR_ELTWISE_SOFTPLUS = 21,
}

/// Unary elementwise kernel for f32, bf16 or f16, computed in f32. Input: x. Output: as x, in the same memory or in
/// other memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_eltwise_desc {
    /// sizeof(weir_eltwise_desc) of the caller's header.
    pub struct_size: usize,
    /// The function.
    pub op: weir_eltwise_op,
    /// A parameter of the function; 0 if it has none.
    pub alpha: f32,
    /// A second one; 0 if it has none.
    pub beta: f32,
    /// Reserved, 0.
    pub reserved: u32,
}

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

/// Elementwise choice: a where the condition holds, else b, with broadcasting of all three as in weir_binary_desc.
/// Inputs: condition, bool; a and b of one type, any but s64. Output: of that type.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_select_desc {
    /// sizeof(weir_select_desc) of the caller's header.
    pub struct_size: usize,
}

/// Conversion to another storage type: x scale + shift, between all types but s64. Input: x. Output: the same shape.
///
/// Computed in f32. An integer is rounded to nearest, ties to even, and saturates; a NaN becomes 0; as a bool
/// everything but 0 becomes 1. With scale 1 and shift 0, values that both types can hold are exact, in s32 too.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_convert_desc {
    /// sizeof(weir_convert_desc) of the caller's header.
    pub struct_size: usize,
    /// The type of the output, not s64.
    pub dtype: weir_dtype,
    /// The factor; 0 stands for 1.
    pub scale: f32,
    /// Added after that.
    pub shift: f32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// Quantization: round(x / scale) + zero_point, saturated. Inputs: x, f32, bf16 or f16; scale, f32; with
/// WEIR_QUANTIZE_ZERO_POINT zero_point, s32. Output: the shape of x, s8, u8 or s32.
///
/// scale and zero_point have one element (of rank 0 or 1), for the whole tensor, or as many as x has along the axis.
/// Rounding is to nearest, ties to even; a NaN becomes 0. A zero point beyond 2^24 is rounded to f32.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_quantize_desc {
    /// sizeof(weir_quantize_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_quantize_flags.
    pub flags: u64,
    /// The type of the output.
    pub dtype: weir_dtype,
    /// The axis of scale and zero_point, unless they have one element; negative counts from the end, -1 = last.
    pub axis: i32,
}

/// Flags of weir_quantize_desc and weir_dequantize_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_quantize_flags {
    /// A third input, zero_point. Without it zero points are 0.
    WEIR_QUANTIZE_ZERO_POINT = 1,
}

/// Dequantization: (x - zero_point) scale. Inputs: x, s8, u8 or s32; scale and zero_point as in weir_quantize_desc.
/// Output: the shape of x, f32, bf16 or f16. Computed in f32.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_dequantize_desc {
    /// sizeof(weir_dequantize_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_quantize_flags.
    pub flags: u64,
    /// The type of the output; 0 stands for WEIR_F32.
    pub dtype: weir_dtype,
    /// As in weir_quantize_desc.
    pub axis: i32,
}
