//! Activation functions after a product or a cell's sums: a few of the tensor functions of `eltwise`.
#![forbid(unsafe_code)]

use super::elements::ElementPair;
use super::eltwise::{self, Eltwise, Op};
use super::isa::Isa;

/// A function applied to each element of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    #[default]
    None,
    Relu,
    GeluErf,
    GeluTanh,
    Sigmoid,
    Tanh,
}

impl Activation {
    /// Estimated time per element in nanoseconds, with vectors.
    pub fn cost_ns(self) -> f32 {
        match self {
            Activation::None => 0.0,
            Activation::Relu => 0.05,
            _ => 0.5,
        }
    }

    /// Applies it to all of `x`, with the instructions of a supported level.
    #[inline]
    pub fn apply(self, isa: Isa, x: &mut [f32]) {
        let op = match self {
            Activation::None => return,
            Activation::Relu => Op::Relu,
            Activation::GeluErf => Op::GeluErf,
            Activation::GeluTanh => Op::GeluTanh,
            Activation::Sigmoid => Op::Sigmoid,
            Activation::Tanh => Op::Tanh,
        };
        eltwise::apply(isa, &Eltwise { op, alpha: 0.0, beta: 0.0 }, ElementPair::in_place(x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_the_function_of_its_name() {
        for isa in Isa::available() {
            for (activation, at_one) in [
                (Activation::None, 1.0),
                (Activation::Relu, 1.0),
                (Activation::GeluErf, 0.841_344_8),
                (Activation::GeluTanh, 0.841_192),
                (Activation::Sigmoid, 0.731_058_6),
                (Activation::Tanh, 0.761_594_2),
            ] {
                let mut x = [1f32, f32::NAN, f32::INFINITY];
                activation.apply(isa, &mut x);
                assert!((x[0] - at_one).abs() < 1e-6 && x[1].is_nan(), "{isa:?} {activation:?}: {x:?}");
                let bounded = matches!(activation, Activation::Sigmoid | Activation::Tanh);
                assert_eq!(x[2], if bounded { 1.0 } else { f32::INFINITY }, "{isa:?} {activation:?}");
            }
        }
    }
}
