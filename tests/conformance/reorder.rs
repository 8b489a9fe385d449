//! Between all storage types, with scales, and into other orders of dimensions. Exact, but for ties of integers.

use crate::data::{Random, count};
use crate::rule::Rule;
use crate::suite::{Place, Stage, Suite};
use crate::values::{Values, range, rounded};
use weir_core::base::dtype;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{Convert, Transpose};

const TYPES: [u32; 6] = [dtype::F32, dtype::BF16, dtype::F16, dtype::S32, dtype::S8, dtype::U8];
const RULE: Rule = Rule { zeros: 80, ..Rule::EXACT };

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
    let x = data(from, to, shape, seed);
    // Arithmetic is in floats: s32 is one before it is scaled.
    let scaled = |x: f64| if scale == 1.0 { x } else { rounded(dtype::F32, rounded(dtype::F32, x) * f64::from(scale)) };
    let y = Values { dtype: to, dims: x.dims.clone(), x: x.x.iter().map(|&x| scaled(x)).collect() };
    let mut stages = vec![Stage::new(Builtin::new(Convert { dtype: to, scale, shift: 0.0 }), vec![x])];
    let mut reference = y.x.clone();
    if !order.is_empty() {
        let permutation = std::array::from_fn(|i| order.get(i).map_or(0, |&axis| axis as usize));
        let transpose = Transpose { rank: Some(order.len()), permutation };
        stages.push(Stage::new(Builtin::new(transpose), vec![]));
        reference = permuted(&y, order);
    }
    let name = format!("{shape:?} {order:?} {} to {} scale {scale}", dtype::name(from), dtype::name(to));
    suite.stages(name, RULE, reference, Place::Out, stages);
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
