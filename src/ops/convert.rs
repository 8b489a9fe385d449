//! Creates a conversion to another storage type, see weir_convert_desc.
//!
//! Errors: INVALID_ARGUMENT (dtype, scale or shift that is NaN, unknown rounding or overflow, reserved not 0).
//!
//! Chapter: Elementwise.
#![forbid(unsafe_code)]

use super::check::{not_nan, reserved};
use super::number::{weir_overflow, weir_overflow_value, weir_rounding, weir_rounding_value};
use super::operator::{Operator, PackedShape};
use crate::abi::weir_dtype;
use crate::base::{Desc, Result, dtype};

/// Conversion to another storage type: x scale + shift, between all types. Input: x. Output: the same shape.
///
/// With scale 1 and shift 0 the value itself is converted: values that both types can hold are exact, in s32 and s64
/// too, and an integer that the new type cannot hold wraps around, as in C and NumPy, unless `overflow` says otherwise.
/// All else is computed in f32. A float becomes an integer by leaving out what is behind the point, as in C, unless
/// `rounding` says otherwise; beyond the type it becomes the greatest or the least integer, and a NaN becomes 0. As a
/// bool everything but 0 becomes 1. What a float type cannot hold is rounded to nearest, ties to even.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_convert_desc {
    /// sizeof(weir_convert_desc) of the caller's header.
    pub struct_size: usize,
    /// The type of the output.
    pub dtype: weir_dtype,
    /// The factor; 0 stands for 1.
    pub scale: f32,
    /// Added after that.
    pub shift: f32,
    /// Reserved, 0.
    pub reserved: u32,
    /// How a float becomes an integer: one of weir_rounding_value. Other conversions do not look at it.
    pub rounding: weir_rounding,
    /// How an integer that the new type, of integers too, cannot hold is stored: one of weir_overflow_value. Other
    /// conversions do not look at it.
    pub overflow: weir_overflow,
}

/// x scale + shift in another type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convert {
    pub dtype: u32,
    pub scale: f32,
    pub shift: f32,
    pub rounding: weir_rounding_value,
    pub overflow: weir_overflow_value,
}

impl Convert {
    /// With the defaults of C.
    pub const fn to(dtype: u32) -> Convert {
        use weir_overflow_value::WEIR_OVERFLOW_WRAP;
        use weir_rounding_value::WEIR_ROUNDING_ZERO;
        Convert { dtype, scale: 1.0, shift: 0.0, rounding: WEIR_ROUNDING_ZERO, overflow: WEIR_OVERFLOW_WRAP }
    }

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
        not_nan("scale", desc.scale)?;
        not_nan("shift", desc.shift)?;
        if desc.scale == 0.0 {
            desc.scale = 1.0;
        }
        Ok(Convert {
            dtype: desc.dtype,
            scale: desc.scale,
            shift: desc.shift,
            rounding: weir_rounding_value::of(desc.rounding)?,
            overflow: weir_overflow_value::of(desc.overflow)?,
        })
    }

    fn dim_from(&self, _: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        [Some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        Desc { dtype: self.dtype, ..inputs[0] }.check_open()
    }
}
