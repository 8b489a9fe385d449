//! Arithmetic on one float, or on a whole vector register, so that a formula is written once.
//!
//! A formula is a generic function that is always inlined into one with the `target_feature` of its vectors. Over plain
//! floats it is branch-free code, which the compiler vectorises with the target's baseline instructions.

/// One float or a vector of them.
///
/// # Safety
/// Of every method: the processor has the instructions of the type. Plain floats need none.
pub trait SimdNumber: Copy {
    unsafe fn splat(x: f32) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// The quotient, correctly rounded.
    unsafe fn div(self, divisor: Self) -> Self;
    /// self * factor + summand, rounded once where the processor can.
    unsafe fn mul_add(self, factor: Self, summand: Self) -> Self;
    /// The greater one; `other` if one is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// The lesser one; `other` if one is NaN.
    unsafe fn min(self, other: Self) -> Self;
    /// The greater one; NaN if one is.
    unsafe fn max_or_nan(self, other: Self) -> Self;
    /// Itself where a > b, else 0.
    unsafe fn where_greater(self, a: Self, b: Self) -> Self;
    /// The float whose sign and exponent are the lowest nine bits of this one.
    unsafe fn low_bits_as_exponent(self) -> Self;
}

/// A vector register.
///
/// # Safety
/// As of `SimdNumber`; pointers are to as many floats as the method reads or writes.
pub trait Vector: SimdNumber {
    /// Floats in a register.
    const LANES: usize;
    /// Whether a part of a register is loaded and stored by one instruction with a mask, which costs no more.
    const HAS_MASKS: bool = false;

    unsafe fn load(from: *const f32) -> Self;
    /// `count` floats, at most LANES; 1 in the other lanes, of which no function raises a floating-point exception.
    unsafe fn load_part(from: *const f32, count: usize) -> Self;
    /// As `load_part`, with 0 there.
    unsafe fn load_first(from: *const f32, count: usize) -> Self;
    unsafe fn store(self, to: *mut f32);
    /// Stores the first `count` lanes.
    unsafe fn store_part(self, to: *mut f32, count: usize);

    /// Some lanes.
    type Mask: Copy;

    /// The lanes from `begin` to `end`, at most LANES.
    unsafe fn lanes(begin: usize, end: usize) -> Self::Mask;
    /// The floats of some lanes, the only ones that are read; `other` in the others.
    unsafe fn load_lanes(from: *const f32, lanes: Self::Mask, other: f32) -> Self;
    /// Every second lane of this one and the next, from the first on.
    unsafe fn evens(self, next: Self) -> Self;
    /// Every second lane of this one and the next, from the second on.
    unsafe fn odds(self, next: Self) -> Self;
    /// Each lane's predecessor; `first` in the first lane.
    unsafe fn after(self, first: f32) -> Self;
    /// Each lane's successor; `last` in the last lane.
    unsafe fn before(self, last: f32) -> Self;
    /// Itself, in a register by now. For the compiler alone, where it knows how to be told: it neither puts off what
    /// makes it, nor reads memory for what comes behind.
    #[inline(always)]
    unsafe fn settled(self) -> Self {
        self
    }
}

/// A vector register whose lanes can be reduced to one number.
///
/// # Safety
/// As of `SimdNumber`.
pub trait Reduced: Vector {
    /// Partial sums in f64.
    type Sums: Copy;

    /// Itself in the last `count` lanes, 0 in the others.
    unsafe fn last_lanes(self, count: usize) -> Self;
    /// The greatest lane, if none is NaN.
    unsafe fn greatest(self) -> f32;
    unsafe fn no_sums() -> Self::Sums;
    /// The sums with all lanes added.
    unsafe fn add_to(self, sums: Self::Sums) -> Self::Sums;
    unsafe fn total(sums: Self::Sums) -> f64;
}

