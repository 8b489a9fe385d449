//! The general algorithm: a rectangle of C in blocks.
//!
//! ```text
//! for each block of columns
//!     for each block of rows
//!         for each K block
//!             pack B: K block x block of columns    a panel of it fits into the L1 cache, the block into L2
//!             pack A: block of rows x K block       if its rows are not rows of cells as they are
//!             for each panel of B
//!                 for each few rows of A: micro-kernel, into C
//! ```
//!
//! B is packed once for all blocks of rows: all its K blocks together, so that a block of C is still in cache when the
//! next K block is added to it, or, if K is too long for that, with the K blocks in the outer loop. A short B, which
//! fits into the L1 cache, is traversed for each few rows, so that rows of C are written from end to end.
//!
//! If accumulators are not elements of C as they are, a tile goes through `finish`; with several K blocks a block's
//! accumulators are kept in scratch memory until the last one.

use super::finish::{Stash, TilePosition};
use super::panel::{PackSource, pitch};
use super::plan::{Int8Plan, TILE, is_far};
use super::product::Int8Product;
use super::tile::{CELL, CellRows, MAX_COLUMNS, MAX_ROWS, Panel, Terms, TileOutput, parts};
use super::{Planned, Rule};
use std::ops::Range;

/// A K block.
#[derive(Clone, Copy)]
struct PackedKBlock {
    begin: usize,
    depth: usize,
    /// Its length in cells, rounded up.
    cells: usize,
    first: bool,
    /// Offset of its panels in the room for panels, in cells, and of its terms in the room for terms.
    panels: usize,
    terms: usize,
}

