//! Matrix products with leading dimensions, epilogues, and packed weights.

use super::fixture::{WordTensor, check_pools, packed, pools, prepared, refusal, run};
use super::fixture_elements::{self, TypedTensor, run_all_on};
use super::{Builtin, Packed};
use crate::base::{Desc, dtype};
use crate::kernel::vector::activation::Activation;
use crate::memory::View;
use crate::ops::Matmul;
use std::sync::Arc;

const PLAIN: Matmul = Matmul {
    transpose_a: false,
    transpose_b: false,
    bias: false,
    sum: false,
    activation: Activation::NONE,
    wide: false,
    tf32: false,
    packed: None,
};

/// The product with packed weights.
fn with(matmul: Matmul, weights: Arc<Packed>) -> Builtin<Matmul> {
    Builtin::with_weights(Matmul { packed: Some(weights.shape()), ..matmul }, Some(weights))
}

fn f32s(dims: &[i64]) -> Desc {
    Desc::new(dtype::F32, dims)
}

/// Whole numbers from -8 to 8, so that their products are exact.
fn whole(dims: &[i64], seed: u64) -> WordTensor {
    let values: Vec<_> = WordTensor::random(dims, seed).floats().iter().map(|x| (x * 8.0).round()).collect();
    WordTensor::f32(dims, &values)
}

/// The index of an operand's matrix for product `number`, from the leading dimensions of C.
fn matrix_of(number: usize, dims: &[i64], batch: &[i64]) -> usize {
    let mut strides = vec![0; batch.len()];
    let mut stride = 1;
    for (i, &dim) in dims[..dims.len() - 2].iter().enumerate().rev() {
        strides[batch.len() - (dims.len() - 2) + i] = if dim == 1 { 0 } else { stride };
        stride *= dim as usize;
    }
    let (mut rest, mut at) = (number, 0);
    for (&dim, stride) in batch.iter().zip(strides).rev() {
        at += rest % dim as usize * stride;
        rest /= dim as usize;
    }
    at
}

fn check(kernel: &Builtin<Matmul>, a: &[i64], b: &[i64], want: &[i64]) {
    let (a, b) = (whole(a, 1), whole(b, 2));
    let rank = want.len();
    let (m, n) = (want[rank - 2] as usize, want[rank - 1] as usize);
    let dims = &a.desc.shape()[a.desc.shape().len() - 2..];
    let k = dims[if kernel.transpose_a { 0 } else { 1 }] as usize;
    let (bias, addend) = (whole(&[n as i64], 3), whole(want, 4));
    let mut inputs = vec![a.clone(), b.clone()];
    inputs.extend(kernel.bias.then(|| bias.clone()));
    inputs.extend(kernel.sum.then(|| addend.clone()));
    let c = run(kernel, &inputs);
    assert_eq!(c.desc, f32s(want));
    let (x, y, bias, addend, c_values) = (a.floats(), b.floats(), bias.floats(), addend.floats(), c.floats());
    for number in 0..want[..rank - 2].iter().product::<i64>() as usize {
        let x = &x[matrix_of(number, a.desc.shape(), &want[..rank - 2]) * m * k..];
        let y = &y[matrix_of(number, b.desc.shape(), &want[..rank - 2]) * k * n..];
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let at = (number * m + i) * n + j;
            let mut sum = 0.0;
            for p in 0..k {
                let x = if kernel.transpose_a { x[p * m + i] } else { x[i * k + p] };
                sum += x * if kernel.transpose_b { y[j * k + p] } else { y[p * n + j] };
            }
            sum += if kernel.bias { bias[j] } else { 0.0 };
            sum += if kernel.sum { addend[at] } else { 0.0 };
            if kernel.activation == Activation::RELU {
                sum = sum.max(0.0);
            }
            assert_eq!(c_values[at], sum, "{kernel:?} {want:?}: {number}, {i}, {j}");
        }
    }
    check_pools(kernel, &inputs);
    let one_b = b.desc.shape()[..b.desc.shape().len() - 2].iter().all(|&dim| dim == 1);
    let prepared = prepared(kernel, &inputs, &[1]);
    assert_eq!(prepared.is_some(), one_b, "{kernel:?} {want:?}: one matrix for all products is packed");
    if let Some(prepared) = prepared {
        assert_eq!(run(&prepared, &inputs).bits(), c.bits(), "{kernel:?} {want:?}: B is a constant");
        check_pools(&prepared, &inputs);
    }
}

