//! Strided copies: elements of any type, known only by size, from one set of strides to another.
//!
//! A copy is described dimension by dimension and then simplified: elements that are contiguous on both sides become
//! one larger element, and neighbouring dimensions with one common stride on both sides are merged. One of three cases
//! remains:
//!
//! - lines: elements one after the other in one dimension, each moved as a run of bytes;
//! - tiles: the destination is consecutive along one dimension and the source along another one, which is a
//!   transposition of both, done in blocks that fit into registers (`tile`);
//! - nothing: a single run of bytes.
//!
//! An item of a region is some elements of a line, or a tile of at most 127 x 127 elements, or as many in a longer one
//! if a side of the plane is short, so pieces write disjoint memory. Nothing is computed, so the result does not depend
//! on the division of the work.

mod tile;

pub(super) use tile::TileTranspose;

use super::isa::Isa;
use crate::base::desc::MAX_RANK;
use crate::memory::{Bytes, BytesMut, Parts};
use crate::sync::Claim;
use std::ops::Range;

/// A dimension: its number of elements, and its strides in the source and in the destination, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StridedDim {
    pub size: usize,
    pub from: isize,
    pub to: isize,
}

/// Approximate bytes of an item of lines.
const LINE_BYTES: usize = 16 << 10;
/// Elements of a side of a tile.
const SIDE: usize = 64;
/// Time per copied byte: read and written at 40 GB/s each. A tile takes longer, and each element of a line has an
/// additional cost.
const NS_PER_BYTE: f32 = 0.05;
const NS_PER_ELEMENT: f32 = 1.0;

/// A copy from one layout to another.
#[derive(Clone, Debug)]
pub struct Movement {
    /// All dimensions but those of the inner loop, the outermost first.
    outer: [StridedDim; MAX_RANK],
    rank: usize,
    /// Offset of the first element.
    from: isize,
    to: isize,
    /// Bytes of an element.
    unit: usize,
    inner: InnerLoop,
    /// Items for each position in the outer dimensions.
    per_place: usize,
    items: usize,
}

#[derive(Clone, Copy, Debug)]
enum InnerLoop {
    /// `count` elements in an item, or `bytes` of one element.
    Line { dim: StridedDim, count: usize, bytes: usize },
    /// The source is consecutive along `columns`, the destination along `rows`.
    Tile { columns: TileSide, rows: TileSide, transpose: tile::TileTranspose },
}

/// A dimension that is cut into the sides of tiles.
#[derive(Clone, Copy, Debug)]
struct TileSide {
    dim: StridedDim,
    /// Elements of a tile: the last one has up to twice as many, so that none is too small for the blocks of `tile`.
    each: usize,
}

impl TileSide {
    /// The longer, the less elements there are on the other side.
    fn new(dim: StridedDim, other: &StridedDim) -> TileSide {
        TileSide { dim, each: SIDE * (SIDE / other.size).max(1) }
    }

    fn count(&self) -> usize {
        (self.dim.size / self.each).max(1)
    }

    fn range(&self, number: usize) -> Range<usize> {
        let end = if number + 1 == self.count() { self.dim.size } else { (number + 1) * self.each };
        number * self.each..end
    }

    /// Elements of most tiles.
    fn usual(&self) -> f32 {
        self.dim.size.min(self.each) as f32
    }
}

impl Movement {
    /// A copy of elements of `unit` bytes. The dimensions are those of the destination, the outermost first, and each
    /// stride in one of them exceeds the extent of the later ones, so that no two elements overlap.
    pub fn new(unit: usize, dims: &[StridedDim], from: isize, to: isize) -> Movement {
        Movement::with(Isa::best(), unit, dims, from, to)
    }

