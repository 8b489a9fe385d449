//! Convolution of 3 x 3 windows by Winograd's F(2 x 2, 3 x 3): each 2 x 2 elements of the output from a tile of 4 x 4
//! of the input, with 16 products for each channel where the definition has 36 (Lavin and Gray, "Fast Algorithms for
//! Convolutional Neural Networks", 2015).
//!
//! ```text
//! V = Bt d B      of each tile d of each channel
//! U = G g Gt      of the weights g of each filter and channel, once if they never change
//! M = sum over the channels of U * V, for each of the 16 places: products of matrices (`tile`)
//! y = At M A      the output
//! ```
//!
//! A strip holds the rows under some rows of tiles. Neighbouring tiles are transformed a register at a time, which
//! takes every second element of a row, and of what follows the first two. A piece of the region is some rows of tiles,
//! some filters of them. It goes from place to place: the tiles and the weights of one place, and the sums of all, are
//! in the L2 cache. Tiles whose sums are in registers at once lie together, channel after channel.
//!
//! The chains of additions are shorter than those of the definition, and so is the error. An infinity or a NaN in a
//! tile may make all four elements of its output NaN, also those whose windows do not reach it.
//!
//! Determinism: tiles begin at even rows and columns of the output; an element depends on its tile alone.

use super::super::activation;
use super::super::caches::Caches;
use super::super::held::HeldPanels;
use super::super::isa::Isa;
use super::super::site::{MatrixMut, Site, check_scratch};
use super::super::strip::{PieceRows, Strip};
use super::super::window::Axis;
use super::filters::{self, PackedFilters};
use super::output::OutputRegion;
use super::shape::{ConvRegion, ConvShape, Data};
use super::tile::{FilterRegisters, NextWeights, Tile};
use super::transform::{
    BEHIND, BEHIND_ROWS, OutputOfPiece, PLACES, TAPS, TileGroups, TilesOfChannel, transform_weights,
};
use crate::base::Result;
use crate::threadpool::{MAX_SLOTS, Span};
use std::ops::Range;

/// Tiles of a piece, at least and at most, but for the shape of the output.
const FEW_TILES: usize = 16;
const MANY_TILES: usize = 64;
/// Filters of a piece at least, and enough pieces for any pool.
const FILTERS: usize = 32;
const ENOUGH: usize = 16;

/// Transformed weights of a filter.
pub fn depth(conv: &ConvShape) -> usize {
    PLACES * conv.channels
}

/// The transformed weights of all groups.
pub fn packed(isa: Isa, conv: &ConvShape, weights: &[f32]) -> Result<PackedFilters> {
    let lanes = FilterRegisters::of(isa).lanes;
    let plain = PackedFilters::new(isa, lanes, conv.groups, conv.filters, weights)?;
    PackedFilters::of_blocks(lanes, conv.groups, conv.filters, depth(conv), |group, block, to| {
        // SAFETY: the level is supported; a block has the weights of all channels.
        unsafe { transform_weights(isa, plain.at(group, block, 0), conv.channels, to.as_mut_ptr()) }
    })
}

/// How a convolution is divided.
#[derive(Clone, Copy, Debug)]
pub struct WinogradDivision {
    strip: Strip,
    /// Rows of tiles, and tiles of each.
    height: usize,
    width: usize,
    /// Tiles of a row in a piece, at most.
    columns: usize,
    /// Rows of tiles in a piece, at most, and in an item of the region: few filters are divided by rows alone.
    rows: usize,
    unit: usize,
    /// Tiles, and blocks of filters, whose sums are in registers at once.
    at_once: usize,
    blocks: usize,
    /// Channels whose weights for these filters stay in the L1 cache.
    stretch: usize,
    /// Filters of a piece, whole blocks.
    filters: usize,
    /// Filters whose sums stay in the L2 cache until those of all places are there.
    together: usize,
}

