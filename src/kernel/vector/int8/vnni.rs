//! The AVX-512 VNNI micro-kernels, with int8 dot products.

use super::finish::{self, Rule, Stash};
use super::micro::{MicroKernelSet, loops, nothing};
use super::panel::{self, AHEAD, CellFormat, PackSource, Quad, pitch};
use super::product::Int8Piece;
use super::tile::{CellRows, MAX_COLUMNS, Panel, Terms, Tile, TileOutput};
use super::{dots, thin};
use std::arch::x86_64::*;
use std::ops::Range;

loops!(
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    Quad
);

const COLUMNS: usize = MAX_COLUMNS;
/// Tiles of few rows have several accumulators for each element, to hide the latency of their instructions.
pub static TILES: [Tile; 12] = [
    tile::<1, 4>,
    tile::<2, 4>,
    tile::<3, 2>,
    tile::<4, 2>,
    tile::<5, 1>,
    tile::<6, 1>,
    tile::<7, 1>,
    tile::<8, 1>,
    tile::<9, 1>,
    tile::<10, 1>,
    tile::<11, 1>,
    tile::<12, 1>,
];
const THIN: Option<thin::ThinKernels> =
    Some(thin::ThinKernels { columns: <VnniRegisters as thin::ThinLanes>::COLUMNS, run: run_thin });
const DOTS: Option<dots::DotsKernels> =
    Some(dots::DotsKernels { step: <VnniRegisters as dots::DotLanes>::STEP, rows: dots::MAX_ROWS, run: run_dots });

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn run_thin(piece: &Int8Piece<'_>, columns: Range<usize>) {
    // SAFETY: passed on.
    unsafe { thin::run::<VnniRegisters>(piece, columns) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn run_dots(piece: &Int8Piece<'_>, streams: Range<usize>) {
    // SAFETY: passed on.
    unsafe { dots::run::<VnniRegisters>(piece, streams) }
}

/// # Safety
/// As the portable one, on a processor with these instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn tile<const ROWS: usize, const PARTS: usize>(
    groups: usize,
    a: CellRows,
    b: Panel,
    terms: Option<Terms>,
    out: TileOutput,
) {
    let mut parts = [[[_mm512_setzero_si512(); 2]; ROWS]; PARTS];
    // SAFETY: as demanded of the caller.
    unsafe {
        if let Some(terms) = terms {
            let columns = terms.columns.cast::<__m512i>();
            let columns = [_mm512_loadu_si512(columns), _mm512_loadu_si512(columns.add(1))];
            for (row, sums) in parts[0].iter_mut().enumerate() {
                let row = _mm512_set1_epi32(*terms.rows.add(row));
                *sums = [_mm512_add_epi32(row, columns[0]), _mm512_add_epi32(row, columns[1])];
            }
        }
        let whole = groups / PARTS * PARTS;
        for group in (0..whole).step_by(PARTS) {
            for (part, sums) in parts.iter_mut().enumerate() {
                add_group(sums, group + part, a, b);
            }
        }
        for group in whole..groups {
            add_group(&mut parts[0], group, a, b);
        }
        let (first, others) = parts.split_at_mut(1);
        for (row, sums) in first[0].iter_mut().enumerate() {
            for (half, sum) in sums.iter_mut().enumerate() {
                for other in others.iter() {
                    *sum = _mm512_add_epi32(*sum, other[row][half]);
                }
                let at = out.data.add(row * out.stride).cast::<__m512i>().add(half);
                let before = if out.adds { _mm512_loadu_si512(at) } else { _mm512_setzero_si512() };
                _mm512_storeu_si512(at, _mm512_add_epi32(*sum, before));
            }
        }
    }
}

/// # Safety
/// As `tile`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn add_group<const ROWS: usize>(sums: &mut [[__m512i; 2]; ROWS], group: usize, a: CellRows, b: Panel) {
    // SAFETY: as demanded of the caller; a prefetch does not read memory.
    unsafe {
        let next = b.next.wrapping_add(group * b.step).cast();
        _mm_prefetch::<_MM_HINT_T1>(next);
        _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(64));
        let b = b.data.add(group * COLUMNS).cast::<__m512i>();
        let b = [_mm512_loadu_si512(b), _mm512_loadu_si512(b.add(1))];
        for (row, sums) in sums.iter_mut().enumerate() {
            let cell = a.data.add(row * a.stride).cast::<i32>().add(group).read_unaligned();
            let cell = _mm512_set1_epi32(cell);
            sums[0] = _mm512_dpbusd_epi32(sums[0], cell, b[0]);
            sums[1] = _mm512_dpbusd_epi32(sums[1], cell, b[1]);
        }
    }
}

