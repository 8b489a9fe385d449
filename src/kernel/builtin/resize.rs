//! Resizing of images: the nearest elements, or weighted sums of two or four along each axis.
//!
//! A claim computes whole rows of the output, some columns at a time, so that what is known of these columns is on the
//! stack, with the elements under them as floats. An interpolated row of x is kept until another one takes its place:
//! an output twice as high needs each once.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::{self, Numbers, Stored};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::levels::{self, LevelLoop};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::Resize;
use crate::ops::{
    weir_resize_coordinates_value as Coordinates, weir_resize_mode_value as Mode,
    weir_resize_rounding_value as Rounding,
};
use crate::threadpool::Span;
use std::ops::Range;

/// Columns of the output that are computed at once, and most elements of a row of x from their first to their last one.
const COLUMNS: usize = 128;
const ELEMENTS: usize = 512;
/// Most elements along an axis that make one.
const TAPS: usize = 4;
/// Time per element of the output: copied, and for each tap along both axes.
const COPY_NS: f32 = 0.3;
const TAP_NS: f32 = 0.6;
/// Least rows in a piece: what is known of its columns is found out once for each.
const ROWS: usize = 8;

/// How an axis is resized: element i lies at `i * step.0 / step.1`, apart from an offset.
#[derive(Clone, Copy)]
struct ResizeLine<'a> {
    op: &'a Resize,
    len: usize,
    size: usize,
    step: (f64, f64),
    /// The number that is added to an element's number, and the one that is subtracted from its place.
    offset: (f64, f64),
}

impl<'a> ResizeLine<'a> {
    /// Of H (0) or W (1).
    fn new(op: &'a Resize, which: usize, x: &Desc, y: &Desc) -> ResizeLine<'a> {
        let (len, size) = Resize::axis(which, x).map_or((1, 1), |axis| (x.dims[axis] as usize, y.dims[axis] as usize));
        let (whole, all) = (len as f64, size as f64);
        let mut step = if op.scales[which] == 0.0 { (whole, all) } else { (1.0, op.scales[which]) };
        let mut offset = (0.5, 0.5);
        match op.coordinates {
            Coordinates::WEIR_RESIZE_HALF_PIXEL => {}
            Coordinates::WEIR_RESIZE_PYTORCH_HALF_PIXEL if size > 1 => {}
            Coordinates::WEIR_RESIZE_HALF_PIXEL_SYMMETRIC => {
                // From the middle of the output, which lies on that of x. Nothing that was rounded is taken off, so a
                // place that is whole, or half way between two elements, is exactly there.
                offset = (0.5 - all / 2.0, 0.5 - whole / 2.0);
            }
            Coordinates::WEIR_RESIZE_ASYMMETRIC => offset = (0.0, 0.0),
            Coordinates::WEIR_RESIZE_ALIGN_CORNERS if size > 1 => {
                (step, offset) = ((whole - 1.0, all - 1.0), (0.0, 0.0));
            }
            // One element, which lies on the first.
            _ => (step, offset) = ((0.0, 1.0), (0.0, 0.0)),
        }
        ResizeLine { op, len, size, step, offset }
    }

    /// The place of a result among the elements.
    #[inline(always)]
    fn place(&self, at: usize) -> f64 {
        (at as f64 + self.offset.0) * self.step.0 / self.step.1 - self.offset.1
    }

    /// The element at a whole place, or the one at the edge.
    #[inline(always)]
    fn clamped(&self, place: f64) -> usize {
        place.clamp(0.0, (self.len - 1) as f64) as usize
    }

    #[inline(always)]
    fn nearest(&self, at: usize) -> usize {
        let place = self.place(at);
        self.clamped(match self.op.rounding {
            Rounding::WEIR_RESIZE_PREFER_FLOOR => (place - 0.5).ceil(),
            Rounding::WEIR_RESIZE_PREFER_CEIL => (place + 0.5).floor(),
            Rounding::WEIR_RESIZE_FLOOR => place.floor(),
            Rounding::WEIR_RESIZE_CEIL => place.ceil(),
        })
    }

    /// Number of elements that make one.
    #[inline(always)]
    fn taps(&self) -> usize {
        match self.op.mode {
            // Each result is its element.
            _ if self.len == self.size && self.step.0 == self.step.1 && self.offset.0 == self.offset.1 => 1,
            Mode::WEIR_RESIZE_CUBIC => 4,
            _ => 2,
        }
    }

    /// The elements that make a result, and their weights.
    #[inline(always)]
    fn weights(&self, at: usize) -> ([usize; TAPS], [f32; TAPS]) {
        let (taps, place) = (self.taps(), self.place(at));
        if taps == 1 {
            return ([at, 0, 0, 0], [1.0, 0.0, 0.0, 0.0]);
        }
        let (low, rest, a) = (place.floor(), place - place.floor(), f64::from(self.op.cubic));
        let near = |d: f64| ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
        let far = |d: f64| ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
        let (first, mut weights) = match taps {
            2 => (low, [1.0 - rest, rest, 0.0, 0.0]),
            _ => (low - 1.0, [far(1.0 + rest), near(rest), near(1.0 - rest), far(2.0 - rest)]),
        };
        if self.op.exclude_outside {
            let mut inside = weights;
            for (i, weight) in inside.iter_mut().enumerate() {
                *weight *= f64::from(u8::from((0.0..self.len as f64).contains(&(first + i as f64))));
            }
            let sum: f64 = inside.iter().sum();
            // All may lie outside.
            weights = if sum == 0.0 { weights } else { inside.map(|weight| weight / sum) };
        }
        (std::array::from_fn(|i| self.clamped(first + i as f64)), weights.map(|weight| weight as f32))
    }
}

/// The sources of neighbouring results.
enum Pattern {
    /// Neighbours from the first one on.
    Run(usize),
    /// Each twice.
    Twice(usize),
    Any,
}

impl Pattern {
    #[inline(always)]
    fn of(places: &[usize]) -> Pattern {
        let first = places.first().copied().unwrap_or(0);
        let is = |of: fn(usize) -> usize| places.iter().enumerate().all(|(i, &place)| place == first + of(i));
        if is(|i| i) {
            Pattern::Run(first)
        } else if is(|i| i / 2) {
            Pattern::Twice(first)
        } else {
            Pattern::Any
        }
    }
}

impl Builtin<Resize> {
    fn lines(&self, x: &Desc, y: &Desc) -> [ResizeLine<'_>; 2] {
        [0, 1].map(|which| ResizeLine::new(self, which, x, y))
    }

