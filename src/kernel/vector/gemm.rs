//! The matrix product C = alpha * A * B + beta * C in f32, with a bias and a rectifier on request.
//!
//! C is cut into tiles, numbered down the columns: a tile is `tile_rows` x `tile_columns` elements, and a piece of
//! the region is a run of tiles, that is some rows of a block of columns, all rows of the next, and so on. For each
//! block of columns and each stretch of K a piece copies B into panels of as many columns as a micro-kernel takes,
//! which then lie in the second-level cache while the rows of A go by:
//!
//! ```text
//! for each block of columns of the piece
//!     for each stretch of K                         in order
//!         pack B: stretch x block of columns
//!         for each `rows` rows of A                 they stay in the first-level cache
//!             for each panel of B: micro-kernel
//!             after the last stretch: bias, rectifier
//! ```
//!
//! Same bits: a stretch's length depends on K alone, and the micro-kernels compute an element the same way wherever
//! it lies (`micro`). So an element depends on its row of A, its column of B and K, and on nothing else: not on M,
//! N, the cut, the pool or what is packed.
//!
//! The first stretch scales the old C, the others add to what is there: alpha and beta cost no pass of their own.
//!
//! A region may hold several products of one shape (`Batch`): the tiles of all, one product after the other. And B need
//! not be a matrix: it may lie in panels already (`Panels`), or be gathered when a panel is filled (`Gather`).
//!
//! The panels lie in the slot's scratch memory. Nothing is allocated.

use super::activation::Activation;
use super::finish::Finish;
use super::micro::{MicroKernels, Scale, Strided};
use super::pack;
use super::panels::Panels;
use super::site::{Matrix, MatrixMut, Site};
use crate::base::Result;
use crate::threadpool::Span;
use std::ops::Range;

/// Longest stretch of K.
const MAX_DEPTH: usize = 512;
/// Largest tile; the smaller dimensions are for small matrices. All are whole micro-tiles of every instruction set.
const MAX_TILE: (usize, usize) = (48, 256);
const MIN_TILE: (usize, usize) = (12, 64);
/// As many tiles are enough for any pool.
const ENOUGH_TILES: usize = 64;
/// With fewer rows than this copying B costs more than it gains.
const PACK_ROWS: usize = 48;

/// Sizes of a product and how its operands lie.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// A is [K, M].
    pub transpose_a: bool,
    /// B is [N, K].
    pub transpose_b: bool,
}

/// A product to compute.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    pub shape: Shape,
    /// [M, K], or [K, M] if it is transposed.
    pub a: Matrix<'a, f32>,
    /// [K, N], or [N, K] if it is transposed.
    pub b: Matrix<'a, f32>,
    /// With an alpha of zero A and B are not read, with a beta of zero C is not.
    pub scale: Scale,
    pub bias: Option<&'a [f32]>,
    pub relu: bool,
}

/// Where B comes from.
#[derive(Clone, Copy)]
pub enum Right<'a> {
    /// [K, N], or [N, K] if it is transposed.
    Matrix(Matrix<'a, f32>),
    /// Packed before, for the same K, N and micro-kernels.
    Panels(&'a Panels),
    /// Copied from where its elements are; with the number that the source knows it by.
    Gather(&'a dyn Gather, usize),
}

/// A matrix whose elements are found when they are needed.
pub trait Gather: Sync {
    /// Fills rows that are `stride` apart in `panel` with the elements of rows `depth` and of `columns`.
    fn fill(&self, number: usize, depth: Range<usize>, columns: Range<usize>, panel: &mut [f32], stride: usize);
}

/// The operands of one product of a batch.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    pub a: Matrix<'a, f32>,
    pub b: Right<'a>,
    pub c: MatrixMut<'a, f32>,
    pub finish: Finish<'a>,
}

/// Products of one shape, none of which writes what another reads or writes.
pub struct Batch<'a> {
    pub shape: Shape,
    pub count: usize,
    pub scale: Scale,
    /// Those of product `number`; they fit the shape.
    pub operands: &'a (dyn Fn(usize) -> Operands<'a> + Sync),
}

