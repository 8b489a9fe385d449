//! Windows over volumes: random shapes against the definition in f64, on every instruction set, with packed weights and
//! on all pools.
#![forbid(unsafe_code)]

use super::Builtin;
use super::fixture::{WordTensor, check_pools, prepared, refusal, run};
use crate::base::{Desc, dtype};
use crate::kernel::vector::activation::Activation;
use crate::kernel::vector::isa::Isa;
use crate::ops::axis::EdgeMode;
use crate::ops::weir_pooling_op_value::*;
use crate::ops::{AxisSettings, Conv, ConvTranspose, Pooling, Windows};

/// Draws numbers, the same for the same seed.
struct Drawn(u64);

impl Drawn {
    fn upto(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % (most + 1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.upto(all.len() as i64 - 1) as usize]
    }

    /// Settings of an axis for windows of so many taps.
    fn axis(&mut self, taps: i64, padding: bool) -> AxisSettings {
        let stride = self.of(&[0, 0, 1, 1, 2, 2, 3]);
        let dilation = self.of(&[0, 0, 0, 1, 2, 3]);
        let span = (taps - 1) * dilation.max(1);
        let mut side = || if padding { self.upto(span.min(3)) } else { 0 };
        AxisSettings { stride, dilation, begin: side(), end: side() }
    }
}

fn windows([depth, rows, columns]: [AxisSettings; 3], edge: EdgeMode) -> Windows {
    Windows {
        strides: [rows.stride, columns.stride],
        dilations: [rows.dilation, columns.dilation],
        begin: [rows.begin, columns.begin],
        end: [rows.end, columns.end],
        depth,
        edge,
    }
}

/// Elements an axis needs for one window.
fn least(of: &AxisSettings, taps: i64) -> i64 {
    ((taps - 1) * of.dilation.max(1) + 1 - of.begin - of.end).max(1).max(of.begin.max(of.end) + 1)
}

/// The element under a tap of a window.
fn element(of: &AxisSettings, edge: EdgeMode, size: i64, window: i64, tap: i64) -> Option<i64> {
    let at = window * of.stride.max(1) + tap * of.dilation.max(1) - of.begin;
    match edge {
        EdgeMode::Zero => (0..size).contains(&at).then_some(at),
        EdgeMode::Reflect if at < 0 => Some(-at),
        EdgeMode::Reflect if at >= size => Some(2 * (size - 1) - at),
        EdgeMode::Reflect => Some(at),
    }
}

/// The elements of x under a window of a plane: the number of the tap, and the place in the volume.
fn under(axes: &[AxisSettings; 3], edge: EdgeMode, x: &[i64], window: [i64; 3], taps: &[i64]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    for tap in 0..taps.iter().product::<i64>() {
        let by_axis = [tap / (taps[1] * taps[2]), tap / taps[2] % taps[1], tap % taps[2]];
        let at = |i: usize| element(&axes[i], edge, x[i], window[i], by_axis[i]);
        if let (Some(z), Some(y), Some(x_at)) = (at(0), at(1), at(2)) {
            all.push((tap as usize, ((z * x[1] + y) * x[2] + x_at) as usize));
        }
    }
    all
}

/// The window of an element of the output in its volume.
fn window_of(at: usize, out: &[i64]) -> [i64; 3] {
    let at = at as i64;
    [at / (out[1] * out[2]) % out[0], at / out[2] % out[1], at % out[2]]
}

fn close(got: &WordTensor, want: &[f64], depth: i64, what: &dyn std::fmt::Debug) {
    assert_eq!(got.floats().len(), want.len(), "{what:?}");
    for (i, (got, want)) in got.floats().into_iter().zip(want).enumerate() {
        let error = (f64::from(got) - want).abs();
        assert!(f64::from(got) == *want || error <= 1e-6 * (depth as f64).sqrt() * 4.0, "{what:?} {i}: {got}, {want}");
    }
}

