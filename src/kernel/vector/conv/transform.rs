//! The transforms of Winograd's F(2 x 2, 3 x 3): of tiles, of sums and of weights (`winograd`).

use super::super::isa::{Isa, SimdLevel};
use super::super::lanes::{Baseline, Vector};
use super::super::tile::ask_to_read;
use std::ops::Range;

/// Places of a tile, and taps of a window.
pub const PLACES: usize = 16;
pub const TAPS: usize = 9;
/// Floats behind a group of tiles: they are copied by whole registers.
pub const BEHIND: usize = 16;
/// Floats behind the rows of a strip that may be read: two registers of which two floats are elements of a tile.
pub const BEHIND_ROWS: usize = 32;
/// Floats of a cache line.
const LINE: usize = 16;
/// Places are prefetched so many channels before they are written.
const CHANNELS_AHEAD: usize = 2;

/// Tiles in groups of about the same size.
#[derive(Clone, Copy)]
pub struct TileGroups {
    pub tiles: usize,
    pub count: usize,
}

impl TileGroups {
    #[inline(always)]
    pub fn at(&self, group: usize) -> Range<usize> {
        group * self.tiles / self.count..(group + 1) * self.tiles / self.count
    }

    /// The size of the groups, if all have the same and each is a part of a row of so many tiles.
    #[inline(always)]
    fn parts_of(&self, columns: usize) -> Option<usize> {
        let size = self.tiles / self.count;
        (size * self.count == self.tiles && columns.is_multiple_of(size)).then_some(size)
    }

    pub fn numbered(self) -> impl Iterator<Item = (usize, Range<usize>)> {
        (0..self.count).map(move |group| (group, self.at(group)))
    }
}

/// Calls a method or a function with the registers of a level.
macro_rules! on {
    ($isa:expr, |$vector:ident| $call:expr) => {
        match $isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => {
                type $vector = std::arch::x86_64::__m512;
                #[target_feature(enable = "avx512f")]
                fn with_avx512(run: impl FnOnce()) {
                    run()
                }
                with_avx512(
                    #[inline(always)]
                    || $call,
                )
            }
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => {
                type $vector = std::arch::x86_64::__m256;
                #[target_feature(enable = "avx2,fma")]
                fn with_avx2(run: impl FnOnce()) {
                    run()
                }
                with_avx2(
                    #[inline(always)]
                    || $call,
                )
            }
            _ => {
                type $vector = Baseline;
                $call
            }
        }
    };
}

/// Tiles of a channel to be transformed.
pub struct TilesOfChannel {
    /// The strip, with floats from one row to the next: four rows of elements, and two more for each further row of
    /// tiles.
    pub x: *const f32,
    pub row: usize,
    pub rows: usize,
    pub columns: usize,
    /// `[place][tile]`, and floats from one place to the next.
    pub at: *mut f32,
    pub at_place: usize,
    pub groups: TileGroups,
    /// The number of the channel, and of all.
    pub number: (usize, usize),
    /// `[place][group][channel][tile]`, and floats from one place to the next.
    pub to: *mut f32,
    pub to_place: usize,
}

