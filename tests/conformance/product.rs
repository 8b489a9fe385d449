//! Products in f64, slow and obvious; their shapes, and their data.

use crate::data::{self, count};
use crate::suite::Suite;
use crate::values::Values;

/// Shapes of A and B.
pub type Pair = (&'static [i64], &'static [i64]);

pub const PLAIN: &[Pair] = &[
    (&[1, 1], &[1, 1]),
    (&[10, 30], &[30, 1]),
    (&[1, 30], &[30, 20]),
    (&[10, 1], &[1, 20]),
    (&[1, 300], &[300, 1]),
    (&[1, 1], &[1, 200]),
    (&[100, 1], &[1, 1]),
    (&[10, 30], &[30, 20]),
    (&[2, 30], &[30, 47]),
    (&[10, 30], &[30, 16]),
];

pub const BATCHES: &[Pair] = &[
    (&[2, 10, 30], &[2, 30, 1]),
    (&[3, 30, 1], &[3, 1, 20]),
    (&[7, 32, 16], &[1, 16, 8]),
    (&[1, 128, 8], &[2, 8, 16]),
    (&[2, 16, 73], &[1, 73, 8]),
    (&[1, 26, 17], &[5, 17, 65]),
    (&[2, 16, 384, 384], &[2, 1, 384, 64]),
    (&[14, 6, 1, 253], &[1, 1, 253, 1]),
    (&[22, 3, 1, 8, 14], &[22, 1, 4, 14, 8]),
];

/// K is cut into stretches, and C into tiles.
pub const LONG: &[Pair] = &[(&[3, 1030], &[1030, 5]), (&[150, 530], &[530, 200])];

/// Shapes of networks.
pub const NETWORKS: &[Pair] = &[
    (&[2048, 256], &[256, 256]),
    (&[2048, 256], &[256, 128]),
    (&[2048, 128], &[128, 64]),
    (&[2048, 128], &[128, 1]),
    (&[2048, 13], &[13, 512]),
    (&[2048, 479], &[479, 1024]),
    (&[12, 128, 64], &[12, 64, 128]),
    (&[12, 128, 128], &[12, 128, 64]),
    (&[30, 4096], &[4096, 4096]),
    (&[30, 14336], &[14336, 4096]),
    (&[5376, 197, 64], &[5376, 64, 197]),
];

/// Large networks only if `suite` takes what is large.
pub fn all(suite: &Suite) -> Vec<&'static Pair> {
    let networks = NETWORKS.iter().filter(|pair| suite.takes(64 * work(pair)));
    PLAIN.iter().chain(BATCHES).chain(LONG).chain(networks).collect()
}

/// M, K and N of two operands, and the leading dimensions of their product.
pub fn sizes((a, b): &Pair) -> (usize, usize, usize, Vec<i64>) {
    let (of_a, of_b) = (a.len() - 2, b.len() - 2);
    assert!(of_a == of_b && a[of_a + 1] == b[of_b]);
    let batch = a[..of_a].iter().zip(&b[..of_b]).map(|(&a, &b)| a.max(b)).collect();
    (a[of_a] as usize, b[of_b] as usize, b[of_b + 1] as usize, batch)
}

/// Multiplications.
pub fn work(pair: &Pair) -> usize {
    let (m, k, n, batch) = sizes(pair);
    m * k * n * count(&batch)
}

/// Where an operand's matrix for product `number` of a batch begins, in matrices.
pub fn matrix_of(number: usize, dims: &[i64], batch: &[i64]) -> usize {
    let (mut at, mut stride, mut rest) = (0, 1, number);
    for (&dim, &size) in dims.iter().zip(batch).rev() {
        let index = rest % size as usize;
        rest /= size as usize;
        at += if dim == 1 { 0 } else { index * stride };
        stride *= dim as usize;
    }
    at
}

