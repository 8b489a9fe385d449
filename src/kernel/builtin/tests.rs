//! The built-in kernels against plain definitions in f64.
#![forbid(unsafe_code)]

use super::fixture::{WordTensor, check_pools, refusal, run};
use super::*;
use crate::base::dtype;
use crate::kernel::vector::activation::Activation;
use crate::ops::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn f32s(dims: &[i64]) -> Desc {
    Desc::new(dtype::F32, dims)
}

fn same(got: &[f32], want: &[f32]) -> bool {
    got.len() == want.len()
        && got.iter().zip(want).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
}

// Relu

fn relu() -> Builtin<Eltwise> {
    Builtin::new(Eltwise { op: weir_eltwise_op_value::WEIR_ELTWISE_RELU, alpha: 0.0, beta: 0.0 })
}

#[test]
fn relu_keeps_what_is_not_negative() {
    let x = [1.5, -1.5, 0.0, INF, -INF, NAN, f32::MIN_POSITIVE, -f32::MIN_POSITIVE, 1e-45, -1e-45];
    let y = run(&relu(), &[WordTensor::f32(&[2, 5], &x)]);
    assert_eq!(y.desc, f32s(&[2, 5]));
    assert!(same(&y.floats(), &[1.5, 0.0, 0.0, INF, 0.0, NAN, f32::MIN_POSITIVE, 0.0, 1e-45, 0.0]));
}

#[test]
fn relu_works_on_every_size_and_pool() {
    for len in [0, 1, 2, 7, 8, 9, 31, 100, 4097] {
        let x = WordTensor::random(&[len], 5);
        let want: Vec<f32> = x.floats().iter().map(|x| x.max(0.0)).collect();
        assert!(same(&run(&relu(), &[x]).floats(), &want), "{len}");
    }
    assert_eq!(run(&relu(), &[WordTensor::f32(&[], &[-3.0])]).floats(), [0.0]);
    check_pools(&relu(), &[WordTensor::random(&[3, 50_001], 6)]);
    assert_eq!(
        refusal(&relu(), &[Desc::new(dtype::S32, &[2])]),
        "input 0: expected f32, f16 or bf16 elements, got s32[2]"
    );
}

// Add

fn add() -> Builtin<Binary> {
    Builtin::new(Binary::of(weir_binary_op_value::WEIR_BINARY_ADD))
}

/// The sum by its definition: each element of the result selects its operands.
fn add_reference(a: &WordTensor, b: &WordTensor, shape: &[i64]) -> Vec<f32> {
    let pick = |tensor: &WordTensor, index: &[i64]| {
        let dims = tensor.desc.shape();
        let index = &index[index.len() - dims.len()..];
        let at = dims.iter().zip(index).fold(0, |at, (&dim, &i)| at * dim + if dim == 1 { 0 } else { i });
        tensor.floats()[at as usize]
    };
    (0..shape.iter().product())
        .map(|mut number: i64| {
            let mut index = vec![0; shape.len()];
            for (i, &dim) in index.iter_mut().zip(shape).rev() {
                *i = number % dim;
                number /= dim;
            }
            pick(a, &index) + pick(b, &index)
        })
        .collect()
}

#[test]
fn add_broadcasts_as_defined() {
    let cases: &[(&[i64], &[i64], &[i64])] = &[
        (&[], &[], &[]),
        (&[5], &[], &[5]),
        (&[], &[2, 3], &[2, 3]),
        (&[4], &[4], &[4]),
        (&[3, 4], &[3, 4], &[3, 4]),
        (&[3, 4], &[4], &[3, 4]),
        (&[4], &[3, 4], &[3, 4]),
        (&[3, 4], &[3, 1], &[3, 4]),
        (&[3, 1], &[1, 4], &[3, 4]),
        (&[1, 1], &[1], &[1, 1]),
        (&[2, 1, 4], &[3, 1], &[2, 3, 4]),
        (&[2, 3, 4, 5], &[3, 1, 5], &[2, 3, 4, 5]),
        (&[2, 3, 4, 5], &[2, 1, 1, 5], &[2, 3, 4, 5]),
        (&[2, 1, 4, 1], &[1, 3, 1, 5], &[2, 3, 4, 5]),
        (&[1, 2, 1, 3, 1, 2, 1, 3], &[2, 1, 3, 1, 2, 1, 3, 1], &[2, 2, 3, 3, 2, 2, 3, 3]),
        (&[7, 1, 9], &[7, 1, 9], &[7, 1, 9]),
        (&[0], &[1], &[0]),
        (&[1], &[0], &[0]),
        (&[2, 0, 3], &[3], &[2, 0, 3]),
        (&[0, 3], &[1, 3], &[0, 3]),
    ];
    for &(a, b, shape) in cases {
        let (a, b) = (WordTensor::random(a, 1), WordTensor::random(b, 2));
        let c = run(&add(), &[a.clone(), b.clone()]);
        assert_eq!(c.desc, f32s(shape), "{} + {}", a.desc.text(), b.desc.text());
        assert!(same(&c.floats(), &add_reference(&a, &b, shape)), "{} + {}", a.desc.text(), b.desc.text());
    }
}

