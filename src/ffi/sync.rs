//! Device synchronisation: one call for everything.
//!
//! Chapter: Everything at once.

use super::argument::{array_mut, out_value};
use super::guard::guard;
use super::{handle, versioned};
use crate::abi::*;
use crate::base::{Error, Result, text};
use crate::engine::{self, Extent};
use std::ffi::c_void;

/// Waits until all work is done that was queued before this call, on every stream of every engine, but not for later
/// work: it returns although other threads keep submitting. Call it before you read the clock. Returns the first late
/// error of each engine that this call has not returned yet: the code of the first, and the texts of all. Streams,
/// engines and domains still report their errors themselves. Work of devices for runs of programs is covered too.
///
/// `results` (NULL, 0 and NULL: none wanted) receives an entry for each engine, in the order of their creation. Set
/// struct_size of the first: it is the distance between entries. *out_count is the number of engines. The work to wait
/// for is noted on all engines before the first wait, so all proceed at once, and a late engine does not hide the
/// results of the others.
///
/// Inside of a kernel, a task, a region's function, or any callback that weir has called, this is refused at once, as
/// are all waits for everything: the caller is part of everything. weir_stream_synchronize and weir_event_synchronize
/// may be possible there.
///
/// Blocking: until done or timeout_ns (WEIR_TIMEOUT_INFINITE, 0 = poll once) have passed; in a thread of a pool that
/// the work needs, it helps or refuses. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if weir has called the caller,
/// or if waiting here would block a worker that the work needs; a late error (results are filled all the same, and the
/// code is that of the first engine whose status is not WEIR_OK); OUT_OF_RANGE if capacity is too small (out_count is
/// set, nothing was waited for; with capacity 0 `results` is not looked at); INVALID_ARGUMENT (out_count NULL although
/// results or capacity is given, results NULL with a capacity, struct_size).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sync_devices(
    timeout_ns: u64,
    results: *mut weir_engine_sync,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_sync_devices", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { sync(Extent::Everything, timeout_ns, results, capacity, out_count) }
    })
}

/// Waits for these engines, with a result for each if the caller wants them.
///
/// # Safety
/// `results` is NULL or has `capacity` writable entries, with the distance given in the first of them; `out_count` is
/// NULL or writable.
pub(super) unsafe fn sync(
    extent: Extent,
    timeout_ns: u64,
    results: *mut weir_engine_sync,
    capacity: usize,
    out_count: *mut usize,
) -> Result<()> {
    if results.is_null() && capacity == 0 && out_count.is_null() {
        return engine::sync_all(extent, timeout_ns);
    }
    // SAFETY: as demanded of the caller.
    let out = unsafe {
        let out = out_value(out_count, "out_count")?;
        if capacity > 0 {
            versioned::write_array(results, &[], "results")?;
        }
        out
    };
    let synced = match engine::sync_each(extent, timeout_ns, capacity)? {
        Ok(synced) => synced,
        Err(engines) => {
            out.set(engines);
            return Err(Error::out_of_range(format!("capacity is {capacity}, there are {engines} engines")));
        }
    };
    let entry = |engine: &engine::Synced| {
        let failure = engine.result.as_ref().err();
        weir_engine_sync {
            struct_size: 0,
            status: failure.map_or(0, |error| error.code().status()),
            reserved: 0,
            engine: text::fixed(&engine.engine),
            message: text::fixed(failure.map_or("", |error| error.message())),
        }
    };
    let entries: Vec<_> = synced.iter().map(entry).collect();
    if !entries.is_empty() {
        // SAFETY: the caller's array; it has room for all.
        unsafe { versioned::write_array(results, &entries, "results") }?;
    }
    out.set(entries.len());
    Error::all_of(synced.into_iter().filter_map(|engine| engine.result.err()))
}

/// Begins a scope: weir_async_scope_end reports the late failures from here on, on any asynchronous stream. Scopes may
/// be nested, and overlap in several threads; the first that ends reports a failure. *out_scope is a number, and
/// nothing has to be released. weir_async_scope_begin_in is for the streams of one domain.
///
/// Chapter: Scopes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_async_scope_begin(out_scope: *mut u64) -> weir_status {
    guard("weir_async_scope_begin", || {
        // SAFETY: the caller's pointer, as documented.
        unsafe { out_value(out_scope, "out_scope") }?.set(engine::Scope::begin(Extent::Everything).number());
        Ok(())
    })
}

/// Ends a scope. Waits for all work queued so far, then returns the first failure since the scope began that no other
/// scope and no weir_sync_devices has returned. Its text lists the others. weir_sync_devices does not return these
/// again; it still returns failures from before the scope, and domains, engines and streams report theirs all the same.
/// In a scope of weir_async_scope_begin_in the same holds for the domain's streams and weir_sync_domain. Of streams
/// that failed and were released inside of the scope the latest 64 are reported. After a time-out the scope continues,
/// and may be ended again.
///
/// A scope's number only says since when failures count, and in which domain. So no number is refused, 0 is a scope's
/// as well, and a scope that has ended may be ended again, for the failures since.
///
/// Blocking: until done or timeout_ns have passed. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION as of
/// weir_sync_devices; else a late error.
///
/// Chapter: Scopes.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn weir_async_scope_end(scope: u64, timeout_ns: u64) -> weir_status {
    guard("weir_async_scope_end", || engine::Scope::of(scope).end(timeout_ns))
}

/// Measures `fn`, which queues work on `stream`: calls it `repetitions` times, each time on an idle stream, until the
/// stream is idle again, and stores these times in nanoseconds: `out_times` has `repetitions` elements. `stream` NULL =
/// all streams of all engines. A time always includes the wait: if work that was queued meanwhile on another stream of
/// the same domain is not done, the call fails. Use the median; the first times include cold caches and clocks.
///
/// Thread safety: any thread; other work on the stream counts. Blocking: until all is done. Errors: INVALID_ARGUMENT
/// (NULL, no repetitions); OUT_OF_RANGE (more repetitions than memory can hold times of); FAILED_PRECONDITION (another
/// stream, or as of weir_sync_devices); the status that `fn` returned; a late error of the stream.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_time_ns(
    stream: *mut weir_stream,
    r#fn: weir_host_fn,
    arg: *mut c_void,
    repetitions: usize,
    out_times: *mut u64,
) -> weir_status {
    guard("weir_time_ns", || {
        // SAFETY: the caller's pointers, as documented.
        let (stream, times) =
            unsafe { (handle::borrow_opt(stream, "stream")?, array_mut(out_times, repetitions, "out_times")?) };
        let call = r#fn.ok_or_else(|| Error::null("fn"))?;
        if times.is_empty() {
            return Err(Error::invalid("repetitions is 0, expected 1 or more"));
        }
        let mut measured = Vec::new();
        measured.try_reserve_exact(repetitions).map_err(|_| Error::exhausted("the times", repetitions * 8))?;
        measured.resize(repetitions, 0);
        // SAFETY: the host's function with its own argument.
        engine::time_ns(stream.map(|stream| stream.queue()), &mut measured, || match unsafe { call(arg) } {
            0 => Ok(()),
            status => Err(Error::from_status(status, "fn")),
        })?;
        times.copy_from_slice(&measured);
        Ok(())
    })
}