    /// A loop over the rows of the output.
    fn span(&self, [rows, columns]: &[ResizeLine<'_>; 2], total: usize) -> Span {
        let element_ns = match self.mode {
            Mode::WEIR_RESIZE_NEAREST => COPY_NS,
            _ => COPY_NS + TAP_NS * (rows.taps() + columns.taps()) as f32,
        };
        let cost_ns = element_ns * columns.size as f32;
        Span { items: total / columns.size, cost_ns, grain: ROWS, ..Span::default() }
    }

    /// For elements of UNIT bytes.
    fn nearest<const UNIT: usize>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, output) = (context.input(0), outputs.only());
        let lines = self.lines(x.desc(), output.desc());
        let (span, x) = (self.span(&lines, elements(output.desc())), x.read_bytes().as_chunks::<UNIT>().0);
        context.parallel_into(&span, output.byte_shards(lines[1].size * UNIT), |out, claim| {
            let (rows, out) = (claim.begin()..claim.end(), out.as_chunks_mut::<UNIT>().0);
            levels::up_to_avx2(self.isa, NearestRows { lines: &lines, x, rows, out });
            Ok(())
        })
    }

    fn interpolate<T: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, output) = (context.input(0), outputs.only());
        let lines = self.lines(x.desc(), output.desc());
        let (span, x) = (self.span(&lines, elements(output.desc())), Numbers::floats::<T>(x));
        context.parallel_into(&span, output.shards::<T>(lines[1].size), |out, claim| {
            let (rows, x) = (claim.begin()..claim.end(), &x);
            levels::up_to_avx2(self.isa, WeightedRows { isa: self.isa, lines: &lines, x, rows, out });
            Ok(())
        })
    }
}

/// Rows of the output, counted over all planes: where the plane of each begins in x, and its place in its plane.
#[inline(always)]
fn places(line: &ResizeLine<'_>, rows: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    let (len, size) = (line.len, line.size);
    let (mut plane, mut row) = (rows.start / size * len, rows.start % size);
    rows.map(move |_| {
        let at = (plane, row);
        row += 1;
        if row == size {
            (plane, row) = (plane + len, 0);
        }
        at
    })
}

