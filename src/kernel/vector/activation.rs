//! Functions that follow a product: rectifier, sigmoid, hyperbolic tangent, and the two forms of GELU.
//!
//! Each is written once over `lanes`: an exponential, and what surrounds it. Inputs are clamped so that nothing
//! overflows on the way; the operands of a clamp stand so that a NaN stays a NaN.

use super::isa::Isa;
use super::lanes::{Number, Vector};

/// What lanes lack for these functions.
///
/// # Safety
/// As of `Number`.
pub trait Quotient: Number {
    unsafe fn over(self, divisor: Self) -> Self;
}

impl Quotient for f32 {
    #[inline(always)]
    unsafe fn over(self, divisor: f32) -> f32 {
        self / divisor
    }
}

#[cfg(target_arch = "x86_64")]
impl Quotient for std::arch::x86_64::__m256 {
    #[inline(always)]
    unsafe fn over(self, divisor: Self) -> Self {
        // SAFETY: as demanded of the caller.
        unsafe { std::arch::x86_64::_mm256_div_ps(self, divisor) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Quotient for std::arch::x86_64::__m512 {
    #[inline(always)]
    unsafe fn over(self, divisor: Self) -> Self {
        // SAFETY: as demanded of the caller.
        unsafe { std::arch::x86_64::_mm512_div_ps(self, divisor) }
    }
}

/// The greater one, and the smaller one; NaN if x is.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn at_least<N: Number>(x: N, bound: f32) -> N {
    // SAFETY: as demanded of the caller.
    unsafe { N::splat(bound).max(x) }
}

/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn at_most<N: Number>(x: N, bound: f32) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let zero = N::splat(0.0);
        zero.sub(N::splat(-bound).max(zero.sub(x)))
    }
}

/// 2^n, and (e^r - 1) * 2^n for x = n ln 2 + r with |r| <= ln 2 / 2. x is between -87 and 87.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn exp_parts<N: Number>(x: N) -> (N, N) {
    // ln 2 in two parts; the first has so few digits that its product with the exponent is exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding 1.5 * 2^23 rounds to an integer, which then is in the low bits; 127 is the bias of exponents.
    const ROUND: f32 = 12_582_912.0 + 127.0;
    // (e^r - 1 - r) / r^2, the highest power first.
    const TAIL: [f32; 5] = [0.001_381_431_8, 0.008_368_852, 0.041_668_4, 0.166_665_2, 0.499_999_94];
    // SAFETY: as demanded of the caller.
    unsafe {
        let rounded = x.mul_add(N::splat(std::f32::consts::LOG2_E), N::splat(ROUND));
        let exponent = rounded.sub(N::splat(ROUND));
        let r = exponent.mul_add(N::splat(-LN2_LOW), exponent.mul_add(N::splat(-LN2_HIGH), x));
        let mut tail = N::splat(TAIL[0]);
        for &coefficient in &TAIL[1..] {
            tail = tail.mul_add(r, N::splat(coefficient));
        }
        let power = rounded.low_bits_as_exponent();
        (power, r.mul(r).mul_add(tail, r).mul(power))
    }
}

/// 1 / (1 + e^-x)
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn sigmoid<N: Quotient>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let (power, growth) = exp_parts(N::splat(0.0).sub(at_most(at_least(x, -87.0), 87.0)));
        N::splat(1.0).over(N::splat(1.0).add(power.add(growth)))
    }
}

/// (e^2x - 1) / (e^2x + 1); beyond 10 it is 1 to the last bit. Small x lose nothing, as e^2x - 1 is found without
/// e^2x.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn tanh<N: Quotient>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe {
        let x = at_most(at_least(x, -10.0), 10.0);
        let (power, growth) = exp_parts(x.add(x));
        let less = power.sub(N::splat(1.0)).add(growth);
        less.over(less.add(N::splat(2.0)))
    }
}

/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), as x times a sigmoid.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn gelu_tanh<N: Quotient>(x: N) -> N {
    const TWICE_ROOT: f32 = 1.595_769;
    // SAFETY: as demanded of the caller.
    unsafe {
        let cubic = x.mul(x).mul_add(N::splat(TWICE_ROOT * 0.044_715), N::splat(TWICE_ROOT)).mul(x);
        at_least(x, -20.0).mul(sigmoid(cubic))
    }
}

/// x * (1 + erf(x / sqrt 2)) / 2, as max(x, 0) - |x| * erfc(|x| / sqrt 2) / 2, which has no cancellation where it is
/// small. erfc(z) is exp(-z^2) times a polynomial in t = 1 / (1 + z / 2), fitted to 5e-8 for z up to 10.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
pub unsafe fn gelu_erf<N: Quotient>(x: N) -> N {
    // Half of the polynomial, the highest power first; it has no constant term.
    const HALF: [f32; 9] = [
        -0.059_646_368 / 2.0,
        0.287_444_47 / 2.0,
        -0.493_217_77 / 2.0,
        0.284_990_35 / 2.0,
        -0.031_378_58 / 2.0,
        0.204_668_87 / 2.0,
        0.242_616_55 / 2.0,
        0.282_439_47 / 2.0,
        0.282_082_97 / 2.0,
    ];
    // SAFETY: as demanded of the caller.
    unsafe {
        let zero = N::splat(0.0);
        let magnitude = at_most(zero.sub(x).max(x), 13.0);
        let t = N::splat(1.0).over(magnitude.mul_add(N::splat(0.5 * std::f32::consts::FRAC_1_SQRT_2), N::splat(1.0)));
        let mut tail = N::splat(HALF[0]);
        for &coefficient in &HALF[1..] {
            tail = tail.mul_add(t, N::splat(coefficient));
        }
        let (power, growth) = exp_parts(magnitude.mul(magnitude).mul(N::splat(-0.5)));
        let half_erfc = power.add(growth).mul(tail.mul(t));
        // In this order a NaN stays.
        zero.max(x).sub(magnitude.mul(half_erfc))
    }
}

