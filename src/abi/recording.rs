//! Recordings as a plug-in's device is given them: work that is put together once and submitted many times.
#![forbid(unsafe_code)]

use super::tensor::weir_tensor_view;
use std::ffi::{c_char, c_void};

/// An address in a device's memory. Only the device may be able to read and write there; 0 is none.
pub type weir_device_address = u64;

/// One call of a kernel, filled by weir. All of it lives during the call; the memory of the tensors until the stream
/// has done it.
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
    /// As many bytes of the device's memory as kernel_scratch has asked for, with any contents, aligned as device_info
    /// says, and this call's alone until it is done; 0 if none. Not set in a call of kernel_scratch.
    pub scratch: weir_device_address,
    /// How many bytes.
    pub scratch_bytes: u64,
}

/// The kinds of steps of a recording.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_work_kind {
    /// A call of a kernel.
    WEIR_DEVICE_WORK_LAUNCH = 1,
    /// A copy.
    WEIR_DEVICE_WORK_COPY = 2,
    /// Bytes that become equal.
    WEIR_DEVICE_WORK_FILL = 3,
    /// One list of steps of several. Only with WEIR_DEVICE_CONTROL_FLOW, as the next one.
    WEIR_DEVICE_WORK_BRANCH = 4,
    /// A list of steps that is done again and again.
    WEIR_DEVICE_WORK_LOOP = 5,
}

/// How a loop of a recording decides whether it goes on.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_relation {
    /// The integer at the first address is not 0: a WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32.
    WEIR_DEVICE_NOT_ZERO = 0,
    /// The number at the first address is equal to the one at the second, both WEIR_F32 or both WEIR_S32; so below. A
    /// NaN is unequal to all numbers, and neither less nor greater.
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
/// WEIR_DEVICE_PEER_COPY), or, where that is NULL, of the host: then the address is a pointer as a number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_copy {
    /// sizeof(weir_device_copy), set by weir.
    pub struct_size: usize,
    /// How many; 0 = it does nothing.
    pub bytes: u64,
    /// The device whose memory is written; NULL = the host's.
    pub to_device: *mut c_void,
    /// Where.
    pub to: weir_device_address,
    /// The device whose memory is read; NULL = the host's.
    pub from_device: *mut c_void,
    /// Where.
    pub from: weir_device_address,
}

/// A fill of a recording.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_fill {
    /// sizeof(weir_device_fill), set by weir.
    pub struct_size: usize,
    /// Where, in the device's memory.
    pub to: weir_device_address,
    /// How many; 0 = it does nothing.
    pub bytes: u64,
    /// The value of each byte.
    pub value: u8,
    /// Reserved, 0.
    pub reserved: [u8; 7],
}

/// Steps that may begin when those that they name are over, and else run in any order, or side by side. This struct
/// never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_step_list {
    /// The steps.
    pub steps: *const weir_device_step,
    /// How many; there may be none.
    pub num_steps: usize,
}

/// A branch of a recording: which of its lists is done is read from the device's memory when its turn comes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_branch {
    /// sizeof(weir_device_branch), set by weir.
    pub struct_size: usize,
    /// Where the integer is that is read, in the device's memory.
    pub choice: weir_device_address,
    /// Its type: WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32.
    pub dtype: u32,
    /// 1: there are two lists, the first of which is done if the integer is 0, and the second if it is not. 0: the list
    /// with that number is done, or the last one if there is none.
    pub is_cond: i32,
    /// The lists.
    pub branches: *const weir_device_step_list,
    /// How many, 1 or more.
    pub num_branches: usize,
}

/// A loop of a recording: its body is done as long as a predicate holds, which is read from the device's memory before
/// each time, also before the first. All of a time is over before the next one begins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_loop {
    /// sizeof(weir_device_loop), set by weir.
    pub struct_size: usize,
    /// One of weir_device_relation.
    pub relation: u32,
    /// The type of what is read.
    pub dtype: u32,
    /// Where it is, in the device's memory. Of WEIR_DEVICE_NOT_ZERO the first one alone.
    pub addresses: [weir_device_address; 2],
    /// The steps that are done again.
    pub body: *const weir_device_step_list,
    /// Steps of the body behind which the predicate may be read for the next time: none that these do not come after
    /// writes what is read. NULL: it is read behind all of them.
    pub behind: *const usize,
    /// How many.
    pub num_behind: usize,
}

/// The work of a step. The member for its kind is there, and the others are NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_work {
    /// sizeof(weir_device_work), set by weir.
    pub struct_size: usize,
    /// One of weir_device_work_kind.
    pub kind: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Its name for texts, NUL-terminated UTF-8.
    pub name: *const c_char,
    /// Of a launch: the kernel.
    pub kernel: *mut c_void,
    /// Of a launch: its call.
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

/// A recording, filled by weir. All of it lives during the call; kernels and memory that it names as long as the
/// executable that is made of it.
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
