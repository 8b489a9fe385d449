//! Windows that slide over the planes of an image, a register along a row of the output: pooling, and convolutions with
//! few filters in a group.
//!
//! A piece of the region is some rows of the output. The frequent windows are read from the image in place
//! (`in_place`). For the others a piece copies what lies under its rows into a strip (`strip`).
//!
//! Determinism: an element is one chain over the channels and taps in order, whatever the tile.

mod combine;
mod filters;
mod in_place;
mod rows;
mod source;

use super::isa::Isa;
use super::lanes::{Baseline, Vector};
use super::levels::{self, LevelLoop};
use super::site::{MatrixMut, Site, check_scratch};
use super::strip::Strip;
use super::window::Axis;
use crate::base::Result;
use crate::threadpool::Span;
pub use combine::{Added, Greatest, Weighted};
use combine::{Combine, within};
pub use filters::Filters;

/// Windows of a piece, and floats of its strip unless one row has more.
const WINDOWS: usize = 4096;
const STRIP: usize = 16 << 10;
/// Floats of the strips of small images, which are filled together: what was just stored in pieces is not yet read as
/// one.
const TOGETHER: usize = 4 << 10;
/// Divisors behind those of a plane that may be read, as a part of a register.
const BEHIND: usize = 16;

struct Divide<'a> {
    run: &'a mut [f32],
    by: &'a [f32],
}

impl LevelLoop for Divide<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run.iter_mut().zip(self.by).for_each(|(x, by)| *x /= by);
    }
}

/// Images, each with its own channels, and as many planes of windows over all of them as there are filters.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    pub images: usize,
    pub channels: usize,
    pub filters: usize,
    pub rows: Axis,
    pub columns: Axis,
}

/// How windows begin and end.
pub struct WindowEnds<'a> {
    pub filters: Filters<'a>,
    /// The number by which the element at a row and a column of a plane is divided.
    pub divisor: Option<&'a (dyn Fn(usize, usize) -> f32 + Sync)>,
    /// The least and the greatest result of a combination with weights. NaN stays.
    pub bounds: Option<[f32; 2]>,
    /// Completes a run of the output, which begins at this element.
    pub finish: &'a (dyn Fn(usize, &mut [f32]) + Sync),
}

impl Sliding {
    /// The rows of the output in a piece, and its strip.
    fn strip(&self) -> (usize, Strip) {
        Strip::of_piece(self.rows, self.columns, self.channels, WINDOWS, STRIP)
    }

