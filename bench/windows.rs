//! Windows that slide over planes, alone, on one thread: `cargo bench --bench windows [part of a name]`. The fastest
//! call of a quarter of a second, in us. For two versions beside each other run both programs in turn.

use std::time::{Duration, Instant};
use weir_core::base::{Desc, dtype};
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::vector::activation::Activation;
use weir_core::kernel::vector::window::EdgeMode;
use weir_core::kernel::{Kernel, KernelContext, NEVER, Scratch};
use weir_core::memory::{AlignedBuffer, View};
use weir_core::ops::weir_activation_value::WEIR_ACTIVATION_HARDSWISH;
use weir_core::ops::weir_pooling_op_value::{self, *};
use weir_core::ops::{Conv, Pooling, Windows};

const ROUND: Duration = Duration::from_millis(250);

/// A tensor of numbers from -4 to 4, aligned as those of programs.
fn tensor(desc: Desc, seed: usize) -> (AlignedBuffer, View) {
    let size = desc.bytes().unwrap();
    let buffer = AlignedBuffer::zeroed(size, "tensor").unwrap();
    // SAFETY: the buffer is as large, and nobody else has it.
    let floats = unsafe { std::slice::from_raw_parts_mut(buffer.data().cast::<f32>(), size / size_of::<f32>()) };
    floats.iter_mut().enumerate().for_each(|(i, x)| *x = (i * seed % 8001) as f32 / 1000.0 - 4.0);
    // SAFETY: the callers keep the buffer as long as the view.
    let view = unsafe { View::new(buffer.data().cast(), size, desc) };
    (buffer, view)
}

/// Prints the time of a call, if the name is asked for.
fn time(name: &str, kernel: &dyn Kernel, dims: &[Vec<i64>]) {
    if !std::env::args().skip(1).filter(|word| !word.starts_with("--")).all(|word| name.contains(&word)) {
        return;
    }
    let descs: Vec<_> = dims.iter().map(|dims| Desc::new(dtype::F32, dims)).collect();
    let (_inputs, inputs): (Vec<_>, Vec<_>) = descs.iter().map(|desc| tensor(*desc, 7919)).unzip();
    let result = kernel.infer(&descs).unwrap();
    let (_output, output) = tensor(result[0], 1);
    let outputs = [output];
    let bytes = kernel.scratch_bytes(&descs, &result);
    let scratch = AlignedBuffer::zeroed(Scratch::stride(bytes), "scratch").unwrap();
    let (mut fastest, begin) = (Duration::MAX, Instant::now());
    while begin.elapsed() < ROUND {
        let start = Instant::now();
        // SAFETY: nobody else has the memory.
        unsafe {
            let scratch = Scratch::new(scratch.data(), bytes, 1);
            let context = KernelContext::new(&inputs, &outputs, None, scratch, &NEVER);
            kernel.compute(&context, context.outputs()).unwrap();
        }
        fastest = fastest.min(start.elapsed());
    }
    println!("| {name} | {:.1} |", fastest.as_nanos() as f64 / 1e3);
}

fn windows(strides: [i64; 2], begin: i64, end: i64) -> Windows {
    Windows { strides, begin: [begin; 2], end: [end; 2], edge: EdgeMode::Zero, ..Windows::default() }
}

fn depthwise(channels: i64, [height, width]: [i64; 2], taps: i64, strides: [i64; 2], activation: Activation) {
    let windows = windows(strides, taps / 2, taps / 2);
    let kernel = Builtin::new(Conv { windows, groups: channels, bias: true, sum: false, activation });
    let function = match activation {
        Activation::NONE => "",
        Activation::RELU => " relu",
        _ => " hardswish",
    };
    let name = format!("depthwise {taps} x {taps} {channels} x {height} x {width}, stride {strides:?}{function}");
    let dims = [vec![1, channels, height, width], vec![channels, 1, taps, taps], vec![channels]];
    time(&name, &kernel, &dims);
}