    /// The same for a supported instruction set.
    pub fn with(isa: Isa, mut unit: usize, dims: &[StridedDim], from: isize, to: isize) -> Movement {
        isa.assert_detected();
        assert!(dims.len() <= MAX_RANK && unit > 0);
        let mut all = [StridedDim::default(); MAX_RANK];
        let mut rank = 0usize;
        let is_empty = dims.iter().any(|dim| dim.size == 0);
        let mut reach = unit as isize;
        for dim in dims.iter().rev().filter(|dim| dim.size > 1 && !is_empty) {
            // `run` relies on it: positions in the destination are distinct.
            assert!(dim.to >= reach, "a step of {} in the destination after {reach} bytes", dim.to);
            reach += dim.to * (dim.size - 1) as isize;
            let bytes = unit as isize;
            if rank == 0 && (dim.from, dim.to) == (bytes, bytes) {
                unit *= dim.size;
                continue;
            }
            match rank.checked_sub(1).map(|last| &mut all[last]) {
                Some(last) if last.joins(dim) => last.size *= dim.size,
                _ => {
                    all[rank] = *dim;
                    rank += 1;
                }
            }
        }
        let mut movement = Movement {
            outer: all,
            rank,
            from,
            to,
            unit,
            inner: InnerLoop::Line { dim: StridedDim { size: 1, from: 0, to: 0 }, count: 1, bytes: unit },
            per_place: 0,
            items: 0,
        };
        if !is_empty {
            movement.settle(isa);
        }
        movement
    }

    /// Chooses the inner loop; the dimensions are the innermost first until then.
    fn settle(&mut self, isa: Isa) {
        let bytes = self.unit as isize;
        let source = (0..self.rank).find(|&i| self.outer[i].from == bytes);
        let transpose = tile::TileTranspose::of(isa, self.unit);
        (self.inner, self.per_place) = match (source, transpose) {
            (Some(i), Some(transpose)) if i > 0 && self.outer[0].to == bytes => {
                let (columns, rows) = (self.take(i), self.take(0));
                let (columns, rows) = (TileSide::new(columns, &rows), TileSide::new(rows, &columns));
                (InnerLoop::Tile { columns, rows, transpose }, columns.count() * rows.count())
            }
            _ => {
                let dim = if self.rank > 0 { self.take(0) } else { StridedDim { size: 1, from: 0, to: 0 } };
                let count = (LINE_BYTES / self.unit).clamp(1, dim.size);
                let bytes = self.unit.min(LINE_BYTES);
                let pieces = if count == 1 { self.unit.div_ceil(bytes) } else { 1 };
                (InnerLoop::Line { dim, count, bytes }, dim.size.div_ceil(count) * pieces)
            }
        };
        self.outer[..self.rank].reverse();
        self.items = self.outer[..self.rank].iter().map(|dim| dim.size).product::<usize>() * self.per_place;
    }

    fn take(&mut self, index: usize) -> StridedDim {
        let dim = self.outer[index];
        self.outer.copy_within(index + 1..self.rank, index);
        self.rank -= 1;
        dim
    }

    pub fn items(&self) -> usize {
        self.items
    }

    /// Estimated time of an item.
    pub fn item_ns(&self) -> f32 {
        let (elements, factor) = match self.inner {
            InnerLoop::Line { count: 1, bytes, .. } => return 5.0 + bytes as f32 * NS_PER_BYTE,
            InnerLoop::Line { count, .. } => (count as f32, 1.0),
            InnerLoop::Tile { columns, rows, .. } => (columns.usual() * rows.usual(), 2.0),
        };
        let each = if factor > 1.0 { 0.0 } else { NS_PER_ELEMENT };
        5.0 + elements * (each + factor * self.unit as f32 * NS_PER_BYTE)
    }

    /// Whether all reads and writes are within these sizes.
    fn fits(&self, from: usize, to: usize) -> bool {
        let (mut low, mut high, mut end) = (self.from, self.from, self.to);
        let (a, b) = match &self.inner {
            InnerLoop::Line { dim, .. } => (*dim, StridedDim { size: 1, from: 0, to: 0 }),
            InnerLoop::Tile { columns, rows, .. } => (columns.dim, rows.dim),
        };
        for dim in self.outer[..self.rank].iter().chain([&a, &b]) {
            let steps = dim.size as isize - 1;
            low += (steps * dim.from).min(0);
            high += (steps * dim.from).max(0);
            end += steps * dim.to;
        }
        let unit = self.unit as isize;
        low >= 0 && self.to >= 0 && high + unit <= from as isize && end + unit <= to as isize
    }

