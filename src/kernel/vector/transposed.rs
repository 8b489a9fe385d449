//! Transposed convolution: a product of the filters with the elements of x, whose rows are gathered into the output.
//!
//! An item is some rows of some channels of the output, or of one slice of a volume. It computes the products of all
//! that reaches these rows in scratch memory, [filters * taps, elements], and adds them up, for each element in the
//! order of the taps. Of a volume it does so for one tap in depth after the other, with the weights of that tap side by
//! side. Neighbouring items compute some products twice. How an image is divided depends on its shape alone.

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
    /// The depth of volumes.
    pub slices: Axis,
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
    /// Taps of a filter in a slice.
    fn taps(&self) -> usize {
        self.rows.taps * self.columns.taps
    }

    /// The slice of x that a tap in depth puts into a slice of the output.
    fn slice(&self, of: usize, tap: usize) -> Option<usize> {
        let Axis { stride, dilation, before, output, .. } = self.slices;
        let place = (of + before).checked_sub(tap * dilation)?;
        Some(place / stride).filter(|&slice| place % stride == 0 && slice < output)
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
        let others = self.images * self.groups * self.slices.input * strips;
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

    /// Bytes of the weights of an item, sorted by the taps in depth.
    fn sorted_bytes(&self, division: &Division) -> usize {
        match self.slices.taps {
            1 => 0,
            taps => {
                let floats = taps * self.channels * division.filters * self.taps();
                (floats * size_of::<f32>()).next_multiple_of(ALIGNMENT)
            }
        }
    }

    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self, isa: Isa) -> usize {
        let (division, micro) = (self.division(), MicroKernels::of(isa));
        let last = self.filters - (division.blocks - 1) * division.filters;
        let sizes = [last, division.filters].into_iter().flat_map(|m| (1..=division.reach).map(move |n| (m, n)));
        let most = sizes.map(|(filters, lines)| self.product(filters, lines).scratch_bytes_with(&micro)).max();
        self.product_bytes(&division) + self.sorted_bytes(&division) + most.unwrap_or(0)
    }

    /// Estimated time of `compute` on one thread.
    pub fn cost_ns(&self) -> u64 {
        let product = self.product(self.filters, self.rows.output);
        let added = (product.m * product.n) as f32 * ADD_NS;
        let products = self.images * self.groups * self.slices.output * self.slices.taps;
        products as u64 * (product.cost_ns() + added as u64)
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
    let TransposedShape { images, groups, channels, filters, slices, rows, columns, activation } = *shape;
    let (division, taps, micro) = (shape.division(), shape.taps(), MicroKernels::of(isa));
    let (plane, scratch_bytes) = (rows.output * columns.output, shape.scratch_bytes(isa));
    let (volume, of_filter) = (slices.output * plane, slices.taps * taps);
    assert_eq!(
        (x.len(), weights.len()),
        (images * groups * channels * volume, groups * channels * filters * of_filter)
    );
    assert!(out.holds(images * groups * filters * slices.input * rows.input, columns.input), "{shape:?}");
    assert!(bias.is_none_or(|bias| bias.len() == groups * filters));
    check_scratch(site, scratch_bytes);
    let items = images * groups * division.blocks * slices.input * division.strips;
    let cost_ns = shape.cost_ns() as f32 / items as f32;
    site.parallel_for(&Span { items, cost_ns, coarse: true, ..Span::default() }, &|claim| {
        let memory = site.scratch(claim.slot());
        let (room, of_sorted) = (shape.product_bytes(&division), shape.sorted_bytes(&division));
        let begin = room + of_sorted;
        // SAFETY: parts of the slot's scratch memory, which is initialised, behind the products.
        let (sorted, alone) = unsafe {
            let sorted = std::slice::from_raw_parts_mut(memory.add(room).cast::<f32>(), of_sorted / size_of::<f32>());
            (sorted, Alone::new(std::slice::from_raw_parts_mut(memory.add(begin), scratch_bytes - begin)))
        };
        // The group and the block whose weights are sorted.
        let mut held = None;
        for item in claim.begin()..claim.end() {
            let (strip, item) = (item % division.strips, item / division.strips);
            let (slice, item) = (item % slices.input, item / slices.input);
            let (block, number) = (item % division.blocks, item / division.blocks);
            let first = block * division.filters;
            let count = division.filters.min(filters - first);
            let strip = strip * division.height..rows.input.min((strip + 1) * division.height);
            let lines = shape.reach(strip.clone());
            let product = shape.product(count, lines.len());
            // SAFETY: the front of the slot's scratch memory, initialised and as large as `product_bytes` of more
            // filters and lines; the rest of it is `sorted` and `alone`'s. The slot is the claim's.
            let products = unsafe { std::slice::from_raw_parts_mut(memory.cast::<f32>(), product.m * product.n) };
            let of_group = &weights[number % groups * channels * filters * of_filter..];
            if slices.taps > 1 && held.replace((number % groups, block)) != Some((number % groups, block)) {
                sort(shape, of_group, first, count, sorted);
            }
            let channel = |filter: usize| number * filters + first + filter;
            let rows_of = |filter: usize| {
                let line = (channel(filter) * slices.input + slice) * rows.input + strip.start;
                // SAFETY: rows of the output, which has as many as compared above; no other item has them.
                unsafe {
                    let to = out.data().add(line * columns.input);
                    std::slice::from_raw_parts_mut(to, strip.len() * columns.input)
                }
            };
            let bias_of = |filter: usize| bias.map_or(0.0, |bias| bias[channel(filter) % (groups * filters)]);
            let mut is_first = true;
            for (tap, from) in (0..slices.taps).filter_map(|tap| Some((tap, shape.slice(slice, tap)?))) {
                let from = number * channels * volume + from * plane + lines.start * columns.output;
                let a = match slices.taps {
                    1 => Matrix::apart(&of_group[first * taps..], channels, product.m, filters * taps),
                    _ => Matrix::dense(&sorted[tap * channels * product.m..], channels, product.m),
                };
                let b = Matrix::apart(&x[from..], channels, product.n, volume);
                let operands = Operands { a, b: OperandB::Matrix(b), finish: ProductEpilogue::default() };
                let scale = Scale { alpha: 1.0, beta: 0.0 };
                let batch = GemmBatch { shape: product, count: 1, scale, operands: &|_| operands };
                gemm::compute_batch_with(micro, &batch, MatrixMut::dense(products, product.m, product.n), &alone)?;
                for filter in 0..count {
                    let products = &products[filter * taps * product.n..][..taps * product.n];
                    let (bias, y) = (is_first.then(|| bias_of(filter)), rows_of(filter));
                    levels::up_to_avx2(isa, Gather { shape, products, lines: &lines, first: strip.start, bias, y });
                }
                is_first = false;
            }
            for filter in 0..count {
                let y = rows_of(filter);
                if is_first {
                    y.fill(bias_of(filter));
                }
                activation::apply(activation, isa, y);
            }
        }
        Ok(())
    })
}

