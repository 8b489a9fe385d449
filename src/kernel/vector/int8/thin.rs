//! Products of bytes that pack nothing: a few rows of A, or a few columns of B, with VNNI.
//!
//! - B is [K, N]: sixteen of its rows at a time are woven into cells in registers, for 64 columns, and multiplied with the cells of
//!   all rows of A there. The sums lie in the first-level cache meanwhile. Long runs of far apart rows are read, once.
//! - B is [N, K]: both operands lie along K, and an element is a dot product; squares of four by four of them share what is
//!   read.
//!
//! Sums are exact modulo 2^32, as those of the tiles, and the caller adds the zero points' terms. For the second way A is read where it
//! is; for the first one its rows are copied, so that they are whole cells.

use super::panel::Source;
use crate::kernel::vector::isa::Isa;

/// Most rows of A at once.
pub const ROWS: usize = 8;
/// Most sums at once, and room for them.
pub const SUMS: usize = 8192;
/// Columns are taken so many at a time; the sums' rows are multiples of it long.
pub const WIDE: usize = 64;
/// Neighbours along K that are read together; copies of rows are multiples of it long, filled up with zeros.
pub const DEEP: usize = 64;

/// Whether the level has a way.
pub fn is_there(isa: Isa) -> bool {
    isa == Isa::Avx512Vnni
}

/// The sum of a row of A as it is multiplied.
pub fn sum(row: &[u8], flip: u8) -> i32 {
    row.iter().fold(0, |sum, byte| sum + i32::from(byte ^ flip))
}

