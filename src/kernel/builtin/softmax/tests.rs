//! Softmax and its logarithm for every type, against their definition in f64; softmax of f32 is tested with the other
//! f32 kernels.

use super::*;
use crate::kernel::builtin::movement::fixture::{Any, check_pools, run};
use crate::kernel::vector::isa::Isa;

/// A tensor of a type with these values, and the values rounded to the type.
fn tensor(of: u32, dims: &[i64], values: &[f32]) -> (Any, Vec<f32>) {
    let kept = values.iter().map(|&x| stored(of, x)).collect();
    let bits: Vec<u16> = match of {
        dtype::F16 => values.iter().map(|&x| F16::narrowed(x).0).collect(),
        dtype::BF16 => values.iter().map(|&x| Bf16::narrowed(x).0).collect(),
        _ => return (Any::f32(dims, values), kept),
    };
    (Any::halves(of, dims, &bits), kept)
}

fn stored(of: u32, x: f32) -> f32 {
    match of {
        dtype::F16 => F16::narrowed(x).widened(),
        dtype::BF16 => Bf16::narrowed(x).widened(),
        _ => x,
    }
}

fn floats(tensor: &Any) -> Vec<f32> {
    match tensor.desc.dtype {
        dtype::F16 => tensor.shorts().iter().map(|&bits| F16(bits).widened()).collect(),
        dtype::BF16 => tensor.shorts().iter().map(|&bits| Bf16(bits).widened()).collect(),
        _ => tensor.floats(),
    }
}

/// Values around 89, 90 and 88 with either sign, several of them the greatest of their rows.
fn data(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| match i * 31 % 17 {
            0 => 90.0,
            1 => 89.0,
            2 => 88.0,
            3 => -89.0,
            n => n as f32 * 1.75 + (i * 7 % 13) as f32 * 0.37 + 60.0,
        })
        .collect()
}

fn check(kernel: &Builtin<Softmax>, of: u32, dims: &[i64]) {
    let (x, values) = tensor(of, dims, &data(dims.iter().product::<i64>() as usize));
    let y = floats(&run(kernel, &[x]));
    let at = kernel.axis as usize;
    let (len, inner) = (dims[at] as usize, dims[at + 1..].iter().product::<i64>() as usize);
    for i in 0..values.len() {
        let first = i / (len * inner) * len * inner + i % inner;
        let row = || (0..len).map(|j| f64::from(values[first + j * inner]));
        let max = row().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row().map(|x| (x - max).exp()).sum();
        let difference = f64::from(values[i]) - max;
        let want = if kernel.log { difference - sum.ln() } else { difference.exp() / sum };
        let rounded = stored(of, want as f32);
        let error = (f64::from(y[i]) - f64::from(rounded)).abs();
        let tolerance = match of {
            dtype::F16 => 9.77e-4,
            dtype::BF16 => 7.82e-3,
            _ if kernel.log => 5.96e-6,
            _ => 1.19e-6,
        };
        // Includes the last bit of subnormal f16.
        let good = error <= tolerance * want.abs() || error <= 1.19e-7;
        assert!(good, "{kernel:?} of {of} {dims:?}: {i}: {} for {want}", y[i]);
    }
}

#[test]
fn every_type_on_every_level() {
    for isa in Isa::levels() {
        for of in [dtype::F32, dtype::F16, dtype::BF16] {
            for log in [false, true] {
                for dims in
                    [&[16, 16][..], &[25, 10], &[2, 5, 17, 3], &[1, 16, 2, 12], &[2, 113], &[3, 1, 70], &[1, 1, 1100]]
                {
                    (0..dims.len() as i32).for_each(|axis| check(&Builtin::on(Softmax { axis, log }, isa), of, dims));
                }
            }
        }
    }
}

#[test]
fn infinities_and_nan() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let rows = [[1.0, NAN, 2.0], [1.0, INF, 2.0], [-INF; 3], [-INF, 3.0, -INF], [INF, -INF, NAN]];
    let columns: Vec<f32> = (0..3).flat_map(|j| rows.map(|row| row[j])).collect();
    for isa in Isa::levels() {
        for of in [dtype::F32, dtype::F16, dtype::BF16] {
            for log in [false, true] {
                let along = |axis, dims: &[i64], x: &[f32]| {
                    floats(&run(&Builtin::on(Softmax { axis, log }, isa), &[tensor(of, dims, x).0]))
                };
                let (by_rows, by_columns) = (along(1, &[5, 3], rows.as_flattened()), along(0, &[3, 5], &columns));
                for (i, row) in rows.iter().enumerate() {
                    for j in 0..3 {
                        let want = match (i, j) {
                            (3, 1) => {
                                if log {
                                    0.0
                                } else {
                                    1.0
                                }
                            }
                            (3, _) => {
                                if log {
                                    -INF
                                } else {
                                    0.0
                                }
                            }
                            _ => NAN,
                        };
                        for got in [by_rows[i * 3 + j], by_columns[j * 5 + i]] {
                            assert!(
                                got == want || (got.is_nan() && want.is_nan()),
                                "{isa:?} {of} {log} {row:?}: {got}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_bits_on_all_pools() {
    for of in [dtype::F32, dtype::F16, dtype::BF16] {
        for axis in 0..3 {
            let x = tensor(of, &[17, 33, 71], &data(17 * 33 * 71)).0;
            check_pools(&Builtin::new(Softmax { axis, log: true }), std::slice::from_ref(&x));
            check_pools(&Builtin::new(Softmax { axis, log: false }), &[x]);
        }
    }
}
