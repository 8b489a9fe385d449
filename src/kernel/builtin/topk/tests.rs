use super::*;
use crate::kernel::builtin::fixture::{pools, refusal};
use crate::kernel::builtin::fixture_elements::{self as typed, TypedTensor};
use crate::ops::Operator;

fn kernel(axis: i32, count: usize, least: bool, long_indices: bool) -> Builtin<Topk> {
    Builtin::new(Topk { axis, count, least, long_indices })
}

/// Values and places, the same on all pools.
fn run(kernel: &Builtin<Topk>, x: &TypedTensor) -> (Vec<f64>, Vec<f64>) {
    let first = typed::run_all_on(kernel, &[x], None);
    for (name, pool) in pools() {
        for (other, first) in typed::run_all_on(kernel, &[x], Some(&pool)).iter().zip(&first) {
            assert_eq!(other.words, first.words, "on {name}");
        }
    }
    (first[0].values(), first[1].values())
}

/// A stable sort of all elements of each row.
fn reference(x: &TypedTensor, axis: usize, count: usize, least: bool) -> (Vec<f64>, Vec<f64>) {
    let (shape, values) = (x.desc.shape(), x.values());
    let len = shape[axis] as usize;
    let inner = shape[axis + 1..].iter().product::<i64>() as usize;
    let outer = shape[..axis].iter().product::<i64>() as usize;
    let (mut best, mut places) = (vec![0.0; outer * count * inner], vec![0.0; outer * count * inner]);
    for row in 0..outer * inner {
        let at = |i: usize| values[(row / inner * len + i) * inner + row % inner];
        let mut order: Vec<usize> = (0..len).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (at(a), at(b));
            match (a.is_nan(), b.is_nan()) {
                (false, false) => if least { a.partial_cmp(&b) } else { b.partial_cmp(&a) }.unwrap(),
                (a, b) => b.cmp(&a),
            }
        });
        for (i, &place) in order[..count].iter().enumerate() {
            let to = (row / inner * count + i) * inner + row % inner;
            (best[to], places[to]) = (at(place), place as f64);
        }
    }
    (best, places)
}

#[test]
fn the_best_are_those_that_a_sort_puts_first() {
    for dims in [&[1][..], &[300], &[5, 700], &[3, 70, 90], &[2, 9, 3, 4], &[2, 1, 2, 1, 2, 1, 3, 5]] {
        for of in [dtype::F32, dtype::F16, dtype::BF16, dtype::S64, dtype::S32, dtype::S8, dtype::U8] {
            // Few numbers, so that many are equal.
            let count = dims.iter().product::<i64>() as usize;
            let mut values: Vec<f64> = typed::noise(count, 5, 40.0).iter().map(|x| x.round()).collect();
            if of == dtype::U8 {
                values.iter_mut().for_each(|x| *x = x.abs());
            }
            let x = TypedTensor::new(of, dims, &values);
            for axis in [0, dims.len() - 1] {
                let len = dims[axis] as usize;
                for k in [1, len / 3, len - 1, len] {
                    for least in [false, true] {
                        let got = run(&kernel(axis as i32 - dims.len() as i32, k, least, least), &x);
                        assert_eq!(got, reference(&x, axis, k, least), "{dims:?} of {of}, axis {axis}, {k} {least}");
                    }
                }
            }
        }
    }
}

/// Each row is long for its number, so the limit is set again and again; rising ones are the worst case.
#[test]
fn rows_in_any_order_have_the_same_best() {
    let rising: Vec<f64> = (0..5000).map(f64::from).collect();
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    for values in [rising, falling, typed::noise(5000, 1, 1.0), vec![3.0; 5000]] {
        let x = TypedTensor::new(dtype::F32, &[5000], &values);
        for k in [1, 10, 64, 65, 1000] {
            assert_eq!(run(&kernel(0, k, false, false), &x), reference(&x, 0, k, false));
        }
    }
}

#[test]
fn nans_come_first_and_zeros_are_equal() {
    const NAN: f64 = f64::NAN;
    let x = TypedTensor::new(dtype::F32, &[8], &[0.0, NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY, -NAN, 0.0, -1.0]);
    assert_eq!(run(&kernel(0, 8, false, true), &x).1, [1.0, 5.0, 2.0, 0.0, 3.0, 6.0, 7.0, 4.0]);
    assert_eq!(run(&kernel(0, 8, true, true), &x).1, [1.0, 5.0, 4.0, 7.0, 0.0, 3.0, 6.0, 2.0]);
    let ends = [i64::MIN, i64::MAX, 0, -1].map(|x| x as f64);
    let x = TypedTensor::new(dtype::S64, &[4], &ends);
    assert_eq!(run(&kernel(0, 4, false, true), &x).1, [1.0, 2.0, 3.0, 0.0]);
    assert_eq!(run(&kernel(0, 4, true, true), &x).1, [0.0, 3.0, 2.0, 1.0]);
}

#[test]
fn none_of_none_are_chosen() {
    for (dims, k) in [(&[0][..], 0), (&[4], 0), (&[0, 3], 2), (&[3, 0], 0)] {
        let x = TypedTensor::new(dtype::F32, dims, &vec![1.0; dims.iter().product::<i64>() as usize]);
        assert!(run(&kernel(-1, k, false, false), &x).0.is_empty());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let of = |of, dims: &[i64]| Desc::new(of, dims);
    let topk = kernel(-1, 3, false, true);
    let text = "input 0: expected 3 to 2147483647 elements along axis 1, got f32[4,2]";
    assert_eq!(refusal(&topk, &[of(dtype::F32, &[4, 2])]), text);
    assert_eq!(refusal(&topk, &[of(dtype::BOOL, &[4])]), "input 0: expected elements that are numbers, got bool[4]");
    assert_eq!(refusal(&topk, &[of(dtype::F32, &[])]), "input 0: expected a shape with axis -1, got f32[]");
    let open = [of(dtype::F16, &[-1, -1])];
    assert_eq!(topk.output_at(&open, 0).unwrap(), of(dtype::F16, &[-1, 3]));
    assert_eq!(topk.output_at(&open, 1).unwrap(), of(dtype::S64, &[-1, 3]));
}
