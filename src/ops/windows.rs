//! Windows along the axes of signals, images and volumes: settings, and their output shapes.
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

use super::axis::{Axis, EdgeMode};
use super::signature;
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};
use std::fmt::Display;

/// How the dimensions of signals, images and volumes are ordered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_data_layout_value {
    /// [N, C, W], [N, C, H, W], or [N, C, D, H, W].
    WEIR_LAYOUT_NCHW = 0,
}

/// A layout of data: one of enum weir_data_layout_value.
pub type weir_data_layout = u32;

/// Maximum size, stride and padding, so that no computation with them overflows.
pub const MAX_STEP: i64 = 1 << 30;

/// Most axes of windows: of depth, rows and columns.
pub const MOST_AXES: usize = 3;

/// Settings of one axis as the host gave them: strides and dilations of 0 are 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AxisSettings {
    pub stride: i64,
    pub dilation: i64,
    pub begin: i64,
    pub end: i64,
}

/// Settings of all axes as the host gave them: strides and dilations of 0 are 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    /// Of rows and columns; of signals the first one counts.
    pub strides: [i64; 2],
    pub dilations: [i64; 2],
    pub begin: [i64; 2],
    pub end: [i64; 2],
    /// Of the depth of volumes.
    pub depth: AxisSettings,
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
        let AxisSettings { stride, dilation, begin, end } = self.depth;
        check_step("desc->depth_stride", stride)?;
        check_step("desc->depth_dilation", dilation)?;
        check_step("desc->depth_padding_begin", begin)?;
        check_step("desc->depth_padding_end", end)
    }

    /// Refuses a window without taps, and padding that a whole window could lie in. Only windows of volumes have a
    /// depth.
    pub(super) fn check_kernel(&self, kernel: [i64; 2], depth: i64) -> Result<()> {
        let is_volume = depth > 0;
        let axis = |i: usize| self.settings(i, 2);
        for (name, of, taps, least, settings) in [
            ("kernel[0]", "axis 0", kernel[0], 1, axis(0)),
            // Signals have one axis.
            ("kernel[1]", "axis 1", kernel[1], is_volume.into(), axis(1)),
            ("depth_kernel", "the axis of depth", depth, 0, self.depth),
        ] {
            if !(least..=MAX_STEP).contains(&taps) {
                return Err(Error::out_of_range(format!("desc->{name} is {taps}, expected {least} to {MAX_STEP}")));
            }
            let span = (taps - 1) * settings.dilation.max(1) + 1;
            let padding = settings.begin.max(settings.end);
            if padding > 0 && padding >= span {
                let what =
                    format!("desc has a padding of {padding} on {of}, expected less than the {span} of a window");
                return Err(Error::out_of_range(what));
            }
        }
        Ok(())
    }

    /// The settings of one of so many axes, of which that of depth is the first of three.
    pub fn settings(&self, axis: usize, axes: usize) -> AxisSettings {
        match axis.checked_sub(usize::from(axes == MOST_AXES)) {
            None => self.depth,
            Some(i) => AxisSettings {
                stride: self.strides[i],
                dilation: self.dilations[i],
                begin: self.begin[i],
                end: self.end[i],
            },
        }
    }

    /// Whether all settings are default.
    pub(super) fn is_default(&self) -> bool {
        (0..MOST_AXES).all(|axis| self.settings(axis, MOST_AXES) == AxisSettings::default())
    }

    /// Refuses an input with fewer axes than are set. `what` names the settings of two axes.
    pub(super) fn check_axes(&self, x: &Desc, what: &str) -> Result<()> {
        if x.rank == 3 && self.settings(1, 2) != AxisSettings::default() {
            let expected = format!("an image, f32[?,?,?,?], as desc has {what} of two axes");
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        if x.rank < 5 && self.depth != AxisSettings::default() {
            let expected = format!("a volume, f32[?,?,?,?,?], as desc has {what} of depth");
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        Ok(())
    }

    /// Depth, rows and columns of an input [N, C, W], [N, C, H, W] or [N, C, D, H, W] for a window of these taps. `of`
    /// names the object with the taps.
    pub(super) fn axes(&self, x: &Desc, taps: &[i64], of: &str) -> Result<[Axis; MOST_AXES]> {
        let mut axes = [Axis::ONE; MOST_AXES];
        let sizes = &x.shape()[2..];
        let first = MOST_AXES - sizes.len();
        for (i, (&size, &taps)) in sizes.iter().zip(taps).enumerate() {
            axes[first + i] = self.axis(i, size, taps, x, of)?;
        }
        Ok(axes)
    }

    /// Whether there are as many windows along one of so many axes as elements.
    pub(super) fn keeps(&self, axis: usize, axes: usize, taps: i64) -> bool {
        let AxisSettings { stride, dilation, begin, end } = self.settings(axis, axes);
        let span = taps.saturating_sub(1).saturating_mul(dilation.max(1));
        taps > 0 && stride <= 1 && begin + end == span
    }

    /// The output: N, channels, and the windows of each axis, as far as these are known.
    pub(super) fn output(&self, x: &Desc, channels: i64, taps: &[i64], of: &str) -> Result<Desc> {
        self.check_axes(x, "strides, dilations or padding")?;
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
        let wrong = |text: String| Error::invalid(format!("input 0: dimension {} of {} {text}", i + 2, x.text()));
        let AxisSettings { stride, dilation, begin, end } = self.settings(i, x.shape()[2..].len());
        let (stride, dilation) = (stride.max(1), dilation.max(1));
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

/// Refuses anything but an f32 signal, image or volume.
pub(super) fn check_data(x: &Desc) -> Result<()> {
    if x.dtype != dtype::F32 || !(3..=5).contains(&x.rank) {
        return Err(signature::mismatch("input", 0, "f32[N,C,W], f32[N,C,H,W] or f32[N,C,D,H,W]", x));
    }
    Ok(())
}
