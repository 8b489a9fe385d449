//! Convolution and pooling: descriptors.
//!
//! Chapter: Convolution.
#![forbid(unsafe_code)]

/// A function applied to each element of a result before it is stored.
///
/// Chapter: Products.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_activation_value {
    /// Nothing.
    WEIR_ACTIVATION_NONE = 0,
    /// max(x, 0). A NaN stays a NaN.
    WEIR_ACTIVATION_RELU = 1,
    /// x / 2 * (1 + erf(x / sqrt 2)).
    WEIR_ACTIVATION_GELU_ERF = 2,
    /// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
    WEIR_ACTIVATION_GELU_TANH = 3,
    /// 1 / (1 + e^-x).
    WEIR_ACTIVATION_SIGMOID = 4,
    /// Hyperbolic tangent.
    WEIR_ACTIVATION_TANH = 5,
}

/// An activation: one of enum weir_activation_value.
///
/// Chapter: Products.
pub type weir_activation = u32;

/// How the dimensions of images and signals are ordered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_data_layout_value {
    /// [N, C, W], or [N, C, H, W].
    WEIR_LAYOUT_NCHW = 0,
}

/// A layout of data: one of enum weir_data_layout_value.
pub type weir_data_layout = u32;

/// How the dimensions of the weights of a convolution are ordered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_weights_layout_value {
    /// [O, I / groups, KW], or [O, I / groups, KH, KW].
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
}

/// Convolution of signals [N, C, W] or images [N, C, H, W] in f32: each element of output channel o is the sum, over
/// the input channels of its group and the taps of the window, of weights times elements (a cross-correlation: nothing
/// is mirrored), plus the bias, then the activation.
///
/// Inputs: x; weights [O, C / groups, KW] or [O, C / groups, KH, KW]; with WEIR_CONV_BIAS bias[O]. Output: [N, O, OW]
/// or [N, O, OH, OW], where OW = (W + begin + end - ((KW - 1) * dilation + 1)) / stride + 1, rounded down.
///
/// Members of two numbers are for H and W of images; of signals the first one counts, and the second must be 0.
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
}

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
    /// The window is the whole signal or image; the output has one element per channel. The other members are 0.
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
