//! Resizing of images: the nearest elements, or weighted sums of two or four along each axis.
//!
//! A claim computes whole rows of the output, some columns at a time, so that what is known of these columns is on the
//! stack. An interpolated row of x is kept until another one takes its place: an output twice as high needs each once.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::Resize;
use crate::ops::{
    weir_resize_coordinates_value as Coordinates, weir_resize_mode_value as Mode,
    weir_resize_rounding_value as Rounding,
};
use crate::threadpool::Span;

/// Columns of the output that are computed at once.
const COLUMNS: usize = 128;
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
    fn place(&self, at: usize) -> f64 {
        (at as f64 + self.offset.0) * self.step.0 / self.step.1 - self.offset.1
    }

    /// The element at a whole place, or the one at the edge.
    fn clamped(&self, place: f64) -> usize {
        place.clamp(0.0, (self.len - 1) as f64) as usize
    }

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
    fn taps(&self) -> usize {
        match self.op.mode {
            // Each result is its element.
            _ if self.len == self.size && self.step.0 == self.step.1 && self.offset.0 == self.offset.1 => 1,
            Mode::WEIR_RESIZE_CUBIC => 4,
            _ => 2,
        }
    }

    /// The elements that make a result, and their weights.
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
        let (span, [rows, columns], x) =
            (self.span(&lines, elements(output.desc())), &lines, x.read_bytes().as_chunks::<UNIT>().0);
        let width = columns.size;
        context.parallel_into(&span, output.byte_shards(width * UNIT), |out, claim| {
            let out = out.as_chunks_mut::<UNIT>().0;
            for first in (0..width).step_by(COLUMNS) {
                let mut places = [0; COLUMNS];
                let places = &mut places[..COLUMNS.min(width - first)];
                places.iter_mut().enumerate().for_each(|(i, place)| *place = columns.nearest(first + i));
                let (pattern, mut last) = (Pattern::of(places), None);
                for (i, number) in (claim.begin()..claim.end()).enumerate() {
                    let source = number / rows.size * rows.len + rows.nearest(number % rows.size);
                    let (before, y) = out.split_at_mut(i * width);
                    let y = &mut y[first..][..places.len()];
                    if last.replace(source) == Some(source) {
                        y.copy_from_slice(&before[(i - 1) * width + first..][..y.len()]);
                        continue;
                    }
                    let row = &x[source * columns.len..][..columns.len];
                    match pattern {
                        Pattern::Run(at) => y.copy_from_slice(&row[at..][..y.len()]),
                        Pattern::Twice(at) => {
                            let (pairs, rest) = y.as_chunks_mut::<2>();
                            pairs.iter_mut().zip(&row[at..]).for_each(|(pair, &x)| *pair = [x, x]);
                            rest.iter_mut().for_each(|y| *y = row[at + pairs.len()]);
                        }
                        Pattern::Any => y.iter_mut().zip(&*places).for_each(|(y, &place)| *y = row[place]),
                    }
                }
            }
            Ok(())
        })
    }

    fn interpolate<T: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, output) = (context.input(0), outputs.only());
        let lines = self.lines(x.desc(), output.desc());
        let (span, [rows, columns], x) = (self.span(&lines, elements(output.desc())), &lines, x.read::<T>());
        let width = columns.size;
        context.parallel_into(&span, output.shards::<T>(width), |out, claim| {
            for first in (0..width).step_by(COLUMNS) {
                let count = COLUMNS.min(width - first);
                let across = Across::new(columns, first, count);
                // Rows of x that were interpolated along W, each at its number's remainder: neighbours do not meet.
                let (mut kept, mut numbers) = ([[0.0; COLUMNS]; TAPS], [usize::MAX; TAPS]);
                for (number, y) in (claim.begin()..).zip(out.chunks_exact_mut(width)) {
                    let plane = number / rows.size * rows.len;
                    let (places, weights) = rows.weights(number % rows.size);
                    let mut sums = [0.0; COLUMNS];
                    for (tap, (&place, &weight)) in places.iter().zip(&weights).take(rows.taps()).enumerate() {
                        let (source, slot) = (plane + place, place % TAPS);
                        if std::mem::replace(&mut numbers[slot], source) != source {
                            let row = &x[source * columns.len..][..columns.len];
                            across.interpolate(self, row, &mut kept[slot]);
                        }
                        let sums = sums[..count].iter_mut().zip(&kept[slot]);
                        match tap {
                            0 => sums.for_each(|(sum, &x)| *sum = weight * x),
                            _ => sums.for_each(|(sum, &x)| *sum += weight * x),
                        }
                    }
                    convert::narrow(self.isa, &sums[..count], &mut y[first..][..count]);
                }
            }
            Ok(())
        })
    }
}

/// Some columns of the output: for each tap the element of a row, and its weight.
struct Across {
    taps: usize,
    count: usize,
    places: [[usize; COLUMNS]; TAPS],
    weights: [[f32; COLUMNS]; TAPS],
}

impl Across {
    fn new(columns: &ResizeLine<'_>, first: usize, count: usize) -> Across {
        let (mut places, mut weights) = ([[0; COLUMNS]; TAPS], [[0.0; COLUMNS]; TAPS]);
        for i in 0..count {
            let (of, by) = columns.weights(first + i);
            for tap in 0..TAPS {
                (places[tap][i], weights[tap][i]) = (of[tap], by[tap]);
            }
        }
        Across { taps: columns.taps(), count, places, weights }
    }

    fn interpolate<T: Stored>(&self, by: &Builtin<Resize>, row: &[T], sums: &mut [f32; COLUMNS]) {
        let (mut taken, mut floats) = ([row[0]; COLUMNS], [0.0; COLUMNS]);
        for tap in 0..self.taps {
            let taken = &mut taken[..self.count];
            taken.iter_mut().zip(&self.places[tap]).for_each(|(x, &place)| *x = row[place]);
            convert::widen(by.isa, taken, &mut floats[..self.count]);
            for ((sum, &x), &weight) in sums.iter_mut().zip(&floats).zip(&self.weights[tap]) {
                *sum = if tap == 0 { weight * x } else { *sum + weight * x };
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
