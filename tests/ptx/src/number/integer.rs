//! Integer arithmetic.

use super::{F2, F3, by_integer};
use crate::types::{Kind, Type};

pub fn add(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| a.wrapping_add(b))
}

pub fn subtract(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| a.wrapping_sub(b))
}

/// With .sat, which there is for s32 alone.
pub fn add_saturating(a: u64, b: u64) -> u64 {
    (a as i32).saturating_add(b as i32) as u32 as u64
}

pub fn subtract_saturating(a: u64, b: u64) -> u64 {
    (a as i32).saturating_sub(b as i32) as u32 as u64
}

pub fn multiply_low(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| a.wrapping_mul(b))
}

/// mad.lo of 32 bits, with or without sign.
#[inline]
pub fn multiply_add(a: u64, b: u64, c: u64) -> u64 {
    (a as u32).wrapping_mul(b as u32).wrapping_add(c as u32).into()
}

pub fn multiply_high(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| ((a as i128).wrapping_mul(b as i128) >> T::BITS))
}

/// The whole product, of twice the width.
pub fn multiply_wide(kind: Type) -> Option<F2> {
    Some(match (kind.kind, kind.bits) {
        (Kind::Unsigned, 16) => |a, b| (a as u16 as u32 * b as u16 as u32) as u64,
        (Kind::Signed, 16) => |a, b| (a as i16 as i32 * b as i16 as i32) as u32 as u64,
        (Kind::Unsigned, 32) => |a, b| a as u32 as u64 * b as u32 as u64,
        (Kind::Signed, 32) => |a, b| (a as i32 as i64 * b as i32 as i64) as u64,
        _ => return None,
    })
}

/// The product of the low 24 bits: its low 32 bits, or those from 16 on.
pub fn multiply_24(kind: Type, high: bool) -> Option<F2> {
    Some(match (kind.kind, kind.bits, high) {
        (Kind::Unsigned, 32, false) => |a, b| ((a & 0xFF_FFFF) * (b & 0xFF_FFFF)) as u32 as u64,
        (Kind::Unsigned, 32, true) => |a, b| (((a & 0xFF_FFFF) * (b & 0xFF_FFFF)) >> 16) as u32 as u64,
        (Kind::Signed, 32, false) => |a, b| (super::extend(a, 24) * super::extend(b, 24)) as u32 as u64,
        (Kind::Signed, 32, true) => |a, b| ((super::extend(a, 24) * super::extend(b, 24)) >> 16) as u32 as u64,
        _ => return None,
    })
}

pub fn sum_of_differences(kind: Type) -> Option<F3> {
    by_integer!(kind, |a, b, c| c.wrapping_add(if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) }))
}

/// A quotient by zero has all bits set: the instruction set leaves it open.
pub fn divide(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| if b == 0 { !0 } else { a.wrapping_div(b) })
}

/// A remainder of a division by zero is the dividend: the instruction set leaves it open.
pub fn remainder(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| if b == 0 { a } else { a.wrapping_rem(b) })
}

pub fn minimum(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| a.min(b))
}

pub fn maximum(kind: Type) -> Option<F2> {
    by_integer!(kind, |a, b| a.max(b))
}

pub fn absolute(kind: Type) -> Option<super::F1> {
    Some(match (kind.kind, kind.bits) {
        (Kind::Signed, 16) => |a| (a as i16).wrapping_abs() as u16 as u64,
        (Kind::Signed, 32) => |a| (a as i32).wrapping_abs() as u32 as u64,
        (Kind::Signed, 64) => |a| (a as i64).wrapping_abs() as u64,
        _ => return None,
    })
}

pub fn negate(kind: Type) -> Option<super::F1> {
    by_integer!(kind, |a| (0 as T).wrapping_sub(a))
}

/// The carry out of a + b + c, where c is a carry in.
pub fn carry(width: u32) -> Option<F3> {
    Some(match width {
        32 => |a, b, c| (a + b + c) >> 32,
        64 => |a, b, c| ((a as u128 + b as u128 + c as u128) >> 64) as u64,
        _ => return None,
    })
}

pub fn add_with_carry(width: u32) -> Option<F3> {
    Some(match width {
        32 => |a, b, c| (a + b + c) as u32 as u64,
        64 => |a, b, c| a.wrapping_add(b).wrapping_add(c),
        _ => return None,
    })
}

/// The borrow out of a - b - c, where c is a borrow in.
pub fn borrow(width: u32) -> Option<F3> {
    Some(match width {
        32 | 64 => |a, b, c| ((a as i128 - b as i128 - c as i128) < 0) as u64,
        _ => return None,
    })
}

pub fn subtract_with_borrow(width: u32) -> Option<F3> {
    Some(match width {
        32 => |a, b, c| a.wrapping_sub(b).wrapping_sub(c) as u32 as u64,
        64 => |a, b, c| a.wrapping_sub(b).wrapping_sub(c),
        _ => return None,
    })
}

/// The sum of four products of bytes, each operand with its own sign, and of c.
pub fn dot_bytes(a_signed: bool, b_signed: bool) -> F3 {
    fn dot<const A: bool, const B: bool>(a: u64, b: u64, c: u64) -> u64 {
        let byte = |x: u64, i: u32, signed: bool| {
            let byte = (x >> (8 * i)) as u8;
            if signed { byte as i8 as i32 } else { byte.into() }
        };
        (0..4).fold(c as i32, |sum, i| sum.wrapping_add(byte(a, i, A) * byte(b, i, B))) as u32 as u64
    }
    match (a_signed, b_signed) {
        (false, false) => dot::<false, false>,
        (false, true) => dot::<false, true>,
        (true, false) => dot::<true, false>,
        (true, true) => dot::<true, true>,
    }
}

