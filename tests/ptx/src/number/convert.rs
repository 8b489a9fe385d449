//! Conversions between all types.

use super::float::flush;
use super::soft::{BF16, F16, F32, F64, Format, Rounding, Value};
use super::{F1, cut, extend};
use crate::types::{Kind, Type};

/// What a conversion is asked to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conversion {
    pub to: Type,
    pub from: Type,
    pub rounding: Rounding,
    /// A float is rounded to an integer, in a float format too.
    pub integral: bool,
    pub saturate: bool,
    pub flush: bool,
    /// Negative results become zero.
    pub relu: bool,
}

fn format(kind: Type) -> Format {
    match (kind.kind, kind.bits) {
        (Kind::Brain, _) => BF16,
        (_, 16) => F16,
        (_, 32) => F32,
        _ => F64,
    }
}

impl Conversion {
    /// Into one word, to be an operand.
    pub fn encoded(self) -> u64 {
        let kind = |kind: Type| (kind.kind as u64) << 8 | u64::from(kind.bits);
        let flags = [self.integral, self.saturate, self.flush, self.relu];
        let flags = (0..4).fold(0, |word, i| word | u64::from(flags[i]) << i);
        kind(self.to) | kind(self.from) << 16 | (self.rounding as u64) << 32 | flags << 40
    }

    fn decoded(code: u64) -> Self {
        let kind = |code: u64| {
            let kinds = [Kind::Predicate, Kind::Bits, Kind::Unsigned, Kind::Signed, Kind::Float, Kind::Brain];
            Type::new(kinds[(code >> 8 & 7) as usize], code as u32 & 255)
        };
        let rounding = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up][(code >> 32 & 3) as usize];
        let flag = |i: u32| code >> (40 + i) & 1 == 1;
        Self {
            to: kind(code),
            from: kind(code >> 16),
            rounding,
            integral: flag(0),
            saturate: flag(1),
            flush: flag(2),
            relu: flag(3),
        }
    }

    /// The function for what is met often; None for what only `convert` does.
    pub fn fast(self) -> Option<F1> {
        use Kind::{Float, Signed, Unsigned};
        let plain = !self.saturate && !self.flush && !self.relu;
        let (to, from) = ((self.to.kind, self.to.bits), (self.from.kind, self.from.bits));
        if self.from.is_integer() && self.to.is_integer() && plain && self.from.bits >= 32 {
            return match (self.from.is_signed(), self.from.bits, self.to.bits) {
                (_, _, 32) => Some(|a| a as u32 as u64),
                (true, 32, 64) => Some(|a| a as i32 as u64),
                (false, 32, 64) => Some(|a| a as u32 as u64),
                (_, 64, 64) => Some(|a| a),
                (_, _, 16) => Some(|a| a as u16 as u64),
                _ => None,
            };
        }
        if !plain || self.rounding != Rounding::Nearest || self.integral {
            return match (to, from, self.rounding) {
                ((Signed, 32), (Float, 32), Rounding::Zero) if plain => {
                    Some(|a| f32::from_bits(a as u32) as i32 as u32 as u64)
                }
                ((Unsigned, 32), (Float, 32), Rounding::Zero) if plain => {
                    Some(|a| f32::from_bits(a as u32) as u32 as u64)
                }
                ((Float, 32), (Float, 32), Rounding::Nearest) if plain => {
                    Some(|a| canonical(f32::from_bits(a as u32).round_ties_even()))
                }
                _ => None,
            };
        }
        Some(match (to, from) {
            ((Float, 32), (Signed, 32)) => |a| (a as i32 as f32).to_bits().into(),
            ((Float, 32), (Unsigned, 32)) => |a| (a as u32 as f32).to_bits().into(),
            ((Float, 32), (Signed, 64)) => |a| (a as i64 as f32).to_bits().into(),
            ((Float, 32), (Unsigned, 64)) => |a| (a as f32).to_bits().into(),
            ((Float, 64), (Signed, 32)) => |a| f64::from(a as i32).to_bits(),
            ((Float, 64), (Unsigned, 32)) => |a| f64::from(a as u32).to_bits(),
            ((Float, 64), (Signed, 64)) => |a| (a as i64 as f64).to_bits(),
            ((Float, 64), (Unsigned, 64)) => |a| (a as f64).to_bits(),
            ((Float, 64), (Float, 32)) => |a| {
                let value = f64::from(f32::from_bits(a as u32));
                if value.is_nan() { F64.nan } else { value.to_bits() }
            },
            ((Float, 32), (Float, 64)) => |a| canonical(f64::from_bits(a) as f32),
            _ => return None,
        })
    }
}

fn canonical(value: f32) -> u64 {
    if value.is_nan() { F32.nan } else { value.to_bits().into() }
}

/// Converts `a` as the encoded conversion says; an integer result is extended to 64 bits by its sign.
pub fn convert(a: u64, code: u64) -> u64 {
    let conversion = Conversion::decoded(code);
    let Conversion { to, from, rounding, .. } = conversion;
    let value = if from.is_float() {
        let bits = cut(a, from.bits);
        Value::of(if conversion.flush && from == Type::new(Kind::Float, 32) { flush(bits) } else { bits }, format(from))
    } else {
        let number = if from.is_signed() { extend(a, from.bits).into() } else { i128::from(cut(a, from.bits)) };
        Value::exact(number < 0, 0, number.unsigned_abs())
    };
    if to.is_integer() {
        if from.is_integer() && !conversion.saturate {
            return if from.is_signed() { extend(a, from.bits) as u64 } else { cut(a, from.bits) };
        }
        return to_integer(value, to, from, rounding);
    }
    let mut value = value;
    if conversion.integral
        && let Value::Finite { negative, exponent: ..0, .. } = value
    {
        value = Value::exact(negative, 0, value.to_integer(rounding));
    }
    let target = format(to);
    if conversion.saturate {
        let one = Value::exact(false, 0, 1).round(target, Rounding::Nearest);
        let bits = value.round(target, rounding);
        return if target.is_nan(bits) || bits & target.sign_bit() != 0 { 0 } else { bits.min(one) };
    }
    let bits = value.round(target, rounding);
    if conversion.relu && !target.is_nan(bits) && bits & target.sign_bit() != 0 {
        return 0;
    }
    if conversion.flush && target == F32 { flush(bits) } else { bits }
}

/// Out of range gives the nearest integer in range; no number gives 0, or the middle of the range where 64 bits are
/// involved.
fn to_integer(value: Value, to: Type, from: Type, rounding: Rounding) -> u64 {
    if value == Value::Nan {
        let wide = to.bits == 64 || from.bits == 64;
        let middle = 1 << (to.bits - 1);
        return match (wide, to.is_signed()) {
            (false, _) => 0,
            (true, false) => middle,
            (true, true) => extend(middle, to.bits) as u64,
        };
    }
    let magnitude = value.to_integer(rounding);
    let number =
        if value.negative() { (magnitude as i128).wrapping_neg() } else { magnitude.min(i128::MAX as u128) as i128 };
    let (least, most) = if to.is_signed() {
        (-1i128 << (to.bits - 1), (1i128 << (to.bits - 1)) - 1)
    } else {
        (0, (1i128 << to.bits) - 1)
    };
    number.clamp(least, most) as u64
}
