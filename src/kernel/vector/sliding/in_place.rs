//! Windows that are read from the image in place: square ones without gaps between their taps, in an image that is
//! padded with a value.
//!
//! A register holds neighbouring windows of a row; with a stride of two, every second one of two registers of elements.
//! The padding is put in where elements are loaded. A row beyond the image is read from a row of that value, and the
//! lanes beyond the ends of a row are masked.

use super::combine::Combine;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::lanes::{Baseline, Vector};
use crate::kernel::vector::window::{Axis, EdgeMode};
use std::ops::Range;

/// Rows of windows of a tile, which share the rows of the image under them.
pub const ROWS: usize = 4;

/// Whether there are tiles for these windows.
pub fn suits<C: Combine>(rows: &Axis, columns: &Axis) -> bool {
    let of = |axis: &Axis| (axis.taps, axis.stride, axis.dilation, axis.edge == EdgeMode::Zero);
    let is_there = match of(rows) {
        (3, 1 | 2, 1, true) => true,
        (5, 1 | 2, 1, true) => C::WEIGHTS,
        (2, 2, 1, true) => !C::WEIGHTS,
        _ => false,
    };
    is_there && of(rows) == of(columns) && rows.output >= ROWS
}

/// Windows of one plane of the output.
pub struct ImageWindows<'a> {
    /// The first channel of the image, and the floats from one channel to the next.
    pub x: *const f32,
    pub plane: usize,
    pub channels: usize,
    pub down: &'a Axis,
    pub across: &'a Axis,
    /// A row of the image beyond its ends.
    pub beyond: *const f32,
    /// For each channel and tap, if the combination wants it.
    pub weights: *const f32,
    /// The value of a window without elements.
    pub first: f32,
    pub out: *mut f32,
}

