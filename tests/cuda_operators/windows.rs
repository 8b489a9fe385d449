//! Convolution and pooling.

use crate::create::*;
use crate::kit::{Distance, Tensor, check, described, plan, refusal};
use weir_core::base::{Desc, dtype};
use weir_core::device::Operation;
use weir_core::ops::weir_pooling_op_value::*;
use weir_core::ops::*;

#[derive(Clone, Copy)]
struct Conv<'a> {
    x: &'a [i64],
    weights: &'a [i64],
    groups: i64,
    strides: [i64; 2],
    dilations: [i64; 2],
    begin: [i64; 2],
    end: [i64; 2],
    reflect: bool,
    activation: u32,
}

const PLAIN: Conv<'static> = Conv {
    x: &[],
    weights: &[],
    groups: 0,
    strides: [0; 2],
    dilations: [0; 2],
    begin: [0; 2],
    end: [0; 2],
    reflect: false,
    activation: 0,
};

fn run(conv: &Conv<'_>) -> String {
    let mut names = Vec::new();
    for bias in [false, true] {
        let desc = weir_conv_desc {
            struct_size: size_of::<weir_conv_desc>(),
            flags: bias.into(),
            data_layout: 0,
            weights_layout: 0,
            padding: conv.reflect.into(),
            activation: conv.activation,
            groups: conv.groups,
            strides: conv.strides,
            dilations: conv.dilations,
            padding_begin: conv.begin,
            padding_end: conv.end,
            alpha: 0.0,
            beta: 0.0,
            depth_stride: 0,
            depth_dilation: 0,
            depth_padding_begin: 0,
            depth_padding_end: 0,
        };
        let mut inputs = vec![Tensor::random(dtype::F32, conv.x, 1), Tensor::random(dtype::F32, conv.weights, 2)];
        if bias {
            inputs.push(Tensor::random(dtype::F32, &conv.weights[..1], 3));
        }
        names = check("conv", weir_kernel_create_conv, &desc, &inputs, Distance::Near(3e-5));
    }
    assert_eq!(names.len(), 1);
    names.remove(0)
}

#[test]
fn signals() {
    let plain = Conv { x: &[1, 3, 30], weights: &[9, 3, 4], ..PLAIN };
    assert_eq!(run(&plain), "weir_conv_16");
    assert_eq!(run(&Conv { weights: &[5, 3, 4], ..plain }), "weir_conv_direct");
    assert_eq!(run(&Conv { strides: [7, 0], ..plain }), "weir_conv_dot");
    for reflect in [false, true] {
        for strides in [1, 2] {
            for dilation in [1, 3] {
                let (strides, dilations) = ([strides, 0], [dilation, 0]);
                run(&Conv { x: &[2, 3, 25], strides, dilations, begin: [3, 0], end: [5, 0], reflect, ..plain });
            }
        }
    }
    for activation in 1..6 {
        run(&Conv { activation, ..plain });
        run(&Conv { activation, strides: [9, 0], ..plain });
    }
    // Like the voice network's: mirrored at the end, long windows, few of them.
    run(&Conv { x: &[1, 1, 96], weights: &[18, 1, 64], strides: [32, 0], end: [16, 0], reflect: true, ..PLAIN });
    run(&Conv { x: &[1, 9, 4], weights: &[16, 9, 3], begin: [1, 0], end: [1, 0], strides: [2, 0], ..PLAIN });
}

#[test]
fn images() {
    let plain = Conv { x: &[2, 4, 7, 9], weights: &[8, 4, 3, 2], ..PLAIN };
    assert_eq!(run(&plain), "weir_conv_16");
    run(&Conv { groups: 2, weights: &[18, 2, 3, 2], ..plain });
    assert_eq!(
        run(&Conv { groups: 4, weights: &[8, 1, 3, 3], begin: [1, 1], end: [1, 1], ..plain }),
        "weir_conv_direct"
    );
    run(&Conv { strides: [2, 3], dilations: [2, 1], begin: [1, 0], end: [2, 3], ..plain });
    run(&Conv { begin: [3, 4], end: [6, 8], reflect: true, ..plain });
    // So many groups that larger tiles are taken.
    let many = Conv { x: &[1, 128, 8, 11], weights: &[33 * 128, 1, 3, 6], groups: 128, ..PLAIN };
    assert_eq!(run(&many), "weir_conv_64");
}

