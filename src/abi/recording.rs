//! Recordings as a plug-in's device receives them: work that is assembled once and submitted many times.
#![forbid(unsafe_code)]

use super::tensor::weir_tensor_view;
use std::ffi::{c_char, c_void};

/// An address in a device's memory. Possibly only the device can read and write there; 0 is none.
pub type weir_device_address = u64;

/// One call of a kernel, filled by weir. All of it is valid during the call; the memory of the tensors until the stream
/// has finished the work.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_launch {
    /// sizeof(weir_device_launch), set by weir.
    pub struct_size: usize,
    /// The inputs. `data` is an address in the device's memory.
    pub inputs: *const weir_tensor_view,
    /// Number of inputs.
    pub num_inputs: usize,
    /// The outputs, as `inputs`.
    pub outputs: *const weir_tensor_view,
    /// Number of outputs.
    pub num_outputs: usize,
    /// Scratch memory on the device, as many bytes as kernel_scratch requested, with any contents, aligned as
    /// device_info says, exclusive to this call until it is done; 0 if none. Not set in a call of kernel_scratch.
    pub scratch: weir_device_address,
    /// Bytes of scratch memory.
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
    /// A fill: all bytes get one value.
    WEIR_DEVICE_WORK_FILL = 3,
    /// A branch: one of several lists of steps. Only with WEIR_DEVICE_CONTROL_FLOW, as the next one.
    WEIR_DEVICE_WORK_BRANCH = 4,
    /// A loop: a list of steps that is repeated.
    WEIR_DEVICE_WORK_LOOP = 5,
}

/// The condition with which a loop of a recording continues.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_device_relation {
    /// The integer at the first address is not 0: a WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32.
    WEIR_DEVICE_NOT_ZERO = 0,
    /// The number at the first address is equal to the one at the second, both WEIR_F32 or both WEIR_S32; likewise
    /// below. A NaN is unequal to all numbers, and neither less nor greater.
    WEIR_DEVICE_EQ = 1,
    /// They are unequal.
    WEIR_DEVICE_NE = 2,
    /// The first is less.
    WEIR_DEVICE_LT = 3,
    /// The first is less or equal.
    WEIR_DEVICE_LE = 4,
    /// The first is greater.
    WEIR_DEVICE_GT = 5,
    /// The first is greater or equal.
    WEIR_DEVICE_GE = 6,
}

/// A copy of a recording. Each end is in the memory of `device`, of another device of this vtable (with
/// WEIR_DEVICE_PEER_COPY), or, where that is NULL, of the host: then the address is a pointer as a number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_copy {
    /// sizeof(weir_device_copy), set by weir.
    pub struct_size: usize,
    /// Number of bytes; 0 = no-op.
    pub bytes: u64,
    /// The device whose memory is written; NULL = the host's.
    pub to_device: *mut c_void,
    /// The address written.
    pub to: weir_device_address,
    /// The device whose memory is read; NULL = the host's.
    pub from_device: *mut c_void,
    /// The address read.
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
    /// Number of bytes; 0 = no-op.
    pub bytes: u64,
    /// The value of each byte.
    pub value: u8,
    /// Reserved, 0.
    pub reserved: [u8; 7],
}

/// Steps that may begin when the steps that they name are over, and otherwise run in any order or in parallel. This
/// struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_step_list {
    /// The steps.
    pub steps: *const weir_device_step,
    /// Number of steps; may be 0.
    pub num_steps: usize,
}

/// A branch of a recording: the list to run is chosen by an integer in the device's memory, read when the branch
/// begins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_branch {
    /// sizeof(weir_device_branch), set by weir.
    pub struct_size: usize,
    /// Address of that integer, in the device's memory.
    pub choice: weir_device_address,
    /// Its type: WEIR_BOOL, WEIR_U8, WEIR_S8 or WEIR_S32.
    pub dtype: u32,
    /// 1: there are two lists; the first runs if the integer is 0, the second if it is not. 0: the list with that index
    /// runs, or the last one if there is none.
    pub is_cond: i32,
    /// The lists.
    pub branches: *const weir_device_step_list,
    /// Number of lists, 1 or more.
    pub num_branches: usize,
}

/// A loop of a recording: its body repeats while a predicate holds. The predicate is read from the device's memory
/// before each iteration, the first included. An iteration is completely over before the next one begins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_device_loop {
    /// sizeof(weir_device_loop), set by weir.
    pub struct_size: usize,
    /// One of weir_device_relation.
    pub relation: u32,
    /// The type of the operands.
    pub dtype: u32,
    /// The operands' addresses, in the device's memory. WEIR_DEVICE_NOT_ZERO uses the first one only.
    pub addresses: [weir_device_address; 2],
    /// The steps of one iteration.
    pub body: *const weir_device_step_list,
    /// Steps of the body after which the predicate may be read for the next iteration: no step that could still run
    /// then writes the operands. NULL: it is read after all of them.
    pub behind: *const usize,
    /// Number of these steps.
    pub num_behind: usize,
}

/// The work of a step. The member for its kind is set, and the others are NULL.
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
    /// Indices of earlier steps of the same list that must be over before this one begins.
    pub after: *const usize,
    /// Number of these steps.
    pub num_after: usize,
}

/// A recording, filled by weir. All of it is valid during the call; kernels and memory that it names as long as the
/// executable made from it.
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
