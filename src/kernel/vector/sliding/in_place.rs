//! Windows that are read from the image in place, in an image that is padded with a value. Elements beyond the image
//! are put in where others are loaded. Rows beyond it are skipped, which no finite weight could tell from zeros.
//!
//! Taps may be apart if windows are not. Rows of windows that are as far apart as the taps share rows of elements, as
//! neighbours do otherwise: these are computed together.
//!
//! Shapes that are rare have the tiles of AVX2 on all levels above it.

use super::combine::Combine;
use super::down_first::SameInAnyOrder;
use super::filters::Filters;
use super::rows::{ROWS, TilePlace, WindowPlane};
use super::source::{APART, Lines, WindowSource, has_edge};
use crate::kernel::vector::isa::{Isa, SimdLevel};
use crate::kernel::vector::lanes::Vector;
#[cfg(target_arch = "x86_64")]
use crate::kernel::vector::lanes::avx512::Ymm;
use crate::kernel::vector::levels::{self, LevelLoop};
use crate::kernel::vector::window::{Axis, EdgeMode};
use std::ops::Range;

/// Floats of half a register of AVX-512.
#[cfg(target_arch = "x86_64")]
const HALF: usize = Ymm::LANES;

/// Whether there are tiles on this level. The processors of x86-64 that have no AVX2 are too few for the code that they
/// would take.
pub fn is_on(isa: Isa) -> bool {
    isa.level >= SimdLevel::Avx2 || cfg!(not(target_arch = "x86_64"))
}

/// Whether there are tiles for these windows.
pub fn suits<C: Combine>(channels: usize, rows: &Axis, columns: &Axis) -> bool {
    let has_apart = matches!((columns.taps, columns.stride), (3 | 5, 1)) && rows.stride == 1;
    let may_be_apart = has_apart && C::WEIGHTS && channels == 1;
    let in_place = |axis: &Axis| (axis.dilation == 1 || may_be_apart) && axis.edge == EdgeMode::Zero;
    let is_square = (rows.taps, rows.stride) == (columns.taps, columns.stride);
    let is_there = match (columns.taps, columns.stride) {
        (7, 1 | 2) if C::WEIGHTS && channels == 1 => is_square,
        (5, 1) if C::IN_ANY_ORDER => channels == 1 && is_square,
        (3 | 5, 1 | 2) if C::WEIGHTS && channels == 1 => rows.taps == columns.taps && rows.stride <= 2,
        (3 | 5, 1 | 2) if C::WEIGHTS => is_square && rows.output >= ROWS,
        (2 | 3, 1 | 2) => !C::WEIGHTS && channels == 1,
        _ => false,
    };
    is_there && in_place(rows) && in_place(columns)
}

/// Whether all of them are finite.
pub struct AreFinite<'a> {
    pub x: &'a [f32],
}

impl LevelLoop for AreFinite<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        // All but the sign of what is not finite is an integer as great as infinity's, or a greater one.
        let magnitude = |x: &f32| (x.to_bits() & !(1 << 31)) as i32;
        self.x.iter().fold(0, |most: i32, x| most.max(magnitude(x))) < f32::INFINITY.to_bits() as i32
    }
}

/// Rows of windows of each of some planes, so far apart that they share rows of elements, and these.
#[derive(Clone, Copy)]
struct SharedRows {
    count: usize,
    /// The first element of these, in its plane, and of the results.
    x: usize,
    out: usize,
    /// As of `Lines`.
    before: usize,
    lines: usize,
    pitch: usize,
    /// Floats from one row of windows to the next.
    out_step: usize,
}

/// Planes of windows over images.
pub struct ImageWindows<'a> {
    pub x: &'a [f32],
    /// Floats of a channel of an image.
    pub plane: usize,
    pub channels: usize,
    /// Planes over each image, of as many slices as the depth of windows says.
    pub planes: usize,
    pub slices: &'a Axis,
    pub down: &'a Axis,
    pub across: &'a Axis,
    /// Those of the planes.
    pub filters: Filters<'a>,
    /// Those of the rows that are computed, and those of the columns, and a register's more.
    pub divisors: [*const f32; 2],
    /// As of `WindowEnds`.
    pub bounds: Option<[f32; 2]>,
    pub out: *mut f32,
}