impl WinogradDivision {
    pub fn new(isa: Isa, caches: &Caches, conv: &ConvShape) -> WinogradDivision {
        let registers = FilterRegisters::of(isa);
        let (height, width) = (conv.rows.output.div_ceil(2), conv.columns.output.div_ceil(2));
        // A place's tiles of all channels are read once for each few filters: a quarter of the L2 cache.
        let most = (caches.floats_of_l2(4) / conv.channels).clamp(FEW_TILES, MANY_TILES);
        let columns = evenly(width, most);
        let rows = evenly(height, (most / columns).clamp(1, height));
        // Four rows for each row of tiles, and all elements of a row.
        let down = Axis { output: height, taps: 4, stride: 2, ..conv.rows };
        let across = Axis { output: 2 * width + 2, taps: 1, ..conv.columns };
        let strip = Strip::new(down, across, rows, 2 * columns + 2);
        let pieces = height.div_ceil(rows) * width.div_ceil(columns) * conv.regions();
        let parts = ENOUGH.div_ceil(pieces.max(1)).min(conv.filters.div_ceil(FILTERS));
        let filters = conv.filters.div_ceil(parts).next_multiple_of(registers.lanes);
        let enough = height.div_ceil(ENOUGH.div_ceil(conv.regions().max(1)));
        let unit = if parts == 1 { enough.max(FEW_TILES / 2 / columns).clamp(1, rows) } else { rows };
        let (blocks, at_once) = registers.tile(rows * columns, filters / registers.lanes);
        let at_once_filters = blocks * registers.lanes;
        // The weights that are transformed once are read once for each piece, the tiles once for these filters: if
        // there are about as many of both, the least is read in all.
        let together = caches.floats_of_l2(2) / (PLACES * rows * columns);
        WinogradDivision {
            strip,
            height,
            width,
            columns,
            rows,
            unit,
            at_once,
            blocks,
            stretch: evenly(conv.channels, (caches.floats_of_l1(2) / at_once_filters).max(1)),
            filters,
            together: (together / at_once_filters).max(1) * at_once_filters,
        }
    }

    /// Floats of the transformed tiles of one place.
    fn place(&self, conv: &ConvShape) -> usize {
        let tiles = self.rows * self.columns;
        (tiles * conv.channels + tiles.div_ceil(self.at_once) * BEHIND).next_multiple_of(16)
    }

    /// Floats of a slot's scratch memory: a strip of one channel and its transformed tiles, those of all channels,
    /// sums, the output, the first values of sums, and weights that are transformed during the call: packed, and
    /// transformed.
    fn floats(&self, isa: Isa, conv: &ConvShape) -> [usize; 8] {
        let tiles = self.rows * self.columns;
        let width = self.blocks * FilterRegisters::of(isa).lanes;
        let together = self.together.min(conv.filters.next_multiple_of(width));
        let sizes = [
            self.strip.floats(1) + BEHIND_ROWS,
            PLACES * (tiles + BEHIND),
            PLACES * self.place(conv),
            PLACES * tiles * together,
            4 * tiles * width,
            width,
            TAPS * conv.channels * width,
            PLACES * conv.channels * width,
        ];
        sizes.map(|size| size.next_multiple_of(16))
    }

    pub fn scratch_bytes(&self, isa: Isa, conv: &ConvShape) -> usize {
        self.floats(isa, conv).iter().sum::<usize>() * size_of::<f32>()
    }
}

/// The size of parts of about the same size, at most `most`.
fn evenly(all: usize, most: usize) -> usize {
    all.div_ceil(all.div_ceil(most).max(1))
}

