//! Operations of floats and registers, beyond sums and products, for real functions.
//!
//! Each method states its result for NaN, because formulas are arranged so that NaN propagates.

use super::lanes::SimdNumber;

/// # Safety
/// Of every method: as of `SimdNumber`.
pub trait Real: SimdNumber {
    /// Whether `scaled` is an instruction.
    const SCALES: bool;

    unsafe fn abs(self) -> Self;
    unsafe fn negated(self) -> Self;
    /// The same magnitude with the sign of `other`.
    unsafe fn with_sign_of(self, other: Self) -> Self;
    /// `yes` where a < b, else `no`, also where one is NaN.
    unsafe fn if_less(a: Self, b: Self, yes: Self, no: Self) -> Self;
    /// `yes` where a = b, else `no`, also where one is NaN.
    unsafe fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// The nearest integer, ties to even.
    unsafe fn round(self) -> Self;
    /// The nearest integer that is not farther from zero.
    unsafe fn trunc(self) -> Self;
    /// The greatest integer that is not above it.
    unsafe fn floor(self) -> Self;
    /// The least integer that is not below it.
    unsafe fn ceil(self) -> Self;
    /// Itself, between 1/2 and 2, times 2^n, rounded once; n is an integer from -150 to 128. If it is an instruction, n
    /// may be a fraction and is rounded down.
    unsafe fn scaled(self, n: Self) -> Self;
    /// 2^(j / 16), where j is the number in the lowest four bits.
    unsafe fn sixteenth_root(self) -> Self;
    /// m and e with self = m * 2^e and m from 3/4 to 3/2. Of infinity m is 1 and e infinity, of zero 1 and -infinity;
    /// of a NaN, and below zero, one of them is NaN.
    unsafe fn split(self) -> (Self, Self);
}

/// 2^-23: a subnormal number divided by it becomes normal.
#[cfg(target_arch = "x86_64")]
const LIFT: f32 = 8_388_608.0;
const SIGN: u32 = 0x8000_0000;
const THREE_QUARTERS: u32 = 0x3f40_0000;
const FRACTION: u32 = 0x007f_ffff;
/// 2^(j / 16), rounded to nearest.
const ROOTS: [f32; 16] = [
    1.0,
    1.044_273_7,
    1.090_507_7,
    1.138_788_6,
    1.189_207_1,
    1.241_857_8,
    1.296_839_6,
    1.354_255_6,
    std::f32::consts::SQRT_2,
    1.476_826_2,
    1.542_210_8,
    1.610_490_3,
    1.681_792_9,
    1.756_252_2,
    1.834_008_1,
    1.915_206_6,
];

impl Real for f32 {
    const SCALES: bool = false;

