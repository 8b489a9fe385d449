//! The part of an image under a few windows, copied so that its windows have neither edges nor strides.
//!
//! A strip holds, for each of some channels, the rows of the padded image that the windows reach. A row is stored by
//! *phases*: the element at place p of the padded row is element p / stride of phase p % stride. So the elements under
//! one tap of neighbouring windows are neighbours, whatever the stride, and a register holds as many of them as it has
//! lanes. If the windows are one row high, only the rows under windows are there.
#![forbid(unsafe_code)]

use super::isa::Isa;
use super::levels::{self, LevelLoop};
use super::window::{Axis, EdgeMode};
use std::ops::Range;

/// Floats of a cache line.
pub const LINE: usize = 16;
/// Floats behind a strip that may be read, as a part of a register.
const BEHIND: usize = 16;
/// Windows of a row that are worth a piece of their own.
const SHORT_ROW: usize = 24;

/// The layout of a strip.
#[derive(Clone, Copy, Debug)]
pub struct Strip {
    down: Axis,
    across: Axis,
    /// Windows of a row.
    pub columns: usize,
    /// Floats of a phase of a row.
    phase: usize,
    /// Floats from one row to the next.
    row: usize,
    /// Floats from one channel to the next.
    channel: usize,
}

impl Strip {
    /// For at most this many rows of this many windows.
    pub fn new(down: Axis, across: Axis, rows: usize, columns: usize) -> Strip {
        let phases = if across.taps == 1 { 1 } else { across.stride };
        let phase = columns + (across.taps - 1) * across.dilation / across.stride;
        let row = phases * phase;
        // An odd number of cache lines: the channels of a window then lie in all sets of a cache.
        let lines = (Strip::rows(&down, rows) * row).div_ceil(LINE);
        Strip { down, across, columns, phase, row, channel: (lines | 1) * LINE }
    }

    /// The strip of a piece of at most so many windows: the rows of the output in it, and its layout. It has at most so
    /// many floats, unless one row has more. Pieces are of about the same size.
    pub fn of_piece(down: Axis, across: Axis, channels: usize, windows: usize, floats: usize) -> (usize, Strip) {
        let evenly = |all: usize, most: usize| all.div_ceil(all.div_ceil(most));
        let strip = |rows, columns| Strip::new(down, across, rows, columns);
        let fits = |rows, columns| strip(rows, columns).floats(channels) <= floats;
        let mut columns = evenly(across.output, windows);
        while columns > SHORT_ROW && !fits(1, columns) {
            columns = evenly(across.output, columns / 2);
        }
        let mut rows = (windows / columns).clamp(1, down.output);
        while rows > 1 && !fits(rows, columns) {
            rows -= rows.div_ceil(8);
        }
        rows = evenly(down.output, rows);
        (rows, strip(rows, columns))
    }

    /// Rows of a strip of `rows` rows of windows.
    fn rows(down: &Axis, rows: usize) -> usize {
        match down.taps {
            1 => rows,
            _ => (rows - 1) * down.stride + (down.taps - 1) * down.dilation + 1,
        }
    }

    /// Floats of memory for so many channels.
    pub fn floats(&self, channels: usize) -> usize {
        channels * self.channel + BEHIND
    }

    /// Floats from one channel to the next.
    pub fn channel(&self) -> usize {
        self.channel
    }

    /// Floats from one row of windows to the next.
    pub fn step(&self) -> usize {
        if self.down.taps == 1 { self.row } else { self.down.stride * self.row }
    }

    /// Writes the place of each tap, as seen from its window, row after row.
    pub fn taps(&self, out: &mut [usize]) {
        let (rows, columns) = (self.down.taps, self.across.taps);
        for (row, out) in out[..rows * columns].chunks_exact_mut(columns).enumerate() {
            for (tap, out) in out.iter_mut().enumerate() {
                let place = tap * self.across.dilation;
                let (phase, at) = (place % self.across.stride, place / self.across.stride);
                *out = row * self.down.dilation * self.row + phase * self.phase + at;
            }
        }
    }