impl ImageWindows<'_> {
    /// Computes some rows, at least `ROWS`.
    ///
    /// # Safety
    /// The processor has the instruction set, and there are tiles for the windows. All channels and weights are
    /// readable, the rows of the output are writable, and nobody else's.
    pub unsafe fn compute<C: Combine>(&self, isa: Isa, rows: Range<usize>) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => self.avx512::<C>(rows),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => self.avx2::<C>(rows),
                _ => self.vectors::<Baseline, C>(rows),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<C: Combine>(&self, rows: Range<usize>) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m512, C>(rows) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<C: Combine>(&self, rows: Range<usize>) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m256, C>(rows) }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector, C: Combine>(&self, rows: Range<usize>) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match (self.down.taps, self.down.stride) {
                (3, 1) => self.tiles::<V, C, 3, 1>(rows),
                (3, _) => self.tiles::<V, C, 3, 2>(rows),
                _ if C::WEIGHTS && self.down.stride == 1 => self.tiles::<V, C, 5, 1>(rows),
                _ if C::WEIGHTS => self.tiles::<V, C, 5, 2>(rows),
                _ => self.tiles::<V, C, 2, 2>(rows),
            }
        }
    }

    /// Down each register of columns, or two at once.
    #[inline(always)]
    unsafe fn tiles<V: Vector, C: Combine, const TAPS: usize, const STRIDE: usize>(&self, rows: Range<usize>) {
        let (before, input) = (self.across.before, self.across.input);
        let columns = self.across.output;
        let has_edge = |column: usize| {
            let at = column * STRIDE;
            at < before || at - before + TAPS - 1 + STRIDE * V::LANES > input
        };
        let streams = TAPS == 3 && self.channels == 1 && !C::IN_ANY_ORDER;
        let mut column = 0;
        while column < columns {
            // The last register computes some windows once more.
            let at = if columns >= V::LANES { column.min(columns - V::LANES) } else { column };
            let two = streams && column + 2 * V::LANES <= columns && !has_edge(at) && !has_edge(at + V::LANES);
            // SAFETY: as demanded of the caller.
            unsafe {
                match has_edge(at) {
                    _ if two => {
                        let source = WindowSource::<V, TAPS, STRIDE, false>::new(self.across, at);
                        self.stream::<V, C, TAPS, STRIDE, false, 2>(&source, rows.clone(), at);
                    }
                    true => self.column::<V, C, TAPS, STRIDE, true>(rows.clone(), at),
                    false => self.column::<V, C, TAPS, STRIDE, false>(rows.clone(), at),
                }
            }
            column += if two { 2 * V::LANES } else { V::LANES };
        }
    }

    #[inline(always)]
    unsafe fn column<V: Vector, C: Combine, const TAPS: usize, const STRIDE: usize, const EDGE: bool>(
        &self,
        rows: Range<usize>,
        column: usize,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let source = WindowSource::<V, TAPS, STRIDE, EDGE>::new(self.across, column);
            if C::IN_ANY_ORDER {
                return self.greatest::<V, C, TAPS, STRIDE, EDGE>(&source, rows, column);
            }
            if TAPS == 3 && self.channels == 1 {
                return self.stream::<V, C, TAPS, STRIDE, EDGE, 1>(&source, rows, column);
            }
            for row in rows.clone().step_by(ROWS) {
                // The last tile computes some rows once more.
                let row = row.min(rows.end - ROWS);
                let sums = self.sums::<V, C, TAPS, STRIDE, EDGE>(&source, row);
                for (i, sum) in sums.into_iter().enumerate() {
                    self.store(sum, row + i, column);
                }
            }
        }
    }

    /// The rows of the first channel.
    #[inline(always)]
    fn lines(&self) -> Lines {
        let (before, count) = (self.down.before, self.down.input);
        Lines { x: self.x, before, count, pitch: self.across.input, beyond: self.beyond }
    }

    #[inline(always)]
    unsafe fn store<V: Vector>(&self, result: V, row: usize, column: usize) {
        // SAFETY: as demanded of the caller; windows of this column that exist are stored.
        unsafe {
            let out = self.out.add(row * self.across.output + column);
            match self.across.output - column {
                left if left >= V::LANES => result.store(out),
                left => result.store_part(out, left),
            }
        }
    }

    /// Under the windows of one row of elements, before every second one is taken.
    #[inline(always)]
    unsafe fn greatest_of_line<V: Vector, C: Combine, const TAPS: usize, const STRIDE: usize, const EDGE: bool>(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        row: usize,
    ) -> [V; 2] {
        let line = self.lines().at(row);
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut halves = [V::splat(self.first); 2];
            for (half, most) in halves.iter_mut().enumerate().take(STRIDE) {
                *most = source.load(line, 0, half, C::BEYOND);
                for tap in 1..TAPS {
                    *most = C::step(*most, source.load(line, tap, half, C::BEYOND), || *most);
                }
            }
            halves
        }
    }

    /// Combines the rows under the windows, of which each is loaded once.
    #[inline(always)]
    unsafe fn greatest<V: Vector, C: Combine, const TAPS: usize, const STRIDE: usize, const EDGE: bool>(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        rows: Range<usize>,
        column: usize,
    ) {
        // SAFETY: as demanded of the caller.
        unsafe {
            // The last ones are shared with the next window.
            let mut lines = [[V::splat(self.first); 2]; TAPS];
            for (tap, line) in lines.iter_mut().enumerate().skip(STRIDE) {
                *line = self.greatest_of_line::<V, C, TAPS, STRIDE, EDGE>(source, rows.start * STRIDE + tap - STRIDE);
            }
            for row in rows {
                lines.copy_within(STRIDE.., 0);
                for (tap, line) in lines.iter_mut().enumerate().skip(TAPS - STRIDE) {
                    *line = self.greatest_of_line::<V, C, TAPS, STRIDE, EDGE>(source, row * STRIDE + tap);
                }
                let mut most = lines[0];
                for line in &lines[1..] {
                    for (most, x) in most.iter_mut().zip(line).take(STRIDE) {
                        *most = C::step(*most, *x, || *x);
                    }
                }
                self.store(source.windows(most), row, column);
            }
        }
    }

    /// `ROWS` rows of windows from `row` on.
    #[inline(always)]
    unsafe fn sums<V: Vector, C: Combine, const TAPS: usize, const STRIDE: usize, const EDGE: bool>(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        row: usize,
    ) -> [V; ROWS] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut sums = [V::splat(self.first); ROWS];
            let (mut image, mut weights) = (self.lines(), self.weights);
            for _ in 0..self.channels {
                for down in 0..TAPS {
                    let lines: [_; ROWS] = std::array::from_fn(|i| image.at((row + i) * STRIDE + down));
                    for tap in 0..TAPS {
                        let weight = if C::WEIGHTS { V::splat(*weights.add(tap)) } else { sums[0] };
                        for (sum, line) in sums.iter_mut().zip(lines) {
                            *sum = C::step(*sum, source.tap(line, tap, C::BEYOND), || weight);
                        }
                    }
                    weights = weights.wrapping_add(TAPS);
                }
                image.x = image.x.wrapping_add(self.plane);
            }
            sums
        }
    }

    /// Down the rows of one channel, under COUNT registers of windows of 3 x 3: each row of elements is loaded
    /// once, for all windows that it is under.
    #[inline(always)]
    unsafe fn stream<
        V: Vector,
        C: Combine,
        const TAPS: usize,
        const STRIDE: usize,
        const EDGE: bool,
        const COUNT: usize,
    >(
        &self,
        source: &WindowSource<V, TAPS, STRIDE, EDGE>,
        rows: Range<usize>,
        column: usize,
    ) {
        // Copies, which a store of floats cannot change.
        let (lines, columns) = (self.lines(), self.across.output);
        let w = self.weights;
        // SAFETY: as demanded of the caller.
        unsafe {
            let first = V::splat(self.first);
            let [mut upper, mut middle, mut lower] = [[first; 3]; 3];
            if C::WEIGHTS {
                upper = [V::splat(*w), V::splat(*w.add(1)), V::splat(*w.add(2))];
                middle = [V::splat(*w.add(3)), V::splat(*w.add(4)), V::splat(*w.add(5))];
                lower = [V::splat(*w.add(6)), V::splat(*w.add(7)), V::splat(*w.add(8))];
            }
            // Windows that lack their last row of elements, and their last two.
            let (mut next, mut later) = ([first; COUNT], [first; COUNT]);
            later = combine::<V, C, COUNT>(later, &source.under(lines.at(rows.start * STRIDE), C::BEYOND), upper);
            if STRIDE == 1 {
                let x = source.under(lines.at(rows.start + 1), C::BEYOND);
                next = combine::<V, C, COUNT>(later, &x, middle);
                later = combine::<V, C, COUNT>([first; COUNT], &x, upper);
            }
            let end = rows.end;
            for row in rows {
                if STRIDE == 2 {
                    let x = source.under(lines.at(row * STRIDE + 1), C::BEYOND);
                    next = combine::<V, C, COUNT>(later, &x, middle);
                }
                let x = source.under(lines.at(row * STRIDE + 2), C::BEYOND);
                let sums = combine::<V, C, COUNT>(next, &x, lower);
                let out = self.out.wrapping_add(row * columns + column);
                if EDGE && columns < V::LANES && (end - row) * columns < V::LANES {
                    sums[0].store_part(out, columns);
                } else {
                    // Behind a narrow row are the next ones, which are stored later.
                    for (register, sum) in sums.into_iter().enumerate() {
                        sum.store(out.wrapping_add(register * V::LANES));
                    }
                }
                if STRIDE == 1 {
                    next = combine::<V, C, COUNT>(later, &x, middle);
                }
                later = combine::<V, C, COUNT>([first; COUNT], &x, upper);
            }
        }
    }
}

