//! Creates a pooling, see weir_pooling_desc. Shapes are checked when it is enqueued or compiled.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, op or layout, windows beside WEIR_POOLING_GLOBAL); OUT_OF_RANGE (negative
//! or enormous numbers, a window without taps, padding as long as the window).
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

use super::axis::{Axis, EdgeMode};
use super::check::{flags, value_of};
use super::operator::{Operator, PackedShape};
use super::signature;
use super::windows::{Windows, check_data, weir_data_layout, weir_data_layout_value};
use crate::base::{Desc, Error, Result};

/// The value that pooling computes from a window.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_pooling_op_value {
    /// The greatest element; NaN if there is one; -infinity for a window without elements.
    WEIR_POOLING_MAX = 1,
    /// The average over all taps; padding counts as zeros.
    WEIR_POOLING_AVERAGE = 2,
    /// The average over the elements, without padding; 0 for a window without elements.
    WEIR_POOLING_AVERAGE_INSIDE = 3,
}

/// A kind of pooling: one of enum weir_pooling_op_value.
pub type weir_pooling_op = u32;

/// Flags of weir_pooling_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_pooling_flags {
    /// The window is the whole signal or image, which has at least one element; the output has one element per channel.
    /// The other members are 0.
    WEIR_POOLING_GLOBAL = 1,
}

/// Pooling of signals [N, C, W] or images [N, C, H, W] in f32, channel by channel. Input: x. Output: [N, C, OW] or [N,
/// C, OH, OW], as large as that of a convolution with such windows.
///
/// Members of two numbers are for H and W of images; of signals the first one counts, and the second must be 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_pooling_desc {
    /// sizeof(weir_pooling_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_pooling_flags.
    pub flags: u64,
    /// The value computed from a window.
    pub op: weir_pooling_op,
    /// How x and the output are ordered.
    pub data_layout: weir_data_layout,
    /// Taps of a window.
    pub kernel: [i64; 2],
    /// Distance from one window to the next, in elements; 0 = 1.
    pub strides: [i64; 2],
    /// Distance from one tap to the next, in elements; 0 = 1.
    pub dilations: [i64; 2],
    /// Elements of padding before the first one; fewer than the window spans.
    pub padding_begin: [i64; 2],
    /// Elements of padding behind the last one; fewer than the window spans.
    pub padding_end: [i64; 2],
}

/// The owner of the taps, in texts.
const OF_WINDOW: &str = "of a window";

/// One number for each window of each channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooling {
    pub op: weir_pooling_op_value,
    /// `None` for windows as large as the input.
    pub kernel: Option<[i64; 2]>,
    pub windows: Windows,
}

impl Pooling {
    /// Rows and columns for an input that fits and leaves nothing open.
    pub fn axes(&self, x: &Desc) -> Result<(Axis, Axis)> {
        self.windows.axes(x, self.taps(x), OF_WINDOW)
    }

    fn taps<'a>(&'a self, x: &'a Desc) -> &'a [i64] {
        match &self.kernel {
            Some(kernel) => kernel,
            None => &x.shape()[2..],
        }
    }
}

impl Operator for Pooling {
    type Desc = weir_pooling_desc;
    const NAME: &'static str = "pooling";

    fn new(desc: &mut weir_pooling_desc, _: Option<PackedShape>) -> Result<Pooling> {
        let global = flags(desc.flags, weir_pooling_flags::WEIR_POOLING_GLOBAL as u64, "desc->flags")? != 0;
        value_of!("data_layout", desc.data_layout, weir_data_layout_value { WEIR_LAYOUT_NCHW })?;
        let op = value_of!(
            "op",
            desc.op,
            weir_pooling_op_value { WEIR_POOLING_MAX, WEIR_POOLING_AVERAGE, WEIR_POOLING_AVERAGE_INSIDE }
        )?;
        let windows = Windows {
            strides: desc.strides,
            dilations: desc.dilations,
            begin: desc.padding_begin,
            end: desc.padding_end,
            edge: EdgeMode::Zero,
        };
        windows.check()?;
        if !global {
            windows.check_kernel(desc.kernel)?;
        } else if desc.kernel != [0; 2] || !windows.is_default() {
            let text = "desc sets kernel, strides, dilations or padding, and WEIR_POOLING_GLOBAL";
            return Err(Error::invalid(text));
        }
        Ok(Pooling { op, kernel: (!global).then_some(desc.kernel), windows })
    }

    fn dim_from(&self, _: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        let keeps = |axis: usize| self.kernel.is_some_and(|kernel| self.windows.keeps(axis, kernel[axis]));
        [(dim < 2 || keeps(dim - 2)).then_some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let x = &inputs[0];
        check_data(x)?;
        let sizes = &x.shape()[2..];
        if self.kernel.is_none() && sizes.contains(&0) {
            return Err(signature::mismatch("input", 0, "something to pool in each channel", x));
        }
        if let Some([_, second]) = self.kernel
            && (second != 0) != (sizes.len() == 2)
        {
            let expected = if second == 0 { "a signal, f32[?,?,?]" } else { "an image, f32[?,?,?,?]" };
            return Err(signature::mismatch("input", 0, &format!("{expected}, as desc->kernel says"), x));
        }
        let mut output = self.windows.output(x, x.dims[1], self.taps(x), OF_WINDOW)?;
        if self.kernel.is_none() {
            output.dims[2..x.rank as usize].fill(1);
        }
        output.check_open()
    }
}
