//! Every setting of every kernel is in its key, and nothing else.
#![forbid(unsafe_code)]

use super::*;
use crate::abi::{weir_norm_op_value as norm, weir_reduce_op_value as reduce};
use crate::base::dtype;
use crate::kernel::builtin::fixture::{WordTensor, packed};
use crate::kernel::builtin::{GateOrder, Packed, PoolingOp, QuantizeDirection};
use crate::kernel::vector::activation::Activation;
use crate::kernel::vector::int8::Store;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::window::EdgeMode;
use crate::kernel::vector::{binary, eltwise};
use std::sync::Arc;

fn key(kernel: &impl KernelSettings) -> KernelKey {
    KernelKey::of([1, 0], kernel)
}

/// The kernel with each of the changes has another key than without, and than with each other change.
fn all_differ<K: KernelSettings + Clone>(kernel: &K, changes: &[fn(&mut K)]) {
    let changed = changes.iter().map(|change| {
        let mut kernel = kernel.clone();
        change(&mut kernel);
        key(&kernel)
    });
    let keys: Vec<_> = std::iter::once(key(kernel)).chain(changed).collect();
    for (i, one) in keys.iter().enumerate() {
        assert_eq!(keys.iter().position(|other| other == one), Some(i), "{} {i}", kernel.name());
    }
    assert!(key(kernel) == key(&kernel.clone()));
    assert!(
        key(kernel) != KernelKey::of([1, 1], kernel) && key(kernel) != KernelKey::of([2, 0], kernel),
        "{}",
        kernel.name()
    );
}

#[test]
fn each_type_is_another_kernel() {
    let keys = [key(&Add), key(&Relu), key(&Select), key(&Argmax { axis: 0 }), key(&Gather { axis: 0 })];
    for (i, one) in keys.iter().enumerate() {
        assert_eq!(keys.iter().position(|other| other == one), Some(i));
    }
}

#[test]
fn elements() {
    all_differ(&Binary { op: binary::Op::Add }, &[|k| k.op = binary::Op::Sub]);
    all_differ(
        &Eltwise { op: eltwise::Op::Relu, alpha: 0.0, beta: 0.0 },
        &[|k| k.op = eltwise::Op::Elu, |k| k.alpha = -0.0, |k| k.alpha = 1e-45, |k| k.beta = f32::INFINITY],
    );
    all_differ(
        &Convert { dtype: dtype::F32, scale: 1.0, shift: 0.0 },
        &[|k| k.dtype = dtype::S8, |k| k.scale = 1.0 + f32::EPSILON, |k| k.shift = 1.0],
    );
    all_differ(
        &Quantization { way: QuantizeDirection::Quantize, dtype: dtype::S8, zero_point: false, axis: 0 },
        &[|k| k.way = QuantizeDirection::Dequantize, |k| k.dtype = dtype::U8, |k| k.zero_point = true, |k| k.axis = -1],
    );
}

#[test]
fn rows_and_columns() {
    all_differ(&Argmax { axis: 0 }, &[|k| k.axis = -1]);
    all_differ(
        &Softmax { axis: 1, log: false, isa: Isa::Portable },
        &[|k| k.axis = -1, |k| k.log = true, |k| k.isa = Isa::Avx2],
    );
    all_differ(
        &Norm {
            op: norm::WEIR_NORM_LAYER,
            axis: 0,
            groups: 0,
            epsilon: 0.0,
            scale: false,
            shift: false,
            isa: Isa::Portable,
        },
        &[
            |k| k.op = norm::WEIR_NORM_RMS,
            |k| k.axis = 1,
            |k| k.groups = 1,
            |k| k.epsilon = 1e-5,
            |k| k.scale = true,
            |k| k.shift = true,
            |k| k.isa = Isa::Avx2,
        ],
    );
    let sum = Reduce {
        op: reduce::WEIR_REDUCE_SUM,
        axes: [0; 8],
        num_axes: 2,
        keep_dims: false,
        squares: false,
        eps: 0.0,
        isa: Isa::Portable,
    };
    all_differ(
        &sum,
        &[
            |k| k.op = reduce::WEIR_REDUCE_MAX,
            |k| k.axes[1] = 1,
            |k| k.num_axes = 1,
            |k| k.num_axes = 3,
            |k| k.keep_dims = true,
            |k| k.squares = true,
            |k| k.eps = 0.5,
            |k| k.isa = Isa::Avx2,
        ],
    );
    let with_garbage = Reduce { axes: [0, 0, 7, 7, 7, 7, 7, 7], ..sum };
    assert!(key(&with_garbage) == key(&sum), "axes behind the count are none");
}

