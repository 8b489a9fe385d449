//! Windows of a register's columns, down the rows of a plane.

use super::combine::{Combine, within};
use super::source::{Lines, WindowSource};
use crate::kernel::vector::lanes::Vector;
use crate::kernel::vector::window::Axis;
use std::ops::Range;

/// Rows of windows of a tile over several channels, which share the rows of elements under them.
pub const ROWS: usize = 4;
/// Taps of a row of windows whose weights are kept in registers, or beside them, in whole ones.
const FEW_TAPS: usize = 5;

/// One plane of the output.
pub struct WindowPlane {
    /// The rows of the first plane of its image, and the floats from one plane to the next.
    pub lines: Lines,
    pub plane: usize,
    /// Planes under a window, the depth of windows, and the slice of the output.
    pub channels: usize,
    pub slices: Axis,
    pub slice: usize,
    /// For each channel and tap, if the combination wants it.
    pub weights: *const f32,
    /// The value of a window without elements.
    pub first: f32,
    /// The divisors of the rows that are computed, and those of the columns.
    pub divisors: [*const f32; 2],
    /// As of `WindowEnds`.
    pub bounds: Option<[f32; 2]>,
    pub out: *mut f32,
    pub columns: usize,
    /// Floats from one row of windows to the next.
    pub out_step: usize,
}

/// The place of a tile.
pub struct TilePlace {
    pub rows: Range<usize>,
    pub column: usize,
    /// The end of the rows that are stored as whole registers: behind a row narrower than a register are the next ones,
    /// which are stored later.
    whole: usize,
}

impl TilePlace {
    /// A tile in so many rows of so many columns, which follow one another if they are dense.
    pub fn new<V: Vector>(rows: usize, column: usize, (columns, are_dense): (usize, bool)) -> Self {
        let cut = if columns < V::LANES { V::LANES.div_ceil(columns) - 1 } else { 0 };
        let whole = if cut == 0 || are_dense { rows.saturating_sub(cut) } else { 0 };
        TilePlace { whole, rows: 0..rows, column }
    }
}

impl WindowPlane {
    /// Completes the windows of a row.
    #[inline(always)]
    unsafe fn store<V: Vector, C: Combine>(&self, mut result: V, row: usize, at: &TilePlace, column: usize) {
        // SAFETY: as demanded of the caller; windows of this column that exist are stored.
        unsafe {
            if C::DIVIDED {
                let [of_rows, of_columns] = self.divisors;
                let of_row = V::splat(*of_rows.add(row - at.rows.start));
                result = result.div(V::load(of_columns.add(column)).mul(of_row));
            }
            if C::WEIGHTS
                && let Some(bounds) = self.bounds
            {
                result = within(result, bounds);
            }
            let out = self.out.add(row * self.out_step + column);
            if row < at.whole {
                result.store(out);
            } else {
                result.store_part(out, self.columns);
            }
        }
    }

