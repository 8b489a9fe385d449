//! What instructions compute: pure functions of operands. A value of fewer than 64 bits is in the low bits, the rest
//! zero; a predicate is 0 or 1.

pub mod bits;
pub mod compare;
pub mod convert;
pub mod float;
pub mod half;
pub mod integer;
#[cfg(test)]
pub mod random;
pub mod soft;

pub type F1 = fn(u64) -> u64;
pub type F2 = fn(u64, u64) -> u64;
pub type F3 = fn(u64, u64, u64) -> u64;
pub type F4 = fn(u64, u64, u64, u64) -> u64;

/// A function by the type of integer: the first expression for unsigned types and bits, the second for signed ones.
macro_rules! by_integer {
    ($kind:expr, |$($argument:ident),+| $body:expr) => {{
        use crate::types::Kind::{Bits, Signed, Unsigned};
        macro_rules! function {
            ($t:ty, $u:ty) => {
                Some(|$($argument: u64),+| {
                    #[allow(non_camel_case_types, dead_code)]
                    type T = $t;
                    $(let $argument = $argument as $t;)+
                    ($body) as $u as u64
                })
            };
        }
        match ($kind.kind, $kind.bits) {
            (Unsigned | Bits, 16) => function!(u16, u16),
            (Unsigned | Bits, 32) => function!(u32, u32),
            (Unsigned | Bits, 64) => function!(u64, u64),
            (Signed, 16) => function!(i16, u16),
            (Signed, 32) => function!(i32, u32),
            (Signed, 64) => function!(i64, u64),
            _ => None,
        }
    }};
}
pub(crate) use by_integer;

/// `bits` as an integer of `width` bits with a sign, extended to 64.
pub fn extend(bits: u64, width: u32) -> i64 {
    let shift = 64 - width;
    ((bits << shift) as i64) >> shift
}

/// The low `width` bits.
pub fn cut(bits: u64, width: u32) -> u64 {
    bits & (u64::MAX >> (64 - width))
}
