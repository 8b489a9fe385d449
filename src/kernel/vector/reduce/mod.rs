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
//! 16-bit floats are converted to f32 on the way, some KiB at a time; integers are reduced as they are.

mod fold;
mod place;
mod whole;

pub use fold::{Fold, Greatest, Least, Product, Sizes, Squares, Sum};
pub use place::{Best, ExtremeIndex};
pub use whole::{BestWhole, GreatestWhole, LeastWhole, ProductOfWhole, SumOfWhole, WholeFold, WholeIndex};

use super::columns::WIDTH;
use super::convert::{self, Stored};
use super::isa::Isa;
use super::levels::{self, LevelLoop};
use crate::base::Result;
use crate::base::desc::MAX_RANK;
use crate::kernel::KernelContext;
use crate::memory::{Bf16, Bool, BytesMut, Element, F16, Shards};
use crate::threadpool::Span;
use std::ops::Range;

/// Numbers, or rows of a stripe of columns, that are reduced at once.
const CHUNK: usize = 16 << 10;
const ROWS: usize = 256;
/// Maximum parts of all items together, and minimum elements of a tensor whose items are divided into parts.
const MOST_PARTS: usize = 64;
const WORTH_PARTS: usize = 64 << 10;
/// Floats of a conversion buffer.
const BUFFER: usize = 1024;

/// A reduction: how consecutive numbers, and columns of them, become partial results, and how these are merged.
pub trait Reduction: Copy + Sync {
    /// The elements that are reduced.
    type Number: Copy;
    /// Plain data.
    type Partial: Copy + Send + Sync;

    fn neutral(self) -> Self::Partial;
    /// Reduces some numbers, at least one; `first` is the index of the first among all that are reduced to one.
    fn row(self, x: &[Self::Number], first: usize) -> Self::Partial;
    /// Reduces `rows` rows, at least one, `stride` apart: each column is merged with its element of `to`.
    fn columns(self, x: &[Self::Number], stride: usize, rows: usize, first: usize, to: &mut [Self::Partial]);
    /// `a` is of numbers before those of `b`.
    fn merge(self, a: Self::Partial, b: Self::Partial) -> Self::Partial;
}

/// Converts results to output elements.
pub type Finish<'a, P, O> = dyn Fn(&[P], &mut [O]) + Sync + 'a;

/// The input type of a reduction: one that is reduced as it is, or 16-bit floats that are converted to f32.
pub trait ReductionInput: Stored + Default {
    /// The type of the numbers while they are reduced.
    type Number: Copy + Sync;
    /// The numbers as such, in the first buffer if they must be converted.
    fn numbers<'a>(x: &'a [Self], isa: Isa, buffers: &'a mut [[Self::Number; BUFFER]]) -> &'a [Self::Number];
    /// Maximum numbers at a time.
    const AT_ONCE: usize;
    /// Two buffers, or none if nothing is converted.
    type Buffers: AsMut<[[Self::Number; BUFFER]]>;
    const BUFFERS: Self::Buffers;
}

macro_rules! as_they_are {
    ($($type:ty),*) => {$(
        impl ReductionInput for $type {
            type Number = $type;
            const AT_ONCE: usize = usize::MAX;
            type Buffers = [[$type; BUFFER]; 0];
            const BUFFERS: Self::Buffers = [];

            fn numbers<'a>(x: &'a [$type], _: Isa, _: &'a mut [[$type; BUFFER]]) -> &'a [$type] {
                x
            }
        }
    )*};
}

as_they_are!(f32, i64, i32, i8, u8, Bool);

macro_rules! halves {
    ($($half:ty),*) => {$(
        impl ReductionInput for $half {
            type Number = f32;
            const AT_ONCE: usize = BUFFER;
            type Buffers = [[f32; BUFFER]; 2];
            const BUFFERS: Self::Buffers = [[0.0; BUFFER]; 2];

            fn numbers<'a>(x: &'a [$half], isa: Isa, buffers: &'a mut [[f32; BUFFER]]) -> &'a [f32] {
                let floats = &mut buffers[0][..x.len()];
                convert::widen(isa, x, floats);
                floats
            }
        }
    )*};
}

