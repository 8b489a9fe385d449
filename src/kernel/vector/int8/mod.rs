//! The matrix product of bytes: C = saturate(alpha * (A - zero_a) * (B - zero_b) + beta * C + offset), 32-bit C.
//!
//! C is cut into tiles, numbered down the columns; a piece of the region is a run of tiles, that is one to three
//! rectangles. A rectangle is computed in blocks whose panels (`panel`) lie in the second-level cache:
//!
//! ```text
//! for each block of columns
//!     for each block of rows
//!         for each stretch of K                     one, unless K is thousands
//!             pack B: stretch x block of columns    once, if there is one stretch
//!             pack A: block of rows x stretch
//!             for each panel of B
//!                 for each panel of A: micro-kernel, then finish, or add to the sums of the block
//!         finish the block                          if there are several stretches
//! ```
//!
//! Exact: a stretch has at most `MAX_CELLS` cells of four bytes, so its sums, with the zero points taken out, fit in
//! 32 bits, and what is computed of them modulo 2^32 is right. Sums of several stretches have 64 bits. So an element
//! depends on its row, its column and the rule alone, not on the instruction set, the blocks, the cut or the pool.
//!
//! Zero points cost a sum of each row and each column: (a - p)(b - q) adds up to ab - p sum(b) - q sum(a) + K p q.
//! Signed A is packed as unsigned, 128 greater, with a zero point 128 greater.
//!
//! A few rows with a B that is not packed yet, and a few columns, are multiplied without packing where the set can (`thin`).
//!
//! Everything lies in the slot's scratch memory. Nothing is allocated.

#[cfg(target_arch = "x86_64")]
mod few;
mod finish;
mod micro;
mod panel;
mod panels;
mod scaled;
#[cfg(test)]
mod tests;
mod thin;

pub use finish::{Offset, Rule};
pub use panels::BytePanels;
pub use scaled::{Scaled, Store, compute_scaled, scratch_bytes};

use super::isa::Isa;
use super::site::{Matrix, MatrixMut, Site};
use crate::base::Result;
use crate::memory::ALIGNMENT;
use crate::sync::Claim;
use crate::threadpool::Span;
use finish::{Place, Stash};
use micro::{MAX_COLUMNS, MAX_ROWS, Set, Terms};
use panel::{Source, pitch};
use std::ops::Range;

/// Rows and columns of a tile of the cut: whole tiles of every set of micro-kernels.
const TILE: (usize, usize) = (48, 64);
/// Most cells along K of a stretch. 4096 numbers of magnitude 255 squared are below 2^31 by far.
const MAX_CELLS: usize = 1024;
/// Room for the panels of a block: together they stay well inside a second-level cache of a megabyte.
const BYTES_OF_A: usize = 192 << 10;
const BYTES_OF_B: usize = 512 << 10;
/// Most columns of a block, for short K.
const MAX_BLOCK: usize = 1024;
const CELL: usize = size_of::<u32>();

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

/// How a product is computed. Depends on the sizes and the instruction set.
#[derive(Clone, Copy)]
struct Plan {
    set: &'static Set,
    /// Numbers along K of a stretch, the last one maybe fewer.
    depth: usize,
    stretches: usize,
    block_rows: usize,
    block_columns: usize,
    /// Whether B needs no panels of its own.
    packed_b: bool,
    /// Whether few rows, and few columns, need no panels at all.
    few_rows: bool,
    few_columns: bool,
    tiles_down: usize,
    tiles: usize,
}

/// Numbers along K of a stretch, and how many stretches there are: at least one, so that without K there are sums, zeros.
fn stretches(k: usize, set: &Set) -> (usize, usize) {
    let depth = k.div_ceil(k.div_ceil(MAX_CELLS * set.depth).max(1)).next_multiple_of(set.depth);
    // The last one may have become superfluous by rounding the others up.
    (depth, if k == 0 { 1 } else { k.div_ceil(depth) })
}

impl Plan {
    fn new(product: &Product<'_>, isa: Isa) -> Plan {
        let set = Set::of(isa);
        let (m, n) = (product.m, product.n);
        let k = if product.rule.alpha == 0.0 { 0 } else { product.k };
        let (depth, stretches) = stretches(k, set);
        let bytes = (depth / set.depth * CELL).max(1);
        let block = |bytes_of_all: usize, step: usize, most: usize| {
            (bytes_of_all / bytes).clamp(step, MAX_BLOCK).min(most.next_multiple_of(step)) / step * step
        };
        let tiles_down = m.div_ceil(TILE.0);
        let can_be_thin =
            thin::is_there(isa) && product.packed_b.is_none() && !product.transpose_a && (k > 0 && stretches == 1);
        Plan {
            set,
            depth,
            stretches,
            block_rows: block(BYTES_OF_A, set.rows, m),
            block_columns: block(BYTES_OF_B, set.columns, n),
            packed_b: product.packed_b.is_some(),
            few_rows: can_be_thin && m <= thin::ROWS,
            few_columns: can_be_thin && n <= thin::ROWS && product.columns_lie_along(),
            tiles_down,
            tiles: tiles_down * n.div_ceil(TILE.1),
        }
    }

