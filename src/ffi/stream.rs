//! Streams and their attributes.
//!
//! Chapter: Stream.

use super::argument::{boolean, out_const, out_ptr, out_value, string};
use super::guard::{guard, guard_release};
use super::{failure, handle, task, text};
use crate::abi::*;
use crate::base::Error;
use crate::engine::{self, Stream, StreamAttr};
use crate::ops::check::flags;
use std::ffi::{c_char, c_void};

/// Creates settings for streams on engines of one kind, all default.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_create(
    kind: weir_engine_kind,
    out_attr: *mut *mut weir_stream_attr,
) -> weir_status {
    guard("weir_stream_attr_create", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_attr, "out_attr") }?;
        handle::into_owned_c(StreamAttr::new(engine::checked_kind(kind)?), out)
    })
}

/// Destroys settings. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_destroy(attr: *mut weir_stream_attr) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_stream_attr_destroy", || unsafe { handle::destroy(attr) });
}

/// The kind of engine that the settings are for.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_get_kind(
    attr: *const weir_stream_attr,
    out_kind: *mut weir_engine_kind,
) -> weir_status {
    guard("weir_stream_attr_get_kind", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_kind, "out_kind")?, handle::borrow(attr, "attr")?) };
        out.set(attr.kind.value());
        Ok(())
    })
}

/// The pool on which the stream's work runs. NULL (the default) = the engine's pool, else the calling thread. On a
/// device's stream it runs the host functions (weir_enqueue_task).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_set_threadpool(
    attr: *mut weir_stream_attr,
    pool: *mut weir_threadpool,
) -> weir_status {
    guard("weir_stream_attr_set_threadpool", || {
        // SAFETY: the caller's handles, as documented.
        let (attr, pool) = unsafe { (handle::borrow_mut(attr, "attr")?, handle::share_opt(pool, "pool")?) };
        attr.set_threadpool(pool);
        Ok(())
    })
}

/// The pool that was set, or NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_get_threadpool(
    attr: *const weir_stream_attr,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_stream_attr_get_threadpool", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_ptr(out_pool, "out_pool")?, handle::borrow(attr, "attr")?) };
        *out = handle::borrowed_opt_c(attr.threadpool());
        Ok(())
    })
}

/// Whether enqueuing calls return before the work is done (1) or after it (0, the default on the CPU).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_set_asynchronous(
    attr: *mut weir_stream_attr,
    asynchronous: i32,
) -> weir_status {
    guard("weir_stream_attr_set_asynchronous", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.asynchronous = boolean(asynchronous, "asynchronous")?;
        Ok(())
    })
}

/// The value set by weir_stream_attr_set_asynchronous.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_get_asynchronous(
    attr: *const weir_stream_attr,
    out_asynchronous: *mut i32,
) -> weir_status {
    guard("weir_stream_attr_get_asynchronous", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_asynchronous, "out_asynchronous")?, handle::borrow(attr, "attr")?) };
        out.set(i32::from(attr.asynchronous));
        Ok(())
    })
}

/// How long a thread that waits for the stream spins before it sleeps, in nanoseconds; 0 = not at all. Default 20 us,
/// at most one second.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_set_spin_ns(attr: *mut weir_stream_attr, spin_ns: u64) -> weir_status {
    guard("weir_stream_attr_set_spin_ns", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.spin_ns = crate::threadpool::checked_spin_ns("spin_ns", spin_ns)?;
        Ok(())
    })
}

/// The spin budget that was set, in nanoseconds.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_get_spin_ns(
    attr: *const weir_stream_attr,
    out_spin_ns: *mut u64,
) -> weir_status {
    guard("weir_stream_attr_get_spin_ns", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_spin_ns, "out_spin_ns")?, handle::borrow(attr, "attr")?) };
        out.set(attr.spin_ns);
        Ok(())
    })
}

/// Priority, -100 to 100; 0 = normal (the default). The pool receives it as weir_task_hint.priority.
///
/// Errors: OUT_OF_RANGE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_set_priority(attr: *mut weir_stream_attr, priority: i32) -> weir_status {
    guard("weir_stream_attr_set_priority", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        if !(-100..=100).contains(&priority) {
            return Err(Error::out_of_range(format!("priority is {priority}, expected -100 to 100")));
        }
        attr.priority = priority;
        Ok(())
    })
}

