//! Dot products of rows with rows: C = A * B^T for matrices whose rows are both consecutive along K.
//!
//! It is the product for a few rows against weights that are stored as [N, K] and used once: nothing is packed, each
//! weight is read once for up to `ROWS` rows of A. A small block of sums stays in registers.
//!
//! Same bits: an element is one vector of partial sums, filled in the order of K, added up the same way, and then what
//! is left of K in order. It does not depend on the block that it was computed in.

use super::isa::Isa;
use super::lanes::Vector;
use super::site::Matrix;

/// Most rows of A at once.
const ROWS: usize = 4;
/// Partial sums of the portable form.
const PORTABLE: usize = 16;

/// Where the element for row i of A and row j of B goes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub data: *mut f32,
    /// Distance between neighbours along i.
    pub row: usize,
    /// Distance between neighbours along j.
    pub column: usize,
    /// Whether the product is added to what is there.
    pub add: bool,
}

impl Target {
    /// # Safety
    /// The element is in the target, which is writable.
    #[inline(always)]
    unsafe fn put(&self, i: usize, j: usize, sum: f32) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let place = self.data.add(i * self.row + j * self.column);
            *place = if self.add { *place + sum } else { sum };
        }
    }
}

/// Sizes of a product, and where the operands begin.
#[derive(Clone, Copy)]
struct Operands {
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    b_stride: usize,
}

/// Products of `m` rows of A with `n` rows of B from `first` on, both `k` long.
///
/// # Safety
/// A is `m` x `k`, B has `first + n` rows of `k`; the target has `m` x `n` elements, writable, initialised if they are
/// added to, and overlaps neither.
pub unsafe fn products(
    isa: Isa,
    (m, n, k): (usize, usize, usize),
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    first: usize,
    to: &Target,
) {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    // SAFETY: the operands are as large as said, the level was compared.
    unsafe {
        let operands =
            Operands { m, n, k, a: a.at(0, 0), a_stride: a.stride(), b: b.at(first, 0), b_stride: b.stride() };
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => avx512(&operands, to),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(&operands, to),
            _ => portable(&operands, to),
        }
    }
}

