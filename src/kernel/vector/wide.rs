//! Sixteen floats at once, for sums that are the same bits on every instruction set.
//!
//! Whatever the registers are, there are sixteen lanes, none is fused, and a total adds them in one order: each as f64 to the one
//! eight further, then four, two and one. `lanes` has as many lanes as a register and fuses; its results differ in the last bits.

/// # Safety
/// Of every method: the processor has the instructions of the type, and so many floats are readable, or writable, at the address.
pub trait Wide: Copy {
    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    /// The first `count` < 16, and zeros.
    unsafe fn load_part(from: *const f32, count: usize) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn store_part(self, to: *mut f32, count: usize);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// The first `count` < 16 lanes, and zeros.
    unsafe fn first(self, count: usize) -> Self;
    unsafe fn total(self) -> f64;
}

pub const LANES: usize = 16;

impl Wide for [f32; LANES] {
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: as demanded of the caller.
        unsafe { from.cast::<Self>().read() }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Self {
        let mut x = [0.0; LANES];
        // SAFETY: as demanded of the caller.
        unsafe { std::ptr::copy_nonoverlapping(from, x.as_mut_ptr(), count) };
        x
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as demanded of the caller.
        unsafe { to.cast::<Self>().write(self) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, count: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { std::ptr::copy_nonoverlapping(self.as_ptr(), to, count) };
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|j| self[j] + other[j])
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        std::array::from_fn(|j| self[j] - other[j])
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        std::array::from_fn(|j| self[j] * other[j])
    }
    #[inline(always)]
    unsafe fn first(self, count: usize) -> Self {
        std::array::from_fn(|j| if j < count { self[j] } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn total(self) -> f64 {
        let mut sums: [f64; LANES] = std::array::from_fn(|j| f64::from(self[j]));
        let mut half = LANES / 2;
        while half > 0 {
            for j in 0..half {
                sums[j] += sums[j + half];
            }
            half /= 2;
        }
        sums[0]
    }
}

/// Sixteen lanes of AVX2.
#[cfg(target_arch = "x86_64")]
pub type Avx2 = [std::arch::x86_64::__m256; 2];

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Wide;
    use std::arch::x86_64::*;

    /// Methods that are one expression of intrinsics.
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

    /// The eight sums that all levels come to, folded.
    #[inline(always)]
    unsafe fn fold(low: __m256d, high: __m256d) -> f64 {
        // SAFETY: a processor with AVX2, as the callers'.
        unsafe {
            let four = _mm256_add_pd(low, high);
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    /// All bits of the first `count` lanes of the eight from `from` on.
    #[inline(always)]
    unsafe fn first(count: usize, from: i32) -> __m256i {
        // SAFETY: a processor with AVX2, as the callers'.
        unsafe {
            let lanes = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(from));
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes)
        }
    }

    impl Wide for super::Avx2 {
        methods! {
            fn splat(x: f32) -> Self { [_mm256_set1_ps(x); 2] }
            fn load(from: *const f32) -> Self { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
            fn load_part(from: *const f32, count: usize) -> Self {
                // No lane of the second is read where there are none: its address may be beyond the memory.
                [_mm256_maskload_ps(from, first(count, 0)), _mm256_maskload_ps(from.wrapping_add(8), first(count, 8))]
            }
            fn store(self: Self, to: *mut f32) {{
                _mm256_storeu_ps(to, self[0]);
                _mm256_storeu_ps(to.add(8), self[1]);
            }}
            fn store_part(self: Self, to: *mut f32, count: usize) {{
                _mm256_maskstore_ps(to, first(count, 0), self[0]);
                _mm256_maskstore_ps(to.wrapping_add(8), first(count, 8), self[1]);
            }}
            fn add(self: Self, other: Self) -> Self { [_mm256_add_ps(self[0], other[0]), _mm256_add_ps(self[1], other[1])] }
            fn sub(self: Self, other: Self) -> Self { [_mm256_sub_ps(self[0], other[0]), _mm256_sub_ps(self[1], other[1])] }
            fn mul(self: Self, other: Self) -> Self { [_mm256_mul_ps(self[0], other[0]), _mm256_mul_ps(self[1], other[1])] }
            fn first(self: Self, count: usize) -> Self {
                [0, 1].map(|i| _mm256_and_ps(self[i], _mm256_castsi256_ps(first(count, 8 * i as i32))))
            }
            fn total(self: Self) -> f64 {{
                let low = |v| _mm256_cvtps_pd(_mm256_castps256_ps128(v));
                let high = |v| _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v));
                fold(_mm256_add_pd(low(self[0]), low(self[1])), _mm256_add_pd(high(self[0]), high(self[1])))
            }}
        }
    }

