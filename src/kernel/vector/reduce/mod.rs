//! Reductions over any dimensions of a tensor.
//!
//! The shape is seen as groups of neighbouring dimensions, which are alternately reduced and kept. If the last group is
//! reduced an item is one element of the output, computed from consecutive numbers; if it is kept an item is a stripe
//! of up to WIDTH elements, computed from as many columns. The numbers of an item come in units, in the order of
//! memory:
//!
//! ```text
//! for each position in the reduced dimensions but the last   'runs'
//!     for each CHUNK numbers, or ROWS rows, of the last       units
//!         reduce                                              in vectors
//! ```
//!
//! With few items and many units, an item is computed in parts that run in parallel, and are merged in order. The
//! number of parts depends only on the shape, not on the pool, so the result does too.
//!
//! Rows that lie one behind the other are reduced side by side: one by one, the way from a register to one number would
//! take longer than short rows.
//!
//! 16-bit floats are converted to f32 on the way, and short integers to 32 bits, some KiB at a time.

mod fold;
mod place;
mod whole;

pub use fold::{Greatest, Least, Product, SideBySide, Sizes, Squares, Sum, fold};
pub use place::{Best, extreme_index};
pub use whole::{BestWhole, GreatestWhole, LeastWhole, ProductOfWhole, SumOfWhole, fold_whole, whole_index};

use super::columns::WIDTH;
use super::convert::Numbers;
use super::isa::Isa;
use super::movement::TileTranspose;
use crate::base::Result;
use crate::base::desc::MAX_RANK;
use crate::kernel::KernelContext;
use crate::memory::{BytesMut, Element, Shards};
use crate::threadpool::Span;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Numbers, or rows of a stripe of columns, that are reduced at once.
const CHUNK: usize = 16 << 10;
const ROWS: usize = 256;
/// Maximum parts of all items together, and minimum elements of a tensor whose items are divided into parts.
const MOST_PARTS: usize = 64;
const WORTH_PARTS: usize = 64 << 10;
/// Floats of a conversion buffer.
const BUFFER: usize = 1024;
/// Numbers of the longest rows that are turned into columns.
const SHORT: usize = 32;

/// How consecutive numbers, and columns of them, become partial results, and how these are merged: functions, so that
/// all that goes through tensors is compiled once for all reductions.
#[derive(Clone, Copy, Debug)]
pub struct Reduction<N, P> {
    neutral: P,
    /// Reduces some numbers, at least one. The last argument is the index of the first among all that are reduced to
    /// one.
    row: fn(Isa, &[N], usize) -> P,
    /// Reduces each of some rows of this length, which lie one behind the other.
    rows: fn(Isa, &[N], usize, &mut [P]),
    columns: fn(Isa, &ColumnsBlock<'_, N>, &mut [P]),
    /// Whether `columns` give the bits of `rows`.
    turns: bool,
    /// The second one is of numbers behind those of the first.
    merge: fn(P, P) -> P,
}

/// Rows of numbers, at least one, `stride` apart: each column is merged with its partial result. `first` is the index
/// of the first row among all that are reduced to one.
#[derive(Debug)]
struct ColumnsBlock<'a, N> {
    x: &'a [N],
    stride: usize,
    rows: usize,
    first: usize,
}

impl<N> ColumnsBlock<'_, N> {
    /// Numbers of a row.
    fn row(&self, row: usize, columns: Range<usize>) -> &[N] {
        &self.x[row * self.stride..][columns]
    }
}

/// Takes the results of a reduction.
pub trait Results<P>: Sync {
    fn count(&self) -> usize;

    /// Writes the elements from `begin` on.
    ///
    /// # Safety
    /// Nothing else uses these elements.
    unsafe fn write(&self, begin: usize, results: &[P]);
}

/// An output whose elements are made of results by `finish`, which is told the number of the first one.
#[derive(Debug)]
pub struct Finished<'a, O, F> {
    outputs: Shards<'a, O>,
    finish: F,
}

impl<'a, O: Element, F> Finished<'a, O, F> {
    pub fn new(output: BytesMut<'a>, finish: F) -> Finished<'a, O, F> {
        Finished { outputs: output.shards(1), finish }
    }
}

impl<O: Element, P, F: Fn(usize, &[P], &mut [O]) + Sync> Results<P> for Finished<'_, O, F> {
    fn count(&self) -> usize {
        self.outputs.len()
    }

    unsafe fn write(&self, begin: usize, results: &[P]) {
        assert!(begin + results.len() <= self.outputs.len());
        // SAFETY: in bounds; exclusive, as demanded of the caller.
        (self.finish)(begin, results, unsafe {
            std::slice::from_raw_parts_mut(self.outputs.as_ptr().add(begin), results.len())
        });
    }
}