    #[inline(always)]
    unsafe fn abs(self) -> f32 {
        f32::abs(self)
    }
    #[inline(always)]
    unsafe fn negated(self) -> f32 {
        -self
    }
    #[inline(always)]
    unsafe fn with_sign_of(self, other: f32) -> f32 {
        f32::from_bits(self.to_bits() & !SIGN | other.to_bits() & SIGN)
    }
    #[inline(always)]
    unsafe fn if_less(a: f32, b: f32, yes: f32, no: f32) -> f32 {
        if a < b { yes } else { no }
    }
    #[inline(always)]
    unsafe fn if_equal(a: f32, b: f32, yes: f32, no: f32) -> f32 {
        if a == b { yes } else { no }
    }
    #[inline(always)]
    unsafe fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    unsafe fn round(self) -> f32 {
        // Without the instruction f32::round_ties_even is a call. From 2^23 on floats are integers.
        let magic = f32::from_bits(8_388_608f32.to_bits() | self.to_bits() & SIGN);
        let rounded = f32::from_bits(((self + magic) - magic).to_bits() | self.to_bits() & SIGN);
        if f32::abs(self) < 8_388_608.0 { rounded } else { self }
    }
    #[inline(always)]
    unsafe fn trunc(self) -> f32 {
        // SAFETY: as demanded of the caller.
        let (size, near) = unsafe { (f32::abs(self), Real::round(f32::abs(self))) };
        let below = if near > size { near - 1.0 } else { near };
        f32::from_bits(below.to_bits() & !SIGN | self.to_bits() & SIGN)
    }
    #[inline(always)]
    unsafe fn floor(self) -> f32 {
        // SAFETY: as demanded of the caller.
        let near = unsafe { Real::round(self) };
        if near > self { near - 1.0 } else { near }
    }
    #[inline(always)]
    unsafe fn ceil(self) -> f32 {
        // SAFETY: as demanded of the caller.
        let near = unsafe { Real::round(self) };
        let above = if near < self { near + 1.0 } else { near };
        // 0 above a number below zero is -0.
        f32::from_bits(above.to_bits() | self.to_bits() & SIGN)
    }
    #[inline(always)]
    unsafe fn scaled(self, n: f32) -> f32 {
        // In two steps, of which the second rounds: the first moves up to 2^24 away from underflow or overflow.
        let (first, second) = if n < 0.0 { (n + 24.0, 1.0 / 16_777_216.0) } else { (n - 2.0, 4.0) };
        let power = f32::from_bits(((first + (12_582_912.0 + 127.0)).to_bits()) << 23);
        self * power * second
    }
    #[inline(always)]
    unsafe fn sixteenth_root(self) -> f32 {
        ROOTS[(self.to_bits() & 15) as usize]
    }
    #[inline(always)]
    unsafe fn split(self) -> (f32, f32) {
        let lifted = if self < f32::MIN_POSITIVE { (self * 8_388_608.0, -23.0) } else { (self, 0.0) };
        let bits = lifted.0.to_bits().wrapping_sub(THREE_QUARTERS);
        let m = f32::from_bits((bits & FRACTION).wrapping_add(THREE_QUARTERS));
        let e = ((bits as i32) >> 23) as f32 + lifted.1;
        let below = if self < 0.0 { f32::NAN } else { f32::NEG_INFINITY };
        let above = if self < f32::INFINITY { e } else { self };
        (
            if self < f32::INFINITY { m } else { 1.0 },
            if self > 0.0 {
                above
            } else if self.is_nan() {
                self
            } else {
                below
            },
        )
    }
}

