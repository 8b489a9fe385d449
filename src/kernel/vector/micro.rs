//! Micro-kernels: the innermost loop of a matrix product, which keeps a small tile of accumulators in registers.
//!
//! One set per instruction set, chosen at run time (`tile`). The driver relies on one property, which `gemm_tests`
//! checks: an element of the tile is the chain `x = a[k] * b[k] + x` from zero and in the order of k, in every
//! micro-kernel of a set, whole tile or remainder. So the bits of an element do not depend on its position in a tile.

use super::caches::Caches;
use super::isa::{Isa, SimdLevel};
pub use super::step::{From, MicroTile, RowsAhead, Scale, Strided, TileEpilogue};
use super::tile::Tiles;

/// The micro-kernels of one instruction set, and the caches that blocks are made for.
#[derive(Clone, Copy)]
pub struct MicroKernels {
    pub isa: Isa,
    pub caches: Caches,
    /// Floats in a vector register.
    pub lanes: usize,
    /// Maximum columns of a tile, a multiple of `lanes`.
    pub width: usize,
    /// Maximum rows of a tile of full width.
    pub rows: usize,
    /// Whether A should be packed if neighbours along M are not neighbours in memory.
    pub packs_a: bool,
    tiles: Tiles,
}

impl MicroKernels {
    /// The set of this process.
    pub fn best() -> MicroKernels {
        Self::of(Isa::best())
    }

    /// The set for a supported level.
    pub fn of(isa: Isa) -> MicroKernels {
        Self::with(isa, Tiles::of(isa))
    }

    /// Those in plain Rust.
    #[cfg(all(test, not(loom)))]
    pub fn plain() -> MicroKernels {
        Self::with(Isa::PORTABLE, Tiles::plain())
    }

    fn with(isa: Isa, tiles: Tiles) -> MicroKernels {
        let (width, rows) = (tiles.lanes * tiles.registers(), tiles.most_rows(tiles.registers()));
        let caches = *Caches::of_machine();
        MicroKernels { isa, caches, lanes: tiles.lanes, width, rows, packs_a: isa.level == SimdLevel::Neon, tiles }
    }

    /// Maximum rows of a tile with this many columns.
    pub fn rows_of(&self, columns: usize) -> usize {
        self.tiles.most_rows(columns.div_ceil(self.lanes))
    }

    /// Maximum columns of a tile with this many rows.
    pub fn columns_of(&self, rows: usize) -> usize {
        self.tiles.most_registers(rows) * self.lanes
    }

    /// Computes a tile.
    ///
    /// # Safety
    /// At least one row and one column, at most `rows_of` and `width` of them. `c` has `rows` rows of `columns`
    /// writable floats, `c_stride` apart; `a` has `rows` times `depth` readable floats, `b` `depth` times `columns`, in
    /// a panel rounded up to whole vectors (`lanes`). The panel of a copy has `depth` rows of writable whole vectors.
    /// The numbers of the epilogue are readable. Writes overlap no reads.
    pub unsafe fn multiply(&self, tile: &MicroTile) {
        debug_assert!((1..=self.width).contains(&tile.columns) && tile.rows >= 1);
        // SAFETY: as demanded of the caller.
        unsafe { self.tiles.compute(tile) }
    }
}
