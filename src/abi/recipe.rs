//! Recipes, from which a plug-in's device makes its kernels.
//!
//! Chapter: Device.
#![forbid(unsafe_code)]

use super::tensor::weir_tensor_view;
use super::threadpool::weir_destroy_fn;
use std::ffi::{c_char, c_void};

/// The recipe of a device's kernel, filled by weir. All of it lives during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_recipe {
    /// sizeof(weir_device_recipe), set by weir.
    pub struct_size: usize,
    /// The operation, NUL-terminated: "matmul" stands for weir_kernel_create_matmul, and so on; any other name comes
    /// from weir_kernel_create_named.
    pub operation: *const c_char,
    /// For weir's own operations the descriptor, such as weir_matmul_desc for "matmul", checked and with all members of
    /// this version of weir: its struct_size says how much that is. Otherwise the attributes that
    /// weir_kernel_create_named was given. NULL if there are none. Aligned to 8 bytes.
    pub attributes: *const c_void,
    /// Bytes of the attributes.
    pub attributes_bytes: usize,
    /// Number of inputs.
    pub num_inputs: usize,
    /// Number of outputs.
    pub num_outputs: usize,
    /// With WEIR_DEVICE_HOST_KERNELS: a host function that computes the same; NULL if there is none. Lives as long as
    /// `host_user` is retained.
    pub host_call: weir_device_host_call_fn,
    /// First argument of the functions here.
    pub host_user: *mut c_void,
    /// Keeps `host_user` alive beyond kernel_create, until host_release is called for it.
    pub host_retain: weir_destroy_fn,
    /// Any thread.
    pub host_release: weir_destroy_fn,
}

/// A kernel as a host function, on memory that the host can touch: weir's, for a device to call. It may block, and may
/// call weir. Any thread, several at a time. A code that is not WEIR_OK is the failure of the kernel: then `text` holds
/// the reason, at most `capacity` bytes of NUL-terminated UTF-8.
pub type weir_device_host_call_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        inputs: *const weir_tensor_view,
        num_inputs: usize,
        outputs: *const weir_tensor_view,
        num_outputs: usize,
        text: *mut c_char,
        capacity: usize,
    ) -> i32,
>;
