//! Micro-kernels for bytes: a small tile of 32-bit sums that stays in registers, and the loops that surround it, one
//! set per instruction set.
//!
//! Operands come in panels of *cells*: four bytes each, with as many neighbours along K as the instruction multiplies
//! and adds at once. A panel of A has a cell per row, one of B a cell per column, group after group along K.
//!
//! | set         | a cell is     | step                                    | tile    |
//! |-------------|---------------|-----------------------------------------|---------|
//! | avx512_vnni | 4 bytes       | vpdpbusd: four products into a sum      | 12 x 32 |
//! | avx2        | 2 x 16 bits   | vpmaddwd and vpaddd                     | 6 x 16  |
//! | portable    | 2 x 16 bits   | what the compiler makes of it           | 4 x 8   |
//!
//! A is unsigned, B is signed. Sixteen bits hold either, and their products two by two fit in 32 bits; the shorter way
//! of AVX2, vpmaddubsw, would saturate at sixteen. So every set is exact.

use super::finish::{self, Rule, Stash};
use super::panel::{self, Cell, Pair, Quad, Source};
use crate::kernel::vector::isa::Isa;

/// A tile: `out` = A * B for `groups` groups, plus what the zero points add (`Terms`); its rows are `stride` elements
/// apart.
type Tile = unsafe fn(groups: usize, a: *const u32, b: *const u32, terms: Option<Terms>, out: *mut i32, stride: usize);

/// What zero points add to the sums of each row and of each column of a tile, modulo 2^32: as many numbers as a tile of
/// the set has rows and columns.
#[derive(Clone, Copy)]
pub struct Terms {
    pub rows: *const i32,
    pub columns: *const i32,
}

/// The micro-kernels of one instruction set. For the functions' contracts see `panel` and `finish`.
#[derive(Clone, Copy)]
pub struct Set {
    /// Most rows of a tile.
    pub rows: usize,
    /// Columns of a tile.
    pub columns: usize,
    /// Neighbours along K in a cell.
    pub depth: usize,
    /// One function per number of rows.
    pub tiles: &'static [Tile],
    pub pack_a: unsafe fn(&Source, usize, usize, *mut u32),
    pub pack_b: unsafe fn(&Source, usize, usize, *mut u32),
    pub sums_a: unsafe fn(*const u32, usize, usize, &mut [i32]),
    pub sums_b: unsafe fn(*const u32, usize, usize, &mut [i32]),
    pub finish: unsafe fn(&Rule, &finish::Place, &[i32], *mut i32),
    pub stash: unsafe fn(Stash, &[i32], *mut i64),
    pub finish_stash: unsafe fn(&Rule, &finish::Place, &[i64], *mut i32),
}

/// Most rows and columns of a tile of any set.
pub const MAX_ROWS: usize = 12;
pub const MAX_COLUMNS: usize = 32;

impl Set {
    /// The set for a level that the processor has.
    pub fn of(isa: Isa) -> &'static Set {
        assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => &vnni::SET,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512 => &avx2::SET,
            _ => &portable::SET,
        }
    }
}

