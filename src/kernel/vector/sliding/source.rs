//! The elements under a register of windows, read from the image in place.
//!
//! A register holds the elements under one tap of neighbouring windows of a row. With a stride of two these are every
//! second one of two registers of elements, which makes two taps; the other taps have the same ones a lane further, and
//! one that is loaded by itself. The lanes beyond the ends of a row are masked.

use crate::kernel::vector::lanes::Vector;
use crate::kernel::vector::window::Axis;

/// In place of a stride: windows are one element apart, and taps any number.
pub const APART: usize = 0;

/// The rows of elements of a channel.
#[derive(Clone, Copy)]
pub struct Lines {
    pub x: *const f32,
    pub before: usize,
    pub count: usize,
    /// Floats of one.
    pub pitch: usize,
}

impl Lines {
    /// A row by its number in the padded image; `None` beyond its ends.
    #[inline(always)]
    pub fn at(&self, row: usize) -> Option<*const f32> {
        let at = row.wrapping_sub(self.before);
        if at < self.count { Some(self.x.wrapping_add(at * self.pitch)) } else { None }
    }
}

/// The elements under a register of windows in any row.
pub struct WindowSource<V: Vector, const TAPS: usize, const STRIDE: usize, const EDGE: bool> {
    /// The first window's column.
    pub column: usize,
    /// The place of the first one in its row, which may lie before the first element.
    begin: isize,
    /// The lanes with elements, by taps and registers.
    inside: [[V::Mask; 2]; TAPS],
    /// Elements of a row, and from one tap to the next, if these are `APART`.
    input: usize,
    apart: usize,
}

/// Whether a register of windows reads elements beyond the ends of a row.
#[inline(always)]
pub fn has_edge<V: Vector>(across: &Axis, column: usize) -> bool {
    let (at, before) = (column * across.stride, across.before);
    let span = (across.taps - 1) * across.dilation + 1;
    at < before || at - before + span - across.stride + across.stride * V::LANES > across.input
}

impl<V: Vector, const TAPS: usize, const STRIDE: usize, const EDGE: bool> WindowSource<V, TAPS, STRIDE, EDGE> {
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    pub unsafe fn new(across: &Axis, column: usize) -> Self {
        let stride = if STRIDE == APART { 1 } else { STRIDE };
        let begin = (column * stride).wrapping_sub(across.before) as isize;
        let lane = |element: usize, at: isize| (element as isize - at).clamp(0, V::LANES as isize) as usize;
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut inside = [[V::lanes(0, 0); 2]; TAPS];
            if EDGE {
                for (tap, inside) in inside.iter_mut().enumerate() {
                    for (half, inside) in inside.iter_mut().enumerate().take(stride) {
                        let at = begin + (tap * across.dilation + half * V::LANES) as isize;
                        *inside = V::lanes(lane(0, at), lane(across.input, at));
                    }
                }
            }
            WindowSource { column, begin, inside, input: across.input, apart: across.dilation }
        }
    }

    /// One register of elements for a tap.
    ///
    /// # Safety
    /// The processor has the instructions of V; `line` is a row of elements.
    #[inline(always)]
    unsafe fn load(&self, line: *const f32, tap: usize, half: usize, beyond: f32) -> V {
        let apart = if STRIDE == APART { self.apart } else { 1 };
        let from = line.wrapping_offset(self.begin).wrapping_add(tap * apart + half * V::LANES);
        // SAFETY: as demanded of the caller.
        unsafe { if EDGE { V::load_lanes(from, self.inside[tap][half], beyond) } else { V::load(from) } }
    }

    /// One element.
    ///
    /// # Safety
    /// `line` is a row of elements.
    #[inline(always)]
    unsafe fn element(&self, line: *const f32, at: usize, beyond: f32) -> f32 {
        let at = self.begin.wrapping_add_unsigned(at);
        // SAFETY: as demanded of the caller; without edges it is under a window.
        if !EDGE || (at as usize) < self.input { unsafe { *line.offset(at) } } else { beyond }
    }

    /// The elements of all taps.
    ///
    /// # Safety
    /// As of `load`.
    #[inline(always)]
    pub unsafe fn under(&self, line: *const f32, beyond: f32) -> [V; TAPS] {
        // SAFETY: as demanded of the caller.
        unsafe {
            if STRIDE == 1 || STRIDE == APART {
                let mut x = [V::splat(beyond); TAPS];
                for (tap, x) in x.iter_mut().enumerate() {
                    *x = self.load(line, tap, 0, beyond);
                }
                return x;
            }
            self.run(line, beyond).under()
        }
    }

    /// The elements under a register of windows two columns apart.
    ///
    /// # Safety
    /// As of `load`.
    #[inline(always)]
    pub unsafe fn run(&self, line: *const f32, beyond: f32) -> ElementRun<V, TAPS> {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut run = ElementRun::splat(beyond);
            run.registers = [self.load(line, TAPS % 2, 0, beyond), self.load(line, TAPS % 2, 1, beyond)];
            if TAPS > 2 {
                run.first = self.element(line, 0, beyond);
            }
            if TAPS > 3 {
                let behind = TAPS % 2 + 2 * V::LANES;
                run.last[0] = self.element(line, behind, beyond);
                run.last[1] = self.element(line, behind + 1, beyond);
                if TAPS > 5 {
                    run.last[2] = self.element(line, behind + 2, beyond);
                    run.last[3] = self.element(line, behind + 3, beyond);
                }
            }
            run
        }
    }

    /// Those under some registers of windows; nothing but `beyond` where there is no row.
    ///
    /// # Safety
    /// As of `load`.
    #[inline(always)]
    pub unsafe fn runs<const COUNT: usize>(
        &self,
        line: Option<*const f32>,
        beyond: f32,
    ) -> [ElementRun<V, TAPS>; COUNT] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut runs = [ElementRun::splat(beyond); COUNT];
            if let Some(line) = line {
                for (register, run) in runs.iter_mut().enumerate() {
                    *run = self.run(line.wrapping_add(register * STRIDE * V::LANES), beyond);
                }
            }
            runs
        }
    }
}

/// Neighbouring elements of a row, which are under windows two columns apart: two registers, and those before and
/// behind them that the number of taps asks for.
#[derive(Clone, Copy)]
pub struct ElementRun<V: Vector, const TAPS: usize> {
    pub registers: [V; 2],
    pub first: f32,
    last: [f32; 4],
}

impl<V: Vector, const TAPS: usize> ElementRun<V, TAPS> {
    /// Nothing but `beyond`.
    ///
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    pub unsafe fn splat(beyond: f32) -> Self {
        // SAFETY: as demanded of the caller.
        ElementRun { registers: unsafe { [V::splat(beyond); 2] }, first: beyond, last: [beyond; 4] }
    }

    /// By taps.
    ///
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    pub unsafe fn under(&self) -> [V; TAPS] {
        let (pair, [first, second]) = (TAPS % 2, self.registers);
        // SAFETY: as demanded of the caller.
        unsafe {
            let (evens, odds) = (first.evens(second), first.odds(second));
            let mut x = [evens; TAPS];
            x[pair + 1] = odds;
            if TAPS > 2 {
                x[0] = odds.after(self.first);
            }
            if TAPS > 3 {
                x[3] = evens.before(self.last[0]);
                x[4] = odds.before(self.last[1]);
            }
            if TAPS > 5 {
                x[5] = x[3].before(self.last[2]);
                x[6] = x[4].before(self.last[3]);
            }
            x
        }
    }
}
