//! 16-bit float matrix product: A and B of f16 or bf16, f32 accumulators, C of the same type or f32.
//!
//! C is divided into tiles. A tile is computed on its own: for each K block its parts of A and B are converted to f32,
//! B in packed panels, in the slot's scratch memory; the f32 micro-kernels accumulate the products there; finally each
//! row goes through the epilogue and to C, rounded once. Packed weights are panels of 16-bit floats, which are
//! converted in registers (`thin`).
//!
//! Determinism: an element is the sum of its K blocks from the first one on, and each is the chain of its products in
//! the order of K. So it is in every tile, of whatever kind.

mod thin;

use super::activation::{self, Activation};
use super::convert::{self, Stored};
use super::gemm::GemmShape;
use super::levels::{self, LevelLoop};
use super::micro::{From, MicroKernels, MicroTile, RowsAhead, Scale, Strided, TileEpilogue};
use super::pack;
use super::pack::stretches;
use super::panels::Panels;
use super::site::{Matrix, MatrixMut, Site, check_scratch};
use crate::base::Result;
use crate::threadpool::Span;
use std::ops::Range;
use thin::{PanelHalves, ThinHalves};

/// Rows and columns of tiles, and the time that is to be in one, in nanoseconds: the first that give so many, or
/// `MANY`, are taken. Narrow tiles convert A more often, and flat ones B. All are whole micro-tiles of every
/// instruction set.
const TILES: [(usize, usize, f32); 3] = [(144, 192, 5e4), (144, 64, 1e5), (48, 64, 5e4)];
/// For smaller products.
const FLAT: (usize, usize) = (12, 64);
/// The time beside that of a product of f32.
const HALVES: f32 = 1.2;
/// Enough tiles for any pool.
const MANY: f32 = 64.0;
/// So few read B as it is; and so few that do not convert B are tiles of their own kind.
const THIN_ROWS: usize = 4;
const FEW_ROWS: usize = 24;

/// The source of B.
#[derive(Clone, Copy)]
pub enum HalvesB<'a, T> {
    /// [K, N], or [N, K] if it is transposed.
    Matrix(Matrix<'a, T>),
    Panels(&'a Panels<T>),
}

/// The operands of a product: C = activation(A B + bias of the column + addend), added in this order.
#[derive(Clone, Copy)]
pub struct HalvesOperands<'a, T, U> {
    pub a: Matrix<'a, T>,
    pub b: HalvesB<'a, T>,
    pub bias: Option<&'a [U]>,
    pub addend: Option<Matrix<'a, U>>,
    pub activation: Activation,
}

/// The division of products; depends only on their sizes.
#[derive(Clone, Copy)]
struct HalvesTiling {
    depth: usize,
    stretches: usize,
    rows: usize,
    columns: usize,
    down: usize,
    tiles: usize,
}

impl HalvesTiling {
    fn new(shape: &GemmShape, count: usize) -> HalvesTiling {
        let (depth, stretches) = stretches(shape.k);
        let number = |(rows, columns): (usize, usize)| shape.m.div_ceil(rows) * shape.n.div_ceil(columns);
        let cost_ns = HALVES * shape.cost_ns() as f32 * count as f32;
        let is_enough = |tile, ns: f32| (number(tile) * count) as f32 >= (cost_ns / ns).min(MANY);
        let mut tiles = TILES.into_iter().map(|(rows, columns, ns)| ((rows, columns), ns));
        let (rows, columns) = tiles.find(|&(tile, ns)| is_enough(tile, ns)).map_or(FLAT, |(tile, _)| tile);
        HalvesTiling { depth, stretches, rows, columns, down: shape.m.div_ceil(rows), tiles: number((rows, columns)) }
    }

    /// For few rows that read B where it lies, in long runs.
    fn few(shape: &GemmShape) -> HalvesTiling {
        let (depth, stretches) = stretches(shape.k);
        let columns = shape.n.div_ceil(8).next_multiple_of(64).clamp(192, 1024);
        HalvesTiling { depth, stretches, rows: shape.m, columns, down: 1, tiles: shape.n.div_ceil(columns) }
    }

