//! Sampling of images at places of a grid.
//!
//! A piece is some points of an image. The elements that each point is made of, and their weights, are found once, in
//! the slot's scratch memory, tap by tap; then each channel is gathered. An element is the sum of its taps, row by row.

use super::site::{MatrixMut, Site, check_scratch};
use crate::base::Result;
use crate::ops::weir_grid_sample_edge_value::{self as Edge, *};
use crate::ops::weir_resize_mode_value::{self as Mode, *};
use crate::threadpool::Span;

/// Points of a piece.
const POINTS: usize = 128;
/// Most taps along an axis, and of a point.
const ALONG: usize = 4;
const TAPS: usize = ALONG * ALONG;
/// Time to find a tap, and to add its element.
const FIND_NS: f32 = 3.0;
const ADD_NS: f32 = 0.7;
/// Coefficient of the cubic convolution.
const CUBIC: f32 = -0.75;
/// Places farther away are outside like this one.
const FAR: f32 = 1e9;

/// Sizes and settings.
#[derive(Clone, Copy, Debug)]
pub struct GridShape {
    pub images: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    /// Of an image of the output.
    pub points: usize,
    pub mode: Mode,
    pub edge: Edge,
    pub align_corners: bool,
}

/// The taps of a point along an axis: indices, -1 where there is 0, and weights.
#[derive(Clone, Copy)]
struct AxisTaps {
    places: [i32; ALONG],
    weights: [f32; ALONG],
}

/// Mirrors a place at two others until it lies between them.
fn reflected(place: f32, low: f32, high: f32) -> f32 {
    let range = high - low;
    if range <= 0.0 {
        return low;
    }
    let beyond = if place < low { low - place } else { place - high };
    if beyond <= 0.0 {
        return place;
    }
    let times = (beyond / range).trunc();
    let rest = beyond - times * range;
    // After an even number of mirrors it comes back from the edge that it left by.
    if (place < low) == (times % 2.0 == 0.0) { low + rest } else { high - rest }
}

impl GridShape {
    fn taps_along(&self) -> usize {
        match self.mode {
            WEIR_RESIZE_NEAREST => 1,
            WEIR_RESIZE_LINEAR => 2,
            WEIR_RESIZE_CUBIC => 4,
        }
    }

