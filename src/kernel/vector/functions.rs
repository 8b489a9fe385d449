//! Real functions of one number, written once for floats and registers.
//!
//! The coefficients are minimax fits of this project's own, of the remainder after the exact leading terms, so that the
//! error of a fit is small beside rounding. The tests of `eltwise` bound the relative errors of normal results; NaNs
//! propagate, and infinities give the limits.

use super::real::Real;

/// Adding it rounds to an integer, which is then in the low bits.
const ROUND: f32 = 12_582_912.0;
// ln 2 in two parts; the first has so few digits that its product with an exponent is exact.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Below this exp is less than half of the smallest positive number.
const LOWEST: f32 = -104.0;

/// p(x) for coefficients with the highest power first.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn polynomial<N: Real, const TERMS: usize>(x: N, coefficients: [f32; TERMS]) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut sum = N::splat(coefficients[0]);
        for &coefficient in &coefficients[1..] {
            sum = sum.mul_add(x, N::splat(coefficient));
        }
        sum
    }
}

/// n rounded after adding `bias`, and e^r - 1 where x = n ln 2 + r with |r| <= ln 2 / 2. The low bits of the first are
/// n + bias.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn reduced<N: Real>(x: N, bias: f32) -> (N, N) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let rounded = x.mul_add(N::splat(std::f32::consts::LOG2_E), N::splat(ROUND + bias));
        let n = rounded.sub(N::splat(ROUND + bias));
        let r = n.mul_add(N::splat(-LN2_LOW), n.mul_add(N::splat(-LN2_HIGH), x));
        let tail = polynomial(r, [0.001_381_451_5, 0.008_368_756, 0.041_668_39, 0.166_665_2, 0.499_999_93]);
        (rounded, r.mul(r).mul_add(tail, r))
    }
}

/// e^x 2^`more` where `scaled` is an instruction, for x from -110 to 90: 2^(n / 16) e^r with |r| <= ln 2 / 32; the
/// first factor comes from a table, and the second is close to 1.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn scaled_exp<N: Real>(x: N, more: f32) -> N {
    /// Adding it rounds to a sixteenth, whose number is then in the low bits.
    const SIXTEENTHS: f32 = ROUND / 16.0;
    // SAFETY: as demanded of the caller.
    unsafe {
        let rounded = x.mul_add(N::splat(std::f32::consts::LOG2_E), N::splat(SIXTEENTHS));
        let n = rounded.sub(N::splat(SIXTEENTHS));
        let r = n.mul_add(N::splat(-LN2_LOW), n.mul_add(N::splat(-LN2_HIGH), x));
        let tail = r.mul_add(N::splat(1.0 / 6.0), N::splat(0.499_983_8));
        let growth = r.mul(r).mul_add(tail, r);
        let root = rounded.sixteenth_root();
        root.mul_add(growth, root).scaled(if more == 0.0 { n } else { n.add(N::splat(more)) })
    }
}

/// e^x.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn exp<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        // In this order NaN propagates. Above 88.72 the result is infinite.
        let x = N::splat(89.0).min(N::splat(LOWEST).max(x));
        if N::SCALES {
            return scaled_exp(x, 0.0);
        }
        let (rounded, growth) = reduced(x, 0.0);
        growth.add(N::splat(1.0)).scaled(rounded.sub(N::splat(ROUND)))
    }
}

/// e^x for x <= 0.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn exp_not_above_one<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let x = N::splat(LOWEST).max(x);
        if N::SCALES {
            return scaled_exp(x, 0.0);
        }
        // Scaled by 2^24, so that no power is subnormal.
        let (rounded, growth) = reduced(x, 127.0 + 24.0);
        let power = rounded.low_bits_as_exponent();
        growth.mul_add(power, power).mul(N::splat(1.0 / 16_777_216.0))
    }
}

/// e^x - 1 for x <= 0.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn exp_minus_one<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        // Below this the result is -1.
        let (rounded, growth) = reduced(N::splat(-20.0).max(x), 127.0);
        let power = rounded.low_bits_as_exponent();
        growth.mul_add(power, power.sub(N::splat(1.0)))
    }
}

/// ln x.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn log<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let (m, e) = x.split();
        let f = m.sub(N::splat(1.0));
        let square = f.mul(f);
        let tail = polynomial(
            f,
            [
                -0.045_074_467,
                0.104_629_96,
                -0.131_611_97,
                0.144_784,
                -0.166_473_12,
                0.199_908_61,
                -0.250_000_95,
                0.333_334_5,
            ],
        );
        let small = square.mul(f).mul_add(tail, square.mul(N::splat(-0.5)));
        // Both parts of ln 2 are positive, as those of an infinite exponent must not cancel.
        let small = e.mul_add(N::splat(2.760_868e-4), small);
        e.mul_add(N::splat(1419.0 / 2048.0), small.add(f))
    }
}

