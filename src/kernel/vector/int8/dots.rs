//! Few rows of A with a B that lies along K, or any rows of A with few columns of B: dot products along K.
//!
//! The few are *held*: copied to rows of cells in scratch memory. The many are *streams*, read once, where they are. A
//! zero point that needs the sums of the streams has one more held row, of ones.

use super::finish::{self, Place};
use super::micro::Rows;
use super::panel::{self, Cell, Source};
use super::{Piece, ROUND, parts};
use std::ops::Range;

/// Most rows and columns that are held.
pub const MAX_ROWS: usize = 12;
pub const MAX_COLUMNS: usize = 8;
/// Streams whose sums are finished together; pieces begin at multiples of it.
pub const STREAMS: usize = 64;

/// This way on one instruction set.
#[derive(Clone, Copy)]
pub struct Way {
    /// Numbers along K of a step.
    pub step: usize,
    pub run: unsafe fn(&Piece<'_>, Range<usize>),
}

/// What it needs of registers: STEP numbers along K of the held and of the streams, and SUMS registers of sums.
///
/// # Safety
/// For all functions: the processor has the instructions; memory that is named is readable for STEP numbers, or writable
/// for SUMS integers.
pub trait Lanes {
    type Register: Copy;
    type Cell: Cell;
    const STEP: usize;
    const SUMS: usize;

