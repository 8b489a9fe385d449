//! A few rows of A times a B that is read once, in place, without packing.
//!
//! Some rows of B are read at a time, each in a long run, which hardware prefetches best. The accumulators lie in
//! scratch memory, and take in those rows together.
//!
//! Determinism, as in `micro`: an element is the chain `x = a[k] * b[k] + x` from zero in the order of k; storing x
//! between two links changes nothing.

use super::isa::{Isa, SimdLevel};
use super::lanes::Vector;
use super::step::Thin;

/// Maximum rows of A.
pub const ROWS: usize = 8;
/// Maximum accumulators: they stay in near caches, and the runs of B are long.
pub const SUMS: usize = 16384;
/// Whole registers of any level.
pub const COLUMNS: usize = 32;

/// Distance between rows of accumulators, in floats. Rows a power of two apart would evict each other, and B's, from
/// the cache.
pub fn pitch(columns: usize) -> usize {
    columns.next_multiple_of(COLUMNS) + COLUMNS / 2
}

/// Floats of scratch memory for the accumulators of up to `rows` rows and `columns` columns.
pub fn floats(rows: usize, columns: usize) -> usize {
    let rows = rows.min(ROWS);
    rows * pitch(columns.min(SUMS / rows.max(1)))
}

/// Whether the level supports it: others have no code that is both the same chain and fast.
pub fn is_there(isa: Isa) -> bool {
    matches!(isa.level, SimdLevel::Avx2 | SimdLevel::Avx512)
}

/// Computes the sums.
///
/// # Safety
/// `1 <= rows <= ROWS`, A has `rows` times `depth` and B `depth` times `columns` readable floats, and there are `rows`
/// rows of `columns` writable sums, which overlap neither.
pub unsafe fn sums(isa: Isa, thin: &Thin) {
    isa.assert_detected();
    assert!((1..=ROWS).contains(&thin.rows), "{} rows", thin.rows);
    // SAFETY: passed on; the level was compared.
    unsafe {
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => x86::avx512(thin),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => x86::avx2(thin),
            _ => unreachable!("{isa:?}"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::thin_turned as turned;
    use super::{Thin, rows};
    use std::arch::x86_64::{__m256, __m512};

    /// # Safety
    /// As `sums`.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn avx512(thin: &Thin) {
        // SAFETY: passed on.
        unsafe {
            match (thin.b.across == 1, thin.rows) {
                (true, 1) => rows::<__m512, 1, 0, 4, 8>(thin),
                (true, 2) => rows::<__m512, 2, 0, 4, 8>(thin),
                (true, 3) => rows::<__m512, 3, 0, 4, 8>(thin),
                (true, 4) => rows::<__m512, 4, 0, 4, 8>(thin),
                (true, 5) => rows::<__m512, 5, 0, 4, 8>(thin),
                (true, 6) => rows::<__m512, 3, 3, 2, 8>(thin),
                (true, 7) => rows::<__m512, 4, 3, 2, 8>(thin),
                (true, _) => rows::<__m512, 4, 4, 2, 8>(thin),
                (false, 1) => turned::rows::<__m512, 1, 1, 4>(thin),
                (false, 2) => turned::rows::<__m512, 2, 1, 4>(thin),
                (false, 3) => turned::rows::<__m512, 3, 1, 4>(thin),
                (false, 4) => turned::rows::<__m512, 4, 1, 4>(thin),
                (false, 5) => turned::rows::<__m512, 5, 1, 4>(thin),
                (false, 6) => turned::rows::<__m512, 6, 1, 4>(thin),
                (false, 7) => turned::rows::<__m512, 7, 1, 4>(thin),
                (false, _) => turned::rows::<__m512, 8, 1, 4>(thin),
            }
        }
    }

    /// # Safety
    /// As `sums`.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn avx2(thin: &Thin) {
        // SAFETY: passed on.
        unsafe {
            match (thin.b.across == 1, thin.rows) {
                (true, 1) => rows::<__m256, 1, 0, 4, 8>(thin),
                (true, 2) => rows::<__m256, 2, 0, 4, 8>(thin),
                (true, 3) => rows::<__m256, 3, 0, 3, 8>(thin),
                (true, 4) => rows::<__m256, 4, 0, 3, 8>(thin),
                (true, 5) => rows::<__m256, 3, 2, 3, 8>(thin),
                (true, 6) => rows::<__m256, 3, 3, 3, 8>(thin),
                (true, 7) => rows::<__m256, 4, 3, 3, 8>(thin),
                (true, _) => rows::<__m256, 4, 4, 3, 8>(thin),
                (false, 1) => turned::rows::<__m256, 1, 2, 2>(thin),
                (false, 2) => turned::rows::<__m256, 2, 2, 2>(thin),
                (false, 3) => turned::rows::<__m256, 3, 2, 1>(thin),
                (false, 4) => turned::rows::<__m256, 4, 2, 1>(thin),
                (false, 5) => turned::rows::<__m256, 5, 1, 1>(thin),
                (false, 6) => turned::rows::<__m256, 6, 1, 1>(thin),
                (false, 7) => turned::rows::<__m256, 7, 1, 1>(thin),
                (false, _) => turned::rows::<__m256, 8, 1, 1>(thin),
            }
        }
    }
}

