//! Activation functions after a product or a cell's sums: a few of the tensor functions of `eltwise`.
#![forbid(unsafe_code)]

use super::elements::ElementPair;
use super::eltwise;
use super::isa::Isa;
use crate::ops::{Eltwise, weir_eltwise_op_value as Op};

pub use crate::ops::weir_activation_value as Activation;

/// Estimated time per element in nanoseconds, with vectors.
pub fn cost_ns(activation: Activation) -> f32 {
    match activation {
        Activation::WEIR_ACTIVATION_NONE => 0.0,
        Activation::WEIR_ACTIVATION_RELU => 0.05,
        _ => 0.5,
    }
}

/// Applies it to all of `x`, with the instructions of a supported level.
#[inline]
pub fn apply(activation: Activation, isa: Isa, x: &mut [f32]) {
    let op = match activation {
        Activation::WEIR_ACTIVATION_NONE => return,
        Activation::WEIR_ACTIVATION_RELU => Op::WEIR_ELTWISE_RELU,
        Activation::WEIR_ACTIVATION_GELU_ERF => Op::WEIR_ELTWISE_GELU_ERF,
        Activation::WEIR_ACTIVATION_GELU_TANH => Op::WEIR_ELTWISE_GELU_TANH,
        Activation::WEIR_ACTIVATION_SIGMOID => Op::WEIR_ELTWISE_SIGMOID,
        Activation::WEIR_ACTIVATION_TANH => Op::WEIR_ELTWISE_TANH,
    };
    eltwise::apply(isa, &Eltwise { op, alpha: 0.0, beta: 0.0 }, ElementPair::in_place(x));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_the_function_of_its_name() {
        for isa in Isa::available() {
            for (activation, at_one) in [
                (Activation::WEIR_ACTIVATION_NONE, 1.0),
                (Activation::WEIR_ACTIVATION_RELU, 1.0),
                (Activation::WEIR_ACTIVATION_GELU_ERF, 0.841_344_8),
                (Activation::WEIR_ACTIVATION_GELU_TANH, 0.841_192),
                (Activation::WEIR_ACTIVATION_SIGMOID, 0.731_058_6),
                (Activation::WEIR_ACTIVATION_TANH, 0.761_594_2),
            ] {
                let mut x = [1f32, f32::NAN, f32::INFINITY];
                apply(activation, isa, &mut x);
                assert!((x[0] - at_one).abs() < 1e-6 && x[1].is_nan(), "{isa:?} {activation:?}: {x:?}");
                let bounded =
                    matches!(activation, Activation::WEIR_ACTIVATION_SIGMOID | Activation::WEIR_ACTIVATION_TANH);
                assert_eq!(x[2], if bounded { 1.0 } else { f32::INFINITY }, "{isa:?} {activation:?}");
            }
        }
    }
}