    /// As `floats`: there are no panels, but the sums of the K blocks before.
    fn floats_in_place(&self) -> [usize; 5] {
        let sums = self.rows * self.columns;
        [if self.stretches > 1 { sums } else { 0 }, self.depth * self.rows, 0, sums, self.columns]
    }

    /// Floats of scratch memory: panels of B, rows of A, columns to be transposed, accumulators, a row.
    fn floats(&self, micro: &MicroKernels) -> [usize; 5] {
        let HalvesTiling { depth, rows, columns, .. } = *self;
        [depth * columns, depth * rows, depth * micro.width, rows * columns, columns]
    }
}

/// Scratch memory that `compute` needs per slot, in bytes.
pub fn scratch_bytes(shape: &GemmShape, count: usize) -> usize {
    let micro = MicroKernels::best();
    let floats = HalvesTiling::new(shape, count).floats(&micro).iter().sum::<usize>();
    let is_few = shape.m <= FEW_ROWS && multiplies_in_place(&micro, shape);
    let few = if is_few { HalvesTiling::few(shape).floats_in_place().iter().sum() } else { 0 };
    floats.max(few) * size_of::<f32>()
}

/// Whether packed panels, and for at most `THIN_ROWS` the rows of B, are multiplied where they lie.
fn multiplies_in_place(micro: &MicroKernels, shape: &GemmShape) -> bool {
    thin::is_there(micro.isa) && !shape.transpose_a
}

/// Computes `count` products of one shape into `c`, one result below the other.
pub fn compute<'a, T: Stored, U: Stored>(
    shape: &GemmShape,
    count: usize,
    operands: &(dyn Fn(usize) -> HalvesOperands<'a, T, U> + Sync),
    c: MatrixMut<'_, U>,
    site: &dyn Site,
) -> Result<()> {
    let (mut cut, micro) = (HalvesTiling::new(shape, count), MicroKernels::best());
    if cut.tiles * count == 0 {
        return Ok(());
    }
    let is_in_place = multiplies_in_place(&micro, shape)
        && match operands(0).b {
            HalvesB::Matrix(_) => !shape.transpose_b && shape.m <= THIN_ROWS,
            HalvesB::Panels(_) => true,
        };
    if is_in_place && shape.m <= FEW_ROWS {
        cut = HalvesTiling::few(shape);
    }
    let items = cut.tiles * count;
    let floats = if is_in_place { cut.floats_in_place() } else { cut.floats(&micro) };
    check_scratch(site, floats.iter().sum::<usize>() * size_of::<f32>());
    let cost_ns = HALVES * shape.cost_ns() as f32 / cut.tiles as f32;
    site.parallel_for(&Span { items, cost_ns, ..Span::default() }, &|claim| {
        // SAFETY: the slot's memory, which is as large as `scratch_bytes` requested; no other claim has this slot.
        let room = unsafe { std::slice::from_raw_parts_mut(site.scratch(claim.slot()).cast(), floats.iter().sum()) };
        let mut room = HalvesScratch::new(room, floats);
        assert!(claim.end() <= items);
        for item in claim.begin()..claim.end() {
            let (number, tile) = (item / cut.tiles, item % cut.tiles);
            let operands = operands(number);
            // SAFETY: only tiles of this claim are written through it.
            let c = unsafe { c.one_of(number, count) };
            operands.check(shape, &c, &micro);
            let (down, across) = (tile % cut.down * cut.rows, tile / cut.down * cut.columns);
            let rows = down..shape.m.min(down + cut.rows);
            let columns = across..shape.n.min(across + cut.columns);
            let tile = HalvesTile { shape, cut: &cut, is_in_place, micro: &micro, operands, c, rows, columns };
            // SAFETY: the operands fit; no other claim has the tile.
            unsafe { tile.compute(&mut room) };
        }
        Ok(())
    })
}

impl<T: Stored, U: Stored> HalvesOperands<'_, T, U> {
    fn check(&self, shape: &GemmShape, c: &MatrixMut<'_, U>, micro: &MicroKernels) {
        let GemmShape { m, n, k, transpose_a, transpose_b } = *shape;
        let b = match self.b {
            HalvesB::Matrix(b) => b.holds(k, n, transpose_b),
            HalvesB::Panels(panels) => panels.holds(k, n, micro.width),
        };
        let bias = self.bias.is_none_or(|bias| bias.len() == n);
        let addend = self.addend.is_none_or(|addend| addend.holds(m, n, false));
        assert!(self.a.holds(m, k, transpose_a) && b && c.holds(m, n) && bias && addend, "{shape:?}");
    }
}

