//! The elements under a register of windows, read from the image in place.
//!
//! A register holds neighbouring windows of a row; with a stride of two, every second one of two registers of elements.
//! The lanes beyond the ends of a row are masked.

use crate::kernel::vector::lanes::Vector;
use crate::kernel::vector::window::Axis;

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
    /// The place of the first one in its row, which may lie before the first element.
    begin: isize,
    /// The lanes with elements, by taps and registers.
    inside: [[V::Mask; 2]; TAPS],
}

/// Whether a register of windows reads elements beyond the ends of a row.
#[inline(always)]
pub fn has_edge<V: Vector>(across: &Axis, column: usize) -> bool {
    let (at, before) = (column * across.stride, across.before);
    // Elements are taken in pairs if every second one of them is under a tap.
    let last = if across.stride == 1 { across.taps - 1 } else { (across.taps - 1) & !1 };
    at < before || at - before + last + across.stride * V::LANES > across.input
}

impl<V: Vector, const TAPS: usize, const STRIDE: usize, const EDGE: bool> WindowSource<V, TAPS, STRIDE, EDGE> {
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    pub unsafe fn new(across: &Axis, column: usize) -> Self {
        let begin = (column * STRIDE).wrapping_sub(across.before) as isize;
        let lane = |element: usize, at: isize| (element as isize - at).clamp(0, V::LANES as isize) as usize;
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut inside = [[V::lanes(0, 0); 2]; TAPS];
            if EDGE {
                for (tap, inside) in inside.iter_mut().enumerate().step_by(STRIDE) {
                    for (half, inside) in inside.iter_mut().enumerate().take(STRIDE) {
                        let at = begin + (tap + half * V::LANES) as isize;
                        *inside = V::lanes(lane(0, at), lane(across.input, at));
                    }
                }
            }
            WindowSource { begin, inside }
        }
    }

    /// One register of elements for a tap.
    ///
    /// # Safety
    /// The processor has the instructions of V; `line` is a row of elements.
    #[inline(always)]
    unsafe fn load(&self, line: *const f32, tap: usize, half: usize, beyond: f32) -> V {
        let from = line.wrapping_offset(self.begin).wrapping_add(tap + half * V::LANES);
        // SAFETY: as demanded of the caller.
        unsafe { if EDGE { V::load_lanes(from, self.inside[tap][half], beyond) } else { V::load(from) } }
    }

    /// The elements of all taps.
    ///
    /// # Safety
    /// As of `load`.
    #[inline(always)]
    pub unsafe fn under(&self, line: *const f32, beyond: f32) -> [V; TAPS] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut x = [V::splat(beyond); TAPS];
            for tap in (0..TAPS).step_by(STRIDE) {
                let first = self.load(line, tap, 0, beyond);
                if STRIDE == 1 {
                    x[tap] = first;
                    continue;
                }
                let second = self.load(line, tap, 1, beyond);
                x[tap] = first.evens(second);
                if tap + 1 < TAPS {
                    x[tap + 1] = first.odds(second);
                }
            }
            x
        }
    }
}
