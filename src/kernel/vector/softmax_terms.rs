//! The terms of softmax for an element and for a row's sum. The exponential is a branch-free polynomial, written over
//! `lanes`, so that each instruction set has its own vectors.
//!
//! The difference x - max is rounded, and an error of half a unit in a difference of -80 is an error of 4e-6 in its
//! exponential. So the part that the subtraction lost is recovered (Knuth's TwoSum) and enters the exponential too.
//! Where many x have one maximum nothing is lost: what is subtracted then is a number near it of so few digits that all
//! sums are exact (`Shift`), and the rest of the maximum enters at the end.
//!
//! Exponentials are scaled by 2^64 until the division by their sum, which has the same factor. So none of them is
//! subnormal, and a subnormal result is rounded only once.

use super::lanes::SimdNumber;

/// Below this the result rounds to zero after the division.
const LOWEST: f32 = -105.0;
/// ln 2 in two parts; the first has so few digits that its product with the exponent is exact.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding 1.5 * 2^23 rounds to an integer, which then is in the low bits. 64 is the factor, 127 the bias of exponents:
/// from 39 to 191 for the least and the greatest x.
const ROUND: f32 = 12_582_912.0 + 64.0 + 127.0;
/// (e^r - 1 - r) / r^2, the highest power first: for |r| <= ln 2 / 2 it adds less than 4e-9 to the error of e^r.
const TAIL: [f32; 5] = [0.001_381_431_8, 0.008_368_852, 0.041_668_4, 0.166_665_2, 0.499_999_94];
/// From here on every x that counts is at least half of the maximum, so that their difference is exact.
const LARGE: f32 = 210.0;
/// Adding it to a lesser number than LARGE rounds to a multiple of 2^-10.
const FEW_DIGITS: f32 = 12_288.0;

/// e^r times the power of two whose exponent was rounded.
#[inline(always)]
unsafe fn exponential<N: SimdNumber>(rounded: N, r: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut tail = N::splat(TAIL[0]);
        for &coefficient in &TAIL[1..] {
            tail = tail.mul_add(r, N::splat(coefficient));
        }
        let growth = r.mul(r).mul_add(tail, r);
        let power = rounded.low_bits_as_exponent();
        growth.mul_add(power, power)
    }
}

/// A maximum in three parts, which is taken off the numbers of a row, or of a lane's row.
#[derive(Clone, Copy)]
pub(super) struct Shift<N> {
    /// All of a large one, or nothing.
    large: N,
    /// Otherwise a multiple of 2^-10, and the rest.
    base: N,
    rest: N,
}

impl<N: SimdNumber> Shift<N> {
    /// # Safety
    /// As of `SimdNumber`.
    #[inline(always)]
    pub(super) unsafe fn of(max: N) -> Self {
        // SAFETY: as demanded of the caller.
        unsafe {
            let (bound, size) = (N::splat(LARGE), max.max(N::splat(0.0).sub(max)));
            let few = N::splat(FEW_DIGITS);
            let large = max.sub(max.where_greater(bound, size));
            let base = max.add(few).sub(few).where_greater(bound, size);
            Shift { large, base, rest: max.sub(large).sub(base) }
        }
    }

    /// exp(x - max) * 2^64 for x <= max. NaN for a NaN and for equal infinities.
    ///
    /// # Safety
    /// As of `SimdNumber`.
    #[inline(always)]
    pub(super) unsafe fn exponential(&self, x: N) -> N {
        // SAFETY: as demanded of the caller.
        unsafe {
            // In this order NaN propagates.
            let x = N::splat(LOWEST).add(self.base).max(x.sub(self.large));
            let rounded = x.sub(self.base).mul_add(N::splat(std::f32::consts::LOG2_E), N::splat(ROUND));
            let exponent = rounded.sub(N::splat(ROUND));
            // The product and the sum have so few digits that they are exact, and so is the next sum where it is not
            // tiny.
            let base = exponent.mul_add(N::splat(-LN2_HIGH), N::splat(0.0).sub(self.base));
            let low = exponent.mul_add(N::splat(-LN2_LOW), N::splat(0.0).sub(self.rest));
            exponential(rounded, x.add(base).add(low))
        }
    }
}

impl Shift<f32> {
    /// # Safety
    /// As of `SimdNumber`.
    #[inline(always)]
    pub(super) unsafe fn in_lanes<N: SimdNumber>(&self) -> Shift<N> {
        // SAFETY: as demanded of the caller.
        unsafe { Shift { large: N::splat(self.large), base: N::splat(self.base), rest: N::splat(self.rest) } }
    }
}

/// exp(x - max) * 2^64 for x <= max. NaN for a NaN and for equal infinities.
///
/// # Safety
/// As of `SimdNumber`.
#[inline(always)]
pub(super) unsafe fn exp_of_difference<N: SimdNumber>(x: N, max: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let difference = x.sub(max);
        let shifted = difference.sub(x);
        let lost = x.sub(difference.sub(shifted)).sub(max.add(shifted));
        // In this order NaN propagates.
        let high = N::splat(LOWEST).max(difference);
        let low = lost.where_greater(difference, N::splat(LOWEST));

        let rounded = high.mul_add(N::splat(std::f32::consts::LOG2_E), N::splat(ROUND));
        let exponent = rounded.sub(N::splat(ROUND));
        let r = exponent.mul_add(N::splat(-LN2_HIGH), high);
        exponential(rounded, exponent.mul_add(N::splat(-LN2_LOW), r).add(low))
    }
}

/// One over the sum, or NaN if the row has no softmax by its maximum.
pub(super) fn scale(max: f32, sum: f64) -> f32 {
    if max.is_finite() { (1.0 / sum) as f32 } else { f32::NAN }
}

/// The logarithm of the sum, without its factor of 2^64; NaN as in `scale`.
pub(super) fn logarithm(max: f32, sum: f64) -> f32 {
    if max.is_finite() { (sum * 2f64.powi(-64)).ln() as f32 } else { f32::NAN }
}
