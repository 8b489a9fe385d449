//! Windows whose elements are combined down the rows of the image first, and then across.
//!
//! The rows under a row of windows become one, where they are: so what is done once for each element is only this, and
//! edges, strides and taps across cost what one row of many costs.
//!
//! Determinism: columns of a window are combined from the top, and then with one another from the left, whatever the
//! tile. Sums depend on that order; the greatest numbers of such that `SameInAnyOrder` accepts do not.

use super::combine::Combine;
use crate::kernel::vector::isa::{Isa, SimdLevel};
use crate::kernel::vector::lanes::{Baseline, Vector};
use crate::kernel::vector::levels::LevelLoop;
use crate::kernel::vector::strip::PieceRows;
use crate::kernel::vector::window::{Axis, EdgeMode};
use std::ops::Range;

/// Lanes of the largest register.
const LANES: usize = 16;
/// Registers of elements that are folded together.
const TOGETHER: usize = 2;
/// The bits of all zeros but those with a sign, and of all infinities.
const NEGATIVE_ZERO: i32 = i32::MIN;
const INFINITY: i32 = f32::INFINITY.to_bits() as i32;

/// Whether the greatest of some of them is the same one, bit by bit, in whatever order they are compared.
pub struct SameInAnyOrder<'a> {
    pub x: &'a [f32],
}

impl LevelLoop for SameInAnyOrder<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        // As integers a NaN has a magnitude beyond that of infinity, and a negative zero is less than all others.
        let (mut most, mut least) = (0, 0);
        for x in self.x {
            let bits = x.to_bits() as i32;
            (most, least) = (most.max(bits & i32::MAX), least.min(bits));
        }
        most <= INFINITY && least != NEGATIVE_ZERO
    }
}

/// Windows of one plane of the output: some rows of some columns.
pub struct DownFirst<'a> {
    /// The plane of the image.
    pub x: &'a [f32],
    pub down: &'a Axis,
    pub across: &'a Axis,
    pub rows: PieceRows,
    pub columns: Range<usize>,
    /// As many floats as `FoldedRows` says, for all of a piece.
    pub folded: *mut f32,
    /// The divisors of the rows, and those of the columns, with a register's more behind them.
    pub divisors: Option<[*const f32; 2]>,
    pub out: *mut f32,
    /// Floats from one row of windows to the next.
    pub out_step: usize,
}

/// Whether windows may go this way.
pub fn suits(down: &Axis, across: &Axis) -> bool {
    let is_padded = |axis: &Axis| axis.edge == EdgeMode::Zero && axis.taps > 1;
    is_padded(down) && is_padded(across)
}

/// The rows that are folded, one for each row of windows, with padding before and behind the elements.
#[derive(Clone, Copy)]
pub struct FoldedRows {
    /// Floats of the padding before the first element, of the elements, and from one row to the next.
    before: usize,
    len: usize,
    pitch: usize,
    /// The first element.
    begin: usize,
}

impl FoldedRows {
    /// Those of some columns of windows.
    fn new(across: &Axis, columns: &Range<usize>) -> FoldedRows {
        let Axis { input, taps, stride, dilation, before, .. } = *across;
        let first = columns.start * stride;
        let begin = first.saturating_sub(before).min(input);
        let end = ((columns.end - 1) * stride + (taps - 1) * dilation + 1).saturating_sub(before).clamp(begin, input);
        let (before, len) = (before.saturating_sub(first), end - begin);
        FoldedRows { before, len, pitch: pitch(across, columns.len()), begin }
    }

    /// Floats of so many rows of so many windows, the most of a piece, and of one row more. They are stored, and read,
    /// in whole registers.
    pub fn floats(across: &Axis, rows: usize, columns: usize) -> usize {
        (rows + 1) * pitch(across, columns) + 3 * LANES
    }
}

/// Floats from one row of so many windows to the next: these are read in whole registers, as are the elements.
fn pitch(across: &Axis, columns: usize) -> usize {
    (columns.max(LANES) * across.stride + (across.taps - 1) * across.dilation).next_multiple_of(LANES)
}

