//! The settings that `types` tries all types with.

use crate::create::*;
use crate::elements::{FUNCTIONS, binary, convert, eltwise};
use crate::kit::Distance;
use crate::types::{ALL, Table, Values, any};
use weir_core::base::dtype;
use weir_core::ops::weir_binary_op_value::*;
use weir_core::ops::weir_eltwise_op_value::*;
use weir_core::ops::weir_matmul_flags::*;
use weir_core::ops::weir_matmul_int8_flags::*;
use weir_core::ops::weir_norm_op_value::*;
use weir_core::ops::weir_reduce_op_value::*;
use weir_core::ops::*;

const FLOATS: &[u32] = &[dtype::F32, dtype::F16, dtype::BF16];

fn padded<const N: usize, T: Copy + Default>(values: &[T]) -> [T; N] {
    std::array::from_fn(|i| values.get(i).copied().unwrap_or_default())
}

fn exact(_: u32, _: u32) -> Distance {
    Distance::None
}

/// A distance of floats, and that of what was rounded to halves.
fn near(floats: f64, halves: f64) -> impl Fn(u32, u32) -> Distance {
    move |_, to| Distance::Near(if to == dtype::F32 { floats } else { halves })
}

fn of_elements(table: &mut Table) {
    for (op, alpha, beta) in FUNCTIONS {
        let of = |_, to| Distance::Formula(if to == dtype::F32 { 4e-6 } else { 8e-3 });
        let x = any(&[3, 167]).with(Values::Special);
        let desc = eltwise(op, alpha, beta);
        table.case(("eltwise", "each function"), weir_kernel_create_eltwise, &desc, &[x], 1, of);
    }
    for beta in [2.0, -0.5, 2.75] {
        let x = any(&[167]).with(Values::Special);
        let desc = eltwise(WEIR_ELTWISE_POW, 1.25, beta);
        // What is rounded to a half may be rounded the other way.
        table.case(("eltwise", "powers"), weir_kernel_create_eltwise, &desc, &[x], 1, near(2.4e-7, 8e-3));
    }
    // Both stretch.
    let operands = [any(&[3, 1, 25]).with(Values::Special), any(&[4, 1]).with(Values::Special)];
    for op in [WEIR_BINARY_ADD, WEIR_BINARY_SUB, WEIR_BINARY_MUL, WEIR_BINARY_DIV, WEIR_BINARY_REM] {
        table.case(("binary", "arithmetic"), weir_kernel_create_binary, &binary(op), &operands, 1, exact);
    }
    for op in [WEIR_BINARY_MIN, WEIR_BINARY_MAX] {
        table.case(("binary", "extremes"), weir_kernel_create_binary, &binary(op), &operands, 1, exact);
    }
    let of = near(2.4e-7, 8e-3);
    table.case(("binary", "power"), weir_kernel_create_binary, &binary(WEIR_BINARY_POW), &operands, 1, of);
    for op in [WEIR_BINARY_EQ, WEIR_BINARY_NE, WEIR_BINARY_LT, WEIR_BINARY_LE, WEIR_BINARY_GT, WEIR_BINARY_GE] {
        table.case(("binary", "comparisons"), weir_kernel_create_binary, &binary(op), &operands, 1, exact);
    }
    let desc = weir_select_desc { struct_size: size_of::<weir_select_desc>() };
    let inputs = [any(&[3, 1, 5]), any(&[4, 1]), any(&[1, 4, 5])];
    table.case(("select", ""), weir_kernel_create_select, &desc, &inputs, 1, exact);
}