/// A group of neighbouring dimensions: number of elements, and their stride.
#[derive(Clone, Copy, Debug, Default)]
struct DimGroup {
    size: usize,
    stride: usize,
}

/// Groups of one kind, the outermost first.
#[derive(Clone, Copy, Debug, Default)]
struct Groups {
    all: [DimGroup; MAX_RANK],
    count: usize,
}

impl Groups {
    fn push_front(&mut self, group: DimGroup) {
        self.all.copy_within(0..self.count, 1);
        self.all[0] = group;
        self.count += 1;
    }

    fn pop_last(&mut self) -> Option<DimGroup> {
        self.count = self.count.checked_sub(1)?;
        Some(self.all[self.count])
    }

    fn places(&self) -> usize {
        self.all[..self.count].iter().map(|group| group.size).product()
    }

    /// Offset of position `number`.
    fn offset(&self, mut number: usize) -> usize {
        let mut offset = 0;
        for group in self.all[..self.count].iter().rev() {
            offset += number % group.size * group.stride;
            number /= group.size;
        }
        offset
    }
}

/// How a tensor is reduced. Depends only on its shape.
#[derive(Clone, Copy, Debug)]
pub struct ReductionPlan {
    kept: Groups,
    runs: Groups,
    /// The last group that is reduced.
    last: DimGroup,
    /// Columns, if the last group of all is kept.
    columns: Option<usize>,
    /// Numbers that are reduced to one.
    reduced: usize,
    outputs: usize,
    /// Units of an item in each of its runs, and parts of an item.
    units: usize,
    parts: usize,
    items: usize,
}

impl ReductionPlan {
    /// From the sizes and whether each is reduced, the outermost first.
    pub fn new(sizes: impl DoubleEndedIterator<Item = (usize, bool)> + Clone) -> ReductionPlan {
        let count =
            |reduced: bool| sizes.clone().filter(|dim| dim.1 == reduced).fold(1usize, |n, dim| n.saturating_mul(dim.0));
        let (reduced, outputs) = (count(true), count(false));
        let (mut kept, mut runs) = (Groups::default(), Groups::default());
        let (mut stride, mut before) = (1, None);
        if reduced > 0 && outputs > 0 {
            for (size, is_reduced) in sizes.clone().rev().filter(|dim| dim.0 > 1) {
                let groups = if is_reduced { &mut runs } else { &mut kept };
                if before == Some(is_reduced) {
                    groups.all[0].size *= size;
                } else {
                    groups.push_front(DimGroup { size, stride });
                }
                (stride, before) = (stride * size, Some(is_reduced));
            }
        }
        let is_kept = |group: &DimGroup| group.stride == 1;
        let columns = kept.all[..kept.count].last().copied().filter(is_kept).map(|group| group.size);
        if columns.is_some() {
            kept.pop_last();
        }
        let last = runs.pop_last().unwrap_or(DimGroup { size: 1, stride: 1 });
        let units = last.size.div_ceil(if columns.is_some() { ROWS } else { CHUNK });
        let items = match (outputs, reduced) {
            (0, _) | (_, 0) => 0,
            _ => kept.places() * columns.map_or(1, |width| width.div_ceil(WIDTH)),
        };
        let few = reduced.saturating_mul(outputs) >= WORTH_PARTS && items < MOST_PARTS;
        let parts = if few { (MOST_PARTS / items.max(1)).min(units * runs.places()) } else { 1 };
        ReductionPlan { kept, runs, last, columns, reduced, outputs, units, parts, items }
    }

    /// Numbers that are reduced to one.
    pub fn reduced(&self) -> usize {
        self.reduced
    }

    /// Scratch memory per slot.
    pub fn scratch_bytes<P>(&self) -> usize {
        if self.parts == 1 { 0 } else { self.items * self.parts * self.width() * size_of::<P>() }
    }

    /// Number of partial results of an item.
    fn width(&self) -> usize {
        self.columns.map_or(1, |width| width.min(WIDTH))
    }

    /// Time for a part of an item, from the time of a number.
    fn part_ns(&self, number_ns: f32) -> f32 {
        let runs = 10.0 * self.runs.places() as f32;
        (10.0 + runs + (self.reduced * self.width()) as f32 * number_ns) / self.parts as f32
    }

    pub fn cost_ns(&self, number_ns: f32) -> u64 {
        (self.part_ns(number_ns) * (self.items * self.parts) as f32) as u64
    }

    /// Whether each item is a row that is reduced at once. The rows lie one behind the other then.
    fn is_rows(&self) -> bool {
        let is_row = self.columns.is_none() && self.parts == 1 && self.units == 1 && self.runs.count == 0;
        is_row && self.kept.count <= 1
    }

