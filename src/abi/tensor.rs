//! Tensors: element types, descriptors and views.
//!
//! Chapter: Tensor.
#![forbid(unsafe_code)]
use super::{weir_buffer, weir_destroy_fn, weir_engine};
use std::ffi::c_void;

/// An element type: one of enum weir_dtype_value.
pub type weir_dtype = u32;

/// Element types. All are storage types; the built-in kernels compute in f32.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_dtype_value {
    /// In a signature: any type. Never the type of a tensor.
    WEIR_DTYPE_ANY = 0,
    /// IEEE 754 binary32.
    WEIR_F32 = 1,
    /// Signed 32-bit integer, two's complement.
    WEIR_S32 = 2,
    /// Unsigned 8-bit integer.
    WEIR_U8 = 3,
    /// Signed 8-bit integer.
    WEIR_S8 = 4,
    /// IEEE 754 binary16.
    WEIR_F16 = 5,
    /// bfloat16: the upper half of a binary32.
    WEIR_BF16 = 6,
    /// One byte, 0 or 1.
    WEIR_BOOL = 7,
    /// Signed 64-bit integer, two's complement.
    WEIR_S64 = 8,
}

/// Limits of the API.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_limit {
    /// Maximum number of dimensions of a tensor.
    WEIR_MAX_RANK = 8,
    /// Maximum number of inputs, and of outputs, of one kernel.
    WEIR_MAX_ARGS = 64,
}

/// A dimension that is known only at run time, or that matches anything in a kernel's signature.
pub const WEIR_DIM_DYNAMIC: i64 = -1;

/// Element type and shape of a dense, row-major tensor. rank 0 is a scalar.
///
/// In a kernel's signature dtype WEIR_DTYPE_ANY and a dimension of WEIR_DIM_DYNAMIC (-1) match anything. An input of a
/// graph, a variable of a loop, the output of a kernel with WEIR_KERNEL_DYNAMIC and a dynamic tensor may have such
/// dimensions too: each run has its own. Texts show them as "f32[?,128]".
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct weir_tensor_desc {
    /// Element type.
    pub dtype: weir_dtype,
    /// Number of dimensions, at most WEIR_MAX_RANK.
    pub rank: u32,
    /// Dimensions, the slowest first; those from `rank` on are ignored.
    pub dims: [i64; 8],
}

/// A tensor as a kernel sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_tensor_view {
    /// First element.
    pub data: *mut c_void,
    /// Size of the data in bytes.
    pub bytes: usize,
    /// Element type and shape.
    pub desc: weir_tensor_desc,
}

/// A source of memory: one of enum weir_memory_source_value.
pub type weir_memory_source = u32;

/// The source of a tensor's or a buffer's memory, if it is not new memory of its engine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_memory_source_value {
    /// Memory of the caller's that the engine's kernels can reach.
    WEIR_MEMORY_FOREIGN = 0,
    /// A part of a buffer, for a tensor.
    WEIR_MEMORY_BUFFER = 1,
    /// New host memory that a device copies directly from and to, for an object of a CPU engine.
    WEIR_MEMORY_PINNED = 2,
}

/// Memory for weir_tensor_create and weir_buffer_create.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_memory {
    /// sizeof(weir_memory), set by the caller.
    pub struct_size: usize,
    /// The source, which says which members below count; the others are 0.
    pub source: weir_memory_source,
    /// 0.
    pub reserved: u32,
    /// FOREIGN: the elements, dense and row-major, aligned to the element size. NULL only for no bytes.
    pub data: *mut c_void,
    /// FOREIGN: size of the memory at data; 0 = as large as the object. For a tensor whose shape a run decides it is
    /// the most that a run may store.
    pub bytes: usize,
    /// FOREIGN, may be NULL: called with release_ctx exactly once, when nothing uses the memory any more: no reference
    /// to the object, no tensor on the buffer, no queued work with such a tensor. It is called in the thread that drops
    /// the last use: one that releases a handle, or one that works for a stream or a run. Not called if the creation
    /// fails. Without it the memory must live until nothing uses it any more.
    pub release: weir_destroy_fn,
    /// Argument of release.
    pub release_ctx: *mut c_void,
    /// BUFFER: a buffer of the same engine, which the tensor keeps. Any number of tensors may lie on a buffer and
    /// overlap; a call of a kernel still refuses an output that shares memory with its other tensors.
    pub buffer: *mut weir_buffer,
    /// BUFFER: byte of the buffer that the tensor begins at.
    pub offset: usize,
    /// PINNED: an engine. Copies between the object and this engine's memory proceed by themselves, while copies of
    /// other memory may be staged, or block the submitting thread. Engines that cannot pin (`pinning` of
    /// weir_memory_info is 0), and CPU engines, get ordinary memory; no error is returned. The memory is
    /// counted in weir_memory_info of this engine, under its limit, and returns to it; the object may outlive both.
    pub device: *mut weir_engine,
}
