//! Convolution with short sums and long rows of the output: registers along the windows, and the micro-kernels of
//! products (`tile`). Their B, a row for each place under a window, is nowhere stored: the row of a place is the strip
//! of the image (`strip`), shifted. The sums of a tile end in registers, and are rows of the output as they are. With
//! registers along the filters they would go through memory three times, which takes as long as a short sum.
//!
//! A piece of the region is a few rows of the output, some filters of them.
//!
//! Determinism: an element is the chain x * weight over channels and taps in order, from zero, plus the bias.

use super::super::caches::Caches;
use super::super::held::HeldPanels;
use super::super::isa::Isa;
use super::super::micro::{From, MicroKernels, MicroTile, RowsAhead, Scale, Strided};
use super::super::piece::evenly;
use super::super::site::{MatrixMut, Site, check_scratch};
use super::super::strip::{PieceRows, Strip};
use super::shape::{ConvRegion, ConvShape, Data};
use crate::base::Result;
use crate::threadpool::{MAX_SLOTS, Span};
use std::ops::Range;

/// Windows of a piece.
const WINDOWS: usize = 1024;
/// Filters of a piece at least.
const FILTERS: usize = 16;
/// Enough pieces for any pool.
const ENOUGH: usize = 16;

/// How a convolution is divided.
#[derive(Clone, Copy, Debug)]
pub struct ShiftedDivision {
    strip: Strip,
    /// Filters of a piece.
    filters: usize,
}

impl ShiftedDivision {
    pub fn new(caches: &Caches, conv: &ConvShape) -> ShiftedDivision {
        let (down, across) = (conv.rows, conv.columns);
        let strip = Strip::of_piece(down, across, conv.channels, WINDOWS, caches.floats_of_l2(4));
        let strips = conv.regions() * strip.pieces();
        let parts = ENOUGH.div_ceil(strips.max(1)).min(conv.filters.div_ceil(FILTERS));
        ShiftedDivision { strip, filters: conv.filters.div_ceil(parts) }
    }

    /// Floats of a slot's scratch memory: the places of the rows, and a strip.
    fn floats(&self, conv: &ConvShape) -> [usize; 2] {
        let places = conv.depth() * size_of::<usize>() / size_of::<f32>();
        [places.next_multiple_of(16), self.strip.floats(conv.channels)]
    }

    pub fn scratch_bytes(&self, conv: &ConvShape) -> usize {
        self.floats(conv).iter().sum::<usize>() * size_of::<f32>()
    }

    /// The place of each row of B in the strip, as seen from the first window.
    fn places(&self, conv: &ConvShape, out: &mut [usize]) {
        let taps = conv.rows.taps * conv.columns.taps;
        self.strip.taps(&mut out[..taps]);
        for channel in 1..conv.channels {
            for tap in 0..taps {
                out[channel * taps + tap] = out[tap] + channel * self.strip.channel();
            }
        }
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
    let micro = MicroKernels::of(isa);
    let division = ShiftedDivision::new(caches, conv);
    let parts = conv.filters.div_ceil(division.filters);
    let pieces = division.strip.pieces();
    let items = conv.regions() * pieces * parts;
    check_scratch(site, division.scratch_bytes(conv));
    let cost_ns = conv.cost_ns() as f32 / items as f32;
    let held = [const { HeldPanels::new() }; MAX_SLOTS];
    site.parallel_for(&Span { items, cost_ns, ..Span::default() }, &|claim| {
        let memory = site.scratch(claim.slot()).cast::<f32>();
        let [of_places, of_strip] = division.floats(conv);
        // SAFETY: the slot's scratch memory has the floats that `scratch_bytes` says, initialised, aligned for a place,
        // and exclusive to this claim.
        let (places, strip) = unsafe {
            let places = std::slice::from_raw_parts_mut(memory.cast::<usize>(), conv.depth());
            (places, std::slice::from_raw_parts_mut(memory.add(of_places), of_strip))
        };
        division.places(conv, places);
        for item in claim.begin()..claim.end() {
            let (region, part) = (item / parts, item % parts);
            let number = region / pieces;
            let (rows, columns) = division.strip.piece(region % pieces);
            if rows.count == 0 {
                continue;
            }
            let of = ConvRegion::new(conv, data, number);
            let piece = ShiftedPiece {
                micro: &micro,
                conv,
                layout: &division.strip,
                of,
                rows,
                columns,
                out: out.data().wrapping_add(of.out),
            };
            if !held[claim.slot()].replace(Some(region)) {
                piece.fill(strip);
            }
            let filters = part * division.filters..((part + 1) * division.filters).min(conv.filters);
            // SAFETY: the strip was filled for these windows, and these elements of the output are claimed.
            unsafe { piece.compute(filters, strip, places) };
        }
        Ok(())
    })
}

/// Some windows of an image and a group.
struct ShiftedPiece<'a> {
    micro: &'a MicroKernels,
    conv: &'a ConvShape,
    layout: &'a Strip,
    of: ConvRegion<'a>,
    rows: PieceRows,
    columns: Range<usize>,
    /// The first channel of the group in the output.
    out: *mut f32,
}

