//! Regions: parts of a program that a plug-in's device may make one kernel of.
#![forbid(unsafe_code)]

use super::recipe::weir_device_recipe;
use super::recording::weir_device_address;
use super::tensor::weir_tensor_desc;
use std::ffi::{c_char, c_void};

/// A value of a region. This struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_region_value {
    /// Its type and its shape, without open dimensions.
    pub desc: weir_tensor_desc,
    /// Of a constant in the device's memory: where it is, for as long as the kernel that is made of the region. The
    /// bytes are there, and stay as they are. 0: it is no such constant.
    pub constant: weir_device_address,
}

/// A node of a region: one call of a kernel. Values go by their numbers in the region. This struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_region_node {
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// What its kernel was made from, as kernel_create was given it.
    pub recipe: *const weir_device_recipe,
    /// What kernel_create made of that. It lives as long as the kernel that is made of the region.
    pub kernel: *mut c_void,
    /// The values that it reads.
    pub inputs: *const usize,
    /// How many.
    pub num_inputs: usize,
    /// The values that it computes: each value is computed by one node at most.
    pub outputs: *const usize,
    /// How many.
    pub num_outputs: usize,
    /// Numbers of earlier nodes that are over when it begins, besides those that compute what it reads.
    pub after: *const usize,
    /// How many.
    pub num_after: usize,
}

/// A part of a program that a device may make one kernel of, filled by weir: nodes of this device alone, of which no
/// path of the program's goes out and comes back. All of it lives during the call; kernels and constants that it names
/// as long as the kernel that is made of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_region {
    /// sizeof(weir_device_region), set by weir.
    pub struct_size: usize,
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// Its nodes, each behind those that it waits for.
    pub nodes: *const weir_device_region_node,
    /// How many.
    pub num_nodes: usize,
    /// Its values: what comes in, constants, and what its nodes compute.
    pub values: *const weir_device_region_value,
    /// How many.
    pub num_values: usize,
    /// The values that come in: the inputs of each launch, in this order. No constant is among them.
    pub inputs: *const usize,
    /// How many.
    pub num_inputs: usize,
    /// The values that others want: the outputs of each launch, in this order. Nobody wants the rest.
    pub outputs: *const usize,
    /// How many.
    pub num_outputs: usize,
}