/// R rows, and then MORE; WIDE registers of columns and STEP rows of B at a time. Processors load and broadcast fewer
/// floats of A than they multiply: tiles are wide, and taller with more registers.
///
/// # Safety
/// As `sums`, on a processor with the instructions of V.
#[inline(always)]
unsafe fn rows<V: Vector, const R: usize, const MORE: usize, const WIDE: usize, const STEP: usize>(thin: &Thin) {
    let whole = thin.depth - thin.depth % STEP;
    // SAFETY: passed on; rows of B below the depth.
    unsafe {
        for k in (0..whole).step_by(STEP) {
            line::<V, R, MORE, WIDE, STEP>(thin, k);
        }
        for k in whole..thin.depth {
            line::<V, R, MORE, WIDE, 1>(thin, k);
        }
        if thin.depth == 0 {
            (0..R + MORE).for_each(|r| thin.sums.add(r * thin.pitch).write_bytes(0, thin.columns));
        }
    }
}

/// Adds the contribution of STEP rows of B from k on to all sums.
///
/// # Safety
/// As `rows`.
#[inline(always)]
unsafe fn line<V: Vector, const R: usize, const MORE: usize, const WIDE: usize, const STEP: usize>(
    thin: &Thin,
    k: usize,
) {
    let (wide, lanes) = (WIDE * V::LANES, V::LANES);
    let columns = thin.columns;
    let (in_blocks, in_registers) = (columns - columns % wide, columns - columns % lanes);
    // SAFETY: passed on; columns below their number, the last ones in a partial register.
    unsafe {
        for j in (0..in_blocks).step_by(wide) {
            block::<V, R, WIDE, STEP>(thin, 0, k, j, |from| V::load(from), |to, x| x.store(to));
            if MORE > 0 {
                block::<V, MORE, WIDE, STEP>(thin, R, k, j, |from| V::load(from), |to, x| x.store(to));
            }
        }
        for j in (in_blocks..in_registers).step_by(lanes) {
            block::<V, R, 1, STEP>(thin, 0, k, j, |from| V::load(from), |to, x| x.store(to));
            if MORE > 0 {
                block::<V, MORE, 1, STEP>(thin, R, k, j, |from| V::load(from), |to, x| x.store(to));
            }
        }
        let left = columns - in_registers;
        if left > 0 {
            let load = |from| V::load_first(from, left);
            block::<V, R, 1, STEP>(thin, 0, k, in_registers, load, |to, x| x.store_part(to, left));
            if MORE > 0 {
                block::<V, MORE, 1, STEP>(thin, R, k, in_registers, load, |to, x| x.store_part(to, left));
            }
        }
    }
}

/// Rows from `first` on.
///
/// # Safety
/// As `rows`; there are WIDE registers of columns from j on, or one partial register.
#[inline(always)]
unsafe fn block<V: Vector, const R: usize, const WIDE: usize, const STEP: usize>(
    thin: &Thin,
    first: usize,
    k: usize,
    j: usize,
    load: impl Fn(*const f32) -> V,
    store: impl Fn(*mut f32, V),
) {
    let Thin { pitch, a, b, sums, .. } = *thin;
    // SAFETY: as demanded of the caller.
    unsafe {
        let (of_rows, sums) = (a.data.add(first * a.across), sums.add(first * pitch));
        let mut all = [[V::splat(0.0); WIDE]; R];
        if k > 0 {
            for (r, row) in all.iter_mut().enumerate() {
                for (w, sum) in row.iter_mut().enumerate() {
                    *sum = load(sums.add(r * pitch + j + w * V::LANES));
                }
            }
        }
        for k in k..k + STEP {
            let mut of_b = [V::splat(0.0); WIDE];
            for (w, lanes) in of_b.iter_mut().enumerate() {
                *lanes = load(b.data.add(k * b.depth + j + w * V::LANES));
            }
            for (r, row) in all.iter_mut().enumerate() {
                let of_a = V::splat(*of_rows.add(r * a.across + k * a.depth));
                for (sum, of_b) in row.iter_mut().zip(of_b) {
                    *sum = of_a.mul_add(of_b, *sum);
                }
            }
        }
        for (r, row) in all.into_iter().enumerate() {
            for (w, sum) in row.into_iter().enumerate() {
                store(sums.add(r * pitch + j + w * V::LANES), sum);
            }
        }
    }
}
