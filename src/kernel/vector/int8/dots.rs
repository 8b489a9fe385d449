//! Dot products along K: few rows of A with a B that lies along K, or any rows of A with few columns of B.
//!
//! The few are *held*: copied to rows of cells in scratch memory. The many are *streams*, read once, in place. A zero
//! point that needs the sums of the streams adds one held row of ones.

use super::finish::{self, TilePosition};
use super::panel::{self, CellFormat, PackSource};
use super::product::Int8Piece;
use super::tile::{CellRows, ROUND, parts};
use std::ops::Range;

/// Maximum rows and columns that are held.
pub const MAX_ROWS: usize = 32;
/// The maximum if K is short, and the bound of a short K: packing B then costs less than reducing.
pub const MAX_ROWS_SHORT: usize = 12;
const SHORT: usize = 1024;
pub const MAX_COLUMNS: usize = 8;
impl DotsKernels {
    /// Maximum rows that are held.
    pub fn most_rows(&self, k: usize) -> usize {
        if k < SHORT { MAX_ROWS_SHORT } else { self.rows }
    }
}

/// Streams whose sums are finished together; pieces begin at multiples of it.
pub const STREAMS: usize = 64;
/// Maximum accumulator registers of any `DotLanes`.
const MOST_SUMS: usize = 16;

/// This algorithm on one instruction set.
#[derive(Clone, Copy)]
pub struct DotsKernels {
    /// Numbers along K per step.
    pub step: usize,
    /// Maximum rows that are held if K is long.
    pub rows: usize,
    pub run: unsafe fn(&Int8Piece<'_>, Range<usize>),
}

/// The register operations: STEP numbers along K of the held and of the streams, and SUMS accumulator registers.
///
/// # Safety
/// For all functions: the processor has the instructions; memory arguments are readable for STEP numbers, or writable
/// for SUMS integers.
pub trait DotLanes {
    type Register: Copy;
    type CellFormat: CellFormat;
    const STEP: usize;
    const SUMS: usize;

