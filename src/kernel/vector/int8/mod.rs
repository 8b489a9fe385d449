//! The matrix product of bytes: C = saturate(alpha * (A - zero_a) * (B - zero_b) + beta * C + offset), 32-bit C.
//!
//! There are three ways, chosen by sizes and transposition. A few rows with a B along N are `thin`; a few rows with a B along
//! K, or few columns, are `dots`: both read B where it is. Otherwise C is cut into tiles, numbered down the columns; a piece of
//! the region is a run of tiles, that is one to three rectangles. A rectangle is computed in blocks:
//!
//! ```text
//! for each block of columns
//!     for each stretch of K
//!         pack B: stretch x block of columns        a panel of it fits into the first-level cache, the block into the second
//!         for each block of rows
//!             pack A: block of rows x stretch       if its rows are not rows of cells as they are
//!             for each panel of B
//!                 for each few rows of A: micro-kernel, into C
//! ```
//!
//! Where sums are not elements of C as they are, a tile goes through `finish`; with several stretches the blocks of rows are
//! outside, and a block's sums are kept in scratch memory until the last stretch.
//!
//! Exact: the sums of up to 32768 numbers along K, with the zero points taken out, fit in 32 bits, and what is computed of
//! them modulo 2^32 is right. Beyond, those of a stretch do, and sums of stretches have 64 bits. So an element depends on
//! its row, its column and the rule alone, not on the instruction set, the way, the blocks, the cut or the pool.
//!
//! Zero points cost a sum of each row and each column: (a - p)(b - q) adds up to ab - p sum(b) - q sum(a) + K p q.
//! Signed A is packed as unsigned, 128 greater, with a zero point 128 greater.
//!
//! Everything lies in the slot's scratch memory. Nothing is allocated.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod dots;
mod finish;
mod lines;
mod micro;
mod panel;
mod panels;
mod plan;
mod scaled;
#[cfg(test)]
mod tests;
mod thin;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub use finish::{Offset, Rule};
pub use panels::BytePanels;
pub use scaled::{Scaled, Store, compute_scaled, scratch_bytes};

use super::held::Held;
use super::isa::Isa;
use super::site::{Matrix, MatrixMut, Site};
use crate::base::Result;
use crate::sync::Claim;
use crate::threadpool::{MAX_SLOTS, Span};
use finish::{Place, Stash};
use micro::{MAX_COLUMNS, MAX_ROWS, Out, Rows, Set, Terms};
use panel::{Source, pitch};
use plan::{Plan, Room, Way};
use std::ops::Range;

/// Rows and columns of a tile of the cut: whole tiles of every set of micro-kernels, but for rows of AMX, half of one.
const TILE: (usize, usize) = (48, 64);
const CELL: usize = size_of::<u32>();
/// A cache line, in bytes.
const ROUND: usize = 64;

/// A product to compute.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// [M, K], or [K, M] if it is transposed. Unsigned, or signed as `signed_a` says.
    pub a: Matrix<'a, u8>,
    pub transpose_a: bool,
    pub signed_a: bool,
    /// [K, N], or [N, K] if it is transposed. Signed.
    pub b: Matrix<'a, u8>,
    pub transpose_b: bool,
    /// The same, packed before; then `b` is not looked at.
    pub packed_b: Option<&'a BytePanels>,
    /// Taken off each element of A, and of B. Each is a value that the element's type has.
    pub zero_a: i32,
    pub zero_b: i32,
    pub rule: Rule<'a>,
}

impl Product<'_> {
    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self, isa: Isa) -> usize {
        let plan = Plan::new(self, isa);
        match plan.way {
            Way::Blocks => plan.room().bytes,
            Way::Thin(way) => thin::bytes(self.m, self.k, self.n, plan.set.depth, way.columns),
            Way::Dots(way) => dots::bytes(if plan.holds_a { self.m } else { self.n }, self.k, way.step, plan.set.depth),
        }
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self, isa: Isa) -> u64 {
        // Operations per nanosecond; 10 GB/s.
        let rate = match isa {
            Isa::Amx => 1000.0,
            Isa::Avx512Vnni => 500.0,
            Isa::Avx512 | Isa::Avx2 => 100.0,
            Isa::Neon | Isa::Portable => 15.0,
        };
        let [m, n, k] = [self.m, self.n, self.k].map(|size| size as f64);
        (2.0 * m * n * k / rate + (m * k + k * n + 4.0 * m * n) / 10.0) as u64
    }
}