pub fn compute(
    isa: Isa,
    caches: &Caches,
    conv: &ConvShape,
    data: &Data<'_>,
    out: MatrixMut<'_, f32>,
    site: &dyn Site,
) -> Result<()> {
    isa.assert_detected();
    let division = WinogradDivision::new(isa, caches, conv);
    let (down, across) = (division.height.div_ceil(division.unit), division.width.div_ceil(division.columns));
    let parts = conv.filters.div_ceil(division.filters);
    let items = conv.regions() * down * across * parts;
    // Items of a piece: the last one of an image may be smaller.
    let most = if division.rows == division.height { down } else { division.rows / division.unit };
    check_scratch(site, division.scratch_bytes(isa, conv));
    let cost_ns = conv.cost_ns() as f32 / items as f32;
    let held = [const { HeldPanels::new() }; MAX_SLOTS];
    site.parallel_for(&Span { items, cost_ns, ..Span::default() }, &|claim| {
        // SAFETY: the slot's scratch memory has the floats that `scratch_bytes` says, initialised, and exclusive to
        // this claim.
        let mut scratch = unsafe { WinogradScratch::new(isa, &division, conv, site.scratch(claim.slot()).cast()) };
        let mut item = claim.begin();
        while item < claim.end() {
            let (region, part) = (item / parts, item % parts);
            let (number, column, unit) = (region / (across * down), region / down % across, region % down);
            // Filters, or rows, that follow one another are computed together.
            let left = claim.end() - item;
            let (filters, units) = match parts {
                1 => (1, evenly((down - unit).min(left), most)),
                _ => ((parts - part).min(left), 1),
            };
            let (row, column) = (unit * division.unit, column * division.columns);
            let of = ConvRegion::new(conv, data, number);
            let piece = WinogradPiece {
                isa,
                conv,
                division: &division,
                of,
                packed: data.packed.map(|packed| (packed, of.group)),
                rows: row..(row + units * division.unit).min(division.height),
                columns: column..(column + division.columns).min(division.width),
                out: out.data().wrapping_add(of.out),
            };
            if !held[claim.slot()].replace(Some(region)) {
                piece.transform(&mut scratch);
            }
            let of = part * division.filters..((part + filters) * division.filters).min(conv.filters);
            // SAFETY: the level is supported, and these elements of the output are claimed.
            unsafe { piece.compute(of, &mut scratch) };
            item += filters * units;
        }
        Ok(())
    })
}

/// The parts of a slot's scratch memory.
struct WinogradScratch<'a> {
    strip: &'a mut [f32],
    channel: &'a mut [f32],
    tiles: &'a mut [f32],
    sums: &'a mut [f32],
    output: &'a mut [f32],
    zeros: &'a mut [f32],
    plain: &'a mut [f32],
    weights: &'a mut [f32],
}

impl<'a> WinogradScratch<'a> {
    /// # Safety
    /// `memory` has the floats of `WinogradDivision::floats`, initialised, exclusive during 'a.
    unsafe fn new(isa: Isa, division: &WinogradDivision, conv: &ConvShape, memory: *mut f32) -> WinogradScratch<'a> {
        let sizes = division.floats(isa, conv);
        let begins: [usize; 8] = std::array::from_fn(|i| sizes[..i].iter().sum());
        // SAFETY: as demanded of the caller; the parts follow one another.
        let part = |i: usize| unsafe { std::slice::from_raw_parts_mut(memory.add(begins[i]), sizes[i]) };
        part(5).fill(0.0);
        WinogradScratch {
            strip: part(0),
            channel: part(1),
            tiles: part(2),
            sums: part(3),
            output: part(4),
            zeros: part(5),
            plain: part(6),
            weights: part(7),
        }
    }
}

/// Some tiles of an image and a group.
struct WinogradPiece<'a> {
    isa: Isa,
    conv: &'a ConvShape,
    division: &'a WinogradDivision,
    of: ConvRegion<'a>,
    /// Transformed weights, and the group's number in them.
    packed: Option<(&'a PackedFilters, usize)>,
    rows: Range<usize>,
    columns: Range<usize>,
    /// The first channel of the group in the output.
    out: *mut f32,
}

/// The transformed weights of the filters whose sums are in registers at once.
struct FilterWeights {
    blocks: usize,
    data: *const f32,
    /// Floats from one block to the next.
    block_step: usize,
    /// Those of the next place that is multiplied.
    next: *const f32,
}

