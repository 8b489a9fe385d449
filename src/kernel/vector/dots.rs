//! Dot products of rows with rows: C = A * B^T for matrices whose rows are both consecutive along K.
//!
//! For a product of a few rows with weights that are stored as [N, K] and used once: nothing is packed, each weight is
//! read once for up to four rows of A. A block of accumulators, as many as a register has lanes, stays in registers,
//! and is reduced together: its registers are folded in pairs, until each lane of the last one is an element.
//!
//! Determinism: an element is one vector of partial sums, accumulated in the order of K, padded with zeros, and reduced
//! in a fixed order: lanes half a register apart, then a quarter, and so on. It does not depend on its block.

use super::isa::{Isa, SimdLevel};
use super::lanes::Vector;
use super::site::Matrix;

/// Partial sums of the portable code.
const PORTABLE: usize = 16;

/// The destination of the element for row i of A and row j of B.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub data: *mut f32,
    /// Distance between neighbours along i.
    pub row: usize,
    /// Distance between neighbours along j.
    pub column: usize,
    /// Whether the product is added to the existing values.
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

/// Sizes of a product, and the addresses of the operands.
#[derive(Clone, Copy)]
struct DotOperands {
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    b_stride: usize,
}

/// Estimated time of a product on one thread. B is assumed in the L2 cache, as the weights of small networks are; a
/// larger one is a few times slower.
pub fn cost_ns(m: usize, n: usize, k: usize) -> f64 {
    let [m, n, k] = [m, n, k].map(|size| size as f64);
    // A million multiplications in 33 us, or 6 times as long without vectors; 60 GB/s; plus the reduction of each
    // element.
    let rate = if Isa::best().level > SimdLevel::Portable { 30.0 } else { 5.0 };
    (m * n * k / rate).max(n * k * 4.0 / 60.0) + m * n * 0.5
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
    isa.assert_detected();
    // SAFETY: the operands have these sizes, the level was compared.
    unsafe {
        let operands =
            DotOperands { m, n, k, a: a.at(0, 0), a_stride: a.stride(), b: b.at(first, 0), b_stride: b.stride() };
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => avx512(&operands, to),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => avx2(&operands, to),
            _ => portable(&operands, to),
        }
    }
}

/// Register operations for dot products.
///
/// # Safety
/// As of `Vector`.
#[cfg(target_arch = "x86_64")]
trait LaneSums: Vector {
    /// Prefetches memory; any address is allowed.
    #[inline(always)]
    unsafe fn fetch(from: *const f32) {
        // SAFETY: nothing is read.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(from.cast()) };
    }
    /// The lane sums of LANES registers, in order.
    unsafe fn totals(sums: &[Self]) -> Self;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::LaneSums;
    use std::arch::x86_64::*;

