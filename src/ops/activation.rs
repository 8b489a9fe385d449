//! Activations, which products and convolutions end with.
//!
//! Chapter: Matrix products.
#![forbid(unsafe_code)]

use super::check::value_of;
use crate::base::Result;

/// A function applied to each element of a result before it is stored.
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
}

/// An activation: one of enum weir_activation_value.
pub type weir_activation = u32;

/// The activation with this number.
pub(super) fn checked(activation: weir_activation) -> Result<weir_activation_value> {
    value_of!(
        "activation",
        activation,
        weir_activation_value {
            WEIR_ACTIVATION_NONE,
            WEIR_ACTIVATION_RELU,
            WEIR_ACTIVATION_GELU_ERF,
            WEIR_ACTIVATION_GELU_TANH,
            WEIR_ACTIVATION_SIGMOID,
            WEIR_ACTIVATION_TANH,
        }
    )
}
