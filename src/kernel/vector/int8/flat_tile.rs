//! Tiles of sums over flat planes (`flat`): a few filters by some registers of neighbouring windows.
//!
//! A cell is two numbers of 16 bits, or a *quad* of bytes, unsigned ones of x and signed ones of weights, whose
//! products are added in pairs to 16 bits first: three instructions instead of four, but only for weights of which no
//! pair adds up to more than `MOST_PAIR`. The rest is left to tiles of few groups, for each filter its own.
//!
//! A group along K is a cell of each filter, times as many neighbouring cells as there are windows, from an offset of
//! the group's own on. Tiles go beyond the last window up to whole registers.

use crate::kernel::vector::isa::{Isa, SimdLevel};

/// The operands of a tile.
#[derive(Clone, Copy)]
pub struct FlatOperands {
    pub groups: usize,
    /// For each group a cell of each filter.
    pub weights: *const u32,
    /// The first window's cells, and the offset of each group in bytes.
    pub cells: *const u8,
    pub offsets: *const usize,
    /// The number of each group, where only some have weights; otherwise null.
    pub numbers: *const u32,
    /// The first values of each filter's sums; null if the sums go on from those that are there.
    pub begin: *const i32,
}

/// Writes sums, rows `stride` elements apart.
///
/// # Safety
/// The processor has the level. The operands are readable, for as many windows as the tile has, and so many sums of
/// each row are writable.
pub type FlatTile = unsafe fn(from: &FlatOperands, sums: *mut i32, stride: usize);

/// The tiles of a level.
#[derive(Clone, Copy)]
pub struct FlatTiles {
    /// Windows of a register.
    pub lanes: usize,
    /// A filter by `LONG` registers.
    pub one: FlatTile,
    /// `None` if other ways are better for many filters.
    pub many: Option<ManyTiles>,
}

/// Tiles of six filters and of four, by two registers and by one.
#[derive(Clone, Copy)]
pub struct ManyTiles {
    pub pairs: [[FlatTile; 2]; 2],
    pub quads: [[FlatTile; 2]; 2],
    /// A filter by `LONG` registers, of numbered groups of quads.
    pub rest: FlatTile,
}

/// Most that the positive weights of a pair may add up to, or the negative ones, so that with 255 they fit in 16 bits.
pub const MOST_PAIR: i32 = 128;

/// Registers of a tile of one filter.
pub const LONG: usize = 4;
/// Most filters of a tile.
pub const ROWS: usize = 6;
/// Most windows beyond the last one that a tile computes.
pub const BEYOND: usize = 32;

/// The numbers of sets of six and of four filters, which have room for all.
pub fn sets(filters: usize) -> (usize, usize) {
    let even = filters.max(3).next_multiple_of(2);
    match even % ROWS {
        0 => (even / ROWS, 0),
        4 => (even / ROWS, 1),
        _ => (even / ROWS - 1, 2),
    }
}

/// The first filter of a set, and its filters.
pub fn set(number: usize, sixes: usize) -> (usize, usize) {
    if number < sixes { (number * ROWS, ROWS) } else { (sixes * ROWS + (number - sixes) * 4, 4) }
}

/// Filters with those that complete the last set.
pub fn rounded(filters: usize) -> usize {
    let (sixes, fours) = sets(filters);
    sixes * ROWS + fours * 4
}

impl FlatTiles {
    /// Those of a supported level. Processors with dot products of four bytes have better ways for many filters.
    pub fn of(isa: Isa) -> FlatTiles {
        isa.assert_detected();
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 | SimdLevel::Avx512 if isa.has_byte_products() => {
                FlatTiles { lanes: 8, one: pairs::<1, LONG>, many: None }
            }
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 | SimdLevel::Avx512 => {
                let many = ManyTiles {
                    pairs: [[pairs::<6, 2>, pairs::<6, 1>], [pairs::<4, 2>, pairs::<4, 1>]],
                    quads: [[quads::<6, 2, false>, quads::<6, 1, false>], [quads::<4, 2, false>, quads::<4, 1, false>]],
                    rest: quads::<1, LONG, true>,
                };
                FlatTiles { lanes: 8, one: pairs::<1, LONG>, many: Some(many) }
            }
            _ => FlatTiles { lanes: BASE, one: baseline, many: None },
        }
    }
}

/// A register of cells, or of sums.
///
/// # Safety
/// The processor has the instructions of the type.
trait FlatLanes: Copy {
    const LANES: usize;
    unsafe fn all(number: i32) -> Self;
    /// From a readable address of any alignment.
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut i32);
    /// Adds the products of cells, modulo 2^32.
    unsafe fn step(self, weights: Self, cells: Self) -> Self;
}