/// The sum of the lanes, in a fixed order.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn sum_of<V: Vector>(lanes: V) -> f32 {
    let mut all = [0.0f32; 16];
    // SAFETY: as demanded of the caller; no register has more than 16 lanes.
    unsafe { lanes.store(all.as_mut_ptr()) };
    let mut width = V::LANES / 2;
    while width > 0 {
        for i in 0..width {
            all[i] += all[i + width];
        }
        width /= 2;
    }
    all[0]
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512(operands: &Operands, to: &Target) {
    use std::arch::x86_64::*;
    // SAFETY: passed on; the processor has AVX-512.
    unsafe { rows::<__m512, 4>(operands, to, |lanes| _mm512_reduce_add_ps(lanes)) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(operands: &Operands, to: &Target) {
    // SAFETY: passed on; the processor has AVX2 and FMA.
    unsafe { rows::<std::arch::x86_64::__m256, 2>(operands, to, |lanes| sum_of(lanes)) }
}

/// Blocks of MOST, two or one rows of A. Eight sums at least are under way at once: the latency of an addition.
///
/// # Safety
/// As `products`, on a processor with the instructions of V.
#[inline(always)]
unsafe fn rows<V: Vector, const MOST: usize>(operands: &Operands, to: &Target, sum: impl Fn(V) -> f32 + Copy) {
    let mut i = 0;
    // SAFETY: passed on; rows below m.
    unsafe {
        while i < operands.m {
            let left = operands.m - i;
            i += if MOST >= ROWS && left >= ROWS {
                columns::<V, ROWS, 4>(operands, to, i, sum);
                ROWS
            } else if left >= 2 {
                columns::<V, 2, 4>(operands, to, i, sum);
                2
            } else {
                columns::<V, 1, 8>(operands, to, i, sum);
                1
            };
        }
    }
}

/// All columns for R rows, C at a time.
///
/// # Safety
/// As `rows`; there are R rows from i on.
#[inline(always)]
unsafe fn columns<V: Vector, const R: usize, const C: usize>(
    operands: &Operands,
    to: &Target,
    i: usize,
    sum: impl Fn(V) -> f32 + Copy,
) {
    let whole = operands.n - operands.n % C;
    // SAFETY: passed on; columns below n.
    unsafe {
        for j in (0..whole).step_by(C) {
            block::<V, R, C>(operands, to, i, j, sum);
        }
        for j in whole..operands.n {
            block::<V, R, 1>(operands, to, i, j, sum);
        }
    }
}

/// # Safety
/// As `rows`; there are R rows from i on and C from j on.
#[inline(always)]
unsafe fn block<V: Vector, const R: usize, const C: usize>(
    operands: &Operands,
    to: &Target,
    i: usize,
    j: usize,
    sum: impl Fn(V) -> f32,
) {
    let Operands { k, a_stride, b_stride, .. } = *operands;
    let whole = k - k % V::LANES;
    // SAFETY: as demanded of the caller: rows and columns are in the operands, and vectors end at `whole`.
    unsafe {
        let (a, b) = (operands.a.add(i * a_stride), operands.b.add(j * b_stride));
        let mut sums = [[V::splat(0.0); C]; R];
        for at in (0..whole).step_by(V::LANES) {
            let mut of_a = [V::splat(0.0); R];
            for (r, lanes) in of_a.iter_mut().enumerate() {
                *lanes = V::load(a.add(r * a_stride + at));
            }
            for c in 0..C {
                let of_b = V::load(b.add(c * b_stride + at));
                for (sums, of_a) in sums.iter_mut().zip(of_a) {
                    sums[c] = of_a.mul_add(of_b, sums[c]);
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (c, lanes) in sums.into_iter().enumerate() {
                let mut total = sum(lanes);
                for at in whole..k {
                    total += *a.add(r * a_stride + at) * *b.add(c * b_stride + at);
                }
                to.put(i + r, j + c, total);
            }
        }
    }
}

/// # Safety
/// As `products`.
unsafe fn portable(operands: &Operands, to: &Target) {
    let &Operands { m, n, k, a, a_stride, b, b_stride } = operands;
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        // SAFETY: as demanded of the caller: rows are in the operands.
        let (a, b) = unsafe {
            let row =
                |data: *const f32, at: usize| if k == 0 { &[] } else { std::slice::from_raw_parts(data.add(at), k) };
            (row(a, i * a_stride), row(b, j * b_stride))
        };
        let (a_chunks, b_chunks) = (a.chunks_exact(PORTABLE), b.chunks_exact(PORTABLE));
        let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
        let mut sums = [0.0f32; PORTABLE];
        for (a, b) in a_chunks.zip(b_chunks) {
            for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum += a * b;
            }
        }
        let total = rest.fold(sums.into_iter().sum(), |total, (a, b)| total + a * b);
        // SAFETY: as demanded of the caller.
        unsafe { to.put(i, j, total) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn every_level_and_remainder() {
        for isa in Isa::available() {
            for (m, n, k) in
                [(1, 1, 0), (1, 1, 1), (1, 9, 15), (2, 4, 16), (3, 5, 17), (4, 7, 33), (9, 3, 100), (6, 19, 129)]
            {
                let (a, b) = (noise(m * k, 1), noise(n * k, 2));
                for add in [false, true] {
                    let mut c = vec![0.5f32; m * n + 8];
                    // Transposed, so that both strides count.
                    let to = Target { data: c.as_mut_ptr(), row: 1, column: m, add };
                    let (a_rows, b_rows) = (Matrix::dense(&a, m, k), Matrix::dense(&b, n, k));
                    // SAFETY: the matrices have these sizes.
                    unsafe { products(isa, (m, n, k), a_rows, b_rows, 0, &to) };
                    assert!(c[m * n..].iter().all(|&guard| guard == 0.5));
                    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                        let dot = |(x, y): (&f32, &f32)| f64::from(*x) * f64::from(*y);
                        let want: f64 = a[i * k..][..k].iter().zip(&b[j * k..][..k]).map(dot).sum();
                        let error = (f64::from(c[j * m + i]) - want - if add { 0.5 } else { 0.0 }).abs();
                        assert!(error < 2e-6, "{isa:?} {m} x {n} x {k}: {i}, {j}: off by {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_element_has_the_same_bits_in_every_block() {
        for isa in Isa::available() {
            let (a, b) = (noise(9 * 75, 3), noise(21 * 75, 4));
            let (a, b) = (Matrix::dense(&a, 9, 75), Matrix::dense(&b, 21, 75));
            let mut all = [0.0f32; 9 * 21];
            let to = Target { data: all.as_mut_ptr(), row: 21, column: 1, add: false };
            // SAFETY: the matrices have these sizes.
            unsafe { products(isa, (9, 21, 75), a, b, 0, &to) };
            for j in 0..21 {
                let mut one = [0.0f32; 9];
                let to = Target { data: one.as_mut_ptr(), row: 1, column: 1, add: false };
                // SAFETY: as above.
                unsafe { products(isa, (9, 1, 75), a, b, j, &to) };
                for (i, one) in one.into_iter().enumerate() {
                    assert_eq!(one.to_bits(), all[i * 21 + j].to_bits(), "{isa:?} {i}, {j}");
                }
            }
        }
    }
}