    unsafe fn zero() -> Self::Register;
    unsafe fn held(data: *const u8) -> Self::Register;
    unsafe fn stream<const SIGNED: bool>(data: *const u8, flip: u8) -> Self::Register;
    /// SIGNED says that the streams are, and the held are not; otherwise the other way round.
    unsafe fn step<const SIGNED: bool>(
        sum: Self::Register,
        held: Self::Register,
        stream: Self::Register,
    ) -> Self::Register;
    /// What is in each of SUMS registers.
    unsafe fn add_up(sums: &[Self::Register], out: *mut i32);
}

struct Layout {
    /// Bytes of a held row.
    stride: usize,
    groups: usize,
    tile: usize,
    turned: usize,
    bytes: usize,
}

fn layout(held: usize, k: usize, step: usize, depth: usize) -> Layout {
    let groups = k.next_multiple_of(step) / depth;
    let stride = groups * size_of::<u32>() + ROUND;
    let tile = ((held + 1) * stride).next_multiple_of(ROUND);
    let size = (held + 1) * STREAMS * size_of::<i32>();
    Layout { stride, groups, tile, turned: tile + size, bytes: tile + 2 * size }
}

/// Scratch memory of a slot, in bytes.
pub fn bytes(held: usize, k: usize, step: usize, depth: usize) -> usize {
    layout(held, k, step, depth).bytes
}

/// The part of C of some streams.
///
/// # Safety
/// As for all functions of `Piece`; the streams, columns or rows, are claimed; what `Lanes` demands.
#[inline(always)]
pub unsafe fn run<L: Lanes>(piece: &Piece<'_>, streams: Range<usize>) {
    // SAFETY: passed on.
    unsafe {
        if piece.plan.holds_a { run_with::<L, true>(piece, streams) } else { run_with::<L, false>(piece, streams) }
    }
}

/// # Safety
/// As `run`.
#[inline(always)]
unsafe fn run_with<L: Lanes, const HOLDS_A: bool>(piece: &Piece<'_>, streams: Range<usize>) {
    let product = piece.product;
    let k = product.k;
    let (zero_a, zero_b) = (piece.zero_a(), product.zero_b);
    let flip_a = if product.signed_a { 128 } else { 0 };
    // SAFETY: the matrices hold m, n and k; the scratch memory has the layout.
    unsafe {
        let a = Source {
            data: product.a.at(0, 0),
            stride: product.a.stride(),
            along: !product.transpose_a,
            depth: k,
            flip: flip_a,
        };
        let b = Source {
            data: product.b.at(0, 0),
            stride: product.b.stride(),
            along: product.transpose_b,
            depth: k,
            flip: 0,
        };
        let (held, stream, count, flip) = if HOLDS_A { (a, b, product.m, 0) } else { (b, a, product.n, flip_a) };
        let (held_zero, stream_zero) = if HOLDS_A { (zero_a, zero_b) } else { (zero_b, zero_a) };
        let layout = layout(count, k, L::STEP, L::Cell::DEPTH);
        let memory = piece.scratch;
        // The held are signed if the streams are not.
        if HOLDS_A {
            panel::pack_rows::<L::Cell>(&held, layout.groups, count, memory, layout.stride);
        } else {
            panel::pack_rows_of::<L::Cell, true>(&held, layout.groups, count, memory, layout.stride);
        }
        let ones = memory.add(count * layout.stride).cast::<u32>();
        let ones = std::slice::from_raw_parts_mut(ones, layout.groups);
        for (group, cell) in ones.iter_mut().enumerate() {
            let there = k.saturating_sub(group * L::Cell::DEPTH);
            *cell = L::Cell::join::<false>(std::array::from_fn(|i| u8::from(i < there)));
        }
        let rows = if held_zero == 0 { count } else { count + 1 };
        // What the zero points add to each held row.
        let mut terms = [0; MAX_ROWS];
        if stream_zero != 0 {
            let rows = Rows { data: memory, stride: layout.stride };
            if HOLDS_A {
                panel::row_sums::<L::Cell, false>(rows, layout.groups, &mut terms[..count]);
            } else {
                panel::row_sums::<L::Cell, true>(rows, layout.groups, &mut terms[..count]);
            }
            let both = (k as i32).wrapping_mul(zero_a * zero_b);
            terms.iter_mut().for_each(|term| *term = both.wrapping_sub(term.wrapping_mul(stream_zero)));
        }
        let tile = memory.add(layout.tile).cast::<i32>();
        for streams in parts(&streams, STREAMS) {
            let data = stream.data.add(streams.start * stream.stride);
            let from = Streams { data, stride: stream.stride, count: streams.len(), flip, k };
            let mut row = 0;
            while row < rows {
                let held = (memory.add(row * layout.stride).cast_const(), layout.stride);
                let tile = tile.add(row * STREAMS);
                row += match (rows - row, L::SUMS) {
                    (4.., 16) => block::<L, HOLDS_A, 4, 4>(held, &from, tile),
                    (2.., 16) => block::<L, HOLDS_A, 2, 8>(held, &from, tile),
                    (_, 16) => block::<L, HOLDS_A, 1, 16>(held, &from, tile),
                    (2.., _) => block::<L, HOLDS_A, 2, 4>(held, &from, tile),
                    (_, _) => block::<L, HOLDS_A, 1, 8>(held, &from, tile),
                };
            }
            if zero_a != 0 || zero_b != 0 {
                let of_streams = tile.add(count * STREAMS);
                for (row, &term) in terms[..count].iter().enumerate() {
                    for j in 0..streams.len() {
                        let sum = if held_zero == 0 { 0 } else { (*of_streams.add(j)).wrapping_mul(held_zero) };
                        let at = tile.add(row * STREAMS + j);
                        *at = (*at).wrapping_add(term).wrapping_sub(sum);
                    }
                }
            }
            let mut place = Place {
                row: 0,
                column: streams.start,
                rows: count,
                columns: streams.len(),
                c_stride: piece.c_stride,
                stride: STREAMS,
            };
            let mut sums = tile;
            if !HOLDS_A {
                sums = memory.add(layout.turned).cast();
                for j in 0..streams.len() {
                    for i in 0..count {
                        *sums.add(j * count + i) = *tile.add(i * STREAMS + j);
                    }
                }
                place = Place {
                    row: streams.start,
                    column: 0,
                    rows: streams.len(),
                    columns: count,
                    c_stride: piece.c_stride,
                    stride: count,
                };
            }
            if product.rule.is_plain() {
                for i in 0..place.rows {
                    let c = piece.c.add((place.row + i) * place.c_stride + place.column);
                    sums.add(i * place.stride).copy_to_nonoverlapping(c, place.columns);
                }
            } else {
                let sums = std::slice::from_raw_parts(sums, place.rows * place.stride);
                finish::tile(&product.rule, &place, sums, piece.c);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Streams {
    data: *const u8,
    stride: usize,
    count: usize,
    flip: u8,
    k: usize,
}

/// The sums of R held rows with all these streams, S at once; gives R.
///
/// # Safety
/// The held rows have whole steps; there is a stream, and at most STREAMS; the tile has R rows of STREAMS. R * S is SUMS.
#[inline(always)]
unsafe fn block<L: Lanes, const SIGNED: bool, const R: usize, const S: usize>(
    held: (*const u8, usize),
    from: &Streams,
    tile: *mut i32,
) -> usize {
    let whole = from.k / L::STEP * L::STEP;
    // SAFETY: as demanded of the caller.
    unsafe {
        for first in (0..from.count).step_by(S) {
            let mut sums = [[L::zero(); S]; R];
            // A stream that is not there is the last one again.
            let streams: [*const u8; S] =
                std::array::from_fn(|j| from.data.add((first + j).min(from.count - 1) * from.stride));
            for step in (0..whole).step_by(L::STEP) {
                add_step::<L, SIGNED, R, S>(&mut sums, held, step, streams.map(|stream| stream.add(step)), from.flip);
            }
            if whole < from.k {
                let mut rests = [[0u8; 64]; S];
                for (rest, stream) in rests.iter_mut().zip(streams) {
                    stream.add(whole).copy_to_nonoverlapping(rest.as_mut_ptr(), from.k - whole);
                }
                let rests = std::array::from_fn(|j| rests[j].as_ptr());
                add_step::<L, SIGNED, R, S>(&mut sums, held, whole, rests, from.flip);
            }
            let mut out = [[0i32; S]; R];
            L::add_up(sums.as_flattened(), out.as_mut_ptr().cast());
            for (i, out) in out.iter().enumerate() {
                let tile = tile.add(i * STREAMS + first);
                if from.count - first >= S {
                    *tile.cast::<[i32; S]>() = *out;
                } else {
                    out.as_ptr().copy_to_nonoverlapping(tile, from.count - first);
                }
            }
        }
    }
    R
}

/// # Safety
/// As `block`, for a step of K that begins at `at`.
#[inline(always)]
unsafe fn add_step<L: Lanes, const SIGNED: bool, const R: usize, const S: usize>(
    sums: &mut [[L::Register; S]; R],
    (held, held_stride): (*const u8, usize),
    at: usize,
    streams: [*const u8; S],
    flip: u8,
) {
    // SAFETY: as demanded of the caller. Cells have four bytes.
    unsafe {
        let held = held.add(at / L::Cell::DEPTH * size_of::<u32>());
        let held: [L::Register; R] = std::array::from_fn(|i| L::held(held.add(i * held_stride)));
        for j in 0..S {
            let numbers = L::stream::<SIGNED>(streams[j], flip);
            for i in 0..R {
                sums[i][j] = L::step::<SIGNED>(sums[i][j], held[i], numbers);
            }
        }
    }
}