/// c += a b, of dense matrices.
pub fn add_product((m, k, n): (usize, usize, usize), a: &[f64], b: &[f64], c: &mut [f64]) {
    if n == 1 {
        return (0..m).for_each(|i| c[i] += a[i * k..][..k].iter().zip(b).map(|(x, y)| x * y).sum::<f64>());
    }
    for (row, c) in c.chunks_exact_mut(n).take(m).enumerate() {
        for (&x, b) in a[row * k..][..k].iter().zip(b.chunks_exact(n)).filter(|(x, _)| **x != 0.0) {
            c.iter_mut().zip(b).for_each(|(c, y)| *c += x * y);
        }
    }
}

/// The products of a batch, of operands less their zero points.
pub fn reference(pair: &Pair, a: &Values, b: &Values, (zero_a, zero_b): (f64, f64)) -> Vec<f64> {
    let (m, k, n, batch) = sizes(pair);
    let less = |x: &[f64], zero: f64| x.iter().map(|x| x - zero).collect::<Vec<f64>>();
    let (a, b) = (less(&a.x, zero_a), less(&b.x, zero_b));
    let mut c = vec![0.0; m * n * count(&batch)];
    let leading = batch.len();
    for (number, c) in c.chunks_exact_mut(m * n).enumerate() {
        let (of_a, of_b) =
            (matrix_of(number, &pair.0[..leading], &batch), matrix_of(number, &pair.1[..leading], &batch));
        add_product((m, k, n), &a[of_a * m * k..], &b[of_b * k * n..], c);
    }
    c
}

/// Whole numbers, so few that sums of 24 binary digits are exact.
pub fn operands(pair: &Pair, (of_a, of_b): (u32, u32), wide: bool, seed: u64) -> (Values, Values) {
    let (in_a, in_b) = data::ranges(of_a, wide);
    let (_, k, ..) = sizes(pair);
    let mask = data::mask(k, in_a, in_b, if of_a == weir_core::base::dtype::F32 { 24 } else { 30 });
    let mut a = data::whole(of_a, pair.0, in_a, 2 * seed);
    a.x.iter_mut().enumerate().filter(|(i, _)| !mask[i % k]).for_each(|(_, x)| *x = 0.0);
    // A product of one element shows nothing if it is 0.
    a.x.iter_mut().filter(|x| k == 1 && **x == 0.0).for_each(|x| *x = 3.0);
    (a, data::whole(of_b, pair.1, in_b, 2 * seed + 1))
}

/// The last two dimensions exchanged.
pub fn transposed(values: &Values) -> Values {
    let rank = values.dims.len();
    let (rows, columns) = (values.dims[rank - 2] as usize, values.dims[rank - 1] as usize);
    let mut dims = values.dims.clone();
    dims.swap(rank - 2, rank - 1);
    let turn = |x: &[f64]| (0..rows * columns).map(|i| x[i % rows * columns + i / rows]).collect::<Vec<f64>>();
    Values::new(values.dtype, &dims, values.x.chunks_exact((rows * columns).max(1)).flat_map(turn).collect())
}

#[test]
fn the_reference_is_the_product() {
    let mut c = vec![1.0; 4];
    add_product((2, 3, 2), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 0.0, 0.0, 1.0, 2.0, -1.0], &mut c);
    assert_eq!(c, [8.0, 0.0, 17.0, 0.0]);
    // A batch of 2 x 3, in which A has 2 x 1 matrices and B 1 x 3.
    let of = |dims: &[i64]| (0..6).map(|number| matrix_of(number, dims, &[2, 3])).collect::<Vec<_>>();
    assert_eq!((of(&[2, 1]), of(&[1, 3])), (vec![0, 0, 0, 1, 1, 1], vec![0, 1, 2, 0, 1, 2]));
    let x = Values::new(weir_core::base::dtype::F32, &[2, 3], (1..=6).map(f64::from).collect());
    assert_eq!(transposed(&x).x, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}
