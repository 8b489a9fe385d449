//! Windows of a plane, over a strip of the image.

use super::combine::{Combine, within};
use crate::kernel::vector::isa::{Isa, SimdLevel};
#[cfg(target_arch = "x86_64")]
use crate::kernel::vector::lanes::avx512::Ymm;
use crate::kernel::vector::lanes::{Baseline, Vector};
use std::ops::Range;

/// The least and the most rows of windows that share rows of the strip in a tile.
pub const LEAST_SHARED: usize = 4;
const SHARED: usize = 7;

/// Windows of one plane of the output: `rows` rows of `columns`.
pub struct PlaneWindows<'a> {
    /// The first window in the strip.
    pub x: *const f32,
    /// Floats from one row of windows to the next, from one row of the strip, and from one channel.
    pub step: usize,
    pub line: usize,
    pub channel: usize,
    /// The place of each tap, as seen from its window, row after row of so many.
    pub taps: &'a [usize],
    pub taps_across: usize,
    /// The rows of the strip that count: the others are skipped by tiles whose windows share rows.
    pub lines: Range<usize>,
    /// For each channel and tap, if the combination wants it.
    pub weights: *const f32,
    pub channels: usize,
    /// The value of a window without elements.
    pub first: f32,
    /// As of `WindowEnds`.
    pub bounds: Option<[f32; 2]>,
    pub out: *mut f32,
    /// Floats from one row of the output to the next.
    pub out_step: usize,
    pub rows: usize,
    pub columns: usize,
}