/// Rows of three taps each.
///
/// # Safety
/// The processor has the instructions of V.
#[inline(always)]
unsafe fn combine<V: Vector, C: Combine, const COUNT: usize>(
    mut sums: [V; COUNT],
    x: &[[V; 3]; COUNT],
    weights: [V; 3],
) -> [V; COUNT] {
    for (tap, weight) in weights.into_iter().enumerate() {
        for (sum, x) in sums.iter_mut().zip(x) {
            // SAFETY: as demanded of the caller.
            unsafe { *sum = C::step(*sum, x[tap], || weight) };
        }
    }
    sums
}

/// The rows of elements of a channel.
#[derive(Clone, Copy)]
struct Lines {
    x: *const f32,
    before: usize,
    count: usize,
    /// Floats of one.
    pitch: usize,
    /// A row beyond the ends.
    beyond: *const f32,
}

impl Lines {
    /// A row by its number in the padded image.
    #[inline(always)]
    fn at(&self, row: usize) -> *const f32 {
        let at = row.wrapping_sub(self.before);
        if at < self.count { self.x.wrapping_add(at * self.pitch) } else { self.beyond }
    }
}

/// The elements under a register of windows in any row.
struct WindowSource<V: Vector, const TAPS: usize, const STRIDE: usize, const EDGE: bool> {
    /// The place of the first one in its row, which may lie before the first element.
    begin: isize,
    /// The lanes with elements, by taps and registers.
    inside: [[V::Mask; 2]; TAPS],
}

impl<V: Vector, const TAPS: usize, const STRIDE: usize, const EDGE: bool> WindowSource<V, TAPS, STRIDE, EDGE> {
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    unsafe fn new(across: &Axis, column: usize) -> Self {
        let begin = (column * STRIDE).wrapping_sub(across.before) as isize;
        let lane = |element: usize, at: isize| (element as isize - at).clamp(0, V::LANES as isize) as usize;
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut inside = [[V::lanes(0, 0); 2]; TAPS];
            if EDGE {
                for (tap, inside) in inside.iter_mut().enumerate() {
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

    /// The elements of a tap of all windows.
    ///
    /// # Safety
    /// As of `load`.
    #[inline(always)]
    unsafe fn tap(&self, line: *const f32, tap: usize, beyond: f32) -> V {
        // SAFETY: as demanded of the caller.
        unsafe {
            let first = self.load(line, tap, 0, beyond);
            if STRIDE == 1 { first } else { first.evens(self.load(line, tap, 1, beyond)) }
        }
    }

    /// The elements of the three taps of COUNT registers of windows.
    ///
    /// # Safety
    /// As of `load`.
    #[inline(always)]
    unsafe fn under<const COUNT: usize>(&self, line: *const f32, beyond: f32) -> [[V; 3]; COUNT] {
        // SAFETY: as demanded of the caller.
        let mut x = unsafe { [[V::splat(beyond); 3]; COUNT] };
        for (register, x) in x.iter_mut().enumerate() {
            let line = line.wrapping_add(register * STRIDE * V::LANES);
            for (tap, x) in x.iter_mut().enumerate() {
                // SAFETY: as demanded of the caller.
                *x = unsafe { self.tap(line, tap, beyond) };
            }
        }
        x
    }

    /// The windows among all elements.
    ///
    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    unsafe fn windows(&self, [first, second]: [V; 2]) -> V {
        // SAFETY: as demanded of the caller.
        unsafe { if STRIDE == 1 { first } else { first.evens(second) } }
    }
}
