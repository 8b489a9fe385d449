//! Registers of AVX-512.

use super::{Reduced, SimdNumber, Vector};
use std::arch::asm;
use std::arch::x86_64::*;

type V = __m512;

impl SimdNumber for V {
    methods! {
        fn splat(x: f32) -> V { _mm512_set1_ps(x) }
        fn add(self: V, other: V) -> V { _mm512_add_ps(self, other) }
        fn sub(self: V, other: V) -> V { _mm512_sub_ps(self, other) }
        fn mul(self: V, other: V) -> V { _mm512_mul_ps(self, other) }
        fn div(self: V, divisor: V) -> V { _mm512_div_ps(self, divisor) }
        fn mul_add(self: V, factor: V, summand: V) -> V { _mm512_fmadd_ps(self, factor, summand) }
        fn max(self: V, other: V) -> V { _mm512_max_ps(self, other) }
        fn min(self: V, other: V) -> V { _mm512_min_ps(self, other) }
        fn max_or_nan(self: V, other: V) -> V {
            _mm512_mask_mov_ps(_mm512_max_ps(self, other), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self, self), self)
        }
        fn where_greater(self: V, a: V, b: V) -> V {
            _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), self)
        }
        fn low_bits_as_exponent(self: V) -> V {
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_castps_si512(self)))
        }
    }
}

/// The first `count` lanes.
#[inline(always)]
fn first(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}

#[inline]
#[target_feature(enable = "avx512f")]
fn settle(mut x: V) -> V {
    // SAFETY: no instruction; it may read memory, for all that the compiler knows.
    unsafe { asm!("/* {} */", inout(zmm_reg) x, options(nostack, preserves_flags)) };
    x
}

impl Vector for V {
    const LANES: usize = 16;
    const HAS_MASKS: bool = true;

    methods! {
        fn settled(self: V) -> V { settle(self) }
        fn load(from: *const f32) -> V { _mm512_loadu_ps(from) }
        fn load_part(from: *const f32, count: usize) -> V {
            _mm512_mask_loadu_ps(_mm512_set1_ps(1.0), first(count), from)
        }
        fn load_first(from: *const f32, count: usize) -> V { _mm512_maskz_loadu_ps(first(count), from) }
        fn store(self: V, to: *mut f32) { _mm512_storeu_ps(to, self) }
        fn store_part(self: V, to: *mut f32, count: usize) { _mm512_mask_storeu_ps(to, first(count), self) }
    }

    type Mask = __mmask16;

    #[inline(always)]
    unsafe fn lanes(begin: usize, end: usize) -> __mmask16 {
        first(end) & !first(begin)
    }
    methods! {
        fn load_lanes(from: *const f32, lanes: __mmask16, other: f32) -> V {
            _mm512_mask_loadu_ps(_mm512_set1_ps(other), lanes, from)
        }
        fn evens(self: V, next: V) -> V {{
            let places = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            _mm512_permutex2var_ps(self, places, next)
        }}
        fn odds(self: V, next: V) -> V {{
            let places = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            _mm512_permutex2var_ps(self, places, next)
        }}
        fn after(self: V, first: f32) -> V {{
            let (lanes, first) = (_mm512_castps_si512(self), _mm512_castps_si512(_mm512_set1_ps(first)));
            _mm512_castsi512_ps(_mm512_alignr_epi32::<15>(lanes, first))
        }}
        fn before(self: V, last: f32) -> V {{
            let (lanes, last) = (_mm512_castps_si512(self), _mm512_castps_si512(_mm512_set1_ps(last)));
            _mm512_castsi512_ps(_mm512_alignr_epi32::<1>(last, lanes))
        }}
    }
}

impl Reduced for V {
    type Sums = __m512d;

    methods! {
        fn last_lanes(self: V, count: usize) -> V { _mm512_maskz_mov_ps(!first(Self::LANES - count), self) }
        fn greatest(self: V) -> f32 { _mm512_reduce_max_ps(self) }
        fn no_sums() -> __m512d { _mm512_setzero_pd() }
        fn add_to(self: V, sums: __m512d) -> __m512d {{
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self)));
            let sums = _mm512_add_pd(sums, _mm512_cvtps_pd(_mm512_castps512_ps256(self)));
            _mm512_add_pd(sums, _mm512_cvtps_pd(upper))
        }}
        fn total(sums: __m512d) -> f64 { _mm512_reduce_add_pd(sums) }
    }
}