/// The priority that was set.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_get_priority(
    attr: *const weir_stream_attr,
    out_priority: *mut i32,
) -> weir_status {
    guard("weir_stream_attr_get_priority", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_priority, "out_priority")?, handle::borrow(attr, "attr")?) };
        out.set(attr.priority);
        Ok(())
    })
}

/// A name for error texts, UTF-8. Without one a stream is called "stream 7".
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_set_name(attr: *mut weir_stream_attr, name: *const c_char) -> weir_status {
    guard("weir_stream_attr_set_name", || {
        // SAFETY: the caller's pointers, as documented.
        let (attr, name) = unsafe { (handle::borrow_mut(attr, "attr")?, string(name, "name")?) };
        attr.name = name.to_owned();
        Ok(())
    })
}

/// Copies the name that was set, "" if none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_attr_get_name(
    attr: *const weir_stream_attr,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_stream_attr_get_name", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { text::copy(&handle::borrow(attr, "attr")?.name, buffer, capacity, out_length) }
    })
}

/// Creates a stream on an engine. NULL attr = all default. `flags` is OR of weir_stream_flags and adds to the
/// attribute. An asynchronous stream needs a pool that takes single tasks; on any other pool, or without one, it starts
/// one dedicated thread, which weir_runtime_get_info counts. On a pool that runs closures at once, or refuses them, the
/// work runs in the enqueuing call after all; what a function of a stream enqueues runs behind that function.
///
/// Errors: RESOURCE_EXHAUSTED if a dedicated thread cannot be started.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_create(
    engine: *mut weir_engine,
    stream_flags: u64,
    attr: *const weir_stream_attr,
    out_stream: *mut *mut weir_stream,
) -> weir_status {
    guard("weir_stream_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, attr) = unsafe {
            (out_ptr(out_stream, "out_stream")?, handle::share(engine, "engine")?, handle::borrow_opt(attr, "attr")?)
        };
        const ASYNCHRONOUS: u64 = weir_stream_flags::WEIR_STREAM_ASYNCHRONOUS as u64;
        let asynchronous = flags(stream_flags, ASYNCHRONOUS, "stream_flags")? != 0;
        let mut attr = attr.map_or_else(|| StreamAttr::new(engine.kind()), |attr| StreamAttr::clone(attr));
        attr.asynchronous |= asynchronous;
        handle::into_c(Stream::create(engine, attr)?, out)
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_retain(stream: *mut weir_stream) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_stream_retain", || unsafe { handle::retain(stream, "stream") })
}

/// Gives up one reference. NULL does nothing. Queued work still runs; only weir_engine_synchronize and
/// weir_sync_devices can then report its errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_release(stream: *mut weir_stream) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_stream_release", || unsafe { handle::release_with_pool(stream, |stream| stream.pool()) });
}

/// The engine that the stream is on.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_get_engine(
    stream: *const weir_stream,
    out_engine: *mut *mut weir_engine,
) -> weir_status {
    guard("weir_stream_get_engine", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, stream) = unsafe { (out_ptr(out_engine, "out_engine")?, handle::borrow(stream, "stream")?) };
        *out = handle::borrowed_c(stream.engine());
        Ok(())
    })
}

/// The thread pool that was set for the stream, or NULL if none was (then the engine's is used). There is no setter.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_get_threadpool(
    stream: *const weir_stream,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_stream_get_threadpool", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, stream) = unsafe { (out_ptr(out_pool, "out_pool")?, handle::borrow(stream, "stream")?) };
        *out = handle::borrowed_opt_c(stream.attr().threadpool());
        Ok(())
    })
}

/// The settings that the stream was created with.
///
/// Ownership: do not destroy it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_get_attr(
    stream: *const weir_stream,
    out_attr: *mut *const weir_stream_attr,
) -> weir_status {
    guard("weir_stream_get_attr", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, stream) = unsafe { (out_const(out_attr, "out_attr")?, handle::borrow(stream, "stream")?) };
        *out = handle::borrowed_c(stream.attr());
        Ok(())
    })
}

