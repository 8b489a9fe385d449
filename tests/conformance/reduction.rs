//! Reductions over any axes.

use crate::data::{Random, count};
use crate::product::matrix_of;
use crate::rule::{Rule, epsilon};
use crate::suite::Suite;
use crate::values::{Values, is_integer, wrapped};
use weir_core::base::dtype;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{Reduce, weir_reduce_op_value as Op};

/// Shapes of input and output.
const SHAPES: [(&[i64], &[i64]); 10] = [
    (&[5, 3, 2, 9], &[1, 3, 2, 9]),
    (&[32, 17, 2, 3], &[32, 17, 1, 1]),
    (&[32, 17, 2, 3], &[1, 17, 2, 3]),
    (&[15, 12, 3, 5], &[15, 1, 1, 1]),
    (&[15, 12, 3, 5], &[1, 1, 1, 1]),
    (&[12, 12], &[1, 12]),
    (&[10, 16, 32], &[10, 1, 32]),
    (&[1, 17, 64], &[1, 1, 64]),
    (&[127], &[1]),
    (&[1, 64, 128, 128], &[1, 64, 1, 1]),
];

const NORMS: [Op; 4] = [
    Op::WEIR_REDUCE_NORM_MAX,
    Op::WEIR_REDUCE_NORM_SUM,
    Op::WEIR_REDUCE_NORM_POWER_MAX,
    Op::WEIR_REDUCE_NORM_POWER_SUM,
];
const EPS: f32 = 0.5;

pub fn cases(suite: &mut Suite) {
    let plain = [
        Op::WEIR_REDUCE_SUM,
        Op::WEIR_REDUCE_MUL,
        Op::WEIR_REDUCE_MAX,
        Op::WEIR_REDUCE_MIN,
        Op::WEIR_REDUCE_MEAN,
        Op::WEIR_REDUCE_ARGMAX,
        Op::WEIR_REDUCE_ARGMIN,
    ];
    let norms = NORMS.into_iter().flat_map(|op| [(op, false), (op, true)]);
    let operations: Vec<_> = plain.into_iter().map(|op| (op, false)).chain(norms).collect();
    for (seed, &(from, to)) in SHAPES.iter().enumerate() {
        if !suite.takes(count(from) * 10) {
            continue;
        }
        let places = places(from, to);
        for &(op, squares) in &operations {
            for of in [dtype::F32, dtype::BF16, dtype::F16, dtype::S64, dtype::S32, dtype::S8, dtype::U8] {
                if is_integer(of) && NORMS.contains(&op) {
                    continue;
                }
                let x = data(op, of, (from, to), &places, seed as u64);
                let reference = reference(op, squares, &x, to, &places);
                let mut kernel = Reduce {
                    op,
                    axes: [0; 8],
                    num_axes: 0,
                    keep_dims: true,
                    long_indices: false,
                    squares,
                    eps: if NORMS.contains(&op) { EPS } else { 0.0 },
                };
                for axis in (0..from.len()).filter(|&axis| from[axis] != to[axis]) {
                    kernel.axes[kernel.num_axes] = axis as i32;
                    kernel.num_axes += 1;
                }
                let epsilons = if NORMS.contains(&op) && of == dtype::F32 { 5.0 } else { 1.0 };
                let name = format!("{op:?} {squares} {} {from:?} to {to:?}", dtype::name(of));
                let rule = match is_integer(of) {
                    // Products and averages of small numbers.
                    true => Rule { zeros: 100, ..Rule::EXACT },
                    false => Rule::with(epsilons * epsilon(of)).zeros(40),
                };
                suite.kernel(name, rule, reference, Builtin::new(kernel), vec![x]);
            }
        }
    }
}