    /// Offsets of an item's numbers and outputs, and its number of outputs.
    fn item(&self, item: usize) -> (usize, usize, usize) {
        let Some(columns) = self.columns else { return (self.kept.offset(item), item, 1) };
        let stretches = columns.div_ceil(WIDTH);
        let (place, first) = (item / stretches, item % stretches * WIDTH);
        (self.kept.offset(place) + first, place * columns + first, WIDTH.min(columns - first))
    }

    /// Reduces a tensor of this shape.
    pub fn compute<N: Element + Default, P: Copy + Send + Sync>(
        &self,
        isa: Isa,
        reduction: &Reduction<N, P>,
        number_ns: f32,
        context: &KernelContext<'_>,
        x: &Numbers<'_, N>,
        results: &dyn Results<P>,
    ) -> Result<()> {
        assert!(x.count() >= self.reduced * self.outputs && results.count() >= self.outputs);
        if self.items == 0 {
            return nothing(self.outputs, reduction.neutral, results, context);
        }
        let bytes = self.scratch_bytes::<P>();
        assert!(context.scratch_bytes() >= bytes, "{bytes} bytes of scratch memory");
        let partials: *mut P = if self.parts > 1 { context.scratch(0).cast() } else { std::ptr::null_mut() };
        let partials = Partials(partials, bytes / size_of::<P>());
        let span = Span { items: self.items * self.parts, cost_ns: self.part_ns(number_ns), ..Span::default() };
        context.parallel_for(&span, &|claim| {
            let put = |number: usize, some: &[P]| {
                // SAFETY: these parts of items are the claim's alone, and so are the outputs of items with one part.
                unsafe {
                    if self.parts == 1 {
                        results.write(self.item(number).1, some);
                    } else {
                        partials.put(number * self.width(), some);
                    }
                }
            };
            let numbers = claim.begin()..claim.end();
            let pass = ReductionPass { plan: self, isa, reduction, x };
            if x.direct().is_some() {
                pass.parts(numbers, &mut [], put);
            } else {
                pass.parts(numbers, &mut [N::default(); BUFFER], put);
            }
            Ok(())
        })?;
        if self.parts > 1 {
            for item in 0..self.items {
                let (_, to, width) = self.item(item);
                let mut merged = [reduction.neutral; WIDTH];
                for part in 0..self.parts {
                    for (i, merged) in merged[..width].iter_mut().enumerate() {
                        // SAFETY: the region has ended, and all parts have been put.
                        let partial = unsafe { partials.get((item * self.parts + part) * self.width() + i) };
                        *merged = (reduction.merge)(*merged, partial);
                    }
                }
                // SAFETY: the region has ended.
                unsafe { results.write(to, &merged[..width]) };
            }
        }
        Ok(())
    }
}

/// The values that all claims of a reduction share.
struct ReductionPass<'a, N, P> {
    plan: &'a ReductionPlan,
    isa: Isa,
    reduction: &'a Reduction<N, P>,
    x: &'a Numbers<'a, N>,
}