struct AddSums<'a> {
    sums: &'a mut [f32],
    before: &'a [f32],
}

impl LevelLoop for AddSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.sums.iter_mut().zip(self.before).for_each(|(sum, before)| *sum += before);
    }
}

/// A slot's scratch memory.
struct HalvesScratch<'r> {
    b: &'r mut [f32],
    a: &'r mut [f32],
    turned: &'r mut [f32],
    sums: &'r mut [f32],
    row: &'r mut [f32],
}

impl<'r> HalvesScratch<'r> {
    fn new(room: &'r mut [f32], [b, a, turned, sums, _]: [usize; 5]) -> HalvesScratch<'r> {
        let (b, room) = room.split_at_mut(b);
        let (a, room) = room.split_at_mut(a);
        let (turned, room) = room.split_at_mut(turned);
        let (sums, row) = room.split_at_mut(sums);
        HalvesScratch { b, a, turned, sums, row }
    }
}

struct HalvesTile<'p, 'a, T, U> {
    shape: &'p GemmShape,
    cut: &'p HalvesTiling,
    is_in_place: bool,
    micro: &'p MicroKernels,
    operands: HalvesOperands<'a, T, U>,
    c: MatrixMut<'a, U>,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<T: Stored, U: Stored> HalvesTile<'_, '_, T, U> {
    /// # Safety
    /// The operands fit the shape; nothing else writes the tile.
    unsafe fn compute(&self, room: &mut HalvesScratch<'_>) {
        let HalvesTiling { depth, stretches, columns: stride, .. } = *self.cut;
        let (width, most) = (self.micro.width, self.micro.rows);
        let panels = || self.columns.clone().step_by(width).map(|first| first..self.columns.end.min(first + width));
        for number in 0..stretches {
            let begin = number * depth;
            let depth = begin..self.shape.k.min(begin + depth);
            if self.is_in_place {
                self.widen_a(&depth, room.a);
                if number > 0 {
                    room.b.copy_from_slice(room.sums);
                }
                room.sums.fill(0.0);
                // SAFETY: the level is supported, and B has these rows and columns.
                unsafe { self.add_thin(depth, room.a, room.sums) };
                if number > 0 {
                    levels::on(self.micro.isa, AddSums { sums: room.sums, before: room.b });
                }
                continue;
            }
            for (panel, to) in panels().zip(room.b.chunks_exact_mut((self.cut.depth * width).max(1))) {
                match self.operands.b {
                    HalvesB::Matrix(b) => self.pack_b(&b, &depth, &panel, room.turned, to),
                    HalvesB::Panels(panels) => {
                        let panel = panels.panels(begin, depth.len(), panel);
                        convert::widen(self.micro.isa, panel, &mut to[..panel.len()]);
                    }
                }
            }
            self.widen_a(&depth, room.a);
            let alpha = if self.shape.k == 0 { 0.0 } else { 1.0 };
            let scale = Scale { alpha, beta: if number == 0 { 0.0 } else { 1.0 } };
            for first in self.rows.clone().step_by(most) {
                let count = most.min(self.rows.end - first);
                let at = first - self.rows.start;
                // If K is 0 there is no A to point into.
                let (offset, steps) = match self.shape.transpose_a {
                    true => (at, (self.rows.len(), 1)),
                    false => (at * depth.len(), (1, depth.len())),
                };
                let data = room.a.as_ptr().wrapping_add(offset);
                let a = Strided { data, depth: steps.0, across: steps.1 };
                for (index, panel) in panels().enumerate() {
                    let data = room.b.as_ptr().wrapping_add(index * self.cut.depth * width);
                    let b = Strided { data, depth: width, across: 1 };
                    let c = room.sums[at * stride + panel.start - self.columns.start..].as_mut_ptr();
                    let (rows, columns, depth, from) = (count, panel.len(), depth.len(), From::Panel);
                    let epilogue = TileEpilogue::NOTHING;
                    let ahead = RowsAhead::behind(a, rows);
                    let tile =
                        MicroTile { rows, columns, depth, a, ahead, b, from, c, c_stride: stride, scale, epilogue };
                    // SAFETY: A's rows and B's panel were filled for this K block, B's up to whole vectors; the
                    // accumulators have `stride` columns, which include the panel's.
                    unsafe { self.micro.multiply(&tile) };
                }
            }
        }
        for row in self.rows.clone() {
            let sums = &mut room.sums[(row - self.rows.start) * stride..][..self.columns.len()];
            // SAFETY: passed on.
            unsafe { self.finish(row, sums, room.row) };
        }
    }

