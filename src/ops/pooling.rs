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
use super::windows::{AxisSettings, MOST_AXES, Windows, check_data, weir_data_layout, weir_data_layout_value};
use crate::base::{Desc, Error, Result};
use std::mem::offset_of;

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
    /// The window is the whole signal, image or volume, which has at least one element; the output has one element per
    /// channel. The other members are 0.
    WEIR_POOLING_GLOBAL = 1,
}

/// Pooling of signals [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W] in f32, channel by channel. Input: x.
/// Output: [N, C, OW], [N, C, OH, OW] or [N, C, OD, OH, OW], as large as that of a convolution with such windows.
/// Windows with a depth are UNIMPLEMENTED on CUDA engines.
///
/// Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
/// be 0. Members of depth are for D of volumes, and otherwise 0.
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
    /// As kernel, of the depth of volumes.
    pub depth_kernel: i64,
    /// As strides, of the depth of volumes; 0 = 1.
    pub depth_stride: i64,
    /// As dilations, of the depth of volumes; 0 = 1.
    pub depth_dilation: i64,
    /// As padding_begin, of the depth of volumes.
    pub depth_padding_begin: i64,
    /// As padding_end, of the depth of volumes.
    pub depth_padding_end: i64,
}

/// The owner of the taps, in texts.
const OF_WINDOW: &str = "of a window";

/// One number for each window of each channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooling {
    pub op: weir_pooling_op_value,
    /// `None` for windows as large as the input.
    pub kernel: Option<[i64; 2]>,
    /// Taps of a window in the depth of volumes; 0 of other windows.
    pub depth_kernel: i64,
    pub windows: Windows,
}

impl Pooling {
    /// Depth, rows and columns for an input that fits and leaves nothing open.
    pub fn axes(&self, x: &Desc) -> Result<[Axis; MOST_AXES]> {
        self.windows.axes(x, &self.taps(x), OF_WINDOW)
    }

    /// Those of the input's axes come first.
    fn taps(&self, x: &Desc) -> [i64; MOST_AXES] {
        match (self.kernel, x.shape().len()) {
            (None, _) => [x.dims[2], x.dims[3], x.dims[4]],
            (Some([rows, columns]), 5) => [self.depth_kernel, rows, columns],
            (Some([rows, columns]), _) => [rows, columns, 0],
        }
    }
}

impl Operator for Pooling {
    type Desc = weir_pooling_desc;
    const NAME: &'static str = "pooling";
    const FIRST_SIZE: usize = offset_of!(weir_pooling_desc, depth_kernel);

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
            depth: AxisSettings {
                stride: desc.depth_stride,
                dilation: desc.depth_dilation,
                begin: desc.depth_padding_begin,
                end: desc.depth_padding_end,
            },
            edge: EdgeMode::Zero,
        };
        windows.check()?;
        if !global {
            windows.check_kernel(desc.kernel, desc.depth_kernel)?;
        } else if (desc.kernel, desc.depth_kernel) != ([0; 2], 0) || !windows.is_default() {
            let text = "desc sets kernel, strides, dilations or padding, and WEIR_POOLING_GLOBAL";
            return Err(Error::invalid(text));
        }
        Ok(Pooling { op, kernel: (!global).then_some(desc.kernel), depth_kernel: desc.depth_kernel, windows })
    }

    fn dim_from(&self, inputs: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        let (taps, axes) = (self.taps(&inputs[0]), inputs[0].shape()[2..].len());
        let keeps = |axis: usize| self.kernel.is_some() && self.windows.keeps(axis, axes, taps[axis]);
        [(dim < 2 || keeps(dim - 2)).then_some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let x = &inputs[0];
        check_data(x)?;
        let sizes = &x.shape()[2..];
        if self.kernel.is_none() && sizes.contains(&0) {
            return Err(signature::mismatch("input", 0, "something to pool in each channel", x));
        }
        if let Some([_, second]) = self.kernel {
            let (axes, expected) = match (self.depth_kernel, second) {
                (1.., _) => (3, "a volume, f32[?,?,?,?,?], as desc->depth_kernel says"),
                (_, 0) => (1, "a signal, f32[?,?,?], as desc->kernel says"),
                _ => (2, "an image, f32[?,?,?,?], as desc->kernel says"),
            };
            if sizes.len() != axes {
                return Err(signature::mismatch("input", 0, expected, x));
            }
        }
        let mut output = self.windows.output(x, x.dims[1], &self.taps(x), OF_WINDOW)?;
        if self.kernel.is_none() {
            output.dims[2..x.rank as usize].fill(1);
        }
        output.check_open()
    }
}
