//! DLPack: the structs of its specification, and flags.
//!
//! The structs in weir/dlpack.h are not made from these: dlpack.h may have come first.
//!
//! Chapter: Exchange.
#![allow(non_snake_case)]
use std::ffi::c_void;

/// Flags of weir_tensor_to_dlpack and weir_tensor_from_dlpack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_dlpack_flags {
    /// Export: mark the tensor read-only. Import: accept memory that must not be written; the caller makes sure that
    /// nothing writes it.
    WEIR_DLPACK_READ_ONLY = 1,
    /// Export and import: copy the elements into memory that only the receiver owns. An import then accepts any
    /// strides.
    WEIR_DLPACK_COPY = 2,
}

/// A memory location.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    pub device_type: i32,
    pub device_id: i32,
}

/// A data type of elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

/// A tensor without an owner.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// A tensor with its owner, as before version 1.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    pub dl_tensor: DLTensor,
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// The version of the structs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    pub major: u32,
    pub minor: u32,
}

/// A tensor with its owner. All members up to `flags` keep their places in later versions.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    pub version: DLPackVersion,
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    pub flags: u64,
    pub dl_tensor: DLTensor,
}