    /// Under COUNT registers of windows of as many rows as columns, DOWN rows apart: each row of elements is loaded
    /// once, for all windows that it is under.
    ///
    /// # Safety
    /// The processor has the instructions of V. The elements, weights and divisors are readable, the rows of the output
    /// are writable, and nobody else's.
    #[inline(always)]
    pub unsafe fn stream<
        V: Vector,
        C: Combine,
        const TAPS: usize,
        const DOWN: usize,
        const STRIDE: usize,
        const EDGE: bool,
        const COUNT: usize,
    >(
        &self,
        sources: &[WindowSource<V, TAPS, STRIDE, EDGE>; COUNT],
        at: &TilePlace,
    ) {
        // A copy, which a store of floats cannot change.
        let lines = self.lines;
        // SAFETY: as demanded of the caller.
        unsafe {
            let first = V::splat(self.first);
            let mut weights = [[first; TAPS]; TAPS];
            if C::WEIGHTS && TAPS <= FEW_TAPS {
                for (i, weight) in weights.as_flattened_mut().iter_mut().enumerate() {
                    *weight = V::splat(*self.weights.add(i));
                }
            }
            let mut open = OpenWindows { first, weights, single: self.weights, sums: [[first; COUNT]; TAPS] };
            // Constants, so that no window is addressed by its number.
            if TAPS - DOWN > 0 {
                open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, at.rows.start, 0);
            }
            if TAPS - DOWN > 1 {
                open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, at.rows.start, 1);
            }
            if TAPS - DOWN > 2 {
                open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, at.rows.start, 2);
            }
            if TAPS - DOWN > 3 {
                open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, at.rows.start, 3);
            }
            if TAPS - DOWN > 4 {
                open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, at.rows.start, 4);
            }
            if TAPS - DOWN > 5 {
                open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, at.rows.start, 5);
            }
            for row in at.rows.clone() {
                if DOWN == 2 {
                    open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, row, TAPS - 2);
                }
                open.add::<C, DOWN, STRIDE, EDGE>(sources, lines, row, TAPS - 1);
                for (register, source) in sources.iter().enumerate() {
                    self.store::<V, C>(open.sums[0][register], row, at, source.column);
                }
                for i in 1..TAPS {
                    open.sums[i - 1] = open.sums[i];
                }
                open.sums[TAPS - 1] = [first; COUNT];
            }
        }
    }

    /// As `stream`, under windows of three rows and columns, two apart, whose elements may be combined in any order:
    /// first with those below them, so that a row of windows sorts one row of elements by their taps.
    ///
    /// # Safety
    /// As of `stream`.
    #[inline(always)]
    pub unsafe fn down_first<
        V: Vector,
        C: Combine,
        const TAPS: usize,
        const STRIDE: usize,
        const EDGE: bool,
        const COUNT: usize,
    >(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        at: &TilePlace,
    ) {
        let lines = self.lines;
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut above = source.runs::<COUNT>(lines.at(2 * at.rows.start), C::BEYOND);
            for row in at.rows.clone() {
                let mut most = above;
                for below in 1..TAPS {
                    above = source.runs::<COUNT>(lines.at(2 * row + below), C::BEYOND);
                    for register in 0..COUNT {
                        let (most, next) = (&mut most[register], &above[register]);
                        for half in 0..2 {
                            let x = next.registers[half];
                            most.registers[half] = C::step(most.registers[half], x, || x);
                        }
                        most.first = C::step(most.first, next.first, || next.first);
                    }
                }
                for (register, most) in most.iter().enumerate() {
                    let mut x = most.under();
                    for tap in 1..TAPS {
                        x[0] = C::step(x[0], x[tap], || x[0]);
                    }
                    self.store::<V, C>(x[0], row, at, at.column + register * V::LANES);
                }
            }
        }
    }

    /// One row of windows after the other, of `taps` rows of elements, `stride` apart.
    ///
    /// # Safety
    /// As of `stream`; the combination wants no weights.
    #[inline(always)]
    pub unsafe fn row_by_row<V: Vector, C: Combine, const TAPS: usize, const STRIDE: usize, const EDGE: bool>(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        at: &TilePlace,
        (taps, stride): (usize, usize),
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            for row in at.rows.clone() {
                let mut sum = V::splat(self.first);
                for down in 0..taps {
                    let Some(line) = self.lines.at(row * stride + down) else { continue };
                    for x in source.under(line, C::BEYOND) {
                        sum = C::step(sum, x, || x);
                    }
                }
                self.store::<V, C>(sum, row, at, at.column);
            }
        }
    }

    /// Over all channels, `ROWS` rows of windows at once.
    ///
    /// # Safety
    /// As of `stream`; there are as many rows.
    #[inline(always)]
    pub unsafe fn sums<V: Vector, C: Combine, const TAPS: usize, const STRIDE: usize, const EDGE: bool>(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        at: &TilePlace,
    ) {
        for row in at.rows.clone().step_by(ROWS) {
            // The last tile computes some rows once more.
            let row = row.min(at.rows.end - ROWS);
            // SAFETY: as demanded of the caller.
            unsafe {
                let mut sums = [V::splat(self.first); ROWS];
                let (mut lines, mut weights) = (self.lines, self.weights);
                for channel in 0..self.channels {
                    let Some(plane) = self.slices.plane(self.slice, channel) else {
                        weights = weights.wrapping_add(TAPS * TAPS);
                        continue;
                    };
                    lines.x = self.lines.x.wrapping_add(plane * self.plane);
                    for down in 0..TAPS {
                        for (i, sum) in sums.iter_mut().enumerate() {
                            let Some(line) = lines.at((row + i) * STRIDE + down) else { continue };
                            for (tap, x) in source.under(line, C::BEYOND).into_iter().enumerate() {
                                *sum = C::step(*sum, x, || V::splat(*weights.add(tap)));
                            }
                        }
                        weights = weights.wrapping_add(TAPS);
                    }
                }
                for (i, sum) in sums.into_iter().enumerate() {
                    self.store::<V, C>(sum, row + i, at, at.column);
                }
            }
        }
    }
}

