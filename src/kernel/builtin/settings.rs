//! The settings that distinguish built-in kernels. Each struct is destructured completely, so that a new member cannot
//! be forgotten here.
#![forbid(unsafe_code)]

use super::movement::{Concat, Gather, Pad, PadMode, Reshape, Slice, Transpose};
use super::{
    Add, Argmax, Binary, Conv, Convert, Eltwise, Gru, Lstm, Matmul, MatmulInt8, Norm, Pooling, Quantization, Reduce,
    Relu, Select, Softmax, Windows,
};
use crate::kernel::cache::{KernelKey, KernelSettings};

macro_rules! settings {
    ($($kernel:pat => $type:ty, $key:ident: $body:expr;)*) => {
        $(impl KernelSettings for $type {
            fn settings(&self, $key: &mut KernelKey) {
                let $kernel = self;
                let _ = $body;
            }
        })*
    };
}

settings! {
    Add => Add, key: key;
    Relu => Relu, key: key;
    Select => Select, key: key;
    &Argmax { axis } => Argmax, key: key.int(axis.into());
    &Gather { axis } => Gather, key: key.int(axis.into());
    &Concat { axis, inputs } => Concat, key: key.int(axis.into()).word(inputs as u64);
    &Binary { op } => Binary, key: key.word(op as u64);
    &Eltwise { op, alpha, beta } => Eltwise, key: key.word(op as u64).float(alpha).float(beta);
    &Convert { dtype, scale, shift } => Convert, key: key.word(dtype.into()).float(scale).float(shift);
    &Quantization { way, dtype, zero_point, axis } => Quantization, key:
        key.word(way as u64).word(dtype.into()).flag(zero_point).int(axis.into());
    &Softmax { axis, log, isa } => Softmax, key: key.int(axis.into()).flag(log).word(isa as u64);
    &Reduce { op, axes, num_axes, keep_dims, squares, eps, isa } => Reduce, key: {
        key.word(op as u64).flag(keep_dims).flag(squares).float(eps).word(isa as u64);
        axes[..num_axes].iter().fold(key.word(num_axes as u64), |key, &axis| key.int(axis.into()))
    };
    &Norm { op, axis, groups, epsilon, scale, shift, isa } => Norm, key:
        key.word(op as u64).int(axis.into()).word(groups as u64).float(epsilon).flag(scale).flag(shift)
            .word(isa as u64);
    &Conv { windows, groups, bias, activation } => Conv, key:
        self::windows(key.int(groups).flag(bias).word(activation as u64), windows);
    &Pooling { op, kernel, windows } => Pooling, key:
        self::windows(key.word(op as u64).flag(kernel.is_some()).ints(&kernel.unwrap_or_default()), windows);
    &Lstm { order, bias } => Lstm, key: key.word(order as u64).flag(bias);
    &Gru { order, bias, linear_before_reset } => Gru, key: key.word(order as u64).flag(bias).flag(linear_before_reset);
    Matmul { transpose_a, transpose_b, bias, sum, activation, wide, weights } => Matmul, key:
        key.flag(*transpose_a).flag(*transpose_b).flag(*bias).flag(*sum).flag(*wide).word(*activation as u64)
            .identity(weights.as_deref());
    MatmulInt8 { transpose_a, transpose_b, bias, scales, scale, zero_a, zero_b, zero_c, store, weights } => MatmulInt8,
        key: key.flag(*transpose_a).flag(*transpose_b).flag(*bias).flag(*scales).float(*scale).int((*zero_a).into())
            .int((*zero_b).into()).int((*zero_c).into()).word(*store as u64).identity(weights.as_deref());
    &Transpose { permutation } => Transpose, key: match permutation {
        None => key.flag(false),
        Some((order, rank)) => order[..rank].iter().fold(key.flag(true), |key, &axis| key.word(axis as u64)),
    };
    &Reshape { shape, rank } => Reshape, key: key.ints(&shape[..rank]);
    Slice { rank, begin, end, step } => Slice, key:
        key.word(*rank as u64).ints(&begin[..*rank]).ints(&end[..*rank]).ints(&step[..*rank]);
    Pad { rank, before, after, mode } => Pad, key: {
        match *mode {
            PadMode::Constant(value) => key.word(0).double(value),
            PadMode::Reflect => key.word(1).word(0),
            PadMode::Edge => key.word(2).word(0),
        };
        key.word(*rank as u64).ints(&before[..*rank]).ints(&after[..*rank])
    };
}

/// Exactly as given: a stride of 0 means 1 where the axis exists, and no axis where it does not.
fn windows(key: &mut KernelKey, windows: Windows) -> &mut KernelKey {
    let Windows { strides, dilations, begin, end, edge } = windows;
    key.ints(&strides).ints(&dilations).ints(&begin).ints(&end).word(edge as u64)
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
