//! The network of examples/voice: a cond on the sample rate, with a spectrum, convolutions and a recurrent cell on each
//! side.

use crate::kit::{Device, Engine, Graph, Kernel, Reader, Words, example, f32, floats, s32};
use std::ffi::c_void;
use weir_core::abi::*;
use weir_core::base::{Desc, dtype};
use weir_core::ops::weir_reduce_op_value::{WEIR_REDUCE_MEAN, WEIR_REDUCE_NORM_SUM};
use weir_core::ops::*;

#[allow(improper_ctypes, reason = "weights of a product are opaque: none are packed here")]
unsafe extern "C" {
    fn weir_kernel_create_reshape(
        engine: *mut Engine,
        desc: *const weir_reshape_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_slice(
        engine: *mut Engine,
        desc: *const weir_slice_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_conv(
        engine: *mut Engine,
        desc: *const weir_conv_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_reduce(
        engine: *mut Engine,
        desc: *const weir_reduce_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_lstm(
        engine: *mut Engine,
        desc: *const weir_lstm_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_eltwise(
        engine: *mut Engine,
        desc: *const weir_eltwise_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_binary(
        engine: *mut Engine,
        desc: *const weir_binary_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
}

const FRAMES: usize = 2;
const SAMPLES: i64 = 576;
const UNITS: i64 = 128;
/// Arrays of a half, in the order of the file.
const SPECTRUM: usize = 0;
const CONV: usize = 1;
const LSTM: usize = 9;
const OUT: usize = 13;
const ARRAYS: usize = 15;

/// The weights of both halves.
fn weights() -> Vec<Vec<Words>> {
    const HEAD: usize = 16;
    const ENTRY: usize = 16;
    let file = example("voice/weights.bin");
    let aligned = |bytes: usize| bytes.next_multiple_of(64);
    let mut at = aligned(HEAD + 2 * ARRAYS * ENTRY);
    let array = |number: usize, at: &mut usize| {
        let mut entry = Reader(&file[HEAD + number * ENTRY..]);
        let rank = entry.word() as usize;
        let dims: Vec<i64> = (0..rank).map(|_| i64::from(entry.word())).collect();
        let count = dims.iter().product::<i64>() as usize;
        let words = f32(&dims, &Reader(&file[*at..]).floats(count));
        *at = aligned(*at + count * 4);
        words
    };
    (0..2).map(|half| (0..ARRAYS).map(|i| array(half * ARRAYS + i, &mut at)).collect()).collect()
}

fn reshape(graph: &mut Graph<'_>, x: u64, dims: &[i64]) -> u64 {
    let desc = weir_reshape_desc {
        struct_size: size_of::<weir_reshape_desc>(),
        rank: dims.len() as u32,
        reserved: 0,
        dims: std::array::from_fn(|i| dims.get(i).copied().unwrap_or(0)),
    };
    graph.kernel(weir_kernel_create_reshape, &desc, &[x])
}

fn reduce(graph: &mut Graph<'_>, x: u64, op: weir_reduce_op_value, axis: i32, p: f32) -> u64 {
    let mut axes = [0; 8];
    axes[0] = axis;
    let size = size_of::<weir_reduce_desc>();
    let desc = weir_reduce_desc { struct_size: size, flags: 0, op: op as u32, num_axes: 1, axes, p, eps: 0.0 };
    graph.kernel(weir_kernel_create_reduce, &desc, &[x])
}

/// A convolution of signals with nothing set.
fn conv() -> weir_conv_desc {
    weir_conv_desc {
        struct_size: size_of::<weir_conv_desc>(),
        flags: 0,
        data_layout: 0,
        weights_layout: 0,
        padding: 0,
        activation: 0,
        groups: 0,
        strides: [0; 2],
        dilations: [0; 2],
        padding_begin: [0; 2],
        padding_end: [0; 2],
        alpha: 0.0,
        beta: 0.0,
        depth_stride: 0,
        depth_dilation: 0,
        depth_padding_begin: 0,
        depth_padding_end: 0,
    }
}

fn half<'a>(device: &'a Device, weights: &[Words], samples: i64) -> Graph<'a> {
    let mut graph = Graph::new(device, if samples == SAMPLES { "16 kHz" } else { "8 kHz" });
    let mut x = graph.input("samples", Desc::new(dtype::F32, &[1, SAMPLES]));
    let state = ["hidden", "cell"].map(|name| graph.input(name, Desc::new(dtype::F32, &[1, UNITS])));
    if samples < SAMPLES {
        let mut desc = weir_slice_desc {
            struct_size: size_of::<weir_slice_desc>(),
            rank: 2,
            reserved: 0,
            begin: [0; 8],
            end: [0; 8],
            step: [0; 8],
        };
        (desc.end[0], desc.end[1]) = (1, samples);
        x = graph.kernel(weir_kernel_create_slice, &desc, &[x]);
    }
    // Loudness by frequency and window.
    let waves = &weights[SPECTRUM];
    let (frequencies, length) = (waves.desc.dims[0] / 2, waves.desc.dims[2]);
    let of_waves = graph.constant(waves);
    let signal = reshape(&mut graph, x, &[1, 1, -1]);
    let mirrored = weir_conv_desc { padding: 1, padding_end: [length / 4, 0], strides: [length / 2, 0], ..conv() };
    x = graph.kernel(weir_kernel_create_conv, &mirrored, &[signal, of_waves]);
    x = reshape(&mut graph, x, &[1, 2, frequencies, -1]);
    x = reduce(&mut graph, x, WEIR_REDUCE_NORM_SUM, 1, 2.0);
    for (i, stride) in [1, 2, 2, 1].into_iter().enumerate() {
        let [of_x, bias] = [0, 1].map(|which| graph.constant(&weights[CONV + 2 * i + which]));
        let desc = weir_conv_desc {
            flags: 1,
            activation: 1,
            padding_begin: [1, 0],
            padding_end: [1, 0],
            strides: [stride, 0],
            ..conv()
        };
        x = graph.kernel(weir_kernel_create_conv, &desc, &[x, of_x, bias]);
    }
    let mut cell = vec![reshape(&mut graph, x, &[1, -1]), state[0], state[1]];
    (0..4).for_each(|i| cell.push(graph.constant(&weights[LSTM + i])));
    let lstm = weir_lstm_desc { struct_size: size_of::<weir_lstm_desc>(), flags: 1, gate_order: 1, reserved: 0 };
    let next: [u64; 2] = graph.kernels(weir_kernel_create_lstm, &lstm, &cell);
    let relu = Eltwise::desc(weir_eltwise_op_value::WEIR_ELTWISE_RELU, 0.0, 0.0);
    x = graph.kernel(weir_kernel_create_eltwise, &relu, &[next[0]]);
    x = reshape(&mut graph, x, &[1, UNITS, 1]);
    let [of_x, bias] = [0, 1].map(|which| graph.constant(&weights[OUT + which]));
    let sum = weir_conv_desc { flags: 1, activation: 4, ..conv() };
    x = graph.kernel(weir_kernel_create_conv, &sum, &[x, of_x, bias]);
    x = reduce(&mut graph, x, WEIR_REDUCE_MEAN, 2, 0.0);
    [x, next[0], next[1]].into_iter().for_each(|value| graph.output(value));
    graph
}

/// Probability and both states of each frame.
pub fn hear(device: &Device, rate: i32) -> Vec<[Vec<f32>; 3]> {
    let weights = weights();
    let state = Desc::new(dtype::F32, &[1, UNITS]);
    let mut graph = Graph::new(device, "voice");
    let mut inputs = vec![graph.input("samples", Desc::new(dtype::F32, &[1, SAMPLES]))];
    inputs.extend(["hidden", "cell"].map(|name| graph.input(name, state)));
    let given = graph.input("rate", Desc::new(dtype::S32, &[1]));
    let high = graph.constant(&s32(&[1], &[16_000]));
    let equal = Binary::desc(weir_binary_op_value::WEIR_BINARY_EQ);
    let is_high = graph.kernel(weir_kernel_create_binary, &equal, &[given, high]);
    let halves = [half(device, &weights[0], SAMPLES), half(device, &weights[1], SAMPLES / 2)];
    let outputs: [u64; 3] = graph.cond(is_high, &halves[0], &halves[1], &inputs);
    outputs.into_iter().for_each(|value| graph.output(value));

    let program = graph.compile();
    let mut states = [vec![0.0; UNITS as usize], vec![0.0; UNITS as usize]];
    (0..FRAMES)
        .map(|frame| {
            let samples: Vec<f32> =
                (0..SAMPLES as usize).map(|i| (((i * 37 + frame * 11) % 101) as f32 - 50.0) / 100.0).collect();
            let [hidden, cell] = states.each_ref().map(|state| f32(&[1, UNITS], state));
            let mut inputs = [f32(&[1, SAMPLES], &samples), hidden, cell, s32(&[1], &[rate])];
            let found = program.run(&mut inputs, &[Desc::new(dtype::F32, &[1, 1]), state, state]);
            states = [floats(&found[1]), floats(&found[2])];
            [floats(&found[0]), states[0].clone(), states[1].clone()]
        })
        .collect()
}