#[test]
fn leading_dimensions_broadcast() {
    for (a, b, c) in [
        (&[2, 10, 30][..], &[2, 30, 1][..], &[2, 10, 1][..]),
        (&[3, 30, 1], &[3, 1, 20], &[3, 30, 20]),
        (&[7, 32, 16], &[1, 16, 8], &[7, 32, 8]),
        (&[1, 12, 8], &[2, 8, 16], &[2, 12, 16]),
        (&[2, 16, 73], &[1, 73, 8], &[2, 16, 8]),
        (&[1, 26, 17], &[5, 17, 65], &[5, 26, 65]),
        (&[2, 3, 20, 40], &[2, 1, 40, 64], &[2, 3, 20, 64]),
        (&[14, 6, 1, 25], &[1, 1, 25, 1], &[14, 6, 1, 1]),
        (&[5, 3, 1, 8, 14], &[5, 1, 4, 14, 8], &[5, 3, 4, 8, 8]),
        (&[6, 5], &[2, 3, 5, 4], &[2, 3, 6, 4]),
        (&[0, 2, 3], &[3, 4], &[0, 2, 4]),
        (&[2, 3, 0], &[2, 0, 4], &[2, 3, 4]),
    ] {
        check(&Builtin::new(PLAIN), a, b, c);
        check(&Builtin::new(Matmul { bias: true, sum: true, activation: Activation::RELU, ..PLAIN }), a, b, c);
        let swapped = |dims: &[i64]| {
            let mut dims = dims.to_vec();
            let rank = dims.len();
            dims.swap(rank - 1, rank - 2);
            dims
        };
        check(&Builtin::new(Matmul { transpose_a: true, ..PLAIN }), &swapped(a), b, c);
        check(&Builtin::new(Matmul { transpose_b: true, sum: true, ..PLAIN }), a, &swapped(b), c);
        check(&Builtin::new(Matmul { transpose_a: true, transpose_b: true, ..PLAIN }), &swapped(a), &swapped(b), c);
    }
}

#[test]
fn packed_weights_give_the_same_bits() {
    for (m, k, n) in [(1, 1, 1), (1, 700, 130), (8, 33, 64), (3, 512, 65), (61, 1030, 200), (200, 20, 17), (4, 0, 5)] {
        let (a, b, bias) =
            (WordTensor::random(&[m, k], 1), WordTensor::random(&[k, n], 2), WordTensor::random(&[n], 3));
        let plain = Builtin::new(Matmul { bias: true, activation: Activation::GELU_ERF, ..PLAIN });
        let want = run(&plain, &[a.clone(), b.clone(), bias.clone()]);
        let kernel = with(*plain, packed(&b, false));
        let inputs = [a.clone(), bias.clone()];
        assert_eq!(run(&kernel, &inputs).bits(), want.bits(), "{m} x {k} x {n}");
        check_pools(&kernel, &inputs);
        let values = b.floats();
        let turned: Vec<_> = (0..n as usize)
            .flat_map(|j| (0..k as usize).map(move |p| (p, j)))
            .map(|(p, j)| values[p * n as usize + j])
            .collect();
        let kernel = with(*plain, packed(&WordTensor::f32(&[n, k], &turned), true));
        assert_eq!(run(&kernel, &inputs).bits(), want.bits(), "{m} x {k} x {n} transposed");
    }
}

/// Exact sums of whole numbers, rounded once; B as it is, as a constant, and packed by the host.
#[test]
fn products_of_halves_are_the_same_however_b_lies() {
    let pools = pools();
    let sizes = [(1, 1, 1), (1, 700, 130), (2, 33, 64), (3, 512, 65), (4, 1030, 200), (5, 20, 17), (8, 600, 48)];
    for (m, k, n) in sizes.into_iter().chain([(13, 64, 1), (150, 300, 70), (4, 0, 5), (7, 0, 5)]) {
        for (of, wide, transpose_b) in [dtype::F16, dtype::BF16]
            .into_iter()
            .flat_map(|of| [(of, false, false), (of, true, true), (of, false, true)])
        {
            let whole = |count: usize, seed: usize| -> Vec<f64> {
                (0..count).map(|i| ((i * 7919 + seed * 31) % 17) as f64 - 8.0).collect()
            };
            let (x, y, bias) = (whole(m * k, 1), whole(k * n, 2), whole(n, 3));
            let to = if wide { dtype::F32 } else { of };
            let sum = |i: usize, j: usize| -> f64 {
                let y = |p: usize| y[if transpose_b { j * k + p } else { p * n + j }];
                TypedTensor::rounded(to, bias[j] + (0..k).map(|p| x[i * k + p] * y(p)).sum::<f64>())
            };
            let want: Vec<f64> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
            let [b_rows, b_columns] = if transpose_b { [n, k] } else { [k, n] };
            let tensor = |dtype, dims: &[usize], values: &[f64]| {
                TypedTensor::new(dtype, &dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>(), values)
            };
            let (a, b) = (tensor(of, &[m, k], &x), tensor(of, &[b_rows, b_columns], &y));
            let bias = tensor(to, &[n], &bias);
            let matmul = Matmul { bias: true, wide, transpose_b, ..PLAIN };
            let plain = Builtin::new(matmul);
            let constant = fixture_elements::prepared(&plain, &[&a, &b, &bias], &[1]).unwrap();
            let view = b.view();
            // SAFETY: nothing writes the tensor.
            let weights = Packed::new(unsafe { view.as_bytes() }, transpose_b).unwrap();
            let packed = with(Matmul { transpose_b: false, ..matmul }, Arc::new(weights));
            for pool in [None].into_iter().chain(pools.iter().map(Some)) {
                let from = |kernel: &Builtin<Matmul>, inputs: &[&TypedTensor]| {
                    run_all_on(kernel, inputs, pool.map(|(_, pool)| pool)).remove(0).values()
                };
                let case = format!("{m} x {k} x {n} of {of}, wide {wide}, transposed {transpose_b}");
                assert_eq!(from(&plain, &[&a, &b, &bias]), want, "{case}");
                assert_eq!(from(&constant, &[&a, &b, &bias]), want, "{case}, a constant");
                assert_eq!(from(&packed, &[&a, &bias]), want, "{case}, packed");
            }
        }
    }
}