/// ln(1 + x) for x from 0 to 1.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn log_one_plus<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        // 2 artanh(s): odd in s, which is at most a third.
        let s = x.div(x.add(N::splat(2.0)));
        let square = s.mul(s);
        let tail = polynomial(square, [0.243_075_86, 0.214_260_31, 0.286_170_2, 0.399_988_73, 0.666_666_76]);
        s.mul(square).mul_add(tail, s.add(s))
    }
}

/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn tanh<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        // From 9.02 on the result rounds to 1; the quotient exceeds it there, and is clamped. In this order NaN
        // propagates.
        let t = N::splat(9.4).min(x.abs());
        let square = t.mul(t);
        let above = polynomial(square, [1.331_909_1e-8, 2.058_351_4e-5, 0.003_494_037_4, 0.133_797_21, 1.0]);
        let below = polynomial(square, [7.762_033e-7, 3.283_097e-4, 0.025_871_085, 0.467_130_36, 1.0]);
        N::splat(1.0).min(t.mul(above).div(below)).with_sign_of(x)
    }
}

/// 1 / (1 + e^-x).
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn sigmoid<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        if N::SCALES {
            // e^x / (1 + e^x), which above 87 is 1. In this order NaN propagates.
            let power = scaled_exp(N::splat(87.0).min(N::splat(LOWEST).max(x)), 0.0);
            return power.div(power.add(N::splat(1.0)));
        }
        let power = exp_not_above_one(x.abs().negated());
        let above = N::if_less(x, N::splat(0.0), power, N::splat(1.0));
        above.div(power.add(N::splat(1.0)))
    }
}

/// The probability that a normal variable is less than x: (1 + erf(x / sqrt 2)) / 2.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn normal_cdf<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        // The tail beyond -t is e^(-t^2/2) times a quotient of polynomials; from 14.5 on it is zero.
        let t = N::splat(14.5).min(x.abs());
        let power = exp_not_above_one(t.mul(N::splat(-0.5)).mul(t));
        let above = polynomial(t, [1.958_354e-7, 0.014_711_718, 0.109_186_11, 0.342_854_9, 0.499_999_9]);
        let below = polynomial(t, [0.036_901_077, 0.273_184_87, 0.902_172_4, 1.483_586_2, 1.0]);
        let tail = power.mul(above).div(below);
        N::if_less(x, N::splat(0.0), tail, N::splat(1.0).sub(tail))
    }
}

/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn erf<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        // From 4 on the result rounds to 1. In this order NaN propagates.
        let t = N::splat(4.0).min(x.abs());
        let near = polynomial(
            t.mul(t),
            [8.382_388e-5, -8.145_597e-4, 0.005_201_286, -0.026_859_5, 0.112_836_97, -0.376_126_35, 0.128_379_17],
        );
        // The logarithm of what is missing from 1.
        let far = polynomial(
            t,
            [1.950_507e-4, -0.003_034_716, 0.022_193_875, -0.103_864_916, -0.637_255_97, -1.127_633_2, -2.055_918_6e-4],
        );
        let far = N::splat(1.0).sub(exp_not_above_one(far));
        N::if_less(t, N::splat(0.92), t.mul_add(near, t), far).with_sign_of(x)
    }
}

/// Up to here `Quarters` holds.
pub const MOST_ANGLE: f32 = 3200.0;

/// An angle that is not below zero as a number of right angles and what is left, from -pi / 4 to pi / 4.
struct Quarters<N> {
    /// Whether the number is odd, and whether its half, rounded down, is: 1 or 0.
    is_odd: N,
    is_flipped: N,
    sine: N,
    cosine: N,
}

/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn quarters<N: Real>(angle: N) -> Quarters<N> {
    // pi / 2 in four parts, of which the first three have so few digits that their products with a number below 2^11
    // are exact.
    const PARTS: [f32; 4] = [6433.0 / 4096.0, 4021.0 / 16_777_216.0, 273.0 / 17_179_869_184.0, 2.563_344e-12];
    // SAFETY: as demanded of the caller.
    unsafe {
        let number = angle.mul(N::splat(std::f32::consts::FRAC_2_PI)).round();
        let r = PARTS.into_iter().fold(angle, |rest, part| number.mul_add(N::splat(-part), rest));
        let odd = |x: N| x.sub(x.mul(N::splat(0.5)).floor().mul(N::splat(2.0)));
        let half = number.mul(N::splat(0.5)).floor();
        let square = r.mul(r);
        let sine = polynomial(square, [-1.951_087e-4, 0.008_332_131, -0.166_666_54]);
        let cosine = polynomial(square, [2.442_571_7e-5, -0.001_388_725_1, 0.041_666_646]);
        let most = square.mul_add(N::splat(-0.5), N::splat(1.0));
        Quarters {
            is_odd: odd(number),
            is_flipped: odd(half),
            sine: r.mul(square).mul_add(sine, r),
            cosine: square.mul(square).mul_add(cosine, most),
        }
    }
}