fn storage(table: &mut Table) {
    for to in ALL {
        for (scale, shift) in [(0.0, 0.0), (37.5, -3.25)] {
            let desc = convert(to, scale, shift, 0, 0);
            let x = any(&[70]).with(Values::Special);
            table.case(("convert", "with a scale and without"), weir_kernel_create_convert, &desc, &[x], 1, exact);
        }
    }
    for (flags, dims, settings) in
        [(0, &[][..], "a scale"), (0, &[4][..], "scales"), (1, &[4][..], "scales and zero points")]
    {
        let more = [any(dims).with(Values::Positive), any(dims)];
        let inputs = [&[any(&[3, 4, 5])][..], &more[..1 + flags as usize]].concat();
        for to in [dtype::S8, dtype::U8, dtype::S32] {
            let size = size_of::<weir_quantize_desc>();
            let desc = weir_quantize_desc { struct_size: size, flags, dtype: to, axis: 1 };
            table.case(("quantize", settings), weir_kernel_create_quantize, &desc, &inputs, 1, exact);
        }
        for &to in FLOATS {
            let flags = flags | weir_quantize_flags::WEIR_QUANTIZE_DEQUANTIZE as u64;
            let desc = weir_quantize_desc { struct_size: size_of::<weir_quantize_desc>(), flags, dtype: to, axis: 1 };
            table.case(
                ("quantize", format!("{settings}, back").as_str()),
                weir_kernel_create_quantize,
                &desc,
                &inputs,
                1,
                exact,
            );
        }
    }
}

fn movement(table: &mut Table) {
    for (dims, permutation) in [(&[9, 35][..], &[1, 0][..]), (&[3, 4, 5][..], &[1, 0, 2][..])] {
        let (struct_size, rank) = (size_of::<weir_transpose_desc>(), permutation.len() as u32);
        let desc = weir_transpose_desc { struct_size, rank, reserved: 0, permutation: padded(permutation) };
        table.case(("transpose", ""), weir_kernel_create_transpose, &desc, &[any(dims)], 1, exact);
    }
    for axis in [0, 1] {
        let desc = weir_concat_desc { struct_size: size_of::<weir_concat_desc>(), num_inputs: 2, axis };
        let other: &[i64] = if axis == 0 { &[3, 5] } else { &[2, 3] };
        table.case(("concat", ""), weir_kernel_create_concat, &desc, &[any(&[2, 5]), any(other)], 1, exact);
    }
    for step in [1, -2] {
        let desc = weir_slice_desc {
            struct_size: size_of::<weir_slice_desc>(),
            rank: 2,
            reserved: 0,
            begin: padded(&[0, if step > 0 { 1 } else { -1 }]),
            end: padded(&[i64::MAX, if step > 0 { 6 } else { 0 }]),
            step: padded(&[1, step]),
        };
        table.case(("slice", ""), weir_kernel_create_slice, &desc, &[any(&[3, 7])], 1, exact);
    }
    for (mode, settings) in [(0, "a value"), (1, "mirrored"), (2, "the edge")] {
        let desc = weir_pad_desc {
            struct_size: size_of::<weir_pad_desc>(),
            rank: 2,
            mode,
            before: padded(&[1, 3]),
            after: padded(&[0, 2]),
            value: 1.0,
        };
        table.case(("pad", settings), weir_kernel_create_pad, &desc, &[any(&[3, 5])], 1, exact);
    }
    let size = size_of::<weir_reshape_desc>();
    let desc = weir_reshape_desc { struct_size: size, rank: 2, reserved: 0, dims: padded(&[5, -1]) };
    table.case(("reshape", ""), weir_kernel_create_reshape, &desc, &[any(&[3, 5])], 1, exact);
    for axis in [0, 1] {
        let desc = weir_gather_desc { axis, ..Gather::DEFAULT.unwrap() };
        let inputs = [any(&[4, 5]), any(&[2, 3]).with(Values::Index(4))];
        table.case(("gather", ""), weir_kernel_create_gather, &desc, &inputs, 1, exact);
    }
}

