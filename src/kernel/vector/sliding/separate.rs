//! The greatest elements of windows: those of the rows under them first, and then those of these.
//!
//! The greatest number of a row of windows is that of runs of elements, and neighbouring rows of windows share most
//! rows of elements. So a window of K x K takes some 2 sqrt(K) and K / 4 steps instead of K x K.
//!
//! Determinism: whatever is taken together, the result is the first NaN in the order of rows and columns, or the last
//! one of equal greatest numbers, as if elements were taken in this order. This tells the zeros apart.

use super::combine::Combine;
use crate::kernel::vector::isa::{Isa, SimdLevel};
use crate::kernel::vector::lanes::{Baseline, Vector};
use std::ops::Range;

/// Rows of windows that share the elements under all of them.
const ROWS: usize = 4;
/// Taps that are taken in two steps: first some neighbours, and then these.
const TWO_STEPS: usize = 6;
/// Registers of windows that are taken together, to hide the latency of a step.
const TOGETHER: usize = 2;

/// Windows of one plane of the output.
pub struct SeparateWindows<'a> {
    /// The strip of the image, and as much memory for what is made of its rows.
    pub strip: *const f32,
    pub folded: *mut f32,
    /// Floats of a row of the strip, and those rows that have elements.
    pub line: usize,
    pub lines: Range<usize>,
    /// Rows of the strip from one row of windows to the next.
    pub lines_apart: usize,
    pub taps_down: usize,
    /// The places of a row of taps, as seen from their window, and whether a row has nothing but what is under its
    /// windows: it has no phases then, and taps are equally far apart.
    pub places: &'a [usize],
    pub is_dense: bool,
    pub out: *mut f32,
    /// Floats from one row of the output to the next.
    pub out_step: usize,
    pub rows: usize,
    pub columns: usize,
}

impl SeparateWindows<'_> {
    /// # Safety
    /// The processor has the instruction set. The strip has all elements under the windows and as many behind them as a
    /// register has lanes, and so has the memory; the output is writable; both are nobody else's.
    pub unsafe fn compute<C: Combine>(&self, isa: Isa) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match isa.level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => self.avx512::<C>(),
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => self.avx2::<C>(),
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

    #[inline(always)]
    unsafe fn vectors<V: Vector, C: Combine>(&self) {
        let x = if self.places.len() == 1 { self.strip } else { self.folded.cast_const() };
        // SAFETY: as demanded of the caller.
        unsafe {
            if self.places.len() > 1 {
                self.fold_lines::<V, C>();
            }
            let mut row = 0;
            while row < self.rows {
                let rows = self.rows - row;
                if self.lines_apart == 1 && self.taps_down >= ROWS && rows >= ROWS {
                    self.shared_rows::<V, C>(x, row);
                    row += ROWS;
                } else {
                    self.one_row::<V, C>(x, row);
                    row += 1;
                }
            }
        }
    }

    /// The greatest elements under the taps of a row, for all windows and rows.
    #[inline(always)]
    unsafe fn fold_lines<V: Vector, C: Combine>(&self) {
        let (places, lines) = (self.places, &self.lines);
        let last = places[places.len() - 1];
        let (begin, all) = (lines.start * self.line, lines.len() * self.line);
        // SAFETY: as demanded of the caller.
        unsafe {
            let (x, to) = (self.strip.add(begin), self.folded.add(begin));
            // Rows without phases follow one another, and what is computed across their ends counts nowhere.
            if !self.is_dense {
                for at in (0..lines.len()).map(|line| line * self.line) {
                    fold::<V, C>(x.add(at), to.add(at), self.columns, places);
                }
            } else if places.len() < TWO_STEPS {
                fold::<V, C>(x, to, all.saturating_sub(last), places);
            } else {
                let (some, step) = (places.len().isqrt(), places[1]);
                let run = (some - 1) * step;
                fold::<V, C>(x, to, all.saturating_sub(run), &places[..some]);
                fold_runs::<V, C>(to, all.saturating_sub(last), some * step, last - run);
            }
        }
    }

    /// The rows under a row of windows, which have elements.
    #[inline(always)]
    fn under(&self, row: usize) -> Range<usize> {
        let begin = row * self.lines_apart;
        begin.max(self.lines.start)..(begin + self.taps_down).min(self.lines.end)
    }

    #[inline(always)]
    unsafe fn one_row<V: Vector, C: Combine>(&self, x: *const f32, row: usize) {
        for column in self.registers::<V>() {
            // SAFETY: as demanded of the caller.
            unsafe { self.store(self.of_lines::<V, C>(x.add(column), self.under(row)), row, column) };
        }
    }

    /// The greatest ones of some rows.
    #[inline(always)]
    unsafe fn of_lines<V: Vector, C: Combine>(&self, x: *const f32, lines: Range<usize>) -> V {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut most = V::splat(C::BEYOND);
            for line in lines {
                let x = V::load(x.add(line * self.line));
                most = C::step(most, x, || x);
            }
            most
        }
    }

    /// Rows of windows one row of the strip apart: the rows under all of them are taken once.
    #[inline(always)]
    unsafe fn shared_rows<V: Vector, C: Combine>(&self, x: *const f32, row: usize) {
        let behind = row + self.taps_down;
        for column in self.registers::<V>() {
            // SAFETY: as demanded of the caller.
            unsafe {
                let x = x.add(column);
                let line = |line: usize| match self.lines.contains(&line) {
                    true => V::load(x.add(line * self.line)),
                    false => V::splat(C::BEYOND),
                };
                let greater = |a: V, b: V| C::step(a, b, || b);
                let all = (row + ROWS - 1).max(self.lines.start)..behind.min(self.lines.end);
                let all = self.of_lines::<V, C>(x, all);
                // Rows before those, the last ones, and rows behind them, the first ones.
                let third = line(row + 2);
                let second = greater(line(row + 1), third);
                let first = greater(line(row), second);
                let [one, two, three] = [line(behind), line(behind + 1), line(behind + 2)];
                let two = greater(one, two);
                let three = greater(two, three);
                self.store(greater(first, all), row, column);
                self.store(greater(greater(second, all), one), row + 1, column);
                self.store(greater(greater(third, all), two), row + 2, column);
                self.store(greater(all, three), row + 3, column);
            }
        }
    }

    /// The columns at which registers begin: the last one has some windows once more.
    #[inline(always)]
    fn registers<V: Vector>(&self) -> impl Iterator<Item = usize> + use<V> {
        let last = self.columns.saturating_sub(V::LANES);
        (0..self.columns).step_by(V::LANES).map(move |column| column.min(last))
    }

    #[inline(always)]
    unsafe fn store<V: Vector>(&self, most: V, row: usize, column: usize) {
        // Behind a row narrower than a register are the next ones, which are stored later.
        let cut = if self.columns < V::LANES { V::LANES.div_ceil(self.columns) - 1 } else { 0 };
        let is_whole = cut == 0 || self.out_step == self.columns && row + cut < self.rows;
        // SAFETY: as demanded of the caller.
        unsafe {
            let out = self.out.add(row * self.out_step + column);
            if is_whole { most.store(out) } else { most.store_part(out, self.columns) }
        }
    }
}

