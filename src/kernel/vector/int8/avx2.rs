//! The AVX2 micro-kernels: bytes are widened to sixteen bits, and a cell has two of them.

use super::avx2_registers::{self, COLUMNS, CellStep};
use super::finish::{self, Rule, Stash};
use super::micro::{MicroKernelSet, loops, nothing};
use super::panel::{self, CellFormat, PackSource, PairCell};
use super::product::Int8Piece;
use super::tile::{CellRows, Panel, Terms, Tile, TileOutput};
use super::{dots, thin};
use std::arch::x86_64::*;
use std::ops::Range;

loops!(
    #[target_feature(enable = "avx2")]
    PairCell
);

static TILES: [Tile; 6] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>];
const THIN: Option<thin::ThinKernels> =
    Some(thin::ThinKernels { columns: <Avx2Registers as thin::ThinLanes>::COLUMNS, run: run_thin });
const DOTS: Option<dots::DotsKernels> = Some(dots::DotsKernels {
    step: <Avx2Registers as dots::DotLanes>::STEP,
    rows: dots::MAX_ROWS_SHORT,
    run: run_dots,
});

#[target_feature(enable = "avx2")]
unsafe fn pack_a(source: &PackSource, groups: usize, lanes: usize, data: *mut u8, stride: usize) {
    // SAFETY: passed on.
    unsafe { panel::pack_rows::<PairCell>(source, groups, lanes, data, stride) }
}

#[target_feature(enable = "avx2")]
unsafe fn pack_b(source: &PackSource, groups: usize, lanes: usize, panels: *mut u32, sums: *mut i32) {
    // SAFETY: passed on.
    unsafe { panel::pack::<PairCell>(source, groups, lanes, panels, COLUMNS, sums) }
}

#[target_feature(enable = "avx2")]
unsafe fn run_thin(piece: &Int8Piece<'_>, columns: Range<usize>) {
    // SAFETY: passed on.
    unsafe { thin::run::<Avx2Registers>(piece, columns) }
}

#[target_feature(enable = "avx2")]
unsafe fn run_dots(piece: &Int8Piece<'_>, streams: Range<usize>) {
    // SAFETY: passed on.
    unsafe { dots::run::<Avx2Registers>(piece, streams) }
}

/// # Safety
/// As the portable one, on a processor with AVX2.
#[target_feature(enable = "avx2")]
unsafe fn tile<const ROWS: usize>(groups: usize, a: CellRows, b: Panel, terms: Option<Terms>, out: TileOutput) {
    // SAFETY: passed on.
    unsafe { avx2_registers::tile::<Avx2Registers, ROWS>(groups, a, b, terms, out) }
}

/// The registers of the algorithms for few rows or columns.
struct Avx2Registers;

impl CellStep for Avx2Registers {
    #[inline(always)]
    unsafe fn add(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)) }
    }
}

impl thin::ThinLanes for Avx2Registers {
    type Register = __m256i;
    type CellFormat = PairCell;
    const COLUMNS: usize = 32;
    const ROWS: usize = 2;

    #[inline(always)]
    unsafe fn load(sums: *const i32) -> __m256i {
        // SAFETY: as demanded of the caller.
        unsafe { _mm256_loadu_si256(sums.cast()) }
    }

    #[inline(always)]
    unsafe fn store(sums: *mut i32, register: __m256i) {
        // SAFETY: as demanded of the caller.
        unsafe { _mm256_storeu_si256(sums.cast(), register) }
    }

    #[inline(always)]
    unsafe fn weave(data: *const u8, stride: usize) -> [__m256i; 4] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let ([a, b], [c, d]) = (pairs(data, stride), pairs(data.add(16), stride));
            [a, b, c, d]
        }
    }

    #[inline(always)]
    unsafe fn step(sum: __m256i, cell: i32, b: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { <Self as CellStep>::add(sum, _mm256_set1_epi32(cell), b) }
    }

    #[inline(always)]
    unsafe fn in_order(registers: [__m256i; 4]) -> [__m256i; 4] {
        registers
    }
}

/// Sixteen cells of two rows.
///
/// # Safety
/// The processor has AVX2; the rows have so many readable bytes.
#[inline(always)]
unsafe fn pairs(data: *const u8, stride: usize) -> [__m256i; 2] {
    // SAFETY: as demanded of the caller.
    unsafe {
        let (a, b) = (_mm_loadu_si128(data.cast()), _mm_loadu_si128(data.add(stride).cast()));
        [_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)), _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b))]
    }
}

impl dots::DotLanes for Avx2Registers {
    type Register = __m256i;
    type CellFormat = PairCell;
    const STEP: usize = 16;
    const SUMS: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn held(data: *const u8) -> __m256i {
        // SAFETY: as demanded of the caller.
        unsafe { _mm256_loadu_si256(data.cast()) }
    }

    #[inline(always)]
    unsafe fn stream<const SIGNED: bool>(data: *const u8, flip: u8) -> __m256i {
        // SAFETY: as demanded of the caller.
        unsafe {
            let bytes = _mm_xor_si128(_mm_loadu_si128(data.cast()), _mm_set1_epi8(flip as i8));
            if SIGNED { _mm256_cvtepi8_epi16(bytes) } else { _mm256_cvtepu8_epi16(bytes) }
        }
    }

    #[inline(always)]
    unsafe fn rest<const SIGNED: bool>(data: *const u8, count: usize, flip: u8) -> __m256i {
        let mut bytes = [0u8; 16];
        // SAFETY: as demanded of the caller.
        unsafe {
            data.copy_to_nonoverlapping(bytes.as_mut_ptr(), count);
            <Self as dots::DotLanes>::stream::<SIGNED>(bytes.as_ptr(), flip)
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn step<const SIGNED: bool>(sum: __m256i, held: __m256i, stream: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { <Self as CellStep>::add(sum, held, stream) }
    }

    #[inline(always)]
    unsafe fn four(registers: [__m256i; 4]) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { avx2_registers::four(registers) }
    }

    #[inline(always)]
    unsafe fn add_up(fours: &[__m256i], out: *mut i32) {
        // SAFETY: as demanded of the caller.
        unsafe { avx2_registers::add_up(fours, out) }
    }
}
