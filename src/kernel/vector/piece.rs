//! A running piece of a product: some tiles of C, block by block.
//!
//! The way in which B reaches the micro-kernels depends on the rows of the piece and on B itself; the bits do not, see
//! `gemm`. A very small number of rows reads B in place in long runs (`thin`), once; so do the tiles of a B that is
//! used by no more than one tile's rows. Wide tiles read each B in place that is in some cache, narrow ones one that is
//! aligned and in a near cache. Otherwise the first tiles copy B into panels while they read it, or it is packed
//! before, if it is transposed or gathered.
//!
//! A thread that takes pieces from its home range gets one part of a block of columns after the other. If the panels of
//! all K blocks fit, they stay in the slot's memory with a note of their owner, and the next piece finds them there.

use super::held::HeldPanels;
use super::micro::{From, MicroKernels, MicroTile, RowsAhead, Scale, Strided, TileEpilogue};
use super::pack;
use super::product::{GemmShape, OperandB, Operands, Tiling};
use super::site::Matrix;
use super::step::{LINE, Thin};
use super::thin;
use std::ops::Range;

/// A B of at most this many floats is in the L2 cache as it is, and its rows are close together.
const NEAR_B: usize = 64 << 10;
/// A B of at most this many floats is in some cache.
const CACHED_B: usize = 2 << 20;
/// Minimum rows of tiles, and columns of tiles with few rows, that are faster than long runs.
const LEAST_ROWS: usize = 4;
const WIDE_RUN: usize = 32;
/// Minimum columns of tiles that read a B of any size once in place: whole cache lines.
const LEAST_RUN: usize = 16;
/// Columns of tiles that read a B in some cache in place: four cache lines, or five.
const WIDE_ROW: usize = 64;
/// Rows that pay for a copy of a B that is in some cache, and not aligned.
const COPYING_ROWS: usize = 512;
/// Floats of a way of the L1 cache, 64 lines on x86: rows of A so far apart, or a multiple of it, meet in the same
/// lines, which B's panel then empties.
const CACHE_WAY: usize = 1024;
/// Rows that share lines with B, and tiles that read them, from which a copy of A pays.
const MEETING_ROWS: usize = 4;
const MEETING_TILES: usize = 3;

/// A running piece.
pub struct GemmPiece<'a> {
    pub shape: GemmShape,
    pub scale: Scale,
    pub operands: Operands<'a>,
    pub cut: &'a Tiling,
    pub micro: &'a MicroKernels,
    /// The slot's scratch memory: panels of B, then one of A.
    pub panels: *mut f32,
    /// Index of the product in a batch.
    pub number: usize,
    pub held: &'a HeldPanels,
    pub c: *mut f32,
    pub c_stride: usize,
}

/// How the rows of a block read B.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadB {
    /// In place, in tiles of at most this many columns.
    Place(usize),
    /// In place, copying it into panels.
    Copy,
    /// From panels in the scratch memory.
    Pack,
    /// From weights packed before.
    Panels,
}

/// A K block.
#[derive(Clone, Copy)]
struct KBlock {
    begin: usize,
    depth: usize,
    /// Offset of its panels in the room for panels.
    room: usize,
    first: bool,
    last: bool,
}

