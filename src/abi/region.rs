//! Regions: parts of a program that a plug-in's device may compile to one kernel.
#![forbid(unsafe_code)]

use super::recipe::weir_device_recipe;
use super::recording::weir_device_address;
use super::tensor::weir_tensor_desc;
use std::ffi::{c_char, c_void};

/// A value of a region. This struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_region_value {
    /// Type and shape, without open dimensions.
    pub desc: weir_tensor_desc,
    /// Address of a constant in the device's memory, valid and unchanged as long as the kernel made from the region. 0:
    /// not such a constant.
    pub constant: weir_device_address,
}

/// A node of a region: one call of a kernel. Values are given by their indices in the region. This struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_region_node {
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// The recipe of its kernel, as given to kernel_create.
    pub recipe: *const weir_device_recipe,
    /// The result of kernel_create for that recipe. It lives as long as the kernel made from the region.
    pub kernel: *mut c_void,
    /// The values that it reads.
    pub inputs: *const usize,
    /// Number of inputs.
    pub num_inputs: usize,
    /// The values that it computes: each value is computed by one node at most.
    pub outputs: *const usize,
    /// Number of outputs.
    pub num_outputs: usize,
    /// Indices of earlier nodes that must be over before it begins, besides those that compute its inputs.
    pub after: *const usize,
    /// Number of these nodes.
    pub num_after: usize,
}

/// A part of a program that a device may compile to one kernel, filled by weir: nodes of this device only, such that no
/// path of the program leaves the region and comes back. All of it is valid during the call; kernels and constants that
/// it names as long as the kernel made from it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_region {
    /// sizeof(weir_device_region), set by weir.
    pub struct_size: usize,
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// Its nodes, each after those that it waits for.
    pub nodes: *const weir_device_region_node,
    /// Number of nodes.
    pub num_nodes: usize,
    /// Its values: inputs, constants, and the values that its nodes compute.
    pub values: *const weir_device_region_value,
    /// Number of values.
    pub num_values: usize,
    /// The values that come from outside: the inputs of each launch, in this order, without constants.
    pub inputs: *const usize,
    /// Number of inputs.
    pub num_inputs: usize,
    /// The values that are used outside: the outputs of each launch, in this order. The others are not needed outside.
    pub outputs: *const usize,
    /// Number of outputs.
    pub num_outputs: usize,
}
