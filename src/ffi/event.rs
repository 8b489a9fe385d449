//! Events.
//!
//! Chapter: Event.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::{handle, notice};
use crate::abi::*;
use crate::engine::Event;
use crate::ops::check::flags;

/// Creates an event, not yet recorded. `event_flags` is OR of weir_event_flags.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_create(
    engine: *mut weir_engine,
    event_flags: u64,
    out_event: *mut *mut weir_event,
) -> weir_status {
    guard("weir_event_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_ptr(out_event, "out_event")?, handle::share(engine, "engine")?) };
        const TIMING: u64 = weir_event_flags::WEIR_EVENT_TIMING as u64;
        let timing = flags(event_flags, TIMING, "event_flags")? != 0;
        handle::into_c(Event::create(engine, timing), out)
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_retain(event: *mut weir_event) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_event_retain", || unsafe { handle::retain(event, "event") })
}

/// Gives up one reference. NULL does nothing. A recorded event may be released before it is reached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_release(event: *mut weir_event) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_event_release", || unsafe { handle::release(event) });
}

/// Records the event after everything queued on the stream so far. Recording again moves it; waits that began for the
/// earlier record still wait for that one.
///
/// Blocking: never on an asynchronous stream. Errors: INVALID_ARGUMENT (also a stream of another device than the
/// event's); FAILED_PRECONDITION if a synchronous stream is used from inside its own work. On a failed stream the
/// record is legal, and the event carries the failure.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_record(event: *mut weir_event, stream: *mut weir_stream) -> weir_status {
    guard("weir_event_record", || {
        // SAFETY: the caller's handles, as documented.
        let (event, stream) = unsafe { (handle::borrow(event, "event")?, handle::share(stream, "stream")?) };
        event.record(&stream)
    })
}

/// Whether the event, as last recorded, has been reached (1) or not (0). An event that was never recorded counts as
/// reached.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_query(event: *const weir_event, out_done: *mut i32) -> weir_status {
    guard("weir_event_query", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, event) = unsafe { (out_value(out_done, "out_done")?, handle::borrow(event, "event")?) };
        out.set(i32::from(event.is_reached()));
        Ok(())
    })
}

/// Waits until the event, as last recorded before this call, has been reached. Returns at once if it was never
/// recorded.
///
/// Blocking: until reached, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). Meanwhile it
/// runs queued work, as weir_stream_synchronize does. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here
/// would block a worker that the work needs; else the failure of the stream that the event was recorded on, each time.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_synchronize(event: *mut weir_event, timeout_ns: u64) -> weir_status {
    guard("weir_event_synchronize", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::share(event, "event") }?.synchronize(timeout_ns)
    })
}

/// Tells the host when the event, as last recorded before this call, has been reached, as weir_run_notify does for a
/// run. The status is the failure, up to there, of the stream that it was recorded on. If it was never recorded, or has
/// been reached, the notice arrives before the call returns. Recording again, or releasing the event, does not affect
/// earlier notices.
///
/// Blocking: never; the function and release run here if the event has been reached. Ownership: `notice` is read during
/// the call; its ctx is released with `release`. Errors: INVALID_ARGUMENT (NULL, neither function nor eventfd, an
/// event_fd that is no eventfd or that blocks); RESOURCE_EXHAUSTED (also if the notice thread of an engine cannot be
/// started).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_notify(event: *mut weir_event, notice: *const weir_notice) -> weir_status {
    guard("weir_event_notify", || {
        // SAFETY: the caller's pointers, as documented.
        let (event, listener) =
            unsafe { (handle::borrow(event, "event")?, notice::read("weir_event_notify", notice, "notice")?) };
        event.notify(listener)
    })
}

/// Nanoseconds from `start` to `end` on the monotonic clock; negative if end was reached first.
///
/// Errors: FAILED_PRECONDITION if either lacks WEIR_EVENT_TIMING, was never recorded, or has not been reached yet.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_elapsed_ns(
    start: *const weir_event,
    end: *const weir_event,
    out_ns: *mut i64,
) -> weir_status {
    guard("weir_event_elapsed_ns", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, start, end) =
            unsafe { (out_value(out_ns, "out_ns")?, handle::borrow(start, "start")?, handle::borrow(end, "end")?) };
        out.set(Event::elapsed_ns(start, end)?);
        Ok(())
    })
}