impl DownFirst<'_> {
    /// # Safety
    /// The processor has the instruction set, and `suits` the windows. The plane is that of the axes; there are the
    /// memory, and divisors if the combination wants them; the output is writable; both are nobody else's.
    pub unsafe fn compute<C: Combine>(&self, isa: Isa) {
        let folded = FoldedRows::new(self.across, &self.columns);
        // SAFETY: as demanded of the caller. Few columns take less time in half a register of AVX-512.
        unsafe {
            match isa.level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => {
                    self.fold_avx512::<C>(&folded);
                    let (count, few) = (self.columns.len(), self.columns.len() % LANES);
                    let wide = if self.is_sparse() || few == 0 || few > LANES / 2 { count } else { count - few };
                    if wide > 0 {
                        self.across_avx512::<C>(&folded, 0..wide);
                    }
                    if wide < count {
                        self.across_avx2::<C>(&folded, wide..count);
                    }
                }
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => {
                    self.fold_avx2::<C>(&folded);
                    self.across_avx2::<C>(&folded, 0..self.columns.len());
                }
                _ => {
                    self.fold::<Baseline, C>(&folded);
                    self.across::<Baseline, C>(&folded, 0..self.columns.len());
                }
            }
        }
    }

    /// Whether the results of windows at all elements are computed, of which every `stride`-th counts.
    fn is_sparse(&self) -> bool {
        let Axis { stride, dilation, .. } = *self.across;
        stride != 1 && (stride, dilation) != (2, 1)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn fold_avx512<C: Combine>(&self, folded: &FoldedRows) {
        // SAFETY: as demanded of the caller.
        unsafe { self.fold::<std::arch::x86_64::__m512, C>(folded) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn fold_avx2<C: Combine>(&self, folded: &FoldedRows) {
        // SAFETY: as demanded of the caller.
        unsafe { self.fold::<std::arch::x86_64::__m256, C>(folded) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn across_avx512<C: Combine>(&self, folded: &FoldedRows, columns: Range<usize>) {
        // SAFETY: as demanded of the caller.
        unsafe { self.across::<std::arch::x86_64::__m512, C>(folded, columns) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn across_avx2<C: Combine>(&self, folded: &FoldedRows, columns: Range<usize>) {
        // SAFETY: as demanded of the caller.
        unsafe { self.across::<std::arch::x86_64::__m256, C>(folded, columns) }
    }

    /// Writes a row for each row of windows.
    #[inline(always)]
    unsafe fn fold<V: Vector, C: Combine>(&self, folded: &FoldedRows) {
        let Axis { input, taps, stride, dilation, before, .. } = *self.down;
        let width = self.across.input;
        // A division takes as long as a short row.
        let taps_of = |places: usize| if dilation == 1 { places } else { places.div_ceil(dilation) };
        // SAFETY: as demanded of the caller.
        unsafe {
            for row in 0..self.rows.count {
                let first = self.rows.at(row) * stride;
                // The taps between the ends.
                let begin = taps_of(before.saturating_sub(first)).min(taps);
                let end = taps_of((input + before).saturating_sub(first)).clamp(begin, taps);
                let line = (first + begin * dilation).wrapping_sub(before);
                let lines = FoldedLines {
                    x: self.x.as_ptr().wrapping_add(line.wrapping_mul(width).wrapping_add(folded.begin)),
                    count: end - begin,
                    step: dilation * width,
                    len: folded.len,
                    left: (input * width).saturating_sub(line.wrapping_mul(width).wrapping_add(folded.begin)),
                };
                let to = self.folded.add(row * folded.pitch);
                fill::<V>(to, folded.before, C::BEYOND);
                let to = to.add(folded.before);
                lines.fold::<V, C>(to);
                // Behind it begins the next row, which is written later.
                fill::<V>(to.add(folded.len), folded.pitch - folded.before - folded.len, C::BEYOND);
            }
        }
    }

    /// Combines the elements under the taps of a row, of some of the columns up to the last one, or, sparse, of all.
    #[inline(always)]
    unsafe fn across<V: Vector, C: Combine>(&self, folded: &FoldedRows, columns: Range<usize>) {
        let Axis { taps, stride, dilation, .. } = *self.across;
        let (count, is_sparse) = (self.columns.len(), self.is_sparse());
        let last = count.saturating_sub(V::LANES);
        // SAFETY: as demanded of the caller. It is behind what belongs to the rows.
        let all = unsafe { self.folded.add(self.rows.count * folded.pitch + 2 * LANES) };
        // Behind a row narrower than a register are the next ones, which are stored later.
        let cut = if count < V::LANES { V::LANES.div_ceil(count) - 1 } else { 0 };
        let whole = if cut == 0 || self.out_step == count { self.rows.count.saturating_sub(cut) } else { 0 };
        // SAFETY: as demanded of the caller. The last register has some windows once more.
        unsafe {
            for row in 0..self.rows.count {
                let x = self.folded.add(row * folded.pitch).cast_const();
                let out = self.out.add(row * self.out_step);
                if is_sparse {
                    for at in (0..(count - 1) * stride + 1).step_by(V::LANES) {
                        of_neighbours::<V, C>(x.add(at), taps, dilation).store(all.add(at));
                    }
                    pick(all, stride, if C::DIVIDED { all } else { out }, count);
                    if !C::DIVIDED {
                        continue;
                    }
                }
                for column in columns.clone().step_by(V::LANES).map(|column| column.min(last)) {
                    let mut result = match stride {
                        _ if is_sparse => V::load(all.add(column)),
                        1 => of_neighbours::<V, C>(x.add(column), taps, dilation),
                        _ => of_seconds::<V, C>(x.add(2 * column), taps),
                    };
                    if let (true, Some([of_rows, of_columns])) = (C::DIVIDED, self.divisors) {
                        let of_row = V::splat(*of_rows.add(row));
                        result = result.div(V::load(of_columns.add(column)).mul(of_row));
                    }
                    if row < whole {
                        result.store(out.add(column));
                    } else {
                        result.store_part(out.add(column), count);
                    }
                }
            }
        }
    }
}

/// The rows of elements under a row of windows.
struct FoldedLines {
    x: *const f32,
    count: usize,
    /// Floats from one to the next.
    step: usize,
    len: usize,
    /// Elements from there to the end of the plane.
    left: usize,
}

impl FoldedLines {
    /// Writes whole registers, from the first element on.
    ///
    /// # Safety
    /// The processor has the instructions of V; the elements exist, and so many floats, and a register's, can be
    /// written.
    #[inline(always)]
    unsafe fn fold<V: Vector, C: Combine>(&self, to: *mut f32) {
        // SAFETY: as demanded of the caller.
        unsafe {
            if self.len < V::LANES {
                let lanes = V::lanes(0, self.len);
                let mut all = V::splat(C::BEYOND);
                for at in (0..self.count).map(|line| line * self.step) {
                    // Lanes beyond the row hold what is there, if anything, and do not count.
                    let x = match at + V::LANES <= self.left {
                        true => V::load(self.x.add(at)),
                        false => V::load_lanes(self.x.add(at), lanes, C::BEYOND),
                    };
                    all = C::step(all, x, || x);
                }
                all.store(to);
                return;
            }
            let mut column = 0;
            while column < self.len {
                match self.len - column > V::LANES {
                    true => self.registers::<V, C, TOGETHER>(column, to),
                    false => self.registers::<V, C, 1>(column, to),
                }
                column += TOGETHER * V::LANES;
            }
        }
    }

    /// COUNT registers: those that would go beyond the end have some elements once more.
    ///
    /// # Safety
    /// As of `fold`; there is a register of elements.
    #[inline(always)]
    unsafe fn registers<V: Vector, C: Combine, const COUNT: usize>(&self, column: usize, to: *mut f32) {
        let places: [usize; COUNT] = std::array::from_fn(|i| (column + i * V::LANES).min(self.len - V::LANES));
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut all = [V::splat(C::BEYOND); COUNT];
            let mut line = self.x;
            for _ in 0..self.count {
                for (all, &place) in all.iter_mut().zip(&places) {
                    let x = V::load(line.add(place));
                    *all = C::step(*all, x, || x);
                }
                line = line.wrapping_add(self.step);
            }
            for (all, &place) in all.iter().zip(&places) {
                all.store(to.add(place));
            }
        }
    }
}

/// Writes so many floats, and up to a register's behind them.
///
/// # Safety
/// The processor has the instructions of V; so many floats can be written.
#[inline(always)]
unsafe fn fill<V: Vector>(to: *mut f32, count: usize, value: f32) {
    for at in (0..count).step_by(V::LANES) {
        // SAFETY: as demanded of the caller.
        unsafe { V::splat(value).store(to.add(at)) };
    }
}

/// Copies every `step`-th float, to the first of them or elsewhere.
///
/// # Safety
/// They exist, and places for them.
// By itself, with the instructions that all processors have: of others compilers make gathers, which take AMD's several
// times as long.
#[inline(never)]
unsafe fn pick(from: *const f32, step: usize, to: *mut f32, count: usize) {
    for i in 0..count {
        // SAFETY: as demanded of the caller.
        unsafe { *to.add(i) = *from.add(i * step) };
    }
}

/// The combination of some taps for a register of windows, an element apart.
///
/// # Safety
/// The processor has the instructions of V; the elements exist, as whole registers.
#[inline(always)]
unsafe fn of_neighbours<V: Vector, C: Combine>(x: *const f32, taps: usize, dilation: usize) -> V {
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut all = V::splat(C::BEYOND);
        let mut from = x;
        for _ in 0..taps {
            let x = V::load(from);
            all = C::step(all, x, || x);
            from = from.wrapping_add(dilation);
        }
        all
    }
}

/// The same of windows two elements apart, two neighbouring taps at once: every second element of two registers.
///
/// # Safety
/// As of `of_neighbours`.
#[inline(always)]
unsafe fn of_seconds<V: Vector, C: Combine>(x: *const f32, taps: usize) -> V {
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut all = V::splat(C::BEYOND);
        for tap in (0..taps).step_by(2) {
            let (first, second) = (V::load(x.add(tap)), V::load(x.add(tap + V::LANES)));
            let (even, odd) = (first.evens(second), first.odds(second));
            all = C::step(all, even, || even);
            if tap + 1 < taps {
                all = C::step(all, odd, || odd);
            }
        }
        all
    }
}