/// How a product is cut. Depends on the sizes (and the instruction set) only.
#[derive(Clone, Copy, Debug)]
struct Cut {
    depth: usize,
    stretches: usize,
    tile_rows: usize,
    tile_columns: usize,
    /// Tiles in a block of columns.
    tiles_down: usize,
    tiles: usize,
}

impl Cut {
    fn new(shape: &Shape, count: usize) -> Cut {
        let Shape { m, n, k, .. } = *shape;
        let (depth, stretches) = stretches(k);
        let (mut tile_rows, mut tile_columns) = MAX_TILE;
        let tiles = |rows, columns| m.div_ceil(rows) * n.div_ceil(columns);
        let enough = ENOUGH_TILES.div_ceil(count.max(1));
        while tile_columns > MIN_TILE.1 && tiles(tile_rows, tile_columns) < enough {
            tile_columns /= 2;
        }
        while tile_rows > MIN_TILE.0 && tiles(tile_rows, tile_columns) < enough {
            tile_rows /= 2;
        }
        let tiles_down = m.div_ceil(tile_rows);
        Cut { depth, stretches, tile_rows, tile_columns, tiles_down, tiles: tiles(tile_rows, tile_columns) }
    }

    /// Floats of scratch memory for the panels of B.
    fn floats_of_b(&self, n: usize, micro: &MicroKernels) -> usize {
        self.depth * self.tile_columns.min(n).next_multiple_of(micro.width)
    }
}

impl Shape {
    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes_with(&MicroKernels::best())
    }

    pub(super) fn scratch_bytes_with(&self, micro: &MicroKernels) -> usize {
        self.scratch_bytes_of(1, micro)
    }

    /// The same for a batch of `count` products.
    pub fn batch_scratch_bytes(&self, count: usize) -> usize {
        self.scratch_bytes_of(count, &MicroKernels::best())
    }

    fn scratch_bytes_of(&self, count: usize, micro: &MicroKernels) -> usize {
        let cut = Cut::new(self, count);
        (cut.floats_of_b(self.n, micro) + cut.depth * micro.rows) * size_of::<f32>()
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

/// Computes `product` into `c`, which is [M, N], in a region of `site`, which has `Shape::scratch_bytes` per slot.
pub fn compute(product: &Product<'_>, c: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    compute_with(MicroKernels::best(), product, c, site)
}

pub(super) fn compute_with(
    micro: MicroKernels,
    product: &Product<'_>,
    c: MatrixMut<'_, f32>,
    site: &dyn Site,
) -> Result<()> {
    let activation = if product.relu { Activation::Relu } else { Activation::None };
    let finish = Finish { columns: product.bias, activation, ..Finish::default() };
    let operands = Operands { a: product.a, b: Right::Matrix(product.b), c, finish };
    let batch = Batch { shape: product.shape, count: 1, scale: product.scale, operands: &|_| operands };
    compute_batch_with(micro, &batch, site)
}

/// Computes a batch in a region of `site`, which has `Shape::batch_scratch_bytes` per slot.
pub fn compute_batch(batch: &Batch<'_>, site: &dyn Site) -> Result<()> {
    compute_batch_with(MicroKernels::best(), batch, site)
}

pub(super) fn compute_batch_with(micro: MicroKernels, batch: &Batch<'_>, site: &dyn Site) -> Result<()> {
    let Batch { mut shape, count, mut scale, operands } = *batch;
    if scale.alpha == 0.0 {
        shape.k = 0;
    }
    if shape.k == 0 {
        // Not read, but multiplied with the sum of nothing: a NaN would spread from here.
        scale.alpha = 0.0;
    }
    let cut = Cut::new(&shape, count);
    let tiles = cut.tiles * count;
    if tiles == 0 {
        return Ok(());
    }
    let cost_ns = shape.cost_ns() as f32 / cut.tiles as f32;
    let span = Span { items: tiles, cost_ns, ..Span::default() };
    site.parallel_for(&span, &|claim| {
        let panels = site.scratch(claim.slot()).cast::<f32>();
        assert!(claim.end() <= tiles);
        let mut tile = claim.begin();
        while tile < claim.end() {
            let (number, first) = (tile / cut.tiles, tile % cut.tiles);
            let end = cut.tiles.min(first + claim.end() - tile);
            let operands = operands(number);
            operands.check(&batch.shape, &micro);
            let c_stride = operands.c.stride();
            let c = operands.c.data();
            let piece = Piece { shape, scale, operands, cut: &cut, micro: &micro, panels, c, c_stride };
            // SAFETY: the sizes were compared. No other claim has these tiles or this slot (Claim), and the slot's
            // memory is as large as `scratch_bytes` asked for.
            unsafe { piece.run(first..end) };
            tile += end - first;
        }
        Ok(())
    })
}

impl Operands<'_> {
    /// Compares all sizes.
    fn check(&self, shape: &Shape, micro: &MicroKernels) {
        let Shape { m, n, k, transpose_a, transpose_b } = *shape;
        let b = match self.b {
            Right::Matrix(b) => b.holds(k, n, transpose_b),
            Right::Panels(panels) => panels.holds(k, n, micro.width),
            Right::Gather(..) => true,
        };
        assert!(self.a.holds(m, k, transpose_a) && b && self.c.holds(m, n) && self.finish.fits(m, n), "{shape:?}");
    }
}

