//! Sixteen numbers at once, for sums with identical bits on every instruction set.
//!
//! There are sixteen lanes for every register size, no operation is fused unless that is exact, and a total adds them
//! in one order: each as f64 to the one eight further, then four, two and one. `lanes` has as many lanes as a register
//! and fuses; its results differ in the last bits. Memory holds any `Stored` type; lanes are floats.

use super::convert::Stored;
use super::isa::{Isa, SimdLevel};
use crate::base::dtype;

/// # Safety
/// For every method: the processor has the instructions of the type, and that many elements are readable, or writable,
/// at the address.
pub trait Wide: Copy {
    /// Sixteen lanes of f64: for sums of squares, and products.
    type Doubles: Copy;

    unsafe fn splat(x: f32) -> Self;
    unsafe fn load<T: Stored>(from: *const T) -> Self;
    unsafe fn store<T: Stored>(self, to: *mut T);
    /// The first `count` < 16, and zeros.
    unsafe fn load_floats(from: *const f32, count: usize) -> Self;
    /// The same with another number in place of zeros.
    unsafe fn load_floats_or(from: *const f32, count: usize, other: f32) -> Self;
    unsafe fn store_floats(self, to: *mut f32, count: usize);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// The first `count` < 16 lanes, and zeros.
    unsafe fn first(self, count: usize) -> Self;
    unsafe fn total(self) -> f64;
    unsafe fn abs(self) -> Self;
    /// self, or x where that is less, or is a NaN and self is not.
    unsafe fn lesser(self, x: Self) -> Self;
    /// self, or x where that is greater, or is a NaN and self is not.
    unsafe fn greater(self, x: Self) -> Self;
    unsafe fn doubles(x: f64) -> Self::Doubles;
    unsafe fn load_doubles(from: *const f64) -> Self::Doubles;
    /// The lanes as f64.
    unsafe fn widened(self) -> Self::Doubles;
    unsafe fn doubles_array(x: Self::Doubles) -> [f64; LANES];
    unsafe fn add_squares(self, to: Self::Doubles) -> Self::Doubles;
    unsafe fn multiply(self, to: Self::Doubles) -> Self::Doubles;
    unsafe fn add_doubles(a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    unsafe fn mul_doubles(a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    unsafe fn total_of_doubles(x: Self::Doubles) -> f64;

    /// The first `count` < 16, and zeros.
    #[inline(always)]
    unsafe fn load_part<T: Stored>(from: *const T, count: usize) -> Self {
        // SAFETY: as demanded of the caller; sixteen elements are in the array.
        unsafe {
            if T::DTYPE == dtype::F32 {
                return Self::load_floats(from.cast(), count);
            }
            let mut some = [T::narrowed(0.0); LANES];
            std::ptr::copy_nonoverlapping(from, some.as_mut_ptr(), count);
            Self::load(some.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store_part<T: Stored>(self, to: *mut T, count: usize) {
        // SAFETY: as in `load_part`.
        unsafe {
            if T::DTYPE == dtype::F32 {
                return self.store_floats(to.cast(), count);
            }
            let mut all = [T::narrowed(0.0); LANES];
            self.store(all.as_mut_ptr());
            std::ptr::copy_nonoverlapping(all.as_ptr(), to, count);
        }
    }
}

pub const LANES: usize = 16;

/// Work on sixteen numbers at a time, compiled for every level.
pub trait WideWork {
    /// Must be `#[inline(always)]`, with everything that it calls in its loops.
    ///
    /// # Safety
    /// As of `Wide`.
    unsafe fn run<W: Wide>(self);
}

/// Runs it with the instructions of a supported level.
pub fn on<J: WideWork>(isa: Isa, work: J) {
    isa.assert_detected();
    match isa.level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        SimdLevel::Avx512 => unsafe { avx512(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2, FMA and F16C.
        SimdLevel::Avx2 => unsafe { avx2(work) },
        // SAFETY: arrays need no instructions that a processor may lack.
        _ => unsafe { work.run::<[f32; LANES]>() },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn avx512<J: WideWork>(work: J) {
    // SAFETY: the processor has AVX-512.
    unsafe { work.run::<std::arch::x86_64::__m512>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<J: WideWork>(work: J) {
    // SAFETY: the processor has AVX2, FMA and F16C.
    unsafe { work.run::<Avx2>() }
}

impl Wide for [f32; LANES] {
    type Doubles = [f64; LANES];

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load<T: Stored>(from: *const T) -> Self {
        // SAFETY: as demanded of the caller.
        let x = unsafe { from.cast::<[T; LANES]>().read() };
        if T::DTYPE == dtype::F32 { x.map(T::widened) } else { widened(&x) }
    }
    #[inline(always)]
    unsafe fn load_floats(from: *const f32, count: usize) -> Self {
        // SAFETY: as demanded of the caller.
        unsafe { Self::load_floats_or(from, count, 0.0) }
    }
    #[inline(always)]
    unsafe fn load_floats_or(from: *const f32, count: usize, other: f32) -> Self {
        let mut x = [other; LANES];
        // SAFETY: as demanded of the caller.
        unsafe { std::ptr::copy_nonoverlapping(from, x.as_mut_ptr(), count) };
        x
    }
    #[inline(always)]
    unsafe fn store<T: Stored>(self, to: *mut T) {
        let x = if T::DTYPE == dtype::F32 { self.map(T::narrowed) } else { narrowed(&self) };
        // SAFETY: as demanded of the caller.
        unsafe { to.cast::<[T; LANES]>().write(x) }
    }
    #[inline(always)]
    unsafe fn store_floats(self, to: *mut f32, count: usize) {
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
        // SAFETY: arrays need no instructions.
        unsafe { Self::total_of_doubles(self.map(f64::from)) }
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        self.map(f32::abs)
    }
    #[inline(always)]
    unsafe fn lesser(self, x: Self) -> Self {
        std::array::from_fn(|j| if x[j] < self[j] || (x[j].is_nan() && !self[j].is_nan()) { x[j] } else { self[j] })
    }
    #[inline(always)]
    unsafe fn greater(self, x: Self) -> Self {
        std::array::from_fn(|j| if x[j] > self[j] || (x[j].is_nan() && !self[j].is_nan()) { x[j] } else { self[j] })
    }
    #[inline(always)]
    unsafe fn doubles(x: f64) -> [f64; LANES] {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load_doubles(from: *const f64) -> [f64; LANES] {
        // SAFETY: as demanded of the caller.
        unsafe { from.cast::<[f64; LANES]>().read() }
    }
    #[inline(always)]
    unsafe fn widened(self) -> [f64; LANES] {
        self.map(f64::from)
    }
    #[inline(always)]
    unsafe fn doubles_array(x: [f64; LANES]) -> [f64; LANES] {
        x
    }
    #[inline(always)]
    unsafe fn add_squares(self, to: [f64; LANES]) -> [f64; LANES] {
        std::array::from_fn(|j| to[j] + f64::from(self[j]) * f64::from(self[j]))
    }
    #[inline(always)]
    unsafe fn multiply(self, to: [f64; LANES]) -> [f64; LANES] {
        std::array::from_fn(|j| to[j] * f64::from(self[j]))
    }
    #[inline(always)]
    unsafe fn add_doubles(a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        std::array::from_fn(|j| a[j] + b[j])
    }
    #[inline(always)]
    unsafe fn mul_doubles(a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        std::array::from_fn(|j| a[j] * b[j])
    }
    #[inline(always)]
    unsafe fn total_of_doubles(mut sums: [f64; LANES]) -> f64 {
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

/// A conversion without instructions for it is long: not once more in each loop.
#[inline(never)]
fn widened<T: Stored>(x: &[T; LANES]) -> [f32; LANES] {
    x.map(T::widened)
}

#[inline(never)]
fn narrowed<T: Stored>(x: &[f32; LANES]) -> [T; LANES] {
    x.map(T::narrowed)
}

/// Sixteen lanes in AVX2 registers.
#[cfg(target_arch = "x86_64")]
pub type Avx2 = [std::arch::x86_64::__m256; 2];

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Wide;
    use crate::kernel::vector::convert::Stored;
    use std::arch::x86_64::*;

    /// Methods that are one expression of intrinsics.
    macro_rules! methods {
        ($(
            fn $name:ident $([$($generic:tt)*])? ($($argument:ident: $type:ty),*) $(-> $result:ty)? { $body:expr }
        )*) => {
            $(
                #[inline(always)]
                unsafe fn $name $(<$($generic)*>)? ($($argument: $type),*) $(-> $result)? {
                    // SAFETY: as demanded of the caller.
                    unsafe { $body }
                }
            )*
        };
    }

    /// The eight sums that all levels have, folded.
    #[inline(always)]
    unsafe fn fold(low: __m256d, high: __m256d) -> f64 {
        // SAFETY: a processor with AVX2, as the callers'.
        unsafe {
            let four = _mm256_add_pd(low, high);
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    /// a, or x where the comparison of x with a holds, or x is a NaN and a is not.
    #[inline(always)]
    unsafe fn better<const COMPARED: i32>(a: __m256, x: __m256) -> __m256 {
        // SAFETY: a processor with AVX2, as the callers'.
        unsafe {
            let first_nan = _mm256_and_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x), _mm256_cmp_ps::<_CMP_ORD_Q>(a, a));
            _mm256_blendv_ps(a, x, _mm256_or_ps(_mm256_cmp_ps::<COMPARED>(x, a), first_nan))
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

    /// Not by a closure: where it is not inlined it lacks the instructions, and each of them is a call.
    macro_rules! each_double {
        ($of:ident, $a:ident, $b:ident) => {
            [$of($a[0], $b[0]), $of($a[1], $b[1]), $of($a[2], $b[2]), $of($a[3], $b[3])]
        };
    }

    impl Wide for super::Avx2 {
        type Doubles = [__m256d; 4];

        methods! {
            fn splat(x: f32) -> Self { [_mm256_set1_ps(x); 2] }
            fn load[T: Stored](from: *const T) -> Self { [T::load_avx2(from), T::load_avx2(from.add(8))] }
            fn store[T: Stored](self: Self, to: *mut T) {{
                T::store_avx2(self[0], to);
                T::store_avx2(self[1], to.add(8));
            }}
            fn load_floats(from: *const f32, count: usize) -> Self {
                // No lane of the second half is read without elements: its address may be beyond the memory.
                [_mm256_maskload_ps(from, first(count, 0)), _mm256_maskload_ps(from.wrapping_add(8), first(count, 8))]
            }
            fn load_floats_or(from: *const f32, count: usize, other: f32) -> Self {{
                let (x, other) = (Self::load_floats(from, count), _mm256_set1_ps(other));
                let lanes = [_mm256_castsi256_ps(first(count, 0)), _mm256_castsi256_ps(first(count, 8))];
                [_mm256_blendv_ps(other, x[0], lanes[0]), _mm256_blendv_ps(other, x[1], lanes[1])]
            }}
            fn store_floats(self: Self, to: *mut f32, count: usize) {{
                _mm256_maskstore_ps(to, first(count, 0), self[0]);
                _mm256_maskstore_ps(to.wrapping_add(8), first(count, 8), self[1]);
            }}
            fn add(self: Self, other: Self) -> Self {
                [_mm256_add_ps(self[0], other[0]), _mm256_add_ps(self[1], other[1])]
            }
            fn sub(self: Self, other: Self) -> Self {
                [_mm256_sub_ps(self[0], other[0]), _mm256_sub_ps(self[1], other[1])]
            }
            fn mul(self: Self, other: Self) -> Self {
                [_mm256_mul_ps(self[0], other[0]), _mm256_mul_ps(self[1], other[1])]
            }
            fn first(self: Self, count: usize) -> Self {
                [0, 1].map(|i| _mm256_and_ps(self[i], _mm256_castsi256_ps(first(count, 8 * i as i32))))
            }
            fn total(self: Self) -> f64 { Self::total_of_doubles(widened(self)) }
            fn abs(self: Self) -> Self {{
                let sign = _mm256_set1_ps(-0.0);
                [_mm256_andnot_ps(sign, self[0]), _mm256_andnot_ps(sign, self[1])]
            }}
            fn lesser(self: Self, x: Self) -> Self {
                [better::<_CMP_LT_OQ>(self[0], x[0]), better::<_CMP_LT_OQ>(self[1], x[1])]
            }
            fn greater(self: Self, x: Self) -> Self {
                [better::<_CMP_GT_OQ>(self[0], x[0]), better::<_CMP_GT_OQ>(self[1], x[1])]
            }
            fn doubles(x: f64) -> [__m256d; 4] { [_mm256_set1_pd(x); 4] }
            fn load_doubles(from: *const f64) -> [__m256d; 4] {
                [
                    _mm256_loadu_pd(from),
                    _mm256_loadu_pd(from.add(4)),
                    _mm256_loadu_pd(from.add(8)),
                    _mm256_loadu_pd(from.add(12)),
                ]
            }
            fn widened(self: Self) -> [__m256d; 4] { widened(self) }
            fn doubles_array(x: [__m256d; 4]) -> [f64; 16] {{
                let mut all = [0.0; 16];
                for (i, x) in x.into_iter().enumerate() {
                    _mm256_storeu_pd(all[4 * i..4 * i + 4].as_mut_ptr(), x);
                }
                all
            }}
            fn add_squares(self: Self, to: [__m256d; 4]) -> [__m256d; 4] {{
                let x = widened(self);
                [
                    _mm256_fmadd_pd(x[0], x[0], to[0]),
                    _mm256_fmadd_pd(x[1], x[1], to[1]),
                    _mm256_fmadd_pd(x[2], x[2], to[2]),
                    _mm256_fmadd_pd(x[3], x[3], to[3]),
                ]
            }}
            fn multiply(self: Self, to: [__m256d; 4]) -> [__m256d; 4] { Self::mul_doubles(widened(self), to) }
            fn add_doubles(a: [__m256d; 4], b: [__m256d; 4]) -> [__m256d; 4] {
                each_double!(_mm256_add_pd, a, b)
            }
            fn mul_doubles(a: [__m256d; 4], b: [__m256d; 4]) -> [__m256d; 4] {
                each_double!(_mm256_mul_pd, a, b)
            }
            fn total_of_doubles(x: [__m256d; 4]) -> f64 {
                fold(_mm256_add_pd(x[0], x[2]), _mm256_add_pd(x[1], x[3]))
            }
        }
    }

    /// Sixteen lanes as f64.
    #[inline(always)]
    unsafe fn widened(x: super::Avx2) -> [__m256d; 4] {
        // SAFETY: a processor with AVX2, as the callers'.
        unsafe {
            [
                _mm256_cvtps_pd(_mm256_castps256_ps128(x[0])),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x[0])),
                _mm256_cvtps_pd(_mm256_castps256_ps128(x[1])),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x[1])),
            ]
        }
    }

    impl Wide for __m512 {
        type Doubles = [__m512d; 2];

        methods! {
            fn splat(x: f32) -> Self { _mm512_set1_ps(x) }
            fn load[T: Stored](from: *const T) -> Self { T::load_avx512(from) }
            fn store[T: Stored](self: Self, to: *mut T) { T::store_avx512(self, to) }
            fn load_floats(from: *const f32, count: usize) -> Self { _mm512_maskz_loadu_ps((1u16 << count) - 1, from) }
            fn load_floats_or(from: *const f32, count: usize, other: f32) -> Self {
                _mm512_mask_loadu_ps(_mm512_set1_ps(other), (1u16 << count) - 1, from)
            }
            fn store_floats(self: Self, to: *mut f32, count: usize) {
                _mm512_mask_storeu_ps(to, (1u16 << count) - 1, self)
            }
            fn add(self: Self, other: Self) -> Self { _mm512_add_ps(self, other) }
            fn sub(self: Self, other: Self) -> Self { _mm512_sub_ps(self, other) }
            fn mul(self: Self, other: Self) -> Self { _mm512_mul_ps(self, other) }
            fn first(self: Self, count: usize) -> Self { _mm512_maskz_mov_ps((1u16 << count) - 1, self) }
            fn total(self: Self) -> f64 { Self::total_of_doubles(halves(self)) }
            fn abs(self: Self) -> Self { _mm512_abs_ps(self) }
            fn lesser(self: Self, x: Self) -> Self { best::<_CMP_LT_OQ>(self, x) }
            fn greater(self: Self, x: Self) -> Self { best::<_CMP_GT_OQ>(self, x) }
            fn doubles(x: f64) -> [__m512d; 2] { [_mm512_set1_pd(x); 2] }
            fn load_doubles(from: *const f64) -> [__m512d; 2] {
                [_mm512_loadu_pd(from), _mm512_loadu_pd(from.add(8))]
            }
            fn widened(self: Self) -> [__m512d; 2] { halves(self) }
            fn doubles_array(x: [__m512d; 2]) -> [f64; 16] {{
                let mut all = [0.0; 16];
                _mm512_storeu_pd(all[..8].as_mut_ptr(), x[0]);
                _mm512_storeu_pd(all[8..].as_mut_ptr(), x[1]);
                all
            }}
            fn add_squares(self: Self, to: [__m512d; 2]) -> [__m512d; 2] {{
                let x = halves(self);
                [_mm512_fmadd_pd(x[0], x[0], to[0]), _mm512_fmadd_pd(x[1], x[1], to[1])]
            }}
            fn multiply(self: Self, to: [__m512d; 2]) -> [__m512d; 2] { Self::mul_doubles(halves(self), to) }
            fn add_doubles(a: [__m512d; 2], b: [__m512d; 2]) -> [__m512d; 2] {
                [_mm512_add_pd(a[0], b[0]), _mm512_add_pd(a[1], b[1])]
            }
            fn mul_doubles(a: [__m512d; 2], b: [__m512d; 2]) -> [__m512d; 2] {
                [_mm512_mul_pd(a[0], b[0]), _mm512_mul_pd(a[1], b[1])]
            }
            fn total_of_doubles(x: [__m512d; 2]) -> f64 {{
                let eight = _mm512_add_pd(x[0], x[1]);
                fold(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd::<1>(eight))
            }}
        }
    }

    /// As `better`.
    #[inline(always)]
    unsafe fn best<const COMPARED: i32>(a: __m512, x: __m512) -> __m512 {
        // SAFETY: a processor with AVX-512, as the callers'.
        unsafe {
            let first_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x) & _mm512_cmp_ps_mask::<_CMP_ORD_Q>(a, a);
            _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask::<COMPARED>(x, a) | first_nan, x)
        }
    }

    /// Sixteen lanes as f64.
    #[inline(always)]
    unsafe fn halves(x: __m512) -> [__m512d; 2] {
        // SAFETY: a processor with AVX-512, as the callers'.
        unsafe {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(x)));
            [_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(high)]
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::{Bf16, F16};

    /// The sum and the sum of squares of x, and a copy of it.
    struct Copied<'a, T> {
        x: &'a [T],
        to: &'a mut [T],
        sums: &'a mut [f64; 2],
    }

    impl<T: Stored> WideWork for Copied<'_, T> {
        #[inline(always)]
        unsafe fn run<W: Wide>(self) {
            let (x, to, len) = (self.x.as_ptr(), self.to.as_mut_ptr(), self.x.len());
            let whole = len - len % LANES;
            // SAFETY: as demanded of the caller; whole vectors, then what is left.
            unsafe {
                let (mut sum, mut squares) = (W::splat(0.0), W::doubles(0.0));
                for at in (0..whole).step_by(LANES) {
                    let x = W::load(x.add(at));
                    (sum, squares) = (sum.add(x), x.add_squares(squares));
                    x.store(to.add(at));
                }
                let last = W::load_part(x.add(whole), len - whole);
                last.store_part(to.add(whole), len - whole);
                let squares = W::add_doubles(squares, last.add_squares(W::doubles(0.0)));
                *self.sums = [sum.add(last).total(), W::total_of_doubles(squares)];
            }
        }
    }

    fn check<T: Stored + PartialEq + std::fmt::Debug>() {
        for len in 0..70 {
            let x: Vec<T> = (0..len).map(|i| T::narrowed((i as f32 * 0.37).sin() * 1e3)).collect();
            let mut want = None;
            for isa in Isa::levels() {
                let (mut y, mut sums) = (vec![T::narrowed(7.0); len + 16], [0.0; 2]);
                on(isa, Copied { x: &x, to: &mut y[..], sums: &mut sums });
                assert!(y[..len] == x && y[len..].iter().all(|&y| y == T::narrowed(7.0)), "{isa:?} {len}");
                assert_eq!(*want.get_or_insert(sums.map(f64::to_bits)), sums.map(f64::to_bits), "{isa:?} {len}");
                let exact: f64 = x.iter().map(|&x| f64::from(x.widened())).sum();
                let squares: f64 = x.iter().map(|&x| f64::from(x.widened()).powi(2)).sum();
                assert!((sums[0] - exact).abs() <= 1e-3, "{isa:?} {len}: {sums:?}, expected {exact}");
                assert!((sums[1] - squares).abs() <= 1e-12 * squares, "{isa:?} {len}: {sums:?}, expected {squares}");
            }
        }
    }

    #[test]
    fn all_levels_add_alike_and_touch_nothing_else() {
        check::<f32>();
        check::<F16>();
        check::<Bf16>();
    }
}
