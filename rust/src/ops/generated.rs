//! The operators. Generated from `src/ops`; do not edit.

use super::sealed::Create;
use super::{Operator, PackedWeights, bits, filled};
use crate::error::check;
use crate::{DType, Result};
use weir_core::abi::{weir_engine, weir_kernel};
use weir_core::ffi;

/// Matrix product: C\[..., M, N\] = activation(A\[..., M, K\] \* B\[..., K, N\] + bias\[N\] + addend\[..., M, N\]). A
/// and B are both of f32, f16 or bf16; C, bias and addend are of the same type, or of f32 with
/// [`f32_result`](Matmul::f32_result). Accumulators are f32, rounded once at the end. Leading dimensions are aligned at
/// the last one and broadcast: a dimension of 1 is broadcast. In a graph, dimensions of the inputs of this and of
/// weir's other kernels may be open ([`OPEN`](crate::OPEN)): then the run checks whether they fit. Only the last
/// dimension of the indices of [`GatherNd`] and of [`ScatterMode::Nd`], which decides about ranks, is fixed.
///
/// Inputs: A; B, unless there are packed `weights`; with [`bias`](Matmul::bias) bias; with [`sum`](Matmul::sum) addend.
/// Output: C. A B that is a constant of a graph is packed by compile, once for all kernels of a program with that
/// constant.
#[derive(Clone, Debug, Default)]
pub struct Matmul {
    /// A is given as \[..., K, M\].
    pub transpose_a: bool,
    /// B is given as \[..., N, K\].
    pub transpose_b: bool,
    /// A third input, bias\[N\], is added to each row.
    pub bias: bool,
    /// The last input, of the shape of C, is added.
    pub sum: bool,
    /// C, bias and addend are f32 even if A and B are f16 or bf16.
    pub f32_result: bool,
    /// f32 factors may be rounded to TF32 (10 bits of fraction) before they are multiplied, where the device has units
    /// for it and is faster with them: on CUDA engines with cuBLASLt. No effect elsewhere. Without this flag f32
    /// products use all bits.
    pub allow_tf32: bool,
    /// The function applied to each element of C at the end.
    pub activation: Activation,
    /// B, packed from the type of A, in place of the input; `None` = B is an input. Excludes
    /// [`transpose_b`](Matmul::transpose_b): the orientation was fixed when the weights were packed.
    pub weights: Option<PackedWeights>,
    /// A parameter of the activation; 0 if it has none.
    pub alpha: f32,
    /// A second one; 0 if it has none.
    pub beta: f32,
}

impl Operator for Matmul {
    const NAME: &'static str = "matmul";
}

