//! Creates a unary elementwise function, see weir_eltwise_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown op, a parameter that is NaN or that the function does not have, alpha 0 for
//! WEIR_ELTWISE_SOFTPLUS, reserved not 0).
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::activation::{Activation, weir_activation_value};
use super::check::{not_nan, reserved, value_of};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::{Desc, Error, Result};
use std::mem::offset_of;

/// A unary elementwise function: one of enum weir_eltwise_op_value.
pub type weir_eltwise_op = u32;

/// Unary functions of x, with the parameters alpha (a) and beta (b) of weir_eltwise_desc where the formula names them.
/// Infinities give the limits of the function, and a NaN stays a NaN. 1 / x is WEIR_ELTWISE_POW with a = 1 and b = -1,
/// 1 / sqrt x with b = -0.5.
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
    /// The error function.
    WEIR_ELTWISE_ERF = 22,
    /// The greatest integer that is not above x.
    WEIR_ELTWISE_FLOOR = 23,
    /// The least integer that is not below x.
    WEIR_ELTWISE_CEIL = 24,
    /// x without what is behind the point.
    WEIR_ELTWISE_TRUNC = 25,
    /// 1 above 0, -1 below 0, and 0 for 0.
    WEIR_ELTWISE_SIGN = 26,
    /// sin x; a NaN for an infinity.
    WEIR_ELTWISE_SIN = 27,
    /// cos x; a NaN for an infinity.
    WEIR_ELTWISE_COS = 28,
    /// tan x; a NaN for an infinity.
    WEIR_ELTWISE_TAN = 29,
    /// The angle from -pi / 2 to pi / 2 whose sine x is; a NaN outside of -1 to 1.
    WEIR_ELTWISE_ASIN = 30,
    /// The angle from 0 to pi whose cosine x is; a NaN outside of -1 to 1.
    WEIR_ELTWISE_ACOS = 31,
    /// The angle from -pi / 2 to pi / 2 whose tangent x is.
    WEIR_ELTWISE_ATAN = 32,
    /// (e^x - e^-x) / 2.
    WEIR_ELTWISE_SINH = 33,
    /// (e^x + e^-x) / 2.
    WEIR_ELTWISE_COSH = 34,
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

/// A function of each element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eltwise {
    pub op: weir_eltwise_op_value,
    pub alpha: f32,
    pub beta: f32,
}

/// The activations, each with the function that it is.
const ACTIVATIONS: [(weir_activation_value, weir_eltwise_op_value); 10] = {
    use weir_activation_value::*;
    use weir_eltwise_op_value::*;
    [
        (WEIR_ACTIVATION_RELU, WEIR_ELTWISE_RELU),
        (WEIR_ACTIVATION_GELU_ERF, WEIR_ELTWISE_GELU_ERF),
        (WEIR_ACTIVATION_GELU_TANH, WEIR_ELTWISE_GELU_TANH),
        (WEIR_ACTIVATION_SIGMOID, WEIR_ELTWISE_SIGMOID),
        (WEIR_ACTIVATION_TANH, WEIR_ELTWISE_TANH),
        (WEIR_ACTIVATION_LEAKY_RELU, WEIR_ELTWISE_RELU),
        (WEIR_ACTIVATION_CLIP, WEIR_ELTWISE_CLIP),
        (WEIR_ACTIVATION_SWISH, WEIR_ELTWISE_SWISH),
        (WEIR_ACTIVATION_HARDSIGMOID, WEIR_ELTWISE_HARDSIGMOID),
        (WEIR_ACTIVATION_HARDSWISH, WEIR_ELTWISE_HARDSWISH),
    ]
};

impl Eltwise {
    /// The function of an activation; `None`: nothing is done.
    pub fn of(activation: Activation) -> Option<Eltwise> {
        let Activation { function, alpha, beta } = activation;
        let (_, op) = ACTIVATIONS.iter().find(|(of, _)| *of == function)?;
        Some(Eltwise { op: *op, alpha, beta })
    }

    /// The activation that is this function, if there is one.
    pub fn activation(&self) -> Option<Activation> {
        let Eltwise { op, alpha, beta } = *self;
        let has = |parameters: usize| (parameters > 0 || alpha == 0.0) && (parameters > 1 || beta == 0.0);
        let (function, _) = ACTIVATIONS.iter().find(|(function, of)| *of == op && has(function.parameters()))?;
        Some(Activation { function: *function, alpha, beta })
    }

    /// A function with its parameters; those that it has none of are 0.
    pub fn desc(op: weir_eltwise_op_value, alpha: f32, beta: f32) -> weir_eltwise_desc {
        weir_eltwise_desc { struct_size: size_of::<weir_eltwise_desc>(), op: op as u32, alpha, beta, reserved: 0 }
    }

