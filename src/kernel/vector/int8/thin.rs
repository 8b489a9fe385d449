//! Few rows of A and a B that lies along N: B is read once, in place, and never packed.
//!
//! ```text
//! for each strip of columns, with accumulators in the L1 cache
//!     for each chunk of K                     rows of B that are read side by side, each contiguously
//!         for each block of columns: for all rows of A, interleave the chunk's rows and add their products
//!     restore the order of the accumulators, and finish
//! ```
//!
//! The sums of columns that the zero point of A needs are those of one more row of A, of ones.

use super::finish::{self, TilePosition};
use super::panel::{self, CellFormat, PackSource};
use super::product::Int8Piece;
use super::tile::{CellRows, ROUND, parts};
use std::ops::Range;

/// Maximum rows of A, and the maximum if B is far: packing prefetches it, which uses more of the memory bandwidth than
/// reading this many of its rows side by side.
pub const MAX_ROWS: usize = 8;
pub const MAX_ROWS_FAR: usize = 2;
/// Rows of B in a chunk.
const CHUNK: usize = 32;
/// Bytes for the sums of a strip.
const BYTES_OF_SUMS: usize = 24 << 10;

/// This algorithm on one instruction set.
#[derive(Clone, Copy)]
pub struct ThinKernels {
    /// Columns of a block; pieces begin at multiples of it.
    pub columns: usize,
    pub run: unsafe fn(&Int8Piece<'_>, Range<usize>),
}

/// The register operations. Four of them have the cells of a block, possibly in another order than in memory until
/// `in_order`.
///
/// # Safety
/// For all functions: the processor has the instructions; memory arguments are readable or writable for a register, or
/// for the rows that make a cell, of COLUMNS bytes.
pub trait ThinLanes {
    type Register: Copy;
    type CellFormat: CellFormat;
    const COLUMNS: usize;
    /// Maximum rows of A with accumulators in registers at once.
    const ROWS: usize;

