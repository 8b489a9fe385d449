//! Element types that Rust has no type for.

use super::Element;
use crate::base::dtype;

/// IEEE 754 binary16, as its bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct F16(pub u16);

/// bfloat16, the upper half of a binary32, as its bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bf16(pub u16);

/// A truth value as stored in tensors: a byte, 0 or 1. Any other byte counts as 1.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bool(pub u8);

macro_rules! elements {
    ($($name:ty: $dtype:ident),*) => {
        // SAFETY: every bit pattern is a value.
        $(unsafe impl Element for $name {
            const DTYPE: u32 = dtype::$dtype;
        })*
    };
}

elements!(i64: S64, i8: S8, u8: U8, F16: F16, Bf16: BF16, Bool: BOOL);
