//! A piece of a product at work: some tiles of C, block by block.
//!
//! How B comes to the micro-kernels depends on the rows of the piece and on B itself; the bits do not, see `gemm`. Few rows
//! read B where it is (`thin`), once; others have it copied into panels, unless it is small and they are not many.
//!
//! A thread that draws pieces from its home gets one part of a block of columns after the other. Where the panels of all
//! stretches fit, they are left in the slot's memory with a note of whose they are, and the next piece finds them there.

use super::gemm::{BLOCK_COLUMNS, Cut, Operands, Right, Shape};
use super::held::Held;
use super::micro::{MicroKernels, Scale, Strided};
use super::pack;
use super::site::Matrix;
use super::thin::{self, Thin};
use std::ops::Range;

/// A B of so many floats lies in the first-level cache as it is.
const TINY_B: usize = 8 << 10;
/// With at most so many rows, copying a small B costs more than it gains. A larger one is copied for any number of rows: its rows
/// are far apart, and reading them where they are is slower than the product.
const PACK_ROWS: usize = 48;
const SMALL_B: usize = 16 << 10;

/// One piece at work.
pub struct Piece<'a> {
    pub shape: Shape,
    pub scale: Scale,
    pub operands: Operands<'a>,
    pub cut: &'a Cut,
    pub micro: &'a MicroKernels,
    /// The slot's scratch memory: panels of B, then one of A.
    pub panels: *mut f32,
    /// Number of the product, in a batch.
    pub number: usize,
    pub held: &'a Held,
    pub c: *mut f32,
    pub c_stride: usize,
}

/// A stretch of K.
#[derive(Clone, Copy)]
struct Stretch {
    begin: usize,
    depth: usize,
    /// Where its panels begin, in the room for panels.
    room: usize,
    first: bool,
    last: bool,
}

