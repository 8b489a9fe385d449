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
const FAR_IN_F64: f64 = 1e15;
/// Up to here an f32 has each element of an axis and the middle between it and the next one; the places of a longer
/// axis are f64.
const LONGEST_IN_F32: usize = 1 << 23;

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
#[derive(Clone, Copy, Debug)]
struct AxisTaps {
    places: [i32; ALONG],
    weights: [f32; ALONG],
}

/// A function that finds a number of the grid on an axis of `len` elements, moved to where the edge says: the element
/// at or before it, and how far it is behind that one.
macro_rules! found_in {
    ($name:ident, $number:ident, $far:expr) => {
        fn $name(&self, at: f32, len: usize) -> (i64, f32) {
            let (at, far, last): ($number, $number, _) = (at.into(), $far, (len - 1) as $number);
            let place = match self.align_corners {
                true => (at + 1.0) / 2.0 * last,
                false => ((at + 1.0) * len as $number - 1.0) / 2.0,
            };
            let place = place.clamp(-far, far);
            let nearest = self.mode == WEIR_RESIZE_NEAREST;
            let place = if nearest { place.round_ties_even() } else { place };
            // Mirrors a place at two others until it lies between them.
            let reflected = |low: $number, high: $number| {
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
            };
            let place = match self.edge {
                WEIR_GRID_SAMPLE_ZEROS => place,
                // All taps of a place farther out are the element at the edge.
                WEIR_GRID_SAMPLE_BORDER if self.mode == WEIR_RESIZE_CUBIC => place.clamp(-3.0, last + 3.0),
                WEIR_GRID_SAMPLE_BORDER => place.clamp(0.0, last),
                WEIR_GRID_SAMPLE_REFLECTION if self.align_corners => reflected(0.0, last),
                WEIR_GRID_SAMPLE_REFLECTION => reflected(-0.5, last + 0.5),
            };
            let first = if nearest { place.trunc() } else { place.floor() };
            (first as i64, (place - first) as f32)
        }
    };
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

    found_in!(found_in_f32, f32, FAR);
    found_in!(found_in_f64, f64, FAR_IN_F64);

    /// The element that the edge gives for a place of an axis of `len` elements, or -1 for a 0.
    fn element(&self, place: i64, len: usize) -> i32 {
        let last = len as i64 - 1;
        let place = match self.edge {
            _ if (0..=last).contains(&place) => place,
            WEIR_GRID_SAMPLE_ZEROS => -1,
            WEIR_GRID_SAMPLE_BORDER => place.clamp(0, last),
            WEIR_GRID_SAMPLE_REFLECTION => {
                let twice = if self.align_corners { 0 } else { 1 };
                // Back and forth; a single element that is the middle of both edges has no period.
                let period = 2 * (last + twice);
                let behind = if period == 0 { 0 } else { place.rem_euclid(period) };
                if behind <= last { behind } else { period - twice - behind }
            }
        };
        place as i32
    }

    /// The taps along an axis of `len` elements for a number of the grid.
    fn along(&self, at: f32, len: usize) -> AxisTaps {
        let at = if at.is_nan() { -1.0 } else { at.clamp(-FAR, FAR) };
        let (first, rest) = if len <= LONGEST_IN_F32 { self.found_in_f32(at, len) } else { self.found_in_f64(at, len) };
        let (before, weights) = match self.mode {
            WEIR_RESIZE_NEAREST => (0, [1.0, 0.0, 0.0, 0.0]),
            WEIR_RESIZE_LINEAR => (0, [1.0 - rest, rest, 0.0, 0.0]),
            WEIR_RESIZE_CUBIC => {
                let far = |x: f32| ((CUBIC * x - 5.0 * CUBIC) * x + 8.0 * CUBIC) * x - 4.0 * CUBIC;
                let near = |x: f32| ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0;
                (1, [far(rest + 1.0), near(rest), near(1.0 - rest), far(2.0 - rest)])
            }
        };
        AxisTaps { places: std::array::from_fn(|tap| self.element(first - before + tap as i64, len)), weights }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The element that a whole place is moved to, one step after the other.
    fn moved(of: &GridShape, mut place: i64, len: i64) -> i64 {
        let twice = i64::from(!of.align_corners);
        while !(0..len).contains(&place) {
            place = match of.edge {
                WEIR_GRID_SAMPLE_ZEROS => return -1,
                WEIR_GRID_SAMPLE_BORDER => place.clamp(0, len - 1),
                WEIR_GRID_SAMPLE_REFLECTION if len == 1 => 0,
                WEIR_GRID_SAMPLE_REFLECTION if place < 0 => -place - twice,
                WEIR_GRID_SAMPLE_REFLECTION => 2 * (len - 1) - place + twice,
            };
        }
        place
    }

    #[test]
    fn axes_longer_than_f32_counts_have_all_their_elements_and_no_other() {
        let sides = [1 << 23, (1 << 23) + 1, (1 << 24) + 2, (1 << 24) + 4, (1 << 27) + 5, i32::MAX as usize];
        for mode in [WEIR_RESIZE_NEAREST, WEIR_RESIZE_LINEAR, WEIR_RESIZE_CUBIC] {
            for edge in [WEIR_GRID_SAMPLE_ZEROS, WEIR_GRID_SAMPLE_BORDER, WEIR_GRID_SAMPLE_REFLECTION] {
                for (align_corners, len) in [true, false].into_iter().flat_map(|align| sides.map(|len| (align, len))) {
                    let of = GridShape {
                        images: 1,
                        channels: 1,
                        height: 1,
                        width: len,
                        points: 1,
                        mode,
                        edge,
                        align_corners,
                    };
                    for at in [-1.0, -0.999_999_9, 0.0, 0.5, 0.999_999_94, 1.0_f32, 1.000_000_1, -1.000_000_1] {
                        let wide = f64::from(at);
                        let place = match align_corners {
                            true => (wide + 1.0) / 2.0 * (len - 1) as f64,
                            false => ((wide + 1.0) * len as f64 - 1.0) / 2.0,
                        };
                        let taps = of.along(at, len);
                        assert!(taps.places.iter().all(|&place| place >= -1 && (place as i64) < len as i64));
                        // A place at an edge is where its own elements are, wherever it is moved to.
                        let nearest = moved(&of, place.round_ties_even() as i64, len as i64);
                        let (tap, weight) = match mode {
                            WEIR_RESIZE_NEAREST => (taps.places[0], 1.0),
                            _ => {
                                let heaviest = |a: &usize, b: &usize| taps.weights[*a].total_cmp(&taps.weights[*b]);
                                let tap = (0..ALONG).max_by(heaviest).unwrap_or(0);
                                (taps.places[tap], taps.weights[tap])
                            }
                        };
                        let halfway = (place - place.floor() - 0.5).abs() < 0.01 || len <= LONGEST_IN_F32;
                        assert!(
                            halfway || i64::from(tap) == nearest && weight >= 0.5,
                            "{mode:?} {edge:?} {align_corners} {len}: {at} is {taps:?} instead of {nearest}"
                        );
                    }
                }
            }
        }
    }
}