    /// Copies a channel: what is under `rows` of the output's rows, and `columns` windows from `first` on. `beyond` is
    /// the value of padding without elements; `None` if it is there already, from another channel under the same
    /// windows.
    pub fn fill(&self, isa: Isa, plane: &[f32], rows: Range<usize>, first: usize, beyond: Option<f32>, to: &mut [f32]) {
        // With AVX-512 compilers gather every second element, which takes AMD's processors several times as long.
        levels::up_to_avx2(isa, StripFill { strip: self, plane, rows, first, beyond, to });
    }
}

struct StripFill<'a> {
    strip: &'a Strip,
    plane: &'a [f32],
    rows: Range<usize>,
    first: usize,
    beyond: Option<f32>,
    to: &'a mut [f32],
}

impl LevelLoop for StripFill<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let StripFill { strip, plane, rows, first, beyond, to } = self;
        let (down, across) = (&strip.down, &strip.across);
        let step = if down.taps == 1 { down.stride } else { 1 };
        let all = Strip::rows(down, rows.len());
        let inside = if across.edge == EdgeMode::Reflect || down.edge == EdgeMode::Reflect {
            0..0
        } else {
            inside(down, rows.start * down.stride, step, all)
        };
        for row in (0..inside.start).chain(inside.end..all) {
            let to = &mut to[row * strip.row..][..strip.row];
            match (down.at(rows.start * down.stride + row * step), beyond) {
                (None, None) => {}
                (None, Some(beyond)) => to.fill(beyond),
                (Some(at), _) => {
                    let x = &plane[at * across.input..][..across.input];
                    for (phase, to) in to.chunks_exact_mut(strip.phase).enumerate() {
                        for (i, to) in to.iter_mut().enumerate() {
                            let place = across.at((first + i) * across.stride + phase);
                            *to = place.map_or(beyond.unwrap_or(*to), |at| x[at]);
                        }
                    }
                }
            }
        }
        if inside.is_empty() {
            return;
        }
        let plane = &plane[(rows.start * down.stride + inside.start * step - down.before) * across.input..];
        let to = &mut to[inside.start * strip.row..inside.end * strip.row];
        for phase in 0..strip.row / strip.phase {
            let place = first * across.stride + phase;
            let rows = PhaseRows {
                plane,
                row: step * across.input,
                at: (place, across.before, self::inside(across, place, across.stride, strip.phase)),
                beyond,
                to: &mut *to,
                to_row: strip.row,
                phase: phase * strip.phase..(phase + 1) * strip.phase,
            };
            match (across.stride, rows.at.2.len()) {
                (1, 4..8) => rows.each::<1, 4>(1),
                (1, 8..16) => rows.each::<1, 8>(1),
                (1, 16..) => rows.each::<1, 16>(1),
                (2, 5..9) => rows.each::<2, 4>(2),
                (2, 9..) => rows.each::<2, 8>(2),
                (stride, _) => rows.each::<0, 1>(stride),
            }
        }
    }
}

/// Of `count` places of the padded axis, from `place` on and `step` apart, those with an element.
#[inline(always)]
fn inside(axis: &Axis, place: usize, step: usize, count: usize) -> Range<usize> {
    let begin = axis.before.saturating_sub(place).div_ceil(step).min(count);
    begin..(axis.input + axis.before).saturating_sub(place).div_ceil(step).clamp(begin, count)
}

/// One phase of rows of the image.
struct PhaseRows<'a> {
    /// The image from the first row on, and the elements from one row to the next.
    plane: &'a [f32],
    row: usize,
    /// The place of the phase in the padded row, where the image begins, and which elements of the phase it has.
    at: (usize, usize, Range<usize>),
    beyond: Option<f32>,
    to: &'a mut [f32],
    to_row: usize,
    /// The phase in a row of the strip.
    phase: Range<usize>,
}

impl PhaseRows<'_> {
    /// Copies every `stride`-th element, in steps of STEP elements if the stride is STRIDE.
    #[inline(always)]
    fn each<const STRIDE: usize, const STEP: usize>(self, stride: usize) {
        let (place, before, inside) = self.at;
        let (begin, end) = (inside.start, inside.end);
        let from = (place + begin * stride).saturating_sub(before);
        // Elements of a row from the first one to the last one.
        let span = if begin < end { (end - begin - 1) * stride + 1 } else { 0 };
        for (i, to) in self.to.chunks_exact_mut(self.to_row).enumerate() {
            let to = &mut to[self.phase.clone()];
            if let Some(beyond) = self.beyond {
                to[..begin].iter_mut().for_each(|to| *to = beyond);
                to[end..].iter_mut().for_each(|to| *to = beyond);
            }
            if span > 0 {
                let (x, to) = (&self.plane[i * self.row + from..][..span], &mut to[begin..end]);
                match STRIDE {
                    1 => copy::<STEP>(x, to),
                    2 => copy_every_second::<STEP>(x, to),
                    _ => to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(to, x)| *to = *x),
                }
            }
        }
    }
}

