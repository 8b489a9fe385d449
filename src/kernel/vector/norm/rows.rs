//! Normalisation of rows by their own statistics, in registers.
//!
//! A row takes three passes while it is in the cache: mean, mean of squared differences, and the result; or two: mean
//! of squares, and the result. All but the last end in a latency-bound chain, so short rows go through a pass several
//! at a time: the chain of one overlaps with the sums of the next.

use super::{Affine, all};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::ElementPair;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::wide::{self, LANES, Wide, WideWork};

/// Numbers that are summed in f32.
const BLOCK: usize = 4096;
/// Approximate numbers of the rows that go through a pass at once, and the maximum of such rows.
const GROUP: usize = 2048;
const ROWS: usize = 8;
/// Accumulators side by side.
const SUMS: usize = 4;

/// The statistic that normalises a row.
#[derive(Clone, Copy, Debug)]
pub enum RowStatistic {
    /// Mean and variance.
    Variance,
    /// The mean of squares.
    Squares,
}

/// Rows of `len` elements, one after the other.
#[derive(Debug)]
pub struct RowNorm<'a, T, P> {
    pub by: RowStatistic,
    pub epsilon: f32,
    pub pair: ElementPair<'a, T, T>,
    pub len: usize,
    /// Consecutive elements with one scale and shift, `channels` times in a row: 1 and `len`, or a channel's.
    pub inner: usize,
    /// Index of the first row; row i begins at channel i * len / inner, again from 0 after `cycle` rows.
    pub first: usize,
    pub cycle: usize,
    pub affine: Affine<'a, P>,
}

impl<T: Stored, P: Stored> RowNorm<'_, T, P> {
    pub fn normalise(self, isa: Isa) {
        assert!(self.len.is_multiple_of(self.inner));
        wide::on(isa, self);
    }

    /// A row of the result.
    ///
    /// # Safety
    /// As of `Wide`.
    #[inline(always)]
    unsafe fn write<W: Wide>(&mut self, number: usize, mean: f32, factor: f32) {
        let (len, inner) = (self.len, self.inner);
        let channels = len / inner;
        // A division takes as long as a short row's sums.
        let at = if self.cycle == 1 { 0 } else { (self.first + number) % self.cycle * channels };
        let affine = self.affine.part(at, channels);
        let mut row = self.pair.part(number * len..(number + 1) * len);
        // SAFETY: as demanded of the caller.
        unsafe {
            if inner == 1 {
                return match (affine.scale, affine.shift) {
                    (None, None) => each::<W, T, P, false, false>(row, mean, factor, (&[], &[])),
                    (Some(scale), None) => each::<W, T, P, true, false>(row, mean, factor, (scale, &[])),
                    (None, Some(shift)) => each::<W, T, P, false, true>(row, mean, factor, (&[], shift)),
                    (Some(scale), Some(shift)) => each::<W, T, P, true, true>(row, mean, factor, (scale, shift)),
                };
            }
            for c in 0..channels {
                let (scale, shift) = affine.of(c);
                all::<W, T>(row.part(c * inner..(c + 1) * inner), mean, factor * scale, shift);
            }
        }
    }
}

impl<T: Stored, P: Stored> WideWork for RowNorm<'_, T, P> {
    #[inline(always)]
    unsafe fn run<W: Wide>(mut self) {
        let (len, count) = (self.len, self.pair.num_elements() / self.len);
        let (inverse, epsilon) = (1.0 / len as f64, f64::from(self.epsilon));
        let factor = |power: f64| (1.0 / (power * inverse + epsilon).sqrt()) as f32;
        let at_once = (GROUP / len).clamp(1, ROWS);
        let mut first = 0;
        while first < count {
            let some = at_once.min(count - first);
            let rows = &self.pair.x()[first * len..][..some * len];
            let (mut means, mut factors) = ([0f32; ROWS], [0f32; ROWS]);
            // SAFETY: as demanded of the caller.
            unsafe {
                match self.by {
                    RowStatistic::Variance => {
                        for (mean, x) in means.iter_mut().zip(rows.chunks_exact(len)) {
                            *mean = (sum::<W, T, false>(x, 0.0) * inverse) as f32;
                        }
                        for (i, x) in rows.chunks_exact(len).enumerate() {
                            factors[i] = factor(sum::<W, T, true>(x, means[i]));
                        }
                    }
                    RowStatistic::Squares => {
                        for (of_row, x) in factors.iter_mut().zip(rows.chunks_exact(len)) {
                            *of_row = factor(squares::<W, T>(x));
                        }
                    }
                }
                for i in 0..some {
                    self.write::<W>(first + i, means[i], factors[i]);
                }
            }
            first += some;
        }
    }
}

