//! The innermost loop of a recurrent step: some rows of h times the packed weights of some units of a gate.
//!
//! Registers lie along the units. A tile is a few rows by up to four registers; of a single row it is the units of two
//! gates, so that enough chains of additions are on their way. An element is one chain over K from zero; then what is
//! to be added to it is added. The tile that it lies in does not change it.

use super::isa::{Isa, SimdLevel};
use super::lanes::{Baseline, Vector};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m512};

/// Registers of units in a panel.
const REGISTERS: usize = 4;
/// Most rows of a tile, with 32 registers and with 16.
#[cfg(target_arch = "x86_64")]
const MANY_ROWS: usize = 6;
const ROWS: usize = 3;

/// The weights and summands of a gate.
#[derive(Clone, Copy, Debug)]
pub struct GateSums {
    /// Weights, [K][units of a panel].
    pub panel: *const f32,
    /// The addend of the first row.
    pub more: Option<*const f32>,
    /// The addend of each row.
    pub bias: Option<*const f32>,
}

/// A tile of one gate, or of two.
struct RecurrentTile {
    depth: usize,
    h: *const f32,
    h_stride: usize,
    gates: [GateSums; 2],
    more_stride: usize,
    columns: usize,
    /// For each gate.
    to: [*mut f32; 2],
}

type RecurrentFunction = unsafe fn(&RecurrentTile);

/// The tiles of an instruction set.
#[derive(Clone, Copy)]
pub struct RecurrentTiles {
    lanes: usize,
    /// Of two gates and a row, by the registers of units.
    pairs: [RecurrentFunction; REGISTERS],
    /// By rows, and registers of units.
    functions: &'static [[RecurrentFunction; REGISTERS]],
}

macro_rules! row {
    ($name:ident, $gates:literal, $rows:literal) => {
        [
            $name::<$gates, $rows, 1> as RecurrentFunction,
            $name::<$gates, $rows, 2> as RecurrentFunction,
            $name::<$gates, $rows, 3> as RecurrentFunction,
            $name::<$gates, $rows, 4> as RecurrentFunction,
        ]
    };
}

static BASELINE: [[RecurrentFunction; REGISTERS]; ROWS] =
    [row!(baseline, 1, 1), row!(baseline, 1, 2), row!(baseline, 1, 3)];
#[cfg(target_arch = "x86_64")]
static AVX2: [[RecurrentFunction; REGISTERS]; ROWS] = [row!(avx2, 1, 1), row!(avx2, 1, 2), row!(avx2, 1, 3)];
#[cfg(target_arch = "x86_64")]
static AVX512: [[RecurrentFunction; REGISTERS]; MANY_ROWS] = [
    row!(avx512, 1, 1),
    row!(avx512, 1, 2),
    row!(avx512, 1, 3),
    row!(avx512, 1, 4),
    row!(avx512, 1, 5),
    row!(avx512, 1, 6),
];

