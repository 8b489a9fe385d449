//! Convolution of images, signals and volumes, [N, C, D, H, W] with [O, C / groups, KD, KH, KW]. A signal is an image of
//! one row, an image a volume of one slice.
//!
//! Each slice of the output is computed as an image is: a channel of the input counts as KD channels, which are its
//! planes under the taps in depth, and weights lie as if it were so. Planes beyond the ends are zeros. Volumes whose
//! windows are those of an image are taken for one (`axis::folded`).
//!
//! Each slice, image and group is a product: of the weights, [O, K] with K = C * KH * KW, and the *patches*, [K, P], with a
//! column for each of the P windows. There are six algorithms, chosen by the shapes:
//!
//! | algorithm | when                       | registers lie along | patches                                    |
//! |-----------|----------------------------|---------------------|--------------------------------------------|
//! | direct    | in general                 | filters             | none: elements of a strip of the image     |
//! | shifted   | short sums, long rows      | windows             | none: shifted rows of a strip of the image |
//! | Winograd  | 3 x 3, no stride, 7 x 7    | filters             | transformed tiles: 2.25 times fewer        |
//! |           | windows or more            |                     | products (`winograd`)                      |
//! | product   | windows of one element     | windows             | none: the image is the matrix (`gemm`)     |
//! | few       | few filters in a group, of | windows             | none: sums of shifted rows of a strip      |
//! |           | more than points           |                     |                                            |
//! | rows      | few windows                | K                   | a row each, in scratch memory (`dots`)     |

mod direct;
mod few;
mod filters;
mod output;
mod shape;
mod shifted;
#[cfg(all(test, not(loom)))]
mod tests;
mod tile;
mod transform;
mod winograd;

use super::caches::Caches;
use super::dots::{self, Target};
use super::gemm::{self, GemmBatch, OperandB, Operands};
use super::isa::Isa;
use super::micro::{MicroKernels, Scale};
use super::site::{Matrix, MatrixMut, Site, check_scratch};
use super::window::{Axis, EdgeMode};
use crate::base::Result;
use crate::threadpool::Span;
pub use filters::{PackedFilters, pack as pack_filters};
use output::finish;
use shape::{ConvAlgorithm, ConvRegion};
pub use shape::{ConvShape, Data};
use tile::FilterRegisters;

/// Channels of a piece if patches are rows.
const CHANNELS: usize = 16;

/// Scratch memory that `compute` needs per slot, in bytes.
pub fn scratch_bytes(conv: &ConvShape) -> usize {
    scratch_bytes_on(Isa::best(), Caches::of_machine(), conv)
}

fn scratch_bytes_on(isa: Isa, caches: &Caches, conv: &ConvShape) -> usize {
    match conv.way() {
        ConvAlgorithm::Product => conv.shape().batch_scratch_bytes(conv.regions()),
        ConvAlgorithm::Rows => conv.windows() * conv.line() * size_of::<f32>(),
        ConvAlgorithm::Few => few::scratch_bytes(conv),
        ConvAlgorithm::Direct => direct::DirectDivision::new(isa, caches, conv).scratch_bytes(conv),
        ConvAlgorithm::Shifted => shifted::ShiftedDivision::new(caches, conv).scratch_bytes(conv),
        ConvAlgorithm::Winograd => winograd::WinogradDivision::new(isa, caches, conv).scratch_bytes(isa, conv),
    }
}

/// The weights as the algorithm reads them, if it reads them otherwise than they are.
pub fn packed(isa: Isa, conv: &ConvShape, weights: &[f32]) -> Result<Option<PackedFilters>> {
    let lanes = FilterRegisters::of(isa).lanes;
    match conv.way() {
        ConvAlgorithm::Direct => PackedFilters::new(isa, lanes, conv.groups, conv.filters, weights).map(Some),
        ConvAlgorithm::Winograd => winograd::packed(isa, conv, weights).map(Some),
        _ => Ok(None),
    }
}

/// As `packed`, for images of any size up to that which `conv` says.
pub fn packed_for_smaller(isa: Isa, conv: &ConvShape, weights: &[f32]) -> Result<Vec<PackedFilters>> {
    let mut all: Vec<_> = packed(isa, conv, weights)?.into_iter().collect();
    if let ConvAlgorithm::Winograd | ConvAlgorithm::Product | ConvAlgorithm::Shifted = conv.way() {
        let lanes = FilterRegisters::of(isa).lanes;
        all.push(PackedFilters::new(isa, lanes, conv.groups, conv.filters, weights)?);
    }
    Ok(all)
}

/// Whether weights were packed for this shape.
pub fn fits(isa: Isa, conv: &ConvShape, packed: &PackedFilters) -> bool {
    let depth = if conv.way() == ConvAlgorithm::Winograd { winograd::depth(conv) } else { conv.depth() };
    packed.fits(FilterRegisters::of(isa).lanes, conv.groups, conv.filters, depth)
}

/// Computes the convolution into `out`, in a region of `site`, which has `scratch_bytes` per slot.
pub fn compute(conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    compute_with((Isa::best(), Caches::of_machine()), conv, data, out, site)
}

