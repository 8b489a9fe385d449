//! Creates an int8 convolution, see weir_conv_int8_desc. NULL desc = 32-bit sums, no bias, no zero points, no padding,
//! strides of 1.
//!
//! Errors: INVALID_ARGUMENT (unknown flags or type, reserved not 0, a scale that is not finite); OUT_OF_RANGE (zero
//! points, negative or enormous numbers).
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

use super::axis::{Axis, EdgeMode};
use super::check::{flags, reserved};
use super::operator::{Operator, PackedShape, zeroed};
use super::signature;
use super::windows::{AxisSettings, Windows, check_step, whole_groups};
use crate::abi::weir_dtype;
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};

/// Flags of weir_conv_int8_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_conv_int8_flags {
    /// One more input, bias[O] of s32, is added to the sums.
    WEIR_CONV_INT8_BIAS = 1,
    /// The last input, scales[O] of f32, has a scale for each channel of the output, besides `scale`.
    WEIR_CONV_INT8_SCALES = 2,
}

/// int8 convolution of signals [N, C, W] or images [N, C, H, W]: each element of output channel o is
/// saturate(round(scale * scales[o] * (sum + bias[o])) + zero_y), where the sum is that of (x - zero_x) * (w - zero_w)
/// over the input channels of its group and the taps of the window. Padding is zero_x, and adds nothing.
///
/// Sums are exact on every processor, and then saturate at 32 bits. Without scales, and with a scale of 1, the rest is
/// exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties to even. An output of f32 is not
/// rounded to an integer.
///
/// Inputs: x of u8 or s8; weights of s8, [O, C / groups, KW] or [O, C / groups, KH, KW]; with WEIR_CONV_INT8_BIAS bias;
/// with WEIR_CONV_INT8_SCALES scales. Output: [N, O, OW] or [N, O, OH, OW], as large as that of weir_conv_desc. Weights
/// that are constants of a graph are packed by compile.
///
/// Members of two numbers are for H and W of images; of signals the first one counts, and the second must be 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_conv_int8_desc {
    /// sizeof(weir_conv_int8_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_conv_int8_flags.
    pub flags: u64,
    /// The type of the output: WEIR_S32 (also if it is 0), WEIR_F32, WEIR_S8 or WEIR_U8.
    pub dtype: weir_dtype,
    /// Finite; 0 = 1.
    pub scale: f32,
    /// Zero point of x, subtracted from each element; a value of its type.
    pub zero_x: i32,
    /// Zero point of the weights, subtracted from each one: -128 to 127.
    pub zero_w: i32,
    /// Zero point of the output, added to each element at the end.
    pub zero_y: i32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Number of groups that the channels are divided into; 0 = 1. Both C and O are multiples of it.
    pub groups: i64,
    /// Distance from one window to the next, in elements; 0 = 1.
    pub strides: [i64; 2],
    /// Distance from one tap to the next, in elements; 0 = 1.
    pub dilations: [i64; 2],
    /// Elements of padding before the first one.
    pub padding_begin: [i64; 2],
    /// Elements of padding behind the last one.
    pub padding_end: [i64; 2],
}

/// The owner of the taps, in texts.
const OF_FILTERS: &str = "of the filters (input 1)";

/// Filters of bytes over windows of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvInt8 {
    pub windows: Windows,
    /// At least 1.
    pub groups: i64,
    pub bias: bool,
    pub scales: bool,
    pub scale: f32,
    pub zero_x: i32,
    pub zero_w: i32,
    pub zero_y: i32,
    /// The type of the output.
    pub dtype: u32,
}

impl ConvInt8 {
    /// Rows and columns for inputs that fit and leave nothing open.
    pub fn axes(&self, inputs: &[Desc]) -> Result<(Axis, Axis)> {
        let [_, rows, columns] = self.windows.axes(&inputs[0], &inputs[1].shape()[2..], OF_FILTERS)?;
        Ok((rows, columns))
    }
}

impl Operator for ConvInt8 {
    type Desc = weir_conv_int8_desc;
    const NAME: &'static str = "conv_int8";
    const DEFAULT: Option<weir_conv_int8_desc> = Some(zeroed());

