//! Tiles in AVX2's registers whose cells are four bytes (`avx2_low`, `avx_vnni`).

use super::tile::{CellRows, Panel, Terms, TileOutput};
use std::arch::x86_64::*;

pub const COLUMNS: usize = 16;

/// How the products of cells are added.
pub trait QuadStep {
    /// Adds to each sum the products of four unsigned bytes with four signed ones.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn add(sums: __m256i, a: __m256i, b: __m256i) -> __m256i;
}

/// # Safety
/// As the portable one, on a processor with AVX2 and the instructions of the step.
#[inline(always)]
pub unsafe fn tile<S: QuadStep, const ROWS: usize>(
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