/// The greatest elements at some places, for `count` windows.
///
/// # Safety
/// The processor has the instructions of V; the elements and the results exist, and a register behind them.
#[inline(always)]
unsafe fn fold<V: Vector, C: Combine>(x: *const f32, to: *mut f32, count: usize, places: &[usize]) {
    let mut at = 0;
    // SAFETY: as demanded of the caller.
    unsafe {
        while at + V::LANES < count {
            fold_at::<V, C, TOGETHER>(x.add(at), to.add(at), places.iter().copied());
            at += TOGETHER * V::LANES;
        }
        if at < count {
            fold_at::<V, C, 1>(x.add(at), to.add(at), places.iter().copied());
        }
    }
}

/// In place, the greatest elements at the places that are `step` apart, up to `last`, and at `last`.
///
/// # Safety
/// As of `fold`.
#[inline(always)]
unsafe fn fold_runs<V: Vector, C: Combine>(x: *mut f32, count: usize, step: usize, last: usize) {
    let places = (0..last).step_by(step).chain([last]);
    let mut at = 0;
    // SAFETY: as demanded of the caller. Each place is read before it is written: nobody reads what lies before his
    // windows.
    unsafe {
        while at + V::LANES < count {
            fold_at::<V, C, TOGETHER>(x.add(at), x.add(at), places.clone());
            at += TOGETHER * V::LANES;
        }
        if at < count {
            fold_at::<V, C, 1>(x.add(at), x.add(at), places);
        }
    }
}

/// # Safety
/// As of `fold`.
#[inline(always)]
unsafe fn fold_at<V: Vector, C: Combine, const COUNT: usize>(
    x: *const f32,
    to: *mut f32,
    places: impl Iterator<Item = usize>,
) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut most = [V::splat(C::BEYOND); COUNT];
        for place in places {
            for (register, most) in most.iter_mut().enumerate() {
                let x = V::load(x.add(place + register * V::LANES));
                *most = C::step(*most, x, || x);
            }
        }
        for (register, most) in most.iter().enumerate() {
            most.store(to.add(register * V::LANES));
        }
    }
}