fn pooling(op: weir_pooling_op_value, channels: i64, [height, width]: [i64; 2], taps: [i64; 2], windows: Windows) {
    let kernel = Builtin::new(Pooling { op, kernel: Some(taps), depth_kernel: 0, windows });
    let Windows { strides, begin, end, .. } = windows;
    let shape = format!("{} x {} {channels} x {height} x {width}", taps[0], taps[1]);
    let kind = if op == WEIR_POOLING_MAX { "maximum" } else { "average" };
    let name = format!("{kind} {shape}, stride {strides:?}, padding {} {}", begin[0], end[0]);
    time(&name, &kernel, &[vec![1, channels, height, width]]);
}

fn main() {
    println!("| | us |\n|---|--:|");
    let swish = Activation { function: WEIR_ACTIVATION_HARDSWISH, alpha: 1.0 / 6.0, beta: 0.5 };
    for (channels, plane, taps, strides) in [
        (16, [160, 160], 3, [1, 1]),
        (48, [80, 80], 3, [1, 1]),
        (32, [160, 160], 3, [2, 2]),
        (112, [56, 56], 3, [2, 2]),
        (128, [12, 160], 3, [1, 1]),
        (64, [24, 160], 3, [2, 1]),
        (128, [12, 160], 3, [1, 2]),
        (144, [28, 28], 3, [1, 1]),
        (272, [14, 14], 3, [1, 1]),
        (272, [14, 14], 3, [2, 2]),
        (544, [7, 7], 3, [1, 1]),
        (960, [7, 7], 3, [1, 1]),
        (576, [14, 14], 3, [2, 2]),
        (32, [6, 96], 3, [1, 1]),
        (240, [12, 80], 5, [1, 1]),
        (240, [12, 80], 5, [2, 1]),
        (480, [3, 80], 5, [1, 1]),
        (208, [2, 96], 5, [1, 1]),
        (192, [20, 20], 5, [1, 1]),
        (192, [20, 20], 5, [2, 2]),
        (384, [10, 10], 5, [1, 1]),
    ] {
        depthwise(channels, plane, taps, strides, Activation::NONE);
    }
    depthwise(960, [7, 7], 3, [1, 1], Activation::RELU);
    depthwise(192, [28, 28], 3, [2, 2], Activation::RELU);
    depthwise(16, [160, 160], 3, [1, 1], swish);
    depthwise(240, [12, 80], 5, [1, 1], swish);
    for (channels, plane, stride, begin, end) in [
        (64, [112, 112], 2, 1, 1),
        (64, [112, 112], 2, 0, 1),
        (96, [109, 109], 2, 0, 0),
        (192, [55, 55], 2, 0, 0),
        (480, [27, 27], 2, 0, 0),
        (576, [14, 14], 2, 0, 1),
        (256, [27, 27], 1, 1, 1),
        (512, [13, 13], 1, 1, 1),
        (832, [6, 6], 1, 1, 1),
        (1024, [7, 7], 1, 1, 1),
    ] {
        pooling(WEIR_POOLING_MAX, channels, plane, [3, 3], windows([stride; 2], begin, end));
    }
    for (channels, side) in [(64, 224), (128, 112), (512, 28), (512, 14), (512, 12)] {
        pooling(WEIR_POOLING_MAX, channels, [side; 2], [2, 2], windows([2; 2], 0, 0));
    }
    pooling(WEIR_POOLING_MAX, 200, [2, 96], [2, 2], windows([2; 2], 0, 0));
    let average = |channels, plane, taps, strides, padding| {
        pooling(WEIR_POOLING_AVERAGE_INSIDE, channels, plane, taps, windows(strides, padding, padding));
    };
    for (channels, side) in [(256, 28), (576, 14), (1024, 7)] {
        average(channels, [side; 2], [3, 3], [1, 1], 1);
    }
    for (channels, side) in [(24, 56), (136, 28), (272, 14)] {
        average(channels, [side; 2], [3, 3], [2, 2], 1);
    }
    for (channels, side) in [(128, 56), (512, 14)] {
        average(channels, [side; 2], [2, 2], [2, 2], 0);
    }
    average(480, [3, 80], [3, 2], [3, 2], 0);
    average(2048, [7, 7], [7, 7], [1, 1], 0);
    average(1000, [13, 13], [13, 13], [1, 1], 0);
}
