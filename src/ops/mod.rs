//! The built-in operators, each described once, in a file of its own.
//!
//! A description is the struct in C with its enums and flags, the checks of its members, the checked settings, the
//! inputs and the shape of the output, and, as the comment of its module, what the reference says of the function that
//! creates it. All else that is known of an operator by its name follows from `operators!` below: the exported function
//! (`build.rs` writes it), the typed form that devices get (`Op`), the key in the cache of kernels, and the rows of
//! tests and of the reference (`tests/operators.rs`). Its arithmetic is in `kernel/builtin`.
#![allow(non_camel_case_types)]
#![allow(rustdoc::broken_intra_doc_links, reason = "the comments are for the C header: bias[N] is a shape, no link")]

pub mod activation;
pub mod axis;
pub mod broadcast;
pub mod cell;
pub mod check;
pub mod number;
pub mod operator;
pub mod sequence;
pub mod setting;
pub mod signature;
pub mod windows;

pub use activation::*;
pub use cell::*;
pub use number::*;
pub use operator::{Descriptor, Operator, PackedShape, Weights};
pub use sequence::*;
pub use windows::*;

use crate::base::Result;

macro_rules! operators {
    ($($file:ident::$operator:ident($desc:ident),)*) => {
        $(pub mod $file; pub use $file::*;)*

        /// An operator with its settings.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Op {
            $($operator($operator),)*
        }

        $(impl From<$operator> for Op {
            fn from(operator: $operator) -> Op {
                Op::$operator(operator)
            }
        }

        // SAFETY: a struct of C without gaps: `reserved` fills them, and `tests/operators.rs` looks for them.
        unsafe impl Descriptor for $desc {
            type Operator = $operator;
        })*

        impl Op {
            /// The names of all operators.
            pub const NAMES: &[&str] = &[$($operator::NAME),*];

            /// The suffix after weir_kernel_create_.
            pub fn operation(&self) -> &'static str {
                match self {
                    $(Op::$operator(_) => $operator::NAME,)*
                }
            }
        }
    };
}

/// An operator as devices get it: in its typed form, and, for plug-ins, as the struct of C.
#[derive(Clone, Debug)]
pub struct Described {
    pub op: Op,
    pub desc: Box<[u8]>,
}

impl Described {
    /// The operator of a descriptor, which is checked and completed.
    pub fn new<O: Operator + Into<Op>>(desc: &mut O::Desc, packed: Option<PackedShape>) -> Result<(O, Described)> {
        let operator: O = operator::create(desc, packed)?;
        Ok((operator, Described { op: operator.into(), desc: desc.bytes().into() }))
    }
}

// In the order of the header.
operators! {
    matmul::Matmul(weir_matmul_desc),
    matmul_int8::MatmulInt8(weir_matmul_int8_desc),
    conv::Conv(weir_conv_desc),
    conv_int8::ConvInt8(weir_conv_int8_desc),
    conv_transpose::ConvTranspose(weir_conv_transpose_desc),
    pooling::Pooling(weir_pooling_desc),
    resize::Resize(weir_resize_desc),
    grid_sample::GridSample(weir_grid_sample_desc),
    lstm::Lstm(weir_lstm_desc),
    gru::Gru(weir_gru_desc),
    lstm_sequence::LstmSequence(weir_lstm_sequence_desc),
    gru_sequence::GruSequence(weir_gru_sequence_desc),
    eltwise::Eltwise(weir_eltwise_desc),
    binary::Binary(weir_binary_desc),
    select::Select(weir_select_desc),
    convert::Convert(weir_convert_desc),
    quantize::Quantize(weir_quantize_desc),
    softmax::Softmax(weir_softmax_desc),
    reduce::Reduce(weir_reduce_desc),
    norm::Norm(weir_norm_desc),
    lrn::Lrn(weir_lrn_desc),
    cumsum::Cumsum(weir_cumsum_desc),
    topk::Topk(weir_topk_desc),
    nms::Nms(weir_nms_desc),
    transpose::Transpose(weir_transpose_desc),
    concat::Concat(weir_concat_desc),
    slice::Slice(weir_slice_desc),
    pad::Pad(weir_pad_desc),
    tile::Tile(weir_tile_desc),
    reshape::Reshape(weir_reshape_desc),
    gather::Gather(weir_gather_desc),
    gather_elements::GatherElements(weir_gather_elements_desc),
    gather_nd::GatherNd(weir_gather_nd_desc),
    scatter::Scatter(weir_scatter_desc),
    one_hot::OneHot(weir_one_hot_desc),
    nonzero::Nonzero(weir_nonzero_desc),
    shape::Shape(weir_shape_desc),
    range::Range(weir_range_desc),
}
