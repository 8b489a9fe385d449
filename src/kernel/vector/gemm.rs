//! The matrix product C = alpha * A * B + beta * C in f32, with an epilogue on request.
//!
//! C is divided into tiles, numbered down the columns: a tile is `tile_rows` x `tile_columns` elements, and a piece of
//! the region is a run of tiles: some rows of a block of columns, all rows of the next, and so on. For each block of
//! columns and each K block a piece packs B into panels as wide as a micro-kernel, which stay in the L2 cache while the
//! rows of A pass:
//!
//! ```text
//! for each block of columns of the piece
//!     for each K block                              in order
//!         pack B: K block x block of columns
//!         for each `rows` rows of A                 they stay in the L1 cache
//!             for each panel of B: micro-kernel
//!             after the last K block: epilogue
//! ```
//!
//! Determinism: the length of a K block depends only on K, and the micro-kernels compute an element the same way in
//! every position (`micro`). So an element depends only on its row of A, its column of B and K: not on M, N, the
//! division, the pool or packing.
//!
//! The first K block scales the old C, the others accumulate: alpha and beta need no pass of their own.
//!
//! A region may hold several products of one shape (`GemmBatch`): the tiles of all, one product after the other. B may
//! also be packed already (`Panels`).
//!
//! The panels lie in the slot's scratch memory. Nothing is allocated.

use super::activation::Activation;
use super::column;
use super::finish::ProductEpilogue;
use super::held::HeldPanels;
use super::micro::MicroKernels;
use super::pack::stretches;
use super::piece::GemmPiece;
use super::product::Tiling;
pub use super::product::{GemmBatch, GemmProduct, GemmShape, OperandB, Operands};
use super::site::{MatrixMut, Site, check_scratch};
use super::step::LINE;
use super::thin;
use crate::base::Result;
use crate::threadpool::{MAX_SLOTS, Span};

/// Rows of the largest tile, and columns of the largest block.
const MAX_TILE: (usize, usize) = (48, 256);
/// The smallest tile, for small matrices: whole micro-tiles of every instruction set.
const MIN_TILE: (usize, usize) = (12, 64);
/// Enough tiles for any pool.
const ENOUGH_TILES: usize = 64;
/// Maximum floats in the panels of a tile's columns for all of K, if they are kept from piece to piece.
const MAX_KEPT: usize = 192 << 10;
impl Tiling {
    fn new(shape: &GemmShape, count: usize, micro: &MicroKernels) -> Tiling {
        let GemmShape { m, n, k, .. } = *shape;
        let (depth, stretches) = stretches(k);
        // Half of the L2 cache; the other one is for A and C, or for those who share the cache.
        let block_columns = micro.caches.floats_of_l2(2) / depth.max(1) / MIN_TILE.1 * MIN_TILE.1;
        let block_columns = block_columns.clamp(MIN_TILE.1, MAX_TILE.1);
        let (mut tile_rows, mut tile_columns) = (MAX_TILE.0, block_columns);
        let tiles = |rows, columns| m.div_ceil(rows) * n.div_ceil(columns);
        let enough = ENOUGH_TILES.div_ceil(count.max(1));
        while tile_columns > MIN_TILE.1 && tiles(tile_rows, tile_columns) < enough {
            tile_columns /= 2;
        }
        while tile_rows > MIN_TILE.0 && tiles(tile_rows, tile_columns) < enough {
            tile_rows /= 2;
        }
        // About as many columns in each tile.
        let even = n.div_ceil(n.div_ceil(tile_columns).max(1)).next_multiple_of(micro.width);
        tile_columns = tile_columns.min(even);
        let (tiles_down, across) = (m.div_ceil(tile_rows), n.div_ceil(tile_columns.max(1)));
        let mut cut = Tiling {
            depth,
            stretches,
            block_columns,
            tile_rows,
            tile_columns,
            tiles_down,
            across,
            keeps: false,
            tiles: tiles_down * across,
        };
        cut.keeps = tiles_down > 1 && cut.floats_kept(n, micro) <= MAX_KEPT;
        cut
    }

