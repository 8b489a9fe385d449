//! The common parts of the micro-kernels in AVX2's registers (`avx2`, `avx2_low`, `avx_vnni`): tiles, and sums of dot
//! products.

use super::tile::{CellRows, Panel, Terms, TileOutput};
use std::arch::x86_64::*;

pub const COLUMNS: usize = 16;

/// How the products of cells are added.
pub trait CellStep {
    /// Adds to each sum the products of the numbers of two cells.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn add(sums: __m256i, a: __m256i, b: __m256i) -> __m256i;
}

/// # Safety
/// As the portable one, on a processor with AVX2 and the instructions of the step.
#[inline(always)]
pub unsafe fn tile<S: CellStep, const ROWS: usize>(
    groups: usize,
    a: CellRows,
    b: Panel,
    terms: Option<Terms>,
    out: TileOutput,
) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
        if let Some(terms) = terms {
            let columns = terms.columns.cast::<__m256i>();
            let columns = [_mm256_loadu_si256(columns), _mm256_loadu_si256(columns.add(1))];
            for (row, sums) in sums.iter_mut().enumerate() {
                let row = _mm256_set1_epi32(*terms.rows.add(row));
                *sums = [_mm256_add_epi32(row, columns[0]), _mm256_add_epi32(row, columns[1])];
            }
        }
        for group in 0..groups {
            _mm_prefetch::<_MM_HINT_T1>(b.next.wrapping_add(group * b.step).cast());
            let b = b.data.add(group * COLUMNS).cast::<__m256i>();
            let b = [_mm256_loadu_si256(b), _mm256_loadu_si256(b.add(1))];
            for (row, sums) in sums.iter_mut().enumerate() {
                let cell = a.data.add(row * a.stride).cast::<i32>().add(group).read_unaligned();
                let cell = _mm256_set1_epi32(cell);
                *sums = [S::add(sums[0], cell, b[0]), S::add(sums[1], cell, b[1])];
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            for (half, sum) in sums.into_iter().enumerate() {
                let at = out.data.add(row * out.stride).cast::<__m256i>().add(half);
                let before = if out.adds { _mm256_loadu_si256(at) } else { _mm256_setzero_si256() };
                _mm256_storeu_si256(at, _mm256_add_epi32(sum, before));
            }
        }
    }
}

/// The sums of four registers' halves: those of the first halves, then of the second ones.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
pub unsafe fn four([a, b, c, d]: [__m256i; 4]) -> __m256i {
    // SAFETY: as demanded of the caller.
    unsafe {
        let ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
        _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd))
    }
}

/// Stores the sums of eight registers, of which `four` has made two.
///
/// # Safety
/// As of `four`; eight numbers are writable.
#[inline(always)]
pub unsafe fn add_up(fours: &[__m256i], out: *mut i32) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let (a, b) = (fours[0], fours[1]);
        let sums = _mm256_add_epi32(_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b));
        _mm256_storeu_si256(out.cast(), sums);
    }
}
