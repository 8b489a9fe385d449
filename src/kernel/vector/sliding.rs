//! Windows that slide over the planes of an image, a register along a row of the output: pooling, and convolutions with
//! few filters in a group.
//!
//! A piece of the region is some rows of the output. The frequent windows are read from the image in place
//! (`in_place`). Averages under others, and greatest elements under windows with strides, are taken down the rows first
//! (`down_first`). For the rest a piece copies what lies under its rows into a strip (`strip`), for the windows of a
//! plane (`plane`), or for greatest elements, row by row first (`separate`).
//!
//! Determinism: an element is one chain over the channels and taps in order, whatever the tile; down the rows first it
//! is one chain over the columns of its window, of which each is a chain.

mod combine;
mod down_first;
mod filters;
mod in_place;
mod plane;
mod rows;
mod separate;
mod source;

use super::isa::Isa;
use super::levels::{self, LevelLoop};
use super::site::{MatrixMut, Site, check_scratch};
use super::strip::{PieceRows, Strip};
use super::window::{Axis, EdgeMode};
use crate::base::Result;
use crate::threadpool::Span;
use combine::Combine;
pub use combine::{Added, Greatest, Weighted};
use down_first::{DownFirst, FoldedRows, SameInAnyOrder};
pub use filters::Filters;
use plane::PlaneWindows;
use separate::SeparateWindows;
use std::ops::Range;

/// Windows of a piece, and floats of its strip unless one row has more.
const WINDOWS: usize = 4096;
const STRIP: usize = 16 << 10;
/// Floats of the strips of small images, which are filled together: what was just stored in pieces is not yet read as
/// one.
const TOGETHER: usize = 4 << 10;
/// Floats of small planes that are looked at together.
const LOOK: usize = 4 << 10;
/// Divisors behind those of the columns that may be read, as a part of a register.
const BEHIND: usize = 16;

/// Divides the elements of some rows by the products of their row's divisor and their columns'.
struct Divide<'a> {
    run: &'a mut [f32],
    first: usize,
    of_row: &'a (dyn Fn(usize) -> f32 + Sync),
    columns: &'a [f32],
}

impl LevelLoop for Divide<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (row, run) in (self.first..).zip(self.run.chunks_exact_mut(self.columns.len())) {
            let by = (self.of_row)(row);
            run.iter_mut().zip(self.columns).for_each(|(x, column)| *x /= column * by);
        }
    }
}

/// Images, each with its own channels, and as many planes of windows over all of them as there are filters.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    pub images: usize,
    /// Planes under a window: of volumes one for each channel and tap in depth.
    pub channels: usize,
    pub filters: usize,
    /// The depth of volumes, under weights.
    pub slices: Axis,
    pub rows: Axis,
    pub columns: Axis,
}

/// The divisors of rows, and those of columns.
type Divisors<'a> = [&'a (dyn Fn(usize) -> f32 + Sync); 2];

/// How windows begin and end.
pub struct WindowEnds<'a> {
    pub filters: Filters<'a>,
    /// The numbers of a row and of a column of a plane, by whose product the element there is divided.
    pub divisors: Option<Divisors<'a>>,
    /// The least and the greatest result of a combination with weights. NaN stays.
    pub bounds: Option<[f32; 2]>,
    /// Completes a run of the output, which begins at this element.
    pub finish: &'a (dyn Fn(usize, &mut [f32]) + Sync),
}

impl Sliding {
    fn strip(&self) -> Strip {
        Strip::of_piece(self.rows, self.columns, self.channels, WINDOWS, STRIP)
    }

    /// Floats of the places of the taps, of the divisors of a piece's columns, of what is made of a strip's rows, and
    /// of a strip, and how many strips are filled together.
    fn floats<C: Combine>(&self, strip: &Strip) -> [usize; 5] {
        let taps = self.rows.taps * self.columns.taps * size_of::<usize>() / size_of::<f32>();
        let floats = strip.floats(self.channels);
        let mut folded = if C::IN_ANY_ORDER { floats } else { 0 };
        if self.goes_down_first::<C>() {
            folded = folded.max(FoldedRows::floats(&self.columns, strip.rows, strip.columns));
        }
        let divisors = (strip.columns + BEHIND + strip.rows).next_multiple_of(16);
        [taps.next_multiple_of(16), divisors, folded, floats, (TOGETHER / floats).max(1)]
    }

    /// Whether elements are combined down the rows first: the order of sums depends on the shape alone.
    fn goes_down_first<C: Combine>(&self) -> bool {
        let strides = self.rows.stride.max(self.columns.stride);
        let gains = C::DIVIDED || C::IN_ANY_ORDER && strides > 1;
        let is_in_place = in_place::suits::<C>(self.channels, &self.rows, &self.columns);
        gains && !is_in_place && down_first::suits(&self.rows, &self.columns)
    }