/// As `panel::pack_rows`.
///
/// # Safety
/// The same.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn pack_a(source: &PackSource, groups: usize, lanes: usize, data: *mut u8, stride: usize) {
    // SAFETY: passed on; masked lanes are neither read nor written.
    unsafe {
        if !source.along {
            panel::pack_rows::<Quad>(source, groups, lanes, data, stride);
            return;
        }
        let flip = _mm512_set1_epi8(source.flip as i8);
        for lane in 0..lanes {
            let (from, to) = (source.data.add(lane * source.stride), data.add(lane * stride));
            let mut at = 0;
            while at + 64 <= source.depth {
                let bytes = _mm512_xor_si512(_mm512_loadu_si512(from.add(at).cast()), flip);
                _mm512_storeu_si512(to.add(at).cast(), bytes);
                at += 64;
            }
            while at < 4 * groups {
                let there = mask(source.depth.saturating_sub(at));
                let bytes = _mm512_maskz_loadu_epi8(there, from.wrapping_add(at).cast());
                let bytes = _mm512_maskz_mov_epi8(there, _mm512_xor_si512(bytes, flip));
                _mm512_mask_storeu_epi8(to.add(at).cast(), mask(4 * groups - at), bytes);
                at += 64;
            }
        }
    }
}

/// As `panel::pack`, for B.
///
/// # Safety
/// The same.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub unsafe fn pack_b(source: &PackSource, groups: usize, lanes: usize, panels: *mut u32, sums: *mut i32) {
    // SAFETY: passed on.
    unsafe {
        if !sums.is_null() {
            std::slice::from_raw_parts_mut(sums, lanes.next_multiple_of(COLUMNS)).fill(0);
        }
        if source.along {
            for first in (0..lanes).step_by(16) {
                pack_along(source, groups, lanes, first, panels, sums);
            }
            if !lanes.next_multiple_of(16).is_multiple_of(COLUMNS) {
                pack_along(source, groups, lanes, lanes.next_multiple_of(16), panels, sums);
            }
        } else {
            for group in 0..groups {
                pack_group(source, group, groups, lanes, panels, sums);
            }
        }
    }
}

/// The mask of existing bytes in a register.
#[inline(always)]
fn mask(bytes: usize) -> u64 {
    if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 }
}

/// A group of all lanes, which are adjacent in memory.
///
/// # Safety
/// As `pack_b`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn pack_group(source: &PackSource, group: usize, groups: usize, lanes: usize, panels: *mut u32, sums: *mut i32) {
    let depth = source.depth.saturating_sub(4 * group).min(4);
    // Four columns, permuted so that the interleaving within quarters of a register restores their order.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let ones = _mm512_set1_epi8(1);
    // SAFETY: as demanded of the caller; masked lanes are not read.
    unsafe {
        for first in (0..lanes).step_by(64) {
            let mut rows = [_mm512_setzero_si512(); 4];
            let from = source.data.wrapping_add(4 * group * source.stride + first);
            if depth == 4 && lanes - first >= 64 {
                if source.far {
                    for i in AHEAD..AHEAD + 4 {
                        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(i * source.stride).cast());
                    }
                }
                for (i, row) in rows.iter_mut().enumerate() {
                    *row = _mm512_loadu_si512(from.add(i * source.stride).cast());
                }
            } else {
                for (i, row) in rows.iter_mut().enumerate().take(depth) {
                    *row = _mm512_maskz_loadu_epi8(mask(lanes - first), from.add(i * source.stride).cast());
                }
            }
            let [a, b, c, d] = rows.map(|row| _mm512_permutexvar_epi32(order, row));
            let (ab, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
            let (cd, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
            let cells = [
                _mm512_unpacklo_epi16(ab, cd),
                _mm512_unpackhi_epi16(ab, cd),
                _mm512_unpacklo_epi16(ab_high, cd_high),
                _mm512_unpackhi_epi16(ab_high, cd_high),
            ];
            for half in 0..if lanes - first > COLUMNS { 2 } else { 1 } {
                let panel = panels.add((first / COLUMNS + half) * pitch(groups, COLUMNS) + group * COLUMNS);
                for i in 0..2 {
                    let cells = cells[2 * half + i];
                    _mm512_storeu_si512(panel.add(16 * i).cast(), cells);
                    if !sums.is_null() {
                        let sums = sums.add(first + half * COLUMNS + 16 * i).cast();
                        _mm512_storeu_si512(sums, _mm512_dpbusd_epi32(_mm512_loadu_si512(sums), ones, cells));
                    }
                }
            }
        }
    }
}

