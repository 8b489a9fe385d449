//! Creates a transposed convolution, see weir_conv_transpose_desc. Shapes are checked when it is enqueued or compiled.
//! NULL desc = no bias, no padding, strides of 1.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, layout or activation); OUT_OF_RANGE (negative or enormous numbers).
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

use super::activation::{Activation, weir_activation};
use super::axis::{Axis, EdgeMode};
use super::check::{flags, value_of};
use super::operator::{Operator, PackedShape, zeroed};
use super::signature;
use super::windows::{
    AxisSettings, MOST_AXES, Windows, check_data, check_step, weir_data_layout, weir_data_layout_value, whole_groups,
};
use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};
use std::mem::offset_of;

/// Flags of weir_conv_transpose_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_conv_transpose_flags {
    /// A third input, bias[O], is added to each channel.
    WEIR_CONV_TRANSPOSE_BIAS = 1,
}

/// Transposed convolution of signals [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W] in f32: each element,
/// times the weights of its channel, is added to the window of the output that a convolution with these settings would
/// have made it of; then the bias, then the activation.
///
/// Inputs: x; weights [C, O / groups, KW], [C, O / groups, KH, KW] or [C, O / groups, KD, KH, KW]; with
/// WEIR_CONV_TRANSPOSE_BIAS bias[O]. Output: [N, O, OW], [N, O, OH, OW] or [N, O, OD, OH, OW], where
/// OW = (W - 1) * stride + (KW - 1) * dilation + 1 + more - begin - end.
///
/// Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
/// be 0. Members of depth are for D of volumes, and otherwise 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_conv_transpose_desc {
    /// sizeof(weir_conv_transpose_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_conv_transpose_flags.
    pub flags: u64,
    /// How x and the output are ordered.
    pub data_layout: weir_data_layout,
    /// The function applied to each element of the output.
    pub activation: weir_activation,
    /// Number of groups that the channels are divided into; 0 = 1. Both C and O are multiples of it.
    pub groups: i64,
    /// Distance from one window to the next, in elements; 0 = 1.
    pub strides: [i64; 2],
    /// Distance from one tap to the next, in elements; 0 = 1.
    pub dilations: [i64; 2],
    /// Elements that are left out of the output in front.
    pub padding_begin: [i64; 2],
    /// Elements that are left out of the output behind.
    pub padding_end: [i64; 2],
    /// Elements that the output has more behind: what a stride of the convolution left over.
    pub more: [i64; 2],
    /// A parameter of the activation; 0 if it has none.
    pub alpha: f32,
    /// A second one; 0 if it has none.
    pub beta: f32,
    /// As strides, of the depth of volumes; 0 = 1.
    pub depth_stride: i64,
    /// As dilations, of the depth of volumes; 0 = 1.
    pub depth_dilation: i64,
    /// As padding_begin, of the depth of volumes.
    pub depth_padding_begin: i64,
    /// As padding_end, of the depth of volumes.
    pub depth_padding_end: i64,
    /// As more, of the depth of volumes.
    pub depth_more: i64,
}

/// Elements times filters, added up in windows; then the bias and the activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvTranspose {
    pub windows: Windows,
    pub more: [i64; 2],
    pub depth_more: i64,
    /// At least 1.
    pub groups: i64,
    pub bias: bool,
    pub activation: Activation,
}

impl ConvTranspose {
    /// Depth, rows and columns of the convolution of which this is the reverse: its windows are the elements of x, and
    /// its input is the output. For inputs that fit and leave nothing open.
    pub fn axes(&self, inputs: &[Desc]) -> Result<[Axis; MOST_AXES]> {
        let mut axes = [Axis::ONE; MOST_AXES];
        let (x, sizes) = (&inputs[0], &inputs[0].shape()[2..]);
        let first = MOST_AXES - sizes.len();
        for (i, (&size, &taps)) in sizes.iter().zip(&inputs[1].shape()[2..]).enumerate() {
            axes[first + i] = self.axis(i, size, taps, x)?;
        }
        Ok(axes)
    }

