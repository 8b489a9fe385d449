//! The plan of an int8 product: its algorithm, K blocks, blocks, and the layout of scratch memory.
#![forbid(unsafe_code)]

use super::micro::MicroKernelSet;
use super::panel::pitch;
use super::product::Int8Product;
use super::tile::{CELL, ROUND};
use super::{dots, sets, thin};
use crate::kernel::vector::isa::Isa;
use crate::memory::ALIGNMENT;

/// Rows and columns of a tile of C: whole tiles of every set of micro-kernels, except half a tile of rows for AMX.
pub const TILE: (usize, usize) = (48, 64);
/// Bytes of a panel of B of one K block, and room for the panels of a block.
const BYTES_OF_PANEL: usize = 32 << 10;
const BYTES_OF_A: usize = 192 << 10;
const BYTES_OF_B: usize = 512 << 10;
/// Maximum numbers along K whose K blocks are packed together.
const MAX_NESTED: usize = 8192;
/// Maximum cells along K of a short panel.
const SHORT_PANEL: usize = 16;
/// Maximum columns of a block, for short K.
const MAX_BLOCK: usize = 1024;
/// Maximum bytes of a matrix that a near cache may hold.
const FAR: usize = 4 << 20;
/// Maximum numbers along K whose products, with magnitudes of 255, add up to less than 2^31.
pub const SHORT: usize = 32768;

/// The algorithms.
#[derive(Clone, Copy)]
pub enum Int8Algorithm {
    Blocks,
    Thin(thin::ThinKernels),
    Dots(dots::DotsKernels),
}

/// How a product is computed. Depends only on the sizes and the instruction set.
#[derive(Clone, Copy)]
pub struct Int8Plan {
    pub set: &'static MicroKernelSet,
    pub way: Int8Algorithm,
    /// Whether `dots` holds A.
    pub holds_a: bool,
    /// Numbers along K of a K block, possibly fewer in the last one.
    pub depth: usize,
    pub stretches: usize,
    /// Whether sums of several K blocks need room of their own.
    pub stashes: bool,
    /// Whether all K blocks of a block of columns are packed before its first block of rows.
    pub nested: bool,
    /// Whether panels are so short that C is most of the work, and fit into the L1 cache together.
    pub short_panels: bool,
    pub block_rows: usize,
    pub block_columns: usize,
    /// Whether B needs no panels of its own.
    pub packed_b: bool,
    /// Whether rows of A may be rows of cells as they are.
    pub in_place: bool,
    pub tiles_down: usize,
    /// Whether the panels of a tile's columns for all of K are kept for the next piece.
    pub keeps: bool,
    /// Items of the region.
    pub items: usize,
}

/// Division by a power of two, which all numbers of a set are except for those of rows. For small products a plan costs
/// as much as the tiles, and most of that would be divisions.
fn shifted(number: usize, by: usize) -> usize {
    debug_assert!(by.is_power_of_two());
    number >> by.trailing_zeros()
}

/// Numbers along K of a K block, and the number of K blocks: at least one, so that with K = 0 there are sums, zeros.
pub fn stretches(k: usize, set: &MicroKernelSet) -> (usize, usize) {
    let unit = set.depth * set.step;
    let most = shifted(BYTES_OF_PANEL / CELL, set.columns) * set.depth;
    if k <= most {
        return ((k + unit - 1) & !(unit - 1), 1);
    }
    let depth = k.div_ceil(k.div_ceil(most).max(1)).next_multiple_of(unit);
    // Rounding up the others may have made the last one superfluous.
    (depth, if k == 0 { 1 } else { k.div_ceil(depth) })
}

impl Int8Plan {
    pub fn new(product: &Int8Product<'_>, isa: Isa) -> Int8Plan {
        Int8Plan::with(product, sets::of(isa))
    }

    pub fn with(product: &Int8Product<'_>, set: &'static MicroKernelSet) -> Int8Plan {
        let (m, n) = (product.m, product.n);
        let k = if product.rule.alpha == 0.0 { 0 } else { product.k };
        let (depth, stretches) = stretches(k, set);
        let cells = shifted(depth, set.depth).max(1);
        let block = |bytes_of_all: usize, cells: usize, step: usize, most: usize| {
            let all = most.next_multiple_of(step);
            if all <= MAX_BLOCK && all * cells * CELL <= bytes_of_all {
                return all;
            }
            (bytes_of_all / (cells * CELL)).clamp(step, MAX_BLOCK).min(all) / step * step
        };
        let block_rows = block(BYTES_OF_A, cells, set.rows, m);
        let nested = stretches > 1 && m > block_rows && (product.packed_b.is_some() || k <= MAX_NESTED);
        let together = if nested && product.packed_b.is_none() { stretches } else { 1 };
        let block_columns = block(BYTES_OF_B, together * cells, set.columns, n);
        let tiles_down = m.div_ceil(TILE.0);
        let (way, holds_a) = way(product, set, k);
        let mut plan = Int8Plan {
            set,
            way,
            holds_a,
            depth,
            stretches,
            stashes: stretches > 1 && !(product.rule.is_plain() && k <= SHORT),
            nested,
            short_panels: cells <= SHORT_PANEL && cells * CELL * block_columns <= BYTES_OF_PANEL,
            block_rows,
            block_columns,
            packed_b: product.packed_b.is_some(),
            in_place: set.depth == CELL && !product.transpose_a && !product.signed_a,
            tiles_down,
            keeps: false,
            items: match way {
                Int8Algorithm::Blocks => tiles_down * n.div_ceil(TILE.1),
                Int8Algorithm::Thin(way) => n.div_ceil(way.columns),
                Int8Algorithm::Dots(_) => (if holds_a { n } else { m }).div_ceil(dots::STREAMS),
            },
        };
        let room = stretches * plan.kept_of_stretch() * CELL;
        plan.keeps = tiles_down > 1 && !plan.stashes && !plan.packed_b && room <= BYTES_OF_B;
        plan
    }

