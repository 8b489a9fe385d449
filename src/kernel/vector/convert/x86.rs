//! Loads and stores between registers of floats and memory of another type.

use super::Stored;
use crate::kernel::vector::lanes::Vector;
use crate::memory::{Bf16, Bool, F16};
use std::arch::x86_64::*;

/// Loads and stores of a storage type.
///
/// # Safety
/// For every method: the processor has the level in the method's name; the address is that of as many elements as the
/// register has lanes. It need not be aligned.
pub trait Registers: Sized {
    unsafe fn load_avx2(from: *const Self) -> __m256;
    unsafe fn store_avx2(x: __m256, to: *mut Self);
    unsafe fn load_avx512(from: *const Self) -> __m512;
    unsafe fn store_avx512(x: __m512, to: *mut Self);
}

/// A register of floats whose memory has any storage type.
///
/// # Safety
/// As of `Registers`.
pub trait Converting: Vector {
    unsafe fn load_stored<T: Registers>(from: *const T) -> Self;
    unsafe fn store_stored<T: Registers>(self, to: *mut T);
}

/// Methods that are an expression of intrinsics.
macro_rules! methods {
    ($(fn $name:ident $([$($generic:tt)*])? ($($argument:ident: $type:ty),*) $(-> $result:ty)? { $body:expr })*) => {
        $(
            #[inline(always)]
            unsafe fn $name $(<$($generic)*>)? ($($argument: $type),*) $(-> $result)? {
                // SAFETY: as demanded of the caller.
                unsafe { $body }
            }
        )*
    };
}

impl Converting for __m256 {
    methods! {
        fn load_stored[T: Registers](from: *const T) -> Self { T::load_avx2(from) }
        fn store_stored[T: Registers](self: Self, to: *mut T) { T::store_avx2(self, to) }
    }
}

impl Converting for __m512 {
    methods! {
        fn load_stored[T: Registers](from: *const T) -> Self { T::load_avx512(from) }
        fn store_stored[T: Registers](self: Self, to: *mut T) { T::store_avx512(self, to) }
    }
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
/// One more than the greatest s32.
const BEYOND: f32 = 2_147_483_648.0;

/// The numbers in words of half the size.
#[inline(always)]
unsafe fn words(x: __m256i) -> __m128i {
    // SAFETY: as demanded of the caller.
    unsafe { _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x)) }
}

/// The same for signed numbers, which saturate.
#[inline(always)]
unsafe fn signed_words(x: __m256i) -> __m128i {
    // SAFETY: as demanded of the caller.
    unsafe { _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x)) }
}

/// 0 for a NaN.
#[inline(always)]
unsafe fn number_avx2(x: __m256) -> __m256 {
    // SAFETY: as demanded of the caller.
    unsafe { _mm256_and_ps(x, _mm256_cmp_ps::<_CMP_ORD_Q>(x, x)) }
}

#[inline(always)]
unsafe fn number_avx512(x: __m512) -> __m512 {
    // SAFETY: as demanded of the caller.
    unsafe { _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_ORD_Q>(x, x), x) }
}

/// Rounded, and clamped to `low` and `high`.
#[inline(always)]
unsafe fn clamped_avx2(x: __m256, low: f32, high: f32) -> __m256i {
    // SAFETY: as demanded of the caller.
    unsafe {
        let x = _mm256_max_ps(number_avx2(x), _mm256_set1_ps(low));
        _mm256_cvtps_epi32(_mm256_min_ps(x, _mm256_set1_ps(high)))
    }
}

#[inline(always)]
unsafe fn clamped_avx512(x: __m512, low: f32, high: f32) -> __m512i {
    // SAFETY: as demanded of the caller.
    unsafe {
        let x = _mm512_max_ps(number_avx512(x), _mm512_set1_ps(low));
        _mm512_cvt_roundps_epi32::<NEAREST>(_mm512_min_ps(x, _mm512_set1_ps(high)))
    }
}

impl Registers for f32 {
    methods! {
        fn load_avx2(from: *const f32) -> __m256 { _mm256_loadu_ps(from) }
        fn store_avx2(x: __m256, to: *mut f32) { _mm256_storeu_ps(to, x) }
        fn load_avx512(from: *const f32) -> __m512 { _mm512_loadu_ps(from) }
        fn store_avx512(x: __m512, to: *mut f32) { _mm512_storeu_ps(to, x) }
    }
}

impl Registers for Bf16 {
    methods! {
        fn load_avx2(from: *const Bf16) -> __m256 {{
            let bits = _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())));
            let x = _mm256_castsi256_ps(bits);
            let quiet_bit = _mm256_castsi256_ps(_mm256_set1_epi32(0x40_0000));
            let quiet = _mm256_and_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x), quiet_bit);
            _mm256_or_ps(x, quiet)
        }}
        fn store_avx2(x: __m256, to: *mut Bf16) {{
            let bits = _mm256_castps_si256(x);
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
            let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x40_0000));
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
            let upper = _mm256_srli_epi32::<16>(_mm256_blendv_epi8(rounded, quiet, nan));
            _mm_storeu_si128(to.cast(), words(upper))
        }}
        fn load_avx512(from: *const Bf16) -> __m512 {{
            let bits = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast())));
            let x = _mm512_castsi512_ps(bits);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, nan, bits, _mm512_set1_epi32(0x40_0000)))
        }}
        fn store_avx512(x: __m512, to: *mut Bf16) {{
            let bits = _mm512_castps_si512(x);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            let all = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x40_0000));
            _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(all)))
        }}
    }
}