#[test]
fn moving_elements() {
    all_differ(&Gather { axis: 0 }, &[|k| k.axis = 1]);
    all_differ(&Concat { axis: 0, inputs: 1 }, &[|k| k.axis = 1, |k| k.inputs = 2]);
    let reverse = Transpose::new(&[]).unwrap();
    all_differ(
        &reverse,
        &[
            |k| *k = Transpose::new(&[0]).unwrap(),
            |k| *k = Transpose::new(&[1, 0]).unwrap(),
            |k| {
                *k = Transpose::new(&[0, 1]).unwrap();
            },
        ],
    );
    all_differ(
        &Reshape::new(&[2, 3]).unwrap(),
        &[
            |k| *k = Reshape::new(&[3, 2]).unwrap(),
            |k| *k = Reshape::new(&[2, 3, 0]).unwrap(),
            |k| {
                *k = Reshape::new(&[2, -1]).unwrap();
            },
        ],
    );
    let slice = Slice { rank: 2, begin: [0; 8], end: [1; 8], step: [1; 8] };
    all_differ(&slice, &[|k| k.rank = 3, |k| k.begin[1] = 1, |k| k.end[1] = 2, |k| k.step[0] = -1]);
    let mut with_garbage = slice;
    (with_garbage.begin[2], with_garbage.end[7], with_garbage.step[5]) = (5, 6, 7);
    assert!(key(&with_garbage) == key(&slice));
    // The longest key.
    all_differ(&Slice { rank: 8, ..slice }, &[|k| k.step[7] = 2]);
    let pad = Pad { rank: 1, before: [0; 8], after: [0; 8], mode: PadMode::Constant(0.0) };
    all_differ(
        &pad,
        &[
            |k| k.rank = 2,
            |k| k.before[0] = 1,
            |k| k.after[0] = 1,
            |k| k.mode = PadMode::Constant(-0.0),
            |k| k.mode = PadMode::Constant(f64::NAN),
            |k| k.mode = PadMode::Reflect,
            |k| k.mode = PadMode::Edge,
        ],
    );
}

#[test]
fn windows_and_cells() {
    let windows = Windows::default();
    let conv = Conv { windows, groups: 1, bias: false, activation: Activation::None };
    all_differ(
        &conv,
        &[
            |k| k.groups = 2,
            |k| k.bias = true,
            |k| k.activation = Activation::Relu,
            |k| k.windows.strides[0] = 2,
            |k| k.windows.strides[1] = 1, // Not for signals.
            |k| k.windows.dilations[1] = 2,
            |k| k.windows.begin[0] = 2,
            |k| k.windows.end[0] = 2,
            |k| k.windows.edge = EdgeMode::Reflect,
        ],
    );
    all_differ(
        &Pooling { op: PoolingOp::Max, kernel: None, windows },
        &[
            |k| k.op = PoolingOp::Average,
            |k| k.kernel = Some([0; 2]),
            |k| k.kernel = Some([2, 1]),
            |k| k.windows.end[1] = 1,
        ],
    );
    all_differ(&Lstm { order: GateOrder::Onnx, bias: false }, &[|k| k.order = GateOrder::Torch, |k| k.bias = true]);
    all_differ(
        &Gru { order: GateOrder::Onnx, bias: false, linear_before_reset: false },
        &[|k| k.order = GateOrder::Torch, |k| k.bias = true, |k| k.linear_before_reset = true],
    );
}

#[test]
fn products() {
    let weights = || packed(&WordTensor::f32(&[1, 1], &[0.0]), false);
    let matmul = Matmul {
        transpose_a: false,
        transpose_b: false,
        bias: false,
        sum: false,
        activation: Activation::None,
        wide: false,
        weights: None,
    };
    all_differ(
        &matmul,
        &[
            |k| k.transpose_a = true,
            |k| k.transpose_b = true,
            |k| k.bias = true,
            |k| k.sum = true,
            |k| k.wide = true,
            |k| k.activation = Activation::Tanh,
        ],
    );
    let (one, two) = (weights(), weights());
    let with = |weights: &Arc<Packed>| key(&Matmul { weights: Some(Arc::clone(weights)), ..matmul.clone() });
    assert!(with(&one) == with(&one) && with(&one) != with(&two) && with(&one) != key(&matmul));
    all_differ(
        &MatmulInt8 {
            transpose_a: false,
            transpose_b: false,
            bias: false,
            scales: false,
            scale: 1.0,
            zero_a: 0,
            zero_b: 0,
            zero_c: 0,
            store: Store::S32,
            weights: None,
        },
        &[
            |k| k.transpose_a = true,
            |k| k.transpose_b = true,
            |k| k.bias = true,
            |k| k.scales = true,
            |k| k.scale = -1.0,
            |k| k.zero_a = 1,
            |k| k.zero_b = 1,
            |k| k.zero_c = 1,
            |k| k.store = Store::U8,
        ],
    );
}
