//! Normalisation: rows of numbers by their own statistics, or channels by given ones. All levels give the same bits.

mod rows;

use super::isa::Isa;
use super::levels::{self, Loop};
use super::reduce::{Fold, Reduction, Squares};

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
    pub fn normalise(mut self, isa: Isa) {
        assert!(self.x.len() == self.out.len() && self.len.is_multiple_of(self.inner));
        match self.by {
            By::Variance => rows::by_variance(isa, &mut self),
            By::Squares => levels::on(isa, self),
        }
    }
}

/// Rows by the mean of their squares, which is kept in f64: squares leave the range of f32.
impl Loop for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (count, channels) = (self.len as f64, self.len / self.inner);
        for (i, (x, out)) in self.x.chunks_exact(self.len).zip(self.out.chunks_exact_mut(self.len)).enumerate() {
            let factor = (1.0 / (Fold(Squares).row(x, 0) / count + f64::from(self.epsilon)).sqrt()) as f32;
            let affine = self.affine.part((self.first + i) % self.cycle * channels, channels);
            if self.inner == 1 {
                each(x, factor, affine, out);
                continue;
            }
            for (c, (x, out)) in x.chunks_exact(self.inner).zip(out.chunks_exact_mut(self.inner)).enumerate() {
                let factor = factor * affine.scale.map_or(1.0, |scale| scale[c]);
                all(x, 0.0, factor, affine.shift.map_or(0.0, |shift| shift[c]), out);
            }
        }
    }
}

/// out = x * factor * scale + shift, with a scale and a shift for each.
#[inline(always)]
fn each(x: &[f32], factor: f32, affine: Affine<'_>, out: &mut [f32]) {
    let pairs = out.iter_mut().zip(x);
    match (affine.scale, affine.shift) {
        (None, None) => pairs.for_each(|(y, x)| *y = x * factor),
        (Some(scale), None) => pairs.zip(scale).for_each(|((y, x), scale)| *y = x * factor * scale),
        (None, Some(shift)) => pairs.zip(shift).for_each(|((y, x), shift)| *y = x * factor + shift),
        (Some(scale), Some(shift)) => {
            pairs.zip(scale.iter().zip(shift)).for_each(|((y, x), (scale, shift))| *y = x * factor * scale + shift)
        }
    }
}

/// out = (x - mean) * factor + shift.
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
