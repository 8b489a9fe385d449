//! Convolution of images and signals, [N, C, H, W] with [O, C / groups, KH, KW]; a signal is an image of one row.
//!
//! Each image and group is a product: of the weights, [O, K] with K = C * KH * KW, and the *patches*, [K, P], with a
//! column for each of the P windows. There are three algorithms, chosen by the shapes:
//!
//! | algorithm | when                                | patches                                         |
//! |-----------|-------------------------------------|-------------------------------------------------|
//! | panels    | in general                          | gathered into the panels of the driver (`gemm`) |
//! | rows      | few windows                         | a row each, in scratch memory; `dots`           |
//! | direct    | few output channels in a group, and | none: sums of shifted rows (`direct`)           |
//! |           | short or many windows               |                                                 |
//!
//! The driver's SIMD lanes lie along P, those of `dots` along K. Windows of one element (1 x 1) need no patches: the
//! image is the matrix.

mod direct;
mod shape;
#[cfg(test)]
mod tests;

use super::dots::{self, Target};
use super::finish::ProductEpilogue;
use super::gemm::{self, GatherPanels, GemmBatch, OperandB, Operands};
use super::isa::Isa;
use super::micro::{MicroKernels, Scale};
use super::site::{Matrix, MatrixMut, Site, check_scratch};
use super::window::{Axis, EdgeMode};
use crate::base::Result;
use crate::threadpool::Span;
use shape::{ConvAlgorithm, operands};
pub use shape::{ConvShape, Data};
use std::ops::Range;

/// Channels of a piece if patches are rows.
const CHANNELS: usize = 16;

/// Computes the convolution into `out`, in a region of `site`, which has `scratch_bytes` per slot.
pub fn compute(conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    compute_with(Isa::best(), conv, data, out, site)
}

/// The same on a supported level, for which the scratch memory may be sized differently.
fn compute_with(isa: Isa, conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    let [x, weights, _] = conv.sizes();
    assert!((data.x.len(), data.weights.len()) == (x, weights), "{conv:?}");
    assert!(out.holds(conv.images * conv.groups * conv.filters, conv.windows()), "{conv:?}");
    assert!(data.bias.is_none_or(|bias| bias.len() == conv.groups * conv.filters), "{conv:?}");
    match conv.way() {
        ConvAlgorithm::Panels => by_panels(isa, conv, data, out, site),
        ConvAlgorithm::Rows => by_rows(isa, conv, data, out, site),
        ConvAlgorithm::Direct => direct::compute(isa, conv, data, out, site),
    }
}

fn by_panels(isa: Isa, conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    let patches = Patches { conv, x: data.x };
    let plain = conv.rows.is_plain() && conv.columns.is_plain();
    let (m, n, k) = (conv.filters, conv.windows(), conv.depth());
    let operands = |number| {
        let Data { x, weights, bias } = operands(conv, data, number);
        Operands {
            a: Matrix::dense(weights, m, k),
            b: if plain { OperandB::Matrix(Matrix::dense(x, k, n)) } else { OperandB::GatherPanels(&patches, number) },
            finish: ProductEpilogue { rows: bias, activation: conv.activation, ..ProductEpilogue::default() },
        }
    };
    let batch = GemmBatch {
        shape: conv.shape(),
        count: conv.images * conv.groups,
        scale: Scale { alpha: 1.0, beta: 0.0 },
        operands: &operands,
    };
    gemm::compute_batch_with(MicroKernels::of(isa), &batch, out, site)
}

/// The patches of all images and groups.
struct Patches<'a> {
    conv: &'a ConvShape,
    x: &'a [f32],
}

impl Patches<'_> {
    /// Calls `f` with each row of patches in `depth`: its index in the range, its channel and its taps.
    fn each_row(&self, depth: Range<usize>, mut f: impl FnMut(usize, usize, usize, usize)) {
        let (down, across) = (self.conv.rows.taps, self.conv.columns.taps);
        let (mut tap, mut row, mut channel) =
            (depth.start % across, depth.start / across % down, depth.start / across / down);
        for index in 0..depth.len() {
            f(index, channel, row, tap);
            tap += 1;
            if tap == across {
                (tap, row) = (0, row + 1);
            }
            if row == down {
                (row, channel) = (0, channel + 1);
            }
        }
    }
}