impl ImageWindows<'_> {
    /// Computes some rows of some planes.
    ///
    /// # Safety
    /// The processor has the instruction set, and there are tiles for the windows, which have rows enough. The rows of
    /// the output are writable, and nobody else's.
    pub unsafe fn compute<C: Combine>(&self, isa: Isa, planes: Range<usize>, rows: Range<usize>) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let is_same = C::IN_ANY_ORDER && levels::on(isa, SameInAnyOrder { x: self.under(&planes, &rows) });
            for first in rows.clone().take(self.down.dilation) {
                let rows = self.shared_rows(first, rows.end);
                if is_same {
                    self.of_shape::<C::OfNumbers>(isa, planes.clone(), &rows, true);
                } else {
                    self.of_shape::<C>(isa, planes.clone(), &rows, !C::IN_ANY_ORDER);
                }
            }
        }
    }

    /// The rows from `first` on that share rows of elements with it.
    fn shared_rows(&self, first: usize, end: usize) -> SharedRows {
        let Axis { input, stride, dilation: apart, before, .. } = *self.down;
        let (pitch, out_step) = (self.across.input, self.across.output);
        // The place in the padded image, and how many of the rows of elements from there on lie before the image.
        let place = first * stride;
        let beyond = before.saturating_sub(place).div_ceil(apart);
        let line = (place + beyond * apart - before).min(input);
        SharedRows {
            count: (end - first).div_ceil(apart),
            x: line * pitch,
            out: first * out_step,
            before: beyond,
            lines: (input - line).div_ceil(apart),
            pitch: apart * pitch,
            out_step: apart * out_step,
        }
    }

    /// The elements under some rows of a plane of windows, or under all rows of several.
    fn under(&self, planes: &Range<usize>, rows: &Range<usize>) -> &[f32] {
        let (before, stride, pitch) = (self.down.before, self.down.stride, self.across.input);
        let begin = (rows.start * stride).saturating_sub(before) * pitch;
        let end = ((rows.end - 1) * stride + self.down.taps).saturating_sub(before).min(self.down.input) * pitch;
        let (begin, end) = (planes.start * self.plane + begin, (planes.end - 1) * self.plane + end);
        &self.x[begin.min(end)..end]
    }

    /// `in_shape`: the tile of the shape may take elements in an order of its own.
    unsafe fn of_shape<C: Combine>(&self, isa: Isa, planes: Range<usize>, rows: &SharedRows, in_shape: bool) {
        let (taps, down, across) = (self.across.taps, self.down.stride, self.across.stride);
        // SAFETY: as demanded of the caller.
        unsafe {
            match (taps, down, across) {
                (3, ..) if C::WEIGHTS && self.across.dilation > 1 => self.on_avx2::<C, 3, 1, APART>(planes, rows),
                (5, ..) if C::WEIGHTS && self.across.dilation > 1 => self.on_avx2::<C, 5, 1, APART>(planes, rows),
                (7, 1, _) if C::WEIGHTS => self.on_level::<C, 7, 1, 1>(isa, planes, rows),
                (7, ..) if C::WEIGHTS => self.on_avx2::<C, 7, 2, 2>(planes, rows),
                (5, 1, 1) if C::WEIGHTS || C::IN_ANY_ORDER => self.on_level::<C, 5, 1, 1>(isa, planes, rows),
                (5, 1, _) if C::WEIGHTS => self.on_level::<C, 5, 1, 2>(isa, planes, rows),
                (5, _, 1) if C::WEIGHTS => self.on_level::<C, 5, 2, 1>(isa, planes, rows),
                (5, ..) if C::WEIGHTS => self.on_level::<C, 5, 2, 2>(isa, planes, rows),
                (3, 1, 2) if C::WEIGHTS => self.on_level::<C, 3, 1, 2>(isa, planes, rows),
                (3, 2, 1) if C::WEIGHTS => self.on_level::<C, 3, 2, 1>(isa, planes, rows),
                (3, 1, 1) if self.down.taps == 3 => self.on_level::<C, 3, 1, 1>(isa, planes, rows),
                (3, 2, 2) if self.down.taps == 3 && in_shape => self.on_level::<C, 3, 2, 2>(isa, planes, rows),
                (2, 2, 2) if !C::WEIGHTS && self.down.taps == 2 => self.on_level::<C, 2, 2, 2>(isa, planes, rows),
                (3, _, 1) if !C::WEIGHTS => self.on_level::<C, 3, 0, 1>(isa, planes, rows),
                (3, ..) if !C::WEIGHTS => self.on_level::<C, 3, 0, 2>(isa, planes, rows),
                (2, _, 1) if !C::WEIGHTS => self.on_level::<C, 2, 0, 1>(isa, planes, rows),
                _ if !C::WEIGHTS => self.on_level::<C, 2, 0, 2>(isa, planes, rows),
                _ => unreachable!("no tiles for windows of {taps}"),
            }
        }
    }

    // A function of its own for each level and shape: all in one would need much stack where nothing is optimised.
    unsafe fn on_level<C: Combine, const TAPS: usize, const DOWN: usize, const STRIDE: usize>(
        &self,
        isa: Isa,
        planes: Range<usize>,
        rows: &SharedRows,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match isa.level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => self.avx512::<C, TAPS, DOWN, STRIDE>(planes, rows),
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => self.avx2::<C, TAPS, DOWN, STRIDE>(planes, rows),
                #[cfg(not(target_arch = "x86_64"))]
                _ => self.tiles::<crate::kernel::vector::lanes::Baseline, C, TAPS, DOWN, STRIDE>(planes, rows),
                #[cfg(target_arch = "x86_64")]
                _ => unreachable!("no tiles on this level: {isa:?}"),
            }
        }
    }

    /// For rare shapes.
    unsafe fn on_avx2<C: Combine, const TAPS: usize, const DOWN: usize, const STRIDE: usize>(
        &self,
        planes: Range<usize>,
        rows: &SharedRows,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            self.avx2::<C, TAPS, DOWN, STRIDE>(planes, rows);
            #[cfg(not(target_arch = "x86_64"))]
            self.tiles::<crate::kernel::vector::lanes::Baseline, C, TAPS, DOWN, STRIDE>(planes, rows);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<C: Combine, const TAPS: usize, const DOWN: usize, const STRIDE: usize>(
        &self,
        planes: Range<usize>,
        rows: &SharedRows,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe { self.tiles::<std::arch::x86_64::__m512, C, TAPS, DOWN, STRIDE>(planes, rows) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<C: Combine, const TAPS: usize, const DOWN: usize, const STRIDE: usize>(
        &self,
        planes: Range<usize>,
        rows: &SharedRows,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe { self.tiles::<std::arch::x86_64::__m256, C, TAPS, DOWN, STRIDE>(planes, rows) }
    }

    /// Down each register of columns, or two at once; DOWN is 0 if rows of windows have no tiles of their own.
    #[inline(always)]
    unsafe fn tiles<V: Vector, C: Combine, const TAPS: usize, const DOWN: usize, const STRIDE: usize>(
        &self,
        planes: Range<usize>,
        rows: &SharedRows,
    ) {
        let columns = self.across.output;
        let row = (columns, rows.out_step == columns);
        // SAFETY: as demanded of the caller.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if V::LANES == 16 && columns <= HALF {
                let at = TilePlace::new::<Ymm>(rows.count, 0, row);
                return self.half::<C, TAPS, DOWN, STRIDE>(planes, rows, &at);
            }
            if columns <= V::LANES {
                let source = WindowSource::<V, TAPS, STRIDE, true>::new(self.across, 0);
                let at = TilePlace::new::<V>(rows.count, 0, row);
                for plane in planes {
                    self.tile::<_, C, TAPS, DOWN, STRIDE, true>(&source, &self.of_plane(plane, rows), &at);
                }
                return;
            }
            // More would not leave registers enough.
            let are_few = TAPS == 3 || TAPS == 5 && (V::LANES == 8 || C::IN_ANY_ORDER);
            let has_two = DOWN > 0 && self.channels == 1 && are_few;
            for number in planes {
                let plane = self.of_plane(number, rows);
                let mut column = 0;
                while column < columns {
                    let left = columns - column;
                    if TAPS == 7 && V::LANES == 16 && left > V::LANES {
                        let both = [column, (column + V::LANES).min(columns - V::LANES)];
                        let sources = both.map(|column| WindowSource::new(self.across, column));
                        let at = TilePlace::new::<V>(rows.count, column, row);
                        plane.stream::<V, C, TAPS, DOWN, STRIDE, true, 2>(&sources, &at);
                        column += 2 * V::LANES;
                        continue;
                    }
                    // The last register computes some windows once more.
                    #[cfg(target_arch = "x86_64")]
                    if V::LANES == 16 && left <= HALF {
                        let at = TilePlace::new::<Ymm>(rows.count, columns - HALF, row);
                        self.half::<C, TAPS, DOWN, STRIDE>(number..number + 1, rows, &at);
                        break;
                    }
                    let at = TilePlace::new::<V>(rows.count, column.min(columns - V::LANES), row);
                    let edge = has_edge::<V>(self.across, at.column);
                    if has_two && left >= 2 * V::LANES && !edge && !has_edge::<V>(self.across, at.column + V::LANES) {
                        let source = WindowSource::<V, TAPS, STRIDE, false>::new(self.across, at.column);
                        let next = WindowSource::new(self.across, at.column + V::LANES);
                        let sources = [source, next];
                        if DOWN == 1 {
                            plane.stream::<V, C, TAPS, 1, STRIDE, false, 2>(&sources, &at);
                        } else if C::IN_ANY_ORDER && (TAPS, STRIDE) == (3, 2) {
                            plane.down_first::<V, C, TAPS, STRIDE, false, 2>(&sources[0], &at);
                        } else {
                            plane.stream::<V, C, TAPS, 2, STRIDE, false, 2>(&sources, &at);
                        }
                        column += 2 * V::LANES;
                        continue;
                    }
                    // Masks are hidden behind so many products.
                    if edge || TAPS == 7 && (V::LANES == 16 || DOWN == 2) {
                        let source = WindowSource::<V, TAPS, STRIDE, true>::new(self.across, at.column);
                        self.tile::<_, C, TAPS, DOWN, STRIDE, true>(&source, &plane, &at);
                    } else {
                        let source = WindowSource::<V, TAPS, STRIDE, false>::new(self.across, at.column);
                        self.tile::<_, C, TAPS, DOWN, STRIDE, false>(&source, &plane, &at);
                    }
                    column += V::LANES;
                }
            }
        }
    }

    /// Few columns, in half a register of AVX-512, which takes half of the time on some processors.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn half<C: Combine, const TAPS: usize, const DOWN: usize, const STRIDE: usize>(
        &self,
        planes: Range<usize>,
        rows: &SharedRows,
        at: &TilePlace,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let source = WindowSource::<Ymm, TAPS, STRIDE, true>::new(self.across, at.column);
            for plane in planes {
                self.tile::<_, C, TAPS, DOWN, STRIDE, true>(&source, &self.of_plane(plane, rows), at);
            }
        }
    }

    #[inline(always)]
    unsafe fn tile<
        V: Vector,
        C: Combine,
        const TAPS: usize,
        const DOWN: usize,
        const STRIDE: usize,
        const EDGE: bool,
    >(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        plane: &WindowPlane,
        at: &TilePlace,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            if C::WEIGHTS && DOWN == STRIDE && self.channels != 1 {
                return plane.sums::<V, C, TAPS, STRIDE, EDGE>(source, at);
            }
            match DOWN {
                0 => plane.row_by_row::<V, C, TAPS, STRIDE, EDGE>(source, at, (self.down.taps, self.down.stride)),
                1 => plane.stream::<V, C, TAPS, 1, STRIDE, EDGE, 1>(std::array::from_ref(source), at),
                _ if C::IN_ANY_ORDER && (TAPS, STRIDE) == (3, 2) => {
                    plane.down_first::<V, C, TAPS, STRIDE, EDGE, 1>(source, at);
                }
                _ => plane.stream::<V, C, TAPS, 2, STRIDE, EDGE, 1>(std::array::from_ref(source), at),
            }
        }
    }

    #[inline(always)]
    fn of_plane(&self, plane: usize, rows: &SharedRows) -> WindowPlane {
        let (number, slice) = match self.slices.output {
            1 => (plane, 0),
            slices => (plane / slices, plane % slices),
        };
        let image = if self.planes == 1 { number } else { number / self.planes };
        let (weights, first) = self.filters.of(number);
        let volume = self.channels / self.slices.taps * self.slices.input * self.plane;
        // The only plane of a window; without one it has no rows.
        let only = if self.channels == 1 { self.slices.plane(slice, 0) } else { Some(0) };
        WindowPlane {
            lines: Lines {
                x: self.x[image * volume..][..volume].as_ptr().wrapping_add(only.unwrap_or(0) * self.plane + rows.x),
                before: rows.before,
                count: if only.is_some() { rows.lines } else { 0 },
                pitch: rows.pitch,
            },
            plane: self.plane,
            channels: self.channels,
            slices: *self.slices,
            slice,
            weights: weights.as_ptr(),
            first,
            divisors: self.divisors,
            bounds: self.bounds,
            out: self.out.wrapping_add(plane * self.down.output * self.across.output + rows.out),
            columns: self.across.output,
            out_step: rows.out_step,
        }
    }
}