/// # Safety
/// For all functions: as those of `Planned`.
impl Planned<'_> {
    /// If the columns have a number to be `kept` by, the panels of all K blocks are there in the end, and may be there
    /// already.
    pub(super) unsafe fn rectangle(&self, rows: Range<usize>, columns: Range<usize>, kept: Option<usize>) {
        let Int8Plan { stretches, nested, stashes, block_rows, block_columns, .. } = *self.plan;
        let held = self.held.replace(kept);
        let kept = kept.is_some();
        let together = kept || nested;
        for columns in parts(&columns, if kept { TILE.1 } else { block_columns }) {
            // SAFETY: passed on; there is room for the panels of all K blocks if they are kept or nested; stashed
            // accumulators are finished before the next block's are.
            unsafe {
                if together && !held {
                    for number in 0..stretches {
                        self.pack_b(self.stretch(number, kept), &columns);
                    }
                } else if !together && !stashes && rows.len() > block_rows {
                    for number in 0..stretches {
                        let stretch = self.stretch(number, kept);
                        self.pack_b(stretch, &columns);
                        for rows in parts(&rows, block_rows) {
                            self.pack_a(stretch, &rows);
                            self.multiply(stretch, &rows, &columns);
                        }
                    }
                    continue;
                }
                for rows in parts(&rows, block_rows) {
                    for number in 0..stretches {
                        let stretch = self.stretch(number, kept);
                        if !together {
                            self.pack_b(stretch, &columns);
                        }
                        self.pack_a(stretch, &rows);
                        self.multiply(stretch, &rows, &columns);
                    }
                    if stashes {
                        self.finish_block(&rows, &columns);
                    }
                }
            }
        }
    }

    fn stretch(&self, number: usize, kept: bool) -> PackedKBlock {
        let k = if self.product.rule.alpha == 0.0 { 0 } else { self.product.k };
        let begin = number * self.plan.depth;
        let depth = self.plan.depth.min(k - begin);
        let (panels, terms) = if kept {
            (number * self.plan.kept_of_stretch(), number * TILE.1)
        } else if self.plan.nested {
            (number * self.room.cells_of_b, number * self.plan.block_columns)
        } else {
            (0, 0)
        };
        PackedKBlock { begin, depth, cells: self.plan.set.cells(depth), panels, terms, first: number == 0 }
    }

    /// Panels of B for a block of columns, and the contribution of A's zero point to each column.
    unsafe fn pack_b(&self, stretch: PackedKBlock, columns: &Range<usize>) {
        let Int8Product { b, transpose_b, zero_b, .. } = *self.product;
        let (set, zero_a) = (self.plan.set, self.product.packed_zero_a());
        let count = columns.len().next_multiple_of(set.columns);
        // SAFETY: the columns and the K block are inside B; the room has as many panels and terms as a block, and so
        // have packed sums.
        unsafe {
            let terms = self.column_terms(stretch, 0, count);
            let factor = zero_a.wrapping_neg();
            if let Some(packed) = self.product.packed_b {
                if zero_a != 0 || zero_b != 0 {
                    let sums = std::slice::from_raw_parts(packed.sums_at(stretch.begin, columns.start), count);
                    terms.iter_mut().zip(sums).for_each(|(term, sum)| *term = sum.wrapping_mul(factor));
                }
                return;
            }
            let (row, column) = (stretch.begin, columns.start);
            let data = if transpose_b { b.at(column, row) } else { b.at(row, column) };
            let far = is_far(self.product);
            let source =
                PackSource { data, stride: b.stride(), along: transpose_b, depth: stretch.depth, flip: 0, far };
            let sums = if zero_a == 0 { std::ptr::null_mut() } else { terms.as_mut_ptr() };
            (set.pack_b)(&source, stretch.cells, columns.len(), self.panel_b(stretch), sums);
            if zero_a != 0 {
                terms.iter_mut().for_each(|term| *term = term.wrapping_mul(factor));
            } else if zero_b != 0 {
                terms.fill(0);
            }
        }
    }

    /// Rows of cells of A for a block of rows, where they must be packed, and the contribution of B's zero point to
    /// each row.
    unsafe fn pack_a(&self, stretch: PackedKBlock, rows: &Range<usize>) {
        let Int8Product { a, transpose_a, signed_a, zero_b, .. } = *self.product;
        let (set, flip) = (self.plan.set, if signed_a { 128 } else { 0 });
        let both = (stretch.depth as i32).wrapping_mul(self.product.packed_zero_a().wrapping_mul(zero_b));
        for (index, rows) in parts(rows, set.rows).enumerate() {
            // SAFETY: the rows and the K block are inside A; the room has as many rows and terms as a block.
            unsafe {
                let data = if transpose_a { a.at(stretch.begin, rows.start) } else { a.at(rows.start, stretch.begin) };
                let mut from = CellRows { data, stride: a.stride() };
                if !self.in_place(stretch, rows.len()) {
                    let packed = self.packed_a(index);
                    from = packed;
                    let source = PackSource {
                        data,
                        stride: a.stride(),
                        along: !transpose_a,
                        depth: stretch.depth,
                        flip,
                        far: false,
                    };
                    (set.pack_a)(&source, stretch.cells, rows.len(), packed.data.cast_mut(), packed.stride);
                    for row in rows.len()..set.rounded(rows.len()) {
                        packed.data.cast_mut().add(row * packed.stride).write_bytes(0, stretch.cells * CELL);
                    }
                }
                if zero_b != 0 {
                    let terms = self.row_terms(index, set.rows);
                    (set.sums_a)(from, stretch.cells, &mut terms[..rows.len()]);
                    terms.iter_mut().for_each(|term| *term = both.wrapping_sub(term.wrapping_mul(zero_b)));
                } else if self.product.packed_zero_a() != 0 {
                    self.row_terms(index, set.rows).fill(0);
                }
            }
        }
    }

    /// Whether some rows of A are rows of cells as they are; otherwise they are packed.
    fn in_place(&self, stretch: PackedKBlock, rows: usize) -> bool {
        let whole = stretch.depth == stretch.cells * CELL && self.plan.set.rounded(rows) == rows;
        self.plan.in_place && whole
    }

    unsafe fn packed_a(&self, index: usize) -> CellRows {
        let stride = self.plan.stride_of_a();
        // SAFETY: as demanded of the caller; a block has no more rows than the room.
        let data = unsafe { self.scratch.add(self.room.a + index * self.plan.set.rows * stride) };
        CellRows { data, stride }
    }

    /// All tiles of a block for one K block.
    unsafe fn multiply(&self, stretch: PackedKBlock, rows: &Range<usize>, columns: &Range<usize>) {
        let set = self.plan.set;
        // SAFETY: the panels were packed, one `pitch` after the other.
        unsafe {
            let panels = match self.product.packed_b {
                Some(packed) => packed.panel(stretch.begin, stretch.cells, columns.start),
                None => self.panel_b(stretch).cast_const(),
            };
            let panel = |across: usize| panels.wrapping_add(across * pitch(stretch.cells, set.columns));
            let (down, across) = (rows.len().div_ceil(set.rows), columns.len().div_ceil(set.columns));
            let mut tiles = Tiles::new(self, stretch, rows, columns);
            if self.plan.short_panels {
                for down in 0..down {
                    for across in 0..across {
                        tiles.compute(down, across, Panel::near(panel(across)));
                    }
                }
                return;
            }
            for across in 0..across {
                for part in 0..down {
                    let panel = if self.plan.packed_b {
                        Panel::ahead(panel(across), stretch.cells, set.columns, part, down)
                    } else {
                        Panel::near(panel(across))
                    };
                    tiles.compute(part, across, panel);
                }
            }
        }
    }

    /// Computes C of a block from the accumulators of all K blocks.
    unsafe fn finish_block(&self, rows: &Range<usize>, columns: &Range<usize>) {
        let stride = self.plan.block_columns;
        // SAFETY: the accumulators of the block were written; its part of C is claimed.
        unsafe {
            let sums = std::slice::from_raw_parts(self.sums(), rows.len() * stride);
            (self.plan.set.finish_stash)(&self.product.rule, &self.place(rows, columns, stride), sums, self.c);
        }
    }

    fn place(&self, rows: &Range<usize>, columns: &Range<usize>, stride: usize) -> TilePosition {
        let c_stride = self.c_stride;
        TilePosition {
            row: rows.start,
            column: columns.start,
            rows: rows.len(),
            columns: columns.len(),
            c_stride,
            stride,
        }
    }

    /// The first panel of the block; all but the last are full.
    unsafe fn panel_b(&self, stretch: PackedKBlock) -> *mut u32 {
        // SAFETY: as demanded of the caller; the room fits the K blocks that are packed together.
        unsafe { self.scratch.add(self.room.b).cast::<u32>().add(stretch.panels) }
    }

    fn sums(&self) -> *mut i64 {
        self.scratch.wrapping_add(self.room.sums).cast()
    }

    /// Terms of some columns of the block.
    #[expect(clippy::mut_from_ref, reason = "scratch memory: callers hold one part at a time")]
    unsafe fn column_terms(&self, stretch: PackedKBlock, first: usize, count: usize) -> &mut [i32] {
        let first = stretch.terms + first;
        // SAFETY: as demanded of the caller; a block has no more columns than the room. Bytes are integers.
        unsafe {
            std::slice::from_raw_parts_mut(self.scratch.add(self.room.column_terms).cast::<i32>().add(first), count)
        }
    }

    /// Terms of the rows of a tile of the block.
    #[expect(clippy::mut_from_ref, reason = "as above")]
    unsafe fn row_terms(&self, down: usize, count: usize) -> &mut [i32] {
        let first = down * self.plan.set.rows;
        // SAFETY: as above, of rows.
        unsafe { std::slice::from_raw_parts_mut(self.scratch.add(self.room.row_terms).cast::<i32>().add(first), count) }
    }
}

