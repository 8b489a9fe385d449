//! The inner loop of convolutions whose registers lie along the filters: a tile of windows by blocks of filters.
//!
//! A *block* is as many filters as a register has lanes; their weights are packed side by side, `[K][lanes]`
//! (`filters`). For each of the K places under a window a tile loads the weights of its blocks and one element for each
//! window, and adds all products to its sums, which stay in registers.
//!
//! An element is the chain first + x * weight over channels and taps in order, in every tile. Sums that are stored and
//! loaded between two stretches of channels stay what they are.
//!
//! In a network the weights of a layer come from memory, as those of the others have driven them out. While a few tiles
//! use some weights they prefetch the next ones, a part each.

use super::super::isa::{Isa, SimdLevel};
use super::super::lanes::{Baseline, Vector};
use super::super::tile::prefetch;

/// The registers of an instruction set.
#[derive(Clone, Copy, Debug)]
pub struct FilterRegisters {
    /// Floats of one, which is also the size of a block of filters.
    pub lanes: usize,
    /// Most windows of a tile of one block, of two, and so on.
    pub windows: &'static [usize],
}

impl FilterRegisters {
    /// With weights and an element of each window, a register stays free: with none, compilers store sums in between.
    pub fn of(isa: Isa) -> FilterRegisters {
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => FilterRegisters { lanes: 16, windows: &[14, 14, 9] },
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => FilterRegisters { lanes: 8, windows: &[8, 6] },
            _ => FilterRegisters { lanes: Baseline::LANES, windows: &[8, 5] },
        }
    }

    /// The number of blocks, at most `left`, with which tiles take least time, and the windows of a tile: those of a
    /// row are divided evenly.
    pub fn tile(&self, columns: usize, left: usize) -> (usize, usize) {
        let mut best = (f32::MAX, 1, 1);
        for blocks in 1..=self.windows.len().min(left) {
            let tiles = columns.div_ceil(self.windows[blocks - 1]);
            let windows = columns.div_ceil(tiles);
            // Two products or two loads in a cycle; a sum is ready after four.
            let cycles = ((windows * blocks) as f32 / 2.0).max((windows + blocks) as f32 / 2.0).max(4.0);
            let time = cycles * tiles as f32 / blocks as f32;
            if time <= best.0 {
                best = (time, blocks, windows);
            }
        }
        (best.1, best.2)
    }
}

/// Weights that are needed next, and are prefetched into the L2 cache meanwhile: at each place a cache line of each
/// block. They are never read: any address is allowed.
#[derive(Clone, Copy)]
pub struct NextWeights {
    data: *const f32,
    /// Floats from one place's line to the next one's.
    step: usize,
}

impl NextWeights {
    /// The part that one of several tiles, which all use weights of so many places, prefetches of those from `data` on.
    pub fn of_part(data: *const f32, lanes: usize, places: usize, (part, parts): (usize, usize)) -> NextWeights {
        NextWeights { data: data.wrapping_add(part * places * lanes / parts), step: lanes.div_ceil(parts) }
    }
}

/// A few neighbouring windows of a row, and a few blocks of filters.
pub struct Tile<'a> {
    /// The first window in the strip.
    pub x: *const f32,
    /// Floats from one channel of the strip to the next.
    pub channel: usize,
    /// The place of each tap, as seen from its window.
    pub taps: &'a [usize],
    pub channels: usize,
    pub weights: *const f32,
    /// Floats from the weights of one block to those of the next.
    pub block_step: usize,
    pub next: NextWeights,
    /// The first values of the sums, for each filter; `None`: those that were stored.
    pub first: Option<*const f32>,
    /// `[window][filter]`
    pub sums: *mut f32,
}

/// Calls the tile of constant sizes.
macro_rules! tiles {
    ($tile:expr, $isa:ident, $sizes:expr; $($blocks:literal: $($windows:literal)*),*) => {
        match $sizes {
            $($(($blocks, $windows) => $tile.$isa::<$blocks, $windows>(),)*)*
            (blocks, windows) => unreachable!("a tile of {blocks} blocks and {windows} windows"),
        }
    };
}

impl Tile<'_> {
    /// # Safety
    /// The processor has the instruction set. The strip has the elements under so many windows in so many channels;
    /// there are weights of so many blocks, and as many sums, exclusively.
    pub unsafe fn compute(&self, isa: Isa, blocks: usize, windows: usize) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match isa.level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => {
                    tiles!(self, avx512, (blocks, windows); 1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14,
                        2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14, 3: 1 2 3 4 5 6 7 8 9)
                }
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => tiles!(self, avx2, (blocks, windows); 1: 1 2 3 4 5 6 7 8, 2: 1 2 3 4 5 6),
                _ => tiles!(self, baseline, (blocks, windows); 1: 1 2 3 4 5 6 7 8, 2: 1 2 3 4 5),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<const BLOCKS: usize, const WINDOWS: usize>(&self) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m512, BLOCKS, WINDOWS>() }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<const BLOCKS: usize, const WINDOWS: usize>(&self) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<std::arch::x86_64::__m256, BLOCKS, WINDOWS>() }
    }

    unsafe fn baseline<const BLOCKS: usize, const WINDOWS: usize>(&self) {
        // SAFETY: as demanded of the caller.
        unsafe { self.vectors::<Baseline, BLOCKS, WINDOWS>() }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector, const BLOCKS: usize, const WINDOWS: usize>(&self) {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut sums = [[V::splat(0.0); BLOCKS]; WINDOWS];
            for (i, sums) in sums.iter_mut().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = match self.first {
                        Some(first) => V::load(first.add(j * V::LANES)),
                        None => V::load(self.sums.add((i * BLOCKS + j) * V::LANES)),
                    };
                }
            }
            let (mut x, mut weights, mut next) = (self.x, self.weights, self.next.data);
            for _ in 0..self.channels {
                for &place in self.taps {
                    let x = x.add(place);
                    let mut of = [V::splat(0.0); BLOCKS];
                    for (j, of) in of.iter_mut().enumerate() {
                        *of = V::load(weights.add(j * self.block_step));
                        prefetch(next.wrapping_add(j * self.block_step));
                    }
                    next = next.wrapping_add(self.next.step);
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let x = V::splat(*x.add(i));
                        for (sum, of) in sums.iter_mut().zip(of) {
                            *sum = of.mul_add(x, *sum);
                        }
                    }
                    weights = weights.add(V::LANES);
                }
                x = x.wrapping_add(self.channel);
            }
            // By reference: arrays that are iterated by value are moved through memory, in pieces of other sizes.
            for (i, sums) in sums.iter().enumerate() {
                for (j, sum) in sums.iter().enumerate() {
                    sum.store(self.sums.add((i * BLOCKS + j) * V::LANES));
                }
            }
        }
    }
}
