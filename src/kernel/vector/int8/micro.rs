//! int8 micro-kernels: a small tile of 32-bit accumulators that stays in registers, and the surrounding loops, one set
//! per instruction set.
//!
//! Operands consist of *cells*: four bytes each, with as many neighbours along K as the instruction multiplies and adds
//! at once. A has rows of cells. B comes in panels with a cell per column, group after group along K.
//!
//! | set         | a cell is     | step                                    | tile    |
//! |-------------|---------------|-----------------------------------------|---------|
//! | amx         | 4 bytes       | tdpbusd: 16 x 16 sums of 64 products    | 32 x 32 |
//! | avx512_vnni | 4 bytes       | vpdpbusd: four products into a sum      | 12 x 32 |
//! | avx_vnni    | 4 bytes       | vpdpbusd: four products into a sum      | 6 x 16  |
//! | avx2        | 2 x 16 bits   | vpmaddwd and vpaddd                     | 6 x 16  |
//! | avx2, low   | 4 bytes       | vpmaddubsw, vpmaddwd and vpaddd         | 6 x 16  |
//! | portable    | 2 x 16 bits   | what the compiler makes of it           | 4 x 8   |
//!
//! If a cell is four bytes, the rows of an unsigned matrix that lie along K are rows of cells as they are.
//!
//! A is unsigned, B is signed. Sixteen bits hold either, and pairwise sums of their products fit in 32 bits; the
//! shorter instruction of AVX2, vpmaddubsw, saturates at sixteen, and is used only where no two products can reach
//! that. So every set is exact.

use super::finish::{self, Rule, Stash};
use super::panel::PackSource;
use super::tile::{CellRows, PanelFormat, Tile};
use super::{dots, thin};

/// The micro-kernels of one instruction set. For the functions' contracts see `panel`, `finish`, `thin` and `dots`.
#[derive(Clone, Copy)]
pub struct MicroKernelSet {
    /// Maximum rows of a tile.
    pub rows: usize,
    /// Columns of a tile.
    pub columns: usize,
    /// Neighbours along K in a cell.
    pub depth: usize,
    /// Groups come in multiples of this; those beyond the end of K are zeros.
    pub step: usize,
    /// The rows of a tile with more than `free_rows` come in multiples of this; those behind the last one have cells,
    /// and their sums are discarded.
    pub whole_rows: usize,
    pub free_rows: usize,
    /// One function per number of rows.
    pub tiles: &'static [Tile],
    /// Called before and after the tiles of a piece of work, in its thread.
    pub enter: fn(),
    pub leave: fn(),
    pub pack_a: unsafe fn(&PackSource, usize, usize, *mut u8, usize),
    pub sums_a: unsafe fn(CellRows, usize, &mut [i32]),
    pub pack_b: unsafe fn(&PackSource, usize, usize, *mut u32, *mut i32),
    pub finish: unsafe fn(&Rule, &finish::TilePosition, &[i32], *mut i32),
    pub stash: unsafe fn(Stash, &[i32], *mut i64),
    pub finish_stash: unsafe fn(&Rule, &finish::TilePosition, &[i64], *mut i32),
    /// The algorithms for few rows or columns.
    pub thin: Option<thin::ThinKernels>,
    pub dots: Option<dots::DotsKernels>,
}

impl MicroKernelSet {
    /// The format of its panels.
    pub fn cut(&self) -> PanelFormat {
        PanelFormat { columns: self.columns, depth: self.depth, step: self.step }
    }

    /// Number of cells for this many numbers along K.
    pub fn cells(&self, depth: usize) -> usize {
        depth.div_ceil(self.depth).next_multiple_of(self.step)
    }

    /// Rows that a tile of `rows` reads and writes.
    pub fn rounded(&self, rows: usize) -> usize {
        if rows > self.free_rows { rows.next_multiple_of(self.whole_rows) } else { rows }
    }
}

pub fn nothing() {}

/// The surrounding loops, compiled for the instruction set of the module that uses this macro.
macro_rules! loops {
    ($(#[$feature:meta])? $cell:ty) => {
        $(#[$feature])?
        unsafe fn sums_a(rows: CellRows, groups: usize, sums: &mut [i32]) {
            // SAFETY: passed on.
            unsafe { panel::row_sums::<$cell, false>(rows, groups, sums) }
        }
        $(#[$feature])?
        unsafe fn finish_tile(rule: &Rule, place: &finish::TilePosition, tile: &[i32], c: *mut i32) {
            // SAFETY: passed on.
            unsafe { finish::tile(rule, place, tile, c) }
        }
        $(#[$feature])?
        unsafe fn stash(stash: Stash, tile: &[i32], sums: *mut i64) {
            // SAFETY: passed on.
            unsafe { finish::stash(stash, tile, sums) }
        }
        $(#[$feature])?
        unsafe fn finish_stash(rule: &Rule, place: &finish::TilePosition, sums: &[i64], c: *mut i32) {
            // SAFETY: passed on.
            unsafe { finish::tile(rule, place, sums, c) }
        }

        pub static SET: MicroKernelSet = MicroKernelSet {
            rows: TILES.len(),
            columns: COLUMNS,
            depth: <$cell as CellFormat>::DEPTH,
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
