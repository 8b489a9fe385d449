//! Reductions, softmax, normalisations.

use crate::create::*;
use crate::kit::{Distance, Random, Tensor, check};
use weir_core::base::dtype;
use weir_core::ops::weir_norm_op_value::*;
use weir_core::ops::weir_reduce_op_value::*;
use weir_core::ops::*;

/// Numbers with infinities and NaNs in some rows, and equal ones.
fn with_some_special(of: u32, dims: &[i64]) -> Tensor {
    let mut tensor = Tensor::random(of, dims, 3);
    if of == dtype::F32 {
        let mut put = |at: usize, value: f32| {
            if let Some(place) = tensor.bytes.get_mut(at * 4..at * 4 + 4) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        };
        put(2, f32::NAN);
        put(7, f32::INFINITY);
        put(11, f32::NEG_INFINITY);
        put(15, 9.0);
        put(16, 9.0);
        put(14, -9.0);
        put(17, -9.0);
    }
    tensor
}

fn reduce(op: weir_reduce_op_value, axes: &[i32], p: f32, eps: f32) -> weir_reduce_desc {
    weir_reduce_desc {
        struct_size: size_of::<weir_reduce_desc>(),
        flags: 0,
        op: op as u32,
        num_axes: axes.len() as u32,
        axes: std::array::from_fn(|i| axes.get(i).copied().unwrap_or(0)),
        p,
        eps,
    }
}

#[test]
fn reductions_of_any_axes() {
    let ops = [
        (WEIR_REDUCE_SUM, 0.0),
        (WEIR_REDUCE_MEAN, 0.0),
        (WEIR_REDUCE_MIN, 0.0),
        (WEIR_REDUCE_MAX, 0.0),
        (WEIR_REDUCE_MUL, 0.0),
        (WEIR_REDUCE_NORM_MAX, 2.0),
        (WEIR_REDUCE_NORM_SUM, 1.0),
        (WEIR_REDUCE_NORM_SUM, 2.0),
        (WEIR_REDUCE_NORM_POWER_MAX, 1.0),
        (WEIR_REDUCE_NORM_POWER_SUM, 2.0),
        (WEIR_REDUCE_ARGMAX, 0.0),
        (WEIR_REDUCE_ARGMIN, 0.0),
    ];
    let run = |op, axes: &[i32], p: f32, x: Tensor| {
        let exact = [WEIR_REDUCE_MIN, WEIR_REDUCE_MAX, WEIR_REDUCE_ARGMAX, WEIR_REDUCE_ARGMIN].contains(&op);
        let half = x.desc.dtype != dtype::F32;
        let distance = match (exact, half) {
            (true, _) => Distance::None,
            (_, false) => Distance::Near(3e-7),
            _ => Distance::Near(8e-3),
        };
        let desc = reduce(op, axes, p, if p > 0.0 { 0.25 } else { 0.0 });
        check("reduce", weir_kernel_create_reduce, &desc, &[x], distance)
    };
    for (op, p) in ops {
        // Nothing is as large as a sum of it.
        let plain = |dims: &[i64]| Tensor::random(dtype::F32, dims, 1);
        assert!(run(op, &[-1], p, with_some_special(dtype::F32, &[4, 6, 5]))[0].ends_with("_columns"));
        run(op, &[1], p, with_some_special(dtype::F32, &[4, 6, 5]));
        run(op, &[0, 2], p, plain(&[2, 3, 4]));
        run(op, &[2, 0, 1], p, plain(&[3, 2, 4]));
        run(op, &[], p, plain(&[3, 2, 4]));
        assert!(run(op, &[1], p, with_some_special(dtype::F32, &[3, 70]))[0].ends_with("_rows"));
        assert!(run(op, &[0], p, plain(&[40, 3]))[0].ends_with("_rows"));
        assert!(run(op, &[0, 2], p, with_some_special(dtype::F32, &[6, 2, 30]))[0].ends_with("_rows"));
        for of in [dtype::F16, dtype::BF16] {
            run(op, &[1], p, Tensor::random(of, &[4, 6, 5], 2));
        }
    }
    for of in [dtype::S64, dtype::S32, dtype::S8, dtype::U8, dtype::BOOL] {
        for (op, _) in ops.into_iter().filter(|(_, p)| *p == 0.0) {
            let is_place = [WEIR_REDUCE_ARGMAX, WEIR_REDUCE_ARGMIN].contains(&op);
            if of == dtype::BOOL && !is_place && ![WEIR_REDUCE_MIN, WEIR_REDUCE_MAX].contains(&op) {
                continue;
            }
            let wide = weir_reduce_flags::WEIR_REDUCE_S64_INDICES as u64;
            for flags in [0, wide].into_iter().filter(|flags| *flags == 0 || is_place) {
                let run = |axes: &[i32], dims: &[i64]| {
                    let desc = weir_reduce_desc { flags, ..reduce(op, axes, 0.0, 0.0) };
                    let x = Tensor::random(of, dims, 4);
                    check("reduce", weir_kernel_create_reduce, &desc, &[x], Distance::None)
                };
                assert!(run(&[1], &[4, 6, 5])[0].ends_with("_whole_columns"));
                assert!(run(&[1], &[3, 70])[0].ends_with("_whole_rows"));
                run(&[0, 2], &[6, 2, 30]);
                run(&[0], &[1700]);
                if !is_place {
                    run(&[0], &[0, 3]);
                }
            }
        }
    }
    // Blocks of several warps; and a thread for each of many columns.
    for op in [WEIR_REDUCE_MEAN, WEIR_REDUCE_MAX, WEIR_REDUCE_ARGMIN] {
        run(op, &[1], 0.0, Tensor::random(dtype::F32, &[2, 700], 5));
        run(op, &[0], 0.0, Tensor::random(dtype::F32, &[17_000], 5));
        assert!(run(op, &[0], 0.0, Tensor::random(dtype::F32, &[34, 1024], 5))[0].ends_with("_columns"));
    }
    for op in [WEIR_REDUCE_SUM, WEIR_REDUCE_MEAN, WEIR_REDUCE_MIN, WEIR_REDUCE_MUL] {
        run(op, &[1], 0.0, Tensor::random(dtype::F32, &[3, 0], 5));
    }
}