#[test]
fn add_gives_the_same_bits_on_all_pools() {
    for (a, b) in [
        (&[100_003][..], &[100_003][..]),
        (&[331, 307], &[307]),
        (&[331, 307], &[331, 1]),
        (&[40_000, 3], &[40_000, 1]),
        (&[7, 1, 30, 41], &[30, 1, 1]),
    ] {
        let (a, b) = (WordTensor::random(a, 1), WordTensor::random(b, 2));
        check_pools(&add(), &[a.clone(), b.clone()]);
        check_pools(&add(), &[b, a]);
    }
}

#[test]
fn add_refuses_shapes_that_do_not_broadcast() {
    let message = "input 1: expected a shape that broadcasts with f32[2,3], got f32[2]";
    assert_eq!(refusal(&add(), &[f32s(&[2, 3]), f32s(&[2])]), message);
    assert!(refusal(&add(), &[f32s(&[0]), f32s(&[2])]).starts_with("input 1: expected a shape that broadcasts"));
    let message = "input 1: expected f32 elements, as input 0 has, got s32[3]";
    assert_eq!(refusal(&add(), &[f32s(&[3]), Desc::new(dtype::S32, &[3])]), message);
    let huge = [f32s(&[1 << 40, 1]), f32s(&[1, 1 << 40])];
    assert!(refusal(&add(), &huge).contains("f32[1099511627776,1099511627776]"));
}

// Softmax

fn softmax_reference(x: &[f32], outer: usize, len: usize, inner: usize) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |j: usize| (o * len + j) * inner + i;
        let max = (0..len).map(|j| f64::from(x[at(j)])).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..len).map(|j| (f64::from(x[at(j)]) - max).exp()).sum();
        (0..len).for_each(|j| y[at(j)] = (f64::from(x[at(j)]) - max).exp() / sum);
    }
    y
}

fn softmax(axis: i32) -> Builtin<Softmax> {
    Builtin::new(Softmax { axis, log: false })
}

fn scaled(tensor: &WordTensor, factor: f32) -> WordTensor {
    let values: Vec<f32> = tensor.floats().iter().map(|x| x * factor).collect();
    WordTensor::f32(tensor.desc.shape(), &values)
}

fn check_softmax(dims: &[i64], axis: usize, factor: f32) {
    let x = scaled(&WordTensor::random(dims, 3), factor);
    let size = |dims: &[i64]| dims.iter().product::<i64>() as usize;
    let want = softmax_reference(&x.floats(), size(&dims[..axis]), dims[axis] as usize, size(&dims[axis + 1..]));
    for axis in [axis as i32, axis as i32 - dims.len() as i32] {
        let y = run(&softmax(axis), std::slice::from_ref(&x));
        assert_eq!(y.desc, x.desc);
        for (i, (&got, &want)) in y.floats().iter().zip(&want).enumerate() {
            let error = (f64::from(got) - want).abs();
            assert!(error <= 1e-6 * want || error <= 1e-38, "{dims:?} axis {axis} x {factor}: {i}: {got} for {want}");
        }
    }
}