/// Copies rows of A, whose neighbours along K are neighbours in memory, `pitch` apart, and behind them, if it is asked for, a row of
/// ones, whose products are the sums of B's columns.
///
/// # Safety
/// The source has `rows` rows of its depth; the copies have room for one row more than that, `pitch` bytes each, a multiple of DEEP
/// and no less than the depth.
pub unsafe fn copy_rows(a: &Source, rows: usize, ones: bool, copies: *mut u8, pitch: usize) {
    for row in 0..rows + usize::from(ones) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let copy = std::slice::from_raw_parts_mut(copies.add(row * pitch), pitch);
            copy[a.depth..].fill(0);
            let copy = &mut copy[..a.depth];
            if row == rows {
                copy.fill(1);
            } else if a.depth > 0 {
                let from = std::slice::from_raw_parts(a.data.add(row * a.stride), a.depth);
                copy.iter_mut().zip(from).for_each(|(to, from)| *to = from ^ a.flip);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{across, along};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::panel::Source;
    use super::WIDE;
    use std::arch::x86_64::*;

    /// Registers of a row's WIDE sums.
    const REGISTERS: usize = WIDE / 16;
    /// Cells along K that are woven together.
    const CELLS: usize = 4;

    /// Sums of `rows` rows of copies with `columns` columns of a B that is [K, N]; `stride` sums from row to row.
    ///
    /// # Safety
    /// The copies are those of `copy_rows` for the depth of B; B has `columns` columns, and its depth is not 0. There are `rows` rows of
    /// sums, whose stride is a multiple of WIDE and no less than the columns. The processor has AVX-512 with BW and VNNI.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub unsafe fn across(
        (copies, pitch): (*const u8, usize),
        rows: usize,
        b: &Source,
        columns: usize,
        sums: *mut i32,
        stride: usize,
    ) {
        for k in (0..b.depth).step_by(4 * CELLS) {
            for j in (0..columns).step_by(WIDE) {
                let mask = if columns - j >= WIDE { u64::MAX } else { (1u64 << (columns - j)) - 1 };
                // SAFETY: as demanded of the caller. Behind the last row of B the last one is read again: the copies have zeros there.
                unsafe {
                    let mut woven = [[_mm512_setzero_si512(); REGISTERS]; CELLS];
                    for (cell, woven) in woven.iter_mut().enumerate() {
                        let row = |i: usize| {
                            let row = (k + 4 * cell + i).min(b.depth - 1);
                            _mm512_maskz_loadu_epi8(mask, b.data.add(row * b.stride + j).cast())
                        };
                        *woven = weave([row(0), row(1), row(2), row(3)]);
                    }
                    for row in 0..rows {
                        let cells = copies.add(row * pitch + k).cast::<i32>();
                        let place = sums.add(row * stride + j);
                        let mut all = [_mm512_setzero_si512(); REGISTERS];
                        if k > 0 {
                            for (i, sum) in all.iter_mut().enumerate() {
                                *sum = _mm512_loadu_si512(place.add(16 * i).cast());
                            }
                        }
                        for (cell, woven) in woven.iter().enumerate() {
                            let of_a = _mm512_set1_epi32(cells.add(cell).read_unaligned());
                            for (sum, &of_b) in all.iter_mut().zip(woven) {
                                *sum = _mm512_dpbusd_epi32(*sum, of_a, of_b);
                            }
                        }
                        for (i, sum) in all.into_iter().enumerate() {
                            _mm512_storeu_si512(place.add(16 * i).cast(), sum);
                        }
                    }
                }
            }
        }
        for row in 0..rows {
            for j in (0..columns).step_by(WIDE) {
                // SAFETY: as above.
                unsafe { in_order(sums.add(row * stride + j)) };
            }
        }
    }

    /// Cells of four rows: lane l of register i has those of columns 16 l + 4 i to 16 l + 4 i + 3.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn weave([a, b, c, d]: [__m512i; 4]) -> [__m512i; REGISTERS] {
        let (ab, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
        let (cd, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
        [
            _mm512_unpacklo_epi16(ab, cd),
            _mm512_unpackhi_epi16(ab, cd),
            _mm512_unpacklo_epi16(ab_high, cd_high),
            _mm512_unpackhi_epi16(ab_high, cd_high),
        ]
    }

    /// Puts WIDE sums from the order of `weave` into that of the columns: lane l of register i goes to lane i of register l.
    ///
    /// # Safety
    /// There are so many sums.
    #[target_feature(enable = "avx512f")]
    unsafe fn in_order(sums: *mut i32) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let [a, b, c, d]: [__m512i; 4] = std::array::from_fn(|i| _mm512_loadu_si512(sums.add(16 * i).cast()));
            let (ab, ab_high) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b));
            let (cd, cd_high) = (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xee>(c, d));
            _mm512_storeu_si512(sums.cast(), _mm512_shuffle_i32x4::<0x88>(ab, cd));
            _mm512_storeu_si512(sums.add(16).cast(), _mm512_shuffle_i32x4::<0xdd>(ab, cd));
            _mm512_storeu_si512(sums.add(32).cast(), _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high));
            _mm512_storeu_si512(sums.add(48).cast(), _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high));
        }
    }

    /// Rows and columns of a square of dot products.
    const SIDE: usize = 4;

    /// Sums of `rows` rows with `columns` rows of a B that is [N, K]; `stride` sums from row to row. If `ones` is not null, it gets the
    /// sum of each of B's rows.
    ///
    /// # Safety
    /// The operands have so many rows, of the same depth, and the sums so many elements. The processor has AVX-512 with BW and VNNI.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub unsafe fn along(
        a: &Source,
        rows: usize,
        b: &Source,
        columns: usize,
        sums: *mut i32,
        stride: usize,
        ones: *mut i32,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            for j in (0..columns).step_by(SIDE) {
                let wide = SIDE.min(columns - j);
                let b = Source { data: b.data.add(j * b.stride), ..*b };
                if !ones.is_null() {
                    let [sum] = square::<1>(None, &b, wide);
                    store(sum, ones.add(j), wide);
                }
                let mut i = 0;
                while i < rows {
                    let rows_of = |i: usize| Some(Source { data: a.data.add(i * a.stride), ..*a });
                    let place = |r: usize| sums.add((i + r) * stride + j);
                    if rows - i >= SIDE {
                        let sums = square::<SIDE>(rows_of(i), &b, wide);
                        sums.into_iter().enumerate().for_each(|(r, sum)| store(sum, place(r), wide));
                        i += SIDE;
                    } else {
                        let [sum] = square::<1>(rows_of(i), &b, wide);
                        store(sum, place(0), wide);
                        i += 1;
                    }
                }
            }
        }
    }

    /// # Safety
    /// There is room for `count` sums, 1 to SIDE.
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store(sums: __m128i, to: *mut i32, count: usize) {
        let mut all = [0i32; SIDE];
        // SAFETY: the array has room for the register, and the caller for `count` of its lanes.
        unsafe {
            _mm_storeu_si128(all.as_mut_ptr().cast(), sums);
            to.copy_from_nonoverlapping(all.as_ptr(), count);
        }
    }

    /// Dot products of R rows of A, or of a row of ones, with `wide` rows of B, a register of SIDE for each row.
    ///
    /// # Safety
    /// As `along`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn square<const R: usize>(a: Option<Source>, b: &Source, wide: usize) -> [__m128i; R] {
        let mut sums = [[_mm512_setzero_si512(); SIDE]; R];
        let flip = _mm512_set1_epi8(a.as_ref().map_or(0, |a| a.flip as i8));
        let (depth, b_data, b_stride) = (b.depth, b.data, b.stride);
        for k in (0..depth).step_by(64) {
            let mask = if depth - k >= 64 { u64::MAX } else { (1u64 << (depth - k)) - 1 };
            // SAFETY: as demanded of the caller; lanes behind the depth are not read, and zero in B.
            unsafe {
                let of_b: [__m512i; SIDE] = std::array::from_fn(|c| {
                    _mm512_maskz_loadu_epi8(mask, b_data.add(c.min(wide - 1) * b_stride + k).cast())
                });
                for (r, sums) in sums.iter_mut().enumerate() {
                    let of_a = match &a {
                        Some(a) => {
                            let of_a = _mm512_maskz_loadu_epi8(mask, a.data.add(r * a.stride + k).cast());
                            _mm512_xor_si512(of_a, flip)
                        }
                        None => _mm512_set1_epi8(1),
                    };
                    for (sum, of_b) in sums.iter_mut().zip(of_b) {
                        *sum = _mm512_dpbusd_epi32(*sum, of_a, of_b);
                    }
                }
            }
        }
        sums.map(|[a, b, c, d]| {
            let pairs = |x, y| _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
            let (ab, cd) = (pairs(a, b), pairs(c, d));
            let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
            let half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64::<1>(all));
            _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half))
        })
    }
}
