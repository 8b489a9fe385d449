//! Element types.
#![forbid(unsafe_code)]

use super::error::{Error, Result};
use crate::abi::{weir_dtype, weir_dtype_value as D};
use std::ffi::CStr;

const TYPES: [(D, usize, &CStr); 8] = [
    (D::WEIR_F32, 4, c"f32"),
    (D::WEIR_S32, 4, c"s32"),
    (D::WEIR_U8, 1, c"u8"),
    (D::WEIR_S8, 1, c"s8"),
    (D::WEIR_F16, 2, c"f16"),
    (D::WEIR_BF16, 2, c"bf16"),
    (D::WEIR_BOOL, 1, c"bool"),
    (D::WEIR_S64, 8, c"s64"),
];

/// In a signature: any type.
pub const ANY: weir_dtype = D::WEIR_DTYPE_ANY as weir_dtype;
pub const F32: weir_dtype = D::WEIR_F32 as weir_dtype;
pub const S32: weir_dtype = D::WEIR_S32 as weir_dtype;
pub const U8: weir_dtype = D::WEIR_U8 as weir_dtype;
pub const S8: weir_dtype = D::WEIR_S8 as weir_dtype;
pub const F16: weir_dtype = D::WEIR_F16 as weir_dtype;
pub const BF16: weir_dtype = D::WEIR_BF16 as weir_dtype;
pub const BOOL: weir_dtype = D::WEIR_BOOL as weir_dtype;
pub const S64: weir_dtype = D::WEIR_S64 as weir_dtype;

/// Size of an element in bytes.
pub fn size(dtype: weir_dtype) -> Result<usize> {
    TYPES
        .iter()
        .find(|row| row.0 as weir_dtype == dtype)
        .map(|row| row.1)
        .ok_or_else(|| Error::invalid(format!("dtype is {dtype}, which is no element type")))
}

/// Name of an element type; "any" in a signature, "?" for an unknown number.
pub fn c_name(dtype: weir_dtype) -> &'static CStr {
    if dtype == ANY {
        return c"any";
    }
    TYPES.iter().find(|row| row.0 as weir_dtype == dtype).map_or(c"?", |row| row.2)
}

/// `c_name` as a string.
pub fn name(dtype: weir_dtype) -> &'static str {
    c_name(dtype).to_str().unwrap_or("?")
}