#[test]
fn softmax_is_exact_to_a_millionth() {
    for factor in [1.0, 20.0, 100.0, 3e4] {
        for len in [1, 2, 3, 15, 16, 17, 64, 100, 1000, 4099] {
            check_softmax(&[3, len], 1, factor);
        }
        for dims in
            [[1, 7, 1], [2, 3, 5], [3, 17, 64], [2, 9, 65], [4, 1, 130], [1, 100, 3], [2, 0, 3], [0, 2, 3], [2, 3, 0]]
        {
            (0..3).for_each(|axis| check_softmax(&dims, axis, factor));
        }
    }
    check_softmax(&[1_000_001], 0, 1.0);
}

#[test]
fn softmax_of_infinities_and_nan() {
    let rows =
        [[1.0, NAN, 2.0], [1.0, INF, 2.0], [-INF, -INF, -INF], [-INF, 3.0, -INF], [INF, -INF, NAN], [NAN, 1.0, 1.0]];
    let want = [[NAN; 3], [NAN; 3], [NAN; 3], [0.0, 1.0, 0.0], [NAN; 3], [NAN; 3]];
    let y = run(&softmax(-1), &[WordTensor::f32(&[6, 3], rows.as_flattened())]);
    assert!(same(&y.floats(), want.as_flattened()), "{:?}", y.floats());
    // Along the other axis.
    let transposed = |rows: &[[f32; 3]; 6]| (0..3).flat_map(|j| rows.map(|row| row[j])).collect::<Vec<_>>();
    let y = run(&softmax(0), &[WordTensor::f32(&[3, 6], &transposed(&rows))]);
    assert!(same(&y.floats(), &transposed(&want)), "{:?}", y.floats());
    // A special value after the first vectors, and extremes that overflow when subtracted.
    let mut long = vec![0.5; 100];
    long[97] = NAN;
    let y = run(&softmax(0), &[WordTensor::f32(&[100], &long)]);
    assert!(y.floats().iter().all(|y| y.is_nan()));
    let y = run(&softmax(0), &[WordTensor::f32(&[3], &[f32::MAX, f32::MIN, f32::MAX])]);
    assert_eq!(y.floats(), [0.5, 0.0, 0.5]);
}

#[test]
fn softmax_gives_the_same_bits_on_all_pools() {
    for axis in 0..3 {
        check_pools(&softmax(axis), &[WordTensor::random(&[37, 53, 71], 3)]);
    }
    check_pools(&softmax(0), &[WordTensor::random(&[200, 1000], 3)]);
    assert_eq!(refusal(&softmax(2), &[f32s(&[4, 5])]), "input 0: expected a shape with axis 2, got f32[4,5]");
    assert_eq!(refusal(&softmax(-1), &[f32s(&[])]), "input 0: expected a shape with axis -1, got f32[]");
}

// Argmax

fn argmax_reference(x: &[f32], outer: usize, len: usize, inner: usize) -> Vec<i32> {
    let lines = (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i)));
    let winner = |(o, i): (usize, usize)| {
        let at = |j: usize| -> f32 { x[(o * len + j) * inner + i] };
        let beats = |j: usize, best: usize| at(j) > at(best) || (at(j).is_nan() && !at(best).is_nan());
        (1..len).fold(0, |best, j| if beats(j, best) { j } else { best }) as i32
    };
    lines.map(winner).collect()
}

#[test]
fn argmax_agrees_with_its_definition() {
    for dims in [[1, 1, 1], [1, 7, 1], [3, 17, 5], [2, 40, 64], [2, 9, 65], [5, 2, 200], [0, 3, 4], [3, 4, 0]] {
        // Coarse values, so that there are equal ones; and some special values.
        let fine = WordTensor::random(&dims, 9).floats();
        let mut x: Vec<f32> = fine.iter().map(|x| (x * 4.0).round()).collect();
        for (i, x) in x.iter_mut().enumerate() {
            *x = [NAN, -NAN, INF, -INF, -0.0, *x][(i * 7 % 61).min(5)];
        }
        for axis in 0..3 {
            let (outer, inner) = (dims[..axis].iter().product::<i64>(), dims[axis + 1..].iter().product::<i64>());
            if dims[axis] == 0 {
                assert!(
                    refusal(&Builtin::new(Reduce::argmax(axis as i32)), &[f32s(&dims)])
                        .starts_with("input 0: expected 1 to 2147483647 elements")
                );
                continue;
            }
            let y = run(&Builtin::new(Reduce::argmax(axis as i32)), &[WordTensor::f32(&dims, &x)]);
            let mut shape = dims.to_vec();
            shape.remove(axis);
            assert_eq!(y.desc, Desc::new(dtype::S32, &shape));
            let want = argmax_reference(&x, outer as usize, dims[axis] as usize, inner as usize);
            assert_eq!(y.integers(), want, "{dims:?} axis {axis}");
        }
    }
}

