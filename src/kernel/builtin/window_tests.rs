//! Convolution and pooling as kernels: shapes, refusals, special values, the same bits on all pools. The results of the
//! convolution algorithms are tested beside them.
#![forbid(unsafe_code)]

use super::Builtin;
use super::fixture::{WordTensor, check_pools, refusal, run};
use crate::base::{Desc, dtype};
use crate::kernel::vector::activation::Activation;
use crate::kernel::vector::window::EdgeMode;
use crate::ops::weir_pooling_op_value::*;
use crate::ops::{AxisSettings, Conv, Pooling, Windows};

const PLAIN: Conv = Conv { windows: windows(), groups: 1, bias: false, sum: false, activation: Activation::NONE };

const fn windows() -> Windows {
    let depth = AxisSettings { stride: 0, dilation: 0, begin: 0, end: 0 };
    Windows { strides: [0; 2], dilations: [0; 2], begin: [0; 2], end: [0; 2], depth, edge: EdgeMode::Zero }
}

fn f32s(dims: &[i64]) -> Desc {
    Desc::new(dtype::F32, dims)
}

#[test]
fn a_signal_and_an_image() {
    let x = WordTensor::f32(&[1, 1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let w = WordTensor::f32(&[1, 1, 3], &[1.0, 0.0, -1.0]);
    assert_eq!(run(&Builtin::new(PLAIN), &[x.clone(), w.clone()]).floats(), [-2.0, -2.0, -2.0]);
    let same = Conv { windows: Windows { begin: [1, 0], end: [1, 0], ..windows() }, bias: true, ..PLAIN };
    let bias = WordTensor::f32(&[1], &[10.0]);
    assert_eq!(run(&Builtin::new(same), &[x.clone(), w.clone(), bias]).floats(), [8.0, 8.0, 8.0, 8.0, 14.0]);
    let mirrored = Conv { windows: Windows { edge: EdgeMode::Reflect, ..same.windows }, ..PLAIN };
    assert_eq!(run(&Builtin::new(mirrored), &[x.clone(), w.clone()]).floats(), [0.0, -2.0, -2.0, -2.0, 0.0]);
    let relu = Conv { activation: Activation::RELU, ..PLAIN };
    assert_eq!(run(&Builtin::new(relu), &[x, w]).floats(), [0.0; 3]);
    let image = WordTensor::f32(&[1, 1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let strided = Conv { windows: Windows { strides: [1, 2], end: [1, 0], ..windows() }, ..PLAIN };
    let y = run(&Builtin::new(strided), &[image, WordTensor::f32(&[1, 1, 2, 1], &[1.0, 10.0])]);
    assert_eq!((y.desc, y.floats()), (f32s(&[1, 1, 2, 2]), vec![41.0, 63.0, 4.0, 6.0]));
}

#[test]
fn conv_without_images() {
    let y = run(&Builtin::new(PLAIN), &[WordTensor::f32(&[0, 3, 9], &[]), WordTensor::random(&[4, 3, 2], 1)]);
    assert_eq!(y.desc, f32s(&[0, 4, 8]));
}

#[test]
fn conv_gives_the_same_bits_on_all_pools() {
    let padded = Windows { begin: [1, 1], end: [1, 1], ..windows() };
    for (x, w, groups, windows) in [
        (&[2, 16, 14, 30][..], &[24, 16, 3, 3][..], 1, padded),
        (&[1, 64, 60, 61], &[64, 1, 3, 3], 64, padded),
        (&[3, 4, 600], &[70, 4, 256], 1, Windows { strides: [128, 0], ..windows() }),
        (&[1, 32, 5000], &[32, 8, 3], 4, Windows { dilations: [2, 0], ..windows() }),
    ] {
        let filters = w[0];
        let kernel = Conv { windows, groups, bias: true, sum: false, activation: Activation::GELU_TANH };
        check_pools(
            &Builtin::new(kernel),
            &[WordTensor::random(x, 1), WordTensor::random(w, 2), WordTensor::random(&[filters], 3)],
        );
    }
}

#[test]
fn conv_keeps_nan_and_infinity() {
    let mut x = [1.0f32; 40];
    (x[7], x[30]) = (f32::NAN, f32::INFINITY);
    let x = WordTensor::f32(&[1, 1, 40], &x);
    for filters in [1i64, 8] {
        let w = WordTensor::f32(&[filters, 1, 2], &vec![1.0; 2 * filters as usize]);
        let y = run(&Builtin::new(Conv { activation: Activation::RELU, ..PLAIN }), &[x.clone(), w]).floats();
        for line in y.chunks_exact(39) {
            assert!(line[6].is_nan() && line[7].is_nan() && line[8] == 2.0, "{line:?}");
            assert!(line[29] == f32::INFINITY && line[30] == f32::INFINITY && line[31] == 2.0, "{line:?}");
        }
    }
}

#[test]
fn conv_refuses_what_does_not_fit() {
    let grouped = Conv { groups: 3, ..PLAIN };
    let bias = Conv { bias: true, ..PLAIN };
    let two = Conv { windows: Windows { strides: [1, 1], ..windows() }, ..PLAIN };
    let mirrored = Conv { windows: Windows { begin: [4, 0], edge: EdgeMode::Reflect, ..windows() }, ..PLAIN };
    let cases: &[(Conv, &[Desc], &str)] = &[
        (
            PLAIN,
            &[f32s(&[1, 8]), f32s(&[4, 8, 3])],
            "input 0: expected f32[N,C,W], f32[N,C,H,W] or f32[N,C,D,H,W], got f32[1,8]",
        ),
        (
            PLAIN,
            &[Desc::new(dtype::S32, &[1, 8, 9]), f32s(&[4, 8, 3])],
            "input 0: expected f32[N,C,W], f32[N,C,H,W] or f32[N,C,D,H,W], got s32[1,8,9]",
        ),
        (PLAIN, &[f32s(&[1, 8, 9]), f32s(&[4, 7, 3])], "input 1: expected f32[?,8,?], got f32[4,7,3]"),
        (PLAIN, &[f32s(&[1, 8, 9]), f32s(&[4, 8, 3, 3])], "input 1: expected f32[?,8,?], got f32[4,8,3,3]"),
        (grouped, &[f32s(&[1, 8, 9]), f32s(&[4, 8, 3])], "input 0: expected a multiple of 3 channels, got f32[1,8,9]"),
        (grouped, &[f32s(&[1, 9, 9]), f32s(&[4, 3, 3])], "input 1: expected a multiple of 3 filters, got f32[4,3,3]"),
        (PLAIN, &[f32s(&[1, 0, 4]), f32s(&[2, 0, 3])], "input 0: expected at least 1 channel, got f32[1,0,4]"),
        (grouped, &[f32s(&[1, 9, 9]), f32s(&[0, 3, 3])], "input 1: expected at least 3 filters, got f32[0,3,3]"),
        (
            PLAIN,
            &[f32s(&[1, 1, 4]), f32s(&[2, 1, 0])],
            "input 0: dimension 2 of f32[1,1,4] needs at least 1 tap of the filters (input 1)",
        ),
        (bias, &[f32s(&[1, 8, 9]), f32s(&[4, 8, 3]), f32s(&[5])], "input 2: expected f32[4], got f32[5]"),
        (
            two,
            &[f32s(&[1, 8, 9]), f32s(&[4, 8, 3])],
            "input 0: expected an image, f32[?,?,?,?], as desc has strides, dilations or padding of two axes, got \
             f32[1,8,9]",
        ),
        (
            mirrored,
            &[f32s(&[1, 8, 4]), f32s(&[4, 8, 3])],
            "input 0: dimension 2 of f32[1,8,4] is too short to be mirrored in a padding of 4 and 0",
        ),
        (
            PLAIN,
            &[f32s(&[1, 8, 2]), f32s(&[4, 8, 3])],
            "input 0: dimension 2 of f32[1,8,2] with a padding of 0 and 0 is shorter than the 3 elements of the \
             filters (input 1)",
        ),
    ];
    for (kernel, inputs, message) in cases {
        assert_eq!(refusal(&Builtin::new(*kernel), inputs), *message);
    }
}

fn reference(kernel: &Pooling, x: &WordTensor, out: &Desc) -> Vec<f64> {
    let (dims, floats) = (x.desc.dims, x.floats());
    let image = x.desc.rank == 4;
    let (height, width) = if image { (dims[2], dims[3]) } else { (1, dims[2]) };
    let (out_height, out_width) = if image { (out.dims[2], out.dims[3]) } else { (1, out.dims[2]) };
    let axis = |i: usize| if image { i } else { 1 - i };
    let or_one = |pair: [i64; 2], i: usize| if !image && i == 0 { 1 } else { pair[axis(i)].max(1) };
    let before = |i: usize| if !image && i == 0 { 0 } else { kernel.windows.begin[axis(i)] };
    let taps = match kernel.kernel {
        None => [height, width],
        Some(taps) => [or_one(taps, 0), or_one(taps, 1)],
    };
    let mut result = Vec::new();
    for plane in 0..dims[0] * dims[1] {
        for (row, column) in (0..out_height).flat_map(|row| (0..out_width).map(move |column| (row, column))) {
            let (mut most, mut sum, mut count) = (f64::NEG_INFINITY, 0.0, 0);
            for (i, j) in (0..taps[0]).flat_map(|i| (0..taps[1]).map(move |j| (i, j))) {
                let y = row * or_one(kernel.windows.strides, 0) + i * or_one(kernel.windows.dilations, 0) - before(0);
                let x =
                    column * or_one(kernel.windows.strides, 1) + j * or_one(kernel.windows.dilations, 1) - before(1);
                if (0..height).contains(&y) && (0..width).contains(&x) {
                    let value = f64::from(floats[((plane * height + y) * width + x) as usize]);
                    (most, sum, count) = (most.max(value), sum + value, count + 1);
                }
            }
            result.push(match kernel.op {
                WEIR_POOLING_MAX => most,
                WEIR_POOLING_AVERAGE => sum / (taps[0] * taps[1]) as f64,
                WEIR_POOLING_AVERAGE_INSIDE => sum / f64::from(count.max(1)),
            });
        }
    }
    result
}

#[test]
fn pooling_agrees_with_its_definition_on_all_pools() {
    let plain = windows();
    for op in [WEIR_POOLING_MAX, WEIR_POOLING_AVERAGE, WEIR_POOLING_AVERAGE_INSIDE] {
        for (dims, kernel, windows) in [
            (&[2, 3, 17][..], Some([3, 0]), Windows { strides: [2, 0], begin: [1, 0], end: [2, 0], ..plain }),
            (&[1, 5, 9], Some([2, 0]), Windows { dilations: [3, 0], begin: [3, 0], ..plain }),
            (&[1, 2, 1], Some([2, 0]), Windows { dilations: [2, 0], begin: [1, 0], end: [1, 0], ..plain }),
            (&[2, 3, 13, 40], Some([3, 2]), Windows { begin: [1, 1], end: [1, 0], ..plain }),
            (&[1, 4, 30, 31], Some([2, 3]), Windows { strides: [2, 3], end: [0, 2], ..plain }),
            (&[2, 7, 5, 11], None, plain),
            (&[3, 2, 100], None, plain),
        ] {
            let kernel = Pooling { op, kernel, depth_kernel: 0, windows };
            let x = WordTensor::random(dims, 5);
            let y = run(&Builtin::new(kernel), std::slice::from_ref(&x));
            for (i, (got, want)) in y.floats().into_iter().zip(reference(&kernel, &x, &y.desc)).enumerate() {
                assert!(
                    f64::from(got) == want || (f64::from(got) - want).abs() < 3e-7,
                    "{kernel:?} {dims:?}: {i}: {got} for {want}"
                );
            }
            check_pools(&Builtin::new(kernel), &[x]);
        }
    }
}

#[test]
fn pooling_of_nan_and_infinity() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = WordTensor::f32(&[1, 1, 6], &[1.0, nan, 2.0, -inf, -inf, inf]);
    let max = Pooling { op: WEIR_POOLING_MAX, kernel: Some([2, 0]), depth_kernel: 0, windows: windows() };
    let y = run(&Builtin::new(max), std::slice::from_ref(&x)).floats();
    assert!(y[0].is_nan() && y[1].is_nan() && y[2..] == [2.0, -inf, inf], "{y:?}");
    assert!(run(&Builtin::new(Pooling { kernel: None, ..max }), std::slice::from_ref(&x)).floats()[0].is_nan());
    let average = Pooling { op: WEIR_POOLING_AVERAGE, ..max };
    let y = run(&Builtin::new(average), &[x]).floats();
    assert!(y[0].is_nan() && y[1].is_nan() && y[2] == -inf && y[3] == -inf && y[4].is_nan(), "{y:?}");
}

#[test]
fn pooling_refuses_what_does_not_fit() {
    let signal = Pooling { op: WEIR_POOLING_MAX, kernel: Some([3, 0]), depth_kernel: 0, windows: windows() };
    let image = Pooling { kernel: Some([3, 3]), ..signal };
    let global = Pooling { kernel: None, ..signal };
    let cases: &[(Pooling, Desc, &str)] = &[
        (signal, f32s(&[2, 9]), "input 0: expected f32[N,C,W], f32[N,C,H,W] or f32[N,C,D,H,W], got f32[2,9]"),
        (signal, f32s(&[1, 2, 9, 9]), "input 0: expected a signal, f32[?,?,?], as desc->kernel says, got f32[1,2,9,9]"),
        (image, f32s(&[1, 2, 9]), "input 0: expected an image, f32[?,?,?,?], as desc->kernel says, got f32[1,2,9]"),
        (
            signal,
            f32s(&[1, 2, 2]),
            "input 0: dimension 2 of f32[1,2,2] with a padding of 0 and 0 is shorter than the 3 elements of a window",
        ),
        (global, f32s(&[1, 2, 0]), "input 0: expected something to pool in each channel, got f32[1,2,0]"),
    ];
    for (kernel, input, message) in cases {
        assert_eq!(refusal(&Builtin::new(*kernel), &[*input]), *message);
    }
}
