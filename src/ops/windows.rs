//! Windows along the axes of signals and images: settings, and their output shapes.
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

use super::axis::{Axis, EdgeMode};
use super::signature;
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};
use std::fmt::Display;

/// How the dimensions of images and signals are ordered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_data_layout_value {
    /// [N, C, W], or [N, C, H, W].
    WEIR_LAYOUT_NCHW = 0,
}

/// A layout of data: one of enum weir_data_layout_value.
pub type weir_data_layout = u32;

/// Maximum size, stride and padding, so that no computation with them overflows.
pub const MAX_STEP: i64 = 1 << 30;

/// Settings of both axes as the host gave them: strides and dilations of 0 are 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    pub strides: [i64; 2],
    pub dilations: [i64; 2],
    pub begin: [i64; 2],
    pub end: [i64; 2],
    pub edge: EdgeMode,
}

/// The count of channels or filters that is expected in place of one that is no whole number of groups.
pub(super) fn whole_groups(groups: i64, count: i64, what: &str) -> String {
    match (count, groups) {
        (0, 1) => format!("at least 1 {what}"),
        (0, _) => format!("at least {groups} {what}s"),
        _ => format!("a multiple of {groups} {what}s"),
    }
}

impl Windows {
    /// Refuses numbers that no window can have.
    pub(super) fn check(&self) -> Result<()> {
        for (name, pair) in [
            ("strides", self.strides),
            ("dilations", self.dilations),
            ("padding_begin", self.begin),
            ("padding_end", self.end),
        ] {
            for (i, value) in pair.into_iter().enumerate() {
                check_step(format_args!("desc->{name}[{i}]"), value)?;
            }
        }
        Ok(())
    }

    /// Refuses a window without taps, and padding that a whole window could lie in.
    pub(super) fn check_kernel(&self, kernel: [i64; 2]) -> Result<()> {
        for (i, taps) in kernel.into_iter().enumerate() {
            // Signals have one axis.
            let least = 1 - i as i64;
            if !(least..=MAX_STEP).contains(&taps) {
                return Err(Error::out_of_range(format!(
                    "desc->kernel[{i}] is {taps}, expected {least} to {MAX_STEP}"
                )));
            }
            let span = (taps - 1) * self.dilations[i].max(1) + 1;
            let padding = self.begin[i].max(self.end[i]);
            if padding > 0 && padding >= span {
                let what =
                    format!("desc has a padding of {padding} on axis {i}, expected less than the {span} of a window");
                return Err(Error::out_of_range(what));
            }
        }
        Ok(())
    }

    /// Whether all settings are default.
    pub(super) fn is_default(&self) -> bool {
        self.is_of_signals() && [self.strides, self.dilations, self.begin, self.end].iter().all(|pair| pair[0] == 0)
    }

    /// Whether only the first axis is set.
    fn is_of_signals(&self) -> bool {
        [self.strides, self.dilations, self.begin, self.end].iter().all(|pair| pair[1] == 0)
    }

    /// Rows and columns of an input [N, C, W] or [N, C, H, W] for a window of these taps. `of` names the object with
    /// the taps.
    pub(super) fn axes(&self, x: &Desc, taps: &[i64], of: &str) -> Result<(Axis, Axis)> {
        match x.shape()[2..] {
            [width] => Ok((Axis::ONE, self.axis(0, width, taps[0], x, of)?)),
            _ => Ok((self.axis(0, x.dims[2], taps[0], x, of)?, self.axis(1, x.dims[3], taps[1], x, of)?)),
        }
    }

    /// Whether there are as many windows along an axis as elements.
    pub(super) fn keeps(&self, axis: usize, taps: i64) -> bool {
        let span = taps.saturating_sub(1).saturating_mul(self.dilations[axis].max(1));
        taps > 0 && self.strides[axis] <= 1 && self.begin[axis] + self.end[axis] == span
    }

    /// The output: N, channels, and the windows of each axis, as far as these are known.
    pub(super) fn output(&self, x: &Desc, channels: i64, taps: &[i64], of: &str) -> Result<Desc> {
        if x.rank == 3 && !self.is_of_signals() {
            let expected = "an image, f32[?,?,?,?], as desc has strides, dilations or padding of two axes";
            return Err(signature::mismatch("input", 0, expected, x));
        }
        let mut output = *x;
        output.dims[1] = channels;
        for (i, (&size, &taps)) in x.shape()[2..].iter().zip(taps).enumerate() {
            output.dims[2 + i] = match [size, taps].contains(&ANY_DIM) {
                true => ANY_DIM,
                false => self.axis(i, size, taps, x, of)?.output as i64,
            };
        }
        output.check_open()
    }

    fn axis(&self, i: usize, size: i64, taps: i64, x: &Desc, of: &str) -> Result<Axis> {
        let dim = x.shape().len() - x.shape()[2..].len() + i;
        let wrong = |text: String| Error::invalid(format!("input 0: dimension {dim} of {} {text}", x.text()));
        let (stride, dilation) = (self.strides[i].max(1), self.dilations[i].max(1));
        let (begin, end) = (self.begin[i], self.end[i]);
        if taps < 1 {
            return Err(wrong(format!("needs at least 1 tap {of}")));
        }
        if taps > MAX_STEP || !(0..=MAX_STEP).contains(&size) {
            return Err(wrong(format!("and {taps} taps {of} are beyond what windows can have")));
        }
        if self.edge == EdgeMode::Reflect && begin.max(end) >= size {
            return Err(wrong(format!("is too short to be mirrored in a padding of {begin} and {end}")));
        }
        let span = (taps - 1) * dilation + 1;
        let room = size + begin + end;
        if room < span {
            return Err(wrong(format!("with a padding of {begin} and {end} is shorter than the {span} elements {of}")));
        }
        Ok(Axis {
            input: size as usize,
            output: ((room - span) / stride + 1) as usize,
            taps: taps as usize,
            stride: stride as usize,
            dilation: dilation as usize,
            before: begin as usize,
            edge: self.edge,
        })
    }
}

/// Refuses a negative or enormous number.
pub(super) fn check_step(name: impl Display, value: i64) -> Result<()> {
    if !(0..=MAX_STEP).contains(&value) {
        return Err(Error::out_of_range(format!("{name} is {value}, expected 0 to {MAX_STEP}")));
    }
    Ok(())
}

/// Refuses anything but an f32 signal or image.
pub(super) fn check_data(x: &Desc) -> Result<()> {
    if x.dtype != dtype::F32 || !(3..=4).contains(&x.rank) {
        return Err(signature::mismatch("input", 0, "f32[N,C,W] or f32[N,C,H,W]", x));
    }
    Ok(())
}