    /// The movement, with its tensors, for a region of `items` items.
    pub fn divide<'a>(&'a self, from: Bytes<'a>, to: BytesMut<'a>) -> Moves<'a> {
        let fits = self.items == 0 || self.fits(from.len(), to.len());
        assert!(fits, "{self:?} from {} to {} bytes", from.len(), to.len());
        Moves { movement: self, from, to }
    }

    /// Moves some items.
    ///
    /// # Safety
    /// All positions lie in the tensors (`fits`); nothing writes the source, and nothing else uses these items'
    /// positions in the destination.
    unsafe fn run(&self, items: Range<usize>, from: *const u8, to: *mut u8) {
        let mut item = items.start;
        while item < items.end {
            let (place, first) = (item / self.per_place, item % self.per_place);
            let count = (self.per_place - first).min(items.end - item);
            let (at_from, at_to) = self.place(place);
            // SAFETY: as demanded of the caller.
            unsafe {
                let (from, to) = (from.offset(at_from), to.offset(at_to));
                match self.inner {
                    InnerLoop::Line { dim, count: each, bytes } => {
                        self.lines(first..first + count, &dim, each, bytes, from, to)
                    }
                    InnerLoop::Tile { columns, rows, transpose } => {
                        let across = columns.count();
                        for number in first..first + count {
                            // Down the rows of the source first: along the destination.
                            let (c, r) = (columns.range(number % across), rows.range(number / across));
                            let (columns, rows) = (columns.dim, rows.dim);
                            let source = from.offset(c.start as isize * columns.from + r.start as isize * rows.from);
                            let target = to.offset(c.start as isize * columns.to + r.start as isize * rows.to);
                            transpose.run((source, rows.from), (target, columns.to), r.len(), c.len());
                        }
                    }
                }
            }
            item += count;
        }
    }

    /// The offsets of a position in the outer dimensions.
    fn place(&self, mut number: usize) -> (isize, isize) {
        let (mut from, mut to) = (self.from, self.to);
        for dim in self.outer[..self.rank].iter().rev() {
            let at = (number % dim.size) as isize;
            number /= dim.size;
            from += at * dim.from;
            to += at * dim.to;
        }
        (from, to)
    }

    /// # Safety
    /// The elements of these items of a line that begins at `from` and `to` are readable and writable.
    unsafe fn lines(
        &self,
        items: Range<usize>,
        dim: &StridedDim,
        each: usize,
        bytes: usize,
        from: *const u8,
        to: *mut u8,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            if each == 1 {
                let pieces = self.unit.div_ceil(bytes);
                for item in items {
                    let (element, begin) = ((item / pieces) as isize, item % pieces * bytes);
                    let (from, to) =
                        (from.offset(element * dim.from).add(begin), to.offset(element * dim.to).add(begin));
                    run(from, to, bytes.min(self.unit - begin));
                }
                return;
            }
            let elements = items.start * each..(items.end * each).min(dim.size);
            let first = elements.start as isize;
            let (from, to) = (from.offset(first * dim.from), to.offset(first * dim.to));
            elements_along(self.unit, elements.len(), dim, from, to);
        }
    }
}

/// A movement and its tensors, for a region.
#[derive(Debug)]
pub struct Moves<'a> {
    movement: &'a Movement,
    from: Bytes<'a>,
    to: BytesMut<'a>,
}

/// A claim's part of it.
#[derive(Debug)]
pub struct MovementPart<'a> {
    movement: &'a Movement,
    from: Bytes<'a>,
    to: *mut u8,
    items: Range<usize>,
}

// SAFETY: positions in the destination are distinct (`new`), and so are items.
unsafe impl<'a> Parts for Moves<'a> {
    type Part = MovementPart<'a>;