impl ShiftedPiece<'_> {
    fn fill(&self, strip: &mut [f32]) {
        for (channel, to) in (0..self.conv.channels).zip(strip.chunks_mut(self.layout.channel())) {
            match self.of.plane(self.conv, channel) {
                Some(plane) => {
                    self.layout.fill(self.micro.isa, plane, self.rows, self.columns.start, Some(0.0), to);
                }
                None => to.fill(0.0),
            }
        }
    }

    /// # Safety
    /// The strip was filled for these windows, and nobody else writes these elements of the output.
    unsafe fn compute(&self, filters: Range<usize>, strip: &[f32], places: &[usize]) {
        let (conv, micro) = (self.conv, self.micro);
        let (depth, step) = (conv.depth(), conv.channel_step());
        let finish = self.of.epilogue(conv);
        let columns = self.columns.len();
        // Whole registers, if a row has one: the last panel begins earlier, and computes again what the one before did.
        let widest = micro.width.min(columns / micro.lanes * micro.lanes).max(micro.lanes);
        let panels = || {
            evenly(&(0..columns.next_multiple_of(micro.lanes)), widest, micro.lanes).map(|panel| {
                let begin = panel.start.min(columns.saturating_sub(panel.len()));
                begin..columns.min(begin + panel.len())
            })
        };
        let most_rows = micro.rows_of(panels().map(|panel| panel.len()).max().unwrap_or(widest));
        // The rows of the strip under a row of windows stay in the L1 cache.
        for row in 0..self.rows.count {
            let window = self.rows.at(row) * conv.columns.output + self.columns.start;
            let under = &strip[row * self.layout.step()..];
            for of_tile in evenly(&filters, most_rows, 1) {
                let weights = &self.of.weights[of_tile.start * depth..of_tile.end * depth];
                let out = self.out.wrapping_add(of_tile.start * step + window);
                for panel in panels() {
                    let a = Strided { data: weights.as_ptr(), depth: 1, across: depth };
                    let tile = MicroTile {
                        rows: of_tile.len(),
                        columns: panel.len(),
                        depth,
                        a,
                        ahead: RowsAhead::behind(a, of_tile.len()),
                        b: Strided { data: under[panel.start..].as_ptr(), depth: 0, across: 1 },
                        from: From::Places(places.as_ptr()),
                        c: out.wrapping_add(panel.start),
                        c_stride: step,
                        scale: Scale { alpha: 1.0, beta: 0.0 },
                        epilogue: finish.of_tile(of_tile.start, window + panel.start),
                    };
                    // SAFETY: there are weights of these filters, and the strip has the elements at all places of the
                    // windows, with a register behind them; the output is as demanded of the caller.
                    unsafe { micro.multiply(&tile) };
                }
                if finish.has_more() {
                    for filter in 0..of_tile.len() {
                        let run = out.wrapping_add(filter * step);
                        // SAFETY: likewise; the elements were written.
                        let run = unsafe { std::slice::from_raw_parts_mut(run, columns) };
                        finish.activate(micro.isa, run);
                    }
                }
            }
        }
    }
}