    /// Floats of the panels of a tile's columns for all of K.
    fn floats_kept(&self, n: usize, micro: &MicroKernels) -> usize {
        let columns = self.tile_columns.min(n).next_multiple_of(micro.width);
        self.stretches.saturating_mul(self.depth).saturating_mul(columns)
    }

    /// Floats of scratch memory for the panels of B, or for the accumulators of few rows.
    pub fn floats_of_b(&self, m: usize, n: usize, micro: &MicroKernels) -> usize {
        let panels = self.depth * self.block_columns.min(n).next_multiple_of(micro.width);
        // More rows, or a larger K, need no more.
        let kept = self.floats_kept(n, micro).min(MAX_KEPT);
        panels.max(kept).max(thin::floats(m, n))
    }
}

impl Tiling {
    /// Scratch memory per slot.
    fn scratch_bytes(&self, shape: &GemmShape, micro: &MicroKernels) -> usize {
        (self.floats_of_b(shape.m, shape.n, micro) + (self.depth + 2 * LINE) * micro.rows_of(1)) * size_of::<f32>()
    }
}

impl GemmShape {
    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes_with(&MicroKernels::best())
    }

    pub(super) fn scratch_bytes_with(&self, micro: &MicroKernels) -> usize {
        self.scratch_bytes_of(1, micro)
    }

    /// Scratch memory for a batch of `count` products, per slot, in bytes.
    pub fn batch_scratch_bytes(&self, count: usize) -> usize {
        self.scratch_bytes_of(count, &MicroKernels::best())
    }

    pub(super) fn scratch_bytes_of(&self, count: usize, micro: &MicroKernels) -> usize {
        let of = |shape: &GemmShape| {
            let cut = Tiling::new(shape, count, micro);
            cut.scratch_bytes(shape, micro)
        };
        if self.n == 1 { of(self).max(of(&self.turned())) } else { of(self) }
    }

    /// The transposed product: C^T = B^T * A^T.
    fn turned(&self) -> GemmShape {
        let GemmShape { m, n, k, transpose_a, transpose_b } = *self;
        GemmShape { m: n, n: m, k, transpose_a: !transpose_b, transpose_b: !transpose_a }
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self) -> u64 {
        // 50 GFLOP/s with vectors, 4 without; 10 GB/s.
        let rate = if MicroKernels::best().lanes > 1 { 50.0 } else { 4.0 };
        let [m, n, k] = [self.m, self.n, self.k].map(|size| size as f64);
        let operations = 2.0 * m * n * k;
        let bytes = 4.0 * (m * k + k * n + m * n);
        (operations / rate + bytes / 10.0) as u64
    }
}

/// Computes `product` into `c`, which is [M, N], in a region of `site`, which has `GemmShape::scratch_bytes` per slot.
pub fn compute(product: &GemmProduct<'_>, c: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    compute_with(MicroKernels::best(), product, c, site)
}

pub(super) fn compute_with(
    micro: MicroKernels,
    product: &GemmProduct<'_>,
    c: MatrixMut<'_, f32>,
    site: &dyn Site,
) -> Result<()> {
    let activation = if product.relu { Activation::RELU } else { Activation::NONE };
    let finish = ProductEpilogue { columns: product.bias, activation, ..ProductEpilogue::default() };
    let operands = Operands { a: product.a, b: OperandB::Matrix(product.b), finish };
    let batch = GemmBatch { shape: product.shape, count: 1, scale: product.scale, operands: &|_| operands };
    compute_batch_with(micro, &batch, c, site)
}

/// Computes a batch into `c`, one result below the other, in a region of `site`, which has
/// `GemmShape::batch_scratch_bytes` per slot.
pub fn compute_batch(batch: &GemmBatch<'_>, c: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    compute_batch_with(MicroKernels::best(), batch, c, site)
}

