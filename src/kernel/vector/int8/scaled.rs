//! A product of bytes with a scale: saturate(round(scale * scales[column] * (sum + bias[column])) + zero), in one of four
//! types.
//!
//! The exact sums are computed as 32 bits first, saturated, by the product's own region; a second region goes over them.
//! Where an element of the result has 32 bits, the sums lie in its place; otherwise behind the scratch memory of slot 0,
//! which no piece of either region uses as its own. Each element is arithmetic in f64, rounded to nearest even, or, with
//! scales of 1, in integers; it depends on its row and column alone.

use super::{Offset, Product, Rule, compute};
use crate::base::{Result, dtype};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::{MatrixMut, Site};
use crate::memory::{ALIGNMENT, View};
use crate::threadpool::Span;

/// The type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    S32,
    F32,
    S8,
    U8,
}

/// How sums become elements.
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
    /// What a rule of the product says as well; no second region is needed.
    fn rule(&self) -> Option<Offset<'_>> {
        match (self.store, self.scales, self.bias) {
            (Store::S32, None, None) if self.scale == 1.0 => Some(Offset::Fixed(self.zero)),
            (Store::S32, None, Some(bias)) if self.scale == 1.0 && self.zero == 0 => Some(Offset::Row(bias)),
            _ => None,
        }
    }
}

/// Scratch memory that `compute_scaled` needs per slot, in bytes.
pub fn scratch_bytes(isa: Isa, product: &Product<'_>, store: Store) -> usize {
    let own = product.scratch_bytes(isa);
    match store {
        Store::S32 | Store::F32 => own,
        Store::S8 | Store::U8 => {
            own.next_multiple_of(ALIGNMENT).saturating_add((product.m * product.n).saturating_mul(size_of::<i32>()))
        }
    }
}

/// Computes a product, whose rule is not looked at, into an output of the type, in regions of `site`.
pub fn compute_scaled(isa: Isa, product: &Product<'_>, scaled: &Scaled<'_>, out: &View, site: &dyn Site) -> Result<()> {
    let (m, n) = (product.m, product.n);
    let (dtype, size) = match scaled.store {
        Store::S32 => (dtype::S32, 4),
        Store::F32 => (dtype::F32, 4),
        Store::S8 => (dtype::S8, 1),
        Store::U8 => (dtype::U8, 1),
    };
    assert!(out.desc().dtype == dtype && out.bytes() >= m * n * size, "{} for {m} x {n}", out.desc().text());
    let out = out.data();
    assert!(out.cast::<i32>().is_aligned() || size == 1);
    assert!(scaled.scales.is_none_or(|scales| scales.len() == n) && scaled.bias.is_none_or(|bias| bias.len() == n));
    let sums = match scaled.store {
        Store::S32 | Store::F32 => out.cast::<i32>(),
        Store::S8 | Store::U8 => {
            site.scratch(0).wrapping_add(product.scratch_bytes(isa).next_multiple_of(ALIGNMENT)).cast()
        }
    };
    // SAFETY: the output's memory, which nobody else uses during the call, or what `scratch_bytes` asked for.
    let c = unsafe { MatrixMut::new(sums, m, n, n) };
    let offset = scaled.rule();
    let rule = Rule { alpha: 1.0, beta: 0.0, offset: offset.unwrap_or(Offset::Fixed(0)) };
    compute(isa, &Product { rule, ..*product }, c, site)?;
    if offset.is_some() || m * n == 0 {
        return Ok(());
    }
    let out = Out(out);
    let span = Span { items: m, cost_ns: n as f32, ..Span::default() };
    site.parallel_for(&span, &|claim| {
        let out = &out;
        for row in claim.begin()..claim.end() {
            // SAFETY: the row is claimed; the sums were written, and each is read before its place is written.
            unsafe {
                let sums = c.data().add(row * n).cast_const();
                match scaled.store {
                    Store::S32 => {
                        line(scaled, sums, n, out.0.cast::<i32>().add(row * n), |x| whole(x, i32::MIN, i32::MAX))
                    }
                    Store::F32 => line(scaled, sums, n, out.0.cast::<f32>().add(row * n), |(x, zero)| match x {
                        Value::Exact(x) => (x + zero) as f32,
                        Value::Float(x) => (x + zero as f64) as f32,
                    }),
                    Store::S8 => line(scaled, sums, n, out.0.cast::<i8>().add(row * n), |x| whole(x, -128, 127) as i8),
                    Store::U8 => line(scaled, sums, n, out.0.add(row * n), |x| whole(x, 0, 255) as u8),
                }
            }
        }
        Ok(())
    })
}

/// The address of the result.
struct Out(*mut u8);

// SAFETY: claims of a region are disjoint, and so are the rows that they write.
unsafe impl Sync for Out {}

/// A sum, scaled or not.
enum Value {
    Exact(i64),
    Float(f64),
}

/// Rounded, with the zero point, saturated. A scale that is NaN gives the least value.
#[inline(always)]
fn whole((value, zero): (Value, i64), least: i32, most: i32) -> i32 {
    // Adding 1.5 * 2^52 rounds to an integer.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // Beyond these every type saturates, whatever the zero point.
    const BOUND: f64 = 1e12;
    let rounded = match value {
        Value::Exact(value) => value,
        Value::Float(value) => {
            let value = if value > -BOUND { value } else { -BOUND };
            let value = if value < BOUND { value } else { BOUND };
            (value + ROUND - ROUND) as i64
        }
    };
    (rounded + zero).clamp(i64::from(least), i64::from(most)) as i32
}

/// # Safety
/// `sums` has `n` readable and `out` as many writable elements; the two may be the same memory.
#[inline(always)]
unsafe fn line<T>(scaled: &Scaled<'_>, sums: *const i32, n: usize, out: *mut T, store: impl Fn((Value, i64)) -> T) {
    let zero = i64::from(scaled.zero);
    let exact = scaled.scale == 1.0 && scaled.scales.is_none();
    for j in 0..n {
        // SAFETY: as demanded of the caller.
        unsafe {
            let sum = i64::from(*sums.add(j)) + scaled.bias.map_or(0, |bias| i64::from(bias[j]));
            let value = if exact {
                Value::Exact(sum)
            } else {
                let scale = f64::from(scaled.scale) * scaled.scales.map_or(1.0, |scales| f64::from(scales[j]));
                Value::Float(scale * sum as f64)
            };
            out.add(j).write(store((value, zero)));
        }
    }
}