/// # Safety
/// For all functions: `panels` has the scratch memory of the product and `c` the size of its result; nobody else
/// uses the panels or the claimed tiles meanwhile; rows and columns are of claimed tiles.
impl Piece<'_> {
    pub unsafe fn run(&self, tiles: Range<usize>) {
        let Shape { m, n, .. } = self.shape;
        let Cut { tile_rows, tile_columns, tiles_down, .. } = *self.cut;
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (block, down) = (tile / tiles_down, tile % tiles_down);
            let left = tiles.end - tile;
            // Whole blocks of tiles are taken together.
            let (count, blocks) = if down == 0 && left >= tiles_down {
                (tiles_down, left / tiles_down)
            } else {
                (left.min(tiles_down - down), 1)
            };
            let rows = down * tile_rows..((down + count) * tile_rows).min(m);
            let columns = block * tile_columns..((block + blocks) * tile_columns).min(n);
            // SAFETY: the rows and columns of claimed tiles, inside C.
            unsafe {
                if let Some(b) = self.thin(&rows) {
                    // A transposed B is read along K: all of it for some columns, and then the next ones.
                    let along = self.shape.transpose_b && self.cut.stretches > 1;
                    let width = if along { thin::COLUMNS } else { thin::SUMS / rows.len() };
                    parts(&columns, width).for_each(|columns| self.few_rows(b, &rows, &columns));
                } else {
                    // What follows may want the rest of this block.
                    let kept = (count < tiles_down && self.cut.keeps).then(|| self.number * self.cut.across + block);
                    parts(&columns, BLOCK_COLUMNS).for_each(|columns| self.block(&rows, &columns, kept));
                }
            }
            tile += count * blocks;
        }
    }

    /// B, if these rows are so few that it is read where it is.
    fn thin(&self, rows: &Range<usize>) -> Option<Matrix<'_, f32>> {
        match self.operands.b {
            Right::Matrix(b)
                if rows.len() <= thin::ROWS
                    && self.scale == (Scale { alpha: 1.0, beta: 0.0 })
                    && thin::is_there(self.micro.isa) =>
            {
                Some(b)
            }
            _ => None,
        }
    }

    /// A few rows, as many columns as there is room for sums.
    unsafe fn few_rows(&self, b: Matrix<'_, f32>, rows: &Range<usize>, columns: &Range<usize>) {
        self.held.replace(None);
        for stretch in self.stretches(0) {
            // SAFETY: rows and columns are inside A, B and C; the scratch memory has room for the sums of few rows.
            unsafe {
                let b = if self.shape.transpose_b {
                    Strided { data: b.at(columns.start, stretch.begin), depth: 1, across: b.stride() }
                } else {
                    Strided { data: b.at(stretch.begin, columns.start), depth: b.stride(), across: 1 }
                };
                let thin = Thin {
                    rows: rows.len(),
                    columns: columns.len(),
                    depth: stretch.depth,
                    a: self.a_in_place(stretch, rows),
                    b,
                    sums: self.panels,
                };
                thin::sums(self.micro.isa, &thin);
                for (index, row) in rows.clone().enumerate() {
                    let sums = std::slice::from_raw_parts(self.panels.add(index * columns.len()), columns.len());
                    let c = self.c.add(row * self.c_stride + columns.start);
                    if stretch.first {
                        c.copy_from_nonoverlapping(sums.as_ptr(), sums.len());
                    } else {
                        let c = std::slice::from_raw_parts_mut(c, sums.len());
                        c.iter_mut().zip(sums).for_each(|(c, sum)| *c += sum);
                    }
                }
            }
        }
        // SAFETY: parts of rows of claimed tiles, which were just written.
        unsafe { self.finish(rows, columns) };
    }

    /// The stretches of K, in order; `room` is what the panels of one take if those of all are kept, else 0.
    fn stretches(&self, room: usize) -> impl Iterator<Item = Stretch> + use<> {
        let (count, depth, k) = (self.cut.stretches, self.cut.depth, self.shape.k);
        (0..count).map(move |number| {
            let begin = number * depth;
            let (first, last) = (number == 0, number + 1 == count);
            Stretch { begin, depth: depth.min(k - begin), room: number * room, first, last }
        })
    }

    /// What follows the product.
    unsafe fn finish(&self, rows: &Range<usize>, columns: &Range<usize>) {
        if self.operands.finish.is_nothing() {
            return;
        }
        for row in rows.clone() {
            // SAFETY: a part of a row of claimed tiles, which the micro-kernels have written.
            let part = unsafe {
                std::slice::from_raw_parts_mut(self.c.add(row * self.c_stride + columns.start), columns.len())
            };
            self.operands.finish.part_of_row(self.micro.isa, row, columns.start, part);
        }
    }

    /// Rows of one block of columns. The panels of one stretch take the place of those before, or, if the block has a number
    /// to be `kept` by, those of all are there in the end, and may be there already.
    unsafe fn block(&self, rows: &Range<usize>, columns: &Range<usize>, kept: Option<usize>) {
        let few = if rows.len() <= PACK_ROWS { SMALL_B } else { TINY_B };
        let small = |b: &Matrix<'_, f32>| self.shape.k.saturating_mul(b.stride()) <= few;
        let pack = match self.operands.b {
            Right::Matrix(b) => Some(self.shape.transpose_b || !small(&b)),
            Right::Gather(..) => Some(true),
            Right::Panels(_) => None,
        };
        let kept = kept.filter(|_| pack == Some(true));
        let room = kept.map_or(0, |_| self.cut.depth * columns.len().next_multiple_of(self.micro.width));
        let held = self.held.replace(kept);
        for stretch in self.stretches(room) {
            // SAFETY: passed on; there are as many panels in a block as the scratch memory has room for.
            unsafe {
                match (self.operands.b, pack) {
                    _ if held => {}
                    (_, None) => {}
                    (Right::Matrix(b), Some(true)) if !self.shape.transpose_b => self.pack_beside(b, stretch, columns),
                    (_, Some(pack)) => {
                        for (index, panel) in parts(columns, self.micro.width).enumerate() {
                            if pack || panel.len() % self.micro.lanes != 0 {
                                self.pack_b(stretch, &panel, index);
                            }
                        }
                    }
                }
            }
            for rows in parts(rows, self.micro.rows) {
                // SAFETY: passed on.
                unsafe { self.row_of_tiles(stretch, &rows, columns, pack.unwrap_or(true)) };
            }
        }
    }

    /// Copies all columns of a block into panels.
    unsafe fn pack_beside(&self, b: Matrix<'_, f32>, stretch: Stretch, columns: &Range<usize>) {
        let (width, pitch) = (self.micro.width, self.cut.depth * self.micro.width);
        let size = (stretch.depth, columns.len(), columns.len().next_multiple_of(self.micro.lanes));
        // SAFETY: columns and stretch are inside B; a block has no more panels than the scratch memory.
        unsafe {
            let source = b.at(stretch.begin, columns.start);
            let panels = self.panels.add(stretch.room);
            pack::beside(self.micro.isa, source, b.stride(), size, panels, pack::Beside { width, pitch });
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
                    _ => Strided { data: self.panel_of_b(stretch, index), depth: self.micro.width, across: 1 },
                };
                let c = self.c.add(rows.start * self.c_stride + panel.start);
                self.micro.multiply(rows.len(), panel.len(), stretch.depth, a, b, c, self.c_stride, scale);
            }
        }
        if stretch.last {
            // SAFETY: parts of rows of claimed tiles, which the micro-kernels have written.
            unsafe { self.finish(rows, columns) };
        }
    }

    /// The rows of A, where they are.
    unsafe fn a_in_place(&self, stretch: Stretch, rows: &Range<usize>) -> Strided {
        let a = self.operands.a;
        // SAFETY: rows and stretch are inside A.
        unsafe {
            if self.shape.transpose_a {
                Strided { data: a.at(stretch.begin, rows.start), depth: a.stride(), across: 1 }
            } else {
                Strided { data: a.at(rows.start, stretch.begin), depth: 1, across: a.stride() }
            }
        }
    }

    /// The rows of A for a micro-kernel: where they are if it reads them well there, else copied into the panel of A.
    unsafe fn operand_a(&self, stretch: Stretch, rows: &Range<usize>) -> Strided {
        let Shape { m, n, transpose_a, .. } = self.shape;
        let a = self.operands.a;
        // SAFETY: rows and stretch are inside A; the panel of A has the longest stretch times the most rows.
        unsafe {
            if transpose_a || !self.micro.packs_a {
                return self.a_in_place(stretch, rows);
            }
            let (panel, stride) = (self.panels.add(self.cut.floats_of_b(m, n, self.micro)), self.micro.rows);
            let size = (stretch.depth, rows.len(), rows.len());
            pack::columns(self.micro.isa, a.at(rows.start, stretch.begin), a.stride(), size, panel, stride);
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
            let panel = self.panel_of_b(stretch, index);
            match self.operands.b {
                Right::Matrix(b) if self.shape.transpose_b => {
                    let source = b.at(columns.start, stretch.begin);
                    pack::columns(self.micro.isa, source, b.stride(), size, panel, stride);
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

    unsafe fn panel_of_b(&self, stretch: Stretch, index: usize) -> *mut f32 {
        // SAFETY: as demanded of the caller; a block of columns has no more panels than the scratch memory.
        unsafe { self.panels.add(stretch.room + index * self.cut.depth * self.micro.width) }
    }
}

/// Cuts a range into parts of `size`, the last one maybe smaller.
fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..(begin + size).min(end))
}