/// Methods that are one expression of intrinsics.
#[cfg(target_arch = "x86_64")]
macro_rules! methods {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? { $body:expr })*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: as demanded of the caller.
                unsafe { $body }
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::super::lanes::SimdNumber;
    use super::*;
    use std::arch::x86_64::*;

    type V = __m256;

    impl Real for V {
        const SCALES: bool = false;

        methods! {
            fn abs(self: V) -> V { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self) }
            fn negated(self: V) -> V { _mm256_xor_ps(_mm256_set1_ps(-0.0), self) }
            fn with_sign_of(self: V, other: V) -> V {{
                let sign = _mm256_set1_ps(-0.0);
                _mm256_or_ps(_mm256_andnot_ps(sign, self), _mm256_and_ps(sign, other))
            }}
            fn if_less(a: V, b: V, yes: V, no: V) -> V {
                _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b))
            }
            fn if_equal(a: V, b: V, yes: V, no: V) -> V {
                _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b))
            }
            fn sqrt(self: V) -> V { _mm256_sqrt_ps(self) }
            fn round(self: V) -> V { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self) }
            fn trunc(self: V) -> V { _mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self) }
            fn floor(self: V) -> V { _mm256_round_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self) }
            fn ceil(self: V) -> V { _mm256_round_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(self) }
            fn scaled(self: V, n: V) -> V {{
                // As in f32; a blend tests the sign.
                let add = _mm256_blendv_ps(V::splat(12_582_912.0 + 125.0), V::splat(12_582_912.0 + 151.0), n);
                let second = _mm256_blendv_ps(V::splat(4.0), V::splat(1.0 / 16_777_216.0), n);
                n.add(add).low_bits_as_exponent().mul(self).mul(second)
            }}
            fn sixteenth_root(self: V) -> V {{
                let bits = _mm256_castps_si256(self);
                let half = |from: usize| _mm256_permutevar8x32_ps(_mm256_loadu_ps(ROOTS[from..].as_ptr()), bits);
                // A blend tests the sign.
                _mm256_blendv_ps(half(0), half(8), _mm256_castsi256_ps(_mm256_slli_epi32::<28>(bits)))
            }}
            fn split(self: V) -> (V, V) {{
                let small = _mm256_cmp_ps::<_CMP_LT_OQ>(self, V::splat(f32::MIN_POSITIVE));
                let lifted = _mm256_blendv_ps(self, self.mul(V::splat(LIFT)), small);
                let base = _mm256_set1_epi32(THREE_QUARTERS as i32);
                let bits = _mm256_sub_epi32(_mm256_castps_si256(lifted), base);
                let fraction = _mm256_and_si256(bits, _mm256_set1_epi32(FRACTION as i32));
                let m = _mm256_castsi256_ps(_mm256_add_epi32(fraction, base));
                let e = _mm256_cvtepi32_ps(_mm256_srai_epi32::<23>(bits));
                let e = e.sub(_mm256_and_ps(small, V::splat(23.0)));
                let one = V::splat(1.0);
                let finite = _mm256_cmp_ps::<_CMP_LT_OQ>(self, V::splat(f32::INFINITY));
                let below = V::if_less(self, V::splat(0.0), V::splat(f32::NAN), V::splat(f32::NEG_INFINITY));
                let e = V::if_less(V::splat(0.0), self, e, below);
                (_mm256_blendv_ps(one, m, finite), _mm256_blendv_ps(self, e, finite))
            }}
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::super::lanes::SimdNumber;
    use super::*;
    use std::arch::x86_64::*;

    type V = __m512;

    impl Real for V {
        const SCALES: bool = true;

        methods! {
            fn abs(self: V) -> V { _mm512_abs_ps(self) }
            fn negated(self: V) -> V {
                _mm512_castsi512_ps(_mm512_xor_si512(_mm512_set1_epi32(SIGN as i32), _mm512_castps_si512(self)))
            }
            fn with_sign_of(self: V, other: V) -> V {
                _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xb8>(
                    _mm512_castps_si512(self),
                    _mm512_set1_epi32(SIGN as i32),
                    _mm512_castps_si512(other),
                ))
            }
            fn if_less(a: V, b: V, yes: V, no: V) -> V {
                _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), no, yes)
            }
            fn if_equal(a: V, b: V, yes: V, no: V) -> V {
                _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b), no, yes)
            }
            fn sqrt(self: V) -> V { _mm512_sqrt_ps(self) }
            fn round(self: V) -> V {
                _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self)
            }
            fn trunc(self: V) -> V { _mm512_roundscale_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self) }
            fn floor(self: V) -> V { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self) }
            fn ceil(self: V) -> V { _mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(self) }
            fn scaled(self: V, n: V) -> V { _mm512_scalef_ps(self, n) }
            fn sixteenth_root(self: V) -> V {
                _mm512_permutexvar_ps(_mm512_castps_si512(self), _mm512_loadu_ps(ROOTS.as_ptr()))
            }
            fn split(self: V) -> (V, V) {{
                let m = _mm512_getmant_ps::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_NAN>(self);
                let e = _mm512_getexp_ps(self);
                // getexp refers to the leading bit; values above 3/2 of it have been halved.
                let halved = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(m, V::splat(1.0));
                (m, _mm512_mask_add_ps(e, halved, e, V::splat(1.0)))
            }}
        }
    }
}
