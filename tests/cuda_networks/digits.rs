//! The network of examples/digits: three layers and a softmax.

use crate::kit::{Device, Engine, Graph, Kernel, Reader, example, f32, floats};
use std::ffi::c_void;
use weir_core::abi::*;
use weir_core::base::{Desc, dtype};
use weir_core::ops::*;

#[allow(improper_ctypes, reason = "weights of a product are opaque: none are packed here")]
unsafe extern "C" {
    fn weir_kernel_create_matmul(
        engine: *mut Engine,
        desc: *const weir_matmul_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_softmax(
        engine: *mut Engine,
        desc: *const weir_softmax_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
    fn weir_kernel_create_reduce(
        engine: *mut Engine,
        desc: *const weir_reduce_desc,
        attr: *const c_void,
        out: *mut *mut Kernel,
    ) -> weir_status;
}

const BATCH: usize = 4;
const PIXELS: usize = 64;
const CLASSES: usize = 10;

pub struct Digits {
    pub logits: Vec<f32>,
    pub probabilities: Vec<f32>,
    pub classes: Vec<u32>,
    /// How many of the classes are those of the labels.
    pub right: usize,
}

pub fn read(device: &Device) -> Digits {
    let file = example("digits/digits.bin");
    let mut reader = Reader(&file[8..]);
    let [scans, training] = [reader.word() as usize, reader.word() as usize];
    let (pixels, labels) = file[8 + 16..].split_at(scans * PIXELS);
    let pixels: Vec<f32> = pixels[training * PIXELS..][..BATCH * PIXELS].iter().map(|&ink| ink.into()).collect();

    let mut graph = Graph::new(device, "digits");
    let mut value = graph.input("scans", Desc::new(dtype::F32, &[BATCH as i64, PIXELS as i64]));
    let file = example("digits/weights.bin");
    let mut reader = Reader(&file[8..]);
    let layers = reader.word() as usize;
    let sizes: Vec<usize> = (0..=layers).map(|_| reader.word() as usize).collect();
    for i in 0..layers {
        let (from, to) = (sizes[i], sizes[i + 1]);
        let weights = graph.constant(&f32(&[from as i64, to as i64], &reader.floats(from * to)));
        let bias = graph.constant(&f32(&[to as i64], &reader.floats(to)));
        let relu = if i + 1 < layers { weir_activation_value::WEIR_ACTIVATION_RELU as u32 } else { 0 };
        let desc = weir_matmul_desc {
            struct_size: size_of::<weir_matmul_desc>(),
            flags: weir_matmul_flags::WEIR_MATMUL_BIAS as u64,
            activation: relu,
            reserved: 0,
            weights: std::ptr::null_mut(),
            alpha: 0.0,
            beta: 0.0,
        };
        value = graph.kernel(weir_kernel_create_matmul, &desc, &[value, weights, bias]);
    }
    let softmax = weir_softmax_desc { struct_size: size_of::<weir_softmax_desc>(), axis: -1, reserved: 0, flags: 0 };
    let probabilities = graph.kernel(weir_kernel_create_softmax, &softmax, &[value]);
    let argmax = weir_reduce_desc {
        struct_size: size_of::<weir_reduce_desc>(),
        flags: 0,
        op: weir_reduce_op_value::WEIR_REDUCE_ARGMAX as u32,
        num_axes: 1,
        axes: [-1, 0, 0, 0, 0, 0, 0, 0],
        p: 0.0,
        eps: 0.0,
    };
    let classes = graph.kernel(weir_kernel_create_reduce, &argmax, &[probabilities]);
    [value, probabilities, classes].into_iter().for_each(|value| graph.output(value));

    let rows = Desc::new(dtype::F32, &[BATCH as i64, CLASSES as i64]);
    let input = f32(&[BATCH as i64, PIXELS as i64], &pixels);
    let found = graph.compile().run(&mut [input], &[rows, rows, Desc::new(dtype::S32, &[BATCH as i64])]);
    let right = found[2].iter().zip(&labels[training..]).filter(|(class, label)| **class == u32::from(**label)).count();
    Digits { logits: floats(&found[0]), probabilities: floats(&found[1]), classes: found[2].clone(), right }
}