    /// The elements of a plane under the rows of a piece.
    fn under(&self, rows: PieceRows) -> Range<usize> {
        let Axis { input, taps, stride, dilation, before, .. } = self.rows;
        let last = rows.at(rows.count - 1) * stride + (taps - 1) * dilation;
        let lines = match self.rows.edge {
            EdgeMode::Zero => {
                (rows.first * stride).saturating_sub(before).min(input)..(last + 1).saturating_sub(before).min(input)
            }
            EdgeMode::Reflect => 0..input,
        };
        lines.start * self.columns.input..lines.end * self.columns.input
    }

    /// The image, and the slice of its output, by the number of the slice among those of all images.
    #[inline(always)]
    fn image_of(&self, number: usize) -> (usize, usize) {
        // A division takes as long as a small plane.
        match self.slices.output {
            1 => (number, 0),
            slices => (number / slices, number % slices),
        }
    }

    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes<C: Combine>(&self) -> usize {
        let suits = in_place::suits::<C>(self.channels, &self.rows, &self.columns);
        let in_place = if suits { self.columns.output + BEHIND + self.rows_in_place() } else { 0 };
        let [taps, divisors, folded, strip, together] = self.floats::<C>(&self.strip());
        (taps + divisors + folded + strip * together).max(in_place) * size_of::<f32>()
    }