/// # Safety
/// As `FlatTile`.
#[inline(always)]
unsafe fn tile<L: FlatLanes, const ROWS: usize, const REGISTERS: usize, const NUMBERED: bool>(
    from: &FlatOperands,
    out: *mut i32,
    stride: usize,
) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut sums = [[L::all(0); REGISTERS]; ROWS];
        for (row, sums) in sums.iter_mut().enumerate() {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = match from.begin.is_null() {
                    true => L::load(out.add(row * stride + i * L::LANES).cast()),
                    false => L::all(*from.begin.add(row)),
                };
            }
        }
        let mut weights = from.weights.cast::<i32>();
        for group in 0..from.groups {
            let number = if NUMBERED { *from.numbers.add(group) as usize } else { group };
            let cells = from.cells.add(*from.offsets.add(number));
            let cells: [L; REGISTERS] = std::array::from_fn(|i| L::load(cells.add(i * L::LANES * size_of::<u32>())));
            for (row, sums) in sums.iter_mut().enumerate() {
                let weight = L::all(*weights.add(row));
                for (sum, cells) in sums.iter_mut().zip(cells) {
                    *sum = sum.step(weight, cells);
                }
            }
            weights = weights.add(ROWS);
        }
        for (row, sums) in sums.into_iter().enumerate() {
            for (i, sum) in sums.into_iter().enumerate() {
                sum.store(out.add(row * stride + i * L::LANES));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::*;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{FlatLanes, FlatOperands, LONG, tile};
    use std::arch::x86_64::*;

    pub const BASE: usize = <__m128i as FlatLanes>::LANES;

    /// # Safety
    /// As `FlatTile`.
    #[target_feature(enable = "avx2")]
    pub unsafe fn pairs<const ROWS: usize, const REGISTERS: usize>(from: &FlatOperands, out: *mut i32, stride: usize) {
        // SAFETY: passed on.
        unsafe { tile::<__m256i, ROWS, REGISTERS, false>(from, out, stride) }
    }

    /// # Safety
    /// As `FlatTile`.
    #[target_feature(enable = "avx2")]
    pub unsafe fn quads<const ROWS: usize, const REGISTERS: usize, const NUMBERED: bool>(
        from: &FlatOperands,
        out: *mut i32,
        stride: usize,
    ) {
        // SAFETY: passed on.
        unsafe { tile::<Quads, ROWS, REGISTERS, NUMBERED>(from, out, stride) }
    }

    /// SSE2 is part of x86-64.
    ///
    /// # Safety
    /// As `FlatTile`.
    pub unsafe fn baseline(from: &FlatOperands, out: *mut i32, stride: usize) {
        // SAFETY: passed on.
        unsafe { tile::<__m128i, 1, LONG, false>(from, out, stride) }
    }

    impl FlatLanes for __m256i {
        const LANES: usize = 8;
        #[inline(always)]
        unsafe fn all(number: i32) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm256_set1_epi32(number) }
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm256_loadu_si256(from.cast()) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut i32) {
            // SAFETY: as demanded of the caller.
            unsafe { _mm256_storeu_si256(to.cast(), self) }
        }
        #[inline(always)]
        unsafe fn step(self, weights: Self, cells: Self) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm256_add_epi32(self, _mm256_madd_epi16(weights, cells)) }
        }
    }

    /// A register whose cells are quads.
    #[derive(Clone, Copy)]
    struct Quads(__m256i);

    impl FlatLanes for Quads {
        const LANES: usize = 8;
        #[inline(always)]
        unsafe fn all(number: i32) -> Self {
            // SAFETY: passed on.
            Quads(unsafe { FlatLanes::all(number) })
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: passed on.
            Quads(unsafe { FlatLanes::load(from) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut i32) {
            // SAFETY: passed on.
            unsafe { self.0.store(to) }
        }
        #[inline(always)]
        unsafe fn step(self, weights: Self, cells: Self) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { Quads(self.0.step(_mm256_maddubs_epi16(cells.0, weights.0), _mm256_set1_epi16(1))) }
        }
    }

    impl FlatLanes for __m128i {
        const LANES: usize = 4;
        #[inline(always)]
        unsafe fn all(number: i32) -> Self {
            // SAFETY: SSE2 is part of x86-64.
            unsafe { _mm_set1_epi32(number) }
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { _mm_loadu_si128(from.cast()) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut i32) {
            // SAFETY: as demanded of the caller.
            unsafe { _mm_storeu_si128(to.cast(), self) }
        }
        #[inline(always)]
        unsafe fn step(self, weights: Self, cells: Self) -> Self {
            // SAFETY: SSE2 is part of x86-64.
            unsafe { _mm_add_epi32(self, _mm_madd_epi16(weights, cells)) }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
use plain::*;

#[cfg(not(target_arch = "x86_64"))]
mod plain {
    use super::{FlatLanes, FlatOperands, LONG, tile};

    pub const BASE: usize = <[i32; 4] as FlatLanes>::LANES;

    /// # Safety
    /// As `FlatTile`.
    pub unsafe fn baseline(from: &FlatOperands, out: *mut i32, stride: usize) {
        // SAFETY: passed on.
        unsafe { tile::<[i32; 4], 1, LONG, false>(from, out, stride) }
    }

    impl FlatLanes for [i32; 4] {
        const LANES: usize = 4;
        #[inline(always)]
        unsafe fn all(number: i32) -> Self {
            [number; 4]
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: as demanded of the caller.
            unsafe { from.cast::<Self>().read_unaligned() }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut i32) {
            // SAFETY: as demanded of the caller.
            unsafe { to.cast::<Self>().write_unaligned(self) }
        }
        #[inline(always)]
        unsafe fn step(self, weights: Self, cells: Self) -> Self {
            let low = |x: i32| i32::from(x as i16);
            std::array::from_fn(|i| {
                let both = low(weights[i]) * low(cells[i]) + (weights[i] >> 16) * (cells[i] >> 16);
                self[i].wrapping_add(both)
            })
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sets_have_room_for_all_filters() {
        for filters in 1..200 {
            let (sixes, fours) = sets(filters);
            let all = (0..sixes + fours).map(|number| set(number, sixes));
            let end = all.fold(0, |end, (first, rows)| {
                assert_eq!(first, end);
                end + rows
            });
            assert_eq!(end, rounded(filters));
            assert!((filters..filters + 4).contains(&end), "{filters} filters in {end}");
        }
    }
}