/// Longest stretch of K, and how many there are: of K alone, and at least one, so that without K the result is zero,
/// plus the bias.
pub(super) fn stretches(k: usize) -> (usize, usize) {
    let count = k.div_ceil(MAX_DEPTH).max(1);
    (k.div_ceil(count), count)
}

/// One piece at work.
struct Piece<'a> {
    shape: Shape,
    scale: Scale,
    operands: Operands<'a>,
    cut: &'a Cut,
    micro: &'a MicroKernels,
    /// The slot's scratch memory: panels of B, then one of A.
    panels: *mut f32,
    c: *mut f32,
    c_stride: usize,
}

/// A stretch of K.
#[derive(Clone, Copy)]
struct Stretch {
    begin: usize,
    depth: usize,
    first: bool,
    last: bool,
}

/// # Safety
/// For all functions: `panels` has the scratch memory of the product and `c` the size of its result; nobody else
/// uses the panels or the claimed tiles meanwhile; rows and columns are of claimed tiles.
impl Piece<'_> {
    unsafe fn run(&self, tiles: Range<usize>) {
        let Shape { m, n, .. } = self.shape;
        let Cut { tile_rows, tile_columns, tiles_down, .. } = *self.cut;
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (block, down) = (tile / tiles_down, tile % tiles_down);
            let count = (tiles_down - down).min(tiles.end - tile);
            let rows = down * tile_rows..((down + count) * tile_rows).min(m);
            let columns = block * tile_columns..((block + 1) * tile_columns).min(n);
            // SAFETY: the rows and columns of claimed tiles, inside C.
            unsafe { self.block(&rows, &columns) };
            tile += count;
        }
    }

    /// Rows of one block of columns.
    unsafe fn block(&self, rows: &Range<usize>, columns: &Range<usize>) {
        for number in 0..self.cut.stretches {
            let begin = number * self.cut.depth;
            let depth = self.cut.depth.min(self.shape.k - begin);
            let stretch = Stretch { begin, depth, first: number == 0, last: number + 1 == self.cut.stretches };
            let pack = match self.operands.b {
                Right::Matrix(_) => Some(self.shape.transpose_b || rows.len() > PACK_ROWS),
                Right::Gather(..) => Some(true),
                Right::Panels(_) => None,
            };
            for (index, panel) in parts(columns, self.micro.width).enumerate() {
                let Some(pack) = pack else { break };
                if pack || panel.len() % self.micro.lanes != 0 {
                    // SAFETY: passed on; there are as many panels in a block as the scratch memory has room for.
                    unsafe { self.pack_b(stretch, &panel, index) };
                }
            }
            for rows in parts(rows, self.micro.rows) {
                // SAFETY: passed on.
                unsafe { self.row_of_tiles(stretch, &rows, columns, pack.unwrap_or(true)) };
            }
        }
    }

    /// As many rows as a micro-tile has, all columns of the block, one stretch of K.
    unsafe fn row_of_tiles(&self, stretch: Stretch, rows: &Range<usize>, columns: &Range<usize>, packed: bool) {
        let scale = Scale { beta: if stretch.first { self.scale.beta } else { 1.0 }, ..self.scale };
        // SAFETY: rows are inside A and C, columns inside B and C. A micro-kernel reads whole vectors of B: what is no
        // whole vector wide was packed, and then filled up with zeros.
        unsafe {
            let a = self.operand_a(stretch, rows);
            for (index, panel) in parts(columns, self.micro.width).enumerate() {
                let b = match self.operands.b {
                    Right::Panels(panels) => {
                        let data = panels.at(stretch.begin, stretch.depth, panel.start);
                        Strided { data, depth: self.micro.width, across: 1 }
                    }
                    Right::Matrix(b) if !packed && panel.len() % self.micro.lanes == 0 => {
                        Strided { data: b.at(stretch.begin, panel.start), depth: b.stride(), across: 1 }
                    }
                    _ => Strided { data: self.panel_of_b(index), depth: self.micro.width, across: 1 },
                };
                let c = self.c.add(rows.start * self.c_stride + panel.start);
                self.micro.multiply(rows.len(), panel.len(), stretch.depth, a, b, c, self.c_stride, scale);
            }
        }
        if stretch.last && !self.operands.finish.is_nothing() {
            for row in rows.clone() {
                // SAFETY: a part of a row of claimed tiles, which the micro-kernels have written.
                let part = unsafe {
                    std::slice::from_raw_parts_mut(self.c.add(row * self.c_stride + columns.start), columns.len())
                };
                self.operands.finish.part_of_row(self.micro.isa, row, columns.start, part);
            }
        }
    }

    /// The rows of A for a micro-kernel: where they are if it reads them well there, else copied into the panel of A.
    unsafe fn operand_a(&self, stretch: Stretch, rows: &Range<usize>) -> Strided {
        let Shape { n, transpose_a, .. } = self.shape;
        let a = self.operands.a;
        // SAFETY: rows and stretch are inside A; the panel of A has the longest stretch times the most rows.
        unsafe {
            if transpose_a {
                return Strided { data: a.at(stretch.begin, rows.start), depth: a.stride(), across: 1 };
            }
            let data = a.at(rows.start, stretch.begin);
            if !self.micro.packs_a {
                return Strided { data, depth: 1, across: a.stride() };
            }
            let (panel, stride) = (self.panels.add(self.cut.floats_of_b(n, self.micro)), self.micro.rows);
            pack::columns(data, a.stride(), (stretch.depth, rows.len(), rows.len()), panel, stride);
            Strided { data: panel, depth: stride, across: 1 }
        }
    }

    /// Copies some columns of B, at most a panel's width, into a panel.
    unsafe fn pack_b(&self, stretch: Stretch, columns: &Range<usize>, index: usize) {
        let padded = columns.len().next_multiple_of(self.micro.lanes);
        let size = (stretch.depth, columns.len(), padded);
        let stride = self.micro.width;
        // SAFETY: columns and stretch are inside B; the panel has the longest stretch times its width.
        unsafe {
            let panel = self.panel_of_b(index);
            match self.operands.b {
                Right::Matrix(b) if self.shape.transpose_b => {
                    pack::columns(b.at(columns.start, stretch.begin), b.stride(), size, panel, stride);
                }
                Right::Matrix(b) => pack::rows(b.at(stretch.begin, columns.start), b.stride(), size, panel, stride),
                Right::Gather(source, number) => {
                    let panel = std::slice::from_raw_parts_mut(panel, stretch.depth * stride);
                    let depth = stretch.begin..stretch.begin + stretch.depth;
                    source.fill(number, depth, columns.clone(), panel, stride);
                    let padding = columns.len()..padded;
                    panel.chunks_exact_mut(stride).for_each(|row| row[padding.clone()].fill(0.0));
                }
                Right::Panels(_) => {}
            }
        }
    }

    unsafe fn panel_of_b(&self, index: usize) -> *mut f32 {
        // SAFETY: as demanded of the caller; a block of columns has no more panels than the scratch memory.
        unsafe { self.panels.add(index * self.cut.depth * self.micro.width) }
    }
}

/// Cuts a range into parts of `size`, the last one maybe smaller.
fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..(begin + size).min(end))
}
