//! Direct convolution: registers along the filters (`tile`), over a strip of the image (`strip`). So neither the width
//! of an image nor the stride leaves lanes idle, and nothing is gathered.
//!
//! A piece of the region is a few rows of the output, some filters of them. Its sums lie in scratch memory,
//! `[window][filter]`, until they are complete; then they are turned into rows of the output.
//!
//! Determinism: an element is the chain bias + x * weight over channels and taps in order.

use super::super::activation;
use super::super::caches::Caches;
use super::super::held::HeldPanels;
use super::super::isa::Isa;
use super::super::site::{MatrixMut, Site, check_scratch};
use super::super::strip::{PieceRows, Strip, copy};
use super::filters::PackedFilters;
use super::output::OutputRegion;
use super::shape::{ConvRegion, ConvShape, Data};
use super::tile::{FilterRegisters, NextWeights, Tile};
use crate::base::Result;
use crate::threadpool::{MAX_SLOTS, Span};
use std::ops::Range;

/// Windows of a piece.
const WINDOWS: usize = 256;
/// Filters of a piece at least.
const FILTERS: usize = 32;
/// Places whose products are worth loading and storing the sums.
const LONG: usize = 192;
/// Enough pieces for any pool.
const ENOUGH: usize = 16;

/// How a convolution is divided.
#[derive(Clone, Copy, Debug)]
pub struct DirectDivision {
    strip: Strip,
    /// Windows of a row of the output.
    width: usize,
    /// Filters of a piece, whole blocks.
    filters: usize,
    /// Channels of a stretch.
    stretch: usize,
    /// Filters at once, at most.
    at_once: usize,
    /// Whether windows are of one element, so that a tile may go from one row to the next, and the windows of a tile.
    is_flat: bool,
    panel: usize,
}

impl DirectDivision {
    pub fn new(isa: Isa, caches: &Caches, conv: &ConvShape) -> DirectDivision {
        let registers = FilterRegisters::of(isa);
        let (down, across) = conv.axes();
        // The strip of a piece, unless one row has more.
        let strip = Strip::of_piece(down, across, conv.channels, WINDOWS, caches.floats_of_l2(2));
        let strips = conv.regions() * strip.pieces();
        let parts = ENOUGH.div_ceil(strips.max(1)).min(conv.filters.div_ceil(FILTERS));
        let filters = conv.filters.div_ceil(parts).next_multiple_of(registers.lanes);
        let at_once = registers.windows.len() * registers.lanes;
        let taps = conv.rows.taps * conv.columns.taps;
        let is_flat = conv.is_of_points() && (strip.rows == 1 || strip.columns == across.output);
        // The weights of a stretch of channels, which a tile reads for all windows of a piece: in the L1 cache, if that
        // is enough for long sums, and if elements of several windows come from a strip.
        let near = caches.floats_of_l1(2) / at_once;
        let places = if near >= LONG && !is_flat { near } else { caches.floats_of_l2(4) / at_once };
        let stretch = (places / taps).clamp(1, conv.channels);
        DirectDivision {
            strip,
            width: across.output,
            filters,
            // Stretches of about the same length.
            stretch: conv.channels.div_ceil(conv.channels.div_ceil(stretch)),
            at_once: at_once.min(filters),
            is_flat,
            panel: registers.tile(strip.rows * strip.columns, filters / registers.lanes).1,
        }
    }

    /// Floats of a slot's scratch memory: the places of the taps, a strip, sums, their first values, and weights that
    /// are packed during the call.
    fn floats(&self, conv: &ConvShape) -> [usize; 5] {
        let taps = conv.rows.taps * conv.columns.taps;
        let windows = self.strip.rows * self.strip.columns;
        let sizes = [
            taps * size_of::<usize>() / size_of::<f32>(),
            match self.is_flat {
                true => conv.channels * windows,
                false => self.strip.floats(conv.channels),
            },
            (windows * self.at_once).max(self.strip.floats(1)),
            self.at_once,
            self.stretch * taps * self.at_once,
        ];
        sizes.map(|size| size.next_multiple_of(16))
    }