impl Registers for F16 {
    methods! {
        fn load_avx2(from: *const F16) -> __m256 { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
        fn store_avx2(x: __m256, to: *mut F16) {
            _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x))
        }
        fn load_avx512(from: *const F16) -> __m512 { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
        fn store_avx512(x: __m512, to: *mut F16) { _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<NEAREST>(x)) }
    }
}

impl Registers for i32 {
    methods! {
        fn load_avx2(from: *const i32) -> __m256 { _mm256_cvtepi32_ps(_mm256_loadu_si256(from.cast())) }
        fn store_avx2(x: __m256, to: *mut i32) {{
            // Overflow gives the least number, whose bits are then all inverted.
            let rounded = _mm256_cvtps_epi32(number_avx2(x));
            let beyond = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GE_OQ>(x, _mm256_set1_ps(BEYOND)));
            _mm256_storeu_si256(to.cast(), _mm256_xor_si256(rounded, beyond))
        }}
        fn load_avx512(from: *const i32) -> __m512 { _mm512_cvtepi32_ps(_mm512_loadu_si512(from.cast())) }
        fn store_avx512(x: __m512, to: *mut i32) {{
            let rounded = _mm512_cvt_roundps_epi32::<NEAREST>(number_avx512(x));
            let beyond = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, _mm512_set1_ps(BEYOND));
            _mm512_storeu_si512(to.cast(), _mm512_mask_mov_epi32(rounded, beyond, _mm512_set1_epi32(i32::MAX)))
        }}
    }
}

/// Instructions for integers of 64 bits are not part of the levels, so they go one by one.
impl Registers for i64 {
    methods! {
        fn load_avx2(from: *const i64) -> __m256 {{
            let floats: [f32; 8] = std::array::from_fn(|i| from.add(i).read_unaligned().widened());
            _mm256_loadu_ps(floats.as_ptr())
        }}
        fn store_avx2(x: __m256, to: *mut i64) {{
            let mut floats = [0.0; 8];
            _mm256_storeu_ps(floats.as_mut_ptr(), x);
            floats.iter().enumerate().for_each(|(i, &x)| to.add(i).write_unaligned(i64::narrowed(x)));
        }}
        fn load_avx512(from: *const i64) -> __m512 {{
            let floats: [f32; 16] = std::array::from_fn(|i| from.add(i).read_unaligned().widened());
            _mm512_loadu_ps(floats.as_ptr())
        }}
        fn store_avx512(x: __m512, to: *mut i64) {{
            let mut floats = [0.0; 16];
            _mm512_storeu_ps(floats.as_mut_ptr(), x);
            floats.iter().enumerate().for_each(|(i, &x)| to.add(i).write_unaligned(i64::narrowed(x)));
        }}
    }
}

impl Registers for i8 {
    methods! {
        fn load_avx2(from: *const i8) -> __m256 {
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast())))
        }
        fn store_avx2(x: __m256, to: *mut i8) {{
            let words = signed_words(clamped_avx2(x, -128.0, 127.0));
            _mm_storel_epi64(to.cast(), _mm_packs_epi16(words, words))
        }}
        fn load_avx512(from: *const i8) -> __m512 {
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())))
        }
        fn store_avx512(x: __m512, to: *mut i8) {
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(clamped_avx512(x, -128.0, 127.0)))
        }
    }
}

impl Registers for u8 {
    methods! {
        fn load_avx2(from: *const u8) -> __m256 {
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())))
        }
        fn store_avx2(x: __m256, to: *mut u8) {{
            let words = signed_words(clamped_avx2(x, 0.0, 255.0));
            _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words))
        }}
        fn load_avx512(from: *const u8) -> __m512 {
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())))
        }
        fn store_avx512(x: __m512, to: *mut u8) {
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(clamped_avx512(x, 0.0, 255.0)))
        }
    }
}

impl Registers for Bool {
    methods! {
        fn load_avx2(from: *const Bool) -> __m256 {{
            let zero = _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())), _mm256_setzero_si256());
            _mm256_andnot_ps(_mm256_castsi256_ps(zero), _mm256_set1_ps(1.0))
        }}
        fn store_avx2(x: __m256, to: *mut Bool) {{
            let other = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_NEQ_UQ>(x, _mm256_setzero_ps()));
            let words = signed_words(_mm256_and_si256(other, _mm256_set1_epi32(1)));
            _mm_storel_epi64(to.cast(), _mm_packs_epi16(words, words))
        }}
        fn load_avx512(from: *const Bool) -> __m512 {{
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()));
            _mm512_maskz_mov_ps(_mm512_cmpneq_epi32_mask(bytes, _mm512_setzero_si512()), _mm512_set1_ps(1.0))
        }}
        fn store_avx512(x: __m512, to: *mut Bool) {{
            let other = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_ps());
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(_mm512_maskz_set1_epi32(other, 1)))
        }}
    }
}