/// Windows that lack rows of elements: those of a row of the output, and of the rows below it.
struct OpenWindows<V: Vector, const TAPS: usize, const COUNT: usize> {
    first: V,
    /// Registers of the weights, or else, of many taps, the weights.
    weights: [[V; TAPS]; TAPS],
    single: *const f32,
    sums: [[V; COUNT]; TAPS],
}

impl<V: Vector, const TAPS: usize, const COUNT: usize> OpenWindows<V, TAPS, COUNT> {
    /// Combines the row of elements that is so far below the first one under a row of windows.
    ///
    /// # Safety
    /// The processor has the instructions of V; the lines are those of the source.
    #[inline(always)]
    unsafe fn add<C: Combine, const DOWN: usize, const STRIDE: usize, const EDGE: bool>(
        &mut self,
        sources: &[WindowSource<V, TAPS, STRIDE, EDGE>; COUNT],
        lines: Lines,
        row: usize,
        below: usize,
    ) {
        let Some(line) = lines.at(row * DOWN + below) else { return };
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut x = [[self.first; TAPS]; COUNT];
            for (x, source) in x.iter_mut().zip(sources) {
                *x = source.under(line, C::BEYOND);
            }
            if C::IN_ANY_ORDER {
                for x in &mut x {
                    for tap in 1..TAPS {
                        x[0] = C::step(x[0], x[tap], || x[0]);
                    }
                }
                self.step::<C, DOWN>(&x, below, 0);
                return;
            }
            self.step::<C, DOWN>(&x, below, 0);
            if TAPS > 1 {
                self.step::<C, DOWN>(&x, below, 1);
            }
            if TAPS > 2 {
                self.step::<C, DOWN>(&x, below, 2);
            }
            if TAPS > 3 {
                self.step::<C, DOWN>(&x, below, 3);
            }
            if TAPS > 4 {
                self.step::<C, DOWN>(&x, below, 4);
            }
            if TAPS > 5 {
                self.step::<C, DOWN>(&x, below, 5);
            }
            if TAPS > 6 {
                self.step::<C, DOWN>(&x, below, 6);
            }
        }
    }

    /// Combines the elements of one tap.
    ///
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    unsafe fn step<C: Combine, const DOWN: usize>(&mut self, x: &[[V; TAPS]; COUNT], below: usize, tap: usize) {
        for i in 0..TAPS {
            let down = below.wrapping_sub(i * DOWN);
            for register in 0..COUNT {
                let (sum, x) = (&mut self.sums[i][register], x[register][tap]);
                if C::IN_ANY_ORDER && down == 0 {
                    *sum = x;
                } else if down < TAPS {
                    let weight = match TAPS <= FEW_TAPS {
                        true => self.weights[down][tap],
                        // SAFETY: as demanded of the caller; there are weights of all taps.
                        false => unsafe { V::splat(*self.single.add(down * TAPS + tap)) },
                    };
                    // SAFETY: as demanded of the caller.
                    unsafe { *sum = C::step(*sum, x, || weight) };
                }
            }
        }
    }
}