/// Computes `product` into `c`, which is [M, N], in a region of `site`, which has `scratch_bytes` per slot.
pub fn compute(isa: Isa, product: &Product<'_>, c: MatrixMut<'_, i32>, site: &dyn Site) -> Result<()> {
    let &Product { m, n, k, .. } = product;
    let b = match product.packed_b {
        Some(packed) => packed.holds(k, n, Set::of(isa)),
        None => product.b.holds(k, n, product.transpose_b),
    };
    assert!(product.a.holds(m, k, product.transpose_a) && b);
    assert!(c.holds(m, n));
    match product.rule.offset {
        Offset::Fixed(_) => {}
        Offset::Row(row) => assert_eq!(row.len(), n),
        Offset::Column(column) => assert_eq!(column.len(), m),
    }
    let plan = Plan::new(product, isa);
    if m * n == 0 {
        return Ok(());
    }
    let room = plan.room();
    let cost_ns = product.cost_ns(isa) as f32 / plan.items as f32;
    let span = Span { items: plan.items, cost_ns, ..Span::default() };
    let held = [const { Held::new() }; MAX_SLOTS];
    site.parallel_for(&span, &|claim| {
        let (scratch, held) = (site.scratch(claim.slot()), &held[claim.slot()]);
        let piece = Piece { product, plan: &plan, room: &room, scratch, held, c: c.data(), c_stride: c.stride() };
        // SAFETY: the sizes were compared above. No other claim has these tiles or this slot (Claim), and the
        // slot's memory is as large as `scratch_bytes` asked for.
        unsafe { piece.run(&claim) };
        Ok(())
    })
}

/// One piece at work.
struct Piece<'a> {
    product: &'a Product<'a>,
    plan: &'a Plan,
    room: &'a Room,
    scratch: *mut u8,
    held: &'a Held,
    c: *mut i32,
    c_stride: usize,
}

/// A stretch of K.
#[derive(Clone, Copy)]
struct Stretch {
    begin: usize,
    depth: usize,
    /// The same in cells, rounded up.
    cells: usize,
    /// Where its panels begin in the room for panels, in cells, and its terms in that for terms.
    panels: usize,
    terms: usize,
    first: bool,
}