    pub fn scratch_bytes(&self, conv: &ConvShape) -> usize {
        self.floats(conv).iter().sum::<usize>() * size_of::<f32>()
    }
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
    let division = DirectDivision::new(isa, caches, conv);
    let parts = conv.filters.div_ceil(division.filters);
    let pieces = division.strip.pieces();
    let items = conv.regions() * pieces * parts;
    check_scratch(site, division.scratch_bytes(conv));
    let cost_ns = conv.cost_ns() as f32 / items as f32;
    let held = [const { HeldPanels::new() }; MAX_SLOTS];
    site.parallel_for(&Span { items, cost_ns, ..Span::default() }, &|claim| {
        // SAFETY: the slot's scratch memory has the floats that `scratch_bytes` says, initialised, aligned for a place,
        // and exclusive to this claim.
        let mut scratch = unsafe { DirectScratch::new(&division, conv, site.scratch(claim.slot()).cast()) };
        division.strip.taps(scratch.taps);
        for item in claim.begin()..claim.end() {
            let (region, part) = (item / parts, item % parts);
            let number = region / pieces;
            let (rows, columns) = division.strip.piece(region % pieces);
            if rows.count == 0 {
                continue;
            }
            let of = ConvRegion::new(conv, data, number);
            let piece = ConvPiece {
                isa,
                conv,
                division: &division,
                of,
                packed: data.packed.map(|packed| (packed, of.group)),
                rows,
                columns,
                out: out.data().wrapping_add(of.out),
            };
            if !held[claim.slot()].replace(Some(region)) {
                piece.fill(&mut scratch);
            }
            let filters = part * division.filters..((part + 1) * division.filters).min(conv.filters);
            // SAFETY: the processor has the instruction set, and these elements of the output are claimed.
            unsafe { piece.compute(filters, &mut scratch) };
        }
        Ok(())
    })
}

/// The parts of a slot's scratch memory.
struct DirectScratch<'a> {
    taps: &'a mut [usize],
    strip: &'a mut [f32],
    sums: &'a mut [f32],
    first: &'a mut [f32],
    weights: &'a mut [f32],
}

impl<'a> DirectScratch<'a> {
    /// # Safety
    /// `memory` has the floats of `DirectDivision::floats`, initialised, exclusive during 'a, aligned for a `usize`.
    unsafe fn new(division: &DirectDivision, conv: &ConvShape, memory: *mut f32) -> DirectScratch<'a> {
        let sizes = division.floats(conv);
        let begins: [usize; 5] = std::array::from_fn(|i| sizes[..i].iter().sum());
        // SAFETY: as demanded of the caller; the parts follow one another.
        let part = |i: usize| unsafe { std::slice::from_raw_parts_mut(memory.add(begins[i]), sizes[i]) };
        let taps = conv.rows.taps * conv.columns.taps;
        // SAFETY: likewise; any bits are a place.
        let places = unsafe { std::slice::from_raw_parts_mut(memory.cast::<usize>(), taps) };
        DirectScratch { taps: places, strip: part(1), sums: part(2), first: part(3), weights: part(4) }
    }
}

/// Some windows of an image and a group.
struct ConvPiece<'a> {
    isa: Isa,
    conv: &'a ConvShape,
    division: &'a DirectDivision,
    of: ConvRegion<'a>,
    /// Packed weights, and the group's number in them.
    packed: Option<(&'a PackedFilters, usize)>,
    rows: PieceRows,
    columns: Range<usize>,
    /// The first channel of the group in the output.
    out: *mut f32,
}

