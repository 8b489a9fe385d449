//! The part of an image under a few windows, copied so that its windows have neither edges nor strides.
//!
//! A strip holds, for each of some channels, the rows of the padded image that the windows reach. A row is stored by
//! *phases*: the element at place p of the padded row is element p / stride of phase p % stride. So the elements under
//! one tap of neighbouring windows are neighbours, whatever the stride, and a register holds as many of them as it has
//! lanes.
//!
//! Only rows under windows are there. So the rows of the output that are computed together lie as far apart as the
//! taps, if these do: their windows share rows, and a strip has few others.

use super::isa::Isa;
use super::levels::{self, LevelLoop};
use super::movement::TileTranspose;
use super::window::{Axis, EdgeMode};
use std::ops::Range;

/// Floats of a cache line.
pub const LINE: usize = 16;
/// Floats behind a strip that may be read, as a part of a register.
const BEHIND: usize = 16;
/// With fewer phases each is copied by itself.
const MANY_PHASES: usize = 3;
/// Windows of a row that are worth a piece of their own.
const SHORT_ROW: usize = 24;

/// Rows of the output that are computed together.
#[derive(Clone, Copy, Debug)]
pub struct PieceRows {
    pub first: usize,
    pub count: usize,
    /// From one to the next.
    pub apart: usize,
}

impl PieceRows {
    /// Rows that follow one another.
    pub fn run(rows: Range<usize>) -> PieceRows {
        PieceRows { first: rows.start, count: rows.len(), apart: 1 }
    }

    pub fn at(&self, index: usize) -> usize {
        self.first + index * self.apart
    }

    /// The begin and the length of the runs of elements that follow one another, of these columns in rows of `line`.
    pub fn runs(&self, columns: Range<usize>, line: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let rows = *self;
        let is_one = columns.len() == line && rows.apart == 1;
        let (runs, run) = if is_one { (1, rows.count * line) } else { (rows.count, columns.len()) };
        (0..runs).map(move |i| (rows.at(i) * line + columns.start, run))
    }
}

