//! Conversion between storage types and f32, in which kernels compute.
//!
//! `widen` reads, `narrow` writes, by blocks, or fused into loops by `Converting` registers.
//!
//! - To f16 and bf16: rounded to nearest, ties to even; overflow gives an infinity; subnormal numbers are kept; a NaN
//!   stays a NaN with the leading bits of its payload, and becomes quiet.
//! - To s64, s32, s8 and u8: rounded to nearest, ties to even, and saturated, so s32 and s64 have their exact maximum;
//!   a NaN becomes 0. For another rounding the floats are rounded before.
//! - To bool: 0 for both zeros, 1 for everything else, including NaN.
//! - From s32 and s64 above 2^24: rounded to nearest, ties to even. Everything else is exact.
//!
//! `exchange` is for integers that become integers of another type, not by way of f32.
//!
//! All levels give the same bits, so the results do not depend on where a vector loop ends and its remainder begins.

mod scalar;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::isa::{Isa, SimdLevel};
use super::levels::{self, LevelLoop};
use crate::memory::{Bytes, Element};
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
pub use x86::{Converting, Registers};

/// Without such registers a type needs nothing more.
#[cfg(not(target_arch = "x86_64"))]
pub trait Registers {}
#[cfg(not(target_arch = "x86_64"))]
impl<T> Registers for T {}

/// A numeric storage type of tensors.
pub trait Stored: Element + Registers {
    fn widened(self) -> f32;
    fn narrowed(x: f32) -> Self;
}

/// A type of integers, or of truth values.
pub trait Whole: Stored {
    fn wide(self) -> i64;
    /// Its lowest bits; as a truth value whether it is not 0.
    fn wrapped(x: i64) -> Self;
    /// The nearest one of the type; as a truth value whether it is not 0.
    fn saturated(x: i64) -> Self;
}

/// The elements of a tensor as numbers of one type: f32 for any, i32 or i64 for integers and truth values. So code that
/// reads them is compiled once for all types.
#[derive(Debug)]
pub struct Numbers<'a, N> {
    count: usize,
    /// The elements, if they are of that type.
    direct: Option<&'a [N]>,
    bytes: Bytes<'a>,
    convert: fn(Bytes<'_>, Isa, Range<usize>, &mut [N]),
}

impl<'a> Numbers<'a, f32> {
    pub fn floats<T: Stored>(bytes: Bytes<'a>) -> Numbers<'a, f32> {
        Numbers::new::<T>(bytes, |bytes, isa, at, to| widen(isa, &bytes.read::<T>()[at], to))
    }
}

impl<'a, N: Whole> Numbers<'a, N> {
    /// N must hold all numbers of T.
    pub fn integers<T: Whole>(bytes: Bytes<'a>) -> Numbers<'a, N> {
        Numbers::new::<T>(bytes, |bytes, isa, at, to| exchange(isa, &bytes.read::<T>()[at], to, false))
    }
}

impl<'a, N: Element> Numbers<'a, N> {
    fn new<T: Element>(bytes: Bytes<'a>, convert: fn(Bytes<'_>, Isa, Range<usize>, &mut [N])) -> Numbers<'a, N> {
        let direct = (T::DTYPE == N::DTYPE).then(|| bytes.read::<N>());
        Numbers { count: bytes.read::<T>().len(), direct, bytes, convert }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The elements, if they are of that type.
    pub fn direct(&self) -> Option<&'a [N]> {
        self.direct
    }

    /// Writes the numbers of these elements to a slice of the same length.
    pub fn convert(&self, isa: Isa, at: Range<usize>, to: &mut [N]) {
        (self.convert)(self.bytes, isa, at, to);
    }

    /// The numbers as such, in the buffer if they must be converted.
    pub fn read<'s>(&'s self, isa: Isa, at: Range<usize>, buffer: &'s mut [N]) -> &'s [N] {
        if let Some(direct) = self.direct {
            return &direct[at];
        }
        let numbers = &mut buffer[..at.len()];
        self.convert(isa, at, numbers);
        numbers
    }
}

