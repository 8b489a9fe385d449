//! Version, ABI check, status names, error text, runtime counters, list of threads.
//!
//! Chapter: Library.

use super::argument::out_value;
use super::guard::{guard, guard_value, release_ended_pools};
use super::{last_error, versioned};
use crate::abi::*;
use crate::base::{Code, Error, live};
use crate::memory::heap;
use crate::sync::thread::{self, ThreadOrigin};
use std::ffi::c_char;

/// Major version of this header. The library's own is in weir_version.
pub const WEIR_VERSION_MAJOR: u32 = 0;
/// Minor version of this header.
pub const WEIR_VERSION_MINOR: u32 = 1;
/// Patch version of this header.
pub const WEIR_VERSION_PATCH: u32 = 0;
/// Number of the binary interface; it is part of the library's soname. Libraries with the same number can replace
/// one another.
pub const WEIR_ABI_VERSION: u32 = 1;

pub(super) const PACKED: u32 = WEIR_VERSION_MAJOR << 16 | WEIR_VERSION_MINOR << 8 | WEIR_VERSION_PATCH;

/// The version of the running library: major << 16 | minor << 8 | patch.
#[unsafe(no_mangle)]
pub extern "C" fn weir_version() -> u32 {
    PACKED
}

/// The version of the running library as text, "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn weir_version_string() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}

/// The number of the binary interface of the running library (WEIR_ABI_VERSION of its header).
#[unsafe(no_mangle)]
pub extern "C" fn weir_abi_version() -> u32 {
    WEIR_ABI_VERSION
}

/// Whether the running library can serve a program that was written for version `major`.`minor`. Call it first after
/// dlopen.
///
/// Errors: FAILED_PRECONDITION if the library is older, or another major version (another minor one while major is 0).
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn weir_check_version(major: u32, minor: u32) -> weir_status {
    guard("weir_check_version", || {
        if major == WEIR_VERSION_MAJOR && (minor == WEIR_VERSION_MINOR || (major > 0 && minor < WEIR_VERSION_MINOR)) {
            return Ok(());
        }
        Err(Error::precondition(format!(
            "the program wants weir {major}.{minor}, this library is {}",
            env!("CARGO_PKG_VERSION")
        )))
    })
}

/// The name of a status code, "INVALID_ARGUMENT"; "UNKNOWN_CODE" for an unknown number.
#[unsafe(no_mangle)]
pub extern "C" fn weir_status_name(status: weir_status) -> *const c_char {
    Code::name_of(status).as_ptr()
}

/// The text of the calling thread's last failed weir call: "weir_stream_create: engine is NULL". Successful calls leave
/// it unchanged. A task that moves between threads (goroutine, virtual thread) must read it before it yields.
///
/// Ownership: valid until this thread's next failing weir call; never NULL, "" if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn weir_last_error_message() -> *const c_char {
    guard_value(c"".as_ptr(), last_error::pointer)
}

/// Fills *out_info with the library's counters: threads by origin, allocations made, live objects by kind. Copies of
/// attributes inside engines and streams count as attributes.
///
/// Chapter: Runtime.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_runtime_get_info(out_info: *mut weir_runtime_info) -> weir_status {
    guard("weir_runtime_get_info", || {
        release_ended_pools(); // what this call lets go of is not in the figures that it gives
        let (alive, threads) = (live::counts(), thread::counts());
        let info = weir_runtime_info {
            struct_size: 0,
            threads_started: threads.started,
            threads_alive: threads.alive,
            allocations: heap::allocations(),
            bytes_in_use: heap::bytes_in_use(),
            threadpools: alive.threadpools,
            engines: alive.engines,
            streams: alive.streams,
            events: alive.events,
            tensors: alive.tensors,
            kernels: alive.kernels,
            graphs: alive.graphs,
            programs: alive.programs,
            runs: alive.runs,
            attrs: alive.attrs,
            threads_of_builtin_pools: threads.alive_of(ThreadOrigin::BuiltinPool),
            threads_of_lanes: threads.alive_of(ThreadOrigin::Lane),
            threads_of_engines: threads.alive_of(ThreadOrigin::EnginePool),
            threads_of_kinds: threads.alive_of(ThreadOrigin::KindPool),
            threads_of_devices: threads.alive_of(ThreadOrigin::Watch),
            packed_weights: alive.packed_weights,
            allocators: alive.allocators,
            buffers: alive.buffers,
            resources: alive.resources,
            leaked_resources: crate::resource::leak_count() as u64,
            domains: alive.domains,
            task_groups: crate::threadpool::group::alive(),
            traces: alive.traces,
            comms: alive.comms,
            calls: alive.calls,
        };
        // SAFETY: the caller's struct, as documented.
        unsafe { versioned::write(out_info, &info, "out_info") }
    })
}

/// Lists the threads that weir has started and that are running now, in the order of their start. Set struct_size of
/// the first entry: it is the distance between entries, and weir stores it in every entry that it fills. `out_count`
/// receives the number of threads. capacity 0 only asks for the number (infos may then be NULL). Threads may start and
/// end between two calls, so provide a few more entries than were counted. Threads of host pools are not listed.
///
/// Blocking: never; it may wait for a thread that is just being started. Errors: OUT_OF_RANGE if capacity is too small
/// (out_count is set, the entries are left alone).
///
/// Chapter: Runtime.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_runtime_get_threads(
    infos: *mut weir_thread_info,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_runtime_get_threads", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_value(out_count, "out_count") }?;
        if capacity == 0 {
            out.set(thread::counts().alive as usize);
            return Ok(());
        }
        // Before anything is written. SAFETY: the caller's array, as documented.
        unsafe { versioned::write_array(infos, &[], "infos") }?;
        let running = thread::running();
        out.set(running.len());
        if capacity < running.len() {
            return Err(Error::out_of_range(format!("capacity is {capacity}, {} threads are running", running.len())));
        }
        let values: Vec<_> = running.iter().map(|thread| thread.info()).collect();
        // SAFETY: the caller's array, as documented; it has room for all.
        unsafe { versioned::write_array(infos, &values, "infos") }
    })
}
