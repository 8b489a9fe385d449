//! Recordings for a plug-in's device: work that is built once and submitted many times.
//!
//! Chapter: Device.
#![forbid(unsafe_code)]

use super::tensor::weir_tensor_view;
use std::ffi::{c_char, c_void};

/// An address in a device's memory. Only the device may be able to read and write there; 0 is none.
pub type weir_device_address = u64;

/// One launch of a kernel, filled by weir. All of it lives during the call; the memory of the tensors until the launch
/// is done.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_launch {
    /// sizeof(weir_device_launch), set by weir.
    pub struct_size: usize,
    /// The inputs. `data` is an address in the device's memory.
    pub inputs: *const weir_tensor_view,
    /// How many.
    pub num_inputs: usize,
    /// The outputs, likewise.
    pub outputs: *const weir_tensor_view,
    /// How many.
    pub num_outputs: usize,
    /// Scratch memory of the device, as much as kernel_scratch has asked for, with any contents, aligned as device_info
    /// says, and exclusive to this launch until it is done; 0 if none. Not set in a call of kernel_scratch.
    pub scratch: weir_device_address,
    /// How many bytes.
    pub scratch_bytes: u64,
}

/// The kinds of steps of a recording.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_work_kind_value {
    /// A launch of a kernel.
    WEIR_DEVICE_WORK_LAUNCH = 1,
    /// A copy.
    WEIR_DEVICE_WORK_COPY = 2,
    /// A fill: all bytes get one value.
    WEIR_DEVICE_WORK_FILL = 3,
    /// A branch: one of several lists of steps runs. Only with WEIR_DEVICE_CONTROL_FLOW, like the next one.
    WEIR_DEVICE_WORK_BRANCH = 4,
    /// A loop: a list of steps is repeated.
    WEIR_DEVICE_WORK_LOOP = 5,
}

/// The predicates of a recording's loop.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_relation_value {
    /// The integer at the first address is not 0: a WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32.
    WEIR_DEVICE_NOT_ZERO = 0,
    /// The number at the first address is equal to the one at the second, both WEIR_F32 or both WEIR_S32; likewise
    /// below. A NaN is unequal to all numbers, and neither less nor greater.
    WEIR_DEVICE_EQ = 1,
    /// They are not equal.
    WEIR_DEVICE_NE = 2,
    /// The first one is less.
    WEIR_DEVICE_LT = 3,
    /// The first one is less or equal.
    WEIR_DEVICE_LE = 4,
    /// The first one is greater.
    WEIR_DEVICE_GT = 5,
    /// The first one is greater or equal.
    WEIR_DEVICE_GE = 6,
}

/// A copy of a recording. Each end is in the memory of `device`, of another device of this vtable (with
/// WEIR_DEVICE_PEER_COPY), or, if the device is NULL, of the host: then the address is a pointer as a number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_copy {
    /// sizeof(weir_device_copy), set by weir.
    pub struct_size: usize,
    /// How many; 0 = no effect.
    pub bytes: u64,
    /// The device whose memory is written; NULL = the host's.
    pub to_device: *mut c_void,
    /// Its address.
    pub to: weir_device_address,
    /// The device whose memory is read; NULL = the host's.
    pub from_device: *mut c_void,
    /// Its address.
    pub from: weir_device_address,
}

/// A fill of a recording.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_fill {
    /// sizeof(weir_device_fill), set by weir.
    pub struct_size: usize,
    /// The address in the device's memory.
    pub to: weir_device_address,
    /// How many; 0 = no effect.
    pub bytes: u64,
    /// The value of each byte.
    pub value: u8,
    /// Reserved, 0.
    pub reserved: [u8; 7],
}

/// Steps. Each may begin when the steps that it names are over; otherwise they run in any order, or side by side. This
/// struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_step_list {
    /// The steps.
    pub steps: *const weir_device_step,
    /// How many; there may be none.
    pub num_steps: usize,
}

/// A branch of a recording: an integer in the device's memory, read when the branch's turn comes, chooses the list that
/// runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_branch {
    /// sizeof(weir_device_branch), set by weir.
    pub struct_size: usize,
    /// The address of the integer, in the device's memory.
    pub choice: weir_device_address,
    /// Its type: WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32.
    pub dtype: u32,
    /// 1: there are two lists; the first runs if the integer is 0, and the second if it is not. 0: the list with that
    /// number runs, or the last one if there is none.
    pub is_cond: i32,
    /// The lists.
    pub branches: *const weir_device_step_list,
    /// How many, 1 or more.
    pub num_branches: usize,
}

/// A loop of a recording: its body runs as long as a predicate holds. The predicate is read from the device's memory
/// before each iteration, also the first. An iteration ends before the next one begins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_loop {
    /// sizeof(weir_device_loop), set by weir.
    pub struct_size: usize,
    /// One of weir_device_relation_value.
    pub relation: u32,
    /// The type of the numbers that are read.
    pub dtype: u32,
    /// Their addresses in the device's memory. WEIR_DEVICE_NOT_ZERO uses only the first one.
    pub addresses: [weir_device_address; 2],
    /// The steps of an iteration.
    pub body: *const weir_device_step_list,
    /// Steps of the body after which the predicate may be read for the next iteration: every step that writes it is one
    /// of these or comes before one of them. NULL: it is read after all steps.
    pub behind: *const usize,
    /// How many.
    pub num_behind: usize,
}

/// The work of a step. The member for its kind is set, and the others are NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_work {
    /// sizeof(weir_device_work), set by weir.
    pub struct_size: usize,
    /// One of weir_device_work_kind_value.
    pub kind: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// For a launch: the kernel.
    pub kernel: *mut c_void,
    /// For a launch: its arguments.
    pub launch: *const weir_device_launch,
    /// The copy.
    pub copy: *const weir_device_copy,
    /// The fill.
    pub fill: *const weir_device_fill,
    /// The branch.
    pub branch: *const weir_device_branch,
    /// The loop.
    pub again: *const weir_device_loop,
}

/// A step of a list. This struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_step {
    /// Its work.
    pub work: *const weir_device_work,
    /// Numbers of earlier steps of its own list that are over when it begins.
    pub after: *const usize,
    /// How many.
    pub num_after: usize,
}

/// A recording, filled by weir. All of it lives during the call; its kernels and memory as long as the executable that
/// is made of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_recording {
    /// sizeof(weir_device_recording), set by weir.
    pub struct_size: usize,
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// Its steps.
    pub list: weir_device_step_list,
}
