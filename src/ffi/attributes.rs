//! The descriptors of the built-in operations as a device receives them: named, complete, as this version knows them.

use super::argument::out_ptr;
use super::handle;
use super::kernel_options::kernel_options;
use super::versioned::Versioned;
use crate::abi::*;
use crate::base::{Error, Ref, Result};
use crate::engine::{BoundKernel, Engine, KernelIdentity};
use crate::kernel::cache::{self, KernelSettings};

/// The descriptor of a built-in operation.
pub(super) trait OperationDesc: Versioned {
    /// The suffix after weir_kernel_create_.
    const OPERATION: &'static str;
    /// Offset of its pointer to packed weights, which belong to one engine.
    const WEIGHTS: Option<usize> = None;

    /// Whether these bytes of the descriptor name packed weights.
    fn has_weights(bytes: &[u8]) -> bool {
        Self::WEIGHTS.is_some_and(|at| bytes[at..at + size_of::<usize>()].iter().any(|&byte| byte != 0))
    }
}

macro_rules! operations {
    ($($desc:ident = $operation:literal $(with $weights:ident)?),* $(,)?) => {
        $(impl OperationDesc for $desc {
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

/// The descriptor's bytes. NULL becomes zeros, and so do members that the caller's header does not know.
///
/// # Safety
/// `desc` is NULL, or `versioned::read` has taken it.
pub(super) unsafe fn bytes<D: OperationDesc>(desc: *const D) -> Vec<u8> {
    let own = size_of::<D>();
    let mut bytes = vec![0; own];
    if !desc.is_null() {
        // SAFETY: a struct that was read has a size, and as many readable bytes.
        unsafe {
            let known = desc.cast::<usize>().read().min(own);
            std::ptr::copy_nonoverlapping(desc.cast::<u8>(), bytes.as_mut_ptr(), known);
        }
    }
    bytes[..size_of::<usize>()].copy_from_slice(&own.to_ne_bytes());
    bytes
}

/// The shared end of every built-in kernel's creation: `make` reads and checks `desc`, and the cache returns the
/// kernel.
///
/// # Safety
/// The caller's pointers are as the C documentation demands.
pub(super) unsafe fn create<D: OperationDesc, K: KernelSettings>(
    engine: *mut weir_engine,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
    desc: *const D,
    make: impl FnOnce(&Ref<Engine>) -> Result<K>,
) -> Result<()> {
    // SAFETY: the caller's pointers, as documented.
    unsafe {
        let out = out_ptr(out_kernel, "out_kernel")?;
        let engine = handle::share(engine, "engine")?;
        let options = kernel_options(options)?;
        let kernel = cache::shared(engine.place(), make(&engine)?)?;
        let attributes = bytes(desc);
        let is_bound = D::has_weights(&attributes);
        let operation = KernelIdentity { name: D::OPERATION, attributes: &attributes, is_bound, stays: false };
        handle::into_c(BoundKernel::create_as(engine, kernel, operation, &options)?, out)
    }
}

/// Checks the axis members.
pub(super) fn axis(axis: i32, reserved: i32) -> Result<i32> {
    let max = weir_limit::WEIR_MAX_RANK as i32;
    if reserved != 0 {
        return Err(Error::invalid(format!("desc->reserved is {reserved}, expected 0")));
    }
    if !(-max..max).contains(&axis) {
        return Err(Error::out_of_range(format!("desc->axis is {axis}, expected {} to {}", -max, max - 1)));
    }
    Ok(axis)
}
