//! Matrix products.

use crate::create::*;
use crate::kit::{Distance, Random, Tensor, check, is_exact};
use weir_core::base::dtype;
use weir_core::ops::weir_activation_value::*;
use weir_core::ops::weir_matmul_flags::*;
use weir_core::ops::*;

fn matmul(flags: &[weir_matmul_flags], activation: weir_activation_value) -> weir_matmul_desc {
    weir_matmul_desc {
        struct_size: size_of::<weir_matmul_desc>(),
        flags: flags.iter().fold(0, |all, &flag| all | flag as u64),
        activation: activation as u32,
        reserved: 0,
        weights: std::ptr::null_mut(),
        alpha: 0.0,
        beta: 0.0,
    }
}

/// Inputs of a product of these shapes, with bias and addend as the flags say.
fn run(of: u32, flags: &[weir_matmul_flags], activation: weir_activation_value, a: &[i64], b: &[i64]) -> Vec<String> {
    let has = |flag| flags.contains(&flag);
    let n = b[b.len() - if has(WEIR_MATMUL_TRANSPOSE_B) { 2 } else { 1 }];
    let m = a[a.len() - if has(WEIR_MATMUL_TRANSPOSE_A) { 1 } else { 2 }];
    let to = if has(WEIR_MATMUL_F32_RESULT) { dtype::F32 } else { of };
    let mut inputs = vec![Tensor::random(of, a, 1), Tensor::random(of, b, 2)];
    if has(WEIR_MATMUL_BIAS) {
        inputs.push(Tensor::random(to, &[n], 3));
    }
    if has(WEIR_MATMUL_SUM) {
        let longer = if a.len() >= b.len() { a } else { b };
        let rank = longer.len();
        let leading = |i: usize| {
            let of = |dims: &[i64]| dims.len().checked_sub(rank - i).map_or(1, |at| dims[at]);
            of(a).max(of(b))
        };
        let dims: Vec<i64> = (0..rank)
            .map(|i| {
                if i + 2 == rank {
                    m
                } else if i + 1 == rank {
                    n
                } else {
                    leading(i)
                }
            })
            .collect();
        inputs.push(Tensor::random(to, &dims, 4));
    }
    // A single column is made of dot products on the processor.
    let (k, exact) = (16, is_exact() && n > 1 && !crate::engine::has_library());
    let distance = match of {
        dtype::F32 if exact => Distance::None,
        dtype::F32 => Distance::Near(3e-6 * f64::from(k)),
        _ if exact => Distance::None,
        _ => Distance::Near(1.6e-2),
    };
    check("matmul", weir_kernel_create_matmul, &matmul(flags, activation), &inputs, distance)
}

#[test]
fn products_of_all_layouts() {
    use weir_matmul_flags::*;
    let flags = [
        vec![],
        vec![WEIR_MATMUL_TRANSPOSE_A],
        vec![WEIR_MATMUL_TRANSPOSE_B],
        vec![WEIR_MATMUL_TRANSPOSE_A, WEIR_MATMUL_TRANSPOSE_B],
    ];
    for (m, n, k) in [(1, 1, 1), (3, 5, 7), (17, 33, 16), (16, 16, 40), (5, 18, 150), (1, 40, 20), (5, 1, 9), (4, 4, 0)]
    {
        for flags in &flags {
            let a = if flags.contains(&WEIR_MATMUL_TRANSPOSE_A) { [k, m] } else { [m, k] };
            let b = if flags.contains(&WEIR_MATMUL_TRANSPOSE_B) { [n, k] } else { [k, n] };
            assert_eq!(run(dtype::F32, flags, WEIR_ACTIVATION_NONE, &a, &b), ["weir_matmul_16_f32"]);
        }
    }
}

#[test]
fn what_follows_a_product() {
    for activation in [
        WEIR_ACTIVATION_RELU,
        WEIR_ACTIVATION_GELU_ERF,
        WEIR_ACTIVATION_GELU_TANH,
        WEIR_ACTIVATION_SIGMOID,
        WEIR_ACTIVATION_TANH,
    ] {
        run(dtype::F32, &[WEIR_MATMUL_BIAS, WEIR_MATMUL_SUM], activation, &[7, 12], &[12, 9]);
    }
    run(dtype::F32, &[WEIR_MATMUL_BIAS], WEIR_ACTIVATION_RELU, &[7, 12], &[12, 9]);
    run(dtype::F32, &[WEIR_MATMUL_SUM], WEIR_ACTIVATION_NONE, &[2, 3, 4], &[4, 5]);
    run(dtype::F32, &[WEIR_MATMUL_SUM], WEIR_ACTIVATION_NONE, &[3, 4], &[2, 4, 5]);
}