/// The sum of x, or of (x - mean)^2: in f32 within a block, with the total in f64.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn sum<W: Wide, T: Stored, const SQUARES: bool>(x: &[T], mean: f32) -> f64 {
    let mut total = 0.0;
    let mut begin = 0;
    while begin < x.len() {
        let len = BLOCK.min(x.len() - begin);
        let block = &x[begin..][..len];
        let (whole, steps) = (len - len % LANES, len - len % (SUMS * LANES));
        // SAFETY: as demanded of the caller; addresses are of the block's elements.
        unsafe {
            let (data, mean) = (block.as_ptr(), W::splat(mean));
            let term = |x: W| if SQUARES { x.sub(mean).mul(x.sub(mean)) } else { x };
            let mut sums = [W::splat(0.0); SUMS];
            let mut at = 0;
            while at < steps {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.add(term(W::load(data.add(at + i * LANES))));
                }
                at += SUMS * LANES;
            }
            while at < whole {
                sums[0] = sums[0].add(term(W::load(data.add(at))));
                at += LANES;
            }
            if at < len {
                sums[1] = sums[1].add(term(W::load_part(data.add(at), len - at)).first(len - at));
            }
            total += sums[0].add(sums[1]).add(sums[2].add(sums[3])).total();
        }
        begin += len;
    }
    total
}

/// The sum of x^2, in f64: squares exceed the range of f32.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn squares<W: Wide, T: Stored>(x: &[T]) -> f64 {
    let len = x.len();
    let (data, whole, steps) = (x.as_ptr(), len - len % LANES, len - len % (2 * LANES));
    // SAFETY: as demanded of the caller; addresses are of elements of x.
    unsafe {
        let (mut even, mut odd) = (W::doubles(0.0), W::doubles(0.0));
        let mut at = 0;
        while at < steps {
            even = W::load(data.add(at)).add_squares(even);
            odd = W::load(data.add(at + LANES)).add_squares(odd);
            at += 2 * LANES;
        }
        if at < whole {
            even = W::load(data.add(at)).add_squares(even);
            at += LANES;
        }
        if at < len {
            odd = W::load_part(data.add(at), len - at).add_squares(odd);
        }
        W::total_of_doubles(W::add_doubles(even, odd))
    }
}

/// out = (x - mean) * factor * scale + shift, with a scale and a shift for each element, if any.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn each<W: Wide, T: Stored, P: Stored, const SCALE: bool, const SHIFT: bool>(
    mut pair: ElementPair<'_, T, T>,
    mean: f32,
    factor: f32,
    (scale, shift): (&[P], &[P]),
) {
    let len = pair.num_elements();
    let whole = len - len % LANES;
    assert!((!SCALE || scale.len() == len) && (!SHIFT || shift.len() == len));
    let ((x, out), scale, shift) = (pair.addresses(), scale.as_ptr(), shift.as_ptr());
    // SAFETY: as demanded of the caller; addresses are below `len`.
    unsafe {
        let (mean, factor) = (W::splat(mean), W::splat(factor));
        let mut at = 0;
        while at < whole {
            let mut y = W::load(x.add(at)).sub(mean).mul(factor);
            if SCALE {
                y = y.mul(W::load(scale.add(at)));
            }
            if SHIFT {
                y = y.add(W::load(shift.add(at)));
            }
            y.store(out.add(at));
            at += LANES;
        }
        if at < len {
            let rest = len - at;
            let mut y = W::load_part(x.add(at), rest).sub(mean).mul(factor);
            if SCALE {
                y = y.mul(W::load_part(scale.add(at), rest));
            }
            if SHIFT {
                y = y.add(W::load_part(shift.add(at), rest));
            }
            y.store_part(out.add(at), rest);
        }
    }
}