/// to = from, for slices of the same length: what does not fit saturates, or wraps around.
pub fn exchange<T: Whole, U: Whole>(isa: Isa, from: &[T], to: &mut [U], saturates: bool) {
    assert_eq!(from.len(), to.len());
    if saturates {
        levels::up_to_avx2(isa, Exchange { from, to, of: |x: T| U::saturated(x.wide()) });
    } else {
        levels::up_to_avx2(isa, Exchange { from, to, of: |x: T| U::wrapped(x.wide()) });
    }
}

struct Exchange<'a, T, U, F> {
    from: &'a [T],
    to: &'a mut [U],
    of: F,
}

impl<T: Whole, U: Whole, F: Fn(T) -> U> LevelLoop for Exchange<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.from).for_each(|(to, &from)| *to = (self.of)(from));
    }
}

/// to = from, for slices of the same length.
pub fn widen<T: Stored>(isa: Isa, from: &[T], to: &mut [f32]) {
    assert_eq!(from.len(), to.len());
    isa.assert_detected();
    match isa.level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        SimdLevel::Avx512 => unsafe { widen_avx512(from, to) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2, FMA and F16C.
        SimdLevel::Avx2 => unsafe { widen_avx2(from, to) },
        _ => widen_portable(from, to),
    }
}

/// to = from, for slices of the same length.
pub fn narrow<T: Stored>(isa: Isa, from: &[f32], to: &mut [T]) {
    assert_eq!(from.len(), to.len());
    isa.assert_detected();
    match isa.level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        SimdLevel::Avx512 => unsafe { narrow_avx512(from, to) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2, FMA and F16C.
        SimdLevel::Avx2 => unsafe { narrow_avx2(from, to) },
        _ => narrow_portable(from, to),
    }
}

fn widen_portable<T: Stored>(from: &[T], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from.widened();
    }
}

fn narrow_portable<T: Stored>(from: &[f32], to: &mut [T]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = T::narrowed(from);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn widen_avx512<T: Stored>(from: &[T], to: &mut [f32]) {
    // SAFETY: the processor has AVX-512.
    unsafe { widen_vectors::<T, std::arch::x86_64::__m512>(from, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn widen_avx2<T: Stored>(from: &[T], to: &mut [f32]) {
    // SAFETY: the processor has AVX2, FMA and F16C.
    unsafe { widen_vectors::<T, std::arch::x86_64::__m256>(from, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn narrow_avx512<T: Stored>(from: &[f32], to: &mut [T]) {
    // SAFETY: the processor has AVX-512.
    unsafe { narrow_vectors::<T, std::arch::x86_64::__m512>(from, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn narrow_avx2<T: Stored>(from: &[f32], to: &mut [T]) {
    // SAFETY: the processor has AVX2, FMA and F16C.
    unsafe { narrow_vectors::<T, std::arch::x86_64::__m256>(from, to) }
}

/// Vectors from the front; the remainder in a vector that overlaps the previous one, or one by one.
///
/// # Safety
/// The processor has the instructions of V.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn widen_vectors<T: Stored, V: Converting>(from: &[T], to: &mut [f32]) {
    let len = from.len().min(to.len());
    if len < V::LANES {
        return widen_portable(from, to);
    }
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    // SAFETY: a vector begins at most LANES before the end.
    let one = |at: usize| unsafe { V::load_stored(from.add(at)).store(to.add(at)) };
    (0..len - V::LANES).step_by(V::LANES).for_each(one);
    one(len - V::LANES);
}

/// As `widen_vectors`.
///
/// # Safety
/// The processor has the instructions of V.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn narrow_vectors<T: Stored, V: Converting>(from: &[f32], to: &mut [T]) {
    let len = from.len().min(to.len());
    if len < V::LANES {
        return narrow_portable(from, to);
    }
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    // SAFETY: a vector begins at most LANES before the end.
    let one = |at: usize| unsafe { V::load(from.add(at)).store_stored(to.add(at)) };
    (0..len - V::LANES).step_by(V::LANES).for_each(one);
    one(len - V::LANES);
}