/// All groups of the sixteen lanes from `first` on, each along K in memory.
///
/// # Safety
/// As `pack_b`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn pack_along(source: &PackSource, groups: usize, lanes: usize, first: usize, panels: *mut u32, sums: *mut i32) {
    let ones = _mm512_set1_epi8(1);
    // Several, to hide the latency of an addition.
    let mut parts = [_mm512_setzero_si512(); 4];
    // SAFETY: as demanded of the caller; masked lanes and prefetched addresses are not read.
    unsafe {
        let panel = panels.add(first / COLUMNS * pitch(groups, COLUMNS) + first % COLUMNS);
        for group in (0..groups).step_by(16) {
            let depth = source.depth.saturating_sub(4 * group);
            let from = |lane: usize| source.data.wrapping_add((first + lane) * source.stride + 4 * group);
            // Prefetches the next lanes.
            for i in 16..32 {
                _mm_prefetch::<_MM_HINT_T1>(from(i).cast());
            }
            let mut rows = [_mm512_setzero_si512(); 16];
            let cells = if depth >= 64 && lanes >= first + 16 {
                let mut at = from(0);
                for row in &mut rows {
                    *row = _mm512_loadu_si512(at.cast());
                    at = at.wrapping_add(source.stride);
                }
                turned(rows)
            } else {
                for (i, row) in rows.iter_mut().enumerate().take(lanes.saturating_sub(first)) {
                    *row = _mm512_maskz_loadu_epi8(mask(depth), from(i).cast());
                }
                turned(rows)
            };
            let to = panel.add(group * COLUMNS);
            if groups - group >= 16 {
                for (i, cells) in cells.iter().enumerate() {
                    _mm512_storeu_si512(to.add(i * COLUMNS).cast(), *cells);
                }
            } else {
                for (i, cells) in cells.iter().enumerate().take(groups - group) {
                    _mm512_storeu_si512(to.add(i * COLUMNS).cast(), *cells);
                }
            }
            if !sums.is_null() {
                // Zeros beyond the depth.
                for (i, cells) in cells.into_iter().enumerate() {
                    parts[i % 4] = _mm512_dpbusd_epi32(parts[i % 4], ones, cells);
                }
            }
        }
        if !sums.is_null() {
            let [a, b, c, d] = parts;
            let sum = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
            _mm512_storeu_si512(sums.add(first).cast(), sum);
        }
    }
}

/// Transposes rows and columns of cells.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn turned(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut pairs = rows;
    for i in 0..8 {
        pairs[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    let mut fours = rows;
    for i in 0..4 {
        fours[4 * i] = _mm512_unpacklo_epi64(pairs[4 * i], pairs[4 * i + 2]);
        fours[4 * i + 1] = _mm512_unpackhi_epi64(pairs[4 * i], pairs[4 * i + 2]);
        fours[4 * i + 2] = _mm512_unpacklo_epi64(pairs[4 * i + 1], pairs[4 * i + 3]);
        fours[4 * i + 3] = _mm512_unpackhi_epi64(pairs[4 * i + 1], pairs[4 * i + 3]);
    }
    let mut turned = rows;
    for i in 0..4 {
        let [a, b, c, d] = [fours[i], fours[4 + i], fours[8 + i], fours[12 + i]];
        let (ab, cd) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0x88>(c, d));
        let (ab_odd, cd_odd) = (_mm512_shuffle_i32x4::<0xdd>(a, b), _mm512_shuffle_i32x4::<0xdd>(c, d));
        turned[i] = _mm512_shuffle_i32x4::<0x88>(ab, cd);
        turned[4 + i] = _mm512_shuffle_i32x4::<0x88>(ab_odd, cd_odd);
        turned[8 + i] = _mm512_shuffle_i32x4::<0xdd>(ab, cd);
        turned[12 + i] = _mm512_shuffle_i32x4::<0xdd>(ab_odd, cd_odd);
    }
    turned
}

