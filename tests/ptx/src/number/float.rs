//! Arithmetic of f32 and f64. To nearest the processor computes; in other directions `soft` does. Results that are no
//! number are those that a GPU makes.

use super::soft::{self, F32, F64, Format, Rounding, Value};
use super::{F1, F2, F3};

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn from_single(value: f32) -> u64 {
    if value.is_nan() { F32.nan } else { value.to_bits().into() }
}

fn from_double(value: f64) -> u64 {
    if value.is_nan() { F64.nan } else { value.to_bits() }
}

fn format(width: u32) -> Option<Format> {
    match width {
        32 => Some(F32),
        64 => Some(F64),
        _ => None,
    }
}

/// A function by width and direction: the processor's for f32 and f64, else that of `soft` with values.
macro_rules! by_rounding {
    ($width:expr, $rounding:expr, |$($argument:ident),+|, $single:expr, $double:expr, $soft:expr) => {{
        macro_rules! directed {
            ($format:expr, $direction:expr) => {
                |$($argument: u64),+| {
                    let rounding = $direction;
                    let format = $format;
                    #[allow(clippy::redundant_closure_call)]
                    ($soft)($(Value::of($argument, format)),+, rounding).round(format, rounding)
                }
            };
        }
        Some(match ($width, $rounding) {
            (32, Rounding::Nearest) => |$($argument: u64),+| {
                $(let $argument = single($argument);)+
                from_single($single)
            },
            (64, Rounding::Nearest) => |$($argument: u64),+| {
                $(let $argument = f64::from_bits($argument);)+
                from_double($double)
            },
            (32, Rounding::Zero) => directed!(F32, Rounding::Zero),
            (32, Rounding::Down) => directed!(F32, Rounding::Down),
            (32, Rounding::Up) => directed!(F32, Rounding::Up),
            (64, Rounding::Zero) => directed!(F64, Rounding::Zero),
            (64, Rounding::Down) => directed!(F64, Rounding::Down),
            (64, Rounding::Up) => directed!(F64, Rounding::Up),
            _ => return None,
        })
    }};
}

pub fn add(width: u32, rounding: Rounding) -> Option<F2> {
    by_rounding!(width, rounding, |a, b|, a + b, a + b, soft::add)
}

/// What `add` gives for 32 bits to nearest, for a loop that knows its operations.
#[inline]
pub fn add_nearest(a: u64, b: u64) -> u64 {
    from_single(single(a) + single(b))
}

#[inline]
pub fn multiply_nearest(a: u64, b: u64) -> u64 {
    from_single(single(a) * single(b))
}

pub fn subtract(width: u32, rounding: Rounding) -> Option<F2> {
    by_rounding!(width, rounding, |a, b|, a - b, a - b, |a: Value, b: Value, r| soft::add(a, b.negated(), r))
}

pub fn multiply(width: u32, rounding: Rounding) -> Option<F2> {
    by_rounding!(width, rounding, |a, b|, a * b, a * b, |a, b, _| soft::multiply(a, b))
}

pub fn multiply_add(width: u32, rounding: Rounding) -> Option<F3> {
    by_rounding!(width, rounding, |a, b, c|, a.mul_add(b, c), a.mul_add(b, c), |a, b, c, r| {
        soft::add(soft::multiply(a, b), c, r)
    })
}

pub fn divide(width: u32, rounding: Rounding) -> Option<F2> {
    by_rounding!(width, rounding, |a, b|, a / b, a / b, |a, b, _| soft::divide(a, b))
}

pub fn reciprocal(width: u32, rounding: Rounding) -> Option<F1> {
    by_rounding!(width, rounding, |a|, 1.0 / a, 1.0 / a, |a, _| soft::divide(Value::exact(false, 0, 1), a))
}

pub fn square_root(width: u32, rounding: Rounding) -> Option<F1> {
    by_rounding!(width, rounding, |a|, a.sqrt(), a.sqrt(), |a, _| soft::square_root(a))
}

/// Subnormal numbers become zeros of their sign.
pub fn flush(a: u64) -> u64 {
    if a & 0x7F80_0000 == 0 { a & 0x8000_0000 } else { a }
}

/// Into 0 to 1; what is no number becomes 0.
pub fn saturate(width: u32) -> Option<F1> {
    Some(match width {
        32 => |a| {
            let a = single(a);
            if a > 0.0 { a.min(1.0).to_bits().into() } else { 0 }
        },
        64 => |a| {
            let a = f64::from_bits(a);
            if a > 0.0 { a.min(1.0).to_bits() } else { 0 }
        },
        _ => return None,
    })
}

pub fn absolute(width: u32) -> Option<F1> {
    Some(match width {
        16 => |a| a & 0x7FFF,
        32 => |a| a & 0x7FFF_FFFF,
        64 => |a| a & (u64::MAX >> 1),
        _ => return None,
    })
}

