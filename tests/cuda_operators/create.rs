//! The interface in C, as far as it makes kernels.

use crate::kit::{Engine, Kernel};
use weir_core::abi::*;
use weir_core::ops::*;

#[allow(improper_ctypes, reason = "attributes are opaque here: NULL is all that is passed")]
unsafe extern "C" {
    pub fn weir_kernel_create_eltwise(
        engine: *mut Engine,
        desc: *const weir_eltwise_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_gather(
        engine: *mut Engine,
        desc: *const weir_gather_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_binary(
        engine: *mut Engine,
        desc: *const weir_binary_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_select(
        engine: *mut Engine,
        desc: *const weir_select_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_convert(
        engine: *mut Engine,
        desc: *const weir_convert_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_quantize(
        engine: *mut Engine,
        desc: *const weir_quantize_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_transpose(
        engine: *mut Engine,
        desc: *const weir_transpose_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_concat(
        engine: *mut Engine,
        desc: *const weir_concat_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_slice(
        engine: *mut Engine,
        desc: *const weir_slice_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_pad(
        engine: *mut Engine,
        desc: *const weir_pad_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_reshape(
        engine: *mut Engine,
        desc: *const weir_reshape_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_softmax(
        engine: *mut Engine,
        desc: *const weir_softmax_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_reduce(
        engine: *mut Engine,
        desc: *const weir_reduce_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_norm(
        engine: *mut Engine,
        desc: *const weir_norm_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_conv(
        engine: *mut Engine,
        desc: *const weir_conv_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_pooling(
        engine: *mut Engine,
        desc: *const weir_pooling_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_lstm(
        engine: *mut Engine,
        desc: *const weir_lstm_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_gru(
        engine: *mut Engine,
        desc: *const weir_gru_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_matmul(
        engine: *mut Engine,
        desc: *const weir_matmul_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
    pub fn weir_kernel_create_matmul_int8(
        engine: *mut Engine,
        desc: *const weir_matmul_int8_desc,
        attr: *const weir_kernel_options,
        out: *mut *mut Kernel,
    ) -> weir_status;
}
