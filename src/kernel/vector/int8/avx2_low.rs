//! The AVX2 micro-kernels for operands in which the products of any two neighbours along K add up to at most 16 bits:
//! cells of four bytes, in three instructions for four of the others. Operands quantized for processors without VNNI
//! are such: seven bits of A, or of B (`Product::is_low`).

use super::avx2_registers::{self, COLUMNS, CellStep};
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
    // SAFETY: passed on.
    unsafe { avx2_registers::tile::<LowStep, ROWS>(groups, a, b, terms, out) }
}

struct LowStep;

impl CellStep for LowStep {
    #[inline(always)]
    unsafe fn add(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1))) }
    }
}
