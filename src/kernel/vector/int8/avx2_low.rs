//! The AVX2 micro-kernels for operands in which the products of any two neighbours along K add up to at most 16 bits:
//! cells of four bytes, in three instructions for four of the others. Operands quantized for processors without VNNI
//! are such: seven bits of A, or of B (`Product::is_low`).

use super::finish::{self, Rule, Stash};
use super::micro::{MicroKernelSet, loops, nothing};
use super::panel::{self, CellFormat, PackSource, Quad};
use super::tile::{CellRows, Panel, Terms, Tile, TileOutput};
use super::{dots, thin};
use std::arch::x86_64::*;

loops!(
    #[target_feature(enable = "avx2")]
    Quad
);

const COLUMNS: usize = 16;
static TILES: [Tile; 6] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>];
const THIN: Option<thin::ThinKernels> = None;
const DOTS: Option<dots::DotsKernels> = None;

#[target_feature(enable = "avx2")]
unsafe fn pack_a(source: &PackSource, groups: usize, lanes: usize, data: *mut u8, stride: usize) {
    // SAFETY: passed on.
    unsafe { panel::pack_rows::<Quad>(source, groups, lanes, data, stride) }
}

#[target_feature(enable = "avx2")]
unsafe fn pack_b(source: &PackSource, groups: usize, lanes: usize, panels: *mut u32, sums: *mut i32) {
    // SAFETY: passed on.
    unsafe { panel::pack::<Quad>(source, groups, lanes, panels, COLUMNS, sums) }
}

/// # Safety
/// As the portable one, on a processor with AVX2, for operands that are low.
#[target_feature(enable = "avx2")]
unsafe fn tile<const ROWS: usize>(groups: usize, a: CellRows, b: Panel, terms: Option<Terms>, out: TileOutput) {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
    // SAFETY: as demanded of the caller.
    unsafe {
        if let Some(terms) = terms {
            let columns = terms.columns.cast::<__m256i>();
            let columns = [_mm256_loadu_si256(columns), _mm256_loadu_si256(columns.add(1))];
            for (row, sums) in sums.iter_mut().enumerate() {
                let row = _mm256_set1_epi32(*terms.rows.add(row));
                *sums = columns.map(|column| _mm256_add_epi32(row, column));
            }
        }
        for group in 0..groups {
            _mm_prefetch::<_MM_HINT_T1>(b.next.wrapping_add(group * b.step).cast());
            let b = b.data.add(group * COLUMNS).cast::<__m256i>();
            let b = [_mm256_loadu_si256(b), _mm256_loadu_si256(b.add(1))];
            for (row, sums) in sums.iter_mut().enumerate() {
                let cell = a.data.add(row * a.stride).cast::<i32>().add(group).read_unaligned();
                let cell = _mm256_set1_epi32(cell);
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(_mm256_maddubs_epi16(cell, b), ones));
                }
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