impl RecurrentTiles {
    /// Those of a level that the processor has.
    pub fn of(isa: Isa) -> RecurrentTiles {
        isa.assert_detected();
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => RecurrentTiles { lanes: __m512::LANES, pairs: row!(avx512, 2, 1), functions: &AVX512 },
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => RecurrentTiles { lanes: __m256::LANES, pairs: row!(avx2, 2, 1), functions: &AVX2 },
            _ => RecurrentTiles { lanes: Baseline::LANES, pairs: row!(baseline, 2, 1), functions: &BASELINE },
        }
    }

    /// Units of a panel.
    pub fn units(&self) -> usize {
        REGISTERS * self.lanes
    }

    /// Distance between rows of sums of so many units.
    pub fn pitch(&self, units: usize) -> usize {
        units.next_multiple_of(self.lanes)
    }

    /// Sums of `rows` rows of `h`, which lie one behind the other, for `units` units of each gate, over `depth`: to
    /// `to`, gate after gate, rows of `pitch` floats. `more_stride` is the distance between rows of what is added.
    ///
    /// # Safety
    /// All of it is there, in panels of this level, and `to` is nobody else's; the processor has the level.
    pub unsafe fn sums(
        &self,
        (rows, units, depth): (usize, usize, usize),
        h: *const f32,
        gates: &[GateSums],
        more_stride: usize,
        to: *mut f32,
    ) {
        assert!((1..=self.units()).contains(&units));
        let (pitch, registers) = (self.pitch(units), units.div_ceil(self.lanes));
        let size = rows * pitch;
        let nothing = GateSums { panel: std::ptr::null(), more: None, bias: None };
        if rows == 1 {
            for (i, pair) in gates.chunks(2).enumerate() {
                let at = to.wrapping_add(2 * i * size);
                let gates = [pair[0], *pair.get(1).unwrap_or(&nothing)];
                let to = [at, at.wrapping_add(size)];
                let tile = RecurrentTile { depth, h, h_stride: 0, gates, more_stride, columns: units, to };
                let functions = if pair.len() == 2 { &self.pairs } else { &self.functions[0] };
                // SAFETY: as demanded of the caller; the tile has these gates, one row and so many registers.
                unsafe { functions[registers - 1](&tile) };
            }
            return;
        }
        let parts = rows.div_ceil(self.functions.len());
        for (i, gate) in gates.iter().enumerate() {
            for part in 0..parts {
                let (first, end) = (part * rows / parts, (part + 1) * rows / parts);
                let at = to.wrapping_add(i * size + first * pitch);
                let more = gate.more.map(|more| more.wrapping_add(first * more_stride));
                let tile = RecurrentTile {
                    depth,
                    h: h.wrapping_add(first * depth),
                    h_stride: depth,
                    gates: [GateSums { more, ..*gate }, nothing],
                    more_stride,
                    columns: units,
                    to: [at; 2],
                };
                // SAFETY: as above, of one gate.
                unsafe { self.functions[end - first - 1][registers - 1](&tile) };
            }
        }
    }
}

/// # Safety
/// As `RecurrentTiles::sums`, of P gates, R rows and W registers.
unsafe fn baseline<const P: usize, const R: usize, const W: usize>(tile: &RecurrentTile) {
    // SAFETY: passed on.
    unsafe { run::<Baseline, P, R, W>(tile) }
}

/// # Safety
/// As `baseline`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const P: usize, const R: usize, const W: usize>(tile: &RecurrentTile) {
    // SAFETY: passed on.
    unsafe { run::<__m256, P, R, W>(tile) }
}

/// # Safety
/// As `baseline`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const P: usize, const R: usize, const W: usize>(tile: &RecurrentTile) {
    // SAFETY: passed on.
    unsafe { run::<__m512, P, R, W>(tile) }
}

/// # Safety
/// As `baseline`, on a processor with the instructions of V.
#[inline(always)]
unsafe fn run<V: Vector, const P: usize, const R: usize, const W: usize>(tile: &RecurrentTile) {
    // SAFETY: `depth` rows of the panels, and as many numbers of each row of h; the rest as demanded of the caller.
    unsafe {
        let mut sums = [[[V::splat(0.0); W]; R]; P];
        let (mut h, mut panels) = (tile.h, [tile.gates[0].panel, tile.gates[1].panel]);
        for _ in 0..tile.depth {
            let mut of_h = [V::splat(0.0); R];
            for (r, of_h) in of_h.iter_mut().enumerate() {
                *of_h = V::splat(*h.add(r * tile.h_stride));
            }
            for (p, sums) in sums.iter_mut().enumerate() {
                for w in 0..W {
                    let weights = V::load(panels[p].add(w * V::LANES));
                    for (r, sums) in sums.iter_mut().enumerate() {
                        sums[w] = of_h[r].mul_add(weights, sums[w]);
                    }
                }
                panels[p] = panels[p].add(REGISTERS * V::LANES);
            }
            h = h.add(1);
        }
        for (p, sums) in sums.into_iter().enumerate() {
            let gate = &tile.gates[p];
            for (r, row) in sums.into_iter().enumerate() {
                for (w, mut sum) in row.into_iter().enumerate() {
                    let (at, count) = (w * V::LANES, V::LANES.min(tile.columns - w * V::LANES));
                    if let Some(more) = gate.more {
                        sum = V::load_first(more.add(r * tile.more_stride + at), count).add(sum);
                    }
                    if let Some(bias) = gate.bias {
                        sum = sum.add(V::load_first(bias.add(at), count));
                    }
                    sum.store(tile.to[p].add((r * W + w) * V::LANES));
                }
            }
        }
    }
}
