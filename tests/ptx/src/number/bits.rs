//! Logic, shifts and the moving of bits.

use super::{F1, F2, F3, F4, cut, extend};
use crate::types::{Kind, Type};

pub fn and(a: u64, b: u64) -> u64 {
    a & b
}

pub fn or(a: u64, b: u64) -> u64 {
    a | b
}

pub fn xor(a: u64, b: u64) -> u64 {
    a ^ b
}

pub fn not(width: u32) -> Option<F1> {
    Some(match width {
        1 => |a| a ^ 1,
        16 => |a| !a as u16 as u64,
        32 => |a| !a as u32 as u64,
        64 => |a| !a,
        _ => return None,
    })
}

/// 1 if zero, else 0.
pub fn logical_not(a: u64) -> u64 {
    (a == 0) as u64
}

/// A shift by the width or more leaves zero.
pub fn shift_left(width: u32) -> Option<F2> {
    Some(match width {
        16 => |a, b| (a as u16 as u64).checked_shl(b as u32).unwrap_or(0) as u16 as u64,
        32 => |a, b| (a as u32).checked_shl(b as u32).unwrap_or(0) as u64,
        64 => |a, b| a.checked_shl(b as u32).unwrap_or(0),
        _ => return None,
    })
}

/// A shift by the width or more leaves zero, or copies of the sign.
pub fn shift_right(kind: Type) -> Option<F2> {
    Some(match (kind.kind == Kind::Signed, kind.bits) {
        (false, 16 | 32 | 64) => |a, b| a.checked_shr(b as u32).unwrap_or(0),
        (true, 16) => |a, b| ((a as i16) >> (b as u32).min(15)) as u16 as u64,
        (true, 32) => |a, b| ((a as i32) >> (b as u32).min(31)) as u32 as u64,
        (true, 64) => |a, b| ((a as i64) >> (b as u32).min(63)) as u64,
        _ => return None,
    })
}

/// The upper half of b:a shifted left, or the lower half of it shifted right.
pub fn funnel(left: bool, wrap: bool) -> F3 {
    fn count<const W: bool>(c: u64) -> u32 {
        if W { c as u32 & 31 } else { (c as u32).min(32) }
    }
    fn to_left<const W: bool>(a: u64, b: u64, c: u64) -> u64 {
        ((b << 32 | a) << count::<W>(c)) >> 32
    }
    fn to_right<const W: bool>(a: u64, b: u64, c: u64) -> u64 {
        ((b << 32 | a) >> count::<W>(c)) as u32 as u64
    }
    match (left, wrap) {
        (true, true) => to_left::<true>,
        (true, false) => to_left::<false>,
        (false, true) => to_right::<true>,
        (false, false) => to_right::<false>,
    }
}

pub fn population(a: u64) -> u64 {
    a.count_ones().into()
}

pub fn leading_zeros(width: u32) -> Option<F1> {
    Some(match width {
        32 => |a| (a as u32).leading_zeros().into(),
        64 => |a| a.leading_zeros().into(),
        _ => return None,
    })
}

/// The place of the highest bit that differs from the sign, all bits set if there is none; with `shift`, how far it is
/// from the top.
pub fn find(kind: Type, shift: bool) -> Option<F1> {
    fn place(a: u64, width: u32, signed: bool, shift: bool) -> u64 {
        let a = if signed && extend(a, width) < 0 { cut(!a, width) } else { a };
        match (a, shift) {
            (0, _) => u32::MAX.into(),
            (_, true) => (a.leading_zeros() - (64 - width)).into(),
            (_, false) => (63 - a.leading_zeros()).into(),
        }
    }
    Some(match (kind.kind, kind.bits, shift) {
        (Kind::Unsigned, 32 | 64, false) => |a| place(a, 64, false, false),
        (Kind::Unsigned, 32, true) => |a| place(a, 32, false, true),
        (Kind::Unsigned, 64, true) => |a| place(a, 64, false, true),
        (Kind::Signed, 32, false) => |a| place(a, 32, true, false),
        (Kind::Signed, 64, false) => |a| place(a, 64, true, false),
        (Kind::Signed, 32, true) => |a| place(a, 32, true, true),
        (Kind::Signed, 64, true) => |a| place(a, 64, true, true),
        _ => return None,
    })
}

/// The place of the n-th bit set from `base` on, upwards if n is positive, downwards if negative.
pub fn find_nth(mask: u64, base: u64, n: u64) -> u64 {
    let (mask, base, n) = (mask as u32, base as u32 & 31, n as i32);
    let set = |i: u32| mask >> i & 1 == 1;
    let found = match n {
        0 => Some(base).filter(|i| set(*i)),
        1.. => (base..32).filter(|i| set(*i)).nth(n as usize - 1),
        _ => (0..=base).rev().filter(|i| set(*i)).nth(n.unsigned_abs() as usize - 1),
    };
    found.unwrap_or(u32::MAX).into()
}

