//! Creates a resizing of images, see weir_resize_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, mode, coordinates or rounding; a scale that is no number from 1e-6 to 1e6,
//! a cubic coefficient that is no finite number); OUT_OF_RANGE (a size below 0).
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

use super::check::{flags, value_of};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Error, Result, dtype};
use std::mem::offset_of;

/// How an element is made of those around its place: one of enum weir_resize_mode_value.
pub type weir_resize_mode = u32;

/// Interpolations.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_resize_mode_value {
    /// The nearest element.
    WEIR_RESIZE_NEAREST = 0,
    /// Of two elements along each axis.
    WEIR_RESIZE_LINEAR = 1,
    /// Of four elements along each axis, by the cubic convolution of Keys.
    WEIR_RESIZE_CUBIC = 2,
}

/// The places of elements of the output among those of x: one of enum weir_resize_coordinates_value.
pub type weir_resize_coordinates = u32;

/// The place of element i of an axis, where s is the scale; the output has n elements, and x has m.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_resize_coordinates_value {
    /// (i + 0.5) / s - 0.5.
    WEIR_RESIZE_HALF_PIXEL = 0,
    /// i (m - 1) / (n - 1), and 0 if n is 1: the first and the last elements lie on one another.
    WEIR_RESIZE_ALIGN_CORNERS = 1,
    /// i / s.
    WEIR_RESIZE_ASYMMETRIC = 2,
    /// As WEIR_RESIZE_HALF_PIXEL, and 0 if n is 1.
    WEIR_RESIZE_PYTORCH_HALF_PIXEL = 3,
    /// As WEIR_RESIZE_HALF_PIXEL, moved so that the middle of the output lies on that of x if n is not s m.
    WEIR_RESIZE_HALF_PIXEL_SYMMETRIC = 4,
}

/// Which element is the nearest to a place: one of enum weir_resize_rounding_value.
pub type weir_resize_rounding = u32;

/// Roundings of a place.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_resize_rounding_value {
    /// The nearest one, the lower of two.
    WEIR_RESIZE_PREFER_FLOOR = 0,
    /// The nearest one, the upper of two.
    WEIR_RESIZE_PREFER_CEIL = 1,
    /// The one below.
    WEIR_RESIZE_FLOOR = 2,
    /// The one above.
    WEIR_RESIZE_CEIL = 3,
}

/// Flags of weir_resize_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_resize_flags {
    /// Elements beyond the edges have no weight, and the others as much more; otherwise those at the edge are repeated.
    WEIR_RESIZE_EXCLUDE_OUTSIDE = 1,
}

/// Resizing of images, or of signals: the last two dimensions of x, H and W, of any rank; the second one alone if the
/// first has neither size nor scale.
///
/// Input: x, of any type for WEIR_RESIZE_NEAREST, else f32, f16, bf16, u8 or s8. Output: of the same type. Places and
/// weights are computed in f64, elements in f32, first along W and then along H, and rounded once. All elements that
/// have a weight are multiplied, also by 0: an infinity makes NaN of some elements beside it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_resize_desc {
    /// sizeof(weir_resize_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_resize_flags.
    pub flags: u64,
    /// One of weir_resize_mode_value.
    pub mode: weir_resize_mode,
    /// One of weir_resize_coordinates_value.
    pub coordinates: weir_resize_coordinates,
    /// One of weir_resize_rounding_value, for WEIR_RESIZE_NEAREST.
    pub rounding: weir_resize_rounding,
    /// The coefficient a of WEIR_RESIZE_CUBIC; 0 = -0.75.
    pub cubic: f32,
    /// Elements of H and W in the output; 0 = as many as the scale says, rounded down.
    pub sizes: [i64; 2],
    /// Scales of H and W; 0 = that of the sizes, and 1 if there is no size either.
    pub scales: [f64; 2],
}

/// Images of another size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resize {
    pub mode: weir_resize_mode_value,
    pub coordinates: weir_resize_coordinates_value,
    pub rounding: weir_resize_rounding_value,
    pub exclude_outside: bool,
    pub cubic: f32,
    /// Of H and W; 0 = by the scale.
    pub sizes: [i64; 2],
    /// Of H and W; 0 = by the size.
    pub scales: [f64; 2],
}

