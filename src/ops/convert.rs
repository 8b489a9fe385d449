//! Creates a conversion to another storage type, see weir_convert_desc.
//!
//! Errors: INVALID_ARGUMENT (dtype, scale or shift that is NaN, reserved not 0).
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::check::{not_nan, reserved};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::abi::weir_dtype;
use crate::base::{Desc, Error, Result, dtype};

/// Conversion to another storage type: x scale + shift, between all types but s64. Input: x. Output: the same shape.
///
/// Computed in f32. An integer is rounded to nearest, ties to even, and saturates; a NaN becomes 0; as a bool
/// everything but 0 becomes 1. With scale 1 and shift 0, values that both types can hold are exact, in s32 too.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_convert_desc {
    /// sizeof(weir_convert_desc) of the caller's header.
    pub struct_size: usize,
    /// The type of the output, not s64.
    pub dtype: weir_dtype,
    /// The factor; 0 stands for 1.
    pub scale: f32,
    /// Added after that.
    pub shift: f32,
    /// Reserved, 0.
    pub reserved: u32,
}

/// x scale + shift in another type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convert {
    pub dtype: u32,
    pub scale: f32,
    pub shift: f32,
}

impl Convert {
    /// Whether nothing but the type changes.
    pub fn is_plain(&self) -> bool {
        self.scale == 1.0 && self.shift == 0.0
    }
}

impl Operator for Convert {
    type Desc = weir_convert_desc;
    const NAME: &'static str = "convert";

    fn new(desc: &mut weir_convert_desc, _: Option<PackedShape>) -> Result<Convert> {
        reserved(desc.reserved)?;
        dtype::size(desc.dtype).map_err(|error| error.within("desc"))?;
        if desc.dtype == dtype::S64 {
            let text = "desc->dtype is s64 (8), which is for keys and indices: nothing is converted to it";
            return Err(Error::invalid(text));
        }
        not_nan("scale", desc.scale)?;
        not_nan("shift", desc.shift)?;
        if desc.scale == 0.0 {
            desc.scale = 1.0;
        }
        Ok(Convert { dtype: desc.dtype, scale: desc.scale, shift: desc.shift })
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_computes(inputs)?;
        Desc { dtype: self.dtype, ..inputs[0] }.check_open()
    }
}