struct NearestRows<'a, const UNIT: usize> {
    lines: &'a [ResizeLine<'a>; 2],
    x: &'a [[u8; UNIT]],
    rows: Range<usize>,
    out: &'a mut [[u8; UNIT]],
}

impl<const UNIT: usize> LevelLoop for NearestRows<'_, UNIT> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let NearestRows { lines: [down, across], x, rows, out } = self;
        let width = across.size;
        // The rows of a plane lie alike in all of them.
        let (mut sources, is_known) = ([0; COLUMNS], down.size <= COLUMNS.min(rows.len()));
        if is_known {
            sources[..down.size].iter_mut().enumerate().for_each(|(row, source)| *source = down.nearest(row));
        }
        for first in (0..width).step_by(COLUMNS) {
            let mut columns = [0; COLUMNS];
            let columns = &mut columns[..COLUMNS.min(width - first)];
            columns.iter_mut().enumerate().for_each(|(i, column)| *column = across.nearest(first + i));
            let (pattern, mut last) = (Pattern::of(columns), None);
            for (i, (plane, row)) in places(down, rows.clone()).enumerate() {
                let source = plane + if is_known { sources[row] } else { down.nearest(row) };
                let (before, y) = out.split_at_mut(i * width);
                let y = &mut y[first..][..columns.len()];
                let row = &x[source * across.len..][..across.len];
                match pattern {
                    Pattern::Run(at) => y.copy_from_slice(&row[at..][..y.len()]),
                    Pattern::Twice(at) => twice(&row[at..], y),
                    Pattern::Any if last == Some(source) => {
                        y.copy_from_slice(&before[(i - 1) * width + first..][..y.len()]);
                    }
                    Pattern::Any => y.iter_mut().zip(&*columns).for_each(|(y, &column)| *y = row[column]),
                }
                last = Some(source);
            }
        }
    }
}

/// Writes each element twice; the last one perhaps once.
#[inline(always)]
fn twice<T: Copy>(x: &[T], y: &mut [T]) {
    const STEP: usize = 8;
    let pairs = |x: &[T; STEP]| -> [T; 2 * STEP] { std::array::from_fn(|i| x[i / 2]) };
    for (x, y) in x.as_chunks::<STEP>().0.iter().zip(y.as_chunks_mut::<{ 2 * STEP }>().0) {
        *y = pairs(x);
    }
    let all = y.len() / 2;
    if all >= STEP {
        // The last step has some of the one before once more.
        let begin = all - STEP;
        if let (Some(x), Some(y)) = (x[begin..].first_chunk(), y[2 * begin..].first_chunk_mut()) {
            *y = pairs(x);
        }
    } else {
        y.as_chunks_mut::<2>().0.iter_mut().zip(x).for_each(|(y, &x)| *y = [x; 2]);
    }
    if y.len() % 2 == 1 {
        y[2 * all] = x[all];
    }
}

struct WeightedRows<'a, T> {
    isa: Isa,
    lines: &'a [ResizeLine<'a>; 2],
    x: &'a Numbers<'a, f32>,
    rows: Range<usize>,
    out: &'a mut [T],
}

impl<T: Stored> LevelLoop for WeightedRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let WeightedRows { isa, lines: [down, across], x, rows, out } = self;
        let width = across.size;
        let (mut floats, mut sums, mut first) = ([0.0; ELEMENTS], [0.0; COLUMNS], 0);
        while first < width {
            let columns = Across::new(across, first);
            // Rows of x that were interpolated along W, each at its number's remainder: neighbours do not meet.
            let (mut kept, mut numbers) = ([[0.0; COLUMNS]; TAPS], [usize::MAX; TAPS]);
            for ((plane, row), y) in places(down, rows.clone()).zip(out.chunks_exact_mut(width)) {
                let (places, weights) = down.weights(row);
                for &place in &places[..down.taps()] {
                    let (source, slot) = (plane + place, place % TAPS);
                    if std::mem::replace(&mut numbers[slot], source) != source {
                        let at = source * across.len;
                        let under = at + columns.under.start..at + columns.under.end;
                        columns.interpolate(x.read(isa, under, &mut floats), &mut kept[slot]);
                    }
                }
                let sums = &mut sums[..columns.count];
                match down.taps() {
                    1 => weighted::<1>(&places, &weights, &kept, sums),
                    2 => weighted::<2>(&places, &weights, &kept, sums),
                    _ => weighted::<TAPS>(&places, &weights, &kept, sums),
                }
                convert::narrow(isa, sums, &mut y[first..][..columns.count]);
            }
            first += columns.count;
        }
    }
}