/// The registers of the algorithms for few rows or columns.
pub struct VnniRegisters;

impl thin::ThinLanes for VnniRegisters {
    type Register = __m512i;
    type CellFormat = Quad;
    const COLUMNS: usize = 64;
    const ROWS: usize = 5;

    #[inline(always)]
    unsafe fn load(sums: *const i32) -> __m512i {
        // SAFETY: as demanded of the caller.
        unsafe { _mm512_loadu_si512(sums.cast()) }
    }

    #[inline(always)]
    unsafe fn store(sums: *mut i32, register: __m512i) {
        // SAFETY: as demanded of the caller.
        unsafe { _mm512_storeu_si512(sums.cast(), register) }
    }

    #[inline(always)]
    unsafe fn weave(data: *const u8, stride: usize) -> [__m512i; 4] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let a = _mm512_loadu_si512(data.cast());
            let b = _mm512_loadu_si512(data.add(stride).cast());
            let c = _mm512_loadu_si512(data.add(2 * stride).cast());
            let d = _mm512_loadu_si512(data.add(3 * stride).cast());
            let (ab, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
            let (cd, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
            [
                _mm512_unpacklo_epi16(ab, cd),
                _mm512_unpackhi_epi16(ab, cd),
                _mm512_unpacklo_epi16(ab_high, cd_high),
                _mm512_unpackhi_epi16(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    unsafe fn step(sum: __m512i, cell: i32, b: __m512i) -> __m512i {
        // SAFETY: the processor has AVX-512 VNNI.
        unsafe { _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(cell), b) }
    }

    /// Quarters of registers were interleaved separately.
    #[inline(always)]
    unsafe fn in_order([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        // SAFETY: the processor has AVX-512.
        unsafe {
            let (ab, cd) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d));
            let (ab_high, cd_high) = (_mm512_shuffle_i32x4::<0xee>(a, b), _mm512_shuffle_i32x4::<0xee>(c, d));
            [
                _mm512_shuffle_i32x4::<0x88>(ab, cd),
                _mm512_shuffle_i32x4::<0xdd>(ab, cd),
                _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high),
                _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high),
            ]
        }
    }
}

impl dots::DotLanes for VnniRegisters {
    type Register = __m512i;
    type CellFormat = Quad;
    const STEP: usize = 64;
    const SUMS: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the processor has AVX-512.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn held(data: *const u8) -> __m512i {
        // SAFETY: as demanded of the caller.
        unsafe { _mm512_loadu_si512(data.cast()) }
    }

    #[inline(always)]
    unsafe fn stream<const SIGNED: bool>(data: *const u8, flip: u8) -> __m512i {
        // SAFETY: as demanded of the caller.
        unsafe {
            let bytes = _mm512_loadu_si512(data.cast());
            if SIGNED { bytes } else { _mm512_xor_si512(bytes, _mm512_set1_epi8(flip as i8)) }
        }
    }

    #[inline(always)]
    unsafe fn rest<const SIGNED: bool>(data: *const u8, count: usize, flip: u8) -> __m512i {
        // SAFETY: as demanded of the caller; masked lanes are not read.
        unsafe {
            let bytes = _mm512_maskz_loadu_epi8(mask(count), data.cast());
            if SIGNED { bytes } else { _mm512_xor_si512(bytes, _mm512_set1_epi8(flip as i8)) }
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the processor has AVX-512.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn step<const SIGNED: bool>(sum: __m512i, held: __m512i, stream: __m512i) -> __m512i {
        let (a, b) = if SIGNED { (held, stream) } else { (stream, held) };
        // SAFETY: the processor has AVX-512 VNNI.
        unsafe { _mm512_dpbusd_epi32(sum, a, b) }
    }

    #[inline(always)]
    unsafe fn four([a, b, c, d]: [__m512i; 4]) -> __m512i {
        // SAFETY: the processor has AVX-512.
        unsafe {
            let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
        }
    }

    #[inline(always)]
    unsafe fn add_up(fours: &[__m512i], out: *mut i32) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let (low, high) = (lanes(fours[0], fours[1]), lanes(fours[2], fours[3]));
            _mm512_storeu_si512(out.cast(), lanes(low, high));
        }
    }
}

/// The sums of pairs of quarters, of the first register and then of the second.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn lanes(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: as demanded of the caller.
    unsafe { _mm512_add_epi32(_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b)) }
}
