//! Activations, which products and convolutions end with.
//!
//! Chapter: Matrix products.
#![forbid(unsafe_code)]

use super::check::{not_nan, value_of};
use crate::base::{Error, Result};

/// A function applied to each element of a result before it is stored, with the parameters alpha (a) and beta (b) of
/// the operator's descriptor where the formula names them. The result has the bits that weir_kernel_create_eltwise
/// makes of the stored sum, if that is f32. On CUDA engines those with parameters are UNIMPLEMENTED.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum weir_activation_value {
    /// Nothing.
    #[default]
    WEIR_ACTIVATION_NONE = 0,
    /// max(x, 0). A NaN stays a NaN.
    WEIR_ACTIVATION_RELU = 1,
    /// x / 2 * (1 + erf(x / sqrt 2)).
    WEIR_ACTIVATION_GELU_ERF = 2,
    /// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
    WEIR_ACTIVATION_GELU_TANH = 3,
    /// 1 / (1 + e^-x).
    WEIR_ACTIVATION_SIGMOID = 4,
    /// Hyperbolic tangent.
    WEIR_ACTIVATION_TANH = 5,
    /// x where x >= 0, else a x: the leaky rectifier.
    WEIR_ACTIVATION_LEAKY_RELU = 6,
    /// min(max(x, a), b): b for all x if a > b. Either may be an infinity.
    WEIR_ACTIVATION_CLIP = 7,
    /// x / (1 + e^(-a x)); SiLU with a = 1.
    WEIR_ACTIVATION_SWISH = 8,
    /// min(max(a x + b, 0), 1).
    WEIR_ACTIVATION_HARDSIGMOID = 9,
    /// x min(max(a x + b, 0), 1).
    WEIR_ACTIVATION_HARDSWISH = 10,
}

/// An activation: one of enum weir_activation_value.
pub type weir_activation = u32;

impl weir_activation_value {
    /// The number of its parameters.
    pub fn parameters(self) -> usize {
        use weir_activation_value::*;
        match self {
            WEIR_ACTIVATION_LEAKY_RELU | WEIR_ACTIVATION_SWISH => 1,
            WEIR_ACTIVATION_CLIP | WEIR_ACTIVATION_HARDSIGMOID | WEIR_ACTIVATION_HARDSWISH => 2,
            _ => 0,
        }
    }
}

/// An activation with its parameters; those that it has none of are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activation {
    pub function: weir_activation_value,
    pub alpha: f32,
    pub beta: f32,
}

impl Activation {
    pub const NONE: Activation = Activation::of(weir_activation_value::WEIR_ACTIVATION_NONE);
    pub const RELU: Activation = Activation::of(weir_activation_value::WEIR_ACTIVATION_RELU);
    pub const GELU_ERF: Activation = Activation::of(weir_activation_value::WEIR_ACTIVATION_GELU_ERF);
    pub const GELU_TANH: Activation = Activation::of(weir_activation_value::WEIR_ACTIVATION_GELU_TANH);
    pub const SIGMOID: Activation = Activation::of(weir_activation_value::WEIR_ACTIVATION_SIGMOID);
    pub const TANH: Activation = Activation::of(weir_activation_value::WEIR_ACTIVATION_TANH);

    /// One without parameters.
    const fn of(function: weir_activation_value) -> Activation {
        Activation { function, alpha: 0.0, beta: 0.0 }
    }

    /// The members of a descriptor.
    pub(super) fn checked(activation: weir_activation, alpha: f32, beta: f32) -> Result<Activation> {
        let function = value_of!(
            "activation",
            activation,
            weir_activation_value {
                WEIR_ACTIVATION_NONE,
                WEIR_ACTIVATION_RELU,
                WEIR_ACTIVATION_GELU_ERF,
                WEIR_ACTIVATION_GELU_TANH,
                WEIR_ACTIVATION_SIGMOID,
                WEIR_ACTIVATION_TANH,
                WEIR_ACTIVATION_LEAKY_RELU,
                WEIR_ACTIVATION_CLIP,
                WEIR_ACTIVATION_SWISH,
                WEIR_ACTIVATION_HARDSIGMOID,
                WEIR_ACTIVATION_HARDSWISH,
            }
        )?;
        let parameters = function.parameters();
        for (i, (name, value)) in [("alpha", alpha), ("beta", beta)].into_iter().enumerate() {
            not_nan(name, value)?;
            if value != 0.0 && i >= parameters {
                let text = format!("desc->{name} is {value}, but the activation does not have it; expected 0");
                return Err(Error::invalid(text));
            }
        }
        Ok(Activation { function, alpha, beta })
    }
}
