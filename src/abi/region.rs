//! Regions: parts of a program that a plug-in's device may compile to one kernel.
//!
//! Chapter: Device.
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
    /// The address of a constant in the device's memory, valid as long as the region's kernel; its bytes are there and
    /// never change. 0 for other values.
    pub constant: weir_device_address,
}

/// A node of a region: one call of a kernel. Values are named by their numbers in the region. This struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_region_node {
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// The recipe of its kernel, as given to kernel_create.
    pub recipe: *const weir_device_recipe,
    /// The kernel that kernel_create made. It lives as long as the region's kernel.
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

/// A part of a program that a device may compile to one kernel, filled by weir: a convex subgraph with nodes of this
/// device only, so no path leaves it and comes back. All of it lives during the call; its kernels and constants as long
/// as the kernel that is made of it.
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
    /// Its values: inputs, constants, and the outputs of its nodes.
    pub values: *const weir_device_region_value,
    /// How many.
    pub num_values: usize,
    /// The input values: the inputs of each launch, in this order. No constant is among them.
    pub inputs: *const usize,
    /// How many.
    pub num_inputs: usize,
    /// The values that are read outside: the outputs of each launch, in this order. All others stay inside.
    pub outputs: *const usize,
    /// How many.
    pub num_outputs: usize,
}