#[test]
fn argmax_takes_the_first_of_equals_and_the_first_nan() {
    for (x, want) in [
        (&[1.0, 3.0, 3.0][..], 1),
        (&[0.0, -0.0], 0),
        (&[-0.0, 0.0], 0),
        (&[5.0, NAN, 9.0, NAN], 1),
        (&[NAN, INF], 0),
        (&[-INF, -INF], 0),
        (&[-INF, f32::MIN], 1),
        (&[7.0], 0),
    ] {
        let row = run(&Builtin::new(Reduce::argmax(0)), &[WordTensor::f32(&[x.len() as i64], x)]);
        assert_eq!((row.desc, row.integers()), (Desc::new(dtype::S32, &[]), vec![want]), "{x:?}");
        let twice: Vec<f32> = x.iter().flat_map(|&x| [x, x]).collect();
        let columns = run(&Builtin::new(Reduce::argmax(0)), &[WordTensor::f32(&[x.len() as i64, 2], &twice)]);
        assert_eq!(columns.integers(), [want, want], "{x:?}");
    }
}

#[test]
fn argmax_gives_the_same_result_on_all_pools() {
    for axis in 0..3 {
        check_pools(&Builtin::new(Reduce::argmax(axis)), &[WordTensor::random(&[37, 53, 71], 3)]);
    }
}

// Matmul

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