/// What is done to each element of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    #[default]
    None,
    Relu,
    GeluErf,
    GeluTanh,
    Sigmoid,
    Tanh,
}

impl Activation {
    /// Estimated time per element in nanoseconds, with vectors.
    pub fn cost_ns(self) -> f32 {
        match self {
            Activation::None => 0.0,
            Activation::Relu => 0.05,
            _ => 0.5,
        }
    }

    /// Applies it to all of `x`, with the instructions of a level that the processor has.
    pub fn apply(self, isa: Isa, x: &mut [f32]) {
        match self {
            Activation::None => {}
            // A NaN fails the comparison and stays.
            Activation::Relu => x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }),
            _ => self.apply_at(isa, x),
        }
    }

    fn apply_at(self, isa: Isa, x: &mut [f32]) {
        assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
        match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has AVX-512.
            Isa::Avx512 | Isa::Avx512Vnni => unsafe { self.avx512(x) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has AVX2 and FMA.
            Isa::Avx2 => unsafe { self.avx2(x) },
            // SAFETY: plain floats need no instructions that a processor may lack.
            _ => x.iter_mut().for_each(|x| *x = unsafe { self.of(*x) }),
        }
    }

    /// # Safety
    /// As of `Number`.
    #[inline(always)]
    unsafe fn of<N: Quotient>(self, x: N) -> N {
        // SAFETY: as demanded of the caller.
        unsafe {
            match self {
                Activation::None => x,
                Activation::Relu => N::splat(0.0).max(x),
                Activation::GeluErf => gelu_erf(x),
                Activation::GeluTanh => gelu_tanh(x),
                Activation::Sigmoid => sigmoid(x),
                Activation::Tanh => tanh(x),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn avx512(self, x: &mut [f32]) {
        // SAFETY: the processor has AVX-512.
        unsafe { self.vectors::<std::arch::x86_64::__m512>(x) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2(self, x: &mut [f32]) {
        // SAFETY: the processor has AVX2 and FMA.
        unsafe { self.vectors::<std::arch::x86_64::__m256>(x) }
    }

    /// # Safety
    /// The processor has the instructions of V.
    #[inline(always)]
    unsafe fn vectors<V: Vector + Quotient>(self, x: &mut [f32]) {
        let (len, x) = (x.len(), x.as_mut_ptr());
        let whole = len - len % V::LANES;
        // SAFETY: whole vectors below `whole`, then what is left.
        unsafe {
            for at in (0..whole).step_by(V::LANES) {
                self.of(V::load(x.add(at))).store(x.add(at));
            }
            if whole < len {
                let last = V::load_part(x.add(whole), len - whole);
                self.of(last).store_part(x.add(whole), len - whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn erf(x: f64) -> f64 {
        // Maclaurin's series; below 6 in f64 it is good to 1e-9 or so, which is enough.
        let (mut term, mut sum) = (x, x);
        for n in 1..400 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    fn reference(activation: Activation, x: f64) -> f64 {
        match activation {
            Activation::None => x,
            Activation::Relu => x.max(0.0),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::GeluErf => x / 2.0 * (1.0 + erf(x / 2f64.sqrt())),
            Activation::GeluTanh => {
                x / 2.0 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
            }
        }
    }

    const ALL: [Activation; 5] =
        [Activation::Relu, Activation::GeluErf, Activation::GeluTanh, Activation::Sigmoid, Activation::Tanh];

    #[test]
    fn every_level_is_exact_to_a_few_millionths() {
        for isa in Isa::available() {
            for activation in ALL {
                // Up to 5, where the reference is good; every length of a remainder.
                for len in [1, 7, 15, 16, 17, 1003] {
                    let x: Vec<f32> = (0..len).map(|i| (i as f32 - len as f32 / 2.0) * 10.0 / len as f32).collect();
                    let mut y = x.clone();
                    activation.apply(isa, &mut y);
                    for (&x, &y) in x.iter().zip(&y) {
                        let want = reference(activation, f64::from(x));
                        let error = (f64::from(y) - want).abs();
                        let good = error <= 4e-6 * want.abs() || error < 2e-7;
                        assert!(good, "{isa:?} {activation:?}({x}) = {y}, expected {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_arguments_keep_their_digits() {
        for isa in Isa::available() {
            let mut y = [1e-3f32, -1e-6, 1e-20, 3e-39];
            Activation::Tanh.apply(isa, &mut y);
            for (y, x) in y.into_iter().zip([1e-3f64, -1e-6, 1e-20, 3e-39]) {
                assert!((f64::from(y) - x.tanh()).abs() <= 3e-7 * x.abs() + 1e-45, "{isa:?} tanh({x}) = {y}");
            }
        }
    }

    #[test]
    fn the_ends_and_nan() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        for isa in Isa::available() {
            for (activation, low, high) in [
                (Activation::Relu, 0.0, inf),
                (Activation::GeluErf, 0.0, inf),
                (Activation::GeluTanh, 0.0, inf),
                (Activation::Sigmoid, 0.0, 1.0),
                (Activation::Tanh, -1.0, 1.0),
            ] {
                let mut y = [-inf, f32::MIN, -100.0, inf, nan, -nan, 100.0];
                activation.apply(isa, &mut y);
                assert!(y[..3].iter().all(|y| (y - low).abs() < 1e-36), "{isa:?} {activation:?}: {y:?}");
                assert!(y[3] == high && y[4].is_nan() && y[5].is_nan(), "{isa:?} {activation:?}: {y:?}");
            }
        }
    }
}