impl GatherPanels for Patches<'_> {
    fn fill(&self, number: usize, depth: Range<usize>, columns: Range<usize>, panel: &mut [f32], stride: usize) {
        let image = self.conv.channels * self.conv.plane();
        let x = &self.x[number * image..][..image];
        let across = &self.conv.columns;
        let (first_row, first) = (columns.start / across.output, columns.start % across.output);
        self.each_row(depth, |index, channel, row_tap, tap| {
            let plane = &x[channel * self.conv.plane()..][..self.conv.plane()];
            let inside = across.inside(tap);
            let mut out = &mut panel[index * stride..][..columns.len()];
            let (mut row, mut window) = (first_row, first);
            while !out.is_empty() {
                let (part, rest) = out.split_at_mut((across.output - window).min(out.len()));
                match self.conv.rows.element(row, row_tap) {
                    None => part.fill(0.0),
                    Some(at) => line(across, &inside, &plane[at * across.input..][..across.input], tap, window, part),
                }
                (out, row, window) = (rest, row + 1, 0);
            }
        });
    }
}

/// Copies the input elements under a tap, for the windows from `first` on, in a row of the input.
#[inline]
fn line(axis: &Axis, inside: &Range<usize>, x: &[f32], tap: usize, first: usize, out: &mut [f32]) {
    let end = first + out.len();
    let (begin, stop) = (inside.start.clamp(first, end), inside.end.clamp(first, end));
    if begin < stop {
        let at = begin * axis.stride + tap * axis.dilation - axis.before;
        let out = &mut out[begin - first..stop - first];
        match axis.stride {
            1 => copy(&x[at..][..out.len()], out),
            stride => out.iter_mut().zip(x[at..].iter().step_by(stride)).for_each(|(out, x)| *out = *x),
        }
    }
    let stop = stop.max(begin);
    for window in (first..begin).chain(stop..end) {
        out[window - first] = axis.element(window, tap).map_or(0.0, |at| x[at]);
    }
}

/// Copies a few elements, without a call.
#[inline(always)]
fn copy(x: &[f32], out: &mut [f32]) {
    const STEP: usize = 8;
    let (x_steps, mut steps) = (x.chunks_exact(STEP), out.chunks_exact_mut(STEP));
    let rest = x_steps.remainder();
    for (x, out) in x_steps.zip(&mut steps) {
        out.copy_from_slice(x);
    }
    for (out, x) in steps.into_remainder().iter_mut().zip(rest) {
        *out = *x;
    }
}

fn by_rows(isa: Isa, conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    let (windows, depth, line) = (conv.windows(), conv.depth(), conv.line());
    let parts = conv.filters.div_ceil(CHANNELS);
    let items = conv.images * conv.groups * parts;
    if items * windows == 0 {
        return Ok(());
    }
    check_scratch(site, windows * line * size_of::<f32>());
    let cost_ns = conv.cost_ns() as f32 / items as f32;
    site.parallel_for(&Span { items, cost_ns, ..Span::default() }, &|claim| {
        let mut item = claim.begin();
        while item < claim.end() {
            let (number, part) = (item / parts, item % parts);
            let count = (parts - part).min(claim.end() - item);
            let filters = part * CHANNELS..((part + count) * CHANNELS).min(conv.filters);
            let of = operands(conv, data, number);
            // SAFETY: the slot's scratch memory, an engine's, whose floats are initialised, has a row of `line` for
            // each window, and is exclusive to this claim.
            let rows =
                unsafe { std::slice::from_raw_parts_mut(site.scratch(claim.slot()).cast::<f32>(), windows * line) };
            turned(conv, of.x, rows);
            let at = out.data().wrapping_add((number * conv.filters + filters.start) * windows);
            let to = Target { data: at, row: 1, column: windows, add: false };
            // SAFETY: the patches and the weights have these sizes, and the rows of the output are claimed.
            unsafe {
                let a = Matrix::new(rows.as_ptr(), windows, depth, line);
                let b = Matrix::dense(of.weights, conv.filters, depth);
                dots::products(isa, (windows, filters.len(), depth), a, b, filters.start, &to);
            }
            // SAFETY: claimed rows of the output, which were written, and follow one another.
            let out = unsafe { std::slice::from_raw_parts_mut(at, filters.len() * windows) };
            if let Some(bias) = of.bias {
                match windows {
                    // Constant counts for the compiler.
                    1 => add_to_each::<1>(out, &bias[filters]),
                    2 => add_to_each::<2>(out, &bias[filters]),
                    4 => add_to_each::<4>(out, &bias[filters]),
                    _ => out.chunks_exact_mut(windows).zip(&bias[filters]).for_each(|(row, bias)| {
                        row.iter_mut().for_each(|x| *x += bias);
                    }),
                }
            }
            super::activation::apply(conv.activation, isa, out);
            item += count;
        }
        Ok(())
    })
}