#[test]
fn matmul_gives_the_product() {
    let a = WordTensor::f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = WordTensor::f32(&[3, 2], &[1.0, 0.0, 0.0, 1.0, -10.0, 100.0]);
    assert_eq!(run(&Builtin::new(PLAIN), &[a.clone(), b.clone()]).floats(), [-29.0, 302.0, -56.0, 605.0]);
    let bias = WordTensor::f32(&[2], &[30.0, -1000.0]);
    let kernel = Builtin::new(Matmul { bias: true, activation: Activation::RELU, ..PLAIN });
    assert_eq!(run(&kernel, &[a, b, bias]).floats(), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn matmul_without_depth_is_the_bias() {
    let (a, b, bias) =
        (WordTensor::f32(&[2, 0], &[]), WordTensor::f32(&[0, 3], &[]), WordTensor::f32(&[3], &[1.0, -2.0, 3.0]));
    assert_eq!(run(&Builtin::new(PLAIN), &[a.clone(), b.clone()]).floats(), [0.0; 6]);
    let kernel = Builtin::new(Matmul { bias: true, ..PLAIN });
    assert_eq!(run(&kernel, &[a.clone(), b.clone(), bias.clone()]).floats(), [1.0, -2.0, 3.0, 1.0, -2.0, 3.0]);
    let kernel = Builtin::new(Matmul { bias: true, activation: Activation::RELU, ..PLAIN });
    assert_eq!(run(&kernel, &[a, b, bias]).floats(), [1.0, 0.0, 3.0, 1.0, 0.0, 3.0]);
}

#[test]
fn matmul_takes_leading_dimensions_as_rows() {
    let (a, b) = (WordTensor::random(&[2, 3, 4, 5], 1), WordTensor::random(&[5, 7], 2));
    let c = run(&Builtin::new(PLAIN), &[a.clone(), b.clone()]);
    assert_eq!(c.desc, f32s(&[2, 3, 4, 7]));
    let flat = WordTensor::f32(&[24, 5], &a.floats());
    assert_eq!(c.bits(), run(&Builtin::new(PLAIN), &[flat, b]).bits());
    let none = run(&Builtin::new(PLAIN), &[WordTensor::random(&[2, 0, 5], 1), WordTensor::random(&[5, 7], 2)]);
    assert_eq!((none.desc, none.bits().len()), (f32s(&[2, 0, 7]), 0));
    let none = run(&Builtin::new(PLAIN), &[WordTensor::random(&[2, 5], 1), WordTensor::random(&[5, 0], 2)]);
    assert_eq!((none.desc, none.bits().len()), (f32s(&[2, 0]), 0));
}

#[test]
fn matmul_keeps_nan_and_infinity() {
    let a = WordTensor::f32(&[4, 2], &[NAN, 1.0, INF, 1.0, INF, -INF, 1.0, 1.0]);
    let b = WordTensor::f32(&[2, 1], &[1.0, 1.0]);
    for activation in [Activation::NONE, Activation::RELU] {
        let c = run(&Builtin::new(Matmul { activation, ..PLAIN }), &[a.clone(), b.clone()]);
        assert!(same(&c.floats(), &[NAN, INF, NAN, 2.0]), "{:?}", c.floats());
    }
    // A zero does not swallow a NaN.
    let c = run(
        &Builtin::new(PLAIN),
        &[WordTensor::f32(&[1, 2], &[0.0, 1.0]), WordTensor::f32(&[2, 2], &[NAN, INF, 1.0, 1.0])],
    );
    assert!(same(&c.floats(), &[NAN, NAN]));
}

#[test]
fn matmul_gives_the_same_bits_on_all_pools() {
    for (m, n, k, both) in
        [(100, 200, 300, [0, 3]), (1, 2000, 700, [0, 2]), (500, 33, 65, [1, 2]), (157, 129, 1030, [1, 3])]
    {
        for flags in both {
            let (transpose_a, transpose_b) = (flags & 1 != 0, flags & 2 != 0);
            let a = WordTensor::random(&if transpose_a { [k, m] } else { [m, k] }, 1);
            let b = WordTensor::random(&if transpose_b { [n, k] } else { [k, n] }, 2);
            let activation = if flags == 3 { Activation::RELU } else { Activation::NONE };
            let kernel = Builtin::new(Matmul { transpose_a, transpose_b, bias: true, activation, ..PLAIN });
            check_pools(&kernel, &[a, b, WordTensor::random(&[n], 3)]);
        }
    }
}

#[test]
fn matmul_refuses_what_does_not_fit() {
    let bias = Builtin::new(Matmul { bias: true, ..PLAIN });
    let transposed = Builtin::new(Matmul { transpose_a: true, transpose_b: true, ..*bias });
    let plain = Builtin::new(PLAIN);
    let int = |dims| Desc::new(dtype::S32, dims);
    let cases: &[(&Builtin<Matmul>, &[Desc], &str)] = &[
        (&plain, &[f32s(&[2, 8]), f32s(&[9, 10])], "input 1: expected f32[8,?], got f32[9,10]"),
        (&plain, &[f32s(&[2, 8]), f32s(&[8])], "input 1: expected f32[8,?], got f32[8]"),
        (&plain, &[f32s(&[2, 8]), f32s(&[3, 9, 4])], "input 1: expected f32[?,8,?], got f32[3,9,4]"),
        (&plain, &[f32s(&[8]), f32s(&[8, 4])], "input 0: expected f32[?,?], got f32[8]"),
        (&plain, &[int(&[3, 2, 8]), f32s(&[8, 4])], "input 0: expected f32[?,?,?], got s32[3,2,8]"),
        (&plain, &[f32s(&[2, 8]), int(&[8, 4])], "input 1: expected f32[8,?], got s32[8,4]"),
        (&bias, &[f32s(&[2, 8]), f32s(&[8, 4]), f32s(&[1, 4])], "input 2: expected f32[4], got f32[1,4]"),
        (&bias, &[f32s(&[2, 8]), f32s(&[8, 4]), f32s(&[5])], "input 2: expected f32[4], got f32[5]"),
        (&transposed, &[f32s(&[8, 2]), f32s(&[8, 4]), f32s(&[8])], "input 1: expected f32[?,8], got f32[8,4]"),
        (&transposed, &[f32s(&[8, 2]), f32s(&[4, 8]), f32s(&[8])], "input 2: expected f32[4], got f32[8]"),
    ];
    for (kernel, inputs, message) in cases {
        assert_eq!(refusal(*kernel, inputs), *message);
    }
    let huge = refusal(&Builtin::new(PLAIN), &[f32s(&[1 << 40, 1]), f32s(&[1, 1 << 40])]);
    assert_eq!(huge, "f32[1099511627776,1099511627776] has more elements than memory can hold");
}