/// So few and so small numbers beside the neutral one that no result is out of range, and sums are exact.
fn data(op: Op, of: u32, (from, to): (&[i64], &[i64]), places: &[(usize, usize)], seed: u64) -> Values {
    let reduced = count(from) / count(to);
    let is_f16 = of == dtype::F16;
    let mut random = Random::new(seed);
    let (most, neutral) = match op {
        Op::WEIR_REDUCE_MUL => (if is_f16 { 10 } else { 30 }, 1.0),
        Op::WEIR_REDUCE_MAX | Op::WEIR_REDUCE_MIN | Op::WEIR_REDUCE_ARGMAX | Op::WEIR_REDUCE_ARGMIN => {
            (usize::MAX, 0.0)
        }
        _ => (if is_f16 { 1000 } else { 10_000 }, 0.0),
    };
    let apart = reduced.div_ceil(most);
    let x = places.iter().map(|&(_, number)| {
        // Evenly spread.
        if number % apart != 0 {
            return neutral;
        }
        match op {
            Op::WEIR_REDUCE_MUL => random.sign() * 2f64.powf(random.whole(0, if is_f16 { 1 } else { 3 })),
            Op::WEIR_REDUCE_SUM | Op::WEIR_REDUCE_MEAN => random.whole(-3, if is_f16 { 8 } else { 16 }),
            _ if most == usize::MAX => random.whole(-1000, 1000),
            _ => random.whole(if is_f16 { -8 } else { -16 }, if is_f16 { 8 } else { 16 }),
        }
    });
    Values::nearest(of, from, x)
}

/// Which element of the output each element of the input goes to, and its number among those that go there.
fn places(from: &[i64], to: &[i64]) -> Vec<(usize, usize)> {
    let others: Vec<i64> = from.iter().zip(to).map(|(&from, &to)| if from == to { 1 } else { from }).collect();
    (0..count(from)).map(|at| (matrix_of(at, to, from), matrix_of(at, &others, from))).collect()
}

fn reference(op: Op, squares: bool, x: &Values, to: &[i64], places: &[(usize, usize)]) -> Vec<f64> {
    let mut of: Vec<Vec<f64>> = vec![Vec::new(); count(to)];
    for (&value, &(kept, number)) in x.x.iter().zip(places) {
        assert_eq!(of[kept].len(), number);
        of[kept].push(value);
    }
    let power = |x: &[f64]| x.iter().map(|x| if squares { x * x } else { x.abs() }).sum::<f64>();
    let root = |power: f64| if squares { power.sqrt() } else { power };
    let eps = f64::from(EPS);
    // The first of equals.
    let place = |x: &[f64], better: fn(f64, f64) -> bool| {
        (0..x.len()).fold(0, |best, i| if better(x[i], x[best]) { i } else { best }) as f64
    };
    let value = |x: &Vec<f64>| match op {
        Op::WEIR_REDUCE_SUM => x.iter().sum(),
        Op::WEIR_REDUCE_MEAN => x.iter().sum::<f64>() / x.len() as f64,
        Op::WEIR_REDUCE_MUL => x.iter().product(),
        Op::WEIR_REDUCE_MAX => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Op::WEIR_REDUCE_MIN => x.iter().copied().fold(f64::INFINITY, f64::min),
        Op::WEIR_REDUCE_NORM_MAX => root(power(x).max(eps)),
        Op::WEIR_REDUCE_NORM_SUM => root(power(x) + eps),
        Op::WEIR_REDUCE_NORM_POWER_MAX => power(x).max(eps),
        Op::WEIR_REDUCE_NORM_POWER_SUM => power(x) + eps,
        Op::WEIR_REDUCE_ARGMAX => place(x, |a, b| a > b),
        Op::WEIR_REDUCE_ARGMIN => place(x, |a, b| a < b),
    };
    // Exact in i64, modulo 2^64.
    let whole = |numbers: &Vec<f64>| {
        let numbers = || numbers.iter().map(|&x| x as i64);
        let sum = numbers().fold(0, i64::wrapping_add);
        match op {
            Op::WEIR_REDUCE_SUM => wrapped(x.dtype, sum),
            Op::WEIR_REDUCE_MEAN => (sum / numbers().count() as i64) as f64,
            Op::WEIR_REDUCE_MUL => wrapped(x.dtype, numbers().fold(1, i64::wrapping_mul)),
            _ => value(&numbers().map(|x| x as f64).collect()),
        }
    };
    if is_integer(x.dtype) { of.iter().map(whole).collect() } else { of.iter().map(value).collect() }
}