fn rows(table: &mut Table) {
    for flags in [0, 1] {
        let desc = weir_softmax_desc { struct_size: size_of::<weir_softmax_desc>(), axis: -1, reserved: 0, flags };
        let settings = if flags == 0 { "" } else { "logarithm" };
        table.case(("softmax", settings), weir_kernel_create_softmax, &desc, &[any(&[3, 41])], 1, near(6e-6, 8e-3));
    }
    for (op, p) in [
        (WEIR_REDUCE_SUM, 0.0),
        (WEIR_REDUCE_MEAN, 0.0),
        (WEIR_REDUCE_MIN, 0.0),
        (WEIR_REDUCE_MAX, 0.0),
        (WEIR_REDUCE_MUL, 0.0),
        (WEIR_REDUCE_NORM_MAX, 2.0),
        (WEIR_REDUCE_NORM_SUM, 1.0),
        (WEIR_REDUCE_NORM_POWER_MAX, 1.0),
        (WEIR_REDUCE_NORM_POWER_SUM, 2.0),
        (WEIR_REDUCE_ARGMAX, 0.0),
        (WEIR_REDUCE_ARGMIN, 0.0),
    ] {
        for flags in [0, weir_reduce_flags::WEIR_REDUCE_KEEP_DIMS as u64] {
            let desc = weir_reduce_desc {
                struct_size: size_of::<weir_reduce_desc>(),
                flags,
                op: op as u32,
                num_axes: 1,
                axes: padded(&[1]),
                p,
                eps: if p > 0.0 { 0.25 } else { 0.0 },
            };
            let is_place = [WEIR_REDUCE_ARGMAX, WEIR_REDUCE_ARGMIN].contains(&op);
            let settings = match op {
                _ if is_place => "places",
                WEIR_REDUCE_MIN | WEIR_REDUCE_MAX => "extremes",
                _ if p > 0.0 => "norms",
                _ => "sums and products",
            };
            let of = near(3e-7, if is_place { 0.0 } else { 8e-3 });
            table.case(("reduce", settings), weir_kernel_create_reduce, &desc, &[any(&[3, 41, 2])], 1, of);
        }
    }
    for (op, settings) in [
        (WEIR_NORM_LAYER, "layer"),
        (WEIR_NORM_RMS, "root mean square"),
        (WEIR_NORM_BATCH, "batch"),
        (WEIR_NORM_GROUP, "group"),
    ] {
        let is_batch = op == WEIR_NORM_BATCH;
        for flags in 0..4u64 {
            let desc = weir_norm_desc {
                struct_size: size_of::<weir_norm_desc>(),
                flags,
                op: op as u32,
                axis: 1,
                groups: if op == WEIR_NORM_GROUP { 3 } else { 0 },
                epsilon: 1e-3,
            };
            let one: &[i64] = if is_batch || op == WEIR_NORM_GROUP { &[6] } else { &[6, 5] };
            let mut inputs = vec![any(&[2, 6, 5])];
            if is_batch {
                inputs.extend([any(one).of(FLOATS), any(one).of(FLOATS).with(Values::Positive)]);
            }
            (0..flags.count_ones()).for_each(|_| inputs.push(any(one).of(FLOATS)));
            let words = format!("{settings}{}", ["", ", a scale", ", a shift", ", both"][flags as usize]);
            let of = near(4e-6, 1.6e-2);
            table.case(("norm", &words), weir_kernel_create_norm, &desc, &inputs, 1, of);
        }
    }
}

