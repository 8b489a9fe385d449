//! The conformance checks: of a host's pool, and of devices.
use std::ffi::{c_char, c_void};

/// What weir_threadpool_conformance and weir_device_conformance say of a clause.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_conformance_verdict {
    /// Nothing wrong was seen.
    WEIR_CONFORMANCE_PASS = 0,
    /// The clause is broken; the text says how.
    WEIR_CONFORMANCE_FAIL = 1,
    /// The pool or device lacks the function that the clause is about.
    WEIR_CONFORMANCE_NOT_OFFERED = 2,
    /// Legal, and good to know: what the pool is like.
    WEIR_CONFORMANCE_NOTE = 3,
    /// It could not be tried, because a call before it has not returned.
    WEIR_CONFORMANCE_NOT_CHECKED = 4,
}

/// How weir_threadpool_conformance and weir_device_conformance go about it. Zero in a member means the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_conformance_options {
    /// sizeof(weir_conformance_options) of the caller's header.
    pub struct_size: usize,
    /// How long a clause waits for tasks that do not come, in nanoseconds; default 2 s, at most 100 s. A call of the
    /// pool that takes five times as long counts as one that never returns.
    pub budget_ns: u64,
    /// For what is drawn: lengths of tasks and pauses.
    pub seed: u64,
    /// How often each thing is tried; default 16, at most 100000.
    pub rounds: i32,
    /// Reserved, 0.
    pub flags: u32,
}

/// What is said of a clause of docs/threadpool.md, or of docs/devices.md.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_conformance_line {
    /// sizeof(weir_conformance_line), set by weir.
    pub struct_size: usize,
    /// The clause, such as "H5".
    pub clause: *const c_char,
    /// What the clause asks for, or what a note is about.
    pub title: *const c_char,
    /// What was seen, for people to read.
    pub text: *const c_char,
    /// One of weir_conformance_verdict.
    pub verdict: i32,
    /// Reserved, 0.
    pub reserved: i32,
}

/// Takes a line. It and its texts live during the call.
pub type weir_conformance_fn =
    Option<unsafe extern "C" fn(report_arg: *mut c_void, line: *const weir_conformance_line)>;
