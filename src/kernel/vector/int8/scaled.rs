//! An int8 product with a scale: saturate(round(scale * scales[column] * (sum + bias[column])) + zero), in one of four
//! types.
//!
//! The product's own region computes the exact sums first, as 32 bits, saturated; a second region converts them. If an
//! element of the result has 32 bits, the sums lie in its place; otherwise behind the scratch memory of slot 0, which
//! no piece of either region uses as its own. The conversion is f64 arithmetic, rounded to nearest even; it depends
//! only on the element's row and column. Without scales nothing is rounded: f64 is exact for all sums, biases and zero
//! points.

use super::plan::SHORT;
use super::{Int8Product, Offset, Rule, compute};
use crate::base::{Result, dtype};
use crate::kernel::vector::isa::{Isa, SimdLevel};
use crate::kernel::vector::site::{MatrixMut, Site, check_scratch};
use crate::memory::{ALIGNMENT, BytesMut};
use crate::threadpool::Span;

/// The type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    S32,
    F32,
    S8,
    U8,
}

impl Store {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Store::S32 | Store::F32 => 4,
            Store::S8 | Store::U8 => 1,
        }
    }
}

/// The rule that converts sums to elements.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<'a> {
    pub store: Store,
    /// Finite.
    pub scale: f32,
    /// One per column.
    pub scales: Option<&'a [f32]>,
    pub bias: Option<&'a [i32]>,
    /// Added after the rounding.
    pub zero: i32,
}

impl Scaled<'_> {
    /// The equivalent rule of a product over `k`, if there is one; no second region is then needed. A rule adds before
    /// it saturates, which is the same where sums fit in 32 bits.
    fn rule(&self, k: usize) -> Option<Offset<'_>> {
        if k > SHORT && (self.bias.is_some() || self.zero != 0) {
            return None;
        }
        match (self.store, self.scales, self.bias) {
            (Store::S32, None, None) if self.scale == 1.0 => Some(Offset::Fixed(self.zero)),
            (Store::S32, None, Some(bias)) if self.scale == 1.0 && self.zero == 0 => Some(Offset::Row(bias)),
            _ => None,
        }
    }
}

/// The product's own scratch memory for any rule: a rule with an offset chooses another algorithm.
fn own_bytes(isa: Isa, product: &Int8Product<'_>) -> usize {
    let bytes = |zero: i32| {
        let rule = Rule { alpha: 1.0, beta: 0.0, offset: Offset::Fixed(zero) };
        Int8Product { rule, ..*product }.scratch_bytes(isa)
    };
    bytes(0).max(bytes(1))
}

/// Scratch memory that `compute_scaled` needs per slot, in bytes.
pub fn scratch_bytes(isa: Isa, product: &Int8Product<'_>, store: Store) -> usize {
    let own = own_bytes(isa, product);
    match store {
        Store::S32 | Store::F32 => own,
        Store::S8 | Store::U8 => {
            own.next_multiple_of(ALIGNMENT).saturating_add((product.m * product.n).saturating_mul(size_of::<i32>()))
        }
    }
}

/// Computes a product, ignoring its rule, into an output of the type, in regions of `site`.
pub fn compute_scaled(
    isa: Isa,
    product: &Int8Product<'_>,
    scaled: &Scaled<'_>,
    out: BytesMut<'_>,
    site: &dyn Site,
) -> Result<()> {
    let (m, n) = (product.m, product.n);
    let (dtype, size) = match scaled.store {
        Store::S32 => (dtype::S32, 4),
        Store::F32 => (dtype::F32, 4),
        Store::S8 => (dtype::S8, 1),
        Store::U8 => (dtype::U8, 1),
    };
    assert!(out.desc().dtype == dtype && out.len() >= m * n * size, "{} for {m} x {n}", out.desc().text());
    let out = out.data();
    assert!(out.cast::<i32>().is_aligned() || size == 1);
    assert!(scaled.scales.is_none_or(|scales| scales.len() == n) && scaled.bias.is_none_or(|bias| bias.len() == n));
    check_scratch(site, scratch_bytes(isa, product, scaled.store));
    let sums = match scaled.store {
        Store::S32 | Store::F32 => out.cast::<i32>(),
        Store::S8 | Store::U8 => {
            site.scratch(0).wrapping_add(own_bytes(isa, product).next_multiple_of(ALIGNMENT)).cast()
        }
    };
    // SAFETY: the output's memory, exclusive during the call, or the memory that `scratch_bytes` requested.
    let c = unsafe { MatrixMut::new(sums, m, n, n) };
    let offset = scaled.rule(product.k);
    let rule = Rule { alpha: 1.0, beta: 0.0, offset: offset.unwrap_or(Offset::Fixed(0)) };
    compute(isa, &Int8Product { rule, ..*product }, c, site)?;
    if offset.is_some() || m * n == 0 {
        return Ok(());
    }
    let (out, sums) = (OutputAddress(out), OutputAddress(sums.cast()));
    let span = Span { items: m, cost_ns: n as f32, ..Span::default() };
    site.parallel_for(&span, &|claim| {
        let (out, sums) = (&out, &sums);
        for row in claim.begin()..claim.end() {
            // SAFETY: the row is claimed; the sums were written, and each is read before its position is written.
            unsafe {
                line_with(isa, scaled, sums.0.cast::<i32>().add(row * n).cast_const(), n, out.0.add(row * n * size))
            };
        }
        Ok(())
    })
}