/// sin x for |x| up to `MOST_ANGLE`.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn sin<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let Quarters { is_odd, is_flipped, sine, cosine } = quarters(x.abs());
        let size = N::if_equal(is_odd, N::splat(1.0), cosine, sine);
        let sine = N::if_equal(is_flipped, N::splat(1.0), size.negated(), size);
        sine.mul(N::splat(1.0).with_sign_of(x))
    }
}

/// cos x for |x| up to `MOST_ANGLE`.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn cos<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let Quarters { is_odd, is_flipped, sine, cosine } = quarters(x.abs());
        let size = N::if_equal(is_odd, N::splat(1.0), sine, cosine);
        // Below zero in the second and the third quarter.
        N::if_equal(is_odd, is_flipped, size, size.negated())
    }
}

/// tan x for |x| up to `MOST_ANGLE`.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn tan<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let Quarters { is_odd, sine, cosine, .. } = quarters(x.abs());
        let one = N::splat(1.0);
        let above = N::if_equal(is_odd, one, cosine.negated(), sine);
        let below = N::if_equal(is_odd, one, sine, cosine);
        above.div(below).mul(one.with_sign_of(x))
    }
}

// pi / 2 and pi as f32, and what these lack.
const RIGHT: f32 = std::f32::consts::FRAC_PI_2;
const RIGHT_REST: f32 = -4.371_139e-8;
const STRAIGHT: f32 = std::f32::consts::PI;
const STRAIGHT_REST: f32 = -8.742_278e-8;

/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn atan<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let (t, one) = (x.abs(), N::splat(1.0));
        let u = N::if_less(one, t, one.div(t), t);
        let square = u.mul(u);
        let tail = polynomial(
            square,
            [
                -0.001_793_593_9,
                0.010_914_481,
                -0.031_177_612,
                0.057_957_36,
                -0.084_034_37,
                0.109_521_81,
                -0.142_642_41,
                0.199_985_49,
                -0.333_333,
            ],
        );
        let angle = u.mul(square).mul_add(tail, u);
        let other = N::splat(RIGHT).sub(angle.sub(N::splat(RIGHT_REST)));
        N::if_less(one, t, other, angle).with_sign_of(x)
    }
}

/// The arcsine of t, or half of the arccosine if t is above 1/2; t is not below zero, and a NaN is made of what is
/// above 1.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn arc<N: Real>(t: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let half = N::splat(0.5);
        let square = N::if_less(half, t, N::splat(1.0).sub(t).mul(half), t.mul(t));
        let u = N::if_less(half, t, square.sqrt(), t);
        let tail = polynomial(square, [0.042_218_547, 0.024_147_611, 0.045_477_096, 0.074_952_416, 0.166_667_54]);
        u.mul(square).mul_add(tail, u)
    }
}

/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn asin<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let t = x.abs();
        let angle = arc(t);
        let other = N::splat(RIGHT).sub(angle.add(angle).sub(N::splat(RIGHT_REST)));
        N::if_less(N::splat(0.5), t, other, angle).with_sign_of(x)
    }
}

/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn acos<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let (t, zero) = (x.abs(), N::splat(0.0));
        let angle = arc(t);
        let near = N::splat(RIGHT).sub(angle.with_sign_of(x).sub(N::splat(RIGHT_REST)));
        let twice = angle.add(angle);
        let obtuse = N::splat(STRAIGHT).sub(twice.sub(N::splat(STRAIGHT_REST)));
        N::if_less(N::splat(0.5), t, N::if_less(x, zero, obtuse, twice), near)
    }
}

/// e^t / 2 and e^-t / 2 for t that is not below zero. The first is finite where it is a float.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn half_powers<N: Real>(t: N) -> (N, N) {
    // SAFETY: as demanded of the caller.
    unsafe {
        if N::SCALES {
            // In this order NaN propagates. From 89.42 on half a power is infinite. Half of it by its exponent rounds
            // nothing; a square would have twice the error of its root, which is larger here than below.
            let above = scaled_exp(N::splat(90.0).min(t), -1.0);
            return (above, N::splat(0.25).div(above));
        }
        // As devices do it.
        let (half, root) = (N::splat(0.5), exp(t.mul(N::splat(0.5))));
        (root.mul(half).mul(root), half.div(root.mul(root)))
    }
}

/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn sinh<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let t = x.abs();
        let square = t.mul(t);
        let tail = polynomial(square, [2.037_740_6e-4, 0.008_330_211, 0.166_667_18]);
        let near = t.mul(square).mul_add(tail, t);
        let (above, below) = half_powers(t);
        N::if_less(t, N::splat(1.0), near, above.sub(below)).with_sign_of(x)
    }
}

/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn cosh<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let (above, below) = half_powers(x.abs());
        above.add(below)
    }
}