/// Sorts the weights of some filters of a group by the taps in depth: [tap in depth][channel][filter][tap].
fn sort(shape: &TransposedShape, of_group: &[f32], first: usize, count: usize, sorted: &mut [f32]) {
    let (depth, taps) = (shape.slices.taps, shape.taps());
    let of_channel = of_group.chunks_exact(shape.filters * depth * taps).take(shape.channels);
    for (channel, weights) in of_channel.enumerate() {
        let weights = &weights[first * depth * taps..][..count * depth * taps];
        for (number, from) in weights.chunks_exact(taps).enumerate() {
            let (filter, tap) = (number / depth, number % depth);
            let to = ((tap * shape.channels + channel) * count + filter) * taps;
            sorted[to..to + taps].copy_from_slice(from);
        }
    }
}

/// Rows of a channel of the output, from `first` on: the bias, and the products of some lines of x that fall into them,
/// added tap by tap. Without a bias they are added to what is there.
struct Gather<'a> {
    shape: &'a TransposedShape,
    products: &'a [f32],
    lines: &'a Range<usize>,
    first: usize,
    bias: Option<f32>,
    y: &'a mut [f32],
}

impl LevelLoop for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Gather { shape: &TransposedShape { rows, columns, .. }, products, lines, bias, .. } = self;
        let (width, stride, taps) = (columns.output, columns.stride, columns.taps);
        let (adds, bias) = (bias.is_none(), bias.unwrap_or(0.0));
        for (row, y) in (self.first..).zip(self.y.chunks_exact_mut(columns.input)) {
            let mut is_empty = !adds;
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