impl SimdNumber for f32 {
    #[inline(always)]
    unsafe fn splat(x: f32) -> f32 {
        x
    }
    #[inline(always)]
    unsafe fn add(self, other: f32) -> f32 {
        self + other
    }
    #[inline(always)]
    unsafe fn sub(self, other: f32) -> f32 {
        self - other
    }
    #[inline(always)]
    unsafe fn mul(self, other: f32) -> f32 {
        self * other
    }
    #[inline(always)]
    unsafe fn div(self, divisor: f32) -> f32 {
        self / divisor
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: f32, summand: f32) -> f32 {
        // Not f32::mul_add: without the instruction it calls the C library.
        self * factor + summand
    }
    #[inline(always)]
    unsafe fn max(self, other: f32) -> f32 {
        if self > other { self } else { other }
    }
    #[inline(always)]
    unsafe fn min(self, other: f32) -> f32 {
        if self < other { self } else { other }
    }
    #[inline(always)]
    unsafe fn max_or_nan(self, other: f32) -> f32 {
        if self > other || self.is_nan() { self } else { other }
    }
    #[inline(always)]
    unsafe fn where_greater(self, a: f32, b: f32) -> f32 {
        if a > b { self } else { 0.0 }
    }
    #[inline(always)]
    unsafe fn low_bits_as_exponent(self) -> f32 {
        f32::from_bits(self.to_bits() << 23)
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

/// The register that every processor of the target has, for which no instructions need to be asked for.
#[cfg(target_arch = "x86_64")]
pub type Baseline = std::arch::x86_64::__m128;
#[cfg(not(target_arch = "x86_64"))]
pub type Baseline = four::Four;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::{SimdNumber, Vector};
    use std::arch::x86_64::*;

    type V = __m128;

    impl SimdNumber for V {
        methods! {
            fn splat(x: f32) -> V { _mm_set1_ps(x) }
            fn add(self: V, other: V) -> V { _mm_add_ps(self, other) }
            fn sub(self: V, other: V) -> V { _mm_sub_ps(self, other) }
            fn mul(self: V, other: V) -> V { _mm_mul_ps(self, other) }
            fn div(self: V, divisor: V) -> V { _mm_div_ps(self, divisor) }
            fn mul_add(self: V, factor: V, summand: V) -> V { _mm_add_ps(_mm_mul_ps(self, factor), summand) }
            fn max(self: V, other: V) -> V { _mm_max_ps(self, other) }
            fn min(self: V, other: V) -> V { _mm_min_ps(self, other) }
            fn max_or_nan(self: V, other: V) -> V {{
                let nan = _mm_cmpunord_ps(self, self);
                _mm_or_ps(_mm_and_ps(nan, self), _mm_andnot_ps(nan, _mm_max_ps(self, other)))
            }}
            fn where_greater(self: V, a: V, b: V) -> V { _mm_and_ps(self, _mm_cmpgt_ps(a, b)) }
            fn low_bits_as_exponent(self: V) -> V { _mm_castsi128_ps(_mm_slli_epi32::<23>(_mm_castps_si128(self))) }
        }
    }

    impl Vector for V {
        const LANES: usize = 4;

        methods! {
            fn load(from: *const f32) -> V { _mm_loadu_ps(from) }
            fn load_part(from: *const f32, count: usize) -> V {
                std::mem::transmute(super::first_of(from, count, 1.0))
            }
            fn load_first(from: *const f32, count: usize) -> V {
                if count == Self::LANES {
                    Self::load(from)
                } else {
                    std::mem::transmute::<[f32; 4], V>(super::first_of(from, count, 0.0))
                }
            }
            fn store(self: V, to: *mut f32) { _mm_storeu_ps(to, self) }
            fn store_part(self: V, to: *mut f32, count: usize) {
                super::store_first(std::mem::transmute::<V, [f32; 4]>(self), to, count)
            }
        }

        type Mask = (usize, usize);

        #[inline(always)]
        unsafe fn lanes(begin: usize, end: usize) -> (usize, usize) {
            (begin, end)
        }
        methods! {
            fn load_lanes(from: *const f32, lanes: (usize, usize), other: f32) -> V {
                std::mem::transmute(super::lanes_of(from, lanes, other))
            }
            fn evens(self: V, next: V) -> V { _mm_shuffle_ps::<0x88>(self, next) }
            fn odds(self: V, next: V) -> V { _mm_shuffle_ps::<0xDD>(self, next) }
            fn after(self: V, first: f32) -> V { _mm_move_ss(_mm_shuffle_ps::<0x90>(self, self), _mm_set_ss(first)) }
            fn before(self: V, last: f32) -> V {{
                let lanes = _mm_move_ss(self, _mm_set_ss(last));
                _mm_shuffle_ps::<0x39>(lanes, lanes)
            }}
        }
    }
}

/// Four floats in plain Rust. With optimisation they are one vector register.
#[cfg(any(all(test, not(loom)), not(target_arch = "x86_64")))]
pub mod four {
    use super::{SimdNumber, Vector};
    use std::array::from_fn;