    unsafe fn part(&self, claim: &Claim) -> MovementPart<'a> {
        let Moves { movement, from, to } = self;
        assert!(claim.end() <= movement.items);
        MovementPart { movement, from: *from, to: to.data(), items: claim.begin()..claim.end() }
    }
}

impl MovementPart<'_> {
    pub fn run(self) {
        // SAFETY: `divide` has compared; the source is only read, and the items are a claim's.
        unsafe { self.movement.run(self.items, self.from.data(), self.to) }
    }
}

impl StridedDim {
    /// Whether `outer` continues where this dimension ends, on both sides.
    pub fn joins(&self, outer: &StridedDim) -> bool {
        let size = self.size as isize;
        outer.from == self.from * size && outer.to == self.to * size
    }
}

/// Copies all runs of `run` bytes into rows of `row` bytes, each to the same place of its row.
pub fn scatter_runs(from: &[u8], run: usize, to: &mut [u8], row: usize, at: usize) {
    let count = from.len() / run;
    assert!(at + run <= row && to.len() >= count * row, "{count} runs of {run} bytes at {at} of {row}");
    let dim = StridedDim { size: count, from: run as isize, to: row as isize };
    // SAFETY: compared above.
    unsafe { elements_along(run, count, &dim, from.as_ptr(), to.as_mut_ptr().add(at)) }
}

/// # Safety
/// `count` elements of `unit` bytes lie at `from` and may be written at `to`, with the strides of `dim`.
unsafe fn elements_along(unit: usize, count: usize, dim: &StridedDim, from: *const u8, to: *mut u8) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match unit {
            1 => elements_of::<u8>(count, dim, from, to),
            2 => elements_of::<u16>(count, dim, from, to),
            4 => elements_of::<u32>(count, dim, from, to),
            8 => elements_of::<u64>(count, dim, from, to),
            16 => elements_of::<u128>(count, dim, from, to),
            unit => {
                for i in 0..count as isize {
                    run(from.offset(i * dim.from), to.offset(i * dim.to), unit);
                }
            }
        }
    }
}

/// # Safety
/// `count` elements of the type lie at `from` and may be written at `to`, with the strides of `dim`.
unsafe fn elements_of<T: Copy>(count: usize, dim: &StridedDim, from: *const u8, to: *mut u8) {
    // SAFETY: as demanded of the caller.
    unsafe {
        if dim.to == size_of::<T>() as isize {
            // The usual case: a stride in the source, none in the destination.
            for i in 0..count {
                let value = from.offset(i as isize * dim.from).cast::<T>().read_unaligned();
                to.cast::<T>().add(i).write_unaligned(value);
            }
            return;
        }
        for i in 0..count as isize {
            let value = from.offset(i * dim.from).cast::<T>().read_unaligned();
            to.offset(i * dim.to).cast::<T>().write_unaligned(value);
        }
    }
}

/// Copies bytes; calls the C library only if there are many.
///
/// # Safety
/// That many bytes are readable and writable, and disjoint.
#[inline(always)]
unsafe fn run(from: *const u8, to: *mut u8, bytes: usize) {
    /// The first and the last bytes, which may overlap.
    ///
    /// # Safety
    /// As of `run`, with at least as many bytes as the type has.
    #[inline(always)]
    unsafe fn ends<T: Copy>(from: *const u8, to: *mut u8, bytes: usize) {
        let last = bytes - size_of::<T>();
        // SAFETY: as demanded of the caller.
        unsafe {
            let (a, b) = (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
            to.cast::<T>().write_unaligned(a);
            to.add(last).cast::<T>().write_unaligned(b);
        }
    }
    // SAFETY: as demanded of the caller.
    unsafe {
        match bytes {
            0 => {}
            1 => to.write(from.read()),
            2..4 => ends::<u16>(from, to, bytes),
            4..8 => ends::<u32>(from, to, bytes),
            8..16 => ends::<u64>(from, to, bytes),
            16..=32 => ends::<u128>(from, to, bytes),
            33..=64 => ends::<[u128; 2]>(from, to, bytes),
            _ => std::ptr::copy_nonoverlapping(from, to, bytes),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