impl Resize {
    /// The number of results along H (0) or W (1) of so many elements, which may be open.
    fn size(&self, which: usize, len: i64) -> Result<i64> {
        match (self.sizes[which], self.scales[which]) {
            (0, 0.0) => Ok(len),
            (0, _) if len == ANY_DIM => Ok(ANY_DIM),
            (0, scale) => {
                let size = (len as f64 * scale).floor();
                if size < i64::MAX as f64 {
                    return Ok(size as i64);
                }
                Err(Error::out_of_range(format!("{len} elements times {scale} are more than can be counted")))
            }
            (size, _) => Ok(size),
        }
    }

    /// The number of H (0) or W (1) among the dimensions of x.
    pub fn axis(which: usize, x: &Desc) -> Option<usize> {
        x.shape().len().checked_sub(2 - which)
    }
}

impl Operator for Resize {
    type Desc = weir_resize_desc;
    const NAME: &'static str = "resize";
    const SETTINGS: &'static [Setting<weir_resize_desc>] = &[
        Setting::int64("sizes", offset_of!(weir_resize_desc, sizes)).times(|_| 2),
        Setting::double("scales", offset_of!(weir_resize_desc, scales)).times(|_| 2),
    ];

    fn new(desc: &mut weir_resize_desc, _: Option<PackedShape>) -> Result<Resize> {
        use weir_resize_mode_value::*;
        let flag = weir_resize_flags::WEIR_RESIZE_EXCLUDE_OUTSIDE as u64;
        flags(desc.flags, flag, "desc->flags")?;
        let mode = value_of!("mode", desc.mode, weir_resize_mode_value {
            WEIR_RESIZE_NEAREST, WEIR_RESIZE_LINEAR, WEIR_RESIZE_CUBIC,
        })?;
        let coordinates = value_of!("coordinates", desc.coordinates, weir_resize_coordinates_value {
            WEIR_RESIZE_HALF_PIXEL, WEIR_RESIZE_ALIGN_CORNERS, WEIR_RESIZE_ASYMMETRIC, WEIR_RESIZE_PYTORCH_HALF_PIXEL,
            WEIR_RESIZE_HALF_PIXEL_SYMMETRIC,
        })?;
        if mode == WEIR_RESIZE_NEAREST {
            desc.flags = 0;
        }
        let exclude_outside = desc.flags != 0;
        let rounding = value_of!("rounding", desc.rounding, weir_resize_rounding_value {
            WEIR_RESIZE_PREFER_FLOOR, WEIR_RESIZE_PREFER_CEIL, WEIR_RESIZE_FLOOR, WEIR_RESIZE_CEIL,
        })?;
        if !desc.cubic.is_finite() {
            return Err(Error::invalid(format!("desc->cubic is {}, expected a finite number", desc.cubic)));
        }
        desc.cubic = if mode != WEIR_RESIZE_CUBIC { 0.0 } else if desc.cubic == 0.0 { -0.75 } else { desc.cubic };
        for (i, (size, scale)) in desc.sizes.iter().zip(&mut desc.scales).enumerate() {
            if *size < 0 {
                return Err(Error::out_of_range(format!("desc->sizes[{i}] is {size}, expected 0 or more")));
            }
            if *scale != 0.0 && !(1e-6..=1e6).contains(scale) {
                let text = format!("desc->scales[{i}] is {scale}, expected 0, or a number from 1e-6 to 1e6");
                return Err(Error::invalid(text));
            }
            // Of the two zeros.
            *scale = scale.abs();
        }
        if mode != WEIR_RESIZE_NEAREST {
            desc.rounding = 0;
        }
        let weir_resize_desc { cubic, sizes, scales, .. } = *desc;
        Ok(Resize { mode, coordinates, rounding, exclude_outside, cubic, sizes, scales })
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let x = &inputs[0];
        let smooth = [dtype::F32, dtype::F16, dtype::BF16, dtype::U8, dtype::S8];
        if self.mode != weir_resize_mode_value::WEIR_RESIZE_NEAREST && !smooth.contains(&x.dtype) {
            return Err(signature::mismatch("input", 0, "f32, f16, bf16, u8 or s8 elements", x));
        }
        let mut output = *x;
        for which in 0..2 {
            let changes = (self.sizes[which], self.scales[which]) != (0, 0.0);
            let Some(axis) = Resize::axis(which, x) else {
                if changes {
                    let expected = format!("a tensor of rank {} or more", 2 - which);
                    return Err(signature::mismatch("input", 0, &expected, x));
                }
                continue;
            };
            output.dims[axis] = self.size(which, x.dims[axis])?;
            if x.dims[axis] == 0 && output.dims[axis] > 0 {
                let expected = format!("at least 1 element along axis {axis}, which is resized");
                return Err(signature::mismatch("input", 0, &expected, x));
            }
        }
        output.check_open()
    }
}