    fn new(desc: &mut weir_conv_int8_desc, _: Option<PackedShape>) -> Result<ConvInt8> {
        use weir_conv_int8_flags::*;
        let known = WEIR_CONV_INT8_BIAS as u64 | WEIR_CONV_INT8_SCALES as u64;
        let bits = flags(desc.flags, known, "desc->flags")?;
        let has = |flag: weir_conv_int8_flags| bits & flag as u64 != 0;
        reserved(desc.reserved)?;
        if !desc.scale.is_finite() {
            return Err(Error::invalid(format!("desc->scale is {}, expected a finite number", desc.scale)));
        }
        for (name, value, least, most) in [("zero_x", desc.zero_x, -128, 255), ("zero_w", desc.zero_w, -128, 127)] {
            if !(least..=most).contains(&value) {
                return Err(Error::out_of_range(format!("desc->{name} is {value}, expected {least} to {most}")));
            }
        }
        if desc.dtype == dtype::ANY {
            desc.dtype = dtype::S32;
        }
        if ![dtype::S32, dtype::F32, dtype::S8, dtype::U8].contains(&desc.dtype) {
            let text = format!("desc->dtype is {}, expected the number of s32, f32, s8 or u8", desc.dtype);
            return Err(Error::invalid(text));
        }
        check_step("desc->groups", desc.groups)?;
        desc.groups = desc.groups.max(1);
        if desc.scale == 0.0 {
            desc.scale = 1.0;
        }
        let windows = Windows {
            strides: desc.strides,
            dilations: desc.dilations,
            begin: desc.padding_begin,
            end: desc.padding_end,
            depth: AxisSettings::default(),
            edge: EdgeMode::Zero,
        };
        windows.check()?;
        Ok(ConvInt8 {
            windows,
            groups: desc.groups,
            bias: has(WEIR_CONV_INT8_BIAS),
            scales: has(WEIR_CONV_INT8_SCALES),
            scale: desc.scale,
            zero_x: desc.zero_x,
            zero_w: desc.zero_w,
            zero_y: desc.zero_y,
            dtype: desc.dtype,
        })
    }

    fn num_inputs(&self) -> usize {
        2 + usize::from(self.bias) + usize::from(self.scales)
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (x, weights) = (&inputs[0], &inputs[1]);
        if ![dtype::U8, dtype::S8].contains(&x.dtype) || !(3..=4).contains(&x.rank) {
            return Err(signature::mismatch("input", 0, "[N,C,W] or [N,C,H,W] of u8 or s8", x));
        }
        let values = if x.dtype == dtype::U8 { 0..=255 } else { -128..=127 };
        if !values.contains(&self.zero_x) {
            let (zero, name) = (self.zero_x, dtype::name(x.dtype));
            return Err(Error::invalid(format!("input 0: zero_x is {zero}, which is no {name}")));
        }
        let is_multiple = |count: i64| count == ANY_DIM || count > 0 && count % self.groups == 0;
        let channels = x.dims[1];
        if !is_multiple(channels) {
            let expected = whole_groups(self.groups, channels, "channel");
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        let mut patterns = [*x; 4];
        patterns[1] = Desc::new(dtype::S8, &[ANY_DIM; 4][..x.rank as usize]);
        patterns[1].dims[1] = if channels == ANY_DIM { ANY_DIM } else { channels / self.groups };
        signature::check_fit("input", &patterns[..2], &inputs[..2])?;
        let filters = weights.dims[0];
        if !is_multiple(filters) {
            let expected = whole_groups(self.groups, filters, "filter");
            return Err(signature::mismatch("input", 1, &expected, weights));
        }
        let mut count = 2;
        for (has, dtype) in [(self.bias, dtype::S32), (self.scales, dtype::F32)] {
            if has {
                patterns[count] = Desc::new(dtype, &[filters]);
                count += 1;
            }
        }
        signature::check_fit("input", &patterns[..count], inputs)?;
        let output = self.windows.output(x, filters, &weights.shape()[2..], OF_FILTERS)?;
        Desc { dtype: self.dtype, ..output }.check_open()
    }
}