pub(super) fn compute_batch_with(
    micro: MicroKernels,
    batch: &GemmBatch<'_>,
    c: MatrixMut<'_, f32>,
    site: &dyn Site,
) -> Result<()> {
    let GemmBatch { mut shape, count, mut scale, operands } = *batch;
    if scale.alpha == 0.0 {
        shape.k = 0;
    }
    if shape.k == 0 {
        // A and B are not read, but alpha times the empty sum would be NaN if alpha is not finite.
        scale.alpha = 0.0;
    }
    if let Some(done) = column::compute(micro.isa, &GemmBatch { shape, count, scale, operands }, &c, site) {
        return done;
    }
    // Otherwise a single column would leave all SIMD lanes but one idle; as a row of C^T it fills them.
    let turned = shape.n == 1 && shape.m > 1 && count > 0 && c.stride() == 1 && operands(0).can_turn();
    if turned {
        shape = shape.turned();
    }
    let whole = if turned { batch.shape.turned() } else { batch.shape };
    let cut = Tiling::new(&shape, count, &micro);
    let tiles = cut.tiles * count;
    if tiles == 0 {
        return Ok(());
    }
    check_scratch(site, cut.scratch_bytes(&shape, &micro));
    let cost_ns = shape.cost_ns() as f32 / cut.tiles as f32;
    // With few rows B is read in runs as long as a piece is wide.
    let span = Span { items: tiles, cost_ns, coarse: shape.m <= thin::ROWS || !cut.keeps, ..Span::default() };
    let held = [const { HeldPanels::new() }; MAX_SLOTS];
    site.parallel_for(&span, &|claim| {
        let (panels, held) = (site.scratch(claim.slot()).cast::<f32>(), &held[claim.slot()]);
        assert!(claim.end() <= tiles);
        let mut tile = claim.begin();
        while tile < claim.end() {
            let (number, first) = (tile / cut.tiles, tile % cut.tiles);
            let end = cut.tiles.min(first + claim.end() - tile);
            let mut operands = operands(number);
            // SAFETY: only tiles of this claim are written through it.
            let mut c = unsafe { c.one_of(number, count) };
            if turned {
                (operands, c) = (operands.turned(), c.as_row());
            }
            operands.check(&whole, &c, &micro);
            let (c, c_stride) = (c.data(), c.stride());
            let piece =
                GemmPiece { shape, scale, operands, cut: &cut, micro: &micro, panels, number, held, c, c_stride };
            // SAFETY: the sizes were compared. No other claim has these tiles or this slot (Claim), and the slot's
            // memory is as large as `scratch_bytes` asked for.
            unsafe { piece.run(first..end) };
            tile += end - first;
        }
        Ok(())
    })
}

impl<'a> Operands<'a> {
    /// Whether the result, a column, can be computed as a row.
    fn can_turn(&self) -> bool {
        matches!(self.b, OperandB::Matrix(_)) && self.finish.turned().is_some()
    }

    /// The operands of the transposed product.
    fn turned(self) -> Operands<'a> {
        let (OperandB::Matrix(b), Some(finish)) = (self.b, self.finish.turned()) else { return self };
        Operands { a: b, b: OperandB::Matrix(self.a), finish }
    }

    /// Compares all sizes.
    fn check(&self, shape: &GemmShape, c: &MatrixMut<'_, f32>, micro: &MicroKernels) {
        let GemmShape { m, n, k, transpose_a, transpose_b } = *shape;
        let b = match self.b {
            OperandB::Matrix(b) => b.holds(k, n, transpose_b),
            OperandB::Panels(panels) => panels.holds(k, n, micro.width),
        };
        assert!(self.a.holds(m, k, transpose_a) && b && c.holds(m, n) && self.finish.fits(m, n), "{shape:?}");
    }
}