/// Adds a number to each row of COUNT elements.
fn add_to_each<const COUNT: usize>(rows: &mut [f32], numbers: &[f32]) {
    for (row, number) in rows.as_chunks_mut::<COUNT>().0.iter_mut().zip(numbers) {
        row.iter_mut().for_each(|x| *x += number);
    }
}

/// Patches with a row for each window.
fn turned(conv: &ConvShape, x: &[f32], out: &mut [f32]) {
    let (rows, columns, plane) = (&conv.rows, &conv.columns, conv.plane());
    for (window, out) in out.chunks_exact_mut(conv.line()).enumerate() {
        let (row, column) = (window / columns.output, window % columns.output);
        if !rows.fills(row) || !columns.fills(column) {
            out.fill(0.0);
        }
        for tap in 0..rows.taps {
            let Some(at) = rows.element(row, tap) else { continue };
            // The same line of every channel.
            let (x, out) = (&x[at * columns.input..], &mut out[tap * columns.taps..]);
            lines(columns, column, conv.channels, (x, plane), (out, rows.taps * columns.taps));
        }
    }
}

/// Copies the elements under the taps of a window, for `count` lines of the input with stride `x_step`, to lines of the
/// output with stride `step`.
fn lines(axis: &Axis, window: usize, count: usize, (x, x_step): (&[f32], usize), (out, step): (&mut [f32], usize)) {
    let (begin, end) = axis.between(window);
    if begin < end {
        let (x, out) = ((&x[window * axis.stride + begin - axis.before..], x_step), (&mut out[begin..], step));
        match end - begin {
            // Constant sizes for the compiler, which then copies without a call.
            1 => copies::<1>(count, x, out),
            2 => copies::<2>(count, x, out),
            3 => copies::<3>(count, x, out),
            taps => {
                for i in 0..count {
                    copy(&x.0[i * x_step..][..taps], &mut out.0[i * step..][..taps]);
                }
            }
        }
    }
    if axis.edge == EdgeMode::Zero && axis.dilation == 1 {
        return;
    }
    for tap in (0..begin).chain(end..axis.taps) {
        if let Some(at) = axis.element(window, tap) {
            copies::<1>(count, (&x[at..], x_step), (&mut out[tap..], step));
        }
    }
}

/// Copies `count` times SIZE consecutive floats, with these strides in the source and the destination.
fn copies<const SIZE: usize>(count: usize, (x, x_step): (&[f32], usize), (out, step): (&mut [f32], usize)) {
    let Some(last) = count.checked_sub(1) else { return };
    assert!(last * x_step + SIZE <= x.len() && last * step + SIZE <= out.len());
    let (mut from, mut to) = (x.as_ptr(), out.as_mut_ptr());
    for _ in 0..count {
        // SAFETY: the last ones are inside, as was just compared; arrays of floats have the alignment of a float.
        unsafe { *to.cast::<[f32; SIZE]>() = *from.cast::<[f32; SIZE]>() };
        (from, to) = (from.wrapping_add(x_step), to.wrapping_add(step));
    }
}