halves!(F16, Bf16);

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
    pub fn scratch_bytes<R: Reduction>(&self) -> usize {
        if self.parts == 1 { 0 } else { self.items * self.parts * self.width() * size_of::<R::Partial>() }
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

    /// Offsets of an item's numbers and outputs, and its number of outputs.
    fn item(&self, item: usize) -> (usize, usize, usize) {
        let Some(columns) = self.columns else { return (self.kept.offset(item), item, 1) };
        let stretches = columns.div_ceil(WIDTH);
        let (place, first) = (item / stretches, item % stretches * WIDTH);
        (self.kept.offset(place) + first, place * columns + first, WIDTH.min(columns - first))
    }

    /// Reduces input 0 to output 0.
    pub fn compute<R: Reduction<Number = T::Number>, T: ReductionInput, O: Element + Default>(
        &self,
        isa: Isa,
        reduction: R,
        number_ns: f32,
        (context, output): (&KernelContext<'_>, BytesMut<'_>),
        finish: &Finish<'_, R::Partial, O>,
    ) -> Result<()> {
        let (x, outputs) = (context.input(0).read::<T>(), output.shards::<O>(1));
        assert!(x.len() >= self.reduced * self.outputs && outputs.len() >= self.outputs);
        if self.items == 0 {
            let mut value = [O::default()];
            finish(&[reduction.neutral()], &mut value);
            return nothing(self.outputs, value[0], outputs, context);
        }
        let bytes = self.scratch_bytes::<R>();
        assert!(context.scratch_bytes() >= bytes, "{bytes} bytes of scratch memory");
        let partials: *mut R::Partial = if self.parts > 1 { context.scratch(0).cast() } else { std::ptr::null_mut() };
        let partials = Partials(partials, bytes / size_of::<R::Partial>());
        let span = Span { items: self.items * self.parts, cost_ns: self.part_ns(number_ns), ..Span::default() };
        let write = |begin: usize, results: &[R::Partial]| {
            assert!(begin + results.len() <= self.outputs);
            // SAFETY: in bounds; an item's outputs are exclusive, and the caller has claimed the item.
            finish(results, unsafe { std::slice::from_raw_parts_mut(outputs.as_ptr().add(begin), results.len()) });
        };
        context.parallel_for(&span, &|claim| {
            let numbers = claim.begin()..claim.end();
            let put = |number: usize, results: &[R::Partial]| {
                if self.parts == 1 {
                    write(self.item(number).1, results);
                } else {
                    // SAFETY: this part of the item is the claim's alone.
                    unsafe { partials.put(number * self.width(), results) };
                }
            };
            levels::on(isa, ReductionPiece { plan: self, isa, reduction, x, numbers, put });
            Ok(())
        })?;
        if self.parts > 1 {
            for item in 0..self.items {
                let (_, to, width) = self.item(item);
                let mut results = [reduction.neutral(); WIDTH];
                for part in 0..self.parts {
                    for (i, result) in results[..width].iter_mut().enumerate() {
                        // SAFETY: the region has ended, and all parts have been put.
                        let partial = unsafe { partials.get((item * self.parts + part) * self.width() + i) };
                        *result = reduction.merge(*result, partial);
                    }
                }
                write(to, &results[..width]);
            }
        }
        Ok(())
    }

    /// The units of a part, in order. `x` begins with the item's first number.
    #[inline(always)]
    fn part<R: Reduction<Number = T::Number>, T: ReductionInput>(
        &self,
        isa: Isa,
        reduction: R,
        x: &[T],
        part: usize,
        buffers: &mut [[T::Number; BUFFER]],
        to: &mut [R::Partial],
    ) {
        let all = self.units * self.runs.places();
        for unit in part * all / self.parts..(part + 1) * all / self.parts {
            let (run, number) = (unit / self.units, unit % self.units);
            let each = if self.columns.is_some() { ROWS } else { CHUNK };
            let (begin, end) = (number * each, ((number + 1) * each).min(self.last.size));
            let (x, first) = (&x[self.runs.offset(run)..], run * self.last.size);
            if self.columns.is_none() {
                let at_once = T::AT_ONCE.min(end - begin);
                for at in (begin..end).step_by(at_once) {
                    let x = T::numbers(&x[at..(at + at_once).min(end)], isa, buffers);
                    to[0] = reduction.merge(to[0], reduction.row(x, first + at));
                }
            } else if T::AT_ONCE == usize::MAX {
                let x = T::numbers(&x[begin * self.last.stride..], isa, buffers);
                reduction.columns(x, self.last.stride, end - begin, first + begin, to);
            } else {
                // Several rows, side by side in a buffer of their own.
                let (buffers, rows) = buffers.split_at_mut(1);
                let rows = &mut rows[0];
                let at_once = BUFFER / to.len();
                for at in (begin..end).step_by(at_once) {
                    let count = at_once.min(end - at);
                    for (i, row) in rows.chunks_exact_mut(to.len()).take(count).enumerate() {
                        let x = &x[(at + i) * self.last.stride..][..to.len()];
                        row.copy_from_slice(T::numbers(x, isa, buffers));
                    }
                    reduction.columns(rows, to.len(), count, first + at, to);
                }
            }
        }
    }
}

/// Some parts of items.
struct ReductionPiece<'a, R, T, P> {
    plan: &'a ReductionPlan,
    isa: Isa,
    reduction: R,
    x: &'a [T],
    numbers: Range<usize>,
    /// Stores the results of the part with this number.
    put: P,
}

impl<R, T, P> LevelLoop for ReductionPiece<'_, R, T, P>
where
    R: Reduction<Number = T::Number>,
    T: ReductionInput,
    P: Fn(usize, &[R::Partial]),
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut buffers = T::BUFFERS;
        let buffers = buffers.as_mut();
        let mut results = [self.reduction.neutral(); WIDTH];
        for number in self.numbers {
            let (item, part) = (number / self.plan.parts, number % self.plan.parts);
            let (from, _, width) = self.plan.item(item);
            let results = &mut results[..width];
            results.fill(self.reduction.neutral());
            self.plan.part(self.isa, self.reduction, &self.x[from..], part, buffers, results);
            (self.put)(number, results);
        }
    }
}

/// Fills the output if no number is read.
fn nothing<O: Element>(outputs: usize, value: O, shards: Shards<'_, O>, context: &KernelContext<'_>) -> Result<()> {
    let span = Span { items: outputs, cost_ns: 1.0, grain: 4096, ..Span::default() };
    context.parallel_into(&span, shards, |part, _| {
        part.fill(value);
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
