//! Normalisation: rows of numbers by their own statistics, or channels by given ones.
//!
//! A row takes three passes while it is in the cache: mean, mean of squared differences, and the result. Both sums are
//! kept as `reduce` keeps them. Plain loops: all levels give the same bits.
#![forbid(unsafe_code)]

use super::isa::Isa;
use super::levels::{self, Loop};
use super::reduce::{Fold, Reduction, Squares, Sum};

/// Numbers whose squared differences are added up in f32, and lanes.
const BLOCK: usize = 4096;
const LANES: usize = 16;

/// What a row is normalised by.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// Mean and variance.
    Variance,
    /// The mean of squares.
    Squares,
}

/// Scale and shift of a row, or of many.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    pub scale: Option<&'a [f32]>,
    pub shift: Option<&'a [f32]>,
}

impl<'a> Affine<'a> {
    /// A stretch of both.
    #[inline(always)]
    fn part(&self, begin: usize, len: usize) -> Affine<'a> {
        let part = |values: Option<&'a [f32]>| values.map(|values| &values[begin..][..len]);
        Affine { scale: part(self.scale), shift: part(self.shift) }
    }
}

/// Rows of `len` elements, one after the other.
#[derive(Debug)]
pub struct Rows<'a> {
    pub by: By,
    pub epsilon: f32,
    pub x: &'a [f32],
    pub out: &'a mut [f32],
    pub len: usize,
    /// Consecutive elements that have one scale and shift, `channels` times in a row: 1 and `len`, or a channel's.
    pub inner: usize,
    /// Number of the first row; row i begins at channel i * len / inner, again from 0 after `cycle` rows.
    pub first: usize,
    pub cycle: usize,
    pub affine: Affine<'a>,
}

impl Rows<'_> {
    pub fn normalise(self, isa: Isa) {
        assert!(self.x.len() == self.out.len() && self.len.is_multiple_of(self.inner));
        levels::on(isa, self);
    }
}

impl Loop for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let channels = self.len / self.inner;
        for (i, (x, out)) in self.x.chunks_exact(self.len).zip(self.out.chunks_exact_mut(self.len)).enumerate() {
            let (mean, factor) = statistics(self.by, self.epsilon, x);
            let affine = self.affine.part((self.first + i) % self.cycle * channels, channels);
            if self.inner == 1 {
                each(x, mean, factor, affine, out);
                continue;
            }
            for (c, (x, out)) in x.chunks_exact(self.inner).zip(out.chunks_exact_mut(self.inner)).enumerate() {
                let factor = factor * affine.scale.map_or(1.0, |scale| scale[c]);
                all(x, mean, factor, affine.shift.map_or(0.0, |shift| shift[c]), out);
            }
        }
    }
}

/// The mean that is taken off, and what the rest is multiplied with.
#[inline(always)]
fn statistics(by: By, epsilon: f32, x: &[f32]) -> (f32, f32) {
    let count = x.len() as f64;
    let (mean, power) = match by {
        By::Variance => {
            let mean = (Fold(Sum).row(x, 0) / count) as f32;
            (mean, squared_differences(x, mean))
        }
        By::Squares => (0.0, Fold(Squares).row(x, 0)),
    };
    (mean, (1.0 / (power / count + f64::from(epsilon)).sqrt()) as f32)
}

#[inline(always)]
fn squared_differences(x: &[f32], mean: f32) -> f64 {
    let mut total = 0.0;
    let square = |x: f32| (x - mean) * (x - mean);
    for block in x.chunks(BLOCK) {
        let (pairs, rest) = block.as_chunks::<{ 2 * LANES }>();
        let (mut a, mut b) = ([0f32; LANES], [0f32; LANES]);
        for pair in pairs {
            for j in 0..LANES {
                a[j] += square(pair[j]);
            }
            for j in 0..LANES {
                b[j] += square(pair[LANES + j]);
            }
        }
        let mut last = a;
        for (i, &x) in rest.iter().enumerate() {
            last[i % LANES] += square(x);
        }
        total += sum_of_lanes(&last, &b);
    }
    total
}

/// A function of its own, so that the loops in front of it keep their long vectors.
#[inline(never)]
fn sum_of_lanes(a: &[f32; LANES], b: &[f32; LANES]) -> f64 {
    let mut wide: [f64; LANES] = std::array::from_fn(|j| f64::from(a[j]) + f64::from(b[j]));
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            wide[j] += wide[j + half];
        }
        half /= 2;
    }
    wide[0]
}

