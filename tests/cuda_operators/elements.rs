//! Functions of elements, storage types, quantization.

use crate::create::*;
use crate::kit::{Distance, Random, Tensor, check};
use weir_core::base::dtype;
use weir_core::ops::weir_binary_op_value as Op;
use weir_core::ops::weir_eltwise_op_value as F;
use weir_core::ops::*;

const FLOATS: [u32; 3] = [dtype::F32, dtype::F16, dtype::BF16];
const ALL: [u32; 8] = [dtype::F32, dtype::S64, dtype::S32, dtype::U8, dtype::S8, dtype::F16, dtype::BF16, dtype::BOOL];

/// Numbers of every magnitude, and what is none.
pub fn special(dims: &[i64], seed: u64) -> Tensor {
    const SPECIAL: [f32; 24] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-40,
        0.5,
        1.5,
        2.5,
        -2.5,
        88.7,
        -88.0,
        -104.5,
        20.5,
        3e9,
        -3e9,
        8_388_609.0,
        16_777_217.0,
    ];
    let mut random = Random::new(seed);
    Tensor::f32(dims, |i| match SPECIAL.get(i) {
        Some(&x) => x,
        None if i % 3 == 0 => random.float() * 20.0,
        None if i % 7 == 0 => f32::from_bits(random.next() << 1),
        None => random.float(),
    })
}

pub fn eltwise(op: F, alpha: f32, beta: f32) -> weir_eltwise_desc {
    weir_eltwise_desc { struct_size: size_of::<weir_eltwise_desc>(), op: op as u32, alpha, beta, reserved: 0 }
}

/// Functions of one number, but powers, with their alpha and beta.
pub const FUNCTIONS: [(F, f32, f32); 36] = [
    (F::WEIR_ELTWISE_RELU, 0.0, 0.0),
    (F::WEIR_ELTWISE_RELU, 0.1, 0.0),
    (F::WEIR_ELTWISE_ELU, 0.7, 0.0),
    (F::WEIR_ELTWISE_GELU_ERF, 0.0, 0.0),
    (F::WEIR_ELTWISE_GELU_TANH, 0.0, 0.0),
    (F::WEIR_ELTWISE_TANH, 0.0, 0.0),
    (F::WEIR_ELTWISE_SIGMOID, 0.0, 0.0),
    (F::WEIR_ELTWISE_SWISH, 1.3, 0.0),
    (F::WEIR_ELTWISE_SWISH, 0.0, 0.0),
    (F::WEIR_ELTWISE_EXP, 0.0, 0.0),
    (F::WEIR_ELTWISE_LOG, 0.0, 0.0),
    (F::WEIR_ELTWISE_SQRT, 0.0, 0.0),
    (F::WEIR_ELTWISE_SQUARE, 0.0, 0.0),
    (F::WEIR_ELTWISE_ABS, 0.0, 0.0),
    (F::WEIR_ELTWISE_NEG, 0.0, 0.0),
    (F::WEIR_ELTWISE_CLIP, -0.5, 1.25),
    (F::WEIR_ELTWISE_LINEAR, 1.7, -0.3),
    (F::WEIR_ELTWISE_HARDSIGMOID, 0.2, 0.5),
    (F::WEIR_ELTWISE_HARDSIGMOID, 0.0, 0.5),
    (F::WEIR_ELTWISE_HARDSWISH, 0.2, 0.5),
    (F::WEIR_ELTWISE_HARDSWISH, 0.0, 0.5),
    (F::WEIR_ELTWISE_HARDSWISH, 0.0, -1.0),
    (F::WEIR_ELTWISE_ROUND, 0.0, 0.0),
    (F::WEIR_ELTWISE_MISH, 0.0, 0.0),
    (F::WEIR_ELTWISE_SOFTPLUS, 1.5, 0.0),
    (F::WEIR_ELTWISE_SOFTPLUS, -2.0, 0.0),
    (F::WEIR_ELTWISE_ERF, 0.0, 0.0),
    (F::WEIR_ELTWISE_FLOOR, 0.0, 0.0),
    (F::WEIR_ELTWISE_CEIL, 0.0, 0.0),
    (F::WEIR_ELTWISE_TRUNC, 0.0, 0.0),
    (F::WEIR_ELTWISE_SIGN, 0.0, 0.0),
    (F::WEIR_ELTWISE_ASIN, 0.0, 0.0),
    (F::WEIR_ELTWISE_ACOS, 0.0, 0.0),
    (F::WEIR_ELTWISE_ATAN, 0.0, 0.0),
    (F::WEIR_ELTWISE_SINH, 0.0, 0.0),
    (F::WEIR_ELTWISE_COSH, 0.0, 0.0),
];