    /// Computes all windows of `x` into `out`, a plane after the other, at this cost on one thread.
    pub fn compute<C: Combine>(
        &self,
        isa: Isa,
        x: &[f32],
        ends: &WindowEnds<'_>,
        out: MatrixMut<'_, f32>,
        cost_ns: u64,
        site: &dyn Site,
    ) -> Result<()> {
        isa.assert_detected();
        let (height, width) = (self.rows.output, self.columns.output);
        let (plane, slices) = (self.rows.input * self.columns.input, self.slices.output);
        let volume = self.channels / self.slices.taps * self.slices.input * plane;
        assert!(x.len() == self.images * volume, "{self:?}");
        assert!(out.holds(self.images * self.filters, slices * height * width), "{self:?}");
        let depth = if C::WEIGHTS { self.channels * self.rows.taps * self.columns.taps } else { 0 };
        assert!(C::WEIGHTS || (self.channels, self.filters) == (1, 1) && self.slices.is_one(), "{self:?}");
        let Filters { count, weights, first, .. } = ends.filters;
        assert!(weights.len() == count * depth && [0, count].contains(&first.len()), "{self:?}");
        // A weight that is not finite makes a NaN of padding, which is then multiplied.
        let are_finite = levels::on(isa, in_place::AreFinite { x: ends.filters.weights });
        if in_place::is_on(isa) && in_place::suits::<C>(self.channels, &self.rows, &self.columns) && are_finite {
            return self.compute_in_place::<C>(isa, x, ends, out, cost_ns, site);
        }
        let (strip, goes_down_first) = (self.strip(), self.goes_down_first::<C>());
        let pieces = strip.pieces();
        let items = self.images * slices * pieces;
        let [of_taps, of_divisors, of_folded, of_strip, together] = self.floats::<C>(&strip);
        check_scratch(site, self.scratch_bytes::<C>());
        let span = Span { items, cost_ns: cost_ns as f32 / items.max(1) as f32, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            let memory = site.scratch(claim.slot()).cast::<f32>();
            // SAFETY: the slot's scratch memory is as large as `scratch_bytes` asked for, initialised, aligned for a
            // place, and exclusive to this claim.
            let (taps, floats) = unsafe {
                let taps = std::slice::from_raw_parts_mut(memory.cast::<usize>(), self.rows.taps * self.columns.taps);
                let floats = of_divisors + of_folded + of_strip * together;
                (taps, std::slice::from_raw_parts_mut(memory.add(of_taps), floats))
            };
            let (divisors, floats) = floats.split_at_mut(of_divisors);
            let (divisors, of_rows) = divisors.split_at_mut(strip.columns + BEHIND);
            let (folded, strips) = floats.split_at_mut(of_folded);
            strip.taps(taps);
            // The piece of an image whose divisors these are, and whose padding is in the first strips.
            let (mut of_region, mut padded) = (usize::MAX, 0);
            let (mut rows, mut columns) = strip.piece(0);
            // The end of the small planes that were looked at together, and whether all are the same in any order.
            let mut looked = (0, false);
            let mut item = claim.begin();
            while item < claim.end() {
                // Together are pieces at one place of several images: the whole of these.
                let many = if pieces == 1 && !goes_down_first { together } else { 1 };
                let items = item..(item + many).min(claim.end());
                // A division takes as long as a small plane.
                let (image, region) = if pieces == 1 { (item, 0) } else { (item / pieces, item % pieces) };
                if of_region != region {
                    (of_region, padded) = (region, 0);
                    (rows, columns) = strip.piece(region);
                    if let Some([of_row, of_column]) = ends.divisors {
                        of_rows[..rows.count].iter_mut().enumerate().for_each(|(i, to)| *to = of_row(rows.at(i)));
                        divisors.iter_mut().zip(columns.clone()).for_each(|(to, column)| *to = of_column(column));
                        // No lane without a window raises a floating-point exception.
                        divisors[columns.len()..].fill(1.0);
                    }
                }
                if rows.count == 0 {
                    item = items.end;
                    continue;
                }
                let is_same = |x: &[f32]| levels::on(isa, SameInAnyOrder { x });
                if goes_down_first && C::IN_ANY_ORDER && pieces == 1 && item >= looked.0 {
                    let end = (item + LOOK / plane.max(1)).clamp(item + 1, claim.end());
                    looked = (end, is_same(&x[item * plane..end * plane]));
                }
                let of_image = || &x[image * plane..][..plane];
                let is_known = !C::IN_ANY_ORDER || item < looked.0 && looked.1;
                if !C::WEIGHTS && goes_down_first && (is_known || is_same(&of_image()[self.under(rows)])) {
                    let at = image * height * width;
                    let windows = DownFirst {
                        x: of_image(),
                        down: &self.rows,
                        across: &self.columns,
                        rows,
                        columns: columns.clone(),
                        folded: folded.as_mut_ptr(),
                        divisors: ends.divisors.map(|_| [of_rows.as_ptr(), divisors.as_ptr()]),
                        out: out.data().wrapping_add(at + rows.at(0) * width + columns.start),
                        out_step: rows.apart * width,
                    };
                    // SAFETY: the level is supported, the shape suits, and there is as much memory as `floats` says;
                    // these elements of the output are claimed.
                    unsafe { windows.compute::<C::OfNumbers>(isa) };
                    for (from, len) in rows.runs(columns.clone(), width) {
                        // SAFETY: they are, and were written.
                        let run = unsafe { std::slice::from_raw_parts_mut(out.data().add(at + from), len) };
                        (ends.finish)(at + from, run);
                    }
                    item = items.end;
                    continue;
                }
                for (i, (item, strips)) in items.clone().zip(strips.chunks_exact_mut(of_strip)).enumerate() {
                    let (image, slice) = self.image_of(item / pieces);
                    let beyond = (i >= padded).then_some(C::BEYOND);
                    for channel in 0..self.channels {
                        let to = &mut strips[channel * strip.channel()..];
                        match self.slices.plane(slice, channel) {
                            Some(number) => {
                                let plane = &x[image * volume + number * plane..][..plane];
                                strip.fill(isa, plane, rows, columns.start, beyond, to);
                            }
                            None => to[..strip.channel()].fill(C::BEYOND),
                        }
                    }
                }
                padded = padded.max(items.len());
                // Windows of few rows share none.
                let are_shared = C::IN_ANY_ORDER || self.rows.taps >= plane::LEAST_SHARED;
                let lines = if are_finite && are_shared { strip.inside(rows) } else { 0..usize::MAX };
                for (item, strips) in items.clone().zip(strips.chunks_exact(of_strip)) {
                    let image = item / pieces;
                    if C::IN_ANY_ORDER {
                        let windows = SeparateWindows {
                            strip: strips.as_ptr(),
                            folded: folded.as_mut_ptr(),
                            line: strip.line(),
                            lines: lines.clone(),
                            lines_apart: strip.step() / strip.line(),
                            taps_down: self.rows.taps,
                            places: &taps[..self.columns.taps],
                            is_dense: self.columns.stride == 1 && columns.len() == strip.columns,
                            out: out.data().wrapping_add((image * height + rows.first) * width + columns.start),
                            out_step: rows.apart * width,
                            rows: rows.count,
                            columns: columns.len(),
                        };
                        let x = &x[image * plane..][..plane][self.under(rows)];
                        // SAFETY: the level is supported, the strip was filled for these windows, there is as much
                        // memory; these elements of the output are claimed.
                        unsafe {
                            match levels::on(isa, in_place::AreFinite { x }) {
                                true => windows.compute::<C::OfNumbers>(isa),
                                false => windows.compute::<C>(isa),
                            }
                        }
                        for (at, len) in rows.runs(columns.clone(), width) {
                            let at = image * height * width + at;
                            // SAFETY: they are, and were written.
                            (ends.finish)(at, unsafe { std::slice::from_raw_parts_mut(out.data().add(at), len) });
                        }
                        continue;
                    }
                    let (image, slice) = self.image_of(image);
                    for filter in 0..self.filters {
                        let (weights, first) = ends.filters.of(image * self.filters + filter);
                        let plane = ((image * self.filters + filter) * slices + slice) * height * width;
                        let at = plane + rows.at(0) * width + columns.start;
                        let windows = PlaneWindows {
                            x: strips.as_ptr(),
                            step: strip.step(),
                            line: strip.line(),
                            channel: strip.channel(),
                            taps,
                            taps_across: self.columns.taps,
                            lines: lines.clone(),
                            weights: weights.as_ptr(),
                            channels: self.channels,
                            first,
                            bounds: ends.bounds,
                            out: out.data().wrapping_add(at),
                            out_step: rows.apart * width,
                            rows: rows.count,
                            columns: columns.len(),
                        };
                        // SAFETY: the level is supported, the strip was filled for these windows, and there are weights
                        // for all channels and taps; these elements of the output are claimed.
                        unsafe { windows.compute::<C>(isa) };
                        for (i, (at, len)) in rows.runs(columns.clone(), width).enumerate() {
                            // SAFETY: they are, and were written.
                            let run = unsafe { std::slice::from_raw_parts_mut(out.data().add(plane + at), len) };
                            if let Some([of_row, _]) = ends.divisors {
                                let (first, columns) = (rows.at(i), &divisors[..columns.len()]);
                                levels::on(isa, Divide { run: &mut *run, first, of_row, columns });
                            }
                            (ends.finish)(plane + at, run);
                        }
                    }
                }
                item = items.end;
            }
            Ok(())
        })
    }
}