    fn cells(&self) -> usize {
        self.depth / self.set.depth
    }

    fn room(&self) -> Room {
        let mut end = 0;
        let mut next = |bytes: usize| {
            let begin = end;
            end = (begin + bytes).next_multiple_of(ALIGNMENT);
            begin
        };
        let sums = if self.stretches > 1 { self.block_rows * self.block_columns } else { 0 };
        let panels_of_b = if self.packed_b { 0 } else { self.block_columns / self.set.columns };
        let copies = (thin::ROWS + 1) * self.depth.next_multiple_of(thin::DEEP);
        let thin = if self.few_rows || self.few_columns { thin::SUMS * size_of::<i32>() + copies } else { 0 };
        Room {
            thin: next(thin),
            b: next(panels_of_b * pitch(self.cells(), self.set.columns) * CELL),
            a: next(self.block_rows / self.set.rows * pitch(self.cells(), self.set.rows) * CELL),
            row_terms: next(self.block_rows * size_of::<i32>()),
            column_terms: next(self.block_columns * size_of::<i32>()),
            sums: next(sums * size_of::<i64>()),
            bytes: end,
        }
    }
}

/// What lies where in a slot's scratch memory.
#[derive(Clone, Copy)]
struct Room {
    /// Sums and copies of rows of products that pack nothing.
    thin: usize,
    b: usize,
    a: usize,
    row_terms: usize,
    column_terms: usize,
    sums: usize,
    bytes: usize,
}

