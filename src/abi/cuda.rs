//! Types of CUDA devices.
//!
//! Chapter: CUDA.
#![forbid(unsafe_code)]

use super::{weir_destroy_fn, weir_infer_fn, weir_tensor_desc};
use std::ffi::{c_char, c_void};

/// The form of a kernel's source: one of enum weir_cuda_source_value.
pub type weir_cuda_source = u32;

/// Forms of a kernel's source.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_cuda_source_value {
    /// Text of CUDA C++, compiled by NVRTC for the engine's device. The entry must be extern "C".
    WEIR_CUDA_SOURCE_TEXT = 1,
    /// Text of PTX, compiled by the driver.
    WEIR_CUDA_SOURCE_PTX = 2,
    /// A CUBIN or fat binary for the engine's device.
    WEIR_CUDA_SOURCE_BINARY = 3,
}

/// The kind of a kernel's argument: one of enum weir_cuda_argument_kind_value.
pub type weir_cuda_argument_kind = u32;

/// Kinds of arguments.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_cuda_argument_kind_value {
    /// The address of input `index`: a pointer.
    WEIR_CUDA_ARGUMENT_INPUT = 1,
    /// The address of output `index`: a pointer.
    WEIR_CUDA_ARGUMENT_OUTPUT = 2,
    /// The number of elements of input `index`: uint64_t.
    WEIR_CUDA_ARGUMENT_INPUT_ELEMENTS = 3,
    /// The number of elements of output `index`: uint64_t.
    WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS = 4,
    /// The `bytes` bytes at `value`.
    WEIR_CUDA_ARGUMENT_VALUE = 5,
}

/// An argument of a kernel, in the order of the entry's parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_cuda_argument {
    /// The argument's kind.
    pub kind: weir_cuda_argument_kind,
    /// Index of the input or output; 0 for a value.
    pub index: u32,
    /// A value, copied; NULL for the others.
    pub value: *const c_void,
    /// Bytes of a value, at most 4096; 0 for the others.
    pub bytes: usize,
}

/// A host-provided kernel for a CUDA engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_cuda_kernel_desc {
    /// sizeof(weir_cuda_kernel_desc) of the caller's header.
    pub struct_size: usize,
    /// The source; copied.
    pub source: *const c_void,
    /// Its bytes; 0 = it is text that ends with a NUL.
    pub source_bytes: usize,
    /// The form of the source.
    pub source_kind: weir_cuda_source,
    /// Bytes of dynamic shared memory of each block.
    pub shared_bytes: u32,
    /// The kernel's name in the source, UTF-8.
    pub entry: *const c_char,
    /// Compiler options, with WEIR_CUDA_SOURCE_TEXT only; NULL = none. weir adds the target architecture itself.
    pub options: *const *const c_char,
    /// Number of options.
    pub num_options: usize,
    /// Blocks. {0, 0, 0}: a one-dimensional grid large enough that each element of output 0 has a thread.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// The arguments; copied.
    pub arguments: *const weir_cuda_argument,
    /// Number of arguments.
    pub num_arguments: usize,
    /// Number of inputs, at most WEIR_MAX_ARGS.
    pub num_inputs: usize,
    /// Pattern that each input must match (WEIR_DTYPE_ANY and -1 match anything), or NULL for no check. Copied.
    pub inputs: *const weir_tensor_desc,
    /// Number of outputs, at most WEIR_MAX_ARGS.
    pub num_outputs: usize,
    /// Descriptors of the outputs; NULL if `infer` computes them. Copied.
    pub outputs: *const weir_tensor_desc,
    /// Optional: computes the outputs' descriptors. Required if num_outputs > 0 and `outputs` is NULL or has a -1.
    pub infer: weir_infer_fn,
    /// First argument of `infer`.
    pub user: *mut c_void,
    /// Optional: releases `user` when the kernel dies. Not called if the creation fails.
    pub destroy: weir_destroy_fn,
    /// WEIR_KERNEL_IN_PLACE, or 0. With it an output may share the memory of an input of the same type and shape: loops
    /// then update a variable in place.
    pub flags: u64,
}

/// Properties of an engine's CUDA device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_cuda_device_info {
    /// sizeof(weir_cuda_device_info) of the caller's header.
    pub struct_size: usize,
    /// The CUDA version that the driver supports: 12040 = 12.4.
    pub driver_version: i32,
    /// Compute capability: 9 and 0 for 9.0.
    pub capability_major: u32,
    /// See capability_major.
    pub capability_minor: u32,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Most threads of a block.
    pub max_threads_per_block: u32,
    /// Most bytes of shared memory of a block.
    pub max_shared_bytes: u32,
    /// Memory of the device, in bytes.
    pub memory_bytes: u64,
    /// Free bytes of that memory now, for all processes.
    pub free_bytes: u64,
    /// 1: memory comes from the driver's pool, and freeing it does not wait for the device.
    pub has_memory_pool: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// The device's UUID, the same in each process.
    pub uuid: [u8; 16],
    /// "0000:3b:00.0", with its NUL.
    pub pci_bus_id: [c_char; 32],
    /// The driver's name for the device, UTF-8, with its NUL; cut off if it is longer.
    pub name: [c_char; 128],
    /// The implementation of matrix products: "cuBLASLt 13.0", or "built-in: " and the reason, with its NUL; cut off if
    /// it is longer. "" before the first kernel of products is created: the library is looked up then.
    pub products: [c_char; 128],
}
