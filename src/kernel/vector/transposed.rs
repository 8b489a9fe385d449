//! Transposed convolution: a product of the filters with the elements of x, whose rows are gathered into the output.
//!
//! An item is some rows of some channels of the output. It computes the products of all that reaches these rows in
//! scratch memory, [filters * taps, elements], and adds them up, for each element in the order of the taps.
//! Neighbouring items compute some products twice. How an image is divided depends on its shape alone.

use super::activation::{self, Activation};
use super::finish::ProductEpilogue;
use super::gemm::{self, GemmBatch, GemmShape, OperandB, Operands};
use super::isa::Isa;
use super::levels::{self, LevelLoop};
use super::micro::{MicroKernels, Scale};
use super::site::{Alone, Matrix, MatrixMut, Site, check_scratch};
use super::window::Axis;
use crate::base::Result;
use crate::memory::ALIGNMENT;
use crate::threadpool::Span;
use std::ops::Range;

/// Elements of x whose products an item computes, and most floats of these.
const ELEMENTS: usize = 512;
const MOST_FLOATS: usize = 192 << 10;
/// Items that are enough for any pool, and rows of a product that are worth one.
const ENOUGH_ITEMS: usize = 64;
const LEAST_ROWS: usize = 64;
/// Time to add a product.
const ADD_NS: f32 = 0.6;

/// The sizes. The axes are those of the convolution of which this is the reverse: its windows are the elements of x.
#[derive(Clone, Copy, Debug)]
pub struct TransposedShape {
    pub images: usize,
    pub groups: usize,
    /// Of a group.
    pub channels: usize,
    /// Of a group.
    pub filters: usize,
    pub rows: Axis,
    pub columns: Axis,
    pub activation: Activation,
}

/// How the output of an image and group is divided.
#[derive(Clone, Copy, Debug)]
struct Division {
    /// Filters of an item, but for the last.
    filters: usize,
    blocks: usize,
    /// Rows of the output.
    height: usize,
    strips: usize,
    /// Most rows of x that reach them.
    reach: usize,
}

impl TransposedShape {
    fn taps(&self) -> usize {
        self.rows.taps * self.columns.taps
    }

    /// The rows of x that reach some rows of the output.
    fn reach(&self, rows: Range<usize>) -> Range<usize> {
        let Axis { taps, stride, dilation, before, output, .. } = self.rows;
        let begin = (rows.start + before).saturating_sub((taps - 1) * dilation).div_ceil(stride).min(output);
        begin..((rows.end + before - 1) / stride + 1).clamp(begin, output)
    }

    fn division(&self) -> Division {
        let Axis { taps, stride, dilation, output, input, .. } = self.rows;
        let lines = (ELEMENTS / self.columns.output).clamp(1, output);
        let (height, reach) =
            ((lines * stride).min(input.max(1)), output.min(lines + (taps - 1) * dilation / stride + 1));
        let strips = input.div_ceil(height);
        let floats = self.taps() * reach * self.columns.output;
        let mut blocks = self.filters.div_ceil((MOST_FLOATS / floats).clamp(1, self.filters));
        let others = self.images * self.groups * strips;
        while blocks * others < ENOUGH_ITEMS && self.filters / (2 * blocks) * self.taps() >= LEAST_ROWS {
            blocks *= 2;
        }
        let filters = self.filters.div_ceil(blocks);
        Division { filters, blocks: self.filters.div_ceil(filters), height, strips, reach }
    }

    fn product(&self, filters: usize, lines: usize) -> GemmShape {
        let (m, n) = (filters * self.taps(), lines * self.columns.output);
        GemmShape { m, n, k: self.channels, transpose_a: true, transpose_b: false }
    }

    /// Bytes of products in the scratch memory.
    fn product_bytes(&self, division: &Division) -> usize {
        let GemmShape { m, n, .. } = self.product(division.filters, division.reach);
        (m * n * size_of::<f32>()).next_multiple_of(ALIGNMENT)
    }

    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self, isa: Isa) -> usize {
        let (division, micro) = (self.division(), MicroKernels::of(isa));
        let last = self.filters - (division.blocks - 1) * division.filters;
        let sizes = [last, division.filters].into_iter().flat_map(|m| (1..=division.reach).map(move |n| (m, n)));
        let most = sizes.map(|(filters, lines)| self.product(filters, lines).scratch_bytes_with(&micro)).max();
        self.product_bytes(&division) + most.unwrap_or(0)
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self) -> u64 {
        let product = self.product(self.filters, self.rows.output);
        let added = (product.m * product.n) as f32 * ADD_NS;
        (self.images * self.groups) as u64 * (product.cost_ns() + added as u64)
    }
}

