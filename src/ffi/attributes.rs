//! The descriptors of the built-in operations as a device is given them: named, complete, as this version knows them.

use super::versioned::Versioned;
use crate::abi::*;

/// The descriptor of a built-in operation.
pub(super) trait Attributes: Versioned {
    /// What weir_kernel_create_ is followed by.
    const OPERATION: &'static str;
    /// Where it names packed weights, which are of one engine's.
    const WEIGHTS: Option<usize> = None;

    /// Whether these bytes of it name some.
    fn has_weights(bytes: &[u8]) -> bool {
        Self::WEIGHTS.is_some_and(|at| bytes[at..at + size_of::<usize>()].iter().any(|&byte| byte != 0))
    }
}

macro_rules! operations {
    ($($desc:ident = $operation:literal $(with $weights:ident)?),* $(,)?) => {
        $(impl Attributes for $desc {
            const OPERATION: &'static str = $operation;
            $(const WEIGHTS: Option<usize> = Some(std::mem::offset_of!($desc, $weights));)?
        })*
    };
}

operations! {
    weir_matmul_desc = "matmul" with weights,
    weir_matmul_int8_desc = "matmul_int8" with weights,
    weir_add_desc = "add",
    weir_relu_desc = "relu",
    weir_softmax_desc = "softmax",
    weir_argmax_desc = "argmax",
    weir_eltwise_desc = "eltwise",
    weir_binary_desc = "binary",
    weir_select_desc = "select",
    weir_convert_desc = "convert",
    weir_quantize_desc = "quantize",
    weir_dequantize_desc = "dequantize",
    weir_transpose_desc = "transpose",
    weir_concat_desc = "concat",
    weir_slice_desc = "slice",
    weir_pad_desc = "pad",
    weir_reshape_desc = "reshape",
    weir_gather_desc = "gather",
    weir_reduce_desc = "reduce",
    weir_norm_desc = "norm",
    weir_conv_desc = "conv",
    weir_pooling_desc = "pooling",
    weir_lstm_desc = "lstm",
    weir_gru_desc = "gru",
}

/// Its bytes. NULL is all zero; so is what the caller's header does not know.
///
/// # Safety
/// `desc` is NULL, or `versioned::read` has taken it.
pub(super) unsafe fn bytes<D: Attributes>(desc: *const D) -> Vec<u8> {
    let own = size_of::<D>();
    let mut bytes = vec![0; own];
    if !desc.is_null() {
        // SAFETY: what was read has a size, and as many readable bytes.
        unsafe {
            let known = desc.cast::<usize>().read().min(own);
            std::ptr::copy_nonoverlapping(desc.cast::<u8>(), bytes.as_mut_ptr(), known);
        }
    }
    bytes[..size_of::<usize>()].copy_from_slice(&own.to_ne_bytes());
    bytes
}