    impl Wide for __m512 {
        methods! {
            fn splat(x: f32) -> Self { _mm512_set1_ps(x) }
            fn load(from: *const f32) -> Self { _mm512_loadu_ps(from) }
            fn load_part(from: *const f32, count: usize) -> Self { _mm512_maskz_loadu_ps((1u16 << count) - 1, from) }
            fn store(self: Self, to: *mut f32) { _mm512_storeu_ps(to, self) }
            fn store_part(self: Self, to: *mut f32, count: usize) { _mm512_mask_storeu_ps(to, (1u16 << count) - 1, self) }
            fn add(self: Self, other: Self) -> Self { _mm512_add_ps(self, other) }
            fn sub(self: Self, other: Self) -> Self { _mm512_sub_ps(self, other) }
            fn mul(self: Self, other: Self) -> Self { _mm512_mul_ps(self, other) }
            fn first(self: Self, count: usize) -> Self { _mm512_maskz_mov_ps((1u16 << count) - 1, self) }
            fn total(self: Self) -> f64 {{
                let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self)));
                let eight = _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(self)), _mm512_cvtps_pd(high));
                fold(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight))
            }}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::vector::isa::Isa;

    unsafe fn sum_and_copy<W: Wide>(x: &[f32], to: &mut [f32]) -> f64 {
        // SAFETY: the caller has the processor; whole vectors, then what is left.
        unsafe {
            let (mut sum, whole) = (W::splat(0.0), x.len() - x.len() % LANES);
            for at in (0..whole).step_by(LANES) {
                sum = sum.add(W::load(x.as_ptr().add(at)));
                W::load(x.as_ptr().add(at)).store(to.as_mut_ptr().add(at));
            }
            let last = W::load_part(x.as_ptr().add(whole), x.len() - whole);
            last.store_part(to.as_mut_ptr().add(whole), x.len() - whole);
            sum.add(last).total()
        }
    }

    #[test]
    fn all_levels_add_alike_and_touch_nothing_else() {
        for len in 0..70 {
            let x: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).sin() * 1e3).collect();
            let mut y = vec![7f32; len + 16];
            // SAFETY: arrays need nothing, and `available` says what the processor has.
            let want = unsafe { sum_and_copy::<[f32; LANES]>(&x, &mut y) };
            assert!(y[..len] == x && y[len..].iter().all(|&y| y == 7.0), "{len}");
            let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
            assert!((want - exact).abs() <= 1e-3, "{len}: {want}, expected {exact}");
            #[cfg(target_arch = "x86_64")]
            for isa in Isa::available() {
                let mut y = vec![7f32; len + 16];
                // SAFETY: as above.
                let got = unsafe {
                    match isa {
                        Isa::Avx2 => sum_and_copy::<Avx2>(&x, &mut y),
                        Isa::Portable | Isa::Neon => sum_and_copy::<[f32; LANES]>(&x, &mut y),
                        _ => sum_and_copy::<std::arch::x86_64::__m512>(&x, &mut y),
                    }
                };
                assert_eq!(got.to_bits(), want.to_bits(), "{isa:?} {len}");
                assert!(y[..len] == x && y[len..].iter().all(|&y| y == 7.0), "{isa:?} {len}");
            }
        }
    }
}