/// out = (x - mean) * factor * scale + shift, with a scale and a shift for each.
#[inline(always)]
fn each(x: &[f32], mean: f32, factor: f32, affine: Affine<'_>, out: &mut [f32]) {
    let pairs = out.iter_mut().zip(x);
    match (affine.scale, affine.shift) {
        (None, None) => pairs.for_each(|(y, x)| *y = (x - mean) * factor),
        (Some(scale), None) => pairs.zip(scale).for_each(|((y, x), scale)| *y = (x - mean) * factor * scale),
        (None, Some(shift)) => pairs.zip(shift).for_each(|((y, x), shift)| *y = (x - mean) * factor + shift),
        (Some(scale), Some(shift)) => pairs
            .zip(scale.iter().zip(shift))
            .for_each(|((y, x), (scale, shift))| *y = (x - mean) * factor * scale + shift),
    }
}

/// The same with one for all.
#[inline(always)]
fn all(x: &[f32], mean: f32, factor: f32, shift: f32, out: &mut [f32]) {
    for (y, x) in out.iter_mut().zip(x) {
        *y = (x - mean) * factor + shift;
    }
}

/// Elements of channels with given statistics: `inner` of one channel, then `inner` of the next.
#[derive(Debug)]
pub struct Channels<'a> {
    pub mean: &'a [f32],
    pub variance: &'a [f32],
    pub epsilon: f32,
    pub affine: Affine<'a>,
    pub inner: usize,
    pub x: &'a [f32],
    pub out: &'a mut [f32],
    /// Number of the first element.
    pub first: usize,
}

/// Channels whose factors are computed at once, where each has but one element in a row.
const AT_ONCE: usize = 256;

impl Channels<'_> {
    pub fn normalise(self, isa: Isa) {
        assert!(self.x.len() == self.out.len());
        levels::on(isa, self);
    }

    #[inline(always)]
    fn factor(&self, channel: usize) -> f32 {
        let scale = self.affine.scale.map_or(1.0, |scale| f64::from(scale[channel]));
        (scale / (f64::from(self.variance[channel]) + f64::from(self.epsilon)).sqrt()) as f32
    }
}

impl Loop for Channels<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let count = self.mean.len();
        let (mut x, mut out) = (self.x, std::mem::take(&mut self.out));
        if self.inner > 1 {
            let (mut channel, mut at) = (self.first / self.inner % count, self.first % self.inner);
            while !out.is_empty() {
                let len = (self.inner - at).min(out.len());
                let (part, rest) = out.split_at_mut(len);
                let shift = self.affine.shift.map_or(0.0, |shift| shift[channel]);
                all(&x[..len], self.mean[channel], self.factor(channel), shift, part);
                (x, out, at) = (&x[len..], rest, 0);
                channel = if channel + 1 == count { 0 } else { channel + 1 };
            }
            return;
        }
        // Channels side by side: for some of them their factors, and then all rows.
        let mut factors = [0f32; AT_ONCE];
        for begin in (0..count).step_by(AT_ONCE) {
            let channels = begin..(begin + AT_ONCE).min(count);
            for (factor, channel) in factors.iter_mut().zip(channels.clone()) {
                *factor = self.factor(channel);
            }
            // A row begins where the channel is 0; the first one, and the last, may be a part.
            let mut row = 0isize - (self.first % count) as isize;
            while row < out.len() as isize {
                let low = (row + channels.start as isize).max(0) as usize;
                let high = (row + channels.end as isize).clamp(low as isize, out.len().max(low) as isize) as usize;
                if low < high {
                    let channel = (low as isize - row) as usize;
                    let len = high - low;
                    let (x, out) = (&x[low..high], &mut out[low..high]);
                    let constants = self.mean[channel..][..len].iter().zip(&factors[channel - begin..][..len]);
                    match self.affine.shift {
                        None => out.iter_mut().zip(x).zip(constants).for_each(|((y, x), (m, f))| *y = (x - m) * f),
                        Some(shift) => {
                            let constants = constants.zip(&shift[channel..][..len]);
                            out.iter_mut().zip(x).zip(constants).for_each(|((y, x), ((m, f), s))| *y = (x - m) * f + s);
                        }
                    }
                }
                row += count as isize;
            }
        }
    }
}

/// Estimated time of an element.
pub fn element_ns(isa: Isa) -> f32 {
    if isa > Isa::Portable { 0.15 } else { 0.4 }
}