/// The tiles of a block for one K block, with their common parameters.
struct Tiles<'a> {
    piece: &'a Planned<'a>,
    stretch: PackedKBlock,
    rows: &'a Range<usize>,
    columns: &'a Range<usize>,
    /// The first rows of A, in place if those of whole tiles are.
    a: CellRows,
    in_place: bool,
    has_terms: bool,
    /// Whether accumulators are elements of C as they are.
    plain: bool,
    /// For those that are not, and for tiles on the edge of C.
    sums: Option<TileSums>,
}

impl<'a> Tiles<'a> {
    /// # Safety
    /// As the functions of `Planned`.
    unsafe fn new(
        piece: &'a Planned<'a>,
        stretch: PackedKBlock,
        rows: &'a Range<usize>,
        columns: &'a Range<usize>,
    ) -> Tiles<'a> {
        let product = piece.product;
        let in_place = piece.in_place(stretch, piece.plan.set.rows);
        // SAFETY: passed on.
        let a = unsafe {
            if in_place {
                CellRows { data: product.a.at(rows.start, stretch.begin), stride: product.a.stride() }
            } else {
                piece.packed_a(0)
            }
        };
        let has_terms = product.packed_zero_a() != 0 || product.zero_b != 0;
        let plain = !piece.plan.stashes && product.rule.is_plain();
        Tiles { piece, stretch, rows, columns, a, in_place, has_terms, plain, sums: None }
    }

    /// The tile at this position, down and across, in the block.
    ///
    /// # Safety
    /// As the functions of `Planned`; it is a tile of the block, A and terms were packed, and so was the panel.
    #[inline(always)]
    unsafe fn compute(&mut self, down: usize, across: usize, panel: Panel) {
        let (piece, stretch, set) = (self.piece, self.stretch, self.piece.plan.set);
        let (row, column) = (self.rows.start + down * set.rows, self.columns.start + across * set.columns);
        let (height, width) = (set.rows.min(self.rows.end - row), set.columns.min(self.columns.end - column));
        let whole = set.rounded(height) == height;
        // SAFETY: as demanded of the caller.
        unsafe {
            let a = if self.in_place && !whole {
                piece.packed_a(down)
            } else {
                CellRows { data: self.a.data.add(down * set.rows * self.a.stride), ..self.a }
            };
            let tile = set.tiles[height - 1];
            let terms = self.has_terms.then(|| Terms {
                rows: piece.row_terms(down, 0).as_ptr(),
                columns: piece.column_terms(stretch, across * set.columns, 0).as_ptr(),
            });
            if self.plain && whole && width == set.columns {
                let data = piece.c.add(row * piece.c_stride + column);
                tile(stretch.cells, a, panel, terms, TileOutput { data, stride: piece.c_stride, adds: !stretch.first });
            } else {
                let sums = self.sums.get_or_insert_with(TileSums::zeros);
                let out = TileOutput { data: sums.0.as_mut_ptr(), stride: set.columns, adds: false };
                tile(stretch.cells, a, panel, terms, out);
                self.put(row..row + height, column..column + width);
            }
        }
    }

    /// Finishes or stashes the accumulators of a tile.
    ///
    /// # Safety
    /// As `compute`, for the tile with these rows and columns.
    unsafe fn put(&self, rows: Range<usize>, columns: Range<usize>) {
        let (piece, first) = (self.piece, self.stretch.first);
        let (product, plan) = (piece.product, piece.plan);
        let Some(sums) = &self.sums else { return };
        let tile_stride = plan.set.columns;
        // SAFETY: as demanded of the caller; the accumulators are large enough for every set; those of a block are its
        // rows times the widest block's columns.
        unsafe {
            if plan.stashes {
                let stride = plan.block_columns;
                let at = (rows.start - self.rows.start) * stride + columns.start - self.columns.start;
                let stash = Stash { rows: rows.len(), columns: columns.len(), tile_stride, stride, first };
                (plan.set.stash)(stash, &sums.0, piece.sums().add(at));
            } else {
                // The sums of later K blocks are added to C; no other rule applies to them.
                let rule = if first { product.rule } else { Rule { beta: 1.0, ..product.rule } };
                (plan.set.finish)(&rule, &piece.place(&rows, &columns, tile_stride), &sums.0, piece.c);
            }
        }
    }
}

/// The accumulators of a tile, on separate cache lines.
#[repr(align(64))]
struct TileSums([i32; MAX_ROWS * MAX_COLUMNS]);

impl TileSums {
    fn zeros() -> TileSums {
        TileSums([0; MAX_ROWS * MAX_COLUMNS])
    }
}