impl TilesOfChannel {
    /// # Safety
    /// The level is supported. The strip has all tiles, and there is room for them, with a register behind the tiles of
    /// each place, and of each group.
    pub unsafe fn transform(&self, isa: Isa) {
        // SAFETY: as demanded of the caller.
        unsafe { on!(isa, |V| self.vectors::<V>()) }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(&self) {
        let (channel, channels) = self.number;
        self.ask_for_places();
        // SAFETY: as demanded of the caller. Floats stored behind the last tile of a row, or of a channel in a group,
        // are not read, or stored again by what follows.
        unsafe {
            if let Some(size) = self.groups.parts_of(self.columns) {
                for group in 0..self.groups.count {
                    let (row, column) = (group * size / self.columns, group * size % self.columns);
                    let to = self.to.add((group * channels + channel) * size + group * BEHIND);
                    for at in (0..size).step_by(V::LANES) {
                        self.register::<V>(row, column + at, to.add(at), self.to_place);
                    }
                }
                return;
            }
            for row in 0..self.rows {
                for column in (0..self.columns).step_by(V::LANES) {
                    self.register::<V>(row, column, self.at.add(row * self.columns + column), self.at_place);
                }
            }
            for group in 0..self.groups.count {
                let of = self.groups.at(group);
                let to = self.to.add(of.start * channels + channel * of.len() + group * BEHIND);
                for place in 0..PLACES {
                    let (from, to) = (self.at.add(place * self.at_place + of.start), to.add(place * self.to_place));
                    for at in (0..of.len()).step_by(V::LANES) {
                        V::load(from.add(at)).store(to.add(at));
                    }
                }
            }
        }
    }

    /// Prefetches the places of a channel that comes soon. They are in as many lines as places times groups, each of
    /// which gets a few floats of a channel: where these lines are not in the caches, and what is there has to be
    /// written back first, an Intel processor waits for one line after the other. Asked for as lines that are read,
    /// they come in half of the time; no other processor has them, so they can be written then.
    #[inline(always)]
    fn ask_for_places(&self) {
        let (channel, channels) = (self.number.0 + CHANNELS_AHEAD, self.number.1);
        for (group, of) in self.groups.numbered() {
            let to = self.to.wrapping_add(of.start * channels + channel * of.len() + group * BEHIND);
            for place in 0..PLACES {
                // The line behind: the others were begun by the channel before.
                for at in (0..of.len()).step_by(LINE) {
                    ask_to_read(to.wrapping_add(place * self.to_place + at + LINE - 1));
                }
            }
        }
    }

    /// Transforms a register of tiles of a row, from a column on.
    ///
    /// # Safety
    /// As `transform`: there are `PLACES` times as many floats at `to`, so many from one place to the next.
    #[inline(always)]
    unsafe fn register<V: Vector>(&self, row: usize, column: usize, to: *mut f32, to_place: usize) {
        // SAFETY: as demanded of the caller; two registers follow the first element, and its second neighbour.
        unsafe {
            let x = self.x.add(2 * row * self.row + 2 * column);
            // Bt d, two columns of the tile at a time.
            let mut half = [[V::splat(0.0); 4]; 4];
            for j in [0, 2] {
                let d = |i: usize| {
                    let x = x.add(i * self.row + j);
                    let (near, far) = (V::load(x), V::load(x.add(V::LANES)));
                    [near.evens(far), near.odds(far)]
                };
                let (d0, d1, d2, d3) = (d(0), d(1), d(2), d(3));
                for k in 0..2 {
                    half[0][j + k] = d0[k].sub(d2[k]);
                    half[1][j + k] = d1[k].add(d2[k]);
                    half[2][j + k] = d2[k].sub(d1[k]);
                    half[3][j + k] = d1[k].sub(d3[k]);
                }
            }
            // Times B.
            for (i, [h0, h1, h2, h3]) in half.into_iter().enumerate() {
                let place = |j: usize| to.add((4 * i + j) * to_place);
                h0.sub(h2).store(place(0));
                h1.add(h2).store(place(1));
                h2.sub(h1).store(place(2));
                h1.sub(h3).store(place(3));
            }
        }
    }
}

/// Sums to be transformed into elements of the output.
pub struct OutputOfPiece {
    /// `[place][tile][filter]`
    pub sums: *const f32,
    /// Rows of tiles, and tiles of each.
    pub tiles: (usize, usize),
    pub blocks: usize,
    /// Rows of the output, and windows of each: twice as many, or one less.
    pub rows: usize,
    pub columns: usize,
    /// `[window][filter]`
    pub to: *mut f32,
}

impl OutputOfPiece {
    /// # Safety
    /// The level is supported; there are the sums of all tiles, room for so many windows, and a first value for each
    /// filter.
    pub unsafe fn transform(&self, isa: Isa, first: *const f32) {
        // SAFETY: as demanded of the caller.
        unsafe { on!(isa, |V| self.vectors::<V>(first)) }
    }

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "the number of a column, or of a row of columns")]
    unsafe fn vectors<V: Vector>(&self, first: *const f32) {
        let (down, across) = self.tiles;
        let width = self.blocks * V::LANES;
        // SAFETY: as demanded of the caller.
        unsafe {
            for tile in 0..down * across {
                let (row, column) = (2 * (tile / across), 2 * (tile % across));
                for block in 0..self.blocks {
                    let at = block * V::LANES;
                    let first = V::load(first.add(at));
                    let m = |place: usize| V::load(self.sums.add((place * down * across + tile) * width + at));
                    // At M, a column at a time.
                    let mut half = [[V::splat(0.0); 4]; 2];
                    for j in 0..4 {
                        let (m0, m1, m2, m3) = (m(j), m(4 + j), m(8 + j), m(12 + j));
                        half[0][j] = m0.add(m1).add(m2);
                        half[1][j] = m1.sub(m2).sub(m3);
                    }
                    // Times A.
                    for (i, [h0, h1, h2, h3]) in half.into_iter().enumerate() {
                        if row + i < self.rows {
                            let to = self.to.add(((row + i) * self.columns + column) * width + at);
                            h0.add(h1).add(h2).add(first).store(to);
                            if column + 1 < self.columns {
                                h1.sub(h2).sub(h3).add(first).store(to.add(width));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// U = G g Gt for a block of filters: from `[channel][tap][lanes]` to `[place][channel][lanes]`.
///
/// # Safety
/// The level is supported; both have all channels.
pub unsafe fn transform_weights(isa: Isa, from: *const f32, channels: usize, to: *mut f32) {
    // SAFETY: as demanded of the caller.
    unsafe { on!(isa, |V| weights_of::<V>(from, channels, to)) }
}

/// # Safety
/// As `transform_weights`, with the processor's registers.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "the number of a column, or of a row of columns")]
unsafe fn weights_of<V: Vector>(from: *const f32, channels: usize, to: *mut f32) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let half = V::splat(0.5);
        // G times three numbers.
        let turned = |g: [V; 3]| {
            let (ends, middle) = (g[0].add(g[2]).mul(half), g[1].mul(half));
            [g[0], ends.add(middle), ends.sub(middle), g[2]]
        };
        for channel in 0..channels {
            let g = |tap: usize| V::load(from.add((channel * TAPS + tap) * V::LANES));
            // [column][row]
            let left: [[V; 4]; 3] = std::array::from_fn(|j| turned([g(j), g(3 + j), g(6 + j)]));
            for i in 0..4 {
                for (j, u) in turned([left[0][i], left[1][i], left[2][i]]).into_iter().enumerate() {
                    u.store(to.add(((4 * i + j) * channels + channel) * V::LANES));
                }
            }
        }
    }
}
