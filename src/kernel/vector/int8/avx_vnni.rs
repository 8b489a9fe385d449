//! The AVX-VNNI micro-kernels: int8 dot products in AVX2's registers, for processors without AVX-512.

use super::avx2_registers::{self, COLUMNS, CellStep};
use super::finish::{self, Rule, Stash};
use super::micro::{MicroKernelSet, loops, nothing};
use super::panel::{self, CellFormat, PackSource, Quad};
use super::product::Int8Piece;
use super::tile::{CellRows, Panel, Terms, Tile, TileOutput};
use super::{dots, thin};
use std::arch::x86_64::*;
use std::ops::Range;

loops!(
    #[target_feature(enable = "avx2,avxvnni")]
    Quad
);

static TILES: [Tile; 6] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>];
const THIN: Option<thin::ThinKernels> =
    Some(thin::ThinKernels { columns: <AvxVnniRegisters as thin::ThinLanes>::COLUMNS, run: run_thin });
const DOTS: Option<dots::DotsKernels> =
    Some(dots::DotsKernels { step: <AvxVnniRegisters as dots::DotLanes>::STEP, rows: 12, run: run_dots });

#[target_feature(enable = "avx2,avxvnni")]
unsafe fn pack_a(source: &PackSource, groups: usize, lanes: usize, data: *mut u8, stride: usize) {
    // SAFETY: passed on.
    unsafe { panel::pack_rows::<Quad>(source, groups, lanes, data, stride) }
}

#[target_feature(enable = "avx2,avxvnni")]
unsafe fn pack_b(source: &PackSource, groups: usize, lanes: usize, panels: *mut u32, sums: *mut i32) {
    // SAFETY: passed on.
    unsafe { panel::pack::<Quad>(source, groups, lanes, panels, COLUMNS, sums) }
}

#[target_feature(enable = "avx2,avxvnni")]
unsafe fn run_thin(piece: &Int8Piece<'_>, columns: Range<usize>) {
    // SAFETY: passed on.
    unsafe { thin::run::<AvxVnniRegisters>(piece, columns) }
}

#[target_feature(enable = "avx2,avxvnni")]
unsafe fn run_dots(piece: &Int8Piece<'_>, streams: Range<usize>) {
    // SAFETY: passed on.
    unsafe { dots::run::<AvxVnniRegisters>(piece, streams) }
}

/// # Safety
/// As the portable one, on a processor with AVX-VNNI.
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn tile<const ROWS: usize>(groups: usize, a: CellRows, b: Panel, terms: Option<Terms>, out: TileOutput) {
    // SAFETY: passed on.
    unsafe { avx2_registers::tile::<AvxVnniRegisters, ROWS>(groups, a, b, terms, out) }
}

/// Registers of 32 bytes, or of eight sums.
struct AvxVnniRegisters;

impl CellStep for AvxVnniRegisters {
    #[inline(always)]
    unsafe fn add(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the processor has AVX-VNNI.
        unsafe { _mm256_dpbusd_avx_epi32(sums, a, b) }
    }
}

impl thin::ThinLanes for AvxVnniRegisters {
    type Register = __m256i;
    type CellFormat = Quad;
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
            let [a, b, c, d] = std::array::from_fn(|row| _mm256_loadu_si256(data.add(row * stride).cast()));
            let (ab, ab_high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
            let (cd, cd_high) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
            [
                _mm256_unpacklo_epi16(ab, cd),
                _mm256_unpackhi_epi16(ab, cd),
                _mm256_unpacklo_epi16(ab_high, cd_high),
                _mm256_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    unsafe fn step(sum: __m256i, cell: i32, b: __m256i) -> __m256i {
        // SAFETY: the processor has AVX-VNNI.
        unsafe { _mm256_dpbusd_avx_epi32(sum, _mm256_set1_epi32(cell), b) }
    }

    /// Halves of registers were interleaved separately.
    #[inline(always)]
    unsafe fn in_order([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        // SAFETY: the processor has AVX2.
        unsafe {
            [
                _mm256_permute2x128_si256::<0x20>(a, b),
                _mm256_permute2x128_si256::<0x20>(c, d),
                _mm256_permute2x128_si256::<0x31>(a, b),
                _mm256_permute2x128_si256::<0x31>(c, d),
            ]
        }
    }
}

impl dots::DotLanes for AvxVnniRegisters {
    type Register = __m256i;
    type CellFormat = Quad;
    const STEP: usize = 32;
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
            let bytes = _mm256_loadu_si256(data.cast());
            if SIGNED { bytes } else { _mm256_xor_si256(bytes, _mm256_set1_epi8(flip as i8)) }
        }
    }

    #[inline(always)]
    unsafe fn rest<const SIGNED: bool>(data: *const u8, count: usize, flip: u8) -> __m256i {
        let mut bytes = [0u8; 32];
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
        let (a, b) = if SIGNED { (held, stream) } else { (stream, held) };
        // SAFETY: the processor has AVX-VNNI.
        unsafe { _mm256_dpbusd_avx_epi32(sum, a, b) }
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
