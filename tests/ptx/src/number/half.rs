//! Arithmetic of f16 and bf16 and of pairs of them.

use super::float::extreme;
use super::soft::{self, BF16, F16, F32, Format, Rounding, Value};
use super::{F1, F2, F3};
use crate::types::{Kind, Type};

const NEAREST: Rounding = Rounding::Nearest;

fn add(f: Format, a: u64, b: u64) -> u64 {
    soft::add(Value::of(a, f), Value::of(b, f), NEAREST).round(f, NEAREST)
}

fn subtract(f: Format, a: u64, b: u64) -> u64 {
    soft::add(Value::of(a, f), Value::of(b, f).negated(), NEAREST).round(f, NEAREST)
}

fn multiply(f: Format, a: u64, b: u64) -> u64 {
    soft::multiply(Value::of(a, f), Value::of(b, f)).round(f, NEAREST)
}

fn multiply_add(f: Format, a: u64, b: u64, c: u64) -> u64 {
    let product = soft::multiply(Value::of(a, f), Value::of(b, f));
    soft::add(product, Value::of(c, f), NEAREST).round(f, NEAREST)
}

fn minimum(f: Format, a: u64, b: u64) -> u64 {
    extreme(f, a, b, false, false)
}

fn minimum_nan(f: Format, a: u64, b: u64) -> u64 {
    extreme(f, a, b, false, true)
}

fn maximum(f: Format, a: u64, b: u64) -> u64 {
    extreme(f, a, b, true, false)
}

fn maximum_nan(f: Format, a: u64, b: u64) -> u64 {
    extreme(f, a, b, true, true)
}

/// As a value of f64, which has them all.
fn wide(f: Format, a: u64) -> f64 {
    f64::from_bits(Value::of(a, f).round(soft::F64, NEAREST))
}

fn narrow(f: Format, a: f64) -> u64 {
    Value::of(a.to_bits(), soft::F64).round(f, NEAREST)
}

fn exp2(f: Format, a: u64) -> u64 {
    narrow(f, wide(f, a).exp2())
}

fn tanh(f: Format, a: u64) -> u64 {
    narrow(f, wide(f, a).tanh())
}

fn negate(f: Format, a: u64) -> u64 {
    a ^ f.sign_bit()
}

fn absolute(f: Format, a: u64) -> u64 {
    a & (f.sign_bit() - 1)
}

fn flush(f: Format, a: u64) -> u64 {
    let exponent = ((1 << f.exponent) - 1) << f.fraction;
    if a & exponent == 0 { a & f.sign_bit() } else { a }
}

fn saturate(f: Format, a: u64) -> u64 {
    let one = Value::exact(false, 0, 1).round(f, NEAREST);
    if f.is_nan(a) || a & f.sign_bit() != 0 { 0 } else { a.min(one) }
}

fn relu(f: Format, a: u64) -> u64 {
    if f.is_nan(a) {
        f.nan
    } else if a & f.sign_bit() != 0 {
        0
    } else {
        a
    }
}

/// The same in each half of a word.
macro_rules! lanes {
    ($kind:expr, |$($argument:ident),+| $function:ident) => {
        Some(match ($kind.kind, $kind.lanes) {
            (Kind::Float, 1) => |$($argument: u64),+| $function(F16, $($argument),+),
            (Kind::Brain, 1) => |$($argument: u64),+| $function(BF16, $($argument),+),
            (Kind::Float, 2) => |$($argument: u64),+| {
                $function(F16, $($argument & 0xFFFF),+) | $function(F16, $($argument >> 16),+) << 16
            },
            (Kind::Brain, 2) => |$($argument: u64),+| {
                $function(BF16, $($argument & 0xFFFF),+) | $function(BF16, $($argument >> 16),+) << 16
            },
            _ => return None,
        })
    };
}

pub fn unary(name: &str, kind: Type) -> Option<F1> {
    match name {
        "ex2" => lanes!(kind, |a| exp2),
        "tanh" => lanes!(kind, |a| tanh),
        "neg" => lanes!(kind, |a| negate),
        "abs" => lanes!(kind, |a| absolute),
        "flush" => lanes!(kind, |a| flush),
        "sat" => lanes!(kind, |a| saturate),
        "relu" => lanes!(kind, |a| relu),
        _ => None,
    }
}

pub fn binary(name: &str, kind: Type) -> Option<F2> {
    match name {
        "add" => lanes!(kind, |a, b| add),
        "sub" => lanes!(kind, |a, b| subtract),
        "mul" => lanes!(kind, |a, b| multiply),
        "min" => lanes!(kind, |a, b| minimum),
        "max" => lanes!(kind, |a, b| maximum),
        "min.NaN" => lanes!(kind, |a, b| minimum_nan),
        "max.NaN" => lanes!(kind, |a, b| maximum_nan),
        _ => None,
    }
}

pub fn fused(kind: Type) -> Option<F3> {
    lanes!(kind, |a, b, c| multiply_add)
}

/// The single of a half, for comparing.
pub fn widen(kind: Kind, a: u64) -> f32 {
    let format = if kind == Kind::Brain { BF16 } else { F16 };
    f32::from_bits(Value::of(a & 0xFFFF, format).round(F32, NEAREST) as u32)
}