pub fn negate(width: u32) -> Option<F1> {
    Some(match width {
        16 => |a| a ^ 0x8000,
        32 => |a| a ^ 0x8000_0000,
        64 => |a| a ^ 1 << 63,
        _ => return None,
    })
}

/// The smaller or larger of two values, by their order as numbers with -0 below +0. What is no number loses, or wins
/// if `nan`.
pub fn extreme(format: Format, a: u64, b: u64, larger: bool, nan: bool) -> u64 {
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return format.nan,
        (true, false) | (false, true) if nan => return format.nan,
        (true, false) => return b,
        (false, true) => return a,
        (false, false) => {}
    }
    // Bits in the order of numbers.
    let rank = |bits: u64| {
        if bits & format.sign_bit() != 0 { -((bits & (format.sign_bit() - 1)) as i64) - 1 } else { bits as i64 }
    };
    if (rank(a) > rank(b)) == larger { a } else { b }
}

pub fn minimum(width: u32, nan: bool) -> Option<F2> {
    Some(match (width, nan) {
        (32, false) => |a, b| extreme(F32, a, b, false, false),
        (32, true) => |a, b| extreme(F32, a, b, false, true),
        (64, false) => |a, b| extreme(F64, a, b, false, false),
        _ => return None,
    })
}

pub fn maximum(width: u32, nan: bool) -> Option<F2> {
    Some(match (width, nan) {
        (32, false) => |a, b| extreme(F32, a, b, true, false),
        (32, true) => |a, b| extreme(F32, a, b, true, true),
        (64, false) => |a, b| extreme(F64, a, b, true, false),
        _ => return None,
    })
}

/// b with the sign of a.
pub fn copy_sign(width: u32) -> Option<F2> {
    Some(match width {
        32 => |a, b| a & 0x8000_0000 | b & 0x7FFF_FFFF,
        64 => |a, b| a & 1 << 63 | b & (u64::MAX >> 1),
        _ => return None,
    })
}

/// Whether a float is of a class.
pub fn test(class: &str, width: u32) -> Option<F1> {
    macro_rules! by_class {
        ($of:expr) => {
            match class {
                "finite" => |a| $of(a).is_finite() as u64,
                "infinite" => |a| $of(a).is_infinite() as u64,
                "number" => |a| !$of(a).is_nan() as u64,
                "notanumber" => |a| $of(a).is_nan() as u64,
                "normal" => |a| $of(a).is_normal() as u64,
                "subnormal" => |a| $of(a).is_subnormal() as u64,
                _ => return None,
            }
        };
    }
    Some(match format(width)? {
        F32 => by_class!(single),
        _ => by_class!(f64::from_bits),
    })
}

/// The functions that a GPU computes approximately: here correctly rounded from those of f64, up to the error of those.
/// What holds on a GPU only within an error of some last places is not to be asked of these bits.
pub fn approximate(name: &str) -> Option<F1> {
    macro_rules! rounded {
        ($function:expr) => {
            |a| from_single($function(f64::from(single(a))) as f32)
        };
    }
    Some(match name {
        "sin" => rounded!(f64::sin),
        "cos" => rounded!(f64::cos),
        "tanh" => rounded!(f64::tanh),
        "ex2" => rounded!(f64::exp2),
        "lg2" => rounded!(f64::log2),
        "sqrt" => rounded!(f64::sqrt),
        "rcp" => rounded!(|a: f64| 1.0 / a),
        "rsqrt" => rounded!(|a: f64| 1.0 / a.sqrt()),
        _ => return None,
    })
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 look at the upper half of the operand and give the upper half of the
/// result; numbers too small for a normal one count as zeros.
pub fn approximate_double(name: &str) -> Option<F1> {
    fn coarse(a: u64, function: fn(f64) -> f64) -> u64 {
        const UPPER: u64 = 0xFFFF_FFFF_0000_0000;
        let flushed = |a: u64| if a & F64_EXPONENT == 0 { a & 1 << 63 } else { a };
        const F64_EXPONENT: u64 = 0x7FF0_0000_0000_0000;
        let result = from_double(function(f64::from_bits(flushed(a & UPPER))));
        if F64.is_nan(a) { F64.nan } else { flushed(result) & UPPER }
    }
    Some(match name {
        "rcp" => |a| coarse(a, |a| 1.0 / a),
        "rsqrt" => |a| coarse(a, |a| 1.0 / a.sqrt()),
        _ => return None,
    })
}

/// div.full.f32 and div.approx.f32, here the correctly rounded quotient.
pub fn divide_approximate(a: u64, b: u64) -> u64 {
    from_single(single(a) / single(b))
}

pub fn rsqrt_double(a: u64) -> u64 {
    from_double(1.0 / f64::from_bits(a).sqrt())
}
