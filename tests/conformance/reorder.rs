//! Between all storage types, with scales, and into other orders of dimensions. Exact, but for ties of integers.

use crate::data::{Random, count};
use crate::rule::Rule;
use crate::suite::{Place, Stage, Suite};
use crate::values::{Values, is_integer, range, rounded, wrapped};
use weir_core::base::dtype;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{Convert, Transpose, weir_overflow_value as Overflow, weir_rounding_value as Rounding};

const TYPES: [u32; 7] = [dtype::F32, dtype::BF16, dtype::F16, dtype::S64, dtype::S32, dtype::S8, dtype::U8];
const RULE: Rule = Rule { zeros: 90, ..Rule::EXACT };

pub fn cases(suite: &mut Suite) {
    let shapes: [&[i64]; 3] = [&[2, 16, 3, 4], &[1, 17, 5, 3], &[30, 1]];
    for (seed, shape) in shapes.into_iter().enumerate() {
        // abx, axb, xba.
        let orders: &[&[i32]] = if shape.len() == 4 { &[&[], &[0, 2, 3, 1], &[2, 3, 1, 0]] } else { &[&[], &[1, 0]] };
        for order in orders {
            pairs(|from, to| {
                for scale in [1.0, 0.25, 2.0] {
                    of(suite, shape, order, (from, to), scale, seed as u64);
                }
            });
        }
    }
    let saturated: [&[i64]; 2] = [&[1, 17, 9, 5], &[2, 64, 3, 3]];
    for shape in saturated {
        // 2^32 - 1, as a float holds it.
        pairs(|from, to| of(suite, shape, &[], (from, to), 4_294_967_296.0, 3));
    }
    let turned: [(&[i64], &[i32]); 4] = [
        (&[1, 512, 100], &[0, 2, 1]),
        (&[1, 512, 101], &[0, 2, 1]),
        (&[2, 64, 19, 19, 7], &[0, 2, 3, 4, 1]),
        (&[1, 4, 84, 84], &[0, 2, 3, 1]),
    ];
    for (shape, order) in turned {
        pairs(|from, to| {
            if from == to || [from, to].contains(&dtype::F32) {
                of(suite, shape, order, (from, to), 1.0, 4);
            }
        });
    }
    for from in [dtype::S8, dtype::U8] {
        of(suite, &[1, 12, 128, 33], &[0, 3, 1, 2], (from, dtype::F32), 1.0, 5);
    }
}

fn pairs(mut body: impl FnMut(u32, u32)) {
    TYPES.iter().for_each(|&from| TYPES.iter().for_each(|&to| body(from, to)));
}

fn of(suite: &mut Suite, shape: &[i64], order: &[i32], (from, to): (u32, u32), scale: f32, seed: u64) {
    if !suite.takes(count(shape) * 150) {
        return;
    }
    for is_default in [true, false] {
        let kernel = match is_default {
            true => Convert { scale, ..Convert::to(to) },
            false => Convert {
                scale,
                rounding: Rounding::WEIR_ROUNDING_NEAREST,
                overflow: Overflow::WEIR_OVERFLOW_SATURATE,
                ..Convert::to(to)
            },
        };
        let x = data(from, to, shape, seed);
        let y = Values { dtype: to, dims: x.dims.clone(), x: x.x.iter().map(|&x| value(&kernel, from, x)).collect() };
        let mut stages = vec![Stage::new(Builtin::new(kernel), vec![x])];
        let mut reference = y.x.clone();
        if !order.is_empty() {
            let permutation = std::array::from_fn(|i| order.get(i).map_or(0, |&axis| axis as usize));
            let transpose = Transpose { rank: Some(order.len()), permutation };
            stages.push(Stage::new(Builtin::new(transpose), vec![]));
            reference = permuted(&y, order);
        }
        let name = format!("{shape:?} {order:?} {} by {kernel:?}", dtype::name(from));
        suite.stages(name, RULE, reference, Place::Out, stages);
    }
}

/// What is stored, but for a float's rounding and saturation.
fn value(of: &Convert, from: u32, x: f64) -> f64 {
    let wraps = of.overflow == Overflow::WEIR_OVERFLOW_WRAP;
    match is_integer(of.dtype) {
        // No float is on the way.
        true if of.scale == 1.0 && is_integer(from) => {
            if wraps {
                wrapped(of.dtype, x as i64)
            } else {
                x
            }
        }
        true if wraps => float_of(of, from, x).trunc(),
        _ => float_of(of, from, x),
    }
}

/// Arithmetic is in floats: what is an integer becomes one before it is scaled.
fn float_of(of: &Convert, from: u32, x: f64) -> f64 {
    let x = if is_integer(from) || of.scale != 1.0 { rounded(dtype::F32, x) } else { x };
    if of.scale == 1.0 { x } else { rounded(dtype::F32, x * f64::from(of.scale)) }
}

/// Values around the limits of both types, and between integers.
fn data(from: u32, to: u32, shape: &[i64], seed: u64) -> Values {
    let mut random = Random::new(seed);
    let limits = [from, to].map(|of| match of {
        dtype::F32 | dtype::BF16 => (-3e38, 3e38),
        dtype::F16 => (-65504.0, 65504.0),
        _ => range(of).unwrap(),
    });
    let x = (0..count(shape)).map(|i| {
        let (least, greatest) = limits[i / 10 % 2];
        match i % 10 {
            0 => least,
            1 => greatest,
            2 => least + random.whole(-1, 1),
            3 => greatest + random.whole(-1, 1),
            4 => random.whole(-200, 300) + 0.5,
            5 => random.unit() * 10.0,
            6 => least * random.unit(),
            7 => greatest * random.unit(),
            _ => random.whole(-20, 100),
        }
    });
    Values::nearest(from, shape, x)
}

fn permuted(x: &Values, order: &[i32]) -> Vec<f64> {
    let rank = x.dims.len();
    let mut strides = vec![1; rank];
    (1..rank).rev().for_each(|i| strides[i - 1] = strides[i] * x.dims[i] as usize);
    let dims: Vec<usize> = order.iter().map(|&axis| x.dims[axis as usize] as usize).collect();
    let steps: Vec<usize> = order.iter().map(|&axis| strides[axis as usize]).collect();
    (0..x.x.len())
        .map(|number| {
            let (mut rest, mut at) = (number, 0);
            for (&size, &step) in dims.iter().zip(&steps).rev() {
                at += rest % size * step;
                rest /= size;
            }
            x.x[at]
        })
        .collect()
}

#[test]
fn a_permutation_is_one() {
    let x = Values::new(dtype::F32, &[2, 3, 2], (0..12).map(f64::from).collect());
    assert_eq!(permuted(&x, &[2, 0, 1]), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
}
