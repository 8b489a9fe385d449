//! Micro-kernels for bytes: a small tile of 32-bit sums that stays in registers, and the loops that surround it, one
//! set per instruction set.
//!
//! Operands are made of *cells*: four bytes each, with as many neighbours along K as the instruction multiplies and
//! adds at once. A has rows of cells. B comes in panels with a cell per column, group after group along K.
//!
//! | set         | a cell is     | step                                    | tile    |
//! |-------------|---------------|-----------------------------------------|---------|
//! | amx         | 4 bytes       | tdpbusd: 16 x 16 sums of 64 products    | 32 x 32 |
//! | avx512_vnni | 4 bytes       | vpdpbusd: four products into a sum      | 12 x 32 |
//! | avx2        | 2 x 16 bits   | vpmaddwd and vpaddd                     | 6 x 16  |
//! | avx2, low   | 4 bytes       | vpmaddubsw, vpmaddwd and vpaddd         | 6 x 16  |
//! | portable    | 2 x 16 bits   | what the compiler makes of it           | 4 x 8   |
//!
//! Where a cell is four bytes, the rows of an unsigned matrix that lie along K are rows of cells as they are.
//!
//! A is unsigned, B is signed. Sixteen bits hold either, and their products two by two fit in 32 bits; the shorter way
//! of AVX2, vpmaddubsw, would saturate at sixteen, and is gone where no two products can come so far. So every set is
//! exact.

use super::finish::{self, Rule, Stash};
use super::panel::{self, Cell, Pair, Source};
use super::{dots, lines, thin};
use crate::kernel::vector::isa::Isa;

/// A tile: `out` = A * B for `groups` groups, plus what the zero points add (`Terms`).
pub type Tile = unsafe fn(groups: usize, a: Rows, b: Panel, terms: Option<Terms>, out: Out);

/// Rows of cells of A.
#[derive(Clone, Copy)]
pub struct Rows {
    pub data: *const u8,
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// A panel of B, and memory that is wanted next, which may be asked for meanwhile: for each group a cache line or two
/// from `next` on, then `step` bytes further.
#[derive(Clone, Copy)]
pub struct Panel {
    pub data: *const u32,
    /// Never read: any address will do.
    pub next: *const u8,
    pub step: usize,
}

impl Panel {
    /// One that is in a cache, as are its neighbours.
    pub fn near(data: *const u32) -> Panel {
        Panel { data, next: data.cast(), step: 0 }
    }

    /// One of so many groups that is used for `parts` tiles, each of which asks for a part of the panel behind it.
    pub fn ahead(data: *const u32, groups: usize, width: usize, part: usize, parts: usize) -> Panel {
        let step = width * size_of::<u32>() / parts;
        let next = data.wrapping_add(groups * width).cast::<u8>().wrapping_add(part * groups * step);
        Panel { data, next, step }
    }
}

/// Where a tile goes.
#[derive(Clone, Copy)]
pub struct Out {
    pub data: *mut i32,
    /// Elements from one row to the next.
    pub stride: usize,
    /// Whether it is added to what is there, modulo 2^32.
    pub adds: bool,
}

/// What zero points add to the sums of each row and of each column of a tile, modulo 2^32: as many numbers as a tile of
/// the set has rows and columns.
#[derive(Clone, Copy)]
pub struct Terms {
    pub rows: *const i32,
    pub columns: *const i32,
}

/// The micro-kernels of one instruction set. For the functions' contracts see `panel`, `finish`, `thin` and `dots`.
#[derive(Clone, Copy)]
pub struct Set {
    /// Most rows of a tile.
    pub rows: usize,
    /// Columns of a tile.
    pub columns: usize,
    /// Neighbours along K in a cell.
    pub depth: usize,
    /// Groups come in multiples of so many; those behind the end of K are zeros.
    pub step: usize,
    /// The rows of a tile that has more than `free_rows` come in multiples of so many; those behind the last one have
    /// cells, and their sums go nowhere.
    pub whole_rows: usize,
    pub free_rows: usize,
    /// One function per number of rows.
    pub tiles: &'static [Tile],
    /// Surround a piece of work that calls tiles, in its thread.
    pub enter: fn(),
    pub leave: fn(),
    pub pack_a: unsafe fn(&Source, usize, usize, *mut u8, usize),
    pub sums_a: unsafe fn(Rows, usize, &mut [i32]),
    pub pack_b: unsafe fn(&Source, usize, usize, *mut u32, *mut i32),
    pub finish: unsafe fn(&Rule, &finish::Place, &[i32], *mut i32),
    pub stash: unsafe fn(Stash, &[i32], *mut i64),
    pub finish_stash: unsafe fn(&Rule, &finish::Place, &[i64], *mut i32),
    /// Other ways for few rows or columns.
    pub thin: Option<thin::Way>,
    pub dots: Option<dots::Way>,
}

/// Most rows and columns of a tile of any set.
pub const MAX_ROWS: usize = 32;
pub const MAX_COLUMNS: usize = 32;

impl Set {
    /// The set for a level that the processor has.
    pub fn of(isa: Isa) -> &'static Set {
        assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => &super::amx::SET,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => &super::vnni::SET,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512 => &super::avx2::SET,
            _ => &portable::SET,
        }
    }

    /// Another set for a level that the processor has, for operands of which the products of any two neighbours along K
    /// add up to 16 bits.
    pub fn low(isa: Isa) -> Option<&'static Set> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512 => Some(&super::avx2_low::SET),
            _ => None,
        }
    }

    /// Cells of so many numbers along K.
    pub fn cells(&self, depth: usize) -> usize {
        depth.div_ceil(self.depth).next_multiple_of(self.step)
    }

    /// Rows that a tile of `rows` reads and writes.
    pub fn rounded(&self, rows: usize) -> usize {
        if rows > self.free_rows { rows.next_multiple_of(self.whole_rows) } else { rows }
    }
}