/// The sums of some rows that were kept, each times its weight.
#[inline(always)]
fn weighted<const COUNT: usize>(
    places: &[usize; TAPS],
    weights: &[f32; TAPS],
    kept: &[[f32; COLUMNS]; TAPS],
    sums: &mut [f32],
) {
    let rows: [&[f32]; COUNT] = std::array::from_fn(|tap| &kept[places[tap] % TAPS][..sums.len()]);
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = weights[0] * rows[0][i];
        for tap in 1..COUNT {
            *sum += weights[tap] * rows[tap][i];
        }
    }
}

/// Some columns of the output: for each tap the element of a row, and its weight.
struct Across {
    taps: usize,
    count: usize,
    /// The elements of a row that they are made of.
    under: Range<usize>,
    /// Whether each is made of the next two of them.
    of_pairs: bool,
    /// Counted from the first of these.
    places: [[usize; COLUMNS]; TAPS],
    weights: [[f32; COLUMNS]; TAPS],
}

impl Across {
    /// The columns from `first` on whose elements fit into a buffer.
    fn new(columns: &ResizeLine<'_>, first: usize) -> Across {
        let (mut places, mut weights) = ([[0; COLUMNS]; TAPS], [[0.0; COLUMNS]; TAPS]);
        let (taps, most) = (columns.taps(), COLUMNS.min(columns.size - first));
        // Later columns lie further to the right.
        let begin = columns.weights(first).0[0];
        let (mut count, mut end) = (0, begin);
        while count < most {
            let (of, by) = columns.weights(first + count);
            let last = of[taps - 1] + 1;
            if last - begin > ELEMENTS {
                break;
            }
            end = last;
            for tap in 0..taps {
                (places[tap][count], weights[tap][count]) = (of[tap] - begin, by[tap]);
            }
            count += 1;
        }
        let under = begin..end;
        let is_pair = |i: usize| (places[0][i], places[1][i]) == (2 * i, 2 * i + 1);
        let of_pairs = taps == 2 && (0..count).all(is_pair);
        Across { taps, count, under, of_pairs, places, weights }
    }

    #[inline(always)]
    fn interpolate(&self, x: &[f32], sums: &mut [f32; COLUMNS]) {
        match self.taps {
            1 => self.interpolate_of::<1>(x, sums),
            2 if self.of_pairs => {
                let weights = self.weights[0].iter().zip(&self.weights[1]);
                for ((sum, x), (first, second)) in sums[..self.count].iter_mut().zip(x.as_chunks::<2>().0).zip(weights)
                {
                    *sum = first * x[0];
                    *sum += second * x[1];
                }
            }
            2 => self.interpolate_of::<2>(x, sums),
            _ => self.interpolate_of::<TAPS>(x, sums),
        }
    }

    #[inline(always)]
    fn interpolate_of<const COUNT: usize>(&self, x: &[f32], sums: &mut [f32; COLUMNS]) {
        for (i, sum) in sums[..self.count].iter_mut().enumerate() {
            *sum = self.weights[0][i] * x[self.places[0][i]];
            for tap in 1..COUNT {
                *sum += self.weights[tap][i] * x[self.places[tap][i]];
            }
        }
    }
}

impl BuiltinOperation for Builtin<Resize> {
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let lines = self.lines(&inputs[0], output);
        if lines[1].size == 0 {
            return LEAST_NS;
        }
        let span = self.span(&lines, elements(output));
        ((span.items as f32 * span.cost_ns) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if elements(outputs.desc(0)) == 0 {
            return Ok(());
        }
        let of = context.inputs()[0].desc().dtype;
        if self.mode == Mode::WEIR_RESIZE_NEAREST {
            return match dtype::size(of)? {
                1 => self.nearest::<1>(context, outputs),
                2 => self.nearest::<2>(context, outputs),
                4 => self.nearest::<4>(context, outputs),
                _ => self.nearest::<8>(context, outputs),
            };
        }
        match of {
            dtype::F32 => self.interpolate::<f32>(context, outputs),
            dtype::F16 => self.interpolate::<F16>(context, outputs),
            dtype::BF16 => self.interpolate::<Bf16>(context, outputs),
            dtype::U8 => self.interpolate::<u8>(context, outputs),
            _ => self.interpolate::<i8>(context, outputs),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
