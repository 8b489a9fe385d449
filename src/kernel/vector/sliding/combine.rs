//! The operations of windows on the elements under them.

use crate::kernel::vector::lanes::SimdNumber;

/// The operation on each element under a window. A weight belongs to each tap of each channel.
pub trait Combine {
    /// Whether it uses the weights.
    const WEIGHTS: bool;
    /// The value of padding without elements.
    const BEYOND: f32 = 0.0;
    /// Whether elements may be combined with one another first.
    const IN_ANY_ORDER: bool = false;
    /// Whether the result is divided by the number of taps.
    const DIVIDED: bool = false;
    /// The same of finite numbers.
    type OfNumbers: Combine;

    /// # Safety
    /// As of `SimdNumber`.
    unsafe fn step<V: SimdNumber>(sum: V, x: V, weight: impl FnOnce() -> V) -> V;
}

/// sum + x * weight
pub struct Weighted;
/// sum + x, and a division at the end.
pub struct Added;
/// The greater one, or NaN if one is.
pub struct Greatest;
/// The greater one of two numbers.
pub struct GreatestNumber;

impl Combine for Weighted {
    type OfNumbers = Weighted;
    const WEIGHTS: bool = true;

    #[inline(always)]
    unsafe fn step<V: SimdNumber>(sum: V, x: V, weight: impl FnOnce() -> V) -> V {
        // SAFETY: as demanded of the caller.
        unsafe { x.mul_add(weight(), sum) }
    }
}

impl Combine for Added {
    type OfNumbers = Added;
    const WEIGHTS: bool = false;
    const DIVIDED: bool = true;

    #[inline(always)]
    unsafe fn step<V: SimdNumber>(sum: V, x: V, _: impl FnOnce() -> V) -> V {
        // SAFETY: as demanded of the caller.
        unsafe { sum.add(x) }
    }
}

impl Combine for Greatest {
    type OfNumbers = GreatestNumber;
    const WEIGHTS: bool = false;
    const BEYOND: f32 = f32::NEG_INFINITY;
    const IN_ANY_ORDER: bool = true;

    #[inline(always)]
    unsafe fn step<V: SimdNumber>(most: V, x: V, _: impl FnOnce() -> V) -> V {
        // SAFETY: as demanded of the caller.
        unsafe { most.max_or_nan(x) }
    }
}

impl Combine for GreatestNumber {
    type OfNumbers = GreatestNumber;
    const WEIGHTS: bool = false;
    const BEYOND: f32 = f32::NEG_INFINITY;
    const IN_ANY_ORDER: bool = true;

    #[inline(always)]
    unsafe fn step<V: SimdNumber>(most: V, x: V, _: impl FnOnce() -> V) -> V {
        // SAFETY: as demanded of the caller.
        unsafe { most.max(x) }
    }
}

/// The number brought between two others, as the activation function does it.
///
/// # Safety
/// As of `SimdNumber`.
#[inline(always)]
pub unsafe fn within<V: SimdNumber>(x: V, [least, greatest]: [f32; 2]) -> V {
    // SAFETY: as demanded of the caller.
    unsafe { V::splat(greatest).min(V::splat(least).max(x)) }
}