/// The first row of products of random halves has the same bits with any number of rows behind it, and however B lies.
#[test]
fn an_element_of_a_product_of_halves_does_not_depend_on_the_other_rows() {
    let random = |count: usize, seed: u32| -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 23) - 1.0
        };
        (0..count).map(|_| next()).collect()
    };
    for (of, k, n) in [(dtype::F16, 512, 200), (dtype::F16, 1100, 200), (dtype::BF16, 700, 33), (dtype::BF16, 1030, 1)]
    {
        let (x, y) = (random(160 * k, 1), random(k * n, 2));
        let y_turned: Vec<f64> = (0..k * n).map(|at| y[at % k * n + at / k]).collect();
        let of_shape =
            |rows: usize, columns: usize, values: &[f64]| TypedTensor::new(of, &[rows as i64, columns as i64], values);
        let (b, turned) = (of_shape(k, n, &y), of_shape(n, k, &y_turned));
        let view = b.view();
        // SAFETY: nothing writes the tensor.
        let weights = Arc::new(Packed::new(unsafe { view.as_bytes() }, false).unwrap());
        let plain = Builtin::new(Matmul { wide: true, ..PLAIN });
        let transposed = Builtin::new(Matmul { wide: true, transpose_b: true, ..PLAIN });
        let packed = with(Matmul { wide: true, ..PLAIN }, weights);
        let mut want = None;
        for m in [1, 2, 4, 5, 8, 24, 25, 160] {
            let a = of_shape(m, k, &x[..m * k]);
            for (how, kernel, inputs) in [
                ("as it is", &plain, &[&a, &b][..]),
                ("transposed", &transposed, &[&a, &turned]),
                ("packed", &packed, &[&a]),
            ] {
                let row = run_all_on(kernel, inputs, None).remove(0).values()[..n].to_vec();
                let want = want.get_or_insert_with(|| row.clone());
                assert!(row == *want, "{m} x {k} x {n} of {of}, B {how}");
            }
        }
    }
}

#[test]
fn packed_weights_refuse_other_sizes() {
    let kernel = with(Matmul { bias: true, ..PLAIN }, packed(&WordTensor::random(&[8, 5], 1), false));
    assert_eq!(refusal(&kernel, &[f32s(&[2, 9]), f32s(&[5])]), "input 0: expected f32[?,8], got f32[2,9]");
    assert_eq!(refusal(&kernel, &[f32s(&[2, 8]), f32s(&[8])]), "input 1: expected f32[5], got f32[8]");
    let sum = Builtin::new(Matmul { sum: true, ..PLAIN });
    let inputs = [f32s(&[4, 2, 8]), f32s(&[1, 8, 3]), f32s(&[2, 3])];
    assert_eq!(refusal(&sum, &inputs), "input 2: expected f32[4,2,3], got f32[2,3]");
    let apart = [f32s(&[4, 2, 8]), f32s(&[3, 8, 3])];
    assert_eq!(
        refusal(&Builtin::new(PLAIN), &apart),
        "input 1: expected leading dimensions that broadcast with f32[4,2,8], got f32[3,8,3]"
    );
    let mut whole = [1i32; 4];
    // SAFETY: nothing else uses the numbers.
    let view = unsafe { View::new(whole.as_mut_ptr().cast(), 16, Desc::new(dtype::S32, &[2, 2])) };
    // SAFETY: as above.
    let whole = unsafe { view.as_bytes() };
    assert_eq!(
        Packed::new(whole, false).unwrap_err().message(),
        "tensor: expected f32[?,?], f16[?,?], bf16[?,?] or s8[?,?], got s32[2,2]"
    );
}
