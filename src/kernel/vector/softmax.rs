//! Softmax: exp(x - max) / sum.
//!
//! The difference x - max is rounded, and an error of half a unit in a difference of -80 is an error of 4e-6 in its
//! exponential. So the part that the subtraction lost is found (Knuth's TwoSum) and goes into the exponential too.
//! Sums are kept in f64.
#![forbid(unsafe_code)]

use super::columns::{Rows, Stretch, WIDTH};

/// Partial sums of a row: as many as the loop is unrolled, and always the same, so that a row's bits depend on
/// nothing else.
const LANES: usize = 16;
/// Exponentials at a time: one or two vector registers.
const VECTOR: usize = 8;

/// exp(x - max) for x <= max. For other arguments, NaN among them, some number.
#[inline(always)]
fn exp_of_difference(x: f32, max: f32) -> f32 {
    // Below this the result rounds to zero.
    const LOWEST: f32 = -105.0;
    // ln 2 in two parts; the first has so few digits that its product with the exponent is exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding 1.5 * 2^23 rounds to an integer, which then is in the low bits.
    const ROUND: f32 = 12_582_912.0;

    let difference = x - max;
    let shifted = difference - x;
    let lost = (x - (difference - shifted)) - (max + shifted);
    let (high, low) = if difference > LOWEST { (difference, lost) } else { (LOWEST, 0.0) };

    let rounded = high * std::f32::consts::LOG2_E + ROUND;
    let exponent = rounded - ROUND;
    let r = ((high - exponent * LN2_HIGH) - exponent * LN2_LOW) + low;
    // The series up to r^7: |r| <= ln 2 / 2, so what is left out is below 6e-9.
    let series = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5];
    let tail = series[1..].iter().fold(series[0], |sum, c| sum * r + c);
    let power = tail * r * r + r + 1.0;
    // 2^exponent in two steps, because it may be smaller than the smallest normal number.
    let exponent = rounded.to_bits() as i32 - ROUND.to_bits() as i32;
    let half = exponent >> 1;
    power * exp2(half) * exp2(exponent - half)
}

/// 2^n for a normal result.
#[inline(always)]
fn exp2(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// One over the sum, or NaN where the maximum says that the row has no softmax.
fn scale(max: f32, sum: f64) -> f32 {
    if max.is_finite() { (1.0 / sum) as f32 } else { f32::NAN }
}

/// The greatest element, NaN if there is a NaN, -inf if there is no element.
pub fn greatest(row: &[f32]) -> f32 {
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut nan = [0u32; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            max[i] = if chunk[i] > max[i] { chunk[i] } else { max[i] };
            nan[i] |= chunk[i].is_nan() as u32;
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        max[i] = if x > max[i] { x } else { max[i] };
        nan[i] |= x.is_nan() as u32;
    }
    if nan.iter().any(|&seen| seen != 0) {
        return f32::NAN;
    }
    max.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// Softmax of a row in consecutive memory.
pub fn row(x: &[f32], out: &mut [f32]) {
    let max = greatest(x);
    let mut sums = [0.0; LANES];
    for (x, out) in x.chunks(LANES).zip(out.chunks_mut(LANES)) {
        exponentials(x, &[max; LANES][..x.len()], out, &mut sums[..x.len()]);
    }
    let scale = scale(max, sums.iter().sum());
    out.iter_mut().for_each(|y| *y *= scale);
}

/// Softmax of each column of a stretch.
pub fn columns(x: &[f32], at: Stretch, out: &mut Rows<'_, f32>) {
    let input = |i: usize| &x[at.first + i * at.stride..][..at.width];
    let mut max = [f32::NEG_INFINITY; WIDTH];
    for i in 0..at.len {
        for (max, &x) in max.iter_mut().zip(input(i)) {
            // A NaN comes in by the second condition and stays, because it fails both.
            *max = if x > *max || (x.is_nan() && !max.is_nan()) { x } else { *max };
        }
    }
    let mut sums = [0.0; WIDTH];
    for i in 0..at.len {
        exponentials(input(i), &max[..at.width], out.row(i), &mut sums[..at.width]);
    }
    let mut scales = [0.0; WIDTH];
    for (scale_of, (&max, &sum)) in scales.iter_mut().zip(max.iter().zip(&sums)) {
        *scale_of = scale(max, sum);
    }
    for i in 0..at.len {
        out.row(i).iter_mut().zip(&scales).for_each(|(y, scale)| *y *= scale);
    }
}

/// out = exp(x - max), and adds it to the sums. Slices of the same length.
fn exponentials(x: &[f32], max: &[f32], out: &mut [f32], sums: &mut [f64]) {
    let inputs = x.chunks(VECTOR).zip(max.chunks(VECTOR));
    for ((x, max), (out, sums)) in inputs.zip(out.chunks_mut(VECTOR).zip(sums.chunks_mut(VECTOR))) {
        let y = vector(&whole(x), &whole(max));
        for ((out, sum), y) in out.iter_mut().zip(sums).zip(y) {
            *out = y;
            *sum += f64::from(y);
        }
    }
}

/// A vector of its own, so that the compiler sees one; inside a longer loop it may give up.
#[inline(never)]
fn vector(x: &[f32; VECTOR], max: &[f32; VECTOR]) -> [f32; VECTOR] {
    let mut y = *x;
    for i in 0..VECTOR {
        y[i] = exp_of_difference(x[i], max[i]);
    }
    y
}

/// At most VECTOR values as a whole vector: with zeros where nothing is.
#[inline(always)]
fn whole(values: &[f32]) -> [f32; VECTOR] {
    let filled = || std::array::from_fn(|i| values.get(i).copied().unwrap_or(0.0));
    values.first_chunk().copied().unwrap_or_else(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_exact_to_a_few_units() {
        let mut worst = 0f64;
        for max in [0.0f32, 0.1, 1.0, 50.337, -3.7e4, 1e-20, 88.8, 1234.567] {
            for step in 0..100_000 {
                let x = max - step as f32 * 1.03e-3;
                let want = (f64::from(x) - f64::from(max)).exp();
                let error = (f64::from(exp_of_difference(x, max)) - want).abs();
                if want > f64::from(f32::MIN_POSITIVE) {
                    worst = worst.max(error / want);
                } else {
                    assert!(error <= 1.5e-45, "{x} - {max}: {error}");
                }
            }
        }
        assert!(worst < 2.5e-7, "{worst}");
    }

    #[test]
    fn far_below_the_maximum_is_zero() {
        for (x, max) in [(f32::NEG_INFINITY, 0.0), (f32::MIN, f32::MAX), (-200.0, 0.0), (-104.0, 0.0)] {
            assert_eq!(exp_of_difference(x, max), 0.0, "{x} - {max}");
        }
        assert_eq!(exp_of_difference(f32::MAX, f32::MAX), 1.0);
        assert!(exp_of_difference(-103.0, 0.0) > 0.0);
    }
}