#[test]
fn pooling() {
    let run = |op: weir_pooling_op_value,
               x: &[i64],
               kernel: [i64; 2],
               strides: [i64; 2],
               dilations: [i64; 2],
               pad: [[i64; 2]; 2]| {
        let desc = weir_pooling_desc {
            struct_size: size_of::<weir_pooling_desc>(),
            flags: u64::from(kernel == [0; 2]),
            op: op as u32,
            data_layout: 0,
            kernel,
            strides,
            dilations,
            padding_begin: pad[0],
            padding_end: pad[1],
            depth_kernel: 0,
            depth_stride: 0,
            depth_dilation: 0,
            depth_padding_begin: 0,
            depth_padding_end: 0,
        };
        let mut x = Tensor::random(dtype::F32, x, 1);
        x.bytes[20..24].copy_from_slice(&f32::NAN.to_le_bytes());
        let has_another_order = kernel == [0; 2] || op != WEIR_POOLING_MAX && kernel[1] > 3;
        let distance = if has_another_order { Distance::Near(1e-6) } else { Distance::None };
        check("pooling", weir_kernel_create_pooling, &desc, &[x], distance);
    };
    for op in [WEIR_POOLING_MAX, WEIR_POOLING_AVERAGE, WEIR_POOLING_AVERAGE_INSIDE] {
        run(op, &[2, 3, 20], [4, 0], [0; 2], [0; 2], [[0; 2]; 2]);
        run(op, &[2, 3, 20], [3, 0], [2, 0], [2, 0], [[3, 0], [4, 0]]);
        run(op, &[2, 3, 7, 8], [3, 2], [2, 1], [0; 2], [[1, 1], [2, 0]]);
        run(op, &[2, 3, 9, 12], [3, 4], [2, 3], [0; 2], [[1, 1], [2, 0]]);
        run(op, &[2, 3, 7, 8], [0; 2], [0; 2], [0; 2], [[0; 2]; 2]);
        run(op, &[2, 3, 9], [0; 2], [0; 2], [0; 2], [[0; 2]; 2]);
    }
}

/// Only a whole volume is pooled: as planes are.
#[test]
fn volumes() {
    let mut pooling = weir_pooling_desc {
        struct_size: size_of::<weir_pooling_desc>(),
        flags: weir_pooling_flags::WEIR_POOLING_GLOBAL as u64,
        op: WEIR_POOLING_AVERAGE as u32,
        data_layout: 0,
        kernel: [0; 2],
        strides: [0; 2],
        dilations: [0; 2],
        padding_begin: [0; 2],
        padding_end: [0; 2],
        depth_kernel: 0,
        depth_stride: 0,
        depth_dilation: 0,
        depth_padding_begin: 0,
        depth_padding_end: 0,
    };
    let x = Tensor::random(dtype::F32, &[2, 3, 4, 5, 6], 1);
    check("pooling", weir_kernel_create_pooling, &pooling, std::slice::from_ref(&x), Distance::Near(1e-6));
    (pooling.flags, pooling.kernel, pooling.depth_kernel) = (0, [2; 2], 2);
    let text = "CUDA devices have no convolution and no pooling of volumes, [N, C, D, H, W]";
    assert_eq!(refusal(Operation::Builtin(&described(&pooling)), 1), text);
    let mut conv = weir_conv_desc::of_bytes(&[0; size_of::<weir_conv_desc>()]);
    let weights = Tensor::random(dtype::F32, &[4, 3, 2, 2, 2], 2);
    let y = Desc::new(dtype::F32, &[2, 4, 3, 4, 5]);
    assert_eq!(plan("conv", &described(&conv), &[x, weights], &[y]).unwrap_err(), format!("conv: {text}"));
    conv.depth_stride = 2;
    assert_eq!(refusal(Operation::Builtin(&described(&conv)), 2), text);
}