impl<N: Element, P: Copy> ReductionPass<'_, N, P> {
    /// Some parts of items. `put` stores the results of one or more, and is told the number of the first. The buffer is
    /// for numbers that must be converted.
    fn parts(&self, numbers: Range<usize>, buffer: &mut [N], put: impl Fn(usize, &[P])) {
        if self.plan.is_rows() && (self.x.direct().is_some() || self.plan.last.size <= BUFFER) {
            return self.rows(numbers, buffer, put);
        }
        // Parts with one result each are put together.
        let at_once = if self.plan.columns.is_some() { 1 } else { WIDTH };
        let mut results = [self.reduction.neutral; WIDTH];
        for first in numbers.clone().step_by(at_once) {
            let mut count = 0;
            for number in first..(first + at_once).min(numbers.end) {
                let (item, part) = (number / self.plan.parts, number % self.plan.parts);
                let (from, _, width) = self.plan.item(item);
                let results = &mut results[count..][..width];
                results.fill(self.reduction.neutral);
                self.part(from, part, buffer, results);
                count += width;
            }
            put(first, &results[..count]);
        }
    }

    /// Items that are a row each.
    fn rows(&self, numbers: Range<usize>, buffer: &mut [N], put: impl Fn(usize, &[P])) {
        let ReductionPass { plan, isa, reduction, x } = *self;
        let len = plan.last.size;
        let at_once = if x.direct().is_some() { WIDTH } else { (BUFFER / len).min(WIDTH) };
        let transpose = TileTranspose::of(isa, size_of::<N>()).filter(|_| reduction.turns && len <= SHORT);
        let mut results = [reduction.neutral; WIDTH];
        for first in numbers.clone().step_by(at_once) {
            let end = (first + at_once).min(numbers.end);
            let (rows, results) = (x.read(isa, first * len..end * len, buffer), &mut results[..end - first]);
            match transpose {
                Some(transpose) => self.turned(&transpose, rows, results),
                None => (reduction.rows)(isa, rows, len, results),
            }
            put(first, results);
        }
    }

    /// At most WIDTH rows of at most SHORT numbers, turned into columns.
    fn turned(&self, transpose: &TileTranspose, rows: &[N], results: &mut [P]) {
        let (count, number) = (results.len(), size_of::<N>() as isize);
        let len = rows.len() / count;
        assert!(count <= WIDTH && len <= SHORT);
        let mut columns = [const { MaybeUninit::<N>::uninit() }; WIDTH * SHORT];
        let (from, to) = (rows.as_ptr().cast(), columns.as_mut_ptr().cast());
        // SAFETY: the level is supported; so many rows are there and find room, and they fill what is read.
        let x = unsafe {
            transpose.run((from, len as isize * number), (to, count as isize * number), count, len);
            std::slice::from_raw_parts(columns.as_ptr().cast::<N>(), count * len)
        };
        results.fill(self.reduction.neutral);
        (self.reduction.columns)(self.isa, &ColumnsBlock { x, stride: count, rows: len, first: 0 }, results);
    }

    /// The units of a part, in order, of the item whose first number is at `from`.
    fn part(&self, from: usize, part: usize, buffer: &mut [N], to: &mut [P]) {
        let ReductionPass { plan, isa, reduction, x } = *self;
        let all = plan.units * plan.runs.places();
        for unit in part * all / plan.parts..(part + 1) * all / plan.parts {
            let (run, number) = (unit / plan.units, unit % plan.units);
            let each = if plan.columns.is_some() { ROWS } else { CHUNK };
            let (begin, end) = (number * each, ((number + 1) * each).min(plan.last.size));
            let (from, first) = (from + plan.runs.offset(run), run * plan.last.size);
            if plan.columns.is_none() {
                let at_once = if x.direct().is_some() { end - begin } else { BUFFER };
                for at in (begin..end).step_by(at_once) {
                    let some = x.read(isa, from + at..from + (at + at_once).min(end), buffer);
                    to[0] = (reduction.merge)(to[0], (reduction.row)(isa, some, first + at));
                }
            } else if let Some(direct) = x.direct() {
                let some = &direct[from + begin * plan.last.stride..];
                let block = ColumnsBlock { x: some, stride: plan.last.stride, rows: end - begin, first: first + begin };
                (reduction.columns)(isa, &block, to);
            } else {
                // Several rows, side by side in the buffer.
                let at_once = BUFFER / to.len();
                for at in (begin..end).step_by(at_once) {
                    let count = at_once.min(end - at);
                    for (i, row) in buffer.chunks_exact_mut(to.len()).take(count).enumerate() {
                        let from = from + (at + i) * plan.last.stride;
                        x.convert(isa, from..from + to.len(), row);
                    }
                    let block = ColumnsBlock { x: buffer, stride: to.len(), rows: count, first: first + at };
                    (reduction.columns)(isa, &block, to);
                }
            }
        }
    }
}

/// Fills the output if no number is read.
fn nothing<P: Copy + Sync>(
    outputs: usize,
    neutral: P,
    results: &dyn Results<P>,
    context: &KernelContext<'_>,
) -> Result<()> {
    let span = Span { items: outputs, cost_ns: 1.0, grain: 4096, ..Span::default() };
    context.parallel_for(&span, &|claim| {
        for begin in (claim.begin()..claim.end()).step_by(WIDTH) {
            // SAFETY: the outputs are the claim's alone.
            unsafe { results.write(begin, &[neutral; WIDTH][..WIDTH.min(claim.end() - begin)]) };
        }
        Ok(())
    })
}

/// Partial results of all parts, in the scratch memory of one slot: pieces write their own, and all are read at the
/// end.
struct Partials<P>(*mut P, usize);

// SAFETY: plain data; parts are disjoint, because claims are.
unsafe impl<P: Send> Sync for Partials<P> {}

impl<P: Copy> Partials<P> {
    /// # Safety
    /// Nothing else uses these elements.
    unsafe fn put(&self, at: usize, values: &[P]) {
        assert!(at + values.len() <= self.1);
        // SAFETY: in bounds, and as demanded of the caller.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.0.add(at), values.len()) };
    }

    /// # Safety
    /// The element was stored, and nothing writes it.
    unsafe fn get(&self, at: usize) -> P {
        assert!(at < self.1);
        // SAFETY: in bounds, and as demanded of the caller.
        unsafe { self.0.add(at).read() }
    }
}