    /// Adds the products of the tile's few rows with a part of B, where that lies.
    ///
    /// # Safety
    /// The level has this, and B the shape.
    unsafe fn add_thin(&self, depth: Range<usize>, a: &[f32], sums: &mut [f32]) {
        let (isa, rows, pitch, columns) = (self.micro.isa, self.rows.len(), self.cut.columns, self.columns.clone());
        // SAFETY: passed on.
        unsafe {
            match self.operands.b {
                HalvesB::Matrix(b) => thin::add(isa, ThinHalves { rows, a, b, depth, columns, sums, pitch }),
                HalvesB::Panels(panels) => {
                    let (b, depth) = (panels.panels(depth.start, depth.len(), columns), depth.len());
                    thin::add_panels(isa, self.micro.width, PanelHalves { rows, a, b, depth, sums, pitch });
                }
            }
        }
    }

    /// Converts some columns of B, at most a panel's width, to f32, padded with zeros to whole vectors.
    fn pack_b(
        &self,
        b: &Matrix<'_, T>,
        depth: &Range<usize>,
        panel: &Range<usize>,
        turned: &mut [f32],
        to: &mut [f32],
    ) {
        let (isa, width) = (self.micro.isa, self.micro.width);
        let padded = panel.len().next_multiple_of(self.micro.lanes);
        if self.shape.transpose_b {
            for (j, to) in panel.clone().zip(turned.chunks_exact_mut(depth.len().max(1))) {
                convert::widen(isa, &b.row(j)[depth.clone()], to);
            }
            let size = (depth.len(), panel.len(), padded);
            assert!(turned.len() >= depth.len() * panel.len() && to.len() >= depth.len() * width);
            // SAFETY: both have room for so many rows of such lengths.
            return unsafe { pack::columns(isa, turned.as_ptr(), depth.len(), size, to.as_mut_ptr(), width) };
        }
        for (k, to) in depth.clone().zip(to.chunks_exact_mut(width)) {
            convert::widen(isa, &b.row(k)[panel.clone()], &mut to[..panel.len()]);
            to[panel.len()..padded].fill(0.0);
        }
    }

    /// The tile's rows of A, one after the other; its columns if A is transposed.
    fn widen_a(&self, depth: &Range<usize>, to: &mut [f32]) {
        let (a, isa) = (&self.operands.a, self.micro.isa);
        let (outer, inner) = if self.shape.transpose_a { (depth, &self.rows) } else { (&self.rows, depth) };
        for (row, to) in outer.clone().zip(to.chunks_exact_mut(inner.len().max(1))) {
            convert::widen(isa, &a.row(row)[inner.clone()], &mut to[..inner.len()]);
        }
    }

    /// # Safety
    /// Nothing else writes the tile.
    unsafe fn finish(&self, row: usize, sums: &mut [f32], more: &mut [f32]) {
        let (isa, columns) = (self.micro.isa, &self.columns);
        let more = &mut more[..columns.len()];
        let mut add = |from: &[U]| {
            convert::widen(isa, from, more);
            sums.iter_mut().zip(&*more).for_each(|(sum, more)| *sum += more);
        };
        if let Some(bias) = self.operands.bias {
            add(&bias[columns.clone()]);
        }
        if let Some(addend) = self.operands.addend {
            add(&addend.row(row)[columns.clone()]);
        }
        activation::apply(self.operands.activation, isa, sums);
        let c = &self.c;
        // SAFETY: a part of a row of C, which is the tile's.
        let part =
            unsafe { std::slice::from_raw_parts_mut(c.data().add(row * c.stride() + columns.start), columns.len()) };
        convert::narrow(isa, sums, part);
    }
}