pub fn nothing() {}

/// The surrounding loops, compiled for the instruction set of the module that this stands in.
macro_rules! loops {
    ($(#[$feature:meta])? $cell:ty) => {
        $(#[$feature])?
        unsafe fn sums_a(rows: Rows, groups: usize, sums: &mut [i32]) {
            // SAFETY: passed on.
            unsafe { panel::row_sums::<$cell, false>(rows, groups, sums) }
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
            step: 1,
            whole_rows: 1,
            free_rows: usize::MAX,
            tiles: &TILES,
            enter: nothing,
            leave: nothing,
            pack_a,
            sums_a,
            pack_b,
            finish: finish_tile,
            stash,
            finish_stash,
            thin: THIN,
            dots: DOTS,
        };
    };
}
pub(super) use loops;

mod portable {
    use super::*;

    loops!(Pair);

    const COLUMNS: usize = 8;
    const THIN: Option<thin::Way> = None;
    const DOTS: Option<dots::Way> = None;
    static TILES: [Tile; 4] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>];

    unsafe fn pack_a(source: &Source, groups: usize, lanes: usize, data: *mut u8, stride: usize) {
        // SAFETY: passed on.
        unsafe { panel::pack_rows::<Pair>(source, groups, lanes, data, stride) }
    }

    unsafe fn pack_b(source: &Source, groups: usize, lanes: usize, panels: *mut u32, sums: *mut i32) {
        // SAFETY: passed on.
        unsafe { panel::pack::<Pair>(source, groups, lanes, panels, COLUMNS, sums) }
    }

    /// # Safety
    /// A has ROWS rows of `groups` cells, the panel has as many groups of COLUMNS cells, `out` has ROWS rows of COLUMNS
    /// writable integers, `stride` apart. Terms are as `Terms` says.
    unsafe fn tile<const ROWS: usize>(groups: usize, a: Rows, b: Panel, terms: Option<Terms>, out: Out) {
        let mut sums = [[0i32; COLUMNS]; ROWS];
        if let Some(terms) = terms {
            for (i, j) in (0..ROWS).flat_map(|i| (0..COLUMNS).map(move |j| (i, j))) {
                // SAFETY: as demanded of the caller.
                sums[i][j] = unsafe { (*terms.rows.add(i)).wrapping_add(*terms.columns.add(j)) };
            }
        }
        for group in 0..groups {
            lines::ask(b.next.wrapping_add(group * b.step));
            // SAFETY: as demanded of the caller; arrays of cells have the alignment of a cell.
            let b = unsafe { &*b.data.add(group * COLUMNS).cast::<[u32; COLUMNS]>() };
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: as demanded of the caller.
                let a = unsafe { a.data.add(row * a.stride).cast::<u32>().add(group).read_unaligned() };
                let (a0, a1) = (i32::from(a as i16), (a as i32) >> 16);
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = sum.wrapping_add(a0 * i32::from(b as i16) + a1 * ((b as i32) >> 16));
                }
            }
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: as demanded of the caller.
            let out_row = unsafe { &mut *out.data.add(row * out.stride).cast::<[i32; COLUMNS]>() };
            for (sum, out_sum) in sums.iter().zip(out_row) {
                *out_sum = sum.wrapping_add(if out.adds { *out_sum } else { 0 });
            }
        }
    }
}