#[test]
fn batches_broadcast() {
    for (a, b) in [
        (&[3, 4, 5][..], &[5, 6][..]),
        (&[4, 5][..], &[3, 5, 6][..]),
        (&[3, 4, 5][..], &[3, 5, 6][..]),
        (&[2, 1, 4, 5][..], &[3, 5, 6][..]),
        (&[2, 3, 4, 5][..], &[2, 1, 5, 6][..]),
        (&[0, 4, 5][..], &[5, 6][..]),
    ] {
        run(dtype::F32, &[WEIR_MATMUL_BIAS], WEIR_ACTIVATION_NONE, a, b);
    }
    run(dtype::F32, &[WEIR_MATMUL_TRANSPOSE_A], WEIR_ACTIVATION_NONE, &[3, 5, 4], &[5, 6]);
}

#[test]
fn halves() {
    for of in [dtype::F16, dtype::BF16] {
        run(of, &[WEIR_MATMUL_BIAS], WEIR_ACTIVATION_RELU, &[9, 20], &[20, 18]);
        run(of, &[WEIR_MATMUL_F32_RESULT, WEIR_MATMUL_SUM], WEIR_ACTIVATION_NONE, &[9, 20], &[20, 18]);
        run(of, &[WEIR_MATMUL_TRANSPOSE_B], WEIR_ACTIVATION_NONE, &[2, 5, 20], &[18, 20]);
    }
}

#[test]
fn large_tiles_give_the_same_bits() {
    // So many matrices that larger tiles are taken, and longer along K than a tile is at a time.
    assert_eq!(run(dtype::F32, &[], WEIR_ACTIVATION_NONE, &[128, 34, 11], &[128, 11, 33]), ["weir_matmul_128_f32"]);
    assert_eq!(run(dtype::F16, &[], WEIR_ACTIVATION_NONE, &[128, 33, 18], &[128, 18, 33]), ["weir_matmul_64_f16"]);
    assert_eq!(run(dtype::BF16, &[], WEIR_ACTIVATION_NONE, &[128, 33, 5], &[128, 5, 33]), ["weir_matmul_64_bf16"]);
}

#[test]
fn bytes() {
    use weir_matmul_int8_flags::*;
    let run = |flags: &[weir_matmul_int8_flags], a: Tensor, b: Tensor, to: u32, scale: f32, zeros: [i32; 3], n: i64| {
        let has = |flag| flags.contains(&flag);
        let mut inputs = vec![a, b];
        if has(WEIR_MATMUL_INT8_BIAS) {
            let mut random = Random::new(5);
            inputs.push(Tensor::s32(&[n], |i| if i == 1 { i32::MAX } else { random.next() as i32 >> 16 }));
        }
        if has(WEIR_MATMUL_INT8_SCALES) {
            inputs.push(Tensor::f32(&[n], |i| 0.013 * (i as f32 - 2.0)));
        }
        let desc = weir_matmul_int8_desc {
            struct_size: size_of::<weir_matmul_int8_desc>(),
            flags: flags.iter().fold(0, |all, &flag| all | flag as u64),
            dtype: to,
            scale,
            zero_a: zeros[0],
            zero_b: zeros[1],
            zero_c: zeros[2],
            reserved: 0,
            weights: std::ptr::null_mut(),
        };
        check("matmul_int8", weir_kernel_create_matmul_int8, &desc, &inputs, Distance::None);
    };
    for of in [dtype::U8, dtype::S8] {
        for to in [dtype::S32, dtype::F32, dtype::S8, dtype::U8] {
            for (scale, zeros) in [(0.0, [0; 3]), (0.002, [3, -7, 11]), (1.0, [100, 5, -20])] {
                let random = |of, dims: &[i64]| Tensor::random(of, dims, 3);
                let both = [WEIR_MATMUL_INT8_BIAS, WEIR_MATMUL_INT8_SCALES];
                run(&[], random(of, &[3, 5, 19]), random(dtype::S8, &[19, 18]), to, scale, zeros, 18);
                run(&both[..1], random(of, &[5, 19]), random(dtype::S8, &[19, 6]), to, scale, zeros, 6);
                run(&both, random(of, &[5, 19]), random(dtype::S8, &[19, 6]), to, scale, zeros, 6);
                let turned = [WEIR_MATMUL_INT8_TRANSPOSE_A, WEIR_MATMUL_INT8_TRANSPOSE_B];
                run(&turned, random(of, &[19, 5]), random(dtype::S8, &[6, 19]), to, scale, zeros, 6);
            }
        }
    }
    // Sums that leave 32 bits.
    let long = |of, dims: &[i64], byte: u8| {
        let mut tensor = Tensor::random(of, dims, 1);
        tensor.bytes.fill(byte);
        tensor
    };
    let (a, b) = (long(dtype::U8, &[1, 66_100], 255), long(dtype::S8, &[66_100, 1], 127));
    run(&[], a.clone(), b.clone(), dtype::S32, 0.0, [0, -128, 0], 1);
    run(&[], a, b, dtype::F32, 0.5, [0; 3], 1);
}
