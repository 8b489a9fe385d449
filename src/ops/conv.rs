//! Creates a convolution, see weir_conv_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no bias,
//! no padding, strides of 1.
//!
//! Errors: INVALID_ARGUMENT (unknown flags, layouts, padding or activation); OUT_OF_RANGE (negative or enormous
//! numbers).
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
use crate::base::{Desc, Result, desc::ANY_DIM, dtype};
use std::mem::offset_of;

/// How the dimensions of the weights of a convolution are ordered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_weights_layout_value {
    /// [O, I / groups, KW], [O, I / groups, KH, KW], or [O, I / groups, KD, KH, KW].
    WEIR_LAYOUT_OIHW = 0,
}

/// A layout of weights: one of enum weir_weights_layout_value.
pub type weir_weights_layout = u32;

/// The values assumed beyond the ends of an axis.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_padding_value {
    /// Zeros.
    WEIR_PADDING_ZERO = 0,
    /// The elements mirrored at the first and the last one, which are not repeated. Shorter than the axis.
    WEIR_PADDING_REFLECT = 1,
}

/// A kind of padding: one of enum weir_padding_value.
pub type weir_padding = u32;

/// Flags of weir_conv_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_conv_flags {
    /// A third input, bias[O], is added to each channel.
    WEIR_CONV_BIAS = 1,
    /// The last input, of the shape of the output, is added. UNIMPLEMENTED on CUDA engines.
    WEIR_CONV_SUM = 2,
}

/// Convolution of signals [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W] in f32: each element of output
/// channel o is the sum, over the input channels of its group and the taps of the window, of weights times elements (a
/// cross-correlation: nothing is mirrored), plus the bias, plus the addend, then the activation. The sum of products and
/// bias has the bits that a convolution without addend and activation stores.
///
/// Padding of zeros is multiplied like other elements. From 16 channels and 24 filters of a group, 1024 pairs of them,
/// and 7 x 7 windows on, windows of 3 x 3 without a stride are computed by Winograd's F(2 x 2, 3 x 3): an infinity or a
/// NaN then may make NaN of elements of the output up to one away from those whose windows have it. Of volumes these are
/// the rows and columns of windows of any depth, and a channel counts once for each tap in depth.
///
/// Inputs: x; weights [O, C / groups, KW], [O, C / groups, KH, KW] or [O, C / groups, KD, KH, KW]; with WEIR_CONV_BIAS
/// bias[O]; with WEIR_CONV_SUM addend. Output: [N, O, OW], [N, O, OH, OW] or [N, O, OD, OH, OW], where
/// OW = (W + begin + end - ((KW - 1) * dilation + 1)) / stride + 1, rounded down. Volumes are UNIMPLEMENTED on CUDA
/// engines.
///
/// Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
/// be 0. Members of depth are for D of volumes, and otherwise 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_conv_desc {
    /// sizeof(weir_conv_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_conv_flags.
    pub flags: u64,
    /// How x and the output are ordered.
    pub data_layout: weir_data_layout,
    /// How the weights are ordered.
    pub weights_layout: weir_weights_layout,
    /// The values assumed beyond the ends.
    pub padding: weir_padding,
    /// The function applied to each element of the output.
    pub activation: weir_activation,
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
}

/// The owner of the taps, in texts.
const OF_FILTERS: &str = "of the filters (input 1)";

/// Filters over windows, then the bias, the addend and the activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conv {
    pub windows: Windows,
    /// At least 1.
    pub groups: i64,
    pub bias: bool,
    /// The last input, of the shape of the output, is added.
    pub sum: bool,
    pub activation: Activation,
}

impl Conv {
    /// Depth, rows and columns for inputs that fit and leave nothing open.
    pub fn axes(&self, inputs: &[Desc]) -> Result<[Axis; MOST_AXES]> {
        self.windows.axes(&inputs[0], &inputs[1].shape()[2..], OF_FILTERS)
    }
}

impl Operator for Conv {
    type Desc = weir_conv_desc;
    const NAME: &'static str = "conv";
    const DEFAULT: Option<weir_conv_desc> = Some(zeroed());
    const FIRST_SIZE: usize = offset_of!(weir_conv_desc, depth_stride);

    fn new(desc: &mut weir_conv_desc, _: Option<PackedShape>) -> Result<Conv> {
        use weir_conv_flags::*;
        let bits = flags(desc.flags, WEIR_CONV_BIAS as u64 | WEIR_CONV_SUM as u64, "desc->flags")?;
        let (bias, sum) = (bits & WEIR_CONV_BIAS as u64 != 0, bits & WEIR_CONV_SUM as u64 != 0);
        value_of!("data_layout", desc.data_layout, weir_data_layout_value { WEIR_LAYOUT_NCHW })?;
        value_of!("weights_layout", desc.weights_layout, weir_weights_layout_value { WEIR_LAYOUT_OIHW })?;
        let padding =
            value_of!("padding", desc.padding, weir_padding_value { WEIR_PADDING_ZERO, WEIR_PADDING_REFLECT })?;
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
            edge: if padding == weir_padding_value::WEIR_PADDING_ZERO { EdgeMode::Zero } else { EdgeMode::Reflect },
        };
        windows.check()?;
        Ok(Conv { windows, groups: desc.groups, bias, sum, activation })
    }

    fn num_inputs(&self) -> usize {
        2 + usize::from(self.bias) + usize::from(self.sum)
    }

    fn dim_from(&self, inputs: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        let from = match dim {
            0 => Some((0, 0)),
            1 => Some((1, 0)),
            _ => {
                let axes = inputs[0].shape()[2..].len();
                self.windows.keeps(dim - 2, axes, inputs[1].dims[dim]).then_some((0, dim))
            }
        };
        [from, None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (x, weights) = (&inputs[0], &inputs[1]);
        check_data(x)?;
        let is_multiple = |count: i64| count == ANY_DIM || count > 0 && count % self.groups == 0;
        let channels = x.dims[1];
        if !is_multiple(channels) {
            let expected = whole_groups(self.groups, channels, "channel");
            return Err(signature::mismatch("input", 0, &expected, x));
        }
        let mut pattern = Desc::new(dtype::F32, &[ANY_DIM; 5][..x.rank as usize]);
        pattern.dims[1] = if channels == ANY_DIM { ANY_DIM } else { channels / self.groups };
        signature::check_fit("input", &[*x, pattern], &inputs[..2])?;
        let filters = weights.dims[0];
        if !is_multiple(filters) {
            let expected = whole_groups(self.groups, filters, "filter");
            return Err(signature::mismatch("input", 1, &expected, weights));
        }
        let bias = Desc::new(dtype::F32, &[filters]);
        if self.bias {
            signature::check_fit("input", &[*x, pattern, bias], &inputs[..3])?;
        }
        let output = self.windows.output(x, filters, &weights.shape()[2..], OF_FILTERS)?;
        if self.sum {
            let patterns = if self.bias { [*x, pattern, bias, output] } else { [*x, pattern, output, output] };
            signature::check_fit("input", &patterns[..inputs.len()], inputs)?;
        }
        Ok(output)
    }
}