impl ConvPiece<'_> {
    fn fill(&self, scratch: &mut DirectScratch<'_>) {
        let layout = &self.division.strip;
        for channel in 0..self.conv.channels {
            let plane = self.of.plane(self.conv, channel);
            if let Some(plane) = plane.filter(|_| self.conv.is_plain()) {
                self.fill_panels(channel, &plane[self.columns.clone()], scratch.strip);
                continue;
            }
            let to = match self.division.is_flat {
                // The strip of a channel, where there are no sums yet: all windows, one after the other.
                true => &mut *scratch.sums,
                false => &mut scratch.strip[channel * layout.channel()..],
            };
            match plane {
                Some(plane) => layout.fill(self.isa, plane, self.rows, self.columns.start, Some(0.0), to),
                None => to[..layout.channel()].fill(0.0),
            }
            if self.division.is_flat {
                self.fill_panels(channel, &scratch.sums[..self.rows.count * self.columns.len()], scratch.strip);
            }
        }
    }

    /// Windows of one element need no strip, but what a tile reads lies together: `[tile][channel][window]`.
    fn fill_panels(&self, channel: usize, x: &[f32], panels: &mut [f32]) {
        let channels = self.conv.channels;
        for tile in self.tiles(self.division.panel) {
            let to = &mut panels[tile.start * channels + channel * tile.len()..][..tile.len()];
            match tile.len() {
                0..4 => to.copy_from_slice(&x[tile]),
                4..8 => copy::<4>(&x[tile], to),
                _ => copy::<8>(&x[tile], to),
            }
        }
    }

    /// Rows of windows whose tiles are apart, and windows of each.
    fn rows_of_tiles(&self) -> (usize, usize) {
        match self.division.is_flat {
            true => (1, self.rows.count * self.columns.len()),
            false => (self.rows.count, self.columns.len()),
        }
    }

    /// The windows of a row, in tiles of about the same size.
    fn tiles(&self, most: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let columns = self.rows_of_tiles().1;
        let tiles = columns.div_ceil(most);
        (0..tiles).map(move |tile| tile * columns / tiles..(tile + 1) * columns / tiles)
    }

    /// # Safety
    /// The processor has the instruction set, and nobody else writes these elements of the output.
    unsafe fn compute(&self, filters: Range<usize>, scratch: &mut DirectScratch<'_>) {
        let FilterRegisters { lanes, .. } = FilterRegisters::of(self.isa);
        let (conv, division) = (self.conv, self.division);
        let taps = conv.rows.taps * conv.columns.taps;
        let (rows, columns) = self.rows_of_tiles();
        let mut filter = filters.start;
        while filter < filters.end {
            let left = (filters.end - filter).div_ceil(lanes);
            let (blocks, at_once) = match division.is_flat {
                true => (left.min(2), division.panel),
                false => FilterRegisters::of(self.isa).tile(columns, left),
            };
            let (count, width) = ((filters.end - filter).min(blocks * lanes), blocks * lanes);
            scratch.first.fill(0.0);
            if let Some(bias) = self.of.bias {
                scratch.first[..count].copy_from_slice(&bias[filter..filter + count]);
            }
            for from in (0..conv.channels).step_by(division.stretch) {
                let channels = division.stretch.min(conv.channels - from);
                let (weights, block_step, next) = match self.packed {
                    Some((packed, group)) => {
                        let weights = packed.at(group, filter / lanes, from * taps);
                        // Those of the next channels, or of the next filters.
                        let next = match from + channels < conv.channels {
                            true => packed.at(group, filter / lanes, (from + channels) * taps),
                            false => packed.at(group, filter / lanes, 0).wrapping_add(blocks * packed.block()),
                        };
                        (weights, packed.block(), next)
                    }
                    None => {
                        let depth = channels * taps;
                        let rows = &self.of.weights[filter * conv.depth()..(filter + count) * conv.depth()];
                        let stretch = from * taps..from * taps + depth;
                        super::filters::pack(self.isa, lanes, rows, conv.depth(), stretch, scratch.weights);
                        let weights = scratch.weights.as_ptr();
                        (weights, depth * lanes, weights)
                    }
                };
                let tiles = self.tiles(at_once).count();
                for row in 0..rows {
                    for (number, tile) in self.tiles(at_once).enumerate() {
                        let Range { start: begin, end } = tile;
                        let part = (row * tiles + number, rows * tiles);
                        let sums = (row * columns + begin) * width;
                        let (channel, x) = match division.is_flat {
                            true => (end - begin, begin * conv.channels),
                            false => (division.strip.channel(), row * division.strip.step() + begin),
                        };
                        let tile = Tile {
                            x: scratch.strip[from * channel + x..].as_ptr(),
                            channel,
                            taps: scratch.taps,
                            channels,
                            weights,
                            block_step,
                            next: NextWeights::of_part(next, lanes, channels * taps, part),
                            first: (from == 0).then_some(scratch.first.as_ptr()),
                            sums: scratch.sums[sums..sums + (end - begin) * width].as_mut_ptr(),
                        };
                        // SAFETY: there are all elements under the windows; there are weights of so many blocks
                        // for these channels, and sums of so many windows.
                        unsafe { tile.compute(self.isa, blocks, end - begin) };
                    }
                }
            }
            let sums = &mut scratch.sums[..rows * columns * width];
            if self.of.addend.is_none() {
                activation::apply(conv.activation, self.isa, sums);
            }
            let region = OutputRegion {
                data: self.out.wrapping_add(filter * conv.channel_step()),
                plane: conv.channel_step(),
                line: division.width,
                rows: self.rows,
                columns: self.columns.clone(),
            };
            // SAFETY: as demanded of the caller.
            unsafe {
                region.store(self.isa, sums, width, count);
                if let Some(addend) = self.of.addend {
                    region.finish(self.isa, &addend[filter * conv.channel_step()..], conv.activation, count);
                }
            }
            filter += count;
        }
    }
}