/// The address of the result.
pub(super) struct OutputAddress(pub *mut u8);

// SAFETY: claims of a region are disjoint, and so are the rows that they write.
unsafe impl Sync for OutputAddress {}

/// A row of the result on a supported level; the loop is also compiled for AVX2.
///
/// # Safety
/// `sums` has `n` readable and `out` as many writable elements of the type; the two may be the same memory.
pub(super) unsafe fn line_with(isa: Isa, scaled: &Scaled<'_>, sums: *const i32, n: usize, out: *mut u8) {
    // SAFETY: passed on; `compute` has compared the level.
    unsafe {
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 | SimdLevel::Avx512 => avx2(scaled, sums, n, out),
            _ => portable(scaled, sums, n, out),
        }
    }
}

/// Elements that all have the same factor and bias, on a supported level.
///
/// # Safety
/// As `line_with`, of as many sums as there are.
pub(super) unsafe fn row_with(isa: Isa, scaled: &Scaled<'_>, same: (f64, i32), sums: &[i32], out: *mut u8) {
    // SAFETY: passed on.
    unsafe {
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 | SimdLevel::Avx512 => avx2_row(scaled, same, sums, out),
            _ => portable_row(scaled, same, sums, out),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2_row(scaled: &Scaled<'_>, same: (f64, i32), sums: &[i32], out: *mut u8) {
    // SAFETY: passed on.
    unsafe { portable_row(scaled, same, sums, out) }
}

/// # Safety
/// As `row_with`.
#[inline(always)]
unsafe fn portable_row(scaled: &Scaled<'_>, (factor, bias): (f64, i32), sums: &[i32], out: *mut u8) {
    let (zero, bias, n) = (scaled.zero, f64::from(bias), sums.len());
    let (sums, value) = (sums.as_ptr(), |_: usize, sum: f64| (sum + bias) * factor);
    // SAFETY: passed on.
    unsafe {
        match scaled.store {
            Store::S32 => each(sums, n, out.cast(), |x| whole(x, zero, i32::MIN, i32::MAX), value),
            Store::F32 => each(sums, n, out.cast(), |x| (x + f64::from(zero)) as f32, value),
            Store::S8 => each(sums, n, out.cast(), |x| whole(x, zero, -128, 127) as i8, value),
            Store::U8 => each(sums, n, out, |x| whole(x, zero, 0, 255) as u8, value),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(scaled: &Scaled<'_>, sums: *const i32, n: usize, out: *mut u8) {
    // SAFETY: passed on.
    unsafe { portable(scaled, sums, n, out) }
}

/// # Safety
/// As `line_with`.
#[inline(always)]
unsafe fn portable(scaled: &Scaled<'_>, sums: *const i32, n: usize, out: *mut u8) {
    let zero = scaled.zero;
    // SAFETY: passed on.
    unsafe {
        match scaled.store {
            Store::S32 => line(scaled, sums, n, out.cast(), |x| whole(x, zero, i32::MIN, i32::MAX)),
            Store::F32 => line(scaled, sums, n, out.cast(), |x| (x + f64::from(zero)) as f32),
            Store::S8 => line(scaled, sums, n, out.cast(), |x| whole(x, zero, -128, 127) as i8),
            Store::U8 => line(scaled, sums, n, out, |x| whole(x, zero, 0, 255) as u8),
        }
    }
}

/// Rounds, adds the zero point, saturates. A NaN scale gives the least value.
#[inline(always)]
fn whole(value: f64, zero: i32, least: i32, most: i32) -> i32 {
    // Adding 1.5 * 2^52 rounds to an integer, which then is in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // Numbers that saturate do so before they are rounded: the bounds are integers.
    let (least, most) = (f64::from(least) - f64::from(zero), f64::from(most) - f64::from(zero));
    let value = if value > least { value } else { least };
    let value = if value < most { value } else { most };
    ((value + ROUND).to_bits() as i32).wrapping_add(zero)
}

/// 32-bit sums and biases add up exactly in f64, so a scale of 1 changes nothing.
///
/// # Safety
/// As `line_with`.
#[inline(always)]
unsafe fn line<T>(scaled: &Scaled<'_>, sums: *const i32, n: usize, out: *mut T, store: impl Fn(f64) -> T) {
    let scale = f64::from(scaled.scale);
    let (bias, scales) = (scaled.bias.map(|bias| &bias[..n]), scaled.scales.map(|scales| &scales[..n]));
    // SAFETY: passed on.
    unsafe {
        match (bias, scales) {
            (None, None) => each(sums, n, out, store, |_, sum| sum * scale),
            (Some(bias), None) => each(sums, n, out, store, |j, sum| (sum + f64::from(bias[j])) * scale),
            (None, Some(scales)) => each(sums, n, out, store, |j, sum| sum * (scale * f64::from(scales[j]))),
            (Some(bias), Some(scales)) => {
                each(sums, n, out, store, |j, sum| (sum + f64::from(bias[j])) * (scale * f64::from(scales[j])))
            }
        }
    }
}

/// # Safety
/// As `line_with`.
#[inline(always)]
unsafe fn each<T>(
    sums: *const i32,
    n: usize,
    out: *mut T,
    store: impl Fn(f64) -> T,
    value: impl Fn(usize, f64) -> f64,
) {
    for j in 0..n {
        // SAFETY: as demanded of the caller.
        unsafe { out.add(j).write(store(value(j, f64::from(*sums.add(j))))) };
    }
}