fn windows(table: &mut Table) {
    for (x, weights) in [(&[2, 3, 9][..], &[4, 3, 3][..]), (&[1, 3, 6, 5][..], &[4, 3, 3, 2][..])] {
        for bias in [0, 1] {
            let desc = weir_conv_desc {
                struct_size: size_of::<weir_conv_desc>(),
                flags: bias,
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
            };
            let inputs = [&[any(x), any(weights)][..], &[any(&[4])][..bias as usize]].concat();
            let settings = if bias == 1 { "bias" } else { "" };
            table.case(("conv", settings), weir_kernel_create_conv, &desc, &inputs, 1, near(3e-5, 8e-3));
        }
        for op in 1..4 {
            for whole in [0, 1] {
                let kernel = if whole == 1 { [0; 2] } else { padded(&[3, 2][..x.len() - 2]) };
                let desc = weir_pooling_desc {
                    struct_size: size_of::<weir_pooling_desc>(),
                    flags: whole,
                    op,
                    data_layout: 0,
                    kernel,
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
                table.case(("pooling", ""), weir_kernel_create_pooling, &desc, &[any(x)], 1, near(1e-6, 8e-3));
            }
        }
    }
    let (x, states, w, r, bias) = (any(&[2, 5]), any(&[2, 3]), &[3, 5], &[3, 3], &[3]);
    let times = |gates: i64, dims: &[i64]| [&[dims[0] * gates][..], &dims[1..]].concat();
    let few = &[dtype::F32, dtype::F16, dtype::S8][..];
    let desc = weir_lstm_desc { struct_size: size_of::<weir_lstm_desc>(), flags: 1, gate_order: 0, reserved: 0 };
    let [w4, r4, b4] = [times(4, w), times(4, r), times(4, bias)];
    let inputs = [x, states, states, any(&w4), any(&r4), any(&b4), any(&b4)].map(|input| input.of(few));
    table.case(("lstm", ""), weir_kernel_create_lstm, &desc, &inputs, 2, near(1e-5, 8e-3));
    for flags in [1, 3] {
        let desc = weir_gru_desc { struct_size: size_of::<weir_gru_desc>(), flags, gate_order: 0, reserved: 0 };
        let [w3, r3, b3] = [times(3, w), times(3, r), times(3, bias)];
        let inputs = [x, states, any(&w3), any(&r3), any(&b3), any(&b3)].map(|input| input.of(few));
        table.case(("gru", ""), weir_kernel_create_gru, &desc, &inputs, 1, near(1e-5, 8e-3));
    }
}

fn products(table: &mut Table) {
    let none = std::ptr::null_mut();
    for (flags, settings) in [
        (0, ""),
        (WEIR_MATMUL_BIAS as u64, "bias"),
        (WEIR_MATMUL_F32_RESULT as u64, "a result of f32"),
        (WEIR_MATMUL_F32_RESULT as u64 | WEIR_MATMUL_BIAS as u64, "a result of f32, bias"),
    ] {
        for activation in 0..6 {
            let size = size_of::<weir_matmul_desc>();
            let desc = weir_matmul_desc {
                struct_size: size,
                flags,
                activation,
                reserved: 0,
                weights: none,
                alpha: 0.0,
                beta: 0.0,
            };
            let has_bias = flags & WEIR_MATMUL_BIAS as u64 != 0;
            let inputs = [&[any(&[2, 7]), any(&[7, 5])][..], &[any(&[5])][..has_bias.into()]].concat();
            table.case(("matmul", settings), weir_kernel_create_matmul, &desc, &inputs, 1, near(3e-5, 1.6e-2));
        }
    }
    for (flags, settings) in [
        (0, ""),
        (WEIR_MATMUL_INT8_BIAS as u64, "bias"),
        (WEIR_MATMUL_INT8_BIAS as u64 | WEIR_MATMUL_INT8_SCALES as u64, "bias and scales"),
    ] {
        for to in [dtype::S32, dtype::F32, dtype::S8, dtype::U8] {
            let desc = weir_matmul_int8_desc {
                struct_size: size_of::<weir_matmul_int8_desc>(),
                flags,
                dtype: to,
                scale: 0.25,
                zero_a: 3,
                zero_b: -7,
                zero_c: 11,
                reserved: 0,
                weights: none,
            };
            let more = [any(&[5]).of(&[dtype::S32, dtype::F32]), any(&[5]).of(FLOATS)];
            let inputs = [&[any(&[2, 7]), any(&[7, 5])][..], &more[..flags.count_ones() as usize]].concat();
            table.case(("matmul_int8", settings), weir_kernel_create_matmul_int8, &desc, &inputs, 1, exact);
        }
    }
}

#[test]
fn all_that_the_processor_takes() {
    let mut table = Table::default();
    of_elements(&mut table);
    storage(&mut table);
    movement(&mut table);
    rows(&mut table);
    windows(&mut table);
    products(&mut table);
    table.compare();
}