#[test]
fn convolutions_are_what_the_definition_says() {
    let mut drawn = Drawn(1);
    for number in 0..400 {
        let edge = drawn.of(&[EdgeMode::Zero, EdgeMode::Zero, EdgeMode::Reflect]);
        let square = drawn.of(&[0, 1, 3, 3, 5]);
        let taps: [i64; 3] = std::array::from_fn(|i| if square > 0 && i > 0 { square } else { 1 + drawn.upto(3) });
        let mut axes = taps.map(|taps| drawn.axis(taps, true));
        if drawn.upto(2) == 0 {
            axes[1] = AxisSettings { stride: 1, dilation: 1, begin: square / 2, end: square / 2 };
            axes[2] = axes[1];
        }
        if drawn.upto(5) == 0 {
            axes[0] = AxisSettings::default();
        }
        let (groups, channels) = drawn.of(&[(1, 1), (1, 3), (1, 16), (2, 5), (7, 1), (3, 2)]);
        let filters = drawn.of(&[1, 2, 9, 30]);
        let (bias, sum) = (drawn.upto(1) == 1, drawn.upto(3) == 0);
        let activation = drawn.of(&[Activation::NONE, Activation::RELU]);
        let of = Conv { windows: windows(axes, edge), groups, bias, sum, activation };
        let wide = drawn.of(&[0, 0, 8, 50]);
        let size: [i64; 3] = std::array::from_fn(|i| {
            least(&axes[i], taps[i]) + drawn.upto(if i == 0 { 4 } else { 9 }) + if i == 2 { wide } else { 0 }
        });
        let images = 1 + drawn.upto(1);
        let x = WordTensor::random(&[images, groups * channels, size[0], size[1], size[2]], number);
        let w = WordTensor::random(&[groups * filters, channels, taps[0], taps[1], taps[2]], number + 1000);
        let kernel = Builtin::new(Conv { sum: false, bias: false, ..of });
        let shape = run(&kernel, &[x.clone(), w.clone()]).desc;
        let mut inputs = vec![x.clone(), w.clone()];
        if bias {
            inputs.push(WordTensor::random(&[groups * filters], number + 2000));
        }
        if sum {
            inputs.push(WordTensor::random(shape.shape(), number + 3000));
        }
        let out = &shape.shape()[2..];
        let windows: i64 = out.iter().product();
        let depth = taps.iter().product::<i64>();
        let (x, w, rest) = (x.floats(), w.floats(), inputs[2..].iter().map(WordTensor::floats).collect::<Vec<_>>());
        let mut want = Vec::new();
        for i in 0..(images * groups * filters * windows) as usize {
            let (channel, image) = (i as i64 / windows % (groups * filters), i as i64 / windows / (groups * filters));
            let mut y = if bias { rest[0][channel as usize].into() } else { 0.0 };
            for (tap, at) in under(&axes, edge, &size, window_of(i, out), &taps) {
                for c in 0..channels {
                    let plane = image * groups * channels + channel / filters * channels + c;
                    let x = x[(plane * size.iter().product::<i64>()) as usize + at];
                    y += f64::from(x) * f64::from(w[((channel * channels + c) * depth) as usize + tap]);
                }
            }
            if sum {
                y += f64::from(rest.last().unwrap()[i]);
            }
            want.push(if activation == Activation::RELU { y.max(0.0) } else { y });
        }
        let kernel = Builtin::new(of);
        let got = run(&kernel, &inputs);
        assert_eq!(got.desc, shape);
        close(&got, &want, channels * depth + 4, &(of, size, taps));
        if let Some(packed) = prepared(&kernel, &inputs, &[1]) {
            assert_eq!(run(&packed, &inputs).bits(), got.bits(), "{of:?}: packed weights");
        }
        if number % 8 == 0 {
            check_pools(&kernel, &inputs);
        }
    }
}

#[test]
fn transposed_convolutions_are_what_the_definition_says() {
    let mut drawn = Drawn(2);
    for number in 0..250 {
        let taps: [i64; 3] = std::array::from_fn(|_| 1 + drawn.upto(3));
        let mut axes = taps.map(|taps| drawn.axis(taps, true));
        if drawn.upto(5) == 0 {
            axes[0] = AxisSettings::default();
        }
        let (groups, channels) = drawn.of(&[(1, 1), (1, 3), (1, 16), (2, 5), (7, 1)]);
        let filters = drawn.of(&[1, 2, 9]);
        let (bias, activation) = (drawn.upto(1) == 1, drawn.of(&[Activation::NONE, Activation::RELU]));
        let more = [drawn.upto(1), drawn.upto(1)];
        let windows = windows(axes, EdgeMode::Zero);
        let of = ConvTranspose { windows, more, depth_more: drawn.upto(1), groups, bias, activation };
        let size: [i64; 3] = std::array::from_fn(|i| 1 + axes[i].begin.max(axes[i].end) + drawn.upto(6));
        let x = WordTensor::random(&[2, groups * channels, size[0], size[1], size[2]], number);
        let w = WordTensor::random(&[groups * channels, filters, taps[0], taps[1], taps[2]], number + 1000);
        let mut inputs = vec![x.clone(), w.clone()];
        if bias {
            inputs.push(WordTensor::random(&[groups * filters], number + 2000));
        }
        let shape = run(&Builtin::new(of), &inputs).desc;
        let out = &shape.shape()[2..];
        let (windows, depth) = (out.iter().product::<i64>(), taps.iter().product::<i64>());
        let mut want = vec![0.0; (2 * groups * filters * windows) as usize];
        if bias {
            let bias = inputs[2].floats();
            for (i, y) in want.iter_mut().enumerate() {
                *y = bias[(i as i64 / windows % (groups * filters)) as usize].into();
            }
        }
        let (x, w) = (x.floats(), w.floats());
        for (i, x) in x.iter().enumerate() {
            let plane = i as i64 / size.iter().product::<i64>();
            let (channel, image) = (plane % (groups * channels), plane / (groups * channels));
            // The window of the convolution of which this is the reverse.
            for (tap, at) in under(&axes, EdgeMode::Zero, out, window_of(i, &size), &taps) {
                for filter in 0..filters {
                    let to = (image * groups + channel / channels) * filters + filter;
                    let w = w[((channel * filters + filter) * depth) as usize + tap];
                    want[(to * windows) as usize + at] += f64::from(*x) * f64::from(w);
                }
            }
        }
        if activation == Activation::RELU {
            want.iter_mut().for_each(|y| *y = y.max(0.0));
        }
        for isa in Isa::levels() {
            let mut kernel = Builtin::new(of);
            kernel.isa = isa;
            close(&run(&kernel, &inputs), &want, channels * depth + 4, &(of, size, taps, isa));
        }
        if number % 8 == 0 {
            check_pools(&Builtin::new(of), &inputs);
        }
    }
}