/// The same on a supported level and for these caches, for which the scratch memory may be sized differently.
fn compute_with(
    (isa, caches): (Isa, &Caches),
    conv: &ConvShape,
    data: &Data<'_>,
    out: MatrixMut<'_, f32>,
    site: &dyn Site,
) -> Result<()> {
    let [x, weights, out_len] = conv.sizes();
    assert!((data.x.len(), data.weights.len()) == (x, weights), "{conv:?}");
    assert!(out.holds(conv.images * conv.groups * conv.filters, conv.channel_step()), "{conv:?}");
    assert!(!conv.is_plain() || conv.slices.is_one(), "{conv:?}");
    assert!(data.bias.is_none_or(|bias| bias.len() == conv.groups * conv.filters), "{conv:?}");
    assert!(data.addend.is_none_or(|addend| addend.len() == out_len), "{conv:?}");
    assert!(data.packed.is_none_or(|packed| fits(isa, conv, packed)), "{conv:?}");
    match conv.way() {
        ConvAlgorithm::Product => by_product(isa, conv, data, out, site),
        ConvAlgorithm::Rows => by_rows(isa, conv, data, out, site),
        ConvAlgorithm::Few => few::compute(isa, conv, data, out, site),
        ConvAlgorithm::Direct => direct::compute(isa, caches, conv, data, out, site),
        ConvAlgorithm::Shifted => shifted::compute(isa, caches, conv, data, out, site),
        ConvAlgorithm::Winograd => winograd::compute(isa, caches, conv, data, out, site),
    }
}

fn by_product(isa: Isa, conv: &ConvShape, data: &Data<'_>, out: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
    let (m, n, k) = (conv.filters, conv.windows(), conv.depth());
    let operands = |number| {
        let of = ConvRegion::new(conv, data, number);
        Operands {
            a: Matrix::dense(of.weights, m, k),
            b: OperandB::Matrix(Matrix::dense(of.x, k, n)),
            finish: of.epilogue(conv),
        }
    };
    let batch = GemmBatch {
        shape: conv.shape(),
        count: conv.regions(),
        scale: Scale { alpha: 1.0, beta: 0.0 },
        operands: &operands,
    };
    gemm::compute_batch_with(MicroKernels::of(isa), &batch, out, site)
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
    let items = conv.regions() * parts;
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
            let of = ConvRegion::new(conv, data, number);
            // SAFETY: the slot's scratch memory, an engine's, whose floats are initialised, has a row of `line` for
            // each window, and is exclusive to this claim.
            let rows =
                unsafe { std::slice::from_raw_parts_mut(site.scratch(claim.slot()).cast::<f32>(), windows * line) };
            turned(conv, &of, rows);
            let step = conv.channel_step();
            let at = out.data().wrapping_add(of.out + filters.start * step);
            let to = Target { data: at, row: 1, column: step, add: false };
            // SAFETY: the patches and the weights have these sizes, and the rows of the output are claimed.
            unsafe {
                let a = Matrix::new(rows.as_ptr(), windows, depth, line);
                let b = Matrix::dense(of.weights, conv.filters, depth);
                dots::products(isa, (windows, filters.len(), depth), a, b, filters.start, &to);
            }
            // The channels of a slice among others are apart.
            let together = if step == windows { filters.len() } else { 1 };
            for first in filters.clone().step_by(together) {
                let begin = (first - filters.start) * step;
                // SAFETY: claimed rows of the output, which were written, and follow one another.
                let out = unsafe { std::slice::from_raw_parts_mut(at.add(begin), together * windows) };
                if let Some(bias) = of.bias {
                    let bias = &bias[first..first + together];
                    match windows {
                        // Constant counts for the compiler.
                        1 => add_to_each::<1>(out, bias),
                        2 => add_to_each::<2>(out, bias),
                        4 => add_to_each::<4>(out, bias),
                        _ => out.chunks_exact_mut(windows).zip(bias).for_each(|(row, bias)| {
                            row.iter_mut().for_each(|x| *x += bias);
                        }),
                    }
                }
                let addend = of.addend.map(|addend| &addend[first * step..][..together * windows]);
                finish(isa, conv.activation, addend, out);
            }
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
fn turned(conv: &ConvShape, of: &ConvRegion<'_>, out: &mut [f32]) {
    let (slices, rows, columns, plane) = (&conv.slices, &conv.rows, &conv.columns, conv.plane());
    let (channels, taps) = (conv.channels / slices.taps, rows.taps * columns.taps);
    let planes = || (0..slices.taps).map(|tap| (tap, slices.element(of.slice, tap)));
    for (window, out) in out.chunks_exact_mut(conv.line()).enumerate() {
        let (row, column) = (window / columns.output, window % columns.output);
        if !slices.fills(of.slice) || !rows.fills(row) || !columns.fills(column) {
            out.fill(0.0);
        }
        for (in_depth, slice) in planes() {
            let Some(slice) = slice else { continue };
            for tap in 0..rows.taps {
                let Some(at) = rows.element(row, tap) else { continue };
                // The same line of every channel.
                let x = &of.x[slice * plane + at * columns.input..];
                let out = &mut out[in_depth * taps + tap * columns.taps..];
                lines(columns, column, channels, (x, slices.input * plane), (out, slices.taps * taps));
            }
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