impl Sliding {
    /// Pieces of a plane that is read in place, with at least a tile's rows each.
    fn parts_in_place(&self) -> usize {
        let floats = self.rows.input.max(self.rows.output) * self.columns.input.max(self.columns.output);
        floats.div_ceil(WINDOWS).min(self.rows.output / rows::ROWS).max(1)
    }

    /// Rows of the output in the largest of them.
    fn rows_in_place(&self) -> usize {
        self.rows.output.div_ceil(self.parts_in_place())
    }

    fn compute_in_place<C: Combine>(
        &self,
        isa: Isa,
        x: &[f32],
        ends: &WindowEnds<'_>,
        out: MatrixMut<'_, f32>,
        cost_ns: u64,
        site: &dyn Site,
    ) -> Result<()> {
        let (height, width) = (self.rows.output, self.columns.output);
        let plane = self.rows.input * self.columns.input;
        let parts = self.parts_in_place();
        let items = self.images * self.filters * self.slices.output * parts;
        // Small planes are finished together.
        let together = if parts == 1 { (WINDOWS / plane.max(height * width)).max(1) } else { 1 };
        check_scratch(site, self.scratch_bytes::<C>());
        let span = Span { items, cost_ns: cost_ns as f32 / items.max(1) as f32, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            let of_columns = site.scratch(claim.slot()).cast::<f32>();
            let of_rows = of_columns.wrapping_add(width + BEHIND);
            if let Some([_, of_column]) = ends.divisors {
                // SAFETY: the slot's scratch memory is as large as `scratch_bytes` asked for, initialised, and
                // exclusive to this claim, which reads it later.
                let divisors = unsafe { std::slice::from_raw_parts_mut(of_columns, width + BEHIND) };
                divisors[..width].iter_mut().enumerate().for_each(|(column, to)| *to = of_column(column));
                // No lane without a window raises a floating-point exception.
                divisors[width..].fill(1.0);
            }
            let windows = in_place::ImageWindows {
                x,
                plane,
                channels: self.channels,
                planes: self.filters,
                slices: &self.slices,
                down: &self.rows,
                across: &self.columns,
                filters: ends.filters,
                divisors: [of_rows, of_columns],
                bounds: ends.bounds,
                out: out.data(),
            };
            // The part of a plane whose rows' divisors these are.
            let mut of_part = usize::MAX;
            let mut item = claim.begin();
            while item < claim.end() {
                let (part, planes) = match parts {
                    1 => (0, item..(item + together).min(claim.end())),
                    _ => (item % parts, item / parts..item / parts + 1),
                };
                let rows = part * height / parts..(part + 1) * height / parts;
                if let (Some([of_row, _]), true) = (ends.divisors, of_part != part) {
                    // SAFETY: as above.
                    let divisors = unsafe { std::slice::from_raw_parts_mut(of_rows, rows.len()) };
                    divisors.iter_mut().zip(rows.clone()).for_each(|(to, row)| *to = of_row(row));
                    of_part = part;
                }
                let at = planes.start * height * width + rows.start * width;
                let len = planes.len() * rows.len() * width;
                // SAFETY: the level is supported, the sizes were compared, and these rows of the output claimed.
                let run = unsafe {
                    windows.compute::<C>(isa, planes.clone(), rows);
                    std::slice::from_raw_parts_mut(out.data().add(at), len)
                };
                (ends.finish)(at, run);
                item += planes.len();
            }
            Ok(())
        })
    }
}