pub fn reverse(width: u32) -> Option<F1> {
    Some(match width {
        32 => |a| (a as u32).reverse_bits().into(),
        64 => |a| a.reverse_bits(),
        _ => return None,
    })
}

/// The field of `c` bits from bit `b` on; bits beyond the top are zero, or copies of the field's sign.
pub fn extract(kind: Type) -> Option<F3> {
    fn field<const SIGNED: bool, const WIDTH: u32>(a: u64, b: u64, c: u64) -> u64 {
        let (from, length) = (b as u32 & 255, c as u32 & 255);
        let mut field = a.checked_shr(from).unwrap_or(0);
        let negative = SIGNED && length != 0 && a >> (from + length - 1).min(WIDTH - 1) & 1 == 1;
        let known = length.min(WIDTH.saturating_sub(from));
        let mask = if known == 0 { 0 } else { u64::MAX >> (64 - known) };
        field &= mask;
        if negative {
            field |= !mask;
        }
        cut(field, WIDTH)
    }
    Some(match (kind.kind, kind.bits) {
        (Kind::Unsigned, 32) => field::<false, 32>,
        (Kind::Unsigned, 64) => field::<false, 64>,
        (Kind::Signed, 32) => field::<true, 32>,
        (Kind::Signed, 64) => field::<true, 64>,
        _ => return None,
    })
}

/// b with `d` bits from bit `c` on replaced by the low bits of a.
pub fn insert(width: u32) -> Option<F4> {
    fn put<const WIDTH: u32>(a: u64, b: u64, c: u64, d: u64) -> u64 {
        let (at, length) = (c as u32 & 255, (d as u32 & 255).min(64));
        let mask = if length == 0 { 0 } else { (u64::MAX >> (64 - length)).checked_shl(at).unwrap_or(0) };
        cut(b & !mask | a.checked_shl(at).unwrap_or(0) & mask, WIDTH)
    }
    Some(match width {
        32 => put::<32>,
        64 => put::<64>,
        _ => return None,
    })
}

/// `b` bits set from bit `a` on.
pub fn mask(a: u64, b: u64, wrap: bool) -> u64 {
    let (at, length) = if wrap { (a & 31, b & 31) } else { (a.min(32), b.min(32)) };
    (((1u64 << length) - 1) << at) as u32 as u64
}

/// a as a number of `b` bits, extended to 32.
pub fn extend_from(kind: Type, wrap: bool) -> Option<F2> {
    fn extended(a: u64, b: u64, signed: bool, wrap: bool) -> u64 {
        let width = if wrap { b as u32 & 31 } else { (b as u32).min(32) };
        match (width, signed) {
            (0, _) => 0,
            (_, true) => extend(a, width) as u32 as u64,
            (_, false) => cut(a, width),
        }
    }
    Some(match (kind.kind, kind.bits, wrap) {
        (Kind::Unsigned, 32, true) => |a, b| extended(a, b, false, true),
        (Kind::Unsigned, 32, false) => |a, b| extended(a, b, false, false),
        (Kind::Signed, 32, true) => |a, b| extended(a, b, true, true),
        (Kind::Signed, 32, false) => |a, b| extended(a, b, true, false),
        _ => return None,
    })
}

/// Any logic of three operands: bit i of the table is the result where a, b, c have the bits of i.
pub fn table(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let mut result = 0;
    for i in 0..8 {
        if table >> i & 1 == 1 {
            let pick = |x: u64, bit: u32| if i >> bit & 1 == 1 { x } else { !x };
            result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    result as u32 as u64
}

/// Four bytes chosen from the eight of b:a by the nibbles of c; bit 3 of a nibble copies the byte's sign over it.
pub fn permute(a: u64, b: u64, c: u64) -> u64 {
    let bytes = b << 32 | a;
    (0..4).fold(0, |word, i| {
        let nibble = c >> (4 * i) & 15;
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        word | (byte as u64) << (8 * i)
    })
}

/// The modes of prmt other than by nibbles.
pub fn permute_mode(mode: &str) -> Option<F3> {
    fn chosen(a: u64, b: u64, nibbles: [u64; 4]) -> u64 {
        permute(a, b, nibbles[0] | nibbles[1] << 4 | nibbles[2] << 8 | nibbles[3] << 12)
    }
    Some(match mode {
        "f4e" => |a, b, c| chosen(a, b, [0, 1, 2, 3].map(|i| (i + (c & 3)) & 7)),
        "b4e" => |a, b, c| chosen(a, b, [8, 7, 6, 5].map(|i| (i + (c & 3)) & 7)),
        "rc8" => |a, b, c| chosen(a, b, [c & 3; 4]),
        "ecl" => |a, b, c| chosen(a, b, [0, 1, 2, 3].map(|i: u64| i.max(c & 3))),
        "ecr" => |a, b, c| chosen(a, b, [0, 1, 2, 3].map(|i: u64| i.min(c & 3))),
        "rc16" => |a, b, c| chosen(a, b, [0, 1, 0, 1].map(|i| i + (c & 1) * 2)),
        _ => return None,
    })
}