    #[derive(Clone, Copy)]
    pub struct Four([f32; 4]);

    impl Four {
        #[inline(always)]
        fn each(self, other: Four, of: impl Fn(f32, f32) -> f32) -> Four {
            Four(from_fn(|i| of(self.0[i], other.0[i])))
        }
    }

    impl SimdNumber for Four {
        #[inline(always)]
        unsafe fn splat(x: f32) -> Four {
            Four([x; 4])
        }
        #[inline(always)]
        unsafe fn add(self, other: Four) -> Four {
            self.each(other, |x, y| x + y)
        }
        #[inline(always)]
        unsafe fn sub(self, other: Four) -> Four {
            self.each(other, |x, y| x - y)
        }
        #[inline(always)]
        unsafe fn mul(self, other: Four) -> Four {
            self.each(other, |x, y| x * y)
        }
        #[inline(always)]
        unsafe fn div(self, divisor: Four) -> Four {
            self.each(divisor, |x, y| x / y)
        }
        #[inline(always)]
        unsafe fn mul_add(self, factor: Four, summand: Four) -> Four {
            // Without the instruction f32::mul_add calls the C library.
            let one = |i: usize| match cfg!(target_arch = "aarch64") {
                true => self.0[i].mul_add(factor.0[i], summand.0[i]),
                false => self.0[i] * factor.0[i] + summand.0[i],
            };
            Four(from_fn(one))
        }
        #[inline(always)]
        unsafe fn max(self, other: Four) -> Four {
            self.each(other, |x, y| if x > y { x } else { y })
        }
        #[inline(always)]
        unsafe fn min(self, other: Four) -> Four {
            self.each(other, |x, y| if x < y { x } else { y })
        }
        #[inline(always)]
        unsafe fn max_or_nan(self, other: Four) -> Four {
            self.each(other, |x, y| if x > y || x.is_nan() { x } else { y })
        }
        #[inline(always)]
        unsafe fn where_greater(self, a: Four, b: Four) -> Four {
            Four(from_fn(|i| if a.0[i] > b.0[i] { self.0[i] } else { 0.0 }))
        }
        #[inline(always)]
        unsafe fn low_bits_as_exponent(self) -> Four {
            Four(self.0.map(|x| f32::from_bits(x.to_bits() << 23)))
        }
    }