    /// Scratch memory per slot, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        TAPS * POINTS * (size_of::<i32>() + size_of::<f32>())
    }

    fn point_ns(&self) -> f32 {
        let taps = (self.taps_along() * self.taps_along()) as f32;
        taps * (FIND_NS + ADD_NS * self.channels as f32)
    }

    /// Estimated time on one thread.
    pub fn cost_ns(&self) -> u64 {
        (self.point_ns() * (self.images * self.points) as f32) as u64
    }

    /// The place that the edge gives for a place of an axis of `len` elements.
    fn moved(&self, place: f32, len: usize) -> f32 {
        let last = (len - 1) as f32;
        match self.edge {
            WEIR_GRID_SAMPLE_ZEROS => place,
            WEIR_GRID_SAMPLE_BORDER => place.clamp(0.0, last),
            WEIR_GRID_SAMPLE_REFLECTION if self.align_corners => reflected(place, 0.0, last),
            WEIR_GRID_SAMPLE_REFLECTION => reflected(place, -0.5, last + 0.5),
        }
    }

    /// The index of an element, or -1 for a 0.
    fn element(&self, place: f32, len: usize) -> i32 {
        let last = (len - 1) as f32;
        if (0.0..=last).contains(&place) {
            return place as i32;
        }
        match self.edge {
            WEIR_GRID_SAMPLE_ZEROS => -1,
            _ => self.moved(place, len).clamp(0.0, last) as i32,
        }
    }

    /// The taps along an axis of `len` elements for a number of the grid.
    fn along(&self, at: f32, len: usize) -> AxisTaps {
        let at = if at.is_nan() { -1.0 } else { at.clamp(-FAR, FAR) };
        let place = match self.align_corners {
            true => (at + 1.0) / 2.0 * (len - 1) as f32,
            false => ((at + 1.0) * len as f32 - 1.0) / 2.0,
        };
        let place = place.clamp(-FAR, FAR);
        let place = if self.mode == WEIR_RESIZE_NEAREST { place.round_ties_even() } else { place };
        let place = self.moved(place, len);
        let first = if self.mode == WEIR_RESIZE_NEAREST { place } else { place.floor() };
        let rest = place - first;
        let (before, weights) = match self.mode {
            WEIR_RESIZE_NEAREST => (0.0, [1.0, 0.0, 0.0, 0.0]),
            WEIR_RESIZE_LINEAR => (0.0, [1.0 - rest, rest, 0.0, 0.0]),
            WEIR_RESIZE_CUBIC => {
                let far = |x: f32| ((CUBIC * x - 5.0 * CUBIC) * x + 8.0 * CUBIC) * x - 4.0 * CUBIC;
                let near = |x: f32| ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0;
                (1.0, [far(rest + 1.0), near(rest), near(1.0 - rest), far(2.0 - rest)])
            }
        };
        let place = |tap: usize| self.element(first - before + tap as f32, len);
        AxisTaps { places: [place(0), place(1), place(2), place(3)], weights }
    }

    /// Computes [images * channels, points] in a region of `site`, which has `scratch_bytes` per slot.
    pub fn compute(&self, x: &[f32], grid: &[f32], y: MatrixMut<'_, f32>, site: &dyn Site) -> Result<()> {
        let GridShape { images, channels, height, width, points, .. } = *self;
        let plane = height * width;
        assert!(x.len() == images * channels * plane && grid.len() == images * points * 2, "{self:?}");
        assert!(y.holds(images * channels, points) && plane > 0 && plane <= i32::MAX as usize, "{self:?}");
        check_scratch(site, self.scratch_bytes());
        let (blocks, along) = (points.div_ceil(POINTS), self.taps_along());
        let taps = along * along;
        let span = Span { items: images * blocks, cost_ns: self.point_ns() * POINTS as f32, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            let memory = site.scratch(claim.slot());
            // SAFETY: the slot's scratch memory, which is initialised: places, then weights.
            let (places, weights) = unsafe {
                (
                    std::slice::from_raw_parts_mut(memory.cast::<i32>(), TAPS * POINTS),
                    std::slice::from_raw_parts_mut(memory.cast::<f32>().add(TAPS * POINTS), TAPS * POINTS),
                )
            };
            for item in claim.begin()..claim.end() {
                let (image, first) = (item / blocks, item % blocks * POINTS);
                let count = POINTS.min(points - first);
                let grid = &grid[(image * points + first) * 2..][..count * 2];
                for (i, at) in grid.chunks_exact(2).enumerate() {
                    let (across, down) = (self.along(at[0], width), self.along(at[1], height));
                    for tap in 0..taps {
                        let (row, column) = (tap / along, tap % along);
                        let (of_row, of_column) = (down.places[row], across.places[column]);
                        let inside = of_row >= 0 && of_column >= 0;
                        places[tap * POINTS + i] = if inside { of_row * width as i32 + of_column } else { -1 };
                        weights[tap * POINTS + i] = down.weights[row] * across.weights[column];
                    }
                }
                for channel in 0..channels {
                    let number = image * channels + channel;
                    let x = &x[number * plane..][..plane];
                    let to = y.data().wrapping_add(number * points + first);
                    // SAFETY: the piece's points of a channel, inside of the output.
                    let y = unsafe { std::slice::from_raw_parts_mut(to, count) };
                    for tap in 0..taps {
                        let at = tap * POINTS..tap * POINTS + count;
                        for ((y, &place), weight) in y.iter_mut().zip(&places[at.clone()]).zip(&weights[at]) {
                            let element = if place < 0 { 0.0 } else { x[place as usize] };
                            *y = if tap == 0 { element * weight } else { *y + element * weight };
                        }
                    }
                }
            }
            Ok(())
        })
    }
}