    fn axis(&self, i: usize, size: i64, taps: i64, x: &Desc) -> Result<Axis> {
        let axes = x.shape()[2..].len();
        let AxisSettings { stride, dilation, begin, end } = self.windows.settings(i, axes);
        let more = match i.checked_sub(usize::from(axes == MOST_AXES)) {
            Some(i) => self.more[i],
            None => self.depth_more,
        };
        let wrong = |text: String| Error::invalid(format!("input 0: dimension {} of {} {text}", i + 2, x.text()));
        let (stride, dilation, most) = (stride.max(1), dilation.max(1), i64::from(i32::MAX));
        if taps < 1 {
            return Err(wrong("needs at least 1 tap of the filters (input 1)".into()));
        }
        if taps > most || !(1..=most).contains(&size) {
            return Err(wrong(format!("and {taps} taps of the filters (input 1) are beyond what windows can have")));
        }
        // No overflow: all numbers are below 2^31.
        let whole = (size - 1) * stride + (taps - 1) * dilation + 1 + more;
        let result = whole - begin - end;
        if result < 0 {
            return Err(wrong(format!("makes {whole} elements, of which {} cannot be left out", begin + end)));
        }
        Ok(Axis {
            input: result as usize,
            output: size as usize,
            taps: taps as usize,
            stride: stride as usize,
            dilation: dilation as usize,
            before: begin as usize,
            edge: self.windows.edge,
        })
    }
}

impl Operator for ConvTranspose {
    type Desc = weir_conv_transpose_desc;
    const NAME: &'static str = "conv_transpose";
    const DEFAULT: Option<weir_conv_transpose_desc> = Some(zeroed());
    const FIRST_SIZE: usize = offset_of!(weir_conv_transpose_desc, depth_stride);

    fn new(desc: &mut weir_conv_transpose_desc, _: Option<PackedShape>) -> Result<ConvTranspose> {
        let flag = weir_conv_transpose_flags::WEIR_CONV_TRANSPOSE_BIAS as u64;
        let bias = flags(desc.flags, flag, "desc->flags")? != 0;
        value_of!("data_layout", desc.data_layout, weir_data_layout_value { WEIR_LAYOUT_NCHW })?;
        let activation = Activation::checked(desc.activation, desc.alpha, desc.beta)?;
        check_step("desc->groups", desc.groups)?;
        desc.groups = desc.groups.max(1);
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
        for (i, more) in desc.more.into_iter().enumerate() {
            check_step(format_args!("desc->more[{i}]"), more)?;
        }
        check_step("desc->depth_more", desc.depth_more)?;
        let (more, depth_more, groups) = (desc.more, desc.depth_more, desc.groups);
        Ok(ConvTranspose { windows, more, depth_more, groups, bias, activation })
    }

    fn num_inputs(&self) -> usize {
        2 + usize::from(self.bias)
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (x, weights) = (&inputs[0], &inputs[1]);
        check_data(x)?;
        let channels = x.dims[1];
        if channels != ANY_DIM && (channels < 1 || channels % self.groups != 0) {
            let expected = whole_groups(self.groups, channels, "channel");
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        let mut pattern = Desc::new(dtype::F32, &[ANY_DIM; 5][..x.rank as usize]);
        pattern.dims[0] = channels;
        signature::check_fit("input", &[*x, pattern], &inputs[..2])?;
        let filters = weights.dims[1];
        if filters != ANY_DIM && filters < 1 {
            return Err(signature::mismatch("input", 1, "at least 1 filter", weights));
        }
        let mut output = *x;
        output.dims[1] = match filters {
            ANY_DIM => ANY_DIM,
            _ => filters
                .checked_mul(self.groups)
                .ok_or_else(|| Error::out_of_range("the output has more channels than can be counted"))?,
        };
        if self.bias {
            signature::check_fit("input", &[*x, pattern, Desc::new(dtype::F32, &[output.dims[1]])], inputs)?;
        }
        self.windows.check_axes(x, "settings")?;
        for (rank, more, expected) in [
            (4, self.more[1], "an image, f32[?,?,?,?], as desc->more has two numbers"),
            (5, self.depth_more, "a volume, f32[?,?,?,?,?], as desc->depth_more is set"),
        ] {
            if x.rank < rank && more != 0 {
                return Err(signature::mismatch("input", 0, expected, x));
            }
        }
        for (i, (&size, &taps)) in x.shape()[2..].iter().zip(&weights.shape()[2..]).enumerate() {
            output.dims[2 + i] = match [size, taps].contains(&ANY_DIM) {
                true => ANY_DIM,
                false => self.axis(i, size, taps, x)?.input as i64,
            };
        }
        output.check_open()
    }
}