    impl Vector for Four {
        const LANES: usize = 4;

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Four {
            // SAFETY: as demanded of the caller.
            Four(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
        }
        #[inline(always)]
        unsafe fn load_part(from: *const f32, count: usize) -> Four {
            // SAFETY: as demanded of the caller.
            Four(unsafe { super::first_of(from, count, 1.0) })
        }
        #[inline(always)]
        unsafe fn load_first(from: *const f32, count: usize) -> Four {
            // SAFETY: as demanded of the caller.
            unsafe { if count == 4 { Self::load(from) } else { Four(super::first_of(from, count, 0.0)) } }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: as demanded of the caller.
            unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
        }
        #[inline(always)]
        unsafe fn store_part(self, to: *mut f32, count: usize) {
            // SAFETY: as demanded of the caller.
            unsafe { super::store_first(self.0, to, count) }
        }

        type Mask = (usize, usize);

        #[inline(always)]
        unsafe fn lanes(begin: usize, end: usize) -> (usize, usize) {
            (begin, end)
        }
        #[inline(always)]
        unsafe fn load_lanes(from: *const f32, lanes: (usize, usize), other: f32) -> Four {
            // SAFETY: as demanded of the caller.
            Four(unsafe { super::lanes_of(from, lanes, other) })
        }
        #[inline(always)]
        unsafe fn evens(self, next: Four) -> Four {
            Four([self.0[0], self.0[2], next.0[0], next.0[2]])
        }
        #[inline(always)]
        unsafe fn odds(self, next: Four) -> Four {
            Four([self.0[1], self.0[3], next.0[1], next.0[3]])
        }
        #[inline(always)]
        unsafe fn after(self, first: f32) -> Four {
            Four([first, self.0[0], self.0[1], self.0[2]])
        }
        #[inline(always)]
        unsafe fn before(self, last: f32) -> Four {
            Four([self.0[1], self.0[2], self.0[3], last])
        }
    }
}

/// The first `count` floats, at most four, and `rest` behind them.
///
/// # Safety
/// So many floats are readable.
#[inline(always)]
unsafe fn first_of(from: *const f32, count: usize, rest: f32) -> [f32; 4] {
    // SAFETY: as demanded of the caller.
    std::array::from_fn(|i| if i < count { unsafe { *from.add(i) } } else { rest })
}

/// Four floats, of which those from `begin` to `end` are read; `other` for the others.
///
/// # Safety
/// These floats are readable.
#[inline(always)]
unsafe fn lanes_of(from: *const f32, (begin, end): (usize, usize), other: f32) -> [f32; 4] {
    // SAFETY: as demanded of the caller.
    std::array::from_fn(|i| if (begin..end).contains(&i) { unsafe { *from.wrapping_add(i) } } else { other })
}

/// Stores the first `count` floats, at most four.
///
/// # Safety
/// So many floats are writable.
#[inline(always)]
unsafe fn store_first(floats: [f32; 4], to: *mut f32, count: usize) {
    for (i, float) in floats.into_iter().take(count).enumerate() {
        // SAFETY: as demanded of the caller.
        unsafe { *to.add(i) = float };
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Reduced, SimdNumber, Vector};
    use std::arch::x86_64::*;

    type V = __m256;

    impl SimdNumber for V {
        methods! {
            fn splat(x: f32) -> V { _mm256_set1_ps(x) }
            fn add(self: V, other: V) -> V { _mm256_add_ps(self, other) }
            fn sub(self: V, other: V) -> V { _mm256_sub_ps(self, other) }
            fn mul(self: V, other: V) -> V { _mm256_mul_ps(self, other) }
            fn div(self: V, divisor: V) -> V { _mm256_div_ps(self, divisor) }
            fn mul_add(self: V, factor: V, summand: V) -> V { _mm256_fmadd_ps(self, factor, summand) }
            fn max(self: V, other: V) -> V { _mm256_max_ps(self, other) }
            fn min(self: V, other: V) -> V { _mm256_min_ps(self, other) }
            fn max_or_nan(self: V, other: V) -> V {
                _mm256_blendv_ps(_mm256_max_ps(self, other), self, _mm256_cmp_ps::<_CMP_UNORD_Q>(self, self))
            }
            fn where_greater(self: V, a: V, b: V) -> V { _mm256_and_ps(self, _mm256_cmp_ps::<_CMP_GT_OQ>(a, b)) }
            fn low_bits_as_exponent(self: V) -> V {
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_castps_si256(self)))
            }
        }
    }

    /// All bits of the first `count` lanes.
    #[inline(always)]
    unsafe fn first(count: usize) -> __m256i {
        // SAFETY: as demanded of the caller.
        unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
    }