/// Half a register, with as many of them, and masks, as there are whole ones.
#[derive(Clone, Copy)]
pub struct Ymm(__m256);

impl SimdNumber for Ymm {
    methods! {
        fn splat(x: f32) -> Ymm { Ymm(_mm256_set1_ps(x)) }
        fn add(self: Ymm, other: Ymm) -> Ymm { Ymm(_mm256_add_ps(self.0, other.0)) }
        fn sub(self: Ymm, other: Ymm) -> Ymm { Ymm(_mm256_sub_ps(self.0, other.0)) }
        fn mul(self: Ymm, other: Ymm) -> Ymm { Ymm(_mm256_mul_ps(self.0, other.0)) }
        fn div(self: Ymm, divisor: Ymm) -> Ymm { Ymm(_mm256_div_ps(self.0, divisor.0)) }
        fn mul_add(self: Ymm, factor: Ymm, summand: Ymm) -> Ymm {
            Ymm(_mm256_fmadd_ps(self.0, factor.0, summand.0))
        }
        fn max(self: Ymm, other: Ymm) -> Ymm { Ymm(_mm256_max_ps(self.0, other.0)) }
        fn min(self: Ymm, other: Ymm) -> Ymm { Ymm(_mm256_min_ps(self.0, other.0)) }
        fn max_or_nan(self: Ymm, other: Ymm) -> Ymm {{
            let nan = _mm256_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0);
            Ymm(_mm256_mask_mov_ps(_mm256_max_ps(self.0, other.0), nan, self.0))
        }}
        fn where_greater(self: Ymm, a: Ymm, b: Ymm) -> Ymm {
            Ymm(_mm256_maskz_mov_ps(_mm256_cmp_ps_mask::<_CMP_GT_OQ>(a.0, b.0), self.0))
        }
        fn low_bits_as_exponent(self: Ymm) -> Ymm { Ymm(self.0.low_bits_as_exponent()) }
    }
}

impl Vector for Ymm {
    const LANES: usize = 8;

    methods! {
        fn load(from: *const f32) -> Ymm { Ymm(_mm256_loadu_ps(from)) }
        fn load_part(from: *const f32, count: usize) -> Ymm {
            Self::load_lanes(from, first(count) as __mmask8, 1.0)
        }
        fn load_first(from: *const f32, count: usize) -> Ymm {
            Ymm(_mm256_maskz_loadu_ps(first(count) as __mmask8, from))
        }
        fn store(self: Ymm, to: *mut f32) { _mm256_storeu_ps(to, self.0) }
        fn store_part(self: Ymm, to: *mut f32, count: usize) {
            _mm256_mask_storeu_ps(to, first(count) as __mmask8, self.0)
        }
    }

    type Mask = __mmask8;

    #[inline(always)]
    unsafe fn lanes(begin: usize, end: usize) -> __mmask8 {
        (first(end) & !first(begin)) as __mmask8
    }
    methods! {
        fn load_lanes(from: *const f32, lanes: __mmask8, other: f32) -> Ymm {
            Ymm(_mm256_mask_loadu_ps(_mm256_set1_ps(other), lanes, from))
        }
        fn evens(self: Ymm, next: Ymm) -> Ymm {
            Ymm(_mm256_permutex2var_ps(self.0, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14), next.0))
        }
        fn odds(self: Ymm, next: Ymm) -> Ymm {
            Ymm(_mm256_permutex2var_ps(self.0, _mm256_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15), next.0))
        }
        fn after(self: Ymm, first: f32) -> Ymm {{
            let (lanes, first) = (_mm256_castps_si256(self.0), _mm256_castps_si256(_mm256_set1_ps(first)));
            Ymm(_mm256_castsi256_ps(_mm256_alignr_epi32::<7>(lanes, first)))
        }}
        fn before(self: Ymm, last: f32) -> Ymm {{
            let (lanes, last) = (_mm256_castps_si256(self.0), _mm256_castps_si256(_mm256_set1_ps(last)));
            Ymm(_mm256_castsi256_ps(_mm256_alignr_epi32::<1>(last, lanes)))
        }}
    }
}
