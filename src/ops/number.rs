//! How a number that a type of integers cannot hold is stored.
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::check::value_of;
use crate::base::Result;

/// How a number becomes an integer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum weir_rounding_value {
    /// The digits behind the point are left out, as in C: 2.7 is 2, and -2.7 is -2.
    #[default]
    WEIR_ROUNDING_ZERO = 0,
    /// The nearest one, the even one of two: 2.5 is 2, and 3.5 is 4.
    WEIR_ROUNDING_NEAREST = 1,
    /// The greatest one that is not above it: 2.7 is 2, and -2.7 is -3.
    WEIR_ROUNDING_FLOOR = 2,
}

/// A rounding: one of enum weir_rounding_value.
pub type weir_rounding = u32;

/// How an integer is stored that is too large or too small for its type.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum weir_overflow_value {
    /// Its lowest bits, in two's complement: 200 + 100 is 44 as u8.
    #[default]
    WEIR_OVERFLOW_WRAP = 0,
    /// The greatest or the least one of the type: 200 + 100 is 255 as u8.
    WEIR_OVERFLOW_SATURATE = 1,
}

/// An overflow: one of enum weir_overflow_value.
pub type weir_overflow = u32;

impl weir_rounding_value {
    pub(super) fn of(number: u32) -> Result<weir_rounding_value> {
        value_of!(
            "rounding",
            number,
            weir_rounding_value { WEIR_ROUNDING_ZERO, WEIR_ROUNDING_NEAREST, WEIR_ROUNDING_FLOOR }
        )
    }
}

impl weir_overflow_value {
    pub(super) fn of(number: u32) -> Result<weir_overflow_value> {
        value_of!("overflow", number, weir_overflow_value { WEIR_OVERFLOW_WRAP, WEIR_OVERFLOW_SATURATE })
    }
}