/// The layout of a strip.
#[derive(Clone, Copy, Debug)]
pub struct Strip {
    down: Axis,
    across: Axis,
    /// Rows of the output, and windows of each.
    pub rows: usize,
    pub columns: usize,
    /// Rows of the output from one of a piece to the next, and rows of the image from one of the strip to the next.
    apart: usize,
    every: usize,
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
        let (apart, every) = match down.taps {
            1 => (1, down.stride),
            _ => (down.dilation / gcd(down.stride, down.dilation), down.dilation),
        };
        let mut strip = Strip { down, across, rows, columns, apart, every, phase, row, channel: 0 };
        // An odd number of cache lines: the channels of a window then lie in all sets of a cache.
        strip.channel = ((strip.lines(rows) * row).div_ceil(LINE) | 1) * LINE;
        strip
    }

    /// The strip of a piece of at most so many windows. It has at most so many floats, unless one row has more. Pieces
    /// are of about the same size.
    pub fn of_piece(down: Axis, across: Axis, channels: usize, windows: usize, floats: usize) -> Strip {
        let evenly = |all: usize, most: usize| all.div_ceil(all.div_ceil(most));
        let strip = |rows, columns| Strip::new(down, across, rows, columns);
        let fits = |rows, columns| strip(rows, columns).floats(channels) <= floats;
        let mut columns = evenly(across.output, windows);
        while columns > SHORT_ROW && !fits(1, columns) {
            columns = evenly(across.output, columns / 2);
        }
        let most = down.output.div_ceil(strip(1, columns).apart);
        let mut rows = (windows / columns).clamp(1, most);
        while rows > 1 && !fits(rows, columns) {
            rows -= rows.div_ceil(8);
        }
        strip(evenly(most, rows), columns)
    }

    /// Pieces of rows that are `apart`, and of all rows.
    fn pieces_down(&self) -> [usize; 2] {
        let of_rows = self.down.output.div_ceil(self.apart).div_ceil(self.rows);
        [of_rows, of_rows * self.apart.min(self.down.output)]
    }

    /// Pieces of a plane of the output.
    pub fn pieces(&self) -> usize {
        self.pieces_down()[1] * self.across.output.div_ceil(self.columns)
    }

    /// The windows of a piece, which may have none.
    pub fn piece(&self, number: usize) -> (PieceRows, Range<usize>) {
        let across = self.across.output.div_ceil(self.columns);
        let (of_rows, number, column) = (self.pieces_down()[0], number / across, number % across * self.columns);
        let first = number / of_rows + number % of_rows * self.rows * self.apart;
        let left = self.down.output.saturating_sub(first).div_ceil(self.apart);
        let rows = PieceRows { first, count: left.min(self.rows), apart: self.apart };
        (rows, column..(column + self.columns).min(self.across.output))
    }

    /// Rows of a strip from one row of windows to the next.
    fn lines_apart(&self) -> usize {
        self.down.stride * self.apart / self.every
    }

    /// Rows of a strip of `rows` rows of windows.
    fn lines(&self, rows: usize) -> usize {
        match rows {
            0 => 0,
            _ => (rows - 1) * self.lines_apart() + self.down.taps,
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

    /// Floats from one row to the next.
    pub fn line(&self) -> usize {
        self.row
    }

    /// The rows with elements of the strip of a piece.
    pub fn inside(&self, rows: PieceRows) -> Range<usize> {
        let all = self.lines(rows.count);
        match self.down.edge {
            EdgeMode::Zero => inside(&self.down, rows.first * self.down.stride, self.every, all),
            EdgeMode::Reflect => 0..all,
        }
    }

    /// Floats from one row of windows to the next.
    pub fn step(&self) -> usize {
        self.lines_apart() * self.row
    }

    /// Writes the place of each tap, as seen from its window, row after row.
    pub fn taps(&self, out: &mut [usize]) {
        let (rows, columns) = (self.down.taps, self.across.taps);
        for (row, out) in out[..rows * columns].chunks_exact_mut(columns).enumerate() {
            for (tap, out) in out.iter_mut().enumerate() {
                let place = tap * self.across.dilation;
                let (phase, at) = (place % self.across.stride, place / self.across.stride);
                *out = row * self.row + phase * self.phase + at;
            }
        }
    }

    /// Copies a channel: what is under `rows` of the output's rows, and `columns` windows from `first` on. `beyond` is
    /// the value of padding without elements; `None` if it is there already, from another channel under the same
    /// windows.
    pub fn fill(&self, isa: Isa, plane: &[f32], rows: PieceRows, first: usize, beyond: Option<f32>, to: &mut [f32]) {
        // With AVX-512 compilers gather every second element, which takes AMD's processors several times as long.
        levels::up_to_avx2(isa, StripFill { strip: self, isa, plane, rows, first, beyond, to });
    }

    /// Sorts the elements of rows, so far apart, by phases: under the windows from `first` on.
    // By itself, as the loops over rows of one phase are slower with more code around them.
    #[inline(never)]
    fn fill_phases(
        &self,
        isa: Isa,
        (plane, apart): (&[f32], usize),
        first: usize,
        beyond: Option<f32>,
        to: &mut [f32],
    ) {
        let turn = TileTranspose::of(isa, size_of::<f32>()).expect("floats are turned on every level");
        let (across, phases, all) = (&self.across, self.across.stride, self.between(first));
        let [from_step, step] = [phases, self.phase].map(|floats| (floats * size_of::<f32>()) as isize);
        for (i, to) in to.chunks_exact_mut(self.row).enumerate() {
            let x = &plane[i * apart..][..across.input];
            for window in (0..all.start).chain(all.end..self.phase) {
                for phase in 0..phases {
                    let to = &mut to[phase * self.phase + window];
                    *to = across.at((first + window) * phases + phase).map_or(beyond.unwrap_or(*to), |at| x[at]);
                }
            }
            if all.is_empty() {
                continue;
            }
            let x = &x[(first + all.start) * phases - across.before..][..all.len() * phases];
            let to = &mut to[all.start..(phases - 1) * self.phase + all.end];
            // SAFETY: `up_to_avx2` compared the level; the slices are those of the elements, and of all their places,
            // which nobody else has.
            unsafe { turn.run((x.as_ptr().cast(), from_step), (to.as_mut_ptr().cast(), step), all.len(), phases) };
        }
    }

    /// The windows, counted from `first` on, under each of whose phases there is an element: those from the first up to
    /// the second.
    fn between(&self, first: usize) -> Range<usize> {
        let Axis { input, stride, before, .. } = self.across;
        let begin = before.div_ceil(stride).saturating_sub(first).min(self.phase);
        begin..((input + before) / stride).saturating_sub(first).clamp(begin, self.phase)
    }
}

/// The greatest common divisor.
fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

struct StripFill<'a> {
    strip: &'a Strip,
    isa: Isa,
    plane: &'a [f32],
    rows: PieceRows,
    first: usize,
    beyond: Option<f32>,
    to: &'a mut [f32],
}

