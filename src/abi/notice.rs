//! Notices: how the host is told that something is over.
//!
//! Chapter: Stream.

use super::{weir_destroy_fn, weir_run, weir_status};
use std::ffi::c_void;

/// Receives the end of a run, or of the record of an event; called once for each. `status` is how it ended: WEIR_OK,
/// the first node's failure, CANCELLED, DEADLINE_EXCEEDED, or ABORTED if the stream had failed before. `run` is the
/// run, borrowed for the call; NULL for an event, and for a run of weir_program_run. Must not throw, longjmp or unwind.
pub type weir_notify_fn = Option<unsafe extern "C" fn(ctx: *mut c_void, status: weir_status, run: *mut weir_run)>;

/// How the host is told that something is over: by a function, by an eventfd, or by both, the function first. For
/// weir_run_notify, weir_event_notify, weir_task_group_notify and weir_run_options.
///
/// *When.* It is over by then: weir_run_query, or weir_event_query for that record, says 1, and a wait for it returns
/// at once. If the status is not WEIR_OK, weir_last_error_message and weir_thread_get_failure describe the failure
/// inside of the function, and so does weir_run_get_failure if there is a run.
///
/// *Where.* The function is called
///
/// - for work on a stream of a CPU engine: in the thread that ends it, which is a worker of the stream's pool, the
///   stream's own thread, or a thread that waits for it or was refused by the pool. The call is part of the stream's
///   work: the stream continues after it returns;
/// - for work on a stream of another device: in the engine's notice thread, which weir starts for the first such
///   function and keeps as long as the engine (WEIR_THREAD_ORIGIN_LANE); one call after the other, in the order of the
///   ends that weir saw;
/// - for what was over before the asking call: in the calling thread, before that call returns.
///
/// It is never called on a device's thread, nor while weir holds a lock, nor inside of another such function on the
/// same stack: there it runs after that one. So a function may start the next run, whose function starts another, for
/// ever.
///
/// *What it may call.* Everything that a host function on that stream may (weir_enqueue_task): it may queue work, start
/// runs, query, and release objects. It should not block: the stream, or the engine's other notices, wait for it. The
/// rules for a wait for one stream, event or run are those of a host function on that stream; waits for everything
/// (weir_sync_devices) are refused with FAILED_PRECONDITION.
///
/// *The eventfd* gets 1 added, in the same thread, or in the one that finds the end if there is neither function nor
/// release. It remains the host's, must be non-blocking (EFD_NONBLOCK), and must stay open until the notice is over;
/// nothing is added if its counter is already full.
///
/// *The end.* `release` is called once with `ctx` when weir will not use it again, after the function and the eventfd.
/// If the asking call fails, neither function nor release is called, and the host keeps `ctx`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_notice {
    /// sizeof(weir_notice) of the caller's header.
    pub struct_size: usize,
    /// The function; NULL = none.
    pub notify: weir_notify_fn,
    /// For `notify` and `release`.
    pub ctx: *mut c_void,
    /// NULL = none.
    pub release: weir_destroy_fn,
    /// The eventfd; 0 = none.
    pub event_fd: i32,
    /// Reserved, 0.
    pub reserved: u32,
}