#[test]
fn poolings_are_what_the_definition_says() {
    let mut drawn = Drawn(3);
    for number in 0..400 {
        let square = drawn.of(&[0, 2, 3]);
        let taps: [i64; 3] = std::array::from_fn(|i| if square > 0 && i > 0 { square } else { 1 + drawn.upto(4) });
        let mut axes = taps.map(|taps| drawn.axis(taps, true));
        if drawn.upto(3) == 0 {
            axes = [AxisSettings { stride: 2, ..AxisSettings::default() }; 3];
        }
        let global = drawn.upto(9) == 0;
        let op = drawn.of(&[WEIR_POOLING_MAX, WEIR_POOLING_AVERAGE, WEIR_POOLING_AVERAGE_INSIDE]);
        let size: [i64; 3] = std::array::from_fn(|i| {
            least(&axes[i], taps[i]) + drawn.upto(if i == 0 { 6 } else { 12 }) + if number % 5 == 0 { 9 } else { 0 }
        });
        let (of, axes, taps) = match global {
            true => (
                Pooling { op, kernel: None, depth_kernel: 0, windows: Windows::default() },
                [AxisSettings::default(); 3],
                size,
            ),
            false => {
                let windows = windows(axes, EdgeMode::Zero);
                (Pooling { op, kernel: Some([taps[1], taps[2]]), depth_kernel: taps[0], windows }, axes, taps)
            }
        };
        let x = WordTensor::random(&[2, 3, size[0], size[1], size[2]], number);
        let shape = run(&Builtin::new(of), std::slice::from_ref(&x)).desc;
        let out = &shape.shape()[2..];
        let volume = size.iter().product::<i64>() as usize;
        let mut want = Vec::new();
        let floats = x.floats();
        for i in 0..6 * out.iter().product::<i64>() as usize {
            let plane = &floats[i / out.iter().product::<i64>() as usize * volume..][..volume];
            let all = under(&axes, EdgeMode::Zero, &size, window_of(i, out), &taps);
            let all: Vec<f64> = all.into_iter().map(|(_, at)| plane[at].into()).collect();
            want.push(match op {
                WEIR_POOLING_MAX => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                WEIR_POOLING_AVERAGE => all.iter().sum::<f64>() / taps.iter().product::<i64>() as f64,
                WEIR_POOLING_AVERAGE_INSIDE => all.iter().sum::<f64>() / all.len().max(1) as f64,
            });
        }
        let bits = run(&Builtin::new(of), std::slice::from_ref(&x));
        for isa in Isa::levels() {
            let mut kernel = Builtin::new(of);
            kernel.isa = isa;
            let got = run(&kernel, std::slice::from_ref(&x));
            close(&got, &want, 1, &(of, size, isa));
            assert_eq!(got.bits(), bits.bits(), "{of:?} {size:?} {isa:?}");
        }
        if number % 8 == 0 {
            check_pools(&Builtin::new(of), &[x]);
        }
    }
}