    impl LaneSums for __m512 {
        #[inline(always)]
        unsafe fn totals(sums: &[__m512]) -> __m512 {
            // SAFETY: as demanded of the caller.
            unsafe {
                // Quarter l of the last register comes from registers l, 4 + l, 8 + l and 12 + l.
                let mut halves = [_mm512_setzero_ps(); 8];
                for (i, half) in halves.iter_mut().enumerate() {
                    let (a, b) = (sums[2 * i % 4 * 4 + i / 2], sums[(2 * i + 1) % 4 * 4 + i / 2]);
                    *half = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b));
                }
                let mut quarters = [_mm512_setzero_ps(); 4];
                for (i, quarter) in quarters.iter_mut().enumerate() {
                    let (a, b) = (halves[2 * i], halves[2 * i + 1]);
                    *quarter = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xDD>(a, b));
                }
                let mut pairs = [_mm512_setzero_ps(); 2];
                for (i, pair) in pairs.iter_mut().enumerate() {
                    let (a, b) = (quarters[2 * i], quarters[2 * i + 1]);
                    *pair = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(a, b), _mm512_shuffle_ps::<0xEE>(a, b));
                }
                let [a, b] = pairs;
                _mm512_add_ps(_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xDD>(a, b))
            }
        }
    }

    impl LaneSums for __m256 {
        #[inline(always)]
        unsafe fn totals(sums: &[__m256]) -> __m256 {
            // SAFETY: as demanded of the caller.
            unsafe {
                // Half l of the last register comes from registers l, 2 + l, 4 + l and 6 + l.
                let mut halves = [_mm256_setzero_ps(); 4];
                for (i, half) in halves.iter_mut().enumerate() {
                    let (a, b) = (sums[i], sums[4 + i]);
                    *half = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
                }
                let mut pairs = [_mm256_setzero_ps(); 2];
                for (i, pair) in pairs.iter_mut().enumerate() {
                    let (a, b) = (halves[2 * i], halves[2 * i + 1]);
                    *pair = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xEE>(a, b));
                }
                let [a, b] = pairs;
                _mm256_add_ps(_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b))
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512(operands: &DotOperands, to: &Target) {
    type V = std::arch::x86_64::__m512;
    let mut i = 0;
    // SAFETY: passed on, rows below m; the processor has AVX-512.
    unsafe {
        while i < operands.m {
            i += match operands.m - i {
                4.. => columns::<V, 4, 4, 16>(operands, to, i),
                2.. => columns::<V, 2, 8, 16>(operands, to, i),
                _ => columns::<V, 1, 16, 16>(operands, to, i),
            };
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(operands: &DotOperands, to: &Target) {
    type V = std::arch::x86_64::__m256;
    let mut i = 0;
    // SAFETY: passed on, rows below m; the processor has AVX2 and FMA.
    unsafe {
        while i < operands.m {
            i += match operands.m - i {
                2.. => columns::<V, 2, 4, 8>(operands, to, i),
                _ => columns::<V, 1, 8, 8>(operands, to, i),
            };
        }
    }
}

/// All columns for R rows, C at a time, where R * C = N are the lanes of a register. Returns R.
///
/// # Safety
/// As `products`, on a processor with the instructions of V; there are R rows from i on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn columns<V: LaneSums, const R: usize, const C: usize, const N: usize>(
    operands: &DotOperands,
    to: &Target,
    i: usize,
) -> usize {
    const { assert!(R * C == N && N == V::LANES) }
    let (mut j, n) = (0, operands.n);
    // SAFETY: passed on; columns below n.
    unsafe {
        while n - j >= C {
            block::<V, R, C, N>(operands, to, i, j);
            j += C;
        }
        if C > 8 && n - j >= 8 {
            block::<V, R, 8, N>(operands, to, i, j);
            j += 8;
        }
        if C > 4 && n - j >= 4 {
            block::<V, R, 4, N>(operands, to, i, j);
            j += 4;
        }
        if C > 2 && n - j >= 2 {
            block::<V, R, 2, N>(operands, to, i, j);
            j += 2;
        }
        if n > j {
            block::<V, R, 1, N>(operands, to, i, j);
        }
    }
    R
}

/// # Safety
/// As `columns`; there are C columns from j on. R * C is at most N.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn block<V: LaneSums, const R: usize, const C: usize, const N: usize>(
    operands: &DotOperands,
    to: &Target,
    i: usize,
    j: usize,
) {
    let DotOperands { k, a_stride, b_stride, .. } = *operands;
    let whole = k - k % V::LANES;
    // SAFETY: as demanded of the caller: rows and columns are in the operands, and vectors end at k.
    unsafe {
        let (a, b) = (operands.a.add(i * a_stride), operands.b.add(j * b_stride));
        // The sum of row r and column c is at c * R + r; the rest stays 0.
        let mut sums = [V::splat(0.0); N];
        for at in (0..whole).step_by(V::LANES) {
            let mut of_a = [V::splat(0.0); R];
            for (r, lanes) in of_a.iter_mut().enumerate() {
                *lanes = V::load(a.add(r * a_stride + at));
            }
            for c in 0..C {
                let of_b = V::load(b.add(c * b_stride + at));
                if R > 2 {
                    // Prefetches the next block. With fewer rows the loop only loads, and the hardware keeps up by
                    // itself.
                    V::fetch(b.wrapping_add((C + c) * b_stride + at));
                }
                for r in 0..R {
                    sums[c * R + r] = of_a[r].mul_add(of_b, sums[c * R + r]);
                }
            }
        }
        if whole < k {
            let mut of_a = [V::splat(0.0); R];
            for (r, lanes) in of_a.iter_mut().enumerate() {
                *lanes = V::load_first(a.add(r * a_stride + whole), k - whole);
            }
            for c in 0..C {
                let of_b = V::load_first(b.add(c * b_stride + whole), k - whole);
                for r in 0..R {
                    sums[c * R + r] = of_a[r].mul_add(of_b, sums[c * R + r]);
                }
            }
        }
        let totals = V::totals(&sums);
        if !to.add && if R == 1 { to.column == 1 } else { to.row == 1 && to.column == R } {
            totals.store_part(to.data.add(i * to.row + j * to.column), R * C);
            return;
        }
        let mut all = [0.0f32; N];
        totals.store(all.as_mut_ptr());
        for (at, total) in all.into_iter().take(R * C).enumerate() {
            to.put(i + at % R, j + at / R, total);
        }
    }
}

/// # Safety
/// As `products`.
unsafe fn portable(operands: &DotOperands, to: &Target) {
    let &DotOperands { m, n, k, a, a_stride, b, b_stride } = operands;
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

#[cfg(all(test, not(loom)))]
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
        for isa in Isa::levels() {
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
        for isa in Isa::levels() {
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