#[test]
fn places_of_the_greatest() {
    for (dims, axis) in [(&[3, 10][..], -1), (&[3, 40][..], 1), (&[5, 4][..], 0), (&[2, 50, 3][..], 1)] {
        let desc = reduce(WEIR_REDUCE_ARGMAX, &[axis], 0.0, 0.0);
        let x = with_some_special(dtype::F32, dims);
        check("reduce", weir_kernel_create_reduce, &desc, &[x], Distance::None);
    }
}

#[test]
fn softmax() {
    for flags in [0, 1] {
        for (dims, axis) in [
            (&[4, 10][..], -1),
            (&[3, 70][..], 1),
            (&[1, 600][..], 1),
            (&[17_000][..], 0),
            (&[2, 6, 5][..], 1),
            (&[2, 40, 3][..], 1),
            (&[34, 1024][..], 0),
            (&[0, 4][..], 1),
        ] {
            let desc = weir_softmax_desc { struct_size: size_of::<weir_softmax_desc>(), axis, reserved: 0, flags };
            // The logarithm of a number near 1 is not near anything.
            let distance = Distance::Near(6e-6);
            check("softmax", weir_kernel_create_softmax, &desc, &[with_some_special(dtype::F32, dims)], distance);
        }
        for of in [dtype::F16, dtype::BF16] {
            let desc = weir_softmax_desc { struct_size: size_of::<weir_softmax_desc>(), axis: 1, reserved: 0, flags };
            let x = Tensor::random(of, &[3, 20], 1);
            check("softmax", weir_kernel_create_softmax, &desc, &[x], Distance::Near(8e-3));
        }
    }
    // Large numbers, of which differences are left.
    let mut random = Random::new(1);
    let x = Tensor::f32(&[2, 50], |_| 30.0 * random.float() + 1000.0);
    let desc = weir_softmax_desc { struct_size: size_of::<weir_softmax_desc>(), axis: -1, reserved: 0, flags: 0 };
    check("softmax", weir_kernel_create_softmax, &desc, &[x], Distance::Near(1e-6));
}

#[test]
fn normalisations() {
    let run = |op: weir_norm_op_value, axis: i32, groups: u32, flags: u64, dims: &[i64], of: u32, of_scale: u32| {
        let desc = weir_norm_desc {
            struct_size: size_of::<weir_norm_desc>(),
            flags,
            op: op as u32,
            axis,
            groups,
            epsilon: 1e-3,
        };
        let at = if axis < 0 { dims.len() - axis.unsigned_abs() as usize } else { axis as usize };
        let channels = matches!(op, WEIR_NORM_BATCH | WEIR_NORM_GROUP);
        let shape = if channels { &dims[at..=at] } else { &dims[at..] };
        let mut inputs = vec![Tensor::random(of, dims, 1)];
        if op == WEIR_NORM_BATCH {
            inputs.push(Tensor::random(dtype::F32, shape, 2));
            let mut random = Random::new(3);
            inputs.push(Tensor::f32(shape, |_| random.float().abs() + 0.1));
        }
        (0..flags.count_ones()).for_each(|i| inputs.push(Tensor::random(of_scale, shape, 4 + u64::from(i))));
        let distance = Distance::Near(if of == dtype::F32 { 4e-6 } else { 1.6e-2 });
        check("norm", weir_kernel_create_norm, &desc, &inputs, distance);
    };
    for flags in 0..4 {
        for (of, of_scale) in
            [(dtype::F32, dtype::F32), (dtype::F16, dtype::F32), (dtype::F16, dtype::F16), (dtype::BF16, dtype::BF16)]
        {
            run(WEIR_NORM_LAYER, -1, 0, flags, &[3, 20], of, of_scale);
            run(WEIR_NORM_LAYER, 1, 0, flags, &[2, 3, 20], of, of_scale);
            run(WEIR_NORM_RMS, -1, 0, flags, &[3, 300], of, of_scale);
            run(WEIR_NORM_BATCH, 1, 0, flags, &[2, 3, 4, 5], of, of_scale);
            run(WEIR_NORM_BATCH, -1, 0, flags, &[6, 7], of, of_scale);
            run(WEIR_NORM_GROUP, 1, 2, flags, &[2, 6, 5], of, of_scale);
            run(WEIR_NORM_GROUP, 1, 6, flags, &[2, 6, 5], of, of_scale);
            run(WEIR_NORM_GROUP, -1, 3, flags, &[4, 6], of, of_scale);
        }
    }
}