impl WinogradPiece<'_> {
    fn tiles(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// The groups of tiles that are read at once, of about the same size.
    fn groups(&self) -> TileGroups {
        TileGroups { tiles: self.tiles(), count: self.tiles().div_ceil(self.division.at_once) }
    }

    /// Transforms the tiles of all channels.
    fn transform(&self, scratch: &mut WinogradScratch<'_>) {
        let (conv, layout) = (self.conv, &self.division.strip);
        for channel in 0..conv.channels {
            let rows = PieceRows::run(self.rows.clone());
            match self.of.plane(conv, channel) {
                Some(plane) => layout.fill(self.isa, plane, rows, 2 * self.columns.start, Some(0.0), scratch.strip),
                None => scratch.strip.fill(0.0),
            }
            let tiles = TilesOfChannel {
                x: scratch.strip.as_ptr(),
                row: layout.step() / 2,
                rows: self.rows.len(),
                columns: self.columns.len(),
                at: scratch.channel.as_mut_ptr(),
                at_place: self.tiles() + BEHIND,
                groups: self.groups(),
                number: (channel, conv.channels),
                to: scratch.tiles.as_mut_ptr(),
                to_place: self.division.place(conv),
            };
            // SAFETY: the level is supported; the strip was filled, and there is room for all transformed tiles.
            unsafe { tiles.transform(self.isa) };
        }
    }

    /// # Safety
    /// The level is supported, and nobody else writes these elements of the output.
    unsafe fn compute(&self, filters: Range<usize>, scratch: &mut WinogradScratch<'_>) {
        let lanes = FilterRegisters::of(self.isa).lanes;
        let width = self.division.blocks * lanes;
        // Weights that are transformed during the call are those of the filters that are at once in registers.
        let together = if self.packed.is_some() { self.division.together } else { width };
        for first in filters.clone().step_by(together) {
            let part = first..filters.end.min(first + together);
            let chunk = PLACES * self.tiles() * width;
            let at_once = |filter: usize| filter..part.end.min(filter + width);
            match self.packed {
                Some((packed, group)) => {
                    for place in 0..PLACES {
                        for (filter, sums) in part.clone().step_by(width).zip(scratch.sums.chunks_exact_mut(chunk)) {
                            let of = at_once(filter);
                            let at = |filter: usize, place: usize| {
                                packed.at(group, filter / lanes, place * self.conv.channels)
                            };
                            let weights = FilterWeights {
                                blocks: of.len().div_ceil(lanes),
                                data: at(filter, 0),
                                block_step: packed.block(),
                                next: match (of.end < part.end, place + 1 < PLACES) {
                                    (true, _) => at(of.end, place),
                                    (false, true) => at(part.start, place + 1),
                                    (false, false) => {
                                        at(filter, 0).wrapping_add(of.len().div_ceil(lanes) * packed.block())
                                    }
                                },
                            };
                            // SAFETY: the tiles were transformed; there are these weights and sums.
                            unsafe { self.multiply(place, &weights, scratch.tiles, scratch.zeros, sums) };
                        }
                    }
                }
                None => {
                    let weights = self.transform_weights(at_once(first), scratch);
                    for place in 0..PLACES {
                        // SAFETY: likewise.
                        unsafe { self.multiply(place, &weights, scratch.tiles, scratch.zeros, scratch.sums) };
                    }
                }
            }
            for (number, filter) in part.clone().step_by(width).enumerate() {
                // SAFETY: as demanded of the caller; the sums of all places are there.
                unsafe { self.finish(at_once(filter), number * chunk, scratch) };
            }
        }
    }

    /// The sums of one place, of all tiles and a few filters.
    ///
    /// # Safety
    /// The level is supported, the tiles of all channels were transformed, and there are weights of so many blocks for
    /// all places and channels, and sums of all places and tiles.
    unsafe fn multiply(&self, place: usize, weights: &FilterWeights, tiles: &[f32], zeros: &[f32], sums: &mut [f32]) {
        let FilterWeights { blocks, data, block_step, next } = *weights;
        let lanes = FilterRegisters::of(self.isa).lanes;
        let channels = self.conv.channels;
        for from in (0..channels).step_by(self.division.stretch) {
            let stretch = self.division.stretch.min(channels - from);
            let data = data.wrapping_add((place * channels + from) * lanes);
            let next = if from + stretch < channels { data.wrapping_add(stretch * lanes) } else { next };
            for (group, of) in self.groups().numbered() {
                let at = (place * self.tiles() + of.start) * blocks * lanes;
                let x = place * self.division.place(self.conv) + of.start * channels + group * BEHIND;
                let tile = Tile {
                    x: tiles[x + from * of.len()..].as_ptr(),
                    channel: of.len(),
                    taps: &[0],
                    channels: stretch,
                    weights: data,
                    block_step,
                    next: NextWeights::of_part(next, lanes, stretch, (group, self.groups().count)),
                    first: (from == 0).then_some(zeros.as_ptr()),
                    sums: sums[at..at + of.len() * blocks * lanes].as_mut_ptr(),
                };
                // SAFETY: as demanded of the caller.
                unsafe { tile.compute(self.isa, blocks, of.len()) };
            }
        }
    }

    /// Transforms the sums of a few filters, which begin at `sums`, into the output.
    ///
    /// # Safety
    /// As `compute`; the sums of all places are there.
    unsafe fn finish(&self, filters: Range<usize>, sums: usize, scratch: &mut WinogradScratch<'_>) {
        let (conv, lanes) = (self.conv, FilterRegisters::of(self.isa).lanes);
        let (count, blocks) = (filters.len(), filters.len().div_ceil(lanes));
        let rows = 2 * self.rows.start..(2 * self.rows.end).min(conv.rows.output);
        let columns = 2 * self.columns.start..(2 * self.columns.end).min(conv.columns.output);
        let output = OutputOfPiece {
            sums: scratch.sums[sums..].as_ptr(),
            tiles: (self.rows.len(), self.columns.len()),
            blocks,
            rows: rows.len(),
            columns: columns.len(),
            to: scratch.output.as_mut_ptr(),
        };
        let bias = self.of.bias.map(|bias| &bias[filters.clone()]);
        scratch.zeros[..count].copy_from_slice(bias.unwrap_or(&[0.0; 64][..count]));
        // SAFETY: the level is supported; all sums are there, the output has four elements for each tile, and there
        // is a first value for each filter.
        unsafe { output.transform(self.isa, scratch.zeros.as_ptr()) };
        scratch.zeros[..count].fill(0.0);
        let windows = &mut scratch.output[..rows.len() * columns.len() * blocks * lanes];
        if self.of.addend.is_none() {
            activation::apply(conv.activation, self.isa, windows);
        }
        let region = OutputRegion {
            data: self.out.wrapping_add(filters.start * conv.channel_step()),
            plane: conv.channel_step(),
            line: conv.columns.output,
            rows: PieceRows::run(rows),
            columns,
        };
        // SAFETY: as demanded of the caller.
        unsafe {
            region.store(self.isa, windows, blocks * lanes, count);
            if let Some(addend) = self.of.addend {
                region.finish(self.isa, &addend[filters.start * conv.channel_step()..], conv.activation, count);
            }
        }
    }

    /// Transforms the weights of some filters during the call.
    fn transform_weights(&self, filters: Range<usize>, scratch: &mut WinogradScratch<'_>) -> FilterWeights {
        let lanes = FilterRegisters::of(self.isa).lanes;
        let (depth, channels) = (self.conv.depth(), self.conv.channels);
        let rows = &self.of.weights[filters.start * depth..filters.end * depth];
        filters::pack(self.isa, lanes, rows, depth, 0..depth, scratch.plain);
        let plain = scratch.plain.chunks_exact(depth * lanes);
        let blocks = filters.len().div_ceil(lanes);
        for (to, from) in scratch.weights.chunks_exact_mut(PLACES * channels * lanes).zip(plain).take(blocks) {
            // SAFETY: the level is supported; both are blocks of all channels.
            unsafe { transform_weights(self.isa, from.as_ptr(), channels, to.as_mut_ptr()) };
        }
        let data = scratch.weights.as_ptr();
        FilterWeights { blocks, data, block_step: PLACES * channels * lanes, next: data }
    }
}