impl Create for Matmul {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_matmul_desc {
            struct_size: size_of::<ffi::weir_matmul_desc>(),
            flags: bits(&[
                (self.transpose_a, 1), (self.transpose_b, 2), (self.bias, 4), (self.sum, 8), (self.f32_result, 16),
                (self.allow_tf32, 32),
            ]),
            activation: self.activation as u32,
            reserved: 0,
            weights: self.weights.as_ref().map_or(std::ptr::null_mut(), PackedWeights::raw),
            alpha: self.alpha,
            beta: self.beta,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_matmul(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// int8 matrix product: C\[..., M, N\] = saturate(round(scale \* scales\[N\] \* ((A\[..., M, K\] - zero_a) \* (B\[K,
/// N\] - zero_b) + bias\[N\])) + zero_c), with A of u8 or i8 and B of i8.
///
/// The sums of products are exact for every K on every processor, and then saturate at 32 bits. Without scales, and
/// with a scale of 1, the rest is exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties
/// to even. A C of f32 is not rounded to an integer.
///
/// Inputs: A; B, unless there are packed `weights`; with [`bias`](MatmulInt8::bias) bias; with
/// [`scales`](MatmulInt8::scales) scales. Output: C.
#[derive(Clone, Debug, Default)]
pub struct MatmulInt8 {
    /// A is given as \[K, M\].
    pub transpose_a: bool,
    /// B is given as \[N, K\].
    pub transpose_b: bool,
    /// One more input, bias\[N\] of i32, is added to the sums.
    pub bias: bool,
    /// The last input, scales\[N\] of f32, has a scale for each column, besides `scale`.
    pub scales: bool,
    /// The type of C: [`DType::I32`] (also if it is 0), [`DType::F32`], [`DType::I8`] or [`DType::U8`].
    ///
    /// `None` stands for 0.
    pub dtype: Option<DType>,
    /// Finite; 0 = 1.
    pub scale: f32,
    /// Zero point of A, subtracted from each element; a value of its type.
    pub zero_a: i32,
    /// Zero point of B, subtracted from each element: -128 to 127.
    pub zero_b: i32,
    /// Zero point of C, added to each element at the end.
    pub zero_c: i32,
    /// B, packed from i8, in place of the input; `None` = B is an input. Excludes
    /// [`transpose_b`](MatmulInt8::transpose_b).
    pub weights: Option<PackedWeights>,
}

impl Operator for MatmulInt8 {
    const NAME: &'static str = "matmul_int8";
}

impl Create for MatmulInt8 {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_matmul_int8_desc {
            struct_size: size_of::<ffi::weir_matmul_int8_desc>(),
            flags: bits(&[(self.transpose_a, 1), (self.transpose_b, 2), (self.bias, 4), (self.scales, 8)]),
            dtype: self.dtype.map_or(0, DType::code),
            scale: self.scale,
            zero_a: self.zero_a,
            zero_b: self.zero_b,
            zero_c: self.zero_c,
            reserved: 0,
            weights: self.weights.as_ref().map_or(std::ptr::null_mut(), PackedWeights::raw),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_matmul_int8(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Convolution of signals \[N, C, W\], images \[N, C, H, W\] or volumes \[N, C, D, H, W\] in f32: each element of
/// output channel o is the sum, over the input channels of its group and the taps of the window, of weights times
/// elements (a cross-correlation: nothing is mirrored), plus the bias, plus the addend, then the activation. The sum of
/// products and bias has the bits that a convolution without addend and activation stores.
///
/// Padding of zeros is multiplied like other elements. From 16 channels and 24 filters of a group, 1024 pairs of them,
/// and 7 x 7 windows on, windows of 3 x 3 without a stride are computed by Winograd's F(2 x 2, 3 x 3): an infinity or a
/// NaN then may make NaN of elements of the output up to one away from those whose windows have it. Of volumes these
/// are the rows and columns of windows of any depth, and a channel counts once for each tap in depth.
///
/// Inputs: x; weights \[O, C / groups, KW\], \[O, C / groups, KH, KW\] or \[O, C / groups, KD, KH, KW\]; with
/// [`bias`](Conv::bias) bias\[O\]; with [`sum`](Conv::sum) addend. Output: \[N, O, OW\], \[N, O, OH, OW\] or \[N, O,
/// OD, OH, OW\], where OW = (W + begin + end - ((KW - 1) \* dilation + 1)) / stride + 1, rounded down. Volumes are
/// UNIMPLEMENTED on CUDA engines.
///
/// Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
/// be 0. Members of depth are for D of volumes, and otherwise 0.
#[derive(Clone, Debug, Default)]
pub struct Conv {
    /// A third input, bias\[O\], is added to each channel.
    pub bias: bool,
    /// The last input, of the shape of the output, is added. UNIMPLEMENTED on CUDA engines.
    pub sum: bool,
    /// How x and the output are ordered.
    pub data_layout: DataLayout,
    /// How the weights are ordered.
    pub weights_layout: WeightsLayout,
    /// The values assumed beyond the ends.
    pub padding: Padding,
    /// The function applied to each element of the output.
    pub activation: Activation,
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

impl Operator for Conv {
    const NAME: &'static str = "conv";
}

impl Create for Conv {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_conv_desc {
            struct_size: size_of::<ffi::weir_conv_desc>(),
            flags: bits(&[(self.bias, 1), (self.sum, 2)]),
            data_layout: self.data_layout as u32,
            weights_layout: self.weights_layout as u32,
            padding: self.padding as u32,
            activation: self.activation as u32,
            groups: self.groups,
            strides: self.strides,
            dilations: self.dilations,
            padding_begin: self.padding_begin,
            padding_end: self.padding_end,
            alpha: self.alpha,
            beta: self.beta,
            depth_stride: self.depth_stride,
            depth_dilation: self.depth_dilation,
            depth_padding_begin: self.depth_padding_begin,
            depth_padding_end: self.depth_padding_end,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_conv(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// int8 convolution of signals \[N, C, W\] or images \[N, C, H, W\]: each element of output channel o is
/// saturate(round(scale \* scales\[o\] \* (sum + bias\[o\])) + zero_y), where the sum is that of (x - zero_x) \* (w -
/// zero_w) over the input channels of its group and the taps of the window. Padding is zero_x, and adds nothing.
///
/// Sums are exact on every processor, and then saturate at 32 bits. Without scales, and with a scale of 1, the rest is
/// exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties to even. An output of f32 is not
/// rounded to an integer.
///
/// Inputs: x of u8 or i8; weights of i8, \[O, C / groups, KW\] or \[O, C / groups, KH, KW\]; with
/// [`bias`](ConvInt8::bias) bias; with [`scales`](ConvInt8::scales) scales. Output: \[N, O, OW\] or \[N, O, OH, OW\],
/// as large as that of [`Conv`]. Weights that are constants of a graph are packed by compile.
///
/// Members of two numbers are for H and W of images; of signals the first one counts, and the second must be 0.
#[derive(Clone, Debug, Default)]
pub struct ConvInt8 {
    /// One more input, bias\[O\] of i32, is added to the sums.
    pub bias: bool,
    /// The last input, scales\[O\] of f32, has a scale for each channel of the output, besides `scale`.
    pub scales: bool,
    /// The type of the output: [`DType::I32`] (also if it is 0), [`DType::F32`], [`DType::I8`] or [`DType::U8`].
    ///
    /// `None` stands for 0.
    pub dtype: Option<DType>,
    /// Finite; 0 = 1.
    pub scale: f32,
    /// Zero point of x, subtracted from each element; a value of its type.
    pub zero_x: i32,
    /// Zero point of the weights, subtracted from each one: -128 to 127.
    pub zero_w: i32,
    /// Zero point of the output, added to each element at the end.
    pub zero_y: i32,
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

impl Operator for ConvInt8 {
    const NAME: &'static str = "conv_int8";
}

impl Create for ConvInt8 {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_conv_int8_desc {
            struct_size: size_of::<ffi::weir_conv_int8_desc>(),
            flags: bits(&[(self.bias, 1), (self.scales, 2)]),
            dtype: self.dtype.map_or(0, DType::code),
            scale: self.scale,
            zero_x: self.zero_x,
            zero_w: self.zero_w,
            zero_y: self.zero_y,
            reserved: 0,
            groups: self.groups,
            strides: self.strides,
            dilations: self.dilations,
            padding_begin: self.padding_begin,
            padding_end: self.padding_end,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_conv_int8(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Transposed convolution of signals \[N, C, W\], images \[N, C, H, W\] or volumes \[N, C, D, H, W\] in f32: each
/// element, times the weights of its channel, is added to the window of the output that a convolution with these
/// settings would have made it of; then the bias, then the activation.
///
/// Inputs: x; weights \[C, O / groups, KW\], \[C, O / groups, KH, KW\] or \[C, O / groups, KD, KH, KW\]; with
/// [`bias`](ConvTranspose::bias) bias\[O\]. Output: \[N, O, OW\], \[N, O, OH, OW\] or \[N, O, OD, OH, OW\], where OW =
/// (W - 1) \* stride + (KW - 1) \* dilation + 1 + more - begin - end.
///
/// Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
/// be 0. Members of depth are for D of volumes, and otherwise 0.
#[derive(Clone, Debug, Default)]
pub struct ConvTranspose {
    /// A third input, bias\[O\], is added to each channel.
    pub bias: bool,
    /// How x and the output are ordered.
    pub data_layout: DataLayout,
    /// The function applied to each element of the output.
    pub activation: Activation,
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

impl Operator for ConvTranspose {
    const NAME: &'static str = "conv_transpose";
}

impl Create for ConvTranspose {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_conv_transpose_desc {
            struct_size: size_of::<ffi::weir_conv_transpose_desc>(),
            flags: bits(&[(self.bias, 1)]),
            data_layout: self.data_layout as u32,
            activation: self.activation as u32,
            groups: self.groups,
            strides: self.strides,
            dilations: self.dilations,
            padding_begin: self.padding_begin,
            padding_end: self.padding_end,
            more: self.more,
            alpha: self.alpha,
            beta: self.beta,
            depth_stride: self.depth_stride,
            depth_dilation: self.depth_dilation,
            depth_padding_begin: self.depth_padding_begin,
            depth_padding_end: self.depth_padding_end,
            depth_more: self.depth_more,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_conv_transpose(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Pooling of signals \[N, C, W\], images \[N, C, H, W\] or volumes \[N, C, D, H, W\] in f32, channel by channel.
/// Input: x. Output: \[N, C, OW\], \[N, C, OH, OW\] or \[N, C, OD, OH, OW\], as large as that of a convolution with
/// such windows. Windows with a depth are UNIMPLEMENTED on CUDA engines.
///
/// Members of two numbers are for H and W of images and volumes; of signals the first one counts, and the second must
/// be 0. Members of depth are for D of volumes, and otherwise 0.
#[derive(Clone, Debug)]
pub struct Pooling {
    /// The window is the whole signal, image or volume, which has at least one element; the output has one element per
    /// channel. The other members are 0.
    pub global: bool,
    /// The value computed from a window.
    pub op: PoolingOp,
    /// How x and the output are ordered.
    pub data_layout: DataLayout,
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

impl Pooling {
    /// The operator with no other settings.
    pub fn new(op: PoolingOp) -> Self {
        Pooling {
            global: false,
            op,
            data_layout: DataLayout::Nchw,
            kernel: [0; 2],
            strides: [0; 2],
            dilations: [0; 2],
            padding_begin: [0; 2],
            padding_end: [0; 2],
            depth_kernel: 0,
            depth_stride: 0,
            depth_dilation: 0,
            depth_padding_begin: 0,
            depth_padding_end: 0,
        }
    }
}

impl Operator for Pooling {
    const NAME: &'static str = "pooling";
}

impl Create for Pooling {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_pooling_desc {
            struct_size: size_of::<ffi::weir_pooling_desc>(),
            flags: bits(&[(self.global, 1)]),
            op: self.op as u32,
            data_layout: self.data_layout as u32,
            kernel: self.kernel,
            strides: self.strides,
            dilations: self.dilations,
            padding_begin: self.padding_begin,
            padding_end: self.padding_end,
            depth_kernel: self.depth_kernel,
            depth_stride: self.depth_stride,
            depth_dilation: self.depth_dilation,
            depth_padding_begin: self.depth_padding_begin,
            depth_padding_end: self.depth_padding_end,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_pooling(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Resizing of images, or of signals: the last two dimensions of x, H and W, of any rank; the second one alone if the
/// first has neither size nor scale.
///
/// Input: x, of any type for [`ResizeMode::Nearest`], else f32, f16, bf16, u8 or i8. Output: of the same type. Places
/// and weights are computed in f64, elements in f32, first along W and then along H, and rounded once. All elements
/// that have a weight are multiplied, also by 0: an infinity makes NaN of some elements beside it.
#[derive(Clone, Debug, Default)]
pub struct Resize {
    /// Elements beyond the edges have no weight, and the others as much more; otherwise those at the edge are repeated.
    pub exclude_outside: bool,
    /// One of [`ResizeMode`].
    pub mode: ResizeMode,
    /// One of [`ResizeCoordinates`].
    pub coordinates: ResizeCoordinates,
    /// One of [`ResizeRounding`], for [`ResizeMode::Nearest`].
    pub rounding: ResizeRounding,
    /// The coefficient a of [`ResizeMode::Cubic`]; 0 = -0.75.
    pub cubic: f32,
    /// Elements of H and W in the output; 0 = as many as the scale says, rounded down.
    pub sizes: [i64; 2],
    /// Scales of H and W; 0 = that of the sizes, and 1 if there is no size either.
    pub scales: [f64; 2],
}

impl Operator for Resize {
    const NAME: &'static str = "resize";
}

impl Create for Resize {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_resize_desc {
            struct_size: size_of::<ffi::weir_resize_desc>(),
            flags: bits(&[(self.exclude_outside, 1)]),
            mode: self.mode as u32,
            coordinates: self.coordinates as u32,
            rounding: self.rounding as u32,
            cubic: self.cubic,
            sizes: self.sizes,
            scales: self.scales,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_resize(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Images \[N, C, H, W\] sampled at the places of a grid, in f32.
///
/// A place is two numbers, of W and of H, from -1 to 1 within the image. It is moved inside as `edge` says, and then
/// the elements around it are weighted: the nearest one (ties to even), 2 x 2 or 4 x 4 of them, with a coefficient of
/// -0.75 for [`ResizeMode::Cubic`]. Elements beyond the edges count likewise: 0, or those where `edge` moves them to. A
/// NaN is taken for -1.
///
/// Inputs: x \[N, C, H, W\], where H and W are at least 1; grid \[N, OH, OW, 2\]. Output: \[N, C, OH, OW\].
#[derive(Clone, Debug, Default)]
pub struct GridSample {
    /// -1 and 1 are the middle of the first and of the last element, not the edges of the image.
    pub align_corners: bool,
    /// How an element is made of those around its place.
    pub mode: ResizeMode,
    /// The values beyond the edges.
    pub edge: GridSampleEdge,
}

impl Operator for GridSample {
    const NAME: &'static str = "grid_sample";
}

impl Create for GridSample {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_grid_sample_desc {
            struct_size: size_of::<ffi::weir_grid_sample_desc>(),
            flags: bits(&[(self.align_corners, 1)]),
            mode: self.mode as u32,
            edge: self.edge as u32,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_grid_sample(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// One step of an LSTM in f32. With the gates i, o, f (sigmoid) and g (tanh), each of x \* W^T + h \* R^T of its block:
/// c' = f \* c + i \* g, h' = o \* tanh(c').
///
/// Inputs: x\[N, I\], h\[N, H\], c\[N, H\], W\[4 H, I\], R\[4 H, H\] and, with [`bias`](Lstm::bias), the biases.
/// Outputs: h'\[N, H\], c'\[N, H\].
#[derive(Clone, Debug, Default)]
pub struct Lstm {
    /// Two more inputs, the biases of W and of R, \[4 H\] each, are added to the gates.
    pub bias: bool,
    /// How the blocks of W, R and the biases are ordered.
    pub gate_order: GateOrder,
}

impl Operator for Lstm {
    const NAME: &'static str = "lstm";
}

impl Create for Lstm {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_lstm_desc {
            struct_size: size_of::<ffi::weir_lstm_desc>(),
            flags: bits(&[(self.bias, 1)]),
            gate_order: self.gate_order as u32,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_lstm(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// One step of a GRU in f32. With the gates z (update) and r (reset), sigmoids of x \* W^T + h \* R^T of their blocks,
/// and n = tanh(x \* W^T + (r \* h) \* R^T) of its block, or tanh(x \* W^T + r \* (h \* R^T)) as flags say: h' = (1 -
/// z) \* n + z \* h.
///
/// Inputs: x\[N, I\], h\[N, H\], W\[3 H, I\], R\[3 H, H\] and, with [`bias`](Gru::bias), the biases. Output: h'\[N,
/// H\].
#[derive(Clone, Debug, Default)]
pub struct Gru {
    /// Two more inputs, the biases of W and of R, \[3 H\] each, are added to the gates.
    pub bias: bool,
    /// The reset gate is applied to h \* R^T and its bias, not to h: what ONNX calls linear_before_reset, and the only
    /// way of PyTorch.
    pub linear_before_reset: bool,
    /// How the blocks of W, R and the biases are ordered.
    pub gate_order: GateOrder,
}

impl Operator for Gru {
    const NAME: &'static str = "gru";
}

impl Create for Gru {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_gru_desc {
            struct_size: size_of::<ffi::weir_gru_desc>(),
            flags: bits(&[(self.bias, 1), (self.linear_before_reset, 2)]),
            gate_order: self.gate_order as u32,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_gru(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// An LSTM over whole sequences in f32: all steps of [`Lstm`], one after the other, in one or both directions.
///
/// Inputs, in this order: x\[T, N, I\], W\[D, 4 H, I\], R\[D, 4 H, H\], and as flags say biases, lengths, h\[D, N, H\]
/// and c\[D, N, H\], peepholes. Outputs: h after each step \[T, D, N, H\], the last h \[D, N, H\] and the last c \[D,
/// N, H\]. D is 2 for [`SequenceDirection::Bidirectional`], else 1. With [`batch_first`](LstmSequence::batch_first) x
/// is \[N, T, I\], states are \[N, D, H\], and the output is \[N, T, D, H\].
///
/// W and R that are constants of a graph are packed by compile. Others are read and packed in each run: R takes scratch
/// memory of its size for each thread then.
#[derive(Clone, Debug, Default)]
pub struct LstmSequence {
    /// An input more, \[D, 8 H\]: the biases of W, then those of R.
    pub bias: bool,
    /// An input more, i32\[N\]: the number of steps of each sequence. Behind its end a sequence keeps its states, and
    /// the output of these steps is 0. A number below 0 counts as 0, one above T as T.
    pub lengths: bool,
    /// Two inputs more, the states before the first step, h and c. Without them they are 0.
    pub states: bool,
    /// An input more, \[D, 3 H\], in the order input, output, forget: these times c, the old one for the gates of input
    /// and forget and the new one for that of the output, are added to the gates.
    pub peepholes: bool,
    /// The batch is the first dimension of x, the output and the states.
    pub batch_first: bool,
    /// How the blocks of W, R and the biases are ordered.
    pub gate_order: GateOrder,
    /// The order of the steps.
    pub direction: SequenceDirection,
    /// Arguments of the gates' functions are bounded to -clip and clip; 0 = not at all.
    pub clip: f32,
}

impl Operator for LstmSequence {
    const NAME: &'static str = "lstm_sequence";
}

impl Create for LstmSequence {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_lstm_sequence_desc {
            struct_size: size_of::<ffi::weir_lstm_sequence_desc>(),
            flags: bits(&[(self.bias, 1), (self.lengths, 2), (self.states, 4), (self.peepholes, 8), (self.batch_first, 16)]),
            gate_order: self.gate_order as u32,
            direction: self.direction as u32,
            clip: self.clip,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_lstm_sequence(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// A GRU over whole sequences in f32: all steps of [`Gru`], one after the other, in one or both directions.
///
/// Inputs, in this order: x\[T, N, I\], W\[D, 3 H, I\], R\[D, 3 H, H\], and as flags say biases, lengths, h\[D, N, H\].
/// Outputs: h after each step \[T, D, N, H\], and the last h \[D, N, H\]. D is 2 for
/// [`SequenceDirection::Bidirectional`], else 1. With [`batch_first`](GruSequence::batch_first) x is \[N, T, I\], the
/// state is \[N, D, H\], and the output is \[N, T, D, H\].
///
/// W and R that are constants of a graph are packed by compile. Others are read and packed in each run: R takes scratch
/// memory of its size for each thread then.
#[derive(Clone, Debug, Default)]
pub struct GruSequence {
    /// An input more, \[D, 6 H\]: the biases of W, then those of R.
    pub bias: bool,
    /// An input more, i32\[N\]: the number of steps of each sequence. Behind its end a sequence keeps its state, and
    /// the output of these steps is 0. A number below 0 counts as 0, one above T as T.
    pub lengths: bool,
    /// An input more, the state before the first step. Without it the state is 0.
    pub states: bool,
    /// As [`linear_before_reset`](Gru::linear_before_reset).
    pub linear_before_reset: bool,
    /// The batch is the first dimension of x, the output and the state.
    pub batch_first: bool,
    /// How the blocks of W, R and the biases are ordered.
    pub gate_order: GateOrder,
    /// The order of the steps.
    pub direction: SequenceDirection,
    /// Arguments of the gates' functions are bounded to -clip and clip; 0 = not at all.
    pub clip: f32,
}

impl Operator for GruSequence {
    const NAME: &'static str = "gru_sequence";
}

impl Create for GruSequence {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_gru_sequence_desc {
            struct_size: size_of::<ffi::weir_gru_sequence_desc>(),
            flags: bits(&[
                (self.bias, 1), (self.lengths, 2), (self.states, 4), (self.linear_before_reset, 8),
                (self.batch_first, 16),
            ]),
            gate_order: self.gate_order as u32,
            direction: self.direction as u32,
            clip: self.clip,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_gru_sequence(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Unary elementwise kernel for f32, bf16 or f16, computed in f32. Input: x. Output: as x, in the same memory or in
/// other memory.
#[derive(Clone, Debug)]
pub struct Eltwise {
    /// The function.
    pub op: EltwiseOp,
    /// A parameter of the function; 0 if it has none.
    pub alpha: f32,
    /// A second one; 0 if it has none.
    pub beta: f32,
}

impl Eltwise {
    /// The operator with no other settings.
    pub fn new(op: EltwiseOp) -> Self {
        Eltwise {
            op,
            alpha: 0.0,
            beta: 0.0,
        }
    }
}

impl Operator for Eltwise {
    const NAME: &'static str = "eltwise";
}

impl Create for Eltwise {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_eltwise_desc {
            struct_size: size_of::<ffi::weir_eltwise_desc>(),
            op: self.op as u32,
            alpha: self.alpha,
            beta: self.beta,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_eltwise(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Binary elementwise kernel with broadcasting: shapes are aligned at the last dimension, and a dimension of 1 is
/// broadcast. Inputs: a and b, both f32, bf16, f16, i64, i32, i8 or u8; for [`BinaryOp::Eq`] and the other comparisons,
/// [`BinaryOp::Min`] (and) and [`BinaryOp::Max`] (or) also bool. Output: of the same type, in memory of its own or in
/// that of an operand that has its shape; or, if the function compares, bool in memory of its own.
///
/// Floats are computed in f32. Integers are computed exactly: quotients are rounded toward zero, as in C, and what the
/// type cannot hold wraps around, as in NumPy, unless `rounding` and `overflow` say otherwise. An integer divided by 0
/// is 0, or, with [`Overflow::Saturate`], the greatest or the least integer for a above or below 0; its remainder is 0.
/// Integers have no [`BinaryOp::Pow`].
#[derive(Clone, Debug)]
pub struct Binary {
    /// The function.
    pub op: BinaryOp,
    /// How quotients are rounded, those of integers and of [`BinaryOp::Rem`]: one of [`Rounding`]. Other functions do
    /// not look at it.
    pub rounding: Rounding,
    /// How integers that the type cannot hold are stored: one of [`Overflow`]. Floats do not look at it.
    pub overflow: Overflow,
}

impl Binary {
    /// The operator with no other settings.
    pub fn new(op: BinaryOp) -> Self {
        Binary {
            op,
            rounding: Rounding::Zero,
            overflow: Overflow::Wrap,
        }
    }
}

impl Operator for Binary {
    const NAME: &'static str = "binary";
}

impl Create for Binary {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_binary_desc {
            struct_size: size_of::<ffi::weir_binary_desc>(),
            op: self.op as u32,
            reserved: 0,
            rounding: self.rounding as u32,
            overflow: self.overflow as u32,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_binary(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Elementwise choice: a where the condition holds, else b, with broadcasting of all three as in [`Binary`]. Inputs:
/// condition, bool; a and b of one type, which may be any. Output: of that type.
#[derive(Clone, Debug, Default)]
pub struct Select;

impl Operator for Select {
    const NAME: &'static str = "select";
}

impl Create for Select {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_select_desc {
            struct_size: size_of::<ffi::weir_select_desc>(),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_select(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Conversion to another storage type: x scale + shift, between all types. Input: x. Output: the same shape.
///
/// With scale 1 and shift 0 the value itself is converted: values that both types can hold are exact, in i32 and i64
/// too, and an integer that the new type cannot hold wraps around, as in C and NumPy, unless `overflow` says otherwise.
/// All else is computed in f32. A float becomes an integer by leaving out what is behind the point, as in C, unless
/// `rounding` says otherwise; beyond the type it becomes the greatest or the least integer, and a NaN becomes 0. As a
/// bool everything but 0 becomes 1. What a float type cannot hold is rounded to nearest, ties to even.
#[derive(Clone, Debug)]
pub struct Convert {
    /// The type of the output.
    pub dtype: DType,
    /// The factor; 0 stands for 1.
    pub scale: f32,
    /// Added after that.
    pub shift: f32,
    /// How a float becomes an integer: one of [`Rounding`]. Other conversions do not look at it.
    pub rounding: Rounding,
    /// How an integer that the new type, of integers too, cannot hold is stored: one of [`Overflow`]. Other conversions
    /// do not look at it.
    pub overflow: Overflow,
}

impl Convert {
    /// The operator with no other settings.
    pub fn new(dtype: DType) -> Self {
        Convert {
            dtype,
            scale: 0.0,
            shift: 0.0,
            rounding: Rounding::Zero,
            overflow: Overflow::Wrap,
        }
    }
}

impl Operator for Convert {
    const NAME: &'static str = "convert";
}

impl Create for Convert {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_convert_desc {
            struct_size: size_of::<ffi::weir_convert_desc>(),
            dtype: self.dtype.code(),
            scale: self.scale,
            shift: self.shift,
            reserved: 0,
            rounding: self.rounding as u32,
            overflow: self.overflow as u32,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_convert(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Quantization: round(x / scale) + zero_point, saturated. Inputs: x, f32, bf16 or f16; scale, f32; with
/// [`zero_point`](Quantize::zero_point) zero_point, i32. Output: the shape of x, i8, u8 or i32. With
/// [`dequantize`](Quantize::dequantize) the way back: (x - zero_point) scale, computed in f32, from i8, u8 or i32 to
/// f32, bf16 or f16.
///
/// scale and zero_point have one element (of rank 0 or 1), for the whole tensor, or as many as x has along the axis.
/// Rounding is to nearest, ties to even; a NaN becomes 0. An i32 is computed in f32: zero points and sums beyond 2^24
/// are rounded to it.
#[derive(Clone, Debug)]
pub struct Quantize {
    /// A third input, zero_point. Without it zero points are 0.
    pub zero_point: bool,
    /// From integers to floats.
    pub dequantize: bool,
    /// The type of the output; for a dequantization 0 stands for [`DType::F32`].
    ///
    /// `None` stands for 0.
    pub dtype: Option<DType>,
    /// The axis of scale and zero_point, unless they have one element; negative counts from the end, -1 = last.
    pub axis: i32,
}

impl Default for Quantize {
    fn default() -> Self {
        Quantize {
            zero_point: false,
            dequantize: false,
            dtype: None,
            axis: -1,
        }
    }
}

impl Operator for Quantize {
    const NAME: &'static str = "quantize";
}

impl Create for Quantize {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_quantize_desc {
            struct_size: size_of::<ffi::weir_quantize_desc>(),
            flags: bits(&[(self.zero_point, 1), (self.dequantize, 2)]),
            dtype: self.dtype.map_or(0, DType::code),
            axis: self.axis,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_quantize(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Softmax along one axis: exp(x - max) / sum; or its logarithm. f32, f16 and bf16, computed in f32. Input: x. Output:
/// as x, in the same memory or in other memory. A row whose greatest element is an infinity or that holds a NaN becomes
/// NaN.
#[derive(Clone, Debug)]
pub struct Softmax {
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
    /// The logarithm of the softmax: x - max - ln(sum).
    pub log: bool,
}

impl Default for Softmax {
    fn default() -> Self {
        Softmax {
            axis: -1,
            log: false,
        }
    }
}

impl Operator for Softmax {
    const NAME: &'static str = "softmax";
}

impl Create for Softmax {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_softmax_desc {
            struct_size: size_of::<ffi::weir_softmax_desc>(),
            axis: self.axis,
            reserved: 0,
            flags: bits(&[(self.log, 1)]),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_softmax(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Reduces some dimensions, each to one element. Floats are computed in f32 or wider, in an order that depends only on
/// the shape; integers are computed exactly.
///
/// Input: x, f32, f16 or bf16; without the norms also i64, i32, i8 or u8; for [`ReduceOp::Min`], [`ReduceOp::Max`] and
/// indices also bool. Output: the shape of x without the axes, or with 1 in their place; of the type of x; indices are
/// i32, or i64 with [`s64_indices`](Reduce::s64_indices).
#[derive(Clone, Debug)]
pub struct Reduce<'a> {
    /// The reduced axes stay, with one element each.
    pub keep_dims: bool,
    /// [`ReduceOp::Argmax`] and [`ReduceOp::Argmin`] give i64, as other frameworks do.
    pub s64_indices: bool,
    /// One of [`ReduceOp`].
    pub op: ReduceOp,
    /// The axes that are reduced, in any order; negative ones count from the end.
    ///
    /// How many they are: number of axes; 0 = all.
    pub axes: &'a [i32],
    /// The power of a norm: 1 or 2. For other operations 0.
    pub p: f32,
    /// The eps of a norm, 0 or more. For other operations 0.
    pub eps: f32,
}

impl<'a> Reduce<'a> {
    /// The operator with no other settings.
    pub fn new(op: ReduceOp) -> Self {
        Reduce {
            keep_dims: false,
            s64_indices: false,
            op,
            axes: &[],
            p: 0.0,
            eps: 0.0,
        }
    }
}

impl Operator for Reduce<'_> {
    const NAME: &'static str = "reduce";
}

impl Create for Reduce<'_> {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let len = self.axes.len();
        let desc = ffi::weir_reduce_desc {
            struct_size: size_of::<ffi::weir_reduce_desc>(),
            flags: bits(&[(self.keep_dims, 1), (self.s64_indices, 2)]),
            op: self.op as u32,
            num_axes: u32::try_from(len).unwrap_or(u32::MAX),
            axes: filled(self.axes, len, "reduce: axes")?,
            p: self.p,
            eps: self.eps,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_reduce(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Normalisation, then times scale and plus shift on request. The variance is that of the elements themselves: divided
/// by their number.
///
/// Inputs: x, f32, f16 or bf16; for [`NormOp::Batch`] mean and variance, f32; with [`scale`](Norm::scale) scale; with
/// [`shift`](Norm::shift) shift: f32, or both of the type of x. Output: as x, in the same memory or in other memory; no
/// other input may share it. All types are computed in f32 or wider, and rounded once.
#[derive(Clone, Debug)]
pub struct Norm {
    /// The result is multiplied with an input.
    pub scale: bool,
    /// An input is added to the result, after the multiplication.
    pub shift: bool,
    /// One of [`NormOp`].
    pub op: NormOp,
    /// The first axis that is normalised, or the axis of the channels; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Number of groups of [`NormOp::Group`], a divisor of the number of channels; equal to it for an instance
    /// normalisation. 0 for other operations.
    pub groups: u32,
    /// Added to the variance, 0 or more.
    pub epsilon: f32,
}

impl Norm {
    /// The operator with no other settings.
    pub fn new(op: NormOp) -> Self {
        Norm {
            scale: false,
            shift: false,
            op,
            axis: -1,
            groups: 0,
            epsilon: 0.0,
        }
    }
}

impl Operator for Norm {
    const NAME: &'static str = "norm";
}

impl Create for Norm {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_norm_desc {
            struct_size: size_of::<ffi::weir_norm_desc>(),
            flags: bits(&[(self.scale, 1), (self.shift, 2)]),
            op: self.op as u32,
            axis: self.axis,
            groups: self.groups,
            epsilon: self.epsilon,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_norm(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Local response normalisation: x / (bias + alpha / size \* s)^beta, where s is the sum of the squares of the `size`
/// elements in the channels around it; beyond the first and the last channel there are none.
///
/// The channels are axis 1, and of `size` channels (size - 1) / 2, rounded down, lie in front. Input: x\[N, C, ...\],
/// f32, f16 or bf16. Output: as x; computed in f32, and rounded once.
#[derive(Clone, Debug, Default)]
pub struct Lrn {
    /// Number of channels whose squares are added, 1 or more.
    pub size: i64,
    /// The factor of the mean of the squares.
    pub alpha: f32,
    /// The exponent.
    pub beta: f32,
    /// The number that is added to the squares.
    pub bias: f32,
}

impl Operator for Lrn {
    const NAME: &'static str = "lrn";
}

impl Create for Lrn {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_lrn_desc {
            struct_size: size_of::<ffi::weir_lrn_desc>(),
            size: self.size,
            alpha: self.alpha,
            beta: self.beta,
            bias: self.bias,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_lrn(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Cumulative sum: each element is the sum of those of x up to its place along one axis. Input: x, f32, f16, bf16, i32
/// or i64. Output: as x, in the same memory or in other memory. Floats are added in f64, in the order of the axis, and
/// each sum is rounded to f32, and from there to f16 or bf16; i32 and i64 wrap around.
#[derive(Clone, Debug)]
pub struct Cumsum {
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
    /// A sum leaves out the element at its place: the first one is 0.
    pub exclusive: bool,
    /// Sums begin at the end of the axis.
    pub reverse: bool,
}

impl Default for Cumsum {
    fn default() -> Self {
        Cumsum {
            axis: -1,
            exclusive: false,
            reverse: false,
        }
    }
}

impl Operator for Cumsum {
    const NAME: &'static str = "cumsum";
}

impl Create for Cumsum {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_cumsum_desc {
            struct_size: size_of::<ffi::weir_cumsum_desc>(),
            axis: self.axis,
            reserved: 0,
            flags: bits(&[(self.exclusive, 1), (self.reverse, 2)]),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_cumsum(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// The k greatest or least elements along an axis, with their places, the best ones first.
///
/// Input: x, f32, f16, bf16, i64, i32, i8 or u8. Outputs: the elements, and their places along the axis, i32 or, with
/// [`s64_indices`](Topk::s64_indices), i64; both as x with k elements along the axis. Among equals the one with the
/// lower place comes first; the two zeros are equal. A NaN is better than any number, of the greatest and of the least
/// alike, as in [`ReduceOp::Argmax`] and [`ReduceOp::Argmin`].
#[derive(Clone, Debug)]
pub struct Topk {
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Number of elements that are chosen; at most as many as there are along the axis, which are at most 2147483647.
    pub k: i64,
    /// The least elements, the least one first.
    pub least: bool,
    /// Places are i64, as other frameworks have them.
    pub s64_indices: bool,
}

impl Default for Topk {
    fn default() -> Self {
        Topk {
            axis: -1,
            k: 0,
            least: false,
            s64_indices: false,
        }
    }
}

impl Operator for Topk {
    const NAME: &'static str = "topk";
}

impl Create for Topk {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_topk_desc {
            struct_size: size_of::<ffi::weir_topk_desc>(),
            axis: self.axis,
            reserved: 0,
            k: self.k,
            flags: bits(&[(self.least, 1), (self.s64_indices, 2)]),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_topk(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Non-maximum suppression: of each image and class the boxes with the best scores, without those that overlap a better
/// one.
///
/// Of two boxes of a class with the same score the one with the lower number is better. A box is left out if its
/// intersection with a better one that was chosen is more than `most_overlap` of their union; boxes without an area
/// overlap nothing. A score that is NaN is never chosen. All is computed in f32.
///
/// Inputs: boxes f32 \[B, N, 4\], scores f32 \[B, C, N\]. Outputs: the chosen boxes i64 \[M, 3\], image, class and
/// number of the box, and how many there are, i64 \[1\]. They are in the order of images, then classes, then scores,
/// the best one first. M is B \* C times the smaller one of N and `most_boxes`; rows behind the last one are -1.
#[derive(Clone, Debug, Default)]
pub struct Nms {
    /// A box is its centre and its size, x, y, width, height, not two opposite corners, y, x, y, x.
    pub centers: bool,
    /// Only boxes whose score is above `least_score`.
    pub score_bound: bool,
    /// The boxes have as many rows as were chosen. Only the call knows how many: for nodes of graphs alone, and the
    /// output is open ([`OPEN`](crate::OPEN)) for whoever reads it.
    pub exact: bool,
    /// Most boxes of an image and class; 0 = as many as there are.
    pub most_boxes: i64,
    /// Intersection over union up to which boxes are distinct; 0 = any overlap is too much.
    pub most_overlap: f32,
    /// With [`score_bound`](Nms::score_bound), otherwise ignored.
    pub least_score: f32,
}

impl Operator for Nms {
    const NAME: &'static str = "nms";
}

impl Create for Nms {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_nms_desc {
            struct_size: size_of::<ffi::weir_nms_desc>(),
            flags: bits(&[(self.centers, 1), (self.score_bound, 2), (self.exact, 4)]),
            most_boxes: self.most_boxes,
            most_overlap: self.most_overlap,
            least_score: self.least_score,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_nms(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Transposition: dimension i of the output is dimension permutation\[i\] of the input.
///
/// Input: x. Output: x with its dimensions in that order.
#[derive(Clone, Debug, Default)]
pub struct Transpose<'a> {
    /// A permutation of 0 to rank - 1.
    ///
    /// How many they are: number of dimensions of x; 0 = any number, in reverse order.
    pub permutation: &'a [i32],
}

impl Operator for Transpose<'_> {
    const NAME: &'static str = "transpose";
}

impl Create for Transpose<'_> {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let len = self.permutation.len();
        let desc = ffi::weir_transpose_desc {
            struct_size: size_of::<ffi::weir_transpose_desc>(),
            rank: u32::try_from(len).unwrap_or(u32::MAX),
            reserved: 0,
            permutation: filled(self.permutation, len, "transpose: permutation")?,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_transpose(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Concatenation of tensors along an axis. They have one type, and the same size in all other dimensions.
///
/// Inputs: num_inputs tensors. Output: as the inputs; its size along the axis is the sum of theirs.
#[derive(Clone, Debug)]
pub struct Concat {
    /// 1 to 64.
    pub num_inputs: u32,
    /// The axis; negative counts from the end, -1 = last.
    pub axis: i32,
}

impl Default for Concat {
    fn default() -> Self {
        Concat {
            num_inputs: 0,
            axis: -1,
        }
    }
}

impl Operator for Concat {
    const NAME: &'static str = "concat";
}

impl Create for Concat {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_concat_desc {
            struct_size: size_of::<ffi::weir_concat_desc>(),
            num_inputs: self.num_inputs,
            axis: self.axis,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_concat(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Slice of a tensor: in each dimension the elements from begin on, at a distance of step, up to end, which is
/// excluded.
///
/// Positions are those of Python and NumPy. Negative ones count from the end; those that are outside of the tensor even
/// so are clamped to the place next to its first or its last element: `i64::MAX` as end means "to the last", and with a
/// negative step `i64::MIN` means "to the first". A slice that begins there and goes away from the tensor has no
/// elements: with a negative step it begins below the first one, with a positive step behind the last one. (ONNX begins
/// at the first one in the former case.) Input: x. Output: the slice.
#[derive(Clone, Debug, Default)]
pub struct Slice<'a> {
    /// The first element in each dimension.
    ///
    /// How many they are: number of dimensions of x.
    pub begin: &'a [i64],
    /// The end in each dimension.
    ///
    /// As many as in `begin`, or none for zeros.
    pub end: &'a [i64],
    /// The distance; 0 = 1. A negative step goes backwards, from begin down to end.
    ///
    /// As many as in `begin`, or none for zeros.
    pub step: &'a [i64],
}

impl Operator for Slice<'_> {
    const NAME: &'static str = "slice";
}

impl Create for Slice<'_> {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let len = self.begin.len();
        let desc = ffi::weir_slice_desc {
            struct_size: size_of::<ffi::weir_slice_desc>(),
            rank: u32::try_from(len).unwrap_or(u32::MAX),
            reserved: 0,
            begin: filled(self.begin, len, "slice: begin")?,
            end: filled(self.end, len, "slice: end")?,
            step: filled(self.step, len, "slice: step")?,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_slice(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Padding: a margin of `before` elements in front and `after` behind in each dimension.
///
/// A reflecting margin is smaller than the dimension. Input: x. Output: x with the margin.
#[derive(Clone, Debug, Default)]
pub struct Pad<'a> {
    /// One of [`PadMode`].
    pub mode: PadMode,
    /// Elements added in front in each dimension, 0 or more.
    ///
    /// How many they are: number of dimensions of x.
    pub before: &'a [i64],
    /// Elements added behind in each dimension, 0 or more.
    ///
    /// As many as in `before`, or none for zeros.
    pub after: &'a [i64],
    /// The element of a [`PadMode::Constant`] margin. Floats are rounded to the nearest; an integer type must be able
    /// to hold it.
    pub value: f64,
}

impl Operator for Pad<'_> {
    const NAME: &'static str = "pad";
}

impl Create for Pad<'_> {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let len = self.before.len();
        let desc = ffi::weir_pad_desc {
            struct_size: size_of::<ffi::weir_pad_desc>(),
            rank: u32::try_from(len).unwrap_or(u32::MAX),
            mode: self.mode as u32,
            before: filled(self.before, len, "pad: before")?,
            after: filled(self.after, len, "pad: after")?,
            value: self.value,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_pad(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Repetition: copies of x along each dimension, or x broadcast to a shape.
///
/// Shapes are aligned at the last dimension, as [`Binary`] aligns them. x has a size of 1 in dimensions that only the
/// counts have, and dimensions that only x has stay as they are. Input: x of any type. Output: of the greater rank of
/// both.
#[derive(Clone, Debug, Default)]
pub struct Tile<'a> {
    /// One of [`TileMode`].
    pub mode: TileMode,
    /// A count for each dimension.
    ///
    /// How many they are: number of counts.
    pub counts: &'a [i64],
}

impl Operator for Tile<'_> {
    const NAME: &'static str = "tile";
}

impl Create for Tile<'_> {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let len = self.counts.len();
        let desc = ffi::weir_tile_desc {
            struct_size: size_of::<ffi::weir_tile_desc>(),
            rank: u32::try_from(len).unwrap_or(u32::MAX),
            mode: self.mode as u32,
            counts: filled(self.counts, len, "tile: counts")?,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_tile(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// The same elements, in their order, in another shape. In a graph the output takes over the memory of the input where
/// possible, and nothing is copied; on a stream x may be its own output.
///
/// Dimensions of [`KEEP`](Reshape::KEEP) are those of x, whatever their size; the other dimensions of x and of the
/// output hold equally many elements. Input: x. Output: x in the shape.
#[derive(Clone, Debug, Default)]
pub struct Reshape<'a> {
    /// The output's shape: sizes, [`INFER`](Reshape::INFER) or [`KEEP`](Reshape::KEEP).
    ///
    /// How many they are: number of dimensions of the output.
    pub dims: &'a [i64],
}

impl Operator for Reshape<'_> {
    const NAME: &'static str = "reshape";
}

impl Create for Reshape<'_> {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let len = self.dims.len();
        let desc = ffi::weir_reshape_desc {
            struct_size: size_of::<ffi::weir_reshape_desc>(),
            rank: u32::try_from(len).unwrap_or(u32::MAX),
            reserved: 0,
            dims: filled(self.dims, len, "reshape: dims")?,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_reshape(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Gather: rows of a table by their indices, as for an embedding.
///
/// Inputs: table; indices, i32 or i64, of any shape. Output: the table with the indices' shape in place of the axis. A
/// call with an index below 0 or beyond the axis fails with OUT_OF_RANGE, which names it, and writes nothing. With
/// [`from_end`](Gather::from_end) an index below 0 counts from the end of the axis, as in NumPy. On a CUDA engine that
/// is a late failure of the stream or run, and the rows of such indices are zeros.
#[derive(Clone, Debug)]
pub struct Gather {
    /// The axis of the table that the indices select from; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Indices below 0 count from the end of the axis: -1 is the last row.
    pub from_end: bool,
}

impl Default for Gather {
    fn default() -> Self {
        Gather {
            axis: -1,
            from_end: false,
        }
    }
}

impl Operator for Gather {
    const NAME: &'static str = "gather";
}

impl Create for Gather {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_gather_desc {
            struct_size: size_of::<ffi::weir_gather_desc>(),
            axis: self.axis,
            reserved: 0,
            flags: bits(&[(self.from_end, 1)]),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_gather(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Gather of elements: each one by an index of its own, from where it is itself, but for one axis.
///
/// Inputs: x; indices, i32 or i64, of x's rank, and along the other axes of at most its sizes. Output: the indices'
/// shape of elements of x. Of matrices and axis 0: y\[i, j\] = x\[indices\[i, j\], j\]. A call with an index below 0 or
/// beyond the axis fails with OUT_OF_RANGE, which names it, and writes nothing. With
/// [`from_end`](GatherElements::from_end) an index below 0 counts from the end of the axis.
#[derive(Clone, Debug)]
pub struct GatherElements {
    /// The axis of x that the indices select from; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Indices below 0 count from the end of the axis: -1 is the last element.
    pub from_end: bool,
}

impl Default for GatherElements {
    fn default() -> Self {
        GatherElements {
            axis: -1,
            from_end: false,
        }
    }
}

impl Operator for GatherElements {
    const NAME: &'static str = "gather_elements";
}

impl Create for GatherElements {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_gather_elements_desc {
            struct_size: size_of::<ffi::weir_gather_elements_desc>(),
            axis: self.axis,
            reserved: 0,
            flags: bits(&[(self.from_end, 1)]),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_gather_elements(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Gather by places: blocks of a table, each by the indices of its first dimensions.
///
/// Inputs: table; indices\[..., Q\], i32 or i64. The first `batch_dims` dimensions of both are the same; each Q indices
/// select from the next Q dimensions of the table, and what is behind those is a block. Output: the indices' shape
/// without Q, and a block's. A call with an index below 0 or beyond its dimension fails with OUT_OF_RANGE, which names
/// it, and writes nothing. With [`from_end`](GatherNd::from_end) an index below 0 counts from the end of its dimension.
/// Q decides the rank of the output, so in a graph it is not open.
#[derive(Clone, Debug, Default)]
pub struct GatherNd {
    /// Indices below 0 count from the end of their dimension.
    pub from_end: bool,
    /// Number of the first dimensions that belong to table and indices alike.
    pub batch_dims: u64,
}

impl Operator for GatherNd {
    const NAME: &'static str = "gather_nd";
}

impl Create for GatherNd {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_gather_nd_desc {
            struct_size: size_of::<ffi::weir_gather_nd_desc>(),
            flags: bits(&[(self.from_end, 1)]),
            batch_dims: self.batch_dims,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_gather_nd(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Scatter: a tensor in which some elements are replaced, or reduced with others.
///
/// Inputs: x; indices, i32 or i64; updates, of x's type. With [`ScatterMode::Elements`] indices and updates have one
/// shape, of x's rank, and along the other axes of at most its sizes: for matrices and axis 0 updates\[i, j\] goes to
/// x\[indices\[i, j\], j\]. With [`ScatterMode::Nd`] each Q of indices\[..., Q\] are the place of a block in the first
/// Q dimensions of x, and updates have the indices' shape without Q, and a block's; in a graph Q is not open. Output:
/// as x.
///
/// Updates of one element are applied in their order in the tensor, on every pool; without a reduction the last one
/// remains. Types are any, with a reduction all but bool; f16 and bf16 are computed in f32 and rounded after each
/// update, integers wrap around. A call with an index below 0 or beyond its dimension fails with OUT_OF_RANGE, which
/// names it, and writes nothing.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// Indices below 0 count from the end of their dimension.
    pub from_end: bool,
    /// One of [`ScatterMode`].
    pub mode: ScatterMode,
    /// One of [`ScatterReduction`].
    pub reduction: ScatterReduction,
    /// The axis of [`ScatterMode::Elements`]; negative counts from the end, -1 = last. For [`ScatterMode::Nd`] 0.
    pub axis: i32,
}

impl Default for Scatter {
    fn default() -> Self {
        Scatter {
            from_end: false,
            mode: ScatterMode::Elements,
            reduction: ScatterReduction::None,
            axis: -1,
        }
    }
}

impl Operator for Scatter {
    const NAME: &'static str = "scatter";
}

impl Create for Scatter {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_scatter_desc {
            struct_size: size_of::<ffi::weir_scatter_desc>(),
            flags: bits(&[(self.from_end, 1)]),
            mode: self.mode as u32,
            reduction: self.reduction as u32,
            axis: self.axis,
            reserved: 0,
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_scatter(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// One-hot encoding: for each index a row of one value, but for the element with that number.
///
/// Inputs: indices, i32 or i64; values\[2\], of any type: that of all elements, and that of the one. Output: the
/// indices' shape with `depth` elements along a new axis, of the values' type. An index below 0 or beyond the depth has
/// a row without the one; with [`from_end`](OneHot::from_end) an index below 0 counts from the end.
#[derive(Clone, Debug)]
pub struct OneHot {
    /// The axis of the output that is new; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Number of elements of a row, 0 or more.
    pub depth: i64,
    /// Indices below 0 count from the end: -1 is the last element of a row.
    pub from_end: bool,
}

impl Default for OneHot {
    fn default() -> Self {
        OneHot {
            axis: -1,
            depth: 0,
            from_end: false,
        }
    }
}

impl Operator for OneHot {
    const NAME: &'static str = "one_hot";
}

impl Create for OneHot {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_one_hot_desc {
            struct_size: size_of::<ffi::weir_one_hot_desc>(),
            axis: self.axis,
            reserved: 0,
            depth: self.depth,
            flags: bits(&[(self.from_end, 1)]),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_one_hot(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// The places of the elements that are not 0, or not false; a NaN is not 0, and the two zeros are.
///
/// Input: x of any type. Outputs: places i64 \[rank of x, E\], where E is the number of elements of x, and their number
/// i64 \[1\]. Column i is the place of the i-th of these elements, in the order of memory; columns behind the last one
/// are -1.
#[derive(Clone, Debug, Default)]
pub struct Nonzero {
    /// The places have as many columns as there are elements that are not 0. Only the call knows how many: for nodes of
    /// graphs alone, and the output is open ([`OPEN`](crate::OPEN)) for whoever reads it.
    pub exact: bool,
}

impl Operator for Nonzero {
    const NAME: &'static str = "nonzero";
}

impl Create for Nonzero {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_nonzero_desc {
            struct_size: size_of::<ffi::weir_nonzero_desc>(),
            flags: bits(&[(self.exact, 1)]),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_nonzero(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// The shape of a tensor as a tensor, from which shapes of others are computed. Compile knows it where it knows the
/// shape of x, and then what is computed of it.
///
/// Input: x of any type, whose elements are not read. Output: its sizes, i64 \[rank of x\].
#[derive(Clone, Debug, Default)]
pub struct Shape;

impl Operator for Shape {
    const NAME: &'static str = "shape";
}

impl Create for Shape {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_shape_desc {
            struct_size: size_of::<ffi::weir_shape_desc>(),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_shape(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// Numbers from a start to a limit, which is not among them, in steps.
///
/// Inputs: start, limit and step, one element each, all f32, i32 or i64. Output: \[n\] of that type, where n is the
/// difference of limit and start, divided by the step and rounded up, and 0 if that is negative. Element i is the start
/// and i steps. Integers are exact. Of f32 the difference is f32 and its quotient f64; an element is rounded after the
/// product and after the sum. Only the call knows n: for nodes of graphs alone, and the output is open
/// ([`OPEN`](crate::OPEN)) for whoever reads it. A step of 0, and an n that cannot be counted, fail with OUT_OF_RANGE.
#[derive(Clone, Debug, Default)]
pub struct Range;

impl Operator for Range {
    const NAME: &'static str = "range";
}

impl Create for Range {
    fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()> {
        let desc = ffi::weir_range_desc {
            struct_size: size_of::<ffi::weir_range_desc>(),
        };
        // SAFETY: `engine` is alive, and so are the struct and what it names until the call has returned.
        check(unsafe { ffi::weir_kernel_create_range(engine, &raw const desc, std::ptr::null(), out) })
    }
}

/// A function applied to each element of a result before it is stored, with the parameters alpha (a) and beta (b) of
/// the operator's descriptor where the formula names them. The result has the bits that weir_kernel_create_eltwise
/// makes of the stored sum, if that is f32. On CUDA engines those with parameters are UNIMPLEMENTED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum Activation {
    /// Nothing.
    #[default]
    None = 0,
    /// max(x, 0). A NaN stays a NaN.
    Relu = 1,
    /// x / 2 \* (1 + erf(x / sqrt 2)).
    GeluErf = 2,
    /// x / 2 \* (1 + tanh(sqrt(2 / pi) \* (x + 0.044715 x^3))).
    GeluTanh = 3,
    /// 1 / (1 + e^-x).
    Sigmoid = 4,
    /// Hyperbolic tangent.
    Tanh = 5,
    /// x where x >= 0, else a x: the leaky rectifier.
    LeakyRelu = 6,
    /// min(max(x, a), b): b for all x if a > b. Either may be an infinity.
    Clip = 7,
    /// x / (1 + e^(-a x)); SiLU with a = 1.
    Swish = 8,
    /// min(max(a x + b, 0), 1).
    Hardsigmoid = 9,
    /// x min(max(a x + b, 0), 1).
    Hardswish = 10,
}

/// Binary elementwise functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum BinaryOp {
    /// a + b.
    Add = 1,
    /// a - b.
    Sub = 2,
    /// a b.
    Mul = 3,
    /// a / b; of integers rounded as [`Binary`] says.
    Div = 4,
    /// The lesser one; a NaN if one is NaN.
    Min = 5,
    /// The greater one; a NaN if one is NaN.
    Max = 6,
    /// a^b, as the pow of C.
    Pow = 7,
    /// a == b.
    Eq = 8,
    /// a != b: also if one is NaN, where all other comparisons are false.
    Ne = 9,
    /// a \< b.
    Lt = 10,
    /// a \<= b.
    Le = 11,
    /// a > b.
    Gt = 12,
    /// a >= b.
    Ge = 13,
    /// The remainder a - b q, where q is a / b rounded as [`Binary`] says: with [`Rounding::Zero`] that of C (fmod and
    /// %), with the sign of a; with [`Rounding::Floor`] that of Python and NumPy, with the sign of b; with
    /// [`Rounding::Nearest`] that of IEEE 754. Of floats a NaN if b is 0 or a is infinite.
    Rem = 14,
}

/// How the dimensions of signals, images and volumes are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum DataLayout {
    /// \[N, C, W\], \[N, C, H, W\], or \[N, C, D, H, W\].
    #[default]
    Nchw = 0,
}

/// Unary functions of x, with the parameters alpha (a) and beta (b) of [`Eltwise`] where the formula names them.
/// Infinities give the limits of the function, and a NaN stays a NaN. 1 / x is [`EltwiseOp::Pow`] with a = 1 and b =
/// -1, 1 / sqrt x with b = -0.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum EltwiseOp {
    /// x where x >= 0, else a x: the rectifier, and with a > 0 the leaky one.
    Relu = 1,
    /// x where x >= 0, else a (e^x - 1).
    Elu = 2,
    /// x (1 + erf(x / sqrt 2)) / 2.
    GeluErf = 3,
    /// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
    GeluTanh = 4,
    /// tanh x.
    Tanh = 5,
    /// 1 / (1 + e^-x).
    Sigmoid = 6,
    /// x / (1 + e^(-a x)); SiLU with a = 1.
    Swish = 7,
    /// e^x.
    Exp = 8,
    /// The natural logarithm.
    Log = 9,
    /// The square root.
    Sqrt = 10,
    /// x x.
    Square = 11,
    /// |x|.
    Abs = 12,
    /// -x.
    Neg = 13,
    /// min(max(x, a), b): b for all x if a > b. Either may be an infinity.
    Clip = 14,
    /// a x + b, as IEEE has it: a NaN of an infinity if a is 0.
    Linear = 15,
    /// a x^b, as the pow of C.
    Pow = 16,
    /// min(max(a x + b, 0), 1).
    Hardsigmoid = 17,
    /// x min(max(a x + b, 0), 1).
    Hardswish = 18,
    /// The nearest integer, the even one of two.
    Round = 19,
    /// x tanh(ln(1 + e^x)).
    Mish = 20,
    /// ln(1 + e^(a x)) / a; a is not 0.
    Softplus = 21,
    /// The error function.
    Erf = 22,
    /// The greatest integer that is not above x.
    Floor = 23,
    /// The least integer that is not below x.
    Ceil = 24,
    /// x without what is behind the point.
    Trunc = 25,
    /// 1 above 0, -1 below 0, and 0 for 0.
    Sign = 26,
    /// sin x; a NaN for an infinity.
    Sin = 27,
    /// cos x; a NaN for an infinity.
    Cos = 28,
    /// tan x; a NaN for an infinity.
    Tan = 29,
    /// The angle from -pi / 2 to pi / 2 whose sine x is; a NaN outside of -1 to 1.
    Asin = 30,
    /// The angle from 0 to pi whose cosine x is; a NaN outside of -1 to 1.
    Acos = 31,
    /// The angle from -pi / 2 to pi / 2 whose tangent x is.
    Atan = 32,
    /// (e^x - e^-x) / 2.
    Sinh = 33,
    /// (e^x + e^-x) / 2.
    Cosh = 34,
}

/// How the blocks of the weights and biases of a cell are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum GateOrder {
    /// As in ONNX. LSTM: input, output, forget, cell. GRU: update, reset, new.
    #[default]
    Onnx = 0,
    /// As in PyTorch. LSTM: input, forget, cell, output. GRU: reset, update, new.
    Torch = 1,
}

/// Edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum GridSampleEdge {
    /// Zeros.
    #[default]
    SampleZeros = 0,
    /// A place is moved to the nearest one inside; for [`ResizeMode::Cubic`] only those of the elements around it are.
    SampleBorder = 1,
    /// A place is mirrored at the edges until it is inside: at the edges of the image, or with
    /// [`align_corners`](GridSample::align_corners) at the middle of its first and last elements.
    SampleReflection = 2,
}

/// Normalisations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum NormOp {
    /// Layer: (x - mean) / sqrt(variance + epsilon), with mean and variance of the elements along `axis` and all axes
    /// behind it. Scale and shift have the shape of these axes.
    Layer = 1,
    /// Root mean square: x / sqrt(mean of x \* x + epsilon), of the same elements, with the same scale and shift.
    Rms = 2,
    /// Batch, with given statistics: (x - mean) / sqrt(variance + epsilon), where mean and variance are further inputs,
    /// with one element for each element along `axis`, the channels. So have scale and shift.
    Batch = 3,
    /// Group: as layer, with mean and variance over all elements of a group of channels and of the axes behind them,
    /// for each position in front of the channels. Scale and shift have one element for each channel.
    Group = 4,
}

/// How an integer is stored that is too large or too small for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum Overflow {
    /// Its lowest bits, in two's complement: 200 + 100 is 44 as u8.
    #[default]
    Wrap = 0,
    /// The greatest or the least one of the type: 200 + 100 is 255 as u8.
    Saturate = 1,
}

/// Contents of a margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum PadMode {
    /// One value.
    #[default]
    Constant = 0,
    /// The tensor, mirrored at its first and its last element, which are not repeated: c b | a b c | b a.
    Reflect = 1,
    /// The nearest element of the tensor: a a | a b c | c c.
    Edge = 2,
}

/// The values assumed beyond the ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum Padding {
    /// Zeros.
    #[default]
    Zero = 0,
    /// The elements mirrored at the first and the last one, which are not repeated. Shorter than the axis.
    Reflect = 1,
}

/// The value that pooling computes from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum PoolingOp {
    /// The greatest element; NaN if there is one; -infinity for a window without elements.
    Max = 1,
    /// The average over all taps; padding counts as zeros.
    Average = 2,
    /// The average over the elements, without padding; 0 for a window without elements.
    AverageInside = 3,
}

/// Reductions. A NaN among the elements gives a NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum ReduceOp {
    /// The sum; 0 for no elements. Of integers it wraps around.
    Sum = 1,
    /// The sum divided by the number of elements; a NaN for no elements. Of integers the sum is one of 64 bits, and the
    /// quotient is rounded toward zero; 0 for no elements.
    Mean = 2,
    /// The least element; infinity for no elements, or the greatest number of the type. Of bools whether all hold.
    Min = 3,
    /// The greatest element; minus infinity for no elements, or the least number of the type. Of bools whether any
    /// holds.
    Max = 4,
    /// The product; 1 for no elements. Of integers it wraps around.
    Mul = 5,
    /// With s the sum of |x| to the power of p: the root of max(s, eps).
    NormMax = 6,
    /// The root of s + eps.
    NormSum = 7,
    /// max(s, eps).
    NormPowerMax = 8,
    /// s + eps.
    NormPowerSum = 9,
    /// Index of the greatest element, as i32 or i64, among those that are reduced to one, in their order in memory. The
    /// first of equals, and the first NaN if there is one. Refused for no elements, and for more than 2147483647, also
    /// with [`s64_indices`](Reduce::s64_indices).
    Argmax = 10,
    /// Index of the least element, likewise.
    Argmin = 11,
}

/// The place of element i of an axis, where s is the scale; the output has n elements, and x has m.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum ResizeCoordinates {
    /// (i + 0.5) / s - 0.5.
    #[default]
    HalfPixel = 0,
    /// i (m - 1) / (n - 1), and 0 if n is 1: the first and the last elements lie on one another.
    AlignCorners = 1,
    /// i / s.
    Asymmetric = 2,
    /// As [`ResizeCoordinates::HalfPixel`], and 0 if n is 1.
    PytorchHalfPixel = 3,
    /// As [`ResizeCoordinates::HalfPixel`], moved so that the middle of the output lies on that of x if n is not s m.
    HalfPixelSymmetric = 4,
}

/// Interpolations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum ResizeMode {
    /// The nearest element.
    #[default]
    Nearest = 0,
    /// Of two elements along each axis.
    Linear = 1,
    /// Of four elements along each axis, by the cubic convolution of Keys.
    Cubic = 2,
}

/// Roundings of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum ResizeRounding {
    /// The nearest one, the lower of two.
    #[default]
    PreferFloor = 0,
    /// The nearest one, the upper of two.
    PreferCeil = 1,
    /// The one below.
    Floor = 2,
    /// The one above.
    Ceil = 3,
}

/// How a number becomes an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum Rounding {
    /// The digits behind the point are left out, as in C: 2.7 is 2, and -2.7 is -2.
    #[default]
    Zero = 0,
    /// The nearest one, the even one of two: 2.5 is 2, and 3.5 is 4.
    Nearest = 1,
    /// The greatest one that is not above it: 2.7 is 2, and -2.7 is -3.
    Floor = 2,
}

/// The meaning of an index of a scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum ScatterMode {
    /// The place of one element along an axis: the reverse of [`GatherElements`].
    #[default]
    Elements = 0,
    /// Q indices are the place of a block: the reverse of [`GatherNd`].
    Nd = 1,
}

/// Reductions of a scatter, as [`BinaryOp`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum ScatterReduction {
    /// The update.
    #[default]
    None = 0,
    /// Their sum.
    Add = 1,
    /// Their product.
    Mul = 2,
    /// The lesser one; a NaN if one is NaN.
    Min = 3,
    /// The greater one; a NaN if one is NaN.
    Max = 4,
}

/// The order in which the steps of a sequence are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum SequenceDirection {
    /// From the first step to the last one.
    #[default]
    Forward = 0,
    /// From the last step of each sequence to the first one.
    Reverse = 1,
    /// Both, each with weights of its own: forward is number 0 and reverse number 1 of the dimension D.
    Bidirectional = 2,
}

/// Meanings of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum TileMode {
    /// How many copies of x lie one after the other along the dimension; 0 leaves nothing.
    #[default]
    Repeat = 0,
    /// The size of the dimension: that of x, or any if x has 1 there. 1 and [`OPEN`](crate::OPEN): as in x.
    Expand = 1,
}

/// How the dimensions of the weights of a convolution are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u32)]
pub enum WeightsLayout {
    /// \[O, I / groups, KW\], \[O, I / groups, KH, KW\], or \[O, I / groups, KD, KH, KW\].
    #[default]
    Oihw = 0,
}
