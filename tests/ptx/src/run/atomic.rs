//! Atomic operations: the new value from the old one, and the exchange of the two.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::number::{F3, by_integer, float, half};
use crate::types::{Kind, Type};

/// The new value of the old one, b and c. In global memory single floats are flushed.
pub fn function(name: &str, kind: Type, flushes: bool) -> Option<F3> {
    let integer = kind.is_integer() && kind.bits >= 32;
    let arithmetic = integer && kind.kind != Kind::Bits;
    let bits = kind.kind == Kind::Bits;
    let unsigned = kind == Type::U32;
    match name {
        "exch" if bits && kind.bits >= 32 => Some(|_, b, _| b),
        "cas" if bits && kind.bits >= 16 => Some(|old, b, c| if old == b { c } else { old }),
        "and" if bits && kind.bits >= 32 => Some(|old, b, _| old & b),
        "or" if bits && kind.bits >= 32 => Some(|old, b, _| old | b),
        "xor" if bits && kind.bits >= 32 => Some(|old, b, _| old ^ b),
        "inc" if unsigned => Some(|old, b, _| if old >= b { 0 } else { old + 1 }),
        "dec" if unsigned => Some(|old, b, _| if old == 0 || old > b { b } else { old - 1 }),
        "min" if arithmetic => by_integer!(kind, |a, b, _c| a.min(b)),
        "max" if arithmetic => by_integer!(kind, |a, b, _c| a.max(b)),
        "add" if arithmetic => by_integer!(kind, |a, b, _c| a.wrapping_add(b)),
        "add" => add(kind, flushes),
        _ => None,
    }
}

fn add(kind: Type, flushes: bool) -> Option<F3> {
    fn single(a: u64, b: u64) -> u64 {
        let sum = f32::from_bits(a as u32) + f32::from_bits(b as u32);
        if sum.is_nan() { 0x7FFF_FFFF } else { sum.to_bits().into() }
    }
    const F16: Type = Type::new(Kind::Float, 16);
    const BF16: Type = Type::new(Kind::Brain, 16);
    const F16X2: Type = Type { lanes: 2, ..F16 };
    const BF16X2: Type = Type { lanes: 2, ..BF16 };
    fn halves(a: u64, b: u64, kind: Type) -> u64 {
        half::binary("add", kind).map_or(0, |f| f(a, b))
    }
    match (kind.kind, kind.bits, kind.lanes) {
        (Kind::Float, 32, _) if flushes => Some(|old, b, _| float::flush(single(float::flush(old), float::flush(b)))),
        (Kind::Float, 32, _) => Some(|old, b, _| single(old, b)),
        (Kind::Float, 64, _) => Some(|old, b, _| (f64::from_bits(old) + f64::from_bits(b)).to_bits()),
        (Kind::Float, 16, 1) => Some(|old, b, _| halves(old, b, F16)),
        (Kind::Brain, 16, 1) => Some(|old, b, _| halves(old, b, BF16)),
        (Kind::Float, 16, 2) => Some(|old, b, _| halves(old, b, F16X2)),
        (Kind::Brain, 16, 2) => Some(|old, b, _| halves(old, b, BF16X2)),
        _ => None,
    }
}

/// Puts the new value in place of the old one, which it gives.
///
/// # Safety
///
/// `at` is valid for reads and writes of `size` bytes (2, 4 or 8) and aligned to them; other threads access the bytes
/// by atomic operations alone.
pub unsafe fn update(at: *mut u8, size: u32, f: F3, b: u64, c: u64) -> u64 {
    // ORDERING: acquire and release, the strongest that the instruction can ask for beside fences.
    let (order, first) = (Ordering::AcqRel, Ordering::Acquire);
    // SAFETY: the caller promises validity and alignment.
    let result = unsafe {
        match size {
            2 => AtomicU16::from_ptr(at.cast())
                .fetch_update(order, first, |old| Some(f(old.into(), b, c) as u16))
                .map(u64::from)
                .map_err(u64::from),
            4 => AtomicU32::from_ptr(at.cast())
                .fetch_update(order, first, |old| Some(f(old.into(), b, c) as u32))
                .map(u64::from)
                .map_err(u64::from),
            _ => AtomicU64::from_ptr(at.cast()).fetch_update(order, first, |old| Some(f(old, b, c))),
        }
    };
    result.unwrap_or_else(|old| old)
}
