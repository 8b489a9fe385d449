//! Checks that the descriptors of several operators need.
#![forbid(unsafe_code)]

use crate::base::desc::MAX_RANK;
use crate::base::{Error, Result};
use std::fmt::Display;

/// Unknown bits are refused, so that they can get a meaning later.
pub fn flags(value: u64, known: u64, argument: &str) -> Result<u64> {
    match value & !known {
        0 => Ok(value),
        unknown => Err(Error::invalid(format!("{argument} has unknown bits {unknown:#x} (known: {known:#x})"))),
    }
}

/// A member without a meaning yet.
pub(super) fn reserved(value: impl Into<i64>) -> Result<()> {
    match value.into() {
        0 => Ok(()),
        other => Err(Error::invalid(format!("desc->reserved is {other}, expected 0"))),
    }
}

/// An axis, which counts from the end if negative.
pub(super) fn axis(axis: i32) -> Result<i32> {
    axis_named("axis", axis)
}

pub(super) fn axis_named(member: impl Display, axis: i32) -> Result<i32> {
    let max = MAX_RANK as i32;
    if !(-max..max).contains(&axis) {
        return Err(Error::out_of_range(format!("desc->{member} is {axis}, expected {} to {}", -max, max - 1)));
    }
    Ok(axis)
}

/// A number of dimensions.
pub(super) fn rank(rank: u32) -> Result<usize> {
    match rank as usize {
        rank if rank <= MAX_RANK => Ok(rank),
        rank => Err(Error::out_of_range(format!("desc->rank is {rank}, expected 0 to {MAX_RANK}"))),
    }
}

pub(super) fn not_nan(member: &str, value: f32) -> Result<()> {
    if value.is_nan() {
        return Err(Error::invalid(format!("desc->{member} is NaN, expected a number")));
    }
    Ok(())
}

/// The value of an enum that has this number.
macro_rules! value_of {
    ($member:literal, $number:expr, $enum:ident { $($value:ident),* $(,)? }) => {
        match $number {
            $(number if number == $enum::$value as u32 => Ok($enum::$value),)*
            number => Err($crate::base::Error::invalid(format!(
                "desc->{} is {number}, which is no {}", $member, stringify!($enum)
            ))),
        }
    };
}
pub(super) use value_of;