/// The sum of two products of halves of a and two bytes of b, the upper ones if `high`, and of c.
pub fn dot_halves(a_signed: bool, b_signed: bool, high: bool) -> F3 {
    fn dot<const A: bool, const B: bool, const H: bool>(a: u64, b: u64, c: u64) -> u64 {
        let half = |i: u32| {
            let half = (a >> (16 * i)) as u16;
            if A { half as i16 as i32 } else { half.into() }
        };
        let byte = |i: u32| {
            let byte = (b >> (8 * i + if H { 16 } else { 0 })) as u8;
            if B { byte as i8 as i32 } else { byte.into() }
        };
        (0..2).fold(c as i32, |sum, i| sum.wrapping_add(half(i) * byte(i))) as u32 as u64
    }
    match (a_signed, b_signed, high) {
        (false, false, false) => dot::<false, false, false>,
        (false, false, true) => dot::<false, false, true>,
        (false, true, false) => dot::<false, true, false>,
        (false, true, true) => dot::<false, true, true>,
        (true, false, false) => dot::<true, false, false>,
        (true, false, true) => dot::<true, false, true>,
        (true, true, false) => dot::<true, true, false>,
        (true, true, true) => dot::<true, true, true>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::random::Random;
    use crate::number::{cut, extend};

    /// Every operation on every type against integers of 128 bits.
    #[test]
    fn operations_agree_with_wide_integers() {
        type Reference = fn(i128, i128, u32) -> i128;
        type Operation = fn(Type) -> Option<F2>;
        let pairs: [(&str, Operation, Reference); 8] = [
            ("add", add, |a, b, _| a + b),
            ("sub", subtract, |a, b, _| a - b),
            ("mul.lo", multiply_low, |a, b, _| a.wrapping_mul(b)),
            ("mul.hi", multiply_high, |a, b, width| a.wrapping_mul(b) >> width),
            ("div", divide, |a, b, _| if b == 0 { -1 } else { a / b }),
            ("rem", remainder, |a, b, _| if b == 0 { a } else { a % b }),
            ("min", minimum, |a, b, _| a.min(b)),
            ("max", maximum, |a, b, _| a.max(b)),
        ];
        let mut random = Random::new(3);
        for (name, operation, reference) in pairs {
            for kind in [Kind::Unsigned, Kind::Signed] {
                for width in [16, 32, 64] {
                    let f = operation(Type::new(kind, width)).unwrap();
                    let signed = kind == Kind::Signed;
                    for _ in 0..2000 {
                        let (a, b) = (random.integer(width), random.integer(width));
                        let wide = |x: u64| if signed { i128::from(extend(x, width)) } else { i128::from(x) };
                        let expected = cut(reference(wide(a), wide(b), width) as u64, width);
                        assert_eq!(f(a, b), expected, "{name} of {kind:?} {width}: {a:#x} {b:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn wide_products_carries_and_differences() {
        let mut random = Random::new(4);
        for _ in 0..20_000 {
            let (a, b) = (random.integer(32), random.integer(32));
            let signed = |x: u64| i64::from(x as i32);
            assert_eq!(multiply_wide(Type::U32).unwrap()(a, b), a * b);
            let wide = multiply_wide(Type::new(Kind::Signed, 32)).unwrap()(a, b);
            assert_eq!(wide as i64, signed(a) * signed(b));
            for width in [32, 64] {
                let (a, b, c) = (random.integer(width), random.integer(width), random.below(2));
                let sum = u128::from(a) + u128::from(b) + u128::from(c);
                assert_eq!(add_with_carry(width).unwrap()(a, b, c), cut(sum as u64, width));
                assert_eq!(carry(width).unwrap()(a, b, c), (sum >> width) as u64);
                let difference = i128::from(a) - i128::from(b) - i128::from(c);
                assert_eq!(subtract_with_borrow(width).unwrap()(a, b, c), cut(difference as u64, width));
                assert_eq!(borrow(width).unwrap()(a, b, c), u64::from(difference < 0));
            }
            let c = random.integer(32);
            let difference = sum_of_differences(Type::new(Kind::Signed, 32)).unwrap()(a, b, c);
            assert_eq!(difference as u32, ((signed(a) - signed(b)).unsigned_abs() as u32).wrapping_add(c as u32));
        }
    }

    #[test]
    fn dot_products_saturation_and_24_bits() {
        let dot = dot_bytes(true, false);
        assert_eq!(dot(0xFF02_03FE, 0xFF01_0203, 5) as u32 as i32, -255 + 2 + 6 - 6 + 5);
        let unsigned = dot_bytes(false, false);
        assert_eq!(unsigned(0xFFFF_FFFF, 0xFFFF_FFFF, 0), 4 * 255 * 255);
        assert_eq!(dot_halves(true, true, false)(0xFFFF_0002, 0x0505_0403, 1) as u32 as i32, 2 * 3 - 4 + 1);
        assert_eq!(dot_halves(true, true, true)(0xFFFF_0002, 0x0605_0403, 1) as u32 as i32, 2 * 5 - 6 + 1);
        assert_eq!(add_saturating(0x7FFF_FFFF, 1), 0x7FFF_FFFF);
        assert_eq!(subtract_saturating(0x8000_0000, 1), 0x8000_0000);
        let low = multiply_24(Type::new(Kind::Signed, 32), false).unwrap();
        assert_eq!(low(0xFFFF_FFFF, 3) as u32 as i32, -3);
        assert_eq!(multiply_24(Type::U32, true).unwrap()(0xFF_FFFF, 0xFF_FFFF), 0xFFFF_FE00);
        assert_eq!(absolute(Type::new(Kind::Signed, 32)).unwrap()(0x8000_0000), 0x8000_0000);
    }
}