/// The surrounding loops, compiled for the instruction set of the module that this stands in.
macro_rules! loops {
    ($(#[$feature:meta])? $cell:ty) => {
        use super::*;

        $(#[$feature])?
        unsafe fn pack_a(source: &Source, groups: usize, lanes: usize, panels: *mut u32) {
            // SAFETY: passed on.
            unsafe { panel::pack::<$cell, false>(source, groups, lanes, panels, TILES.len(), true) }
        }
        $(#[$feature])?
        unsafe fn pack_b(source: &Source, groups: usize, lanes: usize, panels: *mut u32) {
            // SAFETY: passed on.
            unsafe { panel::pack::<$cell, true>(source, groups, lanes, panels, COLUMNS, false) }
        }
        $(#[$feature])?
        unsafe fn sums_a(panel: *const u32, groups: usize, width: usize, sums: &mut [i32]) {
            // SAFETY: passed on.
            unsafe { panel::sums::<$cell, false>(panel, groups, width, sums) }
        }
        $(#[$feature])?
        unsafe fn sums_b(panel: *const u32, groups: usize, width: usize, sums: &mut [i32]) {
            // SAFETY: passed on.
            unsafe { panel::sums::<$cell, true>(panel, groups, width, sums) }
        }
        $(#[$feature])?
        unsafe fn finish_tile(rule: &Rule, place: &finish::Place, tile: &[i32], c: *mut i32) {
            // SAFETY: passed on.
            unsafe { finish::tile(rule, place, tile, c) }
        }
        $(#[$feature])?
        unsafe fn stash(stash: Stash, tile: &[i32], sums: *mut i64) {
            // SAFETY: passed on.
            unsafe { finish::stash(stash, tile, sums) }
        }
        $(#[$feature])?
        unsafe fn finish_stash(rule: &Rule, place: &finish::Place, sums: &[i64], c: *mut i32) {
            // SAFETY: passed on.
            unsafe { finish::tile(rule, place, sums, c) }
        }

        pub static SET: Set = Set {
            rows: TILES.len(),
            columns: COLUMNS,
            depth: <$cell as Cell>::DEPTH,
            tiles: &TILES,
            pack_a,
            pack_b,
            sums_a,
            sums_b,
            finish: finish_tile,
            stash,
            finish_stash,
        };
    };
}

mod portable {
    loops!(Pair);

    const COLUMNS: usize = 8;
    static TILES: [Tile; 4] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>];

    /// # Safety
    /// The panels have `groups` groups of ROWS and of COLUMNS cells, `out` has ROWS rows of COLUMNS writable integers,
    /// `stride` apart.
    unsafe fn tile<const ROWS: usize>(
        groups: usize,
        a: *const u32,
        b: *const u32,
        terms: Option<Terms>,
        out: *mut i32,
        stride: usize,
    ) {
        let mut sums = [[0i32; COLUMNS]; ROWS];
        if let Some(terms) = terms {
            for (i, j) in (0..ROWS).flat_map(|i| (0..COLUMNS).map(move |j| (i, j))) {
                // SAFETY: as demanded of the caller.
                sums[i][j] = unsafe { (*terms.rows.add(i)).wrapping_add(*terms.columns.add(j)) };
            }
        }
        for group in 0..groups {
            // SAFETY: as demanded of the caller; arrays of cells have the alignment of a cell.
            let (a, b) = unsafe {
                (&*a.add(group * ROWS).cast::<[u32; ROWS]>(), &*b.add(group * COLUMNS).cast::<[u32; COLUMNS]>())
            };
            for (sums, &a) in sums.iter_mut().zip(a) {
                let (a0, a1) = (i32::from(a as i16), (a as i32) >> 16);
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = sum.wrapping_add(a0 * i32::from(b as i16) + a1 * ((b as i32) >> 16));
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            // SAFETY: as demanded of the caller; arrays of integers have the alignment of an integer.
            unsafe { *out.add(row * stride).cast::<[i32; COLUMNS]>() = sums };
        }
    }
}

/// A tile two registers wide. The intrinsics of the register are named in the order in which they are first needed; the
/// step adds to the sums of a register the products of a cell of A, in every lane, with the cells of B in theirs.
#[cfg(target_arch = "x86_64")]
macro_rules! tile_of_two_registers {
    (
        #[$feature:meta]
        $register:ty: $zero:ident, $load:ident, $splat:ident, $add:ident, $store:ident;
        |$sum:ident, $a:ident, $b:ident| $step:expr
    ) => {
        /// # Safety
        /// As the portable one, on a processor with these instructions.
        #[$feature]
        unsafe fn tile<const ROWS: usize>(
            groups: usize,
            a: *const u32,
            b: *const u32,
            terms: Option<Terms>,
            out: *mut i32,
            stride: usize,
        ) {
            let mut sums = [[$zero(); 2]; ROWS];
            if let Some(terms) = terms {
                // SAFETY: as demanded of the caller.
                unsafe {
                    let columns = terms.columns.cast::<$register>();
                    let columns = [$load(columns), $load(columns.add(1))];
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let row = $splat(*terms.rows.add(row));
                        *sums = [$add(row, columns[0]), $add(row, columns[1])];
                    }
                }
            }
            for group in 0..groups {
                // SAFETY: as demanded of the caller.
                unsafe {
                    let (a, b) = (a.add(group * ROWS), b.add(group * COLUMNS).cast::<$register>());
                    let b = [$load(b), $load(b.add(1))];
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let $a = $splat(*a.add(row) as i32);
                        for (sum, $b) in sums.iter_mut().zip(b) {
                            let $sum = *sum;
                            *sum = $step;
                        }
                    }
                }
            }
            // SAFETY: as demanded of the caller.
            unsafe {
                for (row, sums) in sums.into_iter().enumerate() {
                    let out = out.add(row * stride).cast::<$register>();
                    $store(out, sums[0]);
                    $store(out.add(1), sums[1]);
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    loops!(
        #[target_feature(enable = "avx2")]
        Pair
    );
    use std::arch::x86_64::*;

    const COLUMNS: usize = 16;
    static TILES: [Tile; 6] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>];

    tile_of_two_registers! {
        #[target_feature(enable = "avx2")]
        __m256i: _mm256_setzero_si256, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_add_epi32, _mm256_storeu_si256;
        |sum, a, b| _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
    }
}

#[cfg(target_arch = "x86_64")]
mod vnni {
    loops!(
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        Quad
    );
    use std::arch::x86_64::*;

    const COLUMNS: usize = MAX_COLUMNS;
    static TILES: [Tile; MAX_ROWS] = [
        tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>, tile::<7>, tile::<8>, tile::<9>, tile::<10>,
        tile::<11>, tile::<12>,
    ];

    tile_of_two_registers! {
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        __m512i: _mm512_setzero_si512, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_add_epi32, _mm512_storeu_si512;
        |sum, a, b| _mm512_dpbusd_epi32(sum, a, b)
    }
}