/// Runs fn(arg) as one piece of the stream's work. If it returns anything but WEIR_OK, an asynchronous stream has
/// failed. `destroy` (may be NULL) is called with arg after fn returned, or when fn is skipped after a failure; not if
/// this call is refused. (A failure of fn itself is no refusal.) On a device's stream fn runs when the device has
/// reached it, on the pool of the stream or its engine, or on a thread of the stream's own if neither takes single
/// tasks; later work is submitted to the device when fn has returned.
///
/// Blocking: until fn returned on a synchronous stream, never on an asynchronous one. Ownership: arg passes to the
/// stream if destroy is given. Errors: FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used
/// from inside its own work; on a synchronous stream also fn's status.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_enqueue_task(
    stream: *mut weir_stream,
    r#fn: weir_host_fn,
    arg: *mut c_void,
    destroy: weir_destroy_fn,
) -> weir_status {
    guard("weir_enqueue_task", || {
        // SAFETY: the caller's handle, as documented.
        let stream = unsafe { handle::share(stream, "stream") }?;
        let f = r#fn.ok_or_else(|| Error::null("fn"))?;
        stream.enqueue_task(task::HostTask::new(f, arg, destroy))
    })
}

/// Waits until all work is done that was queued on the stream before this call. Returns the stream's failure the first
/// time; after that WEIR_OK, while the stream stays failed (weir_stream_get_failure) and refuses work until
/// weir_stream_clear_error.
///
/// Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). It runs work that
/// has not begun in this thread, and so may end late by one item of it; with a time-out it leaves that to the stream's
/// pool for 50 ms first (docs/waiting.md). Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if called from the stream's
/// own work, or in a worker of a pool while no thread is doing the work; else the stream's failure.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_synchronize(stream: *mut weir_stream, timeout_ns: u64) -> weir_status {
    guard("weir_stream_synchronize", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::share(stream, "stream") }?.synchronize(timeout_ns)
    })
}

/// Whether everything queued so far is done (1) or not (0), regardless of failure.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_query(stream: *const weir_stream, out_done: *mut i32) -> weir_status {
    guard("weir_stream_query", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, stream) = unsafe { (out_value(out_done, "out_done")?, handle::borrow(stream, "stream")?) };
        out.set(i32::from(stream.is_idle()));
        Ok(())
    })
}

/// Clears the stream's failure, for device synchronisation too. Work enqueued from now on runs again; work enqueued
/// before stays skipped.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_clear_error(stream: *mut weir_stream) -> weir_status {
    guard("weir_stream_clear_error", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow(stream, "stream") }?.clear_error();
        Ok(())
    })
}

/// Makes the stream's later work wait until the event, as last recorded before this call, has been reached. An event
/// that was never recorded is no wait. If the event's stream had failed, an asynchronous stream fails with ABORTED and
/// the origin's text; a synchronous one returns them.
///
/// Blocking: never on an asynchronous stream; on a synchronous one until the event is reached. Errors:
/// FAILED_PRECONDITION if the stream has failed, or if a synchronous stream's wait would block a worker or, as the
/// event's stream waits for this one, never end.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_wait_event(stream: *mut weir_stream, event: *mut weir_event) -> weir_status {
    guard("weir_stream_wait_event", || {
        // SAFETY: the caller's handles, as documented.
        let (stream, event) = unsafe { (handle::share(stream, "stream")?, handle::borrow(event, "event")?) };
        stream.wait_event(event)
    })
}

/// The stream's failure, as of weir_thread_get_failure; code is WEIR_OK if there is none. Reading it changes nothing.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, not_run NULL with a capacity).
///
/// Chapter: Failures.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_get_failure(
    stream: *const weir_stream,
    failure: *mut weir_failure,
) -> weir_status {
    guard("weir_stream_get_failure", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { failure::describe(failure, handle::borrow(stream, "stream")?.error().as_ref()) }
    })
}