    unsafe fn load(sums: *const i32) -> Self::Register;
    unsafe fn store(sums: *mut i32, register: Self::Register);
    unsafe fn weave(data: *const u8, stride: usize) -> [Self::Register; 4];
    unsafe fn step(sum: Self::Register, cell: i32, b: Self::Register) -> Self::Register;
    unsafe fn in_order(registers: [Self::Register; 4]) -> [Self::Register; 4];
}

/// The layout of the slot's scratch memory.
struct ThinLayout {
    /// Rows of A, including the row of ones.
    rows: usize,
    /// Bytes of a row of cells.
    stride: usize,
    /// Columns of a strip.
    strip: usize,
    sums: usize,
    copy: usize,
    tile: usize,
    bytes: usize,
}

fn layout(piece_rows: usize, k: usize, n: usize, depth: usize, columns: usize) -> ThinLayout {
    let rows = piece_rows + 1;
    let stride = k.div_ceil(depth).next_multiple_of(CHUNK / depth) * size_of::<u32>() + ROUND;
    let strip = (BYTES_OF_SUMS / (4 * rows) / columns * columns).max(columns).min(n.next_multiple_of(columns));
    let sums = (rows * stride).next_multiple_of(ROUND);
    let copy = sums + rows * strip * size_of::<i32>();
    let tile = copy + CHUNK * columns;
    ThinLayout { rows, stride, strip, sums, copy, tile, bytes: tile + rows * columns * size_of::<i32>() }
}

/// Scratch memory of a slot, in bytes.
pub fn bytes(m: usize, k: usize, n: usize, depth: usize, columns: usize) -> usize {
    layout(m, k, n, depth, columns).bytes
}

/// Some columns of C.
///
/// # Safety
/// As for all functions of `Int8Piece`; the columns are claimed; the demands of `ThinLanes`.
#[inline(always)]
pub unsafe fn run<L: ThinLanes>(piece: &Int8Piece<'_>, columns: Range<usize>) {
    let product = piece.product;
    let (m, k, depth) = (product.m, product.k, L::CellFormat::DEPTH);
    let layout = layout(m, k, product.n, depth, L::COLUMNS);
    let (zero_a, zero_b) = (product.packed_zero_a(), product.zero_b);
    let used = if zero_a == 0 { m } else { layout.rows };
    let at_once = used.div_ceil(used.div_ceil(L::ROWS));
    let mut row_terms = [0; MAX_ROWS];
    // SAFETY: the matrices hold m, n and k; the scratch memory has the layout.
    unsafe {
        let a = piece.scratch;
        let data = product.a.at(0, 0);
        let flip = if product.signed_a { 128 } else { 0 };
        let source =
            PackSource { data, stride: product.a.stride(), along: !product.transpose_a, depth: k, flip, far: false };
        if !piece.held.replace(Some(0)) {
            panel::pack_rows::<L::CellFormat>(&source, k.div_ceil(depth), m, a, layout.stride);
            let ones = a.add(m * layout.stride).cast::<u32>();
            std::slice::from_raw_parts_mut(ones, k.div_ceil(depth)).fill(L::CellFormat::join::<false>([1; 4]));
        }
        if zero_b != 0 {
            let rows = CellRows { data: a, stride: layout.stride };
            panel::row_sums::<L::CellFormat, false>(rows, k.div_ceil(depth), &mut row_terms[..m]);
            let both = (k as i32).wrapping_mul(zero_a * zero_b);
            row_terms.iter_mut().for_each(|term| *term = both.wrapping_sub(term.wrapping_mul(zero_b)));
        }
        let all_sums = a.add(layout.sums).cast::<i32>();
        for strip in parts(&columns, layout.strip) {
            std::slice::from_raw_parts_mut(all_sums, used * layout.strip).fill(0);
            for begin in (0..k).step_by(CHUNK) {
                let end = k.min(begin + CHUNK);
                for block in parts(&strip, L::COLUMNS) {
                    let mut from = (product.b.at(begin, block.start), product.b.stride());
                    if block.len() < L::COLUMNS || (end - begin) % depth != 0 {
                        let copy = a.add(layout.copy);
                        std::slice::from_raw_parts_mut(copy, CHUNK * L::COLUMNS).fill(0);
                        for row in begin..end {
                            let to = copy.add((row - begin) * L::COLUMNS);
                            product.b.at(row, block.start).copy_to_nonoverlapping(to, block.len());
                        }
                        from = (copy.cast_const(), L::COLUMNS);
                    }
                    let groups = (end - begin).div_ceil(depth);
                    for rows in parts(&(0..used), at_once) {
                        let a = a.add(rows.start * layout.stride + begin / depth * size_of::<u32>());
                        let sums = all_sums.add(rows.start * layout.strip + block.start - strip.start);
                        let (a, sums) = ((a.cast_const(), layout.stride), (sums, layout.strip));
                        match rows.len() {
                            1 => chunk::<L, 1>(groups, a, from, sums),
                            2 => chunk::<L, 2>(groups, a, from, sums),
                            3 => chunk::<L, 3>(groups, a, from, sums),
                            4 => chunk::<L, 4>(groups, a, from, sums),
                            _ => chunk::<L, 5>(groups, a, from, sums),
                        }
                    }
                }
            }
            for block in parts(&strip, L::COLUMNS) {
                let tile = a.add(layout.tile).cast::<i32>();
                for row in (0..used).rev() {
                    let sums = all_sums.add(row * layout.strip + block.start - strip.start);
                    let size = L::COLUMNS / 4;
                    let registers = L::in_order(std::array::from_fn(|i| L::load(sums.add(i * size))));
                    let line = tile.add(row * L::COLUMNS);
                    for (i, register) in registers.into_iter().enumerate() {
                        L::store(line.add(i * size), register);
                    }
                    if row < m && (zero_a != 0 || zero_b != 0) {
                        // The sums of the columns are the last row, which is complete.
                        let of_columns = tile.add(m * L::COLUMNS);
                        for j in 0..L::COLUMNS {
                            let sum = if zero_a == 0 { 0 } else { (*of_columns.add(j)).wrapping_mul(zero_a) };
                            let value = (*line.add(j)).wrapping_add(row_terms[row]).wrapping_sub(sum);
                            *line.add(j) = value;
                        }
                    }
                }
                if product.rule.is_plain() {
                    for row in 0..m {
                        let c = piece.c.add(row * piece.c_stride + block.start);
                        tile.add(row * L::COLUMNS).copy_to_nonoverlapping(c, block.len());
                    }
                } else {
                    let place = TilePosition {
                        row: 0,
                        column: block.start,
                        rows: m,
                        columns: block.len(),
                        c_stride: piece.c_stride,
                        stride: L::COLUMNS,
                    };
                    finish::tile(&product.rule, &place, std::slice::from_raw_parts(tile, m * L::COLUMNS), piece.c);
                }
            }
        }
    }
}

/// Adds the products of some rows of cells with a block of as many groups.
///
/// # Safety
/// A has R rows of `groups` cells, B as many groups of rows of COLUMNS bytes, the sums R rows of COLUMNS.
#[inline(always)]
unsafe fn chunk<L: ThinLanes, const R: usize>(
    groups: usize,
    (a, a_stride): (*const u8, usize),
    (b, b_stride): (*const u8, usize),
    (out, out_stride): (*mut i32, usize),
) {
    let size = L::COLUMNS / 4;
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut sums: [[L::Register; 4]; R] =
            std::array::from_fn(|row| std::array::from_fn(|i| L::load(out.add(row * out_stride + i * size))));
        for group in 0..groups {
            let b = L::weave(b.add(group * L::CellFormat::DEPTH * b_stride), b_stride);
            for (row, sums) in sums.iter_mut().enumerate() {
                let cell = a.add(row * a_stride).cast::<i32>().add(group).read_unaligned();
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = L::step(*sum, cell, b);
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            for (i, sum) in sums.into_iter().enumerate() {
                L::store(out.add(row * out_stride + i * size), sum);
            }
        }
    }
}