    impl Vector for V {
        const LANES: usize = 8;

        methods! {
            fn load(from: *const f32) -> V { _mm256_loadu_ps(from) }
            fn load_part(from: *const f32, count: usize) -> V {
                _mm256_blendv_ps(
                    _mm256_set1_ps(1.0),
                    _mm256_maskload_ps(from, first(count)),
                    _mm256_castsi256_ps(first(count)),
                )
            }
            fn load_first(from: *const f32, count: usize) -> V { _mm256_maskload_ps(from, first(count)) }
            fn store(self: V, to: *mut f32) { _mm256_storeu_ps(to, self) }
            // In powers of two: storing with a mask takes AMD's processors many times as long.
            fn store_part(self: V, to: *mut f32, count: usize) {{
                if count == Self::LANES {
                    return Self::store(self, to);
                }
                let (mut lanes, mut to) = (_mm256_castps256_ps128(self), to);
                if count & 4 != 0 {
                    _mm_storeu_ps(to, lanes);
                    (lanes, to) = (_mm256_extractf128_ps::<1>(self), to.add(4));
                }
                if count & 2 != 0 {
                    _mm_storel_pd(to.cast(), _mm_castps_pd(lanes));
                    (lanes, to) = (_mm_movehl_ps(lanes, lanes), to.add(2));
                }
                if count & 1 != 0 {
                    _mm_store_ss(to, lanes);
                }
            }}
        }

        type Mask = __m256i;

        methods! {
            // From memory: what is compared here compilers would keep in narrower integers.
            fn lanes(begin: usize, end: usize) -> __m256i {{
                static STEPS: [i32; 24] =
                    [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1];
                let steps = STEPS.as_ptr();
                _mm256_and_si256(
                    _mm256_loadu_si256(steps.add(2 * Self::LANES - begin).cast()),
                    _mm256_loadu_si256(steps.add(Self::LANES - end).cast()),
                )
            }}
            fn load_lanes(from: *const f32, lanes: __m256i, other: f32) -> V {{
                let floats = _mm256_maskload_ps(from, lanes);
                if other.to_bits() == 0 {
                    return floats;
                }
                _mm256_blendv_ps(_mm256_set1_ps(other), floats, _mm256_castsi256_ps(lanes))
            }}
            fn evens(self: V, next: V) -> V {
                _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(
                    _mm256_shuffle_ps::<0x88>(self, next),
                )))
            }
            fn odds(self: V, next: V) -> V {
                _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(
                    _mm256_shuffle_ps::<0xDD>(self, next),
                )))
            }
            fn after(self: V, first: f32) -> V {
                _mm256_blend_ps::<0x01>(
                    _mm256_permutevar8x32_ps(self, _mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6)),
                    _mm256_set1_ps(first),
                )
            }
            fn before(self: V, last: f32) -> V {
                _mm256_blend_ps::<0x80>(
                    _mm256_permutevar8x32_ps(self, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 7)),
                    _mm256_set1_ps(last),
                )
            }
        }
    }

    impl Reduced for V {
        type Sums = __m256d;

        methods! {
            fn last_lanes(self: V, count: usize) -> V {
                _mm256_andnot_ps(_mm256_castsi256_ps(first(Self::LANES - count)), self)
            }
            fn greatest(self: V) -> f32 {{
                let four = _mm_max_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
                let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
            }}
            fn no_sums() -> __m256d { _mm256_setzero_pd() }
            fn add_to(self: V, sums: __m256d) -> __m256d {{
                let sums = _mm256_add_pd(sums, _mm256_cvtps_pd(_mm256_castps256_ps128(self)));
                _mm256_add_pd(sums, _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self)))
            }}
            fn total(sums: __m256d) -> f64 {{
                let two = _mm_add_pd(_mm256_castpd256_pd128(sums), _mm256_extractf128_pd::<1>(sums));
                _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
            }}
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub mod avx512;