    /// Its name, and the number of its parameters.
    fn facts(op: weir_eltwise_op_value) -> (&'static str, usize) {
        use weir_eltwise_op_value::*;
        match op {
            WEIR_ELTWISE_RELU => ("relu", 1),
            WEIR_ELTWISE_ELU => ("elu", 1),
            WEIR_ELTWISE_GELU_ERF => ("gelu_erf", 0),
            WEIR_ELTWISE_GELU_TANH => ("gelu_tanh", 0),
            WEIR_ELTWISE_TANH => ("tanh", 0),
            WEIR_ELTWISE_SIGMOID => ("sigmoid", 0),
            WEIR_ELTWISE_SWISH => ("swish", 1),
            WEIR_ELTWISE_EXP => ("exp", 0),
            WEIR_ELTWISE_LOG => ("log", 0),
            WEIR_ELTWISE_SQRT => ("sqrt", 0),
            WEIR_ELTWISE_SQUARE => ("square", 0),
            WEIR_ELTWISE_ABS => ("abs", 0),
            WEIR_ELTWISE_NEG => ("neg", 0),
            WEIR_ELTWISE_CLIP => ("clip", 2),
            WEIR_ELTWISE_LINEAR => ("linear", 2),
            WEIR_ELTWISE_POW => ("pow", 2),
            WEIR_ELTWISE_HARDSIGMOID => ("hardsigmoid", 2),
            WEIR_ELTWISE_HARDSWISH => ("hardswish", 2),
            WEIR_ELTWISE_ROUND => ("round", 0),
            WEIR_ELTWISE_MISH => ("mish", 0),
            WEIR_ELTWISE_SOFTPLUS => ("softplus", 1),
            WEIR_ELTWISE_ERF => ("erf", 0),
            WEIR_ELTWISE_FLOOR => ("floor", 0),
            WEIR_ELTWISE_CEIL => ("ceil", 0),
            WEIR_ELTWISE_TRUNC => ("trunc", 0),
            WEIR_ELTWISE_SIGN => ("sign", 0),
            WEIR_ELTWISE_SIN => ("sin", 0),
            WEIR_ELTWISE_COS => ("cos", 0),
            WEIR_ELTWISE_TAN => ("tan", 0),
            WEIR_ELTWISE_ASIN => ("asin", 0),
            WEIR_ELTWISE_ACOS => ("acos", 0),
            WEIR_ELTWISE_ATAN => ("atan", 0),
            WEIR_ELTWISE_SINH => ("sinh", 0),
            WEIR_ELTWISE_COSH => ("cosh", 0),
        }
    }
}

impl Operator for Eltwise {
    type Desc = weir_eltwise_desc;
    const NAME: &'static str = "eltwise";
    const SETTINGS: &'static [Setting<weir_eltwise_desc>] = &[
        Setting::float("alpha", offset_of!(weir_eltwise_desc, alpha)).of_values(),
        Setting::float("beta", offset_of!(weir_eltwise_desc, beta)).of_values(),
    ];

    fn stand_in(desc: &mut weir_eltwise_desc) {
        if desc.op == weir_eltwise_op_value::WEIR_ELTWISE_SOFTPLUS as weir_eltwise_op && desc.alpha == 0.0 {
            desc.alpha = 1.0;
        }
    }

    fn new(desc: &mut weir_eltwise_desc, _: Option<PackedShape>) -> Result<Eltwise> {
        let &mut weir_eltwise_desc { op, alpha, beta, reserved: zero, .. } = desc;
        reserved(zero)?;
        let op = value_of!(
            "op",
            op,
            weir_eltwise_op_value {
                WEIR_ELTWISE_RELU,
                WEIR_ELTWISE_ELU,
                WEIR_ELTWISE_GELU_ERF,
                WEIR_ELTWISE_GELU_TANH,
                WEIR_ELTWISE_TANH,
                WEIR_ELTWISE_SIGMOID,
                WEIR_ELTWISE_SWISH,
                WEIR_ELTWISE_EXP,
                WEIR_ELTWISE_LOG,
                WEIR_ELTWISE_SQRT,
                WEIR_ELTWISE_SQUARE,
                WEIR_ELTWISE_ABS,
                WEIR_ELTWISE_NEG,
                WEIR_ELTWISE_CLIP,
                WEIR_ELTWISE_LINEAR,
                WEIR_ELTWISE_POW,
                WEIR_ELTWISE_HARDSIGMOID,
                WEIR_ELTWISE_HARDSWISH,
                WEIR_ELTWISE_ROUND,
                WEIR_ELTWISE_MISH,
                WEIR_ELTWISE_SOFTPLUS,
                WEIR_ELTWISE_ERF,
                WEIR_ELTWISE_FLOOR,
                WEIR_ELTWISE_CEIL,
                WEIR_ELTWISE_TRUNC,
                WEIR_ELTWISE_SIGN,
                WEIR_ELTWISE_SIN,
                WEIR_ELTWISE_COS,
                WEIR_ELTWISE_TAN,
                WEIR_ELTWISE_ASIN,
                WEIR_ELTWISE_ACOS,
                WEIR_ELTWISE_ATAN,
                WEIR_ELTWISE_SINH,
                WEIR_ELTWISE_COSH,
            }
        )?;
        for (i, (name, value)) in [("alpha", alpha), ("beta", beta)].into_iter().enumerate() {
            not_nan(name, value)?;
            if value != 0.0 && i >= Eltwise::facts(op).1 {
                let text = format!("desc->{name} is {value}, but the function does not have it; expected 0");
                return Err(Error::invalid(text));
            }
        }
        if op == weir_eltwise_op_value::WEIR_ELTWISE_SOFTPLUS && alpha == 0.0 {
            return Err(Error::invalid("desc->alpha is 0, but softplus divides by it"));
        }
        Ok(Eltwise { op, alpha, beta })
    }

    fn name(&self) -> &'static str {
        Eltwise::facts(self.op).0
    }

    fn dim_from(&self, _: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        [Some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_floats(inputs)?;
        Ok(inputs[0])
    }
}
