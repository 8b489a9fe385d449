//! Products of bytes with zero points and scales into all types. Exact, but for ties.

use crate::data::{Random, whole};
use crate::product::{self, Pair, operands, reference, sizes, transposed, work};
use crate::rule::Rule;
use crate::suite::Suite;
use crate::values::{Values, packed};
use weir_core::base::dtype;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::MatmulInt8;

const RULE: Rule = Rule { zeros: 90, ..Rule::EXACT };
const STORES: [u32; 4] = [dtype::S32, dtype::F32, dtype::S8, dtype::U8];

/// Products of so many terms are long.
const LONG: usize = 512;

const PLAIN: MatmulInt8 = MatmulInt8 {
    transpose_a: false,
    transpose_b: false,
    bias: false,
    scales: false,
    scale: 1.0,
    zero_a: 0,
    zero_b: 0,
    zero_c: 0,
    dtype: dtype::S32,
    packed: None,
};

/// What is added to the plain product: zero points of A, B and C; A's scale over C's; a scale for each column; a bias.
#[derive(Clone, Copy, Debug)]
struct With {
    zeros: bool,
    scales: bool,
    bias: bool,
}

pub fn cases(suite: &mut Suite) {
    for (seed, pair) in product::all(suite).into_iter().enumerate() {
        // B is one matrix.
        if !suite.takes(192 * work(pair)) || pair.1[..pair.1.len() - 2].iter().any(|&dim| dim != 1) {
            continue;
        }
        for of_a in [dtype::U8, dtype::S8] {
            for of_c in STORES {
                for bits in 0..8 {
                    let with = With { zeros: bits & 1 != 0, scales: bits & 2 != 0, bias: bits & 4 != 0 };
                    of_pair(suite, pair, of_a, of_c, with, seed as u64);
                }
            }
        }
    }
}

fn of_pair(suite: &mut Suite, pair: &Pair, of_a: u32, of_c: u32, with: With, seed: u64) {
    let (_, k, n, _) = sizes(pair);
    let wide = [dtype::S32, dtype::F32].contains(&of_c);
    let (mut a, mut b) = operands(pair, (of_a, dtype::S8), wide, seed);
    if n == 1 && !wide {
        // A column may have one sign, and bytes have room for little: a column of zeros shows nothing.
        a.x.iter_mut().chain(&mut b.x).for_each(|x| *x = x.abs().max(2.0));
    }
    let b = Values::new(b.dtype, &[k as i64, n as i64], b.x);
    // Where zero points give both operands a mean, a long product has one too, and that is more than bytes hold.
    let zero_b = if wide || k < LONG { -1 } else { 0 };
    let zeros = if with.zeros { [1, zero_b, 2] } else { [0; 3] };
    let mut c = reference(pair, &a, &b, (f64::from(zeros[0]), f64::from(zeros[1])));
    let mut random = Random::new(seed);
    let columns = [n as i64];
    let bias = whole(dtype::S32, &columns, (-50, 50), seed + 7);
    let scales = Values::nearest(
        dtype::F32,
        &columns,
        (0..n).map(|_| 2f64.powi(random.whole(if n == 1 { 1 } else { -2 }, 1) as i32)),
    );
    let scale = if with.scales { 0.25 / 2.0 } else { 1.0 };
    for (i, c) in c.iter_mut().enumerate() {
        *c += if with.bias { bias.x[i % n] } else { 0.0 };
        *c *= if with.scales { scales.x[i % n] * scale } else { 1.0 };
        // A zero point is added to what has been rounded: on a tie that makes a difference, and here none.
        *c = if of_c == dtype::F32 { *c } else { c.round_ties_even() } + f64::from(zeros[2]);
    }
    let kernel = MatmulInt8 {
        bias: with.bias,
        scales: with.scales,
        scale: scale as f32,
        zero_a: zeros[0],
        zero_b: zeros[1],
        zero_c: zeros[2],
        dtype: of_c,
        ..PLAIN
    };
    let rest = || with.bias.then(|| bias.clone()).into_iter().chain(with.scales.then(|| scales.clone()));
    let inputs = |b: &Values| [a.clone(), b.clone()].into_iter().chain(rest()).collect::<Vec<_>>();
    let name = format!("{pair:?} {} to {} {with:?}", dtype::name(of_a), dtype::name(of_c));
    // Bytes without a sign have no room for half of the sums.
    let rule = if of_c == dtype::U8 { RULE.zeros(95) } else { RULE };
    suite.kernel(name.clone(), rule, c.clone(), Builtin::new(kernel), inputs(&b));
    let turned = Builtin::new(MatmulInt8 { transpose_b: true, ..kernel });
    suite.kernel(format!("{name} transposed"), rule, c.clone(), turned, inputs(&transposed(&b)));
    let weights = packed(&b.tensor(), false);
    let of_packed = MatmulInt8 { packed: Some(weights.shape()), ..kernel };
    let inputs = [a.clone()].into_iter().chain(rest()).collect();
    suite.kernel(format!("{name} packed"), rule, c, Builtin::with_weights(of_packed, Some(weights)), inputs);
}