    /// Floats of the places of the taps, of a piece's divisors, and of a strip, and how many strips are filled
    /// together.
    fn floats(&self, rows: usize, strip: &Strip) -> [usize; 4] {
        let taps = self.rows.taps * self.columns.taps * size_of::<usize>() / size_of::<f32>();
        let floats = strip.floats(self.channels);
        [taps.next_multiple_of(16), rows * strip.columns, floats, (TOGETHER / floats).max(1)]
    }

    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes<C: Combine>(&self) -> usize {
        let suits = in_place::suits::<C>(self.channels, &self.rows, &self.columns);
        let in_place = if suits { self.rows_in_place() * self.columns.output + BEHIND } else { 0 };
        let (rows, strip) = self.strip();
        let [taps, divisors, strip, together] = self.floats(rows, &strip);
        (taps + divisors + strip * together).max(in_place) * size_of::<f32>()
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
        assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
        let (height, width) = (self.rows.output, self.columns.output);
        let plane = self.rows.input * self.columns.input;
        assert!(x.len() == self.images * self.channels * plane, "{self:?}");
        assert!(out.holds(self.images * self.filters, height * width), "{self:?}");
        let depth = if C::WEIGHTS { self.channels * self.rows.taps * self.columns.taps } else { 0 };
        let Filters { count, weights, first, .. } = ends.filters;
        assert!(weights.len() == count * depth && [0, count].contains(&first.len()), "{self:?}");
        // A weight that is not finite makes a NaN of padding, which is then multiplied.
        if in_place::is_on(isa)
            && in_place::suits::<C>(self.channels, &self.rows, &self.columns)
            && levels::on(isa, in_place::AreFinite { x: ends.filters.weights })
        {
            return self.compute_in_place::<C>(isa, x, ends, out, cost_ns, site);
        }
        let (at_once, strip) = self.strip();
        let (down, across) = (height.div_ceil(at_once), width.div_ceil(strip.columns));
        let items = self.images * down * across;
        let [of_taps, of_divisors, of_strip, together] = self.floats(at_once, &strip);
        check_scratch(site, self.scratch_bytes::<C>());
        let span = Span { items, cost_ns: cost_ns as f32 / items.max(1) as f32, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            let memory = site.scratch(claim.slot()).cast::<f32>();
            // SAFETY: the slot's scratch memory is as large as `scratch_bytes` asked for, initialised, aligned for a
            // place, and exclusive to this claim.
            let (taps, floats) = unsafe {
                let taps = std::slice::from_raw_parts_mut(memory.cast::<usize>(), self.rows.taps * self.columns.taps);
                let floats = of_divisors + of_strip * together;
                (taps, std::slice::from_raw_parts_mut(memory.add(of_taps), floats))
            };
            let (divisors, strips) = floats.split_at_mut(of_divisors);
            strip.taps(taps);
            // The piece of an image whose divisors these are, and whose padding is in the first strips.
            let (mut of_region, mut padded) = (usize::MAX, 0);
            let place = |item: usize| {
                let (image, region) = (item / (down * across), item % (down * across));
                (image, region / across * at_once, region % across * strip.columns)
            };
            let mut item = claim.begin();
            while item < claim.end() {
                // Together are pieces at one place of several images: the whole of these.
                let is_whole = down * across == 1;
                let items = item..(item + if is_whole { together } else { 1 }).min(claim.end());
                if of_region != item % (down * across) {
                    (of_region, padded) = (item % (down * across), 0);
                    if let Some(divisor) = ends.divisor {
                        let (_, row, column) = place(item);
                        let columns = strip.columns.min(width - column);
                        for (i, divisors) in divisors.chunks_exact_mut(columns).enumerate() {
                            for (j, to) in divisors.iter_mut().enumerate() {
                                *to = divisor(row + i, column + j);
                            }
                        }
                    }
                }
                for (i, (item, strips)) in items.clone().zip(strips.chunks_exact_mut(of_strip)).enumerate() {
                    let (image, row, column) = place(item);
                    let rows = row..(row + at_once).min(height);
                    let beyond = (i >= padded).then_some(C::BEYOND);
                    for channel in 0..self.channels {
                        let plane = &x[(image * self.channels + channel) * plane..][..plane];
                        let to = &mut strips[channel * strip.channel()..];
                        strip.fill(isa, plane, rows.clone(), column, beyond, to);
                    }
                }
                padded = padded.max(items.len());
                for (item, strips) in items.clone().zip(strips.chunks_exact(of_strip)) {
                    let (image, row, column) = place(item);
                    let rows = at_once.min(height - row);
                    let columns = strip.columns.min(width - column);
                    for filter in 0..self.filters {
                        let (weights, first) = ends.filters.of(image * self.filters + filter);
                        let at = ((image * self.filters + filter) * height + row) * width + column;
                        let windows = PlaneWindows {
                            x: strips.as_ptr(),
                            step: strip.step(),
                            channel: strip.channel(),
                            taps,
                            weights: weights.as_ptr(),
                            channels: self.channels,
                            first,
                            bounds: ends.bounds,
                            out: out.data().wrapping_add(at),
                            out_step: width,
                            rows,
                            columns,
                        };
                        // SAFETY: the level is supported, the strip was filled for these windows, and there are weights
                        // for all channels and taps; these elements of the output are claimed.
                        unsafe { windows.compute::<C>(isa) };
                        // Rows that follow one another are one run.
                        let (runs, run) = if columns == width { (1, rows * width) } else { (rows, columns) };
                        for i in 0..runs {
                            // SAFETY: they are, and were written.
                            let run = unsafe { std::slice::from_raw_parts_mut(windows.out.add(i * width), run) };
                            if ends.divisor.is_some() {
                                let by = &divisors[i * columns..];
                                levels::on(isa, Divide { run, by });
                            }
                            (ends.finish)(at + i * width, run);
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
        let items = self.images * self.filters * parts;
        // Small planes are finished together.
        let together = if parts == 1 { (WINDOWS / plane.max(height * width)).max(1) } else { 1 };
        check_scratch(site, self.scratch_bytes::<C>());
        let span = Span { items, cost_ns: cost_ns as f32 / items.max(1) as f32, ..Span::default() };
        site.parallel_for(&span, &|claim| {
            let memory = site.scratch(claim.slot()).cast::<f32>();
            let windows = in_place::ImageWindows {
                x,
                plane,
                channels: self.channels,
                planes: self.filters,
                down: &self.rows,
                across: &self.columns,
                filters: ends.filters,
                divisors: memory,
                bounds: ends.bounds,
                out: out.data(),
            };
            // The part of a plane whose divisors these are.
            let mut of_part = usize::MAX;
            let mut item = claim.begin();
            while item < claim.end() {
                let (part, planes) = match parts {
                    1 => (0, item..(item + together).min(claim.end())),
                    _ => (item % parts, item / parts..item / parts + 1),
                };
                let rows = part * height / parts..(part + 1) * height / parts;
                if let (Some(divisor), true) = (ends.divisor, of_part != part) {
                    // SAFETY: the slot's scratch memory is as large as `scratch_bytes` asked for, initialised, and
                    // exclusive to this claim, which reads it later.
                    let divisors = unsafe { std::slice::from_raw_parts_mut(memory, rows.len() * width) };
                    for (row, divisors) in rows.clone().zip(divisors.chunks_exact_mut(width)) {
                        divisors.iter_mut().enumerate().for_each(|(column, to)| *to = divisor(row, column));
                    }
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

/// Windows of one plane of the output: `rows` rows of `columns`.
struct PlaneWindows<'a> {
    /// The first window in the strip.
    x: *const f32,
    /// Floats from one row of windows to the next, and from one channel to the next.
    step: usize,
    channel: usize,
    /// The place of each tap, as seen from its window.
    taps: &'a [usize],
    /// For each channel and tap, if the combination wants it.
    weights: *const f32,
    channels: usize,
    /// The value of a window without elements.
    first: f32,
    /// As of `WindowEnds`.
    bounds: Option<[f32; 2]>,
    out: *mut f32,
    /// Floats from one row of the output to the next.
    out_step: usize,
    rows: usize,
    columns: usize,
}

impl PlaneWindows<'_> {
    /// # Safety
    /// The processor has the instruction set. The strip has all elements under the windows and as many behind them as a
    /// register has lanes; there are weights; the output is writable, and nobody else's.
    unsafe fn compute<C: Combine>(&self, isa: Isa) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => self.avx512::<C>(),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => self.avx2::<C>(),
                _ => self.vectors::<Baseline, C>(),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<C: Combine>(&self) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m512, C>() }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<C: Combine>(&self) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m256, C>() }
    }

    /// Tiles of eight registers, to hide the latency of an addition: down a column of registers, or along a row.
    #[inline(always)]
    unsafe fn vectors<V: Vector, C: Combine>(&self) {
        // SAFETY: as demanded of the caller; the tiles are parts of the windows.
        unsafe {
            let mut row = 0;
            while row < self.rows {
                let rows = self.rows - row;
                if rows >= 8 || (5..8).contains(&rows) && self.columns <= V::LANES {
                    row += self.down::<V, C>(row, rows.min(8));
                } else if rows >= 4 {
                    self.along::<V, C, 4, 2>(row);
                    row += 4;
                } else if rows >= 2 {
                    self.along::<V, C, 2, 4>(row);
                    row += 2;
                } else {
                    self.along::<V, C, 1, 8>(row);
                    row += 1;
                }
            }
        }
    }

    /// 5 to 8 rows from `row` on.
    #[inline(always)]
    unsafe fn down<V: Vector, C: Combine>(&self, row: usize, rows: usize) -> usize {
        // SAFETY: as demanded of the caller.
        unsafe {
            match rows {
                5 => self.along::<V, C, 5, 1>(row),
                6 => self.along::<V, C, 6, 1>(row),
                7 => self.along::<V, C, 7, 1>(row),
                _ => self.along::<V, C, 8, 1>(row),
            }
        }
        rows
    }

    /// ROWS rows from `row` on, up to COUNT registers of each at once.
    #[inline(always)]
    unsafe fn along<V: Vector, C: Combine, const ROWS: usize, const COUNT: usize>(&self, row: usize) {
        let mut column = 0;
        // SAFETY: as demanded of the caller.
        unsafe {
            while COUNT > 1 && column + (COUNT - 1) * V::LANES < self.columns {
                self.tile::<V, C, ROWS, COUNT>(row, column);
                column += COUNT * V::LANES;
            }
            while column < self.columns {
                self.tile::<V, C, ROWS, 1>(row, column);
                column += V::LANES;
            }
        }
    }

    #[inline(always)]
    unsafe fn tile<V: Vector, C: Combine, const ROWS: usize, const COUNT: usize>(&self, row: usize, column: usize) {
        // SAFETY: as demanded of the caller. Elements read behind the last window are not stored.
        unsafe {
            let mut sums = [[V::splat(self.first); COUNT]; ROWS];
            let mut x = self.x.add(row * self.step + column);
            let mut weights = self.weights;
            for _ in 0..self.channels {
                for (tap, &place) in self.taps.iter().enumerate() {
                    let x = x.add(place);
                    for (i, sums) in sums.iter_mut().enumerate() {
                        for (j, sum) in sums.iter_mut().enumerate() {
                            let x = V::load(x.add(i * self.step + j * V::LANES));
                            *sum = C::step(*sum, x, || V::splat(*weights.add(tap)));
                        }
                    }
                }
                x = x.wrapping_add(self.channel);
                weights = weights.wrapping_add(self.taps.len());
            }
            for (i, sums) in sums.into_iter().enumerate() {
                for (j, mut sum) in sums.into_iter().enumerate() {
                    let column = column + j * V::LANES;
                    if C::WEIGHTS
                        && let Some(bounds) = self.bounds
                    {
                        sum = within(sum, bounds);
                    }
                    let out = self.out.add((row + i) * self.out_step + column);
                    match self.columns - column {
                        left if left >= V::LANES => sum.store(out),
                        left => sum.store_part(out, left),
                    }
                }
            }
        }
    }
}