impl PlaneWindows<'_> {
    /// # Safety
    /// The processor has the instruction set. The strip has all elements under the windows and as many behind them as a
    /// register has lanes; there are weights; the output is writable, and nobody else's.
    pub unsafe fn compute<C: Combine>(&self, isa: Isa) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match isa.level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => self.avx512::<C>(self.shared_avx512::<C>()),
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => self.avx2::<C>(self.shared_avx2::<C>()),
                _ => self.vectors::<Baseline, C>(self.shared_baseline::<C>()),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<C: Combine>(&self, from: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m512, C>(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<C: Combine>(&self, from: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m256, C>(from) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn shared_avx512<C: Combine>(&self) -> usize {
        // SAFETY: as demanded of the caller.
        unsafe { self.all_shared::<std::arch::x86_64::__m512, C>() }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn shared_avx2<C: Combine>(&self) -> usize {
        // SAFETY: as demanded of the caller.
        unsafe { self.all_shared::<std::arch::x86_64::__m256, C>() }
    }

    unsafe fn shared_baseline<C: Combine>(&self) -> usize {
        // SAFETY: as demanded of the caller.
        unsafe { self.all_shared::<Baseline, C>() }
    }

    /// The rows of windows that share rows of the strip, four and more at once; the first one that is left.
    #[inline(always)]
    unsafe fn all_shared<V: Vector, C: Combine>(&self) -> usize {
        // The sums of two registers of windows, and what else is needed at once, fit into the registers.
        let most = if V::LANES == 16 { SHARED } else { SHARED - 1 };
        let share = (self.taps.len() / self.taps_across).min(most);
        let mut row = 0;
        while self.step == self.line && share.min(self.rows - row) >= LEAST_SHARED {
            let rows = self.rows - row;
            // Tiles of about the same size.
            let rows = rows.div_ceil(rows.div_ceil(share)).max(LEAST_SHARED);
            // SAFETY: as demanded of the caller; the tiles are parts of the windows.
            unsafe { self.together::<V, C>(row, rows) };
            row += rows;
        }
        row
    }

    /// The other rows, in tiles of eight registers, to hide the latency of an addition: down a column of registers, or
    /// along a row.
    #[inline(always)]
    unsafe fn vectors<V: Vector, C: Combine>(&self, from: usize) {
        // SAFETY: as demanded of the caller; the tiles are parts of the windows.
        unsafe {
            let mut row = from;
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

    /// 4 to 7 rows from `row` on, under which there are as many rows of taps.
    #[inline(always)]
    unsafe fn together<V: Vector, C: Combine>(&self, row: usize, rows: usize) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match rows {
                LEAST_SHARED => self.shared_rows::<V, C, LEAST_SHARED>(row),
                5 => self.shared_rows::<V, C, 5>(row),
                SHARED if V::LANES == 16 => self.shared_rows::<V, C, SHARED>(row),
                _ => self.shared_rows::<V, C, 6>(row),
            }
        }
    }

    #[inline(always)]
    unsafe fn shared_rows<V: Vector, C: Combine, const ROWS: usize>(&self, row: usize) {
        let mut column = 0;
        // SAFETY: as demanded of the caller.
        unsafe {
            while column < self.columns {
                let left = self.columns - column;
                #[cfg(target_arch = "x86_64")]
                if V::LANES == 16 && left <= Ymm::LANES {
                    self.shared_half::<C, ROWS>(row, column);
                    return;
                }
                if left > V::LANES {
                    self.shared::<V, C, ROWS, 2>(row, column);
                    column += 2 * V::LANES;
                } else {
                    self.shared::<V, C, ROWS, 1>(row, column);
                    column += V::LANES;
                }
            }
        }
    }

    /// The last columns, in half a register of AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl")]
    unsafe fn shared_half<C: Combine, const ROWS: usize>(&self, row: usize, column: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { self.shared::<Ymm, C, ROWS, 1>(row, column) }
    }

    /// ROWS rows of windows, one row of the strip apart and no more than the windows have: an element that is loaded
    /// counts in all of them.
    #[inline(always)]
    unsafe fn shared<V: Vector, C: Combine, const ROWS: usize, const COUNT: usize>(&self, row: usize, column: usize) {
        // SAFETY: as demanded of the caller. Elements read behind the last window are not stored.
        unsafe {
            let across = self.taps_across;
            let (places, down) = (&self.taps[..across], self.taps.len() / across);
            let mut sums = [[V::splat(self.first); COUNT]; ROWS];
            let mut x = self.x.add(row * self.step + column);
            let mut weights = self.weights;
            let counts = |line: usize| self.lines.contains(&(row + line));
            for _ in 0..self.channels {
                // The windows that a line is under are constants, so that their sums stay in registers.
                macro_rules! lines {
                    ($($line:literal)*) => {
                        $(if $line < ROWS - 1 && counts($line) {
                            let at = SharedLine { x: x.add($line * self.line), weights, line: $line, places };
                            at.add::<V, C, ROWS, COUNT>(&mut sums, 0..$line + 1);
                        })*
                        for line in ROWS - 1..down {
                            if counts(line) {
                                let at = SharedLine { x: x.add(line * self.line), weights, line, places };
                                at.add::<V, C, ROWS, COUNT>(&mut sums, 0..ROWS);
                            }
                        }
                        $(if $line < ROWS - 1 && counts(down + $line) {
                            let line = down + $line;
                            let at = SharedLine { x: x.add(line * self.line), weights, line, places };
                            at.add::<V, C, ROWS, COUNT>(&mut sums, $line + 1..ROWS);
                        })*
                    };
                }
                lines!(0 1 2 3 4 5);
                x = x.wrapping_add(self.channel);
                weights = weights.wrapping_add(self.taps.len());
            }
            self.store::<V, C, ROWS, COUNT>(&sums, row, column);
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
            self.store::<V, C, ROWS, COUNT>(&sums, row, column);
        }
    }

    #[inline(always)]
    unsafe fn store<V: Vector, C: Combine, const ROWS: usize, const COUNT: usize>(
        &self,
        sums: &[[V; COUNT]; ROWS],
        row: usize,
        column: usize,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            for (i, sums) in sums.iter().enumerate() {
                for (j, &(mut sum)) in sums.iter().enumerate() {
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

/// One row of the strip.
struct SharedLine<'a> {
    x: *const f32,
    /// Those of a channel.
    weights: *const f32,
    /// Its number below the first row of windows.
    line: usize,
    /// The places of a row of taps.
    places: &'a [usize],
}

impl SharedLine<'_> {
    /// Combines its elements with the sums of some rows of windows that it is under.
    ///
    /// # Safety
    /// As of `PlaneWindows::compute`; `rows` is a constant.
    #[inline(always)]
    unsafe fn add<V: Vector, C: Combine, const ROWS: usize, const COUNT: usize>(
        &self,
        sums: &mut [[V; COUNT]; ROWS],
        rows: Range<usize>,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            for (tap, &place) in self.places.iter().enumerate() {
                let mut x = [V::splat(0.0); COUNT];
                for (j, x) in x.iter_mut().enumerate() {
                    *x = V::load(self.x.add(place + j * V::LANES));
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    if !rows.contains(&i) {
                        continue;
                    }
                    let mut weight = V::splat(0.0);
                    if C::WEIGHTS {
                        weight = V::splat(*self.weights.add((self.line - i) * self.places.len() + tap));
                    }
                    for (sum, x) in sums.iter_mut().zip(&x) {
                        *sum = C::step(*sum, *x, || weight);
                    }
                }
            }
        }
    }
}
