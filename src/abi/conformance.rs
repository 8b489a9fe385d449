//! The conformance checks: of a host's pool, of devices, and of a host's transport between ranks.
//!
//! Chapter: Conformance.
use super::threadpool::weir_threadpool_vtable;
use std::ffi::{c_char, c_int, c_void};

/// A function of a module that gives a pool: fills both outputs and returns 0. Its name is weir_conformance_pool, or
/// the one that the program weir_conformance is told.
pub type weir_conformance_pool_fn =
    Option<unsafe extern "C" fn(out_vtable: *mut weir_threadpool_vtable, out_ctx: *mut *mut c_void) -> c_int>;

/// The verdict of weir_threadpool_conformance, weir_device_conformance and weir_comm_conformance on a clause.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_conformance_verdict_value {
    /// Nothing wrong was seen.
    WEIR_CONFORMANCE_PASS = 0,
    /// The clause is broken; the text says how.
    WEIR_CONFORMANCE_FAIL = 1,
    /// The pool or device lacks the function that the clause is about.
    WEIR_CONFORMANCE_NOT_OFFERED = 2,
    /// Legal, but worth knowing about the pool.
    WEIR_CONFORMANCE_NOTE = 3,
    /// Not checked, because an earlier call has not returned.
    WEIR_CONFORMANCE_NOT_CHECKED = 4,
}

/// Options of weir_threadpool_conformance, weir_device_conformance and weir_comm_conformance. Zero in a member means
/// the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_conformance_options {
    /// sizeof(weir_conformance_options) of the caller's header.
    pub struct_size: usize,
    /// How long a clause waits for tasks that do not come, in nanoseconds; default 2 s, at most 100 s. A call of the
    /// pool that takes five times as long counts as one that never returns.
    pub budget_ns: u64,
    /// Seed of the random lengths of tasks and pauses.
    pub seed: u64,
    /// How often each check is repeated; default 16, at most 100000.
    pub rounds: i32,
    /// Reserved, 0.
    pub flags: u32,
}

/// The result for one clause of docs/threadpool.md, docs/devices.md or docs/ranks.md.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_conformance_line {
    /// sizeof(weir_conformance_line), set by weir.
    pub struct_size: usize,
    /// The clause, such as "H5".
    pub clause: *const c_char,
    /// The requirement that the clause states, or the subject of a note.
    pub title: *const c_char,
    /// The observation, for people to read.
    pub text: *const c_char,
    /// One of weir_conformance_verdict_value.
    pub verdict: i32,
    /// Reserved, 0.
    pub reserved: i32,
}

/// Receives a line. The line and its texts are valid during the call.
pub type weir_conformance_fn =
    Option<unsafe extern "C" fn(report_arg: *mut c_void, line: *const weir_conformance_line)>;