    unsafe fn zero() -> Self::Register;
    unsafe fn held(data: *const u8) -> Self::Register;
    unsafe fn stream<const SIGNED: bool>(data: *const u8, flip: u8) -> Self::Register;
    /// The first `count` numbers, fewer than a step; only their memory is readable, and the others may be anything.
    unsafe fn rest<const SIGNED: bool>(data: *const u8, count: usize, flip: u8) -> Self::Register;
    /// With SIGNED the streams are signed and the held unsigned; otherwise the reverse.
    unsafe fn step<const SIGNED: bool>(
        sum: Self::Register,
        held: Self::Register,
        stream: Self::Register,
    ) -> Self::Register;
    unsafe fn add(a: Self::Register, b: Self::Register) -> Self::Register;
    /// Reduces four registers side by side, to parts of a register with four sums each.
    unsafe fn four(sums: [Self::Register; 4]) -> Self::Register;
    /// Reduces the parts of SUMS / 4 such registers to SUMS sums.
    unsafe fn add_up(fours: &[Self::Register], out: *mut i32);
}

struct DotsLayout {
    /// Bytes of a held row.
    stride: usize,
    groups: usize,
    tile: usize,
    turned: usize,
    bytes: usize,
}

fn layout(held: usize, k: usize, step: usize, depth: usize) -> DotsLayout {
    let groups = k.next_multiple_of(step) / depth;
    let stride = groups * size_of::<u32>() + ROUND;
    let tile = ((held + 1) * stride).next_multiple_of(ROUND);
    let size = (held + 1) * STREAMS * size_of::<i32>();
    DotsLayout { stride, groups, tile, turned: tile + size, bytes: tile + 2 * size }
}

/// Scratch memory of a slot, in bytes.
pub fn bytes(held: usize, k: usize, step: usize, depth: usize) -> usize {
    layout(held, k, step, depth).bytes
}

/// The part of C of some streams.
///
/// # Safety
/// As for all functions of `Int8Piece`; the streams, columns or rows, are claimed; the demands of `DotLanes`.
#[inline(always)]
pub unsafe fn run<L: DotLanes>(piece: &Int8Piece<'_>, streams: Range<usize>) {
    // SAFETY: passed on.
    unsafe { if piece.holds_a { run_with::<L, true>(piece, streams) } else { run_with::<L, false>(piece, streams) } }
}

/// # Safety
/// As `run`.
#[inline(always)]
unsafe fn run_with<L: DotLanes, const HOLDS_A: bool>(piece: &Int8Piece<'_>, streams: Range<usize>) {
    let product = piece.product;
    let k = product.k;
    let (matrix_b, transpose_b) = match product.packed_b.and_then(|packed| packed.columns()) {
        Some(columns) => (columns, true),
        None => (product.b, product.transpose_b),
    };
    let (zero_a, zero_b) = (product.packed_zero_a(), product.zero_b);
    let flip_a = if product.signed_a { 128 } else { 0 };
    // SAFETY: the matrices hold m, n and k; the scratch memory has the layout.
    unsafe {
        let a = PackSource {
            data: product.a.at(0, 0),
            stride: product.a.stride(),
            along: !product.transpose_a,
            depth: k,
            flip: flip_a,
            far: false,
        };
        let b = PackSource {
            data: matrix_b.at(0, 0),
            stride: matrix_b.stride(),
            along: transpose_b,
            depth: k,
            flip: 0,
            far: false,
        };
        let (held, stream, count, flip) = if HOLDS_A { (a, b, product.m, 0) } else { (b, a, product.n, flip_a) };
        let (held_zero, stream_zero) = if HOLDS_A { (zero_a, zero_b) } else { (zero_b, zero_a) };
        let layout = layout(count, k, L::STEP, L::CellFormat::DEPTH);
        let memory = piece.scratch;
        // The held are signed if the streams are not.
        if !piece.held.replace(Some(0)) {
            if HOLDS_A {
                panel::pack_rows::<L::CellFormat>(&held, layout.groups, count, memory, layout.stride);
            } else {
                panel::pack_rows_of::<L::CellFormat, true>(&held, layout.groups, count, memory, layout.stride);
            }
            let ones = memory.add(count * layout.stride).cast::<u32>();
            let ones = std::slice::from_raw_parts_mut(ones, layout.groups);
            for (group, cell) in ones.iter_mut().enumerate() {
                let there = k.saturating_sub(group * L::CellFormat::DEPTH);
                *cell = L::CellFormat::join::<false>(std::array::from_fn(|i| u8::from(i < there)));
            }
        }
        let rows = if held_zero == 0 { count } else { count + 1 };
        // The contribution of the zero points to each held row.
        let mut terms = [0; MAX_ROWS];
        if stream_zero != 0 {
            let rows = CellRows { data: memory, stride: layout.stride };
            if HOLDS_A {
                panel::row_sums::<L::CellFormat, false>(rows, layout.groups, &mut terms[..count]);
            } else {
                panel::row_sums::<L::CellFormat, true>(rows, layout.groups, &mut terms[..count]);
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
                    (2.., _) => block::<L, HOLDS_A, 2, 4>(held, &from, tile),
                    (_, 16) => single::<L, HOLDS_A, 4>(held.0, &from, tile),
                    (_, _) => single::<L, HOLDS_A, 2>(held.0, &from, tile),
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
            let mut place = TilePosition {
                row: 0,
                column: streams.start,
                rows: count,
                columns: streams.len(),
                c_stride: piece.c_stride,
                stride: STREAMS,
            };
            let mut sums = tile;
            if !HOLDS_A && count == 1 {
                // A column of C is one row of the tile.
                place =
                    TilePosition { row: streams.start, column: 0, rows: streams.len(), columns: 1, stride: 1, ..place };
            } else if !HOLDS_A {
                sums = memory.add(layout.turned).cast();
                for j in 0..streams.len() {
                    for i in 0..count {
                        *sums.add(j * count + i) = *tile.add(i * STREAMS + j);
                    }
                }
                place = TilePosition {
                    row: streams.start,
                    column: 0,
                    rows: streams.len(),
                    columns: count,
                    c_stride: piece.c_stride,
                    stride: count,
                };
            }
            if product.rule.is_plain() && place.columns == 1 && place.c_stride == 1 {
                sums.copy_to_nonoverlapping(piece.c.add(place.row), place.rows);
            } else if product.rule.is_plain() && place.columns < STREAMS / 4 {
                // A call would cost more than such a small copy.
                for i in 0..place.rows {
                    let c = piece.c.add((place.row + i) * place.c_stride + place.column);
                    for j in 0..place.columns {
                        *c.add(j) = *sums.add(i * place.stride + j);
                    }
                }
            } else if product.rule.is_plain() {
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

/// The sums of R held rows with all these streams, S at once; returns R.
///
/// # Safety
/// The held rows have whole steps; there is a stream, and at most STREAMS; the tile has R rows of STREAMS. R * S is
/// SUMS.
#[inline(always)]
unsafe fn block<L: DotLanes, const SIGNED: bool, const R: usize, const S: usize>(
    held: (*const u8, usize),
    from: &Streams,
    tile: *mut i32,
) -> usize {
    let whole = from.k / L::STEP * L::STEP;
    // SAFETY: as demanded of the caller.
    unsafe {
        for first in (0..from.count).step_by(S) {
            let mut sums = [[L::zero(); S]; R];
            // A stream that does not exist repeats the last one.
            let streams: [*const u8; S] =
                std::array::from_fn(|j| from.data.add((first + j).min(from.count - 1) * from.stride));
            for step in (0..whole).step_by(L::STEP) {
                add_step::<L, SIGNED, R, S>(&mut sums, held, step, streams.map(|stream| stream.add(step)), from.flip);
            }
            if whole < from.k {
                let held = held_step::<L, R>(held, whole);
                for j in 0..S {
                    let numbers = L::rest::<SIGNED>(streams[j].add(whole), from.k - whole, from.flip);
                    for i in 0..R {
                        sums[i][j] = L::step::<SIGNED>(sums[i][j], held[i], numbers);
                    }
                }
            }
            let mut out = [[0i32; S]; R];
            let mut fours = [L::zero(); MOST_SUMS / 4];
            for (four, sums) in fours.iter_mut().zip(sums.as_flattened().chunks_exact(4)) {
                *four = L::four([sums[0], sums[1], sums[2], sums[3]]);
            }
            L::add_up(&fours[..L::SUMS / 4], out.as_mut_ptr().cast());
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

/// Streams that are read at once for a single held row, a few cache lines of each.
const ABREAST: usize = 4;
const LINES: usize = 2;

/// The sums of one held row with all these streams, Q times ABREAST at once, which is SUMS; returns 1. Hardware
/// prefetches few streams better than many.
///
/// # Safety
/// As `block`.
#[inline(always)]
unsafe fn single<L: DotLanes, const SIGNED: bool, const Q: usize>(
    held: *const u8,
    from: &Streams,
    tile: *mut i32,
) -> usize {
    // SAFETY: as demanded of the caller.
    unsafe {
        for first in (0..from.count).step_by(L::SUMS) {
            let mut sums = [L::zero(); Q];
            let mut data = from.data.add(first * from.stride);
            for (index, sums) in sums.iter_mut().enumerate() {
                let mut streams: [*const u8; ABREAST] = std::array::from_fn(|j| data.wrapping_add(j * from.stride));
                data = data.wrapping_add(ABREAST * from.stride);
                if from.count < first + (index + 1) * ABREAST {
                    // A stream that does not exist repeats the last one.
                    let stream = |j: usize| (first + index * ABREAST + j).min(from.count - 1);
                    streams = std::array::from_fn(|j| from.data.add(stream(j) * from.stride));
                }
                *sums = L::four(abreast::<L, SIGNED>(held, streams, from));
            }
            let mut out = [0i32; MOST_SUMS];
            L::add_up(&sums, out.as_mut_ptr());
            if from.count - first >= L::SUMS {
                *tile.add(first).cast::<[[i32; ABREAST]; Q]>() = *out.as_ptr().cast();
            } else {
                out.as_ptr().copy_to_nonoverlapping(tile.add(first), from.count - first);
            }
        }
    }
    1
}

/// # Safety
/// As `single`, for some of the streams.
#[inline(always)]
unsafe fn abreast<L: DotLanes, const SIGNED: bool>(
    held: *const u8,
    streams: [*const u8; ABREAST],
    from: &Streams,
) -> [L::Register; ABREAST] {
    let whole = from.k / L::STEP * L::STEP;
    // SAFETY: as demanded of the caller. Cells have four bytes.
    unsafe {
        let mut sums = [[L::zero(); ABREAST]; LINES];
        let mut at = 0;
        while at + LINES * L::STEP <= whole {
            for sums in &mut sums {
                let held = L::held(held.add(at / L::CellFormat::DEPTH * size_of::<u32>()));
                for (sum, stream) in sums.iter_mut().zip(streams) {
                    *sum = L::step::<SIGNED>(*sum, held, L::stream::<SIGNED>(stream.add(at), from.flip));
                }
                at += L::STEP;
            }
        }
        while at < from.k {
            let held = L::held(held.add(at / L::CellFormat::DEPTH * size_of::<u32>()));
            for (sum, stream) in sums[0].iter_mut().zip(streams) {
                let stream = stream.add(at);
                let numbers = if at < whole {
                    L::stream::<SIGNED>(stream, from.flip)
                } else {
                    L::rest::<SIGNED>(stream, from.k - whole, from.flip)
                };
                *sum = L::step::<SIGNED>(*sum, held, numbers);
            }
            at += L::STEP;
        }
        let [mut sums, others] = sums;
        for (sum, other) in sums.iter_mut().zip(others) {
            *sum = L::add(*sum, other);
        }
        sums
    }
}

/// # Safety
/// As `block`, for a step of K that begins at `at`.
#[inline(always)]
unsafe fn held_step<L: DotLanes, const R: usize>((held, stride): (*const u8, usize), at: usize) -> [L::Register; R] {
    // SAFETY: as demanded of the caller. Cells have four bytes.
    unsafe {
        let held = held.add(at / L::CellFormat::DEPTH * size_of::<u32>());
        std::array::from_fn(|i| L::held(held.add(i * stride)))
    }
}

/// # Safety
/// As `held_step`.
#[inline(always)]
unsafe fn add_step<L: DotLanes, const SIGNED: bool, const R: usize, const S: usize>(
    sums: &mut [[L::Register; S]; R],
    held: (*const u8, usize),
    at: usize,
    streams: [*const u8; S],
    flip: u8,
) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let held = held_step::<L, R>(held, at);
        for j in 0..S {
            let numbers = L::stream::<SIGNED>(streams[j], flip);
            for i in 0..R {
                sums[i][j] = L::step::<SIGNED>(sums[i][j], held[i], numbers);
            }
        }
    }
}