/// As if the elements were taken one after the other, those at one place of all slices first: the last one of equals,
/// the first NaN.
#[test]
fn the_greatest_zero_and_the_nan_of_volumes_are_those_of_the_order() {
    let mut drawn = Drawn(4);
    for number in 0..60 {
        let (deep, taps) = (2 + drawn.upto(3), 1 + drawn.upto(2));
        let size = [deep + drawn.upto(2), 9, 20];
        let bits = |drawn: &mut Drawn| match drawn.upto(40) {
            0 if number % 2 == 0 => f32::from_bits(f32::NAN.to_bits() + 1 + drawn.upto(7) as u32),
            _ => drawn.of(&[0.0, -0.0, -1.0]),
        };
        let x: Vec<f32> = (0..size.iter().product::<i64>()).map(|_| bits(&mut drawn)).collect();
        let windows = Windows { strides: [drawn.of(&[1, 2]); 2], ..Windows::default() };
        let of = Pooling { op: WEIR_POOLING_MAX, kernel: Some([taps; 2]), depth_kernel: deep, windows };
        let dims = [1, 1, size[0], size[1], size[2]];
        for isa in Isa::levels() {
            let mut kernel = Builtin::new(of);
            kernel.isa = isa;
            let y = run(&kernel, &[WordTensor::f32(&dims, &x)]);
            let (out, stride) = (&y.desc.shape()[2..], windows.strides[0]);
            for (i, got) in y.floats().into_iter().enumerate() {
                let [slice, row, column] = window_of(i, out);
                let mut want = f32::NEG_INFINITY;
                for tap in 0..taps * taps * deep {
                    let at =
                        [slice + tap % deep, row * stride + tap / deep / taps, column * stride + tap / deep % taps];
                    let x = x[((at[0] * size[1] + at[1]) * size[2] + at[2]) as usize];
                    want = if want.is_nan() || want > x { want } else { x };
                }
                assert_eq!(got.to_bits(), want.to_bits(), "{of:?} {size:?} {isa:?} {i}: {got} for {want}");
            }
        }
    }
}

#[test]
fn what_is_no_volume_is_refused() {
    let f32s = |dims: &[i64]| Desc::new(dtype::F32, dims);
    let depth = AxisSettings { stride: 2, ..AxisSettings::default() };
    let windows = Windows { depth, ..Windows::default() };
    let conv = Conv { windows, groups: 1, bias: false, sum: false, activation: Activation::NONE };
    let refused = |kernel: &dyn Fn(&[Desc]) -> String, inputs: &[Desc], text: &str| assert_eq!(kernel(inputs), text);
    let of = |inputs: &[Desc]| refusal(&Builtin::new(conv), inputs);
    refused(
        &of,
        &[f32s(&[1, 2, 5, 5]), f32s(&[3, 2, 3, 3])],
        "input 0: expected a volume, f32[?,?,?,?,?], as desc has strides, dilations or padding of depth, got \
         f32[1,2,5,5]",
    );
    refused(&of, &[f32s(&[1, 2, 4, 5, 5]), f32s(&[3, 2, 3, 3])], "input 1: expected f32[?,2,?,?,?], got f32[3,2,3,3]");
    refused(
        &of,
        &[f32s(&[1, 2, 2, 5, 5]), f32s(&[3, 2, 3, 3, 3])],
        "input 0: dimension 2 of f32[1,2,2,5,5] with a padding of 0 and 0 is shorter than the 3 elements of the \
         filters (input 1)",
    );
    let transposed = ConvTranspose {
        windows: Windows::default(),
        more: [0; 2],
        depth_more: 1,
        groups: 1,
        bias: false,
        activation: Activation::NONE,
    };
    let of = |inputs: &[Desc]| refusal(&Builtin::new(transposed), inputs);
    refused(
        &of,
        &[f32s(&[1, 2, 5, 5]), f32s(&[2, 3, 3, 3])],
        "input 0: expected a volume, f32[?,?,?,?,?], as desc->depth_more is set, got f32[1,2,5,5]",
    );
    let pooling = Pooling { op: WEIR_POOLING_MAX, kernel: Some([2, 2]), depth_kernel: 2, windows: Windows::default() };
    let of = |inputs: &[Desc]| refusal(&Builtin::new(pooling), inputs);
    refused(
        &of,
        &[f32s(&[1, 2, 5, 5])],
        "input 0: expected a volume, f32[?,?,?,?,?], as desc->depth_kernel says, got f32[1,2,5,5]",
    );
    let of = |inputs: &[Desc]| refusal(&Builtin::new(Pooling { depth_kernel: 0, ..pooling }), inputs);
    refused(
        &of,
        &[f32s(&[1, 2, 5, 5, 5])],
        "input 0: expected an image, f32[?,?,?,?], as desc->kernel says, got f32[1,2,5,5,5]",
    );
}
