//! Comparisons and choices.

use super::{F2, by_integer, half};
use crate::types::{Kind, Type};

/// The comparison of a name such as "lt" or "gtu" on operands of a type, as 0 or 1.
pub fn comparison(name: &str, kind: Type) -> Option<F2> {
    match kind.kind {
        Kind::Bits | Kind::Unsigned | Kind::Signed => integers(name, kind),
        Kind::Float | Kind::Brain => floats(name, kind),
        Kind::Predicate => None,
    }
}

fn integers(name: &str, kind: Type) -> Option<F2> {
    if kind.kind == Kind::Bits && !["eq", "ne"].contains(&name) {
        return None;
    }
    match name {
        "eq" => Some(|a, b| (a == b) as u64),
        "ne" => Some(|a, b| (a != b) as u64),
        "lt" | "lo" => by_integer!(kind, |a, b| a < b),
        "le" | "ls" => by_integer!(kind, |a, b| a <= b),
        "gt" | "hi" => by_integer!(kind, |a, b| a > b),
        "ge" | "hs" => by_integer!(kind, |a, b| a >= b),
        _ => None,
    }
}

fn floats(name: &str, kind: Type) -> Option<F2> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    // The order of two values is None if one is no number: the names that end in u hold then too.
    macro_rules! by_name {
        ($of:expr) => {
            by_name!($of, {
                "eq" => Some(Equal),
                "ne" => Some(Less | Greater),
                "lt" => Some(Less),
                "le" => Some(Less | Equal),
                "gt" => Some(Greater),
                "ge" => Some(Greater | Equal),
                "equ" => None | Some(Equal),
                "neu" => None | Some(Less | Greater),
                "ltu" => None | Some(Less),
                "leu" => None | Some(Less | Equal),
                "gtu" => None | Some(Greater),
                "geu" => None | Some(Greater | Equal)
            })
        };
        ($of:expr, { $($name:literal => $holds:pat),+ }) => {
            match name {
                $($name => |a, b| matches!($of(a).partial_cmp(&$of(b)), $holds) as u64,)+
                "num" => |a, b| $of(a).partial_cmp(&$of(b)).is_some() as u64,
                "nan" => |a, b| $of(a).partial_cmp(&$of(b)).is_none() as u64,
                _ => return None,
            }
        };
    }
    Some(match (kind.kind, kind.bits) {
        (Kind::Float, 32) => by_name!(|a| f32::from_bits(a as u32)),
        (Kind::Float, 64) => by_name!(f64::from_bits),
        (Kind::Float, 16) => by_name!(|a| half::widen(Kind::Float, a)),
        (Kind::Brain, 16) => by_name!(|a| half::widen(Kind::Brain, a)),
        _ => return None,
    })
}

pub fn is_comparison(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
        "nan",
    ];
    NAMES.contains(&name)
}

/// A comparison's result joined with a predicate.
pub fn joined(name: &str) -> Option<F2> {
    Some(match name {
        "and" => super::bits::and,
        "or" => super::bits::or,
        "xor" => super::bits::xor,
        _ => return None,
    })
}

/// a if the predicate c holds, else b.
pub fn select(a: u64, b: u64, c: u64) -> u64 {
    if c != 0 { a } else { b }
}

/// a if c is not negative, else b.
pub fn select_by_integer(a: u64, b: u64, c: u64) -> u64 {
    if c as i32 >= 0 { a } else { b }
}

pub fn select_by_float(a: u64, b: u64, c: u64) -> u64 {
    if f32::from_bits(c as u32) >= 0.0 { a } else { b }
}

/// What set gives for true: all bits of an integer, the one of a float.
pub fn truth(kind: Type) -> Option<super::F1> {
    Some(match (kind.kind, kind.bits) {
        (Kind::Unsigned | Kind::Signed, 32) => |a| if a != 0 { 0xFFFF_FFFF } else { 0 },
        (Kind::Float, 32) => |a| if a != 0 { 0x3F80_0000 } else { 0 },
        (Kind::Float, 16) => |a| if a != 0 { 0x3C00 } else { 0 },
        (Kind::Brain, 16) => |a| if a != 0 { 0x3F80 } else { 0 },
        _ => return None,
    })
}