    /// Cells of the panels of a tile's columns for one K block.
    pub fn kept_of_stretch(&self) -> usize {
        shifted(TILE.1, self.set.columns) * pitch(self.cells(), self.set.columns)
    }

    fn cells(&self) -> usize {
        shifted(self.depth, self.set.depth)
    }

    /// Bytes of a packed row of A.
    pub fn stride_of_a(&self) -> usize {
        self.cells() * CELL + ROUND
    }

    /// Bytes of scratch memory for each slot.
    pub fn bytes(&self, product: &Int8Product<'_>) -> usize {
        let &Int8Product { m, n, k, .. } = product;
        match self.way {
            Int8Algorithm::Blocks => self.room().bytes,
            Int8Algorithm::Thin(way) => thin::bytes(m, k, n, self.set.depth, way.columns),
            Int8Algorithm::Dots(way) => dots::bytes(if self.holds_a { m } else { n }, k, way.step, self.set.depth),
        }
    }

    pub fn room(&self) -> ScratchLayout {
        let mut end = 0;
        let mut next = |bytes: usize| {
            let begin = end;
            end = (begin + bytes).next_multiple_of(ALIGNMENT);
            begin
        };
        let sums = if self.stashes { self.block_rows * self.block_columns } else { 0 };
        let panels_of_b = if self.packed_b { 0 } else { shifted(self.block_columns, self.set.columns) };
        let cells_of_b = panels_of_b * pitch(self.cells(), self.set.columns);
        let places = if self.nested { self.stretches } else { 1 };
        let kept = if self.keeps { self.stretches } else { 0 };
        ScratchLayout {
            b: next((places * cells_of_b).max(kept * self.kept_of_stretch()) * CELL),
            cells_of_b,
            a: next(self.block_rows * self.stride_of_a()),
            row_terms: next(self.block_rows * size_of::<i32>()),
            column_terms: next((places * self.block_columns).max(kept * TILE.1) * size_of::<i32>()),
            sums: next(sums * size_of::<i64>()),
            bytes: end,
        }
    }
}

impl Int8Product<'_> {
    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self, isa: Isa) -> usize {
        let plan = Int8Plan::new(self, isa);
        let low = match plan.way {
            Int8Algorithm::Blocks => sets::low(isa).map_or(0, |set| Int8Plan::with(self, set).bytes(self)),
            _ => 0,
        };
        plan.bytes(self).max(low)
    }
}

/// Whether B is in memory rather than in a near cache.
pub fn is_far(product: &Int8Product<'_>) -> bool {
    product.k.saturating_mul(product.n) > FAR
}

/// The algorithm for a product with this K, and whether it holds A.
fn way(product: &Int8Product<'_>, set: &MicroKernelSet, k: usize) -> (Int8Algorithm, bool) {
    let &Int8Product { m, n, transpose_a, transpose_b, packed_b, .. } = product;
    let blocks = (Int8Algorithm::Blocks, false);
    if k == 0 || k > SHORT {
        return blocks;
    }
    if let Some(packed) = packed_b {
        return match set.dots {
            Some(dots) if !transpose_a && m > n && packed.columns().is_some() => (Int8Algorithm::Dots(dots), false),
            _ => blocks,
        };
    }
    let thin_rows = if is_far(product) { thin::MAX_ROWS_FAR } else { thin::MAX_ROWS };
    match (set.dots, set.thin) {
        (Some(dots), _) if transpose_b && m <= dots.most_rows(k) && n >= m => (Int8Algorithm::Dots(dots), true),
        (Some(dots), _) if !transpose_a && n <= dots::MAX_COLUMNS && m > n => (Int8Algorithm::Dots(dots), false),
        (_, Some(thin)) if !transpose_b && m <= thin_rows && n > m => (Int8Algorithm::Thin(thin), false),
        _ => blocks,
    }
}

/// The layout of a slot's scratch memory.
#[derive(Clone, Copy)]
pub struct ScratchLayout {
    pub b: usize,
    /// Cells of the panels of one K block.
    pub cells_of_b: usize,
    pub a: usize,
    pub row_terms: usize,
    pub column_terms: usize,
    pub sums: usize,
    pub bytes: usize,
}