/// # Safety
/// For all functions: the scratch memory is as large as the room, `c` has the size of the result; nobody else uses the
/// scratch memory or the claimed tiles meanwhile; rows and columns are of claimed tiles.
impl Piece<'_> {
    unsafe fn run(&self, claim: &Claim) {
        let Plan { tiles_down, items, set, way, holds_a, .. } = *self.plan;
        let Product { m, n, .. } = *self.product;
        assert!(claim.end() <= items);
        // SAFETY: the rows or columns of claimed items, inside C.
        unsafe {
            match way {
                Way::Blocks => {}
                Way::Thin(way) => {
                    return (way.run)(self, claim.begin() * way.columns..(claim.end() * way.columns).min(n));
                }
                Way::Dots(way) => {
                    let all = if holds_a { n } else { m };
                    return (way.run)(self, claim.begin() * dots::STREAMS..(claim.end() * dots::STREAMS).min(all));
                }
            }
        }
        (set.enter)();
        let mut tile = claim.begin();
        while tile < claim.end() {
            let (across, down) = (tile / tiles_down, tile % tiles_down);
            let left = claim.end() - tile;
            // Whole columns of tiles are taken together.
            let (rows, columns) = if down == 0 && left >= tiles_down {
                (tiles_down, left / tiles_down)
            } else {
                (left.min(tiles_down - down), 1)
            };
            // What follows may want the rest of this column of tiles.
            let kept = (rows < tiles_down && self.plan.keeps).then_some(across);
            // SAFETY: the rows and columns of claimed tiles, inside C.
            unsafe {
                self.rectangle(
                    down * TILE.0..((down + rows) * TILE.0).min(m),
                    across * TILE.1..((across + columns) * TILE.1).min(n),
                    kept,
                );
            }
            tile += rows * columns;
        }
        (set.leave)();
    }

    /// The panels of one stretch take the place of those before, or, if the columns have a number to be `kept` by, those of
    /// all are there in the end, and may be there already.
    unsafe fn rectangle(&self, rows: Range<usize>, columns: Range<usize>, kept: Option<usize>) {
        let Plan { stretches, stashes, block_rows, .. } = *self.plan;
        let held = self.held.replace(kept);
        for columns in parts(&columns, self.plan.block_columns) {
            // SAFETY: passed on; sums that are stashed are finished before the next block's are.
            unsafe {
                if stashes {
                    for rows in parts(&rows, block_rows) {
                        for number in 0..stretches {
                            let stretch = self.stretch(number, false);
                            self.pack_b(stretch, &columns);
                            self.pack_a(stretch, &rows);
                            self.multiply(stretch, &rows, &columns);
                        }
                        self.finish_block(&rows, &columns);
                    }
                } else {
                    for number in 0..stretches {
                        let stretch = self.stretch(number, kept.is_some());
                        if !held {
                            self.pack_b(stretch, &columns);
                        }
                        for rows in parts(&rows, block_rows) {
                            self.pack_a(stretch, &rows);
                            self.multiply(stretch, &rows, &columns);
                        }
                    }
                }
            }
        }
    }

    fn stretch(&self, number: usize, kept: bool) -> Stretch {
        let k = if self.product.rule.alpha == 0.0 { 0 } else { self.product.k };
        let begin = number * self.plan.depth;
        let depth = self.plan.depth.min(k - begin);
        let (panels, terms) = if kept { (number * self.plan.kept_of_stretch(), number * TILE.1) } else { (0, 0) };
        Stretch { begin, depth, cells: self.plan.set.cells(depth), panels, terms, first: number == 0 }
    }

    /// Panels of B for a block of columns, and what the zero point of A adds to each column.
    unsafe fn pack_b(&self, stretch: Stretch, columns: &Range<usize>) {
        let Product { b, transpose_b, zero_b, .. } = *self.product;
        let (set, zero_a) = (self.plan.set, self.zero_a());
        let count = columns.len().next_multiple_of(set.columns);
        // SAFETY: the columns and the stretch are inside B; the room has as many panels and terms as a block, and so
        // have packed sums.
        unsafe {
            let terms = self.terms_mut(self.room.column_terms, stretch.terms, count);
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
            let source = Source { data, stride: b.stride(), along: transpose_b, depth: stretch.depth, flip: 0 };
            let sums = if zero_a == 0 { std::ptr::null_mut() } else { terms.as_mut_ptr() };
            (set.pack_b)(&source, stretch.cells, columns.len(), self.panel_b(stretch, 0), sums);
            if zero_a != 0 {
                terms.iter_mut().for_each(|term| *term = term.wrapping_mul(factor));
            } else if zero_b != 0 {
                terms.fill(0);
            }
        }
    }

    /// Rows of cells of A for a block of rows, where they need to be made, and what the zero point of B adds to each row.
    unsafe fn pack_a(&self, stretch: Stretch, rows: &Range<usize>) {
        let Product { a, transpose_a, signed_a, zero_b, .. } = *self.product;
        let (set, flip) = (self.plan.set, if signed_a { 128 } else { 0 });
        let both = (stretch.depth as i32).wrapping_mul(self.zero_a().wrapping_mul(zero_b));
        for (index, rows) in parts(rows, set.rows).enumerate() {
            // SAFETY: the rows and the stretch are inside A; the room has as many rows and terms as a block.
            unsafe {
                let from = self.rows_of_a(stretch, index, &rows);
                let packed = self.packed_a(index);
                if std::ptr::eq(from.data, packed.data) {
                    let data =
                        if transpose_a { a.at(stretch.begin, rows.start) } else { a.at(rows.start, stretch.begin) };
                    let source = Source { data, stride: a.stride(), along: !transpose_a, depth: stretch.depth, flip };
                    (set.pack_a)(&source, stretch.cells, rows.len(), packed.data.cast_mut(), packed.stride);
                    for row in rows.len()..set.rounded(rows.len()) {
                        packed.data.cast_mut().add(row * packed.stride).write_bytes(0, stretch.cells * CELL);
                    }
                }
                if zero_b != 0 {
                    let terms = self.terms_mut(self.room.row_terms, index * set.rows, set.rows);
                    (set.sums_a)(from, stretch.cells, &mut terms[..rows.len()]);
                    terms.iter_mut().for_each(|term| *term = both.wrapping_sub(term.wrapping_mul(zero_b)));
                } else if self.zero_a() != 0 {
                    self.terms_mut(self.room.row_terms, index * set.rows, set.rows).fill(0);
                }
            }
        }
    }

    /// Where the rows of cells of some rows of A are: in A if they are as they should be, otherwise where they are packed.
    unsafe fn rows_of_a(&self, stretch: Stretch, index: usize, rows: &Range<usize>) -> Rows {
        let (set, a) = (self.plan.set, self.product.a);
        let whole = stretch.depth == stretch.cells * CELL && set.rounded(rows.len()) == rows.len();
        if self.plan.in_place && whole {
            // SAFETY: as demanded of the caller.
            return Rows { data: unsafe { a.at(rows.start, stretch.begin) }, stride: a.stride() };
        }
        // SAFETY: passed on.
        unsafe { self.packed_a(index) }
    }

    unsafe fn packed_a(&self, index: usize) -> Rows {
        let stride = self.plan.stride_of_a();
        // SAFETY: as demanded of the caller; a block has no more rows than the room.
        let data = unsafe { self.scratch.add(self.room.a + index * self.plan.set.rows * stride) };
        Rows { data, stride }
    }

    /// All tiles of a block for one stretch.
    unsafe fn multiply(&self, stretch: Stretch, rows: &Range<usize>, columns: &Range<usize>) {
        let Plan { set, stashes, block_columns, .. } = *self.plan;
        let has_terms = self.zero_a() != 0 || self.product.zero_b != 0;
        let plain = !stashes && self.product.rule.is_plain();
        // The sums of later stretches are added to C; they have no rule then but this.
        let rule = if stretch.first { self.product.rule } else { Rule { beta: 1.0, ..self.product.rule } };
        let mut tile = None;
        for (across, part_columns) in parts(columns, set.columns).enumerate() {
            for (down, part_rows) in parts(rows, set.rows).enumerate() {
                let (row, column) = (down * set.rows, across * set.columns);
                // SAFETY: the panels were packed; the tile is large enough for every set; the sums of a block are
                // its rows times the widest block's columns; the terms were written with the panels.
                unsafe {
                    let a = self.rows_of_a(stretch, down, &part_rows);
                    let b = match self.product.packed_b {
                        Some(packed) => packed.panel(stretch.begin, stretch.cells, part_columns.start),
                        None => self.panel_b(stretch, across).cast_const(),
                    };
                    let sums = set.tiles[part_rows.len() - 1];
                    let terms = has_terms.then(|| Terms {
                        rows: self.terms_mut(self.room.row_terms, row, set.rows).as_ptr(),
                        columns: self.terms_mut(self.room.column_terms, stretch.terms + column, set.columns).as_ptr(),
                    });
                    if plain && part_columns.len() == set.columns && set.rounded(part_rows.len()) == part_rows.len() {
                        let data = self.c.add(part_rows.start * self.c_stride + part_columns.start);
                        sums(stretch.cells, a, b, terms, Out { data, stride: self.c_stride, adds: !stretch.first });
                        continue;
                    }
                    let tile = tile.get_or_insert_with(TileSums::zeros);
                    let out = Out { data: tile.0.as_mut_ptr(), stride: set.columns, adds: false };
                    sums(stretch.cells, a, b, terms, out);
                    if !stashes {
                        let place = self.place(&part_rows, &part_columns, set.columns);
                        (set.finish)(&rule, &place, &tile.0, self.c);
                    } else {
                        let stash = Stash {
                            rows: part_rows.len(),
                            columns: part_columns.len(),
                            tile_stride: set.columns,
                            stride: block_columns,
                            first: stretch.first,
                        };
                        (set.stash)(stash, &tile.0, self.sums().add(row * block_columns + column));
                    }
                }
            }
        }
    }

    /// C of a block from the sums of all stretches.
    unsafe fn finish_block(&self, rows: &Range<usize>, columns: &Range<usize>) {
        let stride = self.plan.block_columns;
        // SAFETY: the sums of the block were written; its part of C is claimed.
        unsafe {
            let sums = std::slice::from_raw_parts(self.sums(), rows.len() * stride);
            (self.plan.set.finish_stash)(&self.product.rule, &self.place(rows, columns, stride), sums, self.c);
        }
    }

    fn place(&self, rows: &Range<usize>, columns: &Range<usize>, stride: usize) -> Place {
        let c_stride = self.c_stride;
        Place { row: rows.start, column: columns.start, rows: rows.len(), columns: columns.len(), c_stride, stride }
    }

    /// The zero point of A as it is packed.
    fn zero_a(&self) -> i32 {
        self.product.zero_a + if self.product.signed_a { 128 } else { 0 }
    }

    unsafe fn panel_b(&self, stretch: Stretch, index: usize) -> *mut u32 {
        // SAFETY: as demanded of the caller; a block has no more panels than the room. All but the last are full.
        unsafe {
            let panels = self.scratch.add(self.room.b).cast::<u32>().add(stretch.panels);
            panels.add(index * pitch(stretch.cells, self.plan.set.columns))
        }
    }

    fn sums(&self) -> *mut i64 {
        self.scratch.wrapping_add(self.room.sums).cast()
    }

    /// Terms of some rows or columns of the block.
    #[expect(clippy::mut_from_ref, reason = "scratch memory: callers hold one part at a time")]
    unsafe fn terms_mut(&self, room: usize, first: usize, count: usize) -> &mut [i32] {
        // SAFETY: as demanded of the caller; a block has no more rows and columns than the room. Bytes are integers.
        unsafe { std::slice::from_raw_parts_mut(self.scratch.add(room).cast::<i32>().add(first), count) }
    }
}

/// A tile of sums, on cache lines of its own.
#[repr(align(64))]
struct TileSums([i32; MAX_ROWS * MAX_COLUMNS]);

impl TileSums {
    fn zeros() -> TileSums {
        TileSums([0; MAX_ROWS * MAX_COLUMNS])
    }
}

/// Cuts a range into parts of `size`, the last one maybe smaller.
fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..(begin + size).min(end))
}