/// # Safety
/// For all functions: `panels` has the scratch memory of the product and `c` the size of its result; nothing else uses
/// the panels or the claimed tiles meanwhile; rows and columns are of claimed tiles.
impl GemmPiece<'_> {
    pub unsafe fn run(&self, tiles: Range<usize>) {
        let GemmShape { m, n, .. } = self.shape;
        let Tiling { tile_rows, tile_columns, tiles_down, .. } = *self.cut;
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (block, down) = (tile / tiles_down, tile % tiles_down);
            let left = tiles.end - tile;
            // Whole blocks of tiles are processed together.
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
                    // A transposed B is read along K: all of K for some columns, and then the next ones.
                    let along = self.shape.transpose_b && self.cut.stretches > 1;
                    let width = if along { thin::COLUMNS } else { thin::SUMS / rows.len() };
                    parts(&columns, width).for_each(|columns| self.few_rows(b, &rows, &columns));
                } else {
                    // Later pieces may need the rest of this block.
                    let kept = (count < tiles_down && self.cut.keeps).then(|| self.number * self.cut.across + block);
                    parts(&columns, self.block_columns(&rows)).for_each(|columns| self.block(&rows, &columns, kept));
                }
            }
            tile += count * blocks;
        }
    }

    /// Columns that are processed together. Packed weights that the rows need once are read from one end to the other.
    fn block_columns(&self, rows: &Range<usize>) -> usize {
        let once = rows.len() <= self.micro.rows_of(self.micro.width);
        let is_packed = matches!(self.operands.b, OperandB::Panels(_));
        if is_packed && once { usize::MAX } else { self.cut.block_columns }
    }

    /// B, if there are so few rows that it is read in place, in long runs.
    fn thin(&self, rows: &Range<usize>) -> Option<Matrix<'_, f32>> {
        let OperandB::Matrix(b) = self.operands.b else { return None };
        let rows = rows.len();
        // Tiles multiply faster, if short runs are no worse, and if they are wide enough.
        let cached = self.shape.k.saturating_mul(b.stride()) <= CACHED_B && !self.shape.transpose_b;
        let tile = cached && rows >= LEAST_ROWS && self.micro.columns_of(rows) >= WIDE_RUN;
        let plain = self.scale == (Scale { alpha: 1.0, beta: 0.0 });
        (rows <= thin::ROWS && !tile && plain && thin::is_there(self.micro.isa)).then_some(b)
    }

    /// A few rows, in ranges of columns that fit the room for accumulators.
    unsafe fn few_rows(&self, b: Matrix<'_, f32>, rows: &Range<usize>, columns: &Range<usize>) {
        self.held.replace(None);
        for stretch in self.stretches(0) {
            // SAFETY: rows and columns are inside A, B and C; the scratch memory has room for the accumulators of few
            // rows.
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
                    pitch: thin::pitch(columns.len()),
                };
                thin::sums(self.micro.isa, &thin);
                for (index, row) in rows.clone().enumerate() {
                    let sums = std::slice::from_raw_parts(self.panels.add(index * thin.pitch), columns.len());
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
        let finish = &self.operands.finish;
        if !finish.is_nothing() {
            // SAFETY: passed on; the rows were written.
            unsafe {
                self.each_row(rows, columns, |row, part| {
                    finish.part_of_row(self.micro.isa, row, columns.start, part);
                });
            }
        }
    }

    /// The K blocks, in order; `room` is the size of one block's panels if those of all are kept, else 0.
    fn stretches(&self, room: usize) -> impl Iterator<Item = KBlock> + use<> {
        let (count, depth, k) = (self.cut.stretches, self.cut.depth, self.shape.k);
        (0..count).map(move |number| {
            let begin = number * depth;
            let (first, last) = (number == 0, number + 1 == count);
            KBlock { begin, depth: depth.min(k - begin), room: number * room, first, last }
        })
    }

    /// Applies a function to a part of each row of claimed tiles, which were just written.
    unsafe fn each_row(&self, rows: &Range<usize>, columns: &Range<usize>, apply: impl Fn(usize, &mut [f32])) {
        for row in rows.clone() {
            let data = self.c.wrapping_add(row * self.c_stride + columns.start);
            // SAFETY: a part of a row of claimed tiles, as demanded of the caller.
            apply(row, unsafe { std::slice::from_raw_parts_mut(data, columns.len()) });
        }
    }

    /// How so many rows read this many columns of B; `kept` tells that other rows come after them.
    fn way(&self, rows: usize, columns: usize, kept: bool) -> ReadB {
        match self.operands.b {
            OperandB::Panels(_) => ReadB::Panels,
            OperandB::Matrix(b) if !self.shape.transpose_b => {
                let once = self.micro.columns_of(rows);
                let floats = self.shape.k.saturating_mul(b.stride());
                // A row of a tile that is not aligned reads a cache line more than it has, every time: one in five at
                // most if it is wide.
                let (lanes, width) = (self.micro.lanes, self.micro.width);
                // SAFETY: the address is not used.
                let aligned = unsafe { b.at(0, 0) as usize }.is_multiple_of(lanes * size_of::<f32>())
                    && b.stride().is_multiple_of(lanes);
                let is_cached = floats <= CACHED_B && width >= WIDE_ROW;
                match once >= LEAST_RUN && !kept {
                    true => ReadB::Place(once),
                    false if is_cached && !aligned && rows >= COPYING_ROWS => ReadB::Copy,
                    // Tiles of more rows go through such a B less often, and read no more lines for each product.
                    false if is_cached && !aligned && columns > width => ReadB::Place(width - lanes),
                    false if is_cached || floats <= NEAR_B && aligned => ReadB::Place(width),
                    false => ReadB::Copy,
                }
            }
            _ => ReadB::Pack,
        }
    }

    /// Rows of one block of columns. The panels of one K block replace the previous ones, or, if the block has a number
    /// to be `kept` by, those of all are there in the end, and may be there already.
    unsafe fn block(&self, rows: &Range<usize>, columns: &Range<usize>, kept: Option<usize>) {
        let way = self.way(rows.len(), columns.len(), kept.is_some());
        let kept = kept.filter(|_| [ReadB::Pack, ReadB::Copy].contains(&way));
        let room = kept.map_or(0, |_| self.cut.depth * columns.len().next_multiple_of(self.micro.width));
        let held = self.held.replace(kept);
        let most_rows = self.micro.rows_of(match way {
            ReadB::Panels => self.micro.width.min(columns.len()),
            ReadB::Place(most) => self.widest(columns, most),
            ReadB::Pack | ReadB::Copy => self.widest(columns, self.micro.width),
        });
        for stretch in self.stretches(room) {
            if way == ReadB::Pack && !held {
                // SAFETY: passed on; there are as many panels in a block as the scratch memory has room for.
                unsafe { self.pack(stretch, columns) };
            }
            for of_tiles in evenly(rows, most_rows, 1) {
                // The first rows have copied B for the others.
                let copied = held || of_tiles.start > rows.start;
                let way = if way == ReadB::Copy && copied { ReadB::Pack } else { way };
                // SAFETY: passed on.
                unsafe {
                    let a = self.operand_a(stretch, &of_tiles, columns.len());
                    for (index, panel) in self.panels_of(columns, way).enumerate() {
                        self.tile(stretch, a, &of_tiles, (index, &panel), way);
                    }
                    if stretch.last && self.operands.finish.has_more() {
                        self.each_row(&of_tiles, columns, |_, part| {
                            self.operands.finish.activate(self.micro.isa, part)
                        });
                    }
                }
            }
        }
    }

    /// The columns of the panels or tiles that a block is divided into.
    fn panels_of(&self, columns: &Range<usize>, way: ReadB) -> impl Iterator<Item = Range<usize>> + use<> {
        let (width, lanes) = (self.micro.width, self.micro.lanes);
        // Packed weights have whole panels except for the last one.
        let (most, unit) = match way {
            ReadB::Panels => (width, width),
            ReadB::Place(most) => (most, lanes),
            ReadB::Copy | ReadB::Pack => (width, lanes),
        };
        evenly(columns, most, unit)
    }

    /// Columns of the widest tile of a block, up to `most`.
    fn widest(&self, columns: &Range<usize>, most: usize) -> usize {
        evenly(columns, most, self.micro.lanes).next().map_or(most, |panel| panel.len())
    }

    /// Packs all columns of a block into panels.
    unsafe fn pack(&self, stretch: KBlock, columns: &Range<usize>) {
        for (index, panel) in evenly(columns, self.micro.width, self.micro.lanes).enumerate() {
            // SAFETY: passed on.
            unsafe { self.pack_b(stretch, &panel, index) };
        }
    }

    /// A micro-tile of one K block: rows, and the columns of a panel with its index in the block.
    unsafe fn tile(
        &self,
        stretch: KBlock,
        (a, ahead): (Strided, RowsAhead),
        rows: &Range<usize>,
        (index, panel): (usize, &Range<usize>),
        way: ReadB,
    ) {
        let scale = Scale { beta: if stretch.first { self.scale.beta } else { 1.0 }, ..self.scale };
        let (width, lanes) = (self.micro.width, self.micro.lanes);
        // SAFETY: rows are inside A and C, columns inside B and C. Panels are padded to whole vectors for the
        // micro-kernel's reads. The epilogue fits the result.
        unsafe {
            let (data, pitch, from) = match (self.operands.b, way) {
                (OperandB::Panels(panels), _) => {
                    (panels.at(stretch.begin, stretch.depth, panel.start), width, From::Panel)
                }
                (OperandB::Matrix(b), ReadB::Place(_)) => {
                    let from = if panel.len().is_multiple_of(lanes) { From::Panel } else { From::Place };
                    (b.at(stretch.begin, panel.start), b.stride(), from)
                }
                (OperandB::Matrix(b), ReadB::Copy) if panel.len().is_multiple_of(lanes) => {
                    let to = From::Copy(self.panel_of_b(stretch, index), width);
                    (b.at(stretch.begin, panel.start), b.stride(), to)
                }
                (OperandB::Matrix(_), ReadB::Copy) => {
                    self.pack_b(stretch, panel, index);
                    (self.panel_of_b(stretch, index).cast_const(), width, From::Panel)
                }
                _ => (self.panel_of_b(stretch, index).cast_const(), width, From::Panel),
            };
            self.micro.multiply(&MicroTile {
                rows: rows.len(),
                columns: panel.len(),
                depth: stretch.depth,
                a,
                ahead,
                b: Strided { data, depth: pitch, across: 1 },
                from,
                c: self.c.add(rows.start * self.c_stride + panel.start),
                c_stride: self.c_stride,
                scale,
                epilogue: match stretch.last {
                    true => self.operands.finish.of_tile(rows.start, panel.start),
                    false => TileEpilogue::NOTHING,
                },
            });
        }
    }

    /// The rows of A in place.
    unsafe fn a_in_place(&self, stretch: KBlock, rows: &Range<usize>) -> Strided {
        let a = self.operands.a;
        // SAFETY: rows and K block are inside A.
        unsafe {
            if self.shape.transpose_a {
                Strided { data: a.at(stretch.begin, rows.start), depth: a.stride(), across: 1 }
            } else {
                Strided { data: a.at(rows.start, stretch.begin), depth: 1, across: a.stride() }
            }
        }
    }

    /// The rows of A for tiles of so many columns, and those that come next: in place if that is fast, else copied into
    /// the panel of A.
    unsafe fn operand_a(&self, stretch: KBlock, rows: &Range<usize>, columns: usize) -> (Strided, RowsAhead) {
        let GemmShape { m, n, transpose_a, .. } = self.shape;
        // SAFETY: rows and K block are inside A; the panel of A has the longest K block, and a line, times the most
        // rows.
        unsafe {
            let a = self.a_in_place(stretch, rows);
            let ahead = RowsAhead::behind(a, rows.len());
            let meet = a.across.is_multiple_of(CACHE_WAY) && rows.len() >= MEETING_ROWS;
            let copies = meet && columns >= MEETING_TILES * self.micro.width;
            if transpose_a || !self.micro.packs_a && !copies {
                return (a, ahead);
            }
            let panel = self.panels.add(self.cut.floats_of_b(m, n, self.micro));
            if self.micro.packs_a {
                let size = (stretch.depth, rows.len(), rows.len());
                pack::columns(self.micro.isa, a.data, a.across, size, panel, rows.len());
                return (Strided { data: panel, depth: rows.len(), across: 1 }, ahead);
            }
            let pitch = stretch.depth.next_multiple_of(LINE) + LINE;
            pack::rows(a.data, a.across, (rows.len(), stretch.depth, stretch.depth), panel, pitch);
            (Strided { data: panel, depth: 1, across: pitch }, ahead)
        }
    }

    /// Copies some columns of B, at most a panel's width, into a panel.
    unsafe fn pack_b(&self, stretch: KBlock, columns: &Range<usize>, index: usize) {
        let padded = columns.len().next_multiple_of(self.micro.lanes);
        let size = (stretch.depth, columns.len(), padded);
        let stride = self.micro.width;
        // SAFETY: columns and K block are inside B; the panel has the longest K block times its width.
        unsafe {
            let panel = self.panel_of_b(stretch, index);
            match self.operands.b {
                OperandB::Matrix(b) if self.shape.transpose_b => {
                    let source = b.at(columns.start, stretch.begin);
                    pack::columns(self.micro.isa, source, b.stride(), size, panel, stride);
                }
                OperandB::Matrix(b) => pack::rows(b.at(stretch.begin, columns.start), b.stride(), size, panel, stride),
                OperandB::Panels(_) => {}
            }
        }
    }

    unsafe fn panel_of_b(&self, stretch: KBlock, index: usize) -> *mut f32 {
        // SAFETY: as demanded of the caller; a block of columns has no more panels than the scratch memory.
        unsafe { self.panels.add(stretch.room + index * self.cut.depth * self.micro.width) }
    }
}

/// Divides a range into as few parts of at most `most` as possible, of about the same size, and multiples of `unit`
/// except for the last. The first is the largest. It divides once, not for each part: a tile may take no longer than
/// twenty divisions.
pub(super) fn evenly(range: &Range<usize>, most: usize, unit: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = *range;
    let units = (end - start).div_ceil(unit);
    let parts = units.div_ceil(most / unit);
    let (size, rest) = (units / parts.max(1), units % parts.max(1));
    let mut begin = start;
    (0..parts).map(move |part| {
        let from = begin;
        begin = end.min(from + (size + usize::from(part < rest)) * unit);
        from..begin
    })
}

/// Divides a range into parts of `size`, the last one possibly smaller.
fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..begin.saturating_add(size).min(end))
}