/// Copies a row without a call, in steps of which the last one overlaps the one before.
#[inline(always)]
pub fn copy<const STEP: usize>(x: &[f32], to: &mut [f32]) {
    for (x, to) in x.as_chunks::<STEP>().0.iter().zip(to.as_chunks_mut::<STEP>().0) {
        *to = *x;
    }
    if let (Some(x), Some(to)) = (x.last_chunk::<STEP>(), to.last_chunk_mut::<STEP>()) {
        *to = *x;
    }
}

/// Copies every second element, more than STEP, in steps of which the last one overlaps the one before.
#[inline(always)]
fn copy_every_second<const STEP: usize>(x: &[f32], to: &mut [f32]) {
    // The last element has no neighbour.
    let (pairs, Some((last, to))) = (x.as_chunks::<2>().0, to.split_last_mut()) else { return };
    *last = x[x.len() - 1];
    let first_of = |pairs: &[[f32; 2]; STEP]| pairs.map(|pair| pair[0]);
    for (pairs, to) in pairs.as_chunks::<STEP>().0.iter().zip(to.as_chunks_mut::<STEP>().0) {
        *to = first_of(pairs);
    }
    if let (Some(pairs), Some(to)) = (pairs.last_chunk::<STEP>(), to.last_chunk_mut::<STEP>()) {
        *to = first_of(pairs);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_tap_of_each_window_finds_its_element() {
        for (taps, stride, dilation, before, after, edge) in [
            (3, 1, 1, 1, 1, EdgeMode::Zero),
            (3, 2, 1, 0, 1, EdgeMode::Zero),
            (1, 2, 1, 0, 0, EdgeMode::Zero),
            (5, 3, 2, 4, 6, EdgeMode::Zero),
            (2, 4, 1, 1, 0, EdgeMode::Reflect),
            (4, 1, 2, 5, 3, EdgeMode::Reflect),
        ] {
            let axis = |input: usize| {
                let output = (input + before + after - (taps - 1) * dilation - 1) / stride + 1;
                Axis { input, output, taps, stride, dilation, before, edge }
            };
            let (down, across) = (axis(8), axis(11));
            let plane: Vec<f32> = (1..=8 * 11).map(|x| x as f32).collect();
            for (rows, columns) in [(0..1, 0..1), (0..down.output, 0..across.output), (1..down.output, 1..2)] {
                let (rows, columns) =
                    (rows.start..rows.end.min(down.output), columns.start..columns.end.min(across.output));
                if rows.is_empty() || columns.is_empty() {
                    continue;
                }
                let strip = Strip::new(down, across, rows.len(), columns.len());
                let mut taps_at = vec![0; taps * taps];
                strip.taps(&mut taps_at);
                for isa in Isa::available() {
                    let mut copied = vec![f32::NAN; strip.floats(1)];
                    strip.fill(isa, &plane, rows.clone(), columns.start, Some(-1.0), &mut copied);
                    // Once more, with the padding that is there.
                    strip.fill(isa, &plane, rows.clone(), columns.start, None, &mut copied);
                    for (row, column) in rows.clone().flat_map(|row| columns.clone().map(move |column| (row, column))) {
                        for (tap, place) in taps_at.iter().enumerate() {
                            let at = (down.element(row, tap / taps), across.element(column, tap % taps));
                            let want = if let (Some(y), Some(x)) = at { plane[y * 11 + x] } else { -1.0 };
                            let got = copied[(row - rows.start) * strip.step() + column - columns.start + place];
                            assert_eq!(got, want, "{isa:?} {down:?} {across:?} {row} {column} {tap}");
                        }
                    }
                }
            }
        }
    }
}