#[test]
fn functions_of_one_number() {
    for (op, alpha, beta) in FUNCTIONS {
        let x = special(&[3, 67], op as u64);
        check("eltwise", weir_kernel_create_eltwise, &eltwise(op, alpha, beta), &[x], Distance::Formula(4e-6));
    }
    for of in [dtype::F16, dtype::BF16] {
        for op in [F::WEIR_ELTWISE_GELU_ERF, F::WEIR_ELTWISE_EXP, F::WEIR_ELTWISE_NEG] {
            let x = Tensor::random(of, &[150], 5);
            check("eltwise", weir_kernel_create_eltwise, &eltwise(op, 0.0, 0.0), &[x], Distance::Formula(8e-3));
        }
    }
    let desc = eltwise(F::WEIR_ELTWISE_RELU, 0.0, 0.0);
    check("eltwise", weir_kernel_create_eltwise, &desc, &[special(&[70], 1)], Distance::None);
    check("eltwise", weir_kernel_create_eltwise, &desc, &[special(&[0, 3], 1)], Distance::None);
}

#[test]
fn powers() {
    // The C library's powf is within an ulp, and so is ours.
    for beta in [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, -0.5, -1.0, 2.75, -3.0, 7.0, 1e9, f32::INFINITY, f32::NEG_INFINITY] {
        let desc = eltwise(F::WEIR_ELTWISE_POW, 1.25, beta);
        let x = special(&[120], 9);
        check("eltwise", weir_kernel_create_eltwise, &desc, &[x], Distance::Near(2.4e-7));
    }
    let desc = binary(Op::WEIR_BINARY_POW);
    let (a, b) = (special(&[24, 1], 3), special(&[1, 24], 3));
    check("binary", weir_kernel_create_binary, &desc, &[a, b], Distance::Near(2.4e-7));
}

pub fn binary(op: Op) -> weir_binary_desc {
    Binary::desc(op)
}

/// Each rounding with each overflow.
pub fn settings() -> impl Iterator<Item = (u32, u32)> {
    (0..3).flat_map(|rounding| [0, 1].map(|overflow| (rounding, overflow)))
}

pub fn convert(dtype: u32, scale: f32, shift: f32, rounding: u32, overflow: u32) -> weir_convert_desc {
    let struct_size = size_of::<weir_convert_desc>();
    weir_convert_desc { struct_size, dtype, scale, shift, reserved: 0, rounding, overflow }
}

#[test]
fn functions_of_two_numbers_with_broadcasting() {
    use Op::*;
    let arithmetic =
        [WEIR_BINARY_ADD, WEIR_BINARY_SUB, WEIR_BINARY_MUL, WEIR_BINARY_DIV, WEIR_BINARY_MIN, WEIR_BINARY_MAX];
    let comparisons = [WEIR_BINARY_EQ, WEIR_BINARY_NE, WEIR_BINARY_LT, WEIR_BINARY_LE, WEIR_BINARY_GT, WEIR_BINARY_GE];
    let run = |op, inputs: &[Tensor]| {
        check("binary", weir_kernel_create_binary, &binary(op), inputs, Distance::None);
    };
    for op in arithmetic.into_iter().chain(comparisons) {
        run(op, &[special(&[24, 1], 7), special(&[24], 7)]);
        for of in ALL {
            let takes_bools = comparisons.contains(&op) || [WEIR_BINARY_MIN, WEIR_BINARY_MAX].contains(&op);
            if of != dtype::BOOL || takes_bools {
                run(op, &[Tensor::random(of, &[5, 9], 1), Tensor::random(of, &[9], 2)]);
            }
        }
    }
    for (a, b) in [
        (&[2, 1, 3, 1][..], &[4, 1, 5][..]),
        (&[][..], &[3, 2][..]),
        (&[6][..], &[1][..]),
        (&[0, 4][..], &[1, 4][..]),
        (&[2, 3, 4][..], &[2, 3, 4][..]),
    ] {
        run(WEIR_BINARY_SUB, &[Tensor::random(dtype::F32, a, 3), Tensor::random(dtype::F32, b, 4)]);
    }
    for (rounding, overflow) in settings() {
        for op in arithmetic.into_iter().chain([WEIR_BINARY_REM]) {
            let desc = weir_binary_desc { rounding, overflow, ..binary(op) };
            let run = |inputs: &[Tensor]| {
                check("binary", weir_kernel_create_binary, &desc, inputs, Distance::None);
            };
            for of in ALL.into_iter().filter(|&of| of != dtype::BOOL) {
                run(&[Tensor::random(of, &[5, 9], 1), Tensor::random(of, &[9], 2)]);
            }
            run(&[special(&[24, 1], 7), special(&[24], 7)]);
            let limits = [i64::MIN, i64::MAX, 0, -1, 7, 2, -2, 3_037_000_500, i64::MIN + 1, 1 << 53];
            run(&[Tensor::s64(&[10], |i| limits[i]), Tensor::s64(&[10, 1], |i| limits[i])]);
            let limits = [i32::MIN, i32::MAX, 0, -1, 7, 2, -2, 46_341, i32::MIN + 1, 1 << 24];
            run(&[Tensor::s32(&[10], |i| limits[i]), Tensor::s32(&[10, 1], |i| limits[i])]);
        }
    }
    let ends = Tensor::s32(&[6], |i| [i32::MIN, i32::MAX, 0, -1, 7, 2][i]);
    let others = Tensor::s32(&[6, 1], |i| [0, -1, 2, i32::MIN, 3, i32::MAX][i]);
    for op in arithmetic.into_iter().chain(comparisons) {
        run(op, &[ends.clone(), others.clone()]);
    }
    let desc = binary(Op::WEIR_BINARY_ADD);
    let inputs = [Tensor::random(dtype::F32, &[4, 10], 1), Tensor::random(dtype::F32, &[10], 2)];
    check("binary", weir_kernel_create_binary, &desc, &inputs, Distance::None);
}

