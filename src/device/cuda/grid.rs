//! Launches of kernels, as the driver takes them.
#![forbid(unsafe_code)]

use super::table::CUfunction;
use std::ffi::c_void;

/// A kernel's launch as the driver takes it.
#[derive(Clone, Debug)]
pub struct LaunchGrid {
    pub function: CUfunction,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
}

/// The arguments of a launch.
#[derive(Debug)]
pub struct Arguments<'a> {
    /// Pointers to each of them.
    pub places: &'a [*mut c_void],
    /// The storage of those that the kernel itself does not keep.
    pub storage: &'a [u8],
}