/// Computes the rows of all channels of the output, of x, the weights and the bias, in a region of `site`, which has
/// `scratch_bytes` per slot.
pub fn compute(
    isa: Isa,
    shape: &TransposedShape,
    (x, weights, bias): (&[f32], &[f32], Option<&[f32]>),
    out: MatrixMut<'_, f32>,
    site: &dyn Site,
) -> Result<()> {
    let TransposedShape { images, groups, channels, filters, rows, columns, activation } = *shape;
    let (division, taps, micro) = (shape.division(), shape.taps(), MicroKernels::of(isa));
    let (plane, scratch_bytes) = (rows.output * columns.output, shape.scratch_bytes(isa));
    assert_eq!((x.len(), weights.len()), (images * groups * channels * plane, groups * channels * filters * taps));
    assert!(out.holds(images * groups * filters * rows.input, columns.input), "{shape:?}");
    assert!(bias.is_none_or(|bias| bias.len() == groups * filters));
    check_scratch(site, scratch_bytes);
    let items = images * groups * division.blocks * division.strips;
    let cost_ns = shape.cost_ns() as f32 / items as f32;
    site.parallel_for(&Span { items, cost_ns, coarse: true, ..Span::default() }, &|claim| {
        let memory = site.scratch(claim.slot());
        let room = shape.product_bytes(&division);
        // SAFETY: what is left of the slot's scratch memory, which is initialised.
        let alone = Alone::new(unsafe { std::slice::from_raw_parts_mut(memory.add(room), scratch_bytes - room) });
        for item in claim.begin()..claim.end() {
            let (strip, block) = (item % division.strips, item / division.strips % division.blocks);
            let number = item / division.strips / division.blocks;
            let first = block * division.filters;
            let count = division.filters.min(filters - first);
            let strip = strip * division.height..rows.input.min((strip + 1) * division.height);
            let lines = shape.reach(strip.clone());
            let product = shape.product(count, lines.len());
            // SAFETY: the front of the slot's scratch memory, initialised and as large as `product_bytes` of more
            // filters and lines; the rest of it is `alone`'s. The slot is the claim's.
            let products = unsafe { std::slice::from_raw_parts_mut(memory.cast::<f32>(), product.m * product.n) };
            let from = number * channels * plane + lines.start * columns.output;
            let group = number % groups * channels * filters * taps + first * taps;
            // SAFETY: a stretch of each row of the group's weights, [channels, filters * taps], and of its x,
            // [channels, plane]; the sizes were compared.
            let (a, b) = unsafe {
                (
                    Matrix::new(weights[group..].as_ptr(), channels, product.m, filters * taps),
                    Matrix::new(x[from..].as_ptr(), channels, product.n, plane),
                )
            };
            let operands = Operands { a, b: OperandB::Matrix(b), finish: ProductEpilogue::default() };
            let batch =
                GemmBatch { shape: product, count: 1, scale: Scale { alpha: 1.0, beta: 0.0 }, operands: &|_| operands };
            gemm::compute_batch_with(micro, &batch, MatrixMut::dense(products, product.m, product.n), &alone)?;
            for filter in 0..count {
                let channel = number * filters + first + filter;
                let bias = bias.map_or(0.0, |bias| bias[channel % (groups * filters)]);
                let products = &products[filter * taps * product.n..][..taps * product.n];
                let to = out.data().wrapping_add((channel * rows.input + strip.start) * columns.input);
                // SAFETY: rows of the output, which has as many as compared above; no other item has them.
                let y = unsafe { std::slice::from_raw_parts_mut(to, strip.len() * columns.input) };
                levels::up_to_avx2(isa, Gather { shape, products, lines: &lines, first: strip.start, bias, y });
                activation::apply(activation, isa, y);
            }
        }
        Ok(())
    })
}

/// Rows of a channel of the output, from `first` on: the bias, and the products of some lines of x that fall into them,
/// added tap by tap.
struct Gather<'a> {
    shape: &'a TransposedShape,
    products: &'a [f32],
    lines: &'a Range<usize>,
    first: usize,
    bias: f32,
    y: &'a mut [f32],
}

impl LevelLoop for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Gather { shape: &TransposedShape { rows, columns, .. }, products, lines, bias, .. } = self;
        let (width, stride, taps) = (columns.output, columns.stride, columns.taps);
        for (row, y) in (self.first..).zip(self.y.chunks_exact_mut(columns.input)) {
            let mut is_empty = true;
            for down in 0..rows.taps {
                let Some(place) = (row + rows.before).checked_sub(down * rows.dilation) else { break };
                let line = place / rows.stride;
                if place % rows.stride != 0 || !lines.contains(&line) {
                    continue;
                }
                // The products that a tap adds, and the element of the row to which the first of them goes.
                let of_tap = |across: usize| {
                    let windows = columns.inside(across);
                    let from = ((down * taps + across) * lines.len() + line - lines.start) * width;
                    let is_none = windows.is_empty();
                    let first = windows.start * stride + across * columns.dilation;
                    (&products[from..][windows], if is_none { 0 } else { first - columns.before })
                };
                let mut across = 0;
                while across < taps {
                    let (from, first) = of_tap(across);
                    let next = (across + 1 < taps && stride == 2).then(|| of_tap(across + 1));
                    // Every second element each: side by side.
                    if let Some((next, of_next)) = next
                        && (of_next, next.len()) == (first + 1, from.len())
                    {
                        let is_whole = is_empty && (first, 2 * from.len()) == (0, y.len());
                        if is_empty && !is_whole {
                            y.fill(bias);
                        }
                        let pairs = y[first..].as_chunks_mut::<2>().0.iter_mut().zip(from.iter().zip(next));
                        if is_whole {
                            pairs.for_each(|(pair, (from, next))| *pair = [bias + from, bias + next]);
                        } else {
                            pairs.for_each(|(pair, (from, next))| *pair = [pair[0] + from, pair[1] + next]);
                        }
                        across += 2;
                    } else {
                        if is_empty {
                            y.fill(bias);
                        }
                        match stride {
                            1 => y[first..].iter_mut().zip(from).for_each(|(y, x)| *y += x),
                            _ => y[first..].iter_mut().step_by(stride).zip(from).for_each(|(y, x)| *y += x),
                        }
                        across += 1;
                    }
                    is_empty = false;
                }
            }
            if is_empty {
                y.fill(bias);
            }
        }
    }
}