#[test]
fn choices() {
    let desc = weir_select_desc { struct_size: size_of::<weir_select_desc>() };
    for of in ALL {
        let condition = Tensor::random(dtype::BOOL, &[3, 1, 5], 1);
        let inputs = [condition, Tensor::random(of, &[4, 1], 2), Tensor::random(of, &[3, 4, 5], 3)];
        check("select", weir_kernel_create_select, &desc, &inputs, Distance::None);
    }
}

#[test]
fn storage_types() {
    for from in ALL {
        for to in ALL {
            for ((scale, shift), (rounding, overflow)) in
                [(0.0, 0.0), (37.5, -3.25)].into_iter().flat_map(|by| settings().map(move |of| (by, of)))
            {
                let desc = convert(to, scale, shift, rounding, overflow);
                let x = if from == dtype::F32 { special(&[70], 2) } else { Tensor::random(from, &[70], 2) };
                check("convert", weir_kernel_create_convert, &desc, &[x], Distance::None);
            }
        }
    }
}

#[test]
fn quantization() {
    let scales = |dims: &[i64]| Tensor::f32(dims, |i| 0.017 * (i + 1) as f32);
    for (flags, axis, channels) in [(0, 0, None), (1, 0, None), (1, 0, Some(3)), (1, 1, Some(4)), (0, -1, Some(5))] {
        let of_channels =
            |tensor: &dyn Fn(&[i64]) -> Tensor| tensor(&channels.map_or(vec![], |channels| vec![channels]));
        let mut more = vec![of_channels(&scales)];
        if flags == 1 {
            more.push(of_channels(&|dims| Tensor::s32(dims, |i| 3 * i as i32 - 4)));
        }
        for to in [dtype::S8, dtype::U8, dtype::S32] {
            for of in FLOATS {
                let size = size_of::<weir_quantize_desc>();
                let forth = weir_quantize_desc { struct_size: size, flags, dtype: to, axis };
                let inputs = [&[Tensor::random(of, &[3, 4, 5], 8)][..], &more].concat();
                check("quantize", weir_kernel_create_quantize, &forth, &inputs, Distance::None);
                let flags = flags | weir_quantize_flags::WEIR_QUANTIZE_DEQUANTIZE as u64;
                let back = weir_quantize_desc { struct_size: size, flags, dtype: of, axis };
                let inputs = [&[Tensor::random(to, &[3, 4, 5], 8)][..], &more].concat();
                check("quantize", weir_kernel_create_quantize, &back, &inputs, Distance::None);
            }
        }
    }
    let desc = weir_quantize_desc { struct_size: size_of::<weir_quantize_desc>(), flags: 0, dtype: dtype::S8, axis: 0 };
    let one = Tensor::f32(&[1], |_| 0.5);
    check("quantize", weir_kernel_create_quantize, &desc, &[special(&[40], 4), one], Distance::None);
}