impl Product<'_> {
    /// Whether neighbours along K of a column of B are neighbours in memory. Without data, that is not known of a single column.
    fn columns_lie_along(&self) -> bool {
        self.transpose_b || self.n == 1 && self.b.stride() <= 1
    }

    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self, isa: Isa) -> usize {
        Plan::new(self, isa).room().bytes
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self, isa: Isa) -> u64 {
        // Operations per nanosecond; 10 GB/s.
        let rate = match isa {
            Isa::Avx512Vnni => 300.0,
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
    if plan.tiles == 0 {
        return Ok(());
    }
    let room = plan.room();
    let cost_ns = product.cost_ns(isa) as f32 / plan.tiles as f32;
    let span = Span { items: plan.tiles, cost_ns, ..Span::default() };
    site.parallel_for(&span, &|claim| {
        let scratch = site.scratch(claim.slot());
        let piece = Piece { product, plan: &plan, room: &room, scratch, c: c.data(), c_stride: c.stride() };
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
    first: bool,
}

/// # Safety
/// For all functions: the scratch memory is as large as the room, `c` has the size of the result; nobody else uses the
/// scratch memory or the claimed tiles meanwhile; rows and columns are of claimed tiles.
impl Piece<'_> {
    unsafe fn run(&self, claim: &Claim) {
        let Plan { tiles_down, tiles, .. } = *self.plan;
        assert!(claim.end() <= tiles);
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
            // SAFETY: the rows and columns of claimed tiles, inside C.
            unsafe {
                self.rectangle(
                    down * TILE.0..((down + rows) * TILE.0).min(self.product.m),
                    across * TILE.1..((across + columns) * TILE.1).min(self.product.n),
                );
            }
            tile += rows * columns;
        }
    }

    unsafe fn rectangle(&self, rows: Range<usize>, columns: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        if self.plan.few_rows || self.plan.few_columns {
            // SAFETY: passed on; the plan says that the set can.
            unsafe { self.thin(&rows, &columns) };
            return;
        }
        let Plan { depth, stretches, .. } = *self.plan;
        let k = if self.product.rule.alpha == 0.0 { 0 } else { self.product.k };
        for columns in parts(&columns, self.plan.block_columns) {
            let mut packed = None;
            for rows in parts(&rows, self.plan.block_rows) {
                for number in 0..stretches {
                    let begin = number * depth;
                    let depth = depth.min(k - begin);
                    let cells = depth.div_ceil(self.plan.set.depth);
                    let stretch = Stretch { begin, depth, cells, first: number == 0 };
                    // SAFETY: passed on.
                    unsafe {
                        if packed.replace(number) != Some(number) {
                            self.pack_b(stretch, &columns);
                        }
                        self.pack_a(stretch, &rows);
                        self.multiply(stretch, &rows, &columns);
                    }
                }
                if stretches > 1 {
                    // SAFETY: passed on; the sums of the block were stashed.
                    unsafe { self.finish_block(&rows, &columns) };
                }
            }
        }
    }

    /// Panels of B for a block of columns, and what the zero point of A adds to each column.
    unsafe fn pack_b(&self, stretch: Stretch, columns: &Range<usize>) {
        let Product { b, transpose_b, .. } = *self.product;
        let (set, zero_a) = (self.plan.set, self.zero_a());
        if let Some(packed) = self.product.packed_b {
            if zero_a != 0 || self.product.zero_b != 0 {
                let count = columns.len().next_multiple_of(set.columns);
                // SAFETY: the packed sums have whole panels, and so have the terms of a block.
                unsafe {
                    let sums = std::slice::from_raw_parts(packed.sums_at(stretch.begin, columns.start), count);
                    let terms = self.terms_mut(self.room.column_terms, 0, count);
                    terms.iter_mut().zip(sums).for_each(|(term, sum)| *term = sum.wrapping_mul(-zero_a));
                }
            }
            return;
        }
        // SAFETY: the columns and the stretch are inside B; the room has as many panels and terms as a block.
        unsafe {
            let (row, column) = (stretch.begin, columns.start);
            let data = if transpose_b { b.at(column, row) } else { b.at(row, column) };
            let source = Source { data, stride: b.stride(), along: transpose_b, depth: stretch.depth, flip: 0 };
            (set.pack_b)(&source, stretch.cells, columns.len(), self.panel_b(stretch, 0));
            for index in 0..columns.len().div_ceil(set.columns) {
                let terms = self.terms_mut(self.room.column_terms, index * set.columns, set.columns);
                terms.fill(0);
                if zero_a != 0 {
                    (set.sums_b)(self.panel_b(stretch, index), stretch.cells, set.columns, terms);
                    terms.iter_mut().for_each(|term| *term = term.wrapping_mul(-zero_a));
                }
            }
        }
    }

    /// Panels of A for a block of rows, and what the zero point of B adds to each row.
    unsafe fn pack_a(&self, stretch: Stretch, rows: &Range<usize>) {
        let Product { a, transpose_a, signed_a, zero_b, .. } = *self.product;
        let (set, flip) = (self.plan.set, if signed_a { 128 } else { 0 });
        // SAFETY: the rows and the stretch are inside A; the room has as many panels and terms as a block.
        unsafe {
            let (row, column) = (rows.start, stretch.begin);
            let data = if transpose_a { a.at(column, row) } else { a.at(row, column) };
            let source = Source { data, stride: a.stride(), along: !transpose_a, depth: stretch.depth, flip };
            (set.pack_a)(&source, stretch.cells, rows.len(), self.panel_a(stretch, 0));
            for (index, rows) in parts(rows, set.rows).enumerate() {
                let terms = self.terms_mut(self.room.row_terms, index * set.rows, rows.len());
                terms.fill(0);
                if zero_b != 0 {
                    (set.sums_a)(self.panel_a(stretch, index), stretch.cells, rows.len(), terms);
                    let both = (stretch.depth as i32).wrapping_mul(self.zero_a() * zero_b);
                    terms.iter_mut().for_each(|term| *term = both.wrapping_sub(term.wrapping_mul(zero_b)));
                }
            }
        }
    }

    /// All tiles of a block for one stretch.
    unsafe fn multiply(&self, stretch: Stretch, rows: &Range<usize>, columns: &Range<usize>) {
        let Plan { set, stretches, block_columns, .. } = *self.plan;
        let has_terms = self.zero_a() != 0 || self.product.zero_b != 0;
        let plain = stretches == 1 && self.product.rule.is_plain();
        let mut tile = TileSums([0; MAX_ROWS * MAX_COLUMNS]);
        for (across, part_columns) in parts(columns, set.columns).enumerate() {
            for (down, part_rows) in parts(rows, set.rows).enumerate() {
                let (row, column) = (down * set.rows, across * set.columns);
                // SAFETY: the panels were packed; the tile is large enough for every set; the sums of a block are
                // its rows times the widest block's columns; the terms were written with the panels.
                unsafe {
                    let a = self.panel_a(stretch, down);
                    let b = match self.product.packed_b {
                        Some(packed) => packed.panel(stretch.begin, stretch.cells, part_columns.start),
                        None => self.panel_b(stretch, across).cast_const(),
                    };
                    let sums = set.tiles[part_rows.len() - 1];
                    let terms = has_terms.then(|| Terms {
                        rows: self.terms_mut(self.room.row_terms, row, part_rows.len()).as_ptr(),
                        columns: self.terms_mut(self.room.column_terms, column, set.columns).as_ptr(),
                    });
                    if plain && part_columns.len() == set.columns {
                        let c = self.c.add(part_rows.start * self.c_stride + part_columns.start);
                        sums(stretch.cells, a, b, terms, c, self.c_stride);
                        continue;
                    }
                    sums(stretch.cells, a, b, terms, tile.0.as_mut_ptr(), set.columns);
                    if stretches == 1 {
                        let place = self.place(&part_rows, &part_columns, set.columns);
                        (set.finish)(&self.product.rule, &place, &tile.0, self.c);
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

    unsafe fn panel_a(&self, stretch: Stretch, index: usize) -> *mut u32 {
        // SAFETY: as demanded of the caller; a block has no more panels than the room. All but the last are full.
        unsafe { self.scratch.add(self.room.a).cast::<u32>().add(index * pitch(stretch.cells, self.plan.set.rows)) }
    }

    unsafe fn panel_b(&self, stretch: Stretch, index: usize) -> *mut u32 {
        // SAFETY: as above.
        unsafe { self.scratch.add(self.room.b).cast::<u32>().add(index * pitch(stretch.cells, self.plan.set.columns)) }
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

/// Cuts a range into parts of `size`, the last one maybe smaller.
fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..(begin + size).min(end))
}