impl LevelLoop for StripFill<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let StripFill { strip, isa, plane, rows, first, beyond, to } = self;
        let (down, across) = (&strip.down, &strip.across);
        let (begin, step, all) = (rows.first * down.stride, strip.every, strip.lines(rows.count));
        let inside = if across.edge == EdgeMode::Reflect || down.edge == EdgeMode::Reflect {
            0..0
        } else {
            inside(down, begin, step, all)
        };
        for row in (0..inside.start).chain(inside.end..all) {
            let to = &mut to[row * strip.row..][..strip.row];
            match (down.at(begin + row * step), beyond) {
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
        let plane = &plane[(begin + inside.start * step - down.before) * across.input..];
        let to = &mut to[inside.start * strip.row..inside.end * strip.row];
        if strip.row != strip.phase && across.stride >= MANY_PHASES {
            return strip.fill_phases(isa, (plane, step * across.input), first, beyond, to);
        }
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
            (3, 1, 3, 3, 3, EdgeMode::Zero),
            (2, 1, 9, 9, 4, EdgeMode::Zero),
            (3, 2, 4, 4, 4, EdgeMode::Zero),
            (3, 4, 6, 6, 6, EdgeMode::Zero),
            (2, 4, 1, 1, 0, EdgeMode::Reflect),
            (4, 1, 2, 5, 3, EdgeMode::Reflect),
            (4, 4, 1, 0, 0, EdgeMode::Zero),
            (2, 5, 1, 3, 7, EdgeMode::Zero),
            (7, 3, 1, 8, 6, EdgeMode::Zero),
        ] {
            let axis = |input: usize| {
                let output = (input + before + after - (taps - 1) * dilation - 1) / stride + 1;
                Axis { input, output, taps, stride, dilation, before, edge }
            };
            let (down, across) = (axis(8), axis(11));
            let plane: Vec<f32> = (1..=8 * 11).map(|x| x as f32).collect();
            for (rows, columns) in [(1, 1), (down.output, across.output), (2, 3)] {
                let strip = Strip::new(down, across, rows, columns);
                let mut taps_at = vec![0; taps * taps];
                strip.taps(&mut taps_at);
                let mut seen = vec![0; down.output * across.output];
                for (isa, piece) in Isa::levels().flat_map(|isa| (0..strip.pieces()).map(move |piece| (isa, piece))) {
                    let (rows, columns) = strip.piece(piece);
                    let mut copied = vec![f32::NAN; strip.floats(1)];
                    strip.fill(isa, &plane, rows, columns.start, Some(-1.0), &mut copied);
                    // Once more, with the padding that is there.
                    strip.fill(isa, &plane, rows, columns.start, None, &mut copied);
                    for (i, column) in (0..rows.count).flat_map(|i| columns.clone().map(move |column| (i, column))) {
                        let row = rows.at(i);
                        seen[row * across.output + column] += 1;
                        for (tap, place) in taps_at.iter().enumerate() {
                            let at = (down.element(row, tap / taps), across.element(column, tap % taps));
                            let want = if let (Some(y), Some(x)) = at { plane[y * 11 + x] } else { -1.0 };
                            let got = copied[i * strip.step() + column - columns.start + place];
                            assert_eq!(got, want, "{isa:?} {down:?} {across:?} {row} {column} {tap}");
                        }
                    }
                }
                assert!(seen.iter().all(|&times| times == Isa::levels().count()), "{strip:?}: {seen:?}");
            }
        }
    }
}
