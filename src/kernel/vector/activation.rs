//! Activation functions after a product or a cell's sums: a few of the tensor functions of `eltwise`.
#![forbid(unsafe_code)]

use super::elements::ElementPair;
use super::eltwise;
use super::isa::Isa;
use crate::ops::Eltwise;
use crate::ops::weir_activation_value::{
    WEIR_ACTIVATION_CLIP, WEIR_ACTIVATION_LEAKY_RELU, WEIR_ACTIVATION_NONE, WEIR_ACTIVATION_RELU,
};

pub use crate::ops::Activation;

/// Estimated time per element in nanoseconds, with vectors.
pub fn cost_ns(activation: Activation) -> f32 {
    match activation.function {
        WEIR_ACTIVATION_NONE => 0.0,
        WEIR_ACTIVATION_RELU | WEIR_ACTIVATION_LEAKY_RELU | WEIR_ACTIVATION_CLIP => 0.05,
        _ => 0.5,
    }
}

/// Applies it to all of `x`, with the instructions of a supported level.
#[inline]
pub fn apply(activation: Activation, isa: Isa, x: &mut [f32]) {
    if let Some(function) = Eltwise::of(activation) {
        eltwise::apply(isa, &function, ElementPair::in_place(x));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ops::weir_activation_value::*;

    #[test]
    fn each_is_the_function_of_its_name() {
        for isa in Isa::levels() {
            let with = |function, alpha, beta| Activation { function, alpha, beta };
            for (activation, at_one) in [
                (Activation::NONE, 1.0),
                (Activation::RELU, 1.0),
                (Activation::GELU_ERF, 0.841_344_8),
                (Activation::GELU_TANH, 0.841_192),
                (Activation::SIGMOID, 0.731_058_6),
                (Activation::TANH, 0.761_594_2),
                (with(WEIR_ACTIVATION_LEAKY_RELU, 0.5, 0.0), 1.0),
                (with(WEIR_ACTIVATION_CLIP, -2.0, f32::INFINITY), 1.0),
                (with(WEIR_ACTIVATION_CLIP, -2.0, 0.5), 0.5),
                (with(WEIR_ACTIVATION_SWISH, 1.0, 0.0), 0.731_058_6),
                (with(WEIR_ACTIVATION_HARDSIGMOID, 0.25, 0.5), 0.75),
                (with(WEIR_ACTIVATION_HARDSWISH, 0.25, 0.5), 0.75),
            ] {
                let mut x = [1f32, f32::NAN, f32::INFINITY];
                apply(activation, isa, &mut x);
                assert!((x[0] - at_one).abs() < 1e-6 && x[1].is_nan(), "{isa:?} {activation:?}: {x:?}");
                let at_infinity = match activation.function {
                    WEIR_ACTIVATION_SIGMOID | WEIR_ACTIVATION_TANH | WEIR_ACTIVATION_HARDSIGMOID => 1.0,
                    WEIR_ACTIVATION_CLIP => activation.beta,
                    _ => f32::INFINITY,
                };
                assert_eq!(x[2], at_infinity, "{isa:?} {activation:?}");
            }
        }
    }
}
