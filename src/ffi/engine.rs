//! Engines and their attributes.
//!
//! Chapter: Engine.

use super::argument::{array, array_mut, out_const, out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::{handle, versioned};
use crate::abi::*;
use crate::base::{Error, Result};
use crate::device::Waiting;
use crate::engine::{self, Engine, EngineAttr, ThreadMode};
use std::ffi::c_void;

/// Creates settings for engines of one kind, all default.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_create(
    kind: weir_engine_kind,
    out_attr: *mut *mut weir_engine_attr,
) -> weir_status {
    guard("weir_engine_attr_create", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_attr, "out_attr") }?;
        handle::into_owned_c(EngineAttr::new(engine::checked_kind(kind)?), out)
    })
}

/// Destroys settings. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_destroy(attr: *mut weir_engine_attr) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_engine_attr_destroy", || unsafe { handle::destroy(attr) });
}

/// The kind of engine that the settings are for.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_kind(
    attr: *const weir_engine_attr,
    out_kind: *mut weir_engine_kind,
) -> weir_status {
    guard("weir_engine_attr_get_kind", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_kind, "out_kind")?, handle::borrow(attr, "attr")?) };
        out.set(attr.kind.value());
        Ok(())
    })
}

/// The pool on which the engine's work runs unless a stream or a call has its own. NULL = none (the default): the
/// thread mode decides, and without one the calling thread does the work. For an accelerator's engine, whose device
/// does the work, it runs the host functions on the engine's streams (weir_enqueue_task).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_threadpool(
    attr: *mut weir_engine_attr,
    pool: *mut weir_threadpool,
) -> weir_status {
    guard("weir_engine_attr_set_threadpool", || {
        // SAFETY: the caller's handles, as documented.
        let (attr, pool) = unsafe { (handle::borrow_mut(attr, "attr")?, handle::share_opt(pool, "pool")?) };
        attr.set_threadpool(pool);
        Ok(())
    })
}

/// The pool that was set, or NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_threadpool(
    attr: *const weir_engine_attr,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_engine_attr_get_threadpool", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_ptr(out_pool, "out_pool")?, handle::borrow(attr, "attr")?) };
        *out = handle::borrowed_opt_c(attr.threadpool());
        Ok(())
    })
}

/// Source of the engine's threads: one of enum weir_thread_mode_value. A mode that was set comes before
/// WEIR_THREAD_MODE from the environment; so does a pool that was set. A pool is compatible with mode GLOBAL only:
/// weir_engine_create refuses it together with another mode.
///
/// For an accelerator's engine (not CPU) the mode decides which thread submits its part of programs: copies, kernels,
/// recordings. GLOBAL and CALLER: whichever thread runs the program's nodes on the host. PRIVATE and KIND: one thread,
/// of this engine or of all of its kind in this mode, which starts when the first program is compiled for the engine,
/// and ends with the last possible user; WEIR_DEVICE_THREAD_COUNT in the environment asks for more. If no mode is set,
/// WEIR_DEVICE_THREAD_MODE decides for these engines. A pool, which is for host functions on their streams, is
/// compatible with every mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_thread_mode(
    attr: *mut weir_engine_attr,
    mode: weir_thread_mode,
) -> weir_status {
    guard("weir_engine_attr_set_thread_mode", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.set_thread_mode(ThreadMode::from_value(mode)?)
    })
}

/// The mode that was set, or WEIR_THREAD_MODE_GLOBAL. In the attributes of an engine: its actual mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_thread_mode(
    attr: *const weir_engine_attr,
    out_mode: *mut weir_thread_mode,
) -> weir_status {
    guard("weir_engine_attr_get_thread_mode", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_mode, "out_mode")?, handle::borrow(attr, "attr")?) };
        out.set(attr.thread_mode().unwrap_or(ThreadMode::Global).value());
        Ok(())
    })
}

/// Number of threads that weir starts for the engine in mode PRIVATE, and for the first engine of its kind in mode
/// KIND; the other modes start none. 0 = as many as weir_threadpool_create_builtin starts by default. A count that was
/// set comes before WEIR_THREAD_COUNT from the environment; without either it is 0. An engine in mode KIND with a count
/// other than 0 is refused if its kind already has another number of threads; one without a count joins them.
///
/// Errors: INVALID_ARGUMENT (NULL, count above 256); FAILED_PRECONDITION if the attribute's kind is not CPU: an engine
/// of another kind has one weir thread or none, depending on its mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_thread_count(attr: *mut weir_engine_attr, count: u32) -> weir_status {
    guard("weir_engine_attr_set_thread_count", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.set_thread_count(engine::checked_thread_count(count)?)
    })
}

/// The number of threads that was set, or 0. In the attributes of an engine that weir has started threads for: the
/// actual number.
///
/// Errors: FAILED_PRECONDITION if the attribute's kind is not CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_thread_count(
    attr: *const weir_engine_attr,
    out_count: *mut u32,
) -> weir_status {
    guard("weir_engine_attr_get_thread_count", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_count, "out_count")?, handle::borrow(attr, "attr")?) };
        out.set(attr.thread_count()?.unwrap_or(0) as u32);
        Ok(())
    })
}

/// Maximum number of streams of the engine over which one run of a program spreads its work on it; 0 = as many as there
/// is parallel work, up to four. 1 is the default: more streams pay off only where single kernels leave the device
/// idle. The program's report (weir_program_report) has the result. A CPU engine ignores it.
///
/// Errors: INVALID_ARGUMENT (NULL, count above 64).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_max_streams(attr: *mut weir_engine_attr, count: u32) -> weir_status {
    guard("weir_engine_attr_set_max_streams", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.set_max_streams(count)
    })
}

/// The maximum number of streams that was set, or 1.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_max_streams(
    attr: *const weir_engine_attr,
    out_count: *mut u32,
) -> weir_status {
    guard("weir_engine_attr_get_max_streams", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_count, "out_count")?, handle::borrow(attr, "attr")?) };
        out.set(attr.max_streams as u32);
        Ok(())
    })
}

/// Settings that the engine's device is opened with, in a format defined by its plug-in (device_open_with of
/// weir_device_vtable). The first engine on a device decides: another one with incompatible settings is refused while
/// the device is alive, and one without settings shares it. `bytes` 0 clears the settings.
///
/// Errors: OUT_OF_RANGE (bytes); RESOURCE_EXHAUSTED. weir_engine_create fails with UNIMPLEMENTED if the device takes no
/// settings.
///
/// Chapter: Device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_device_settings(
    attr: *mut weir_engine_attr,
    settings: *const c_void,
    bytes: usize,
) -> weir_status {
    guard("weir_engine_attr_set_device_settings", || {
        // SAFETY: the caller's handle and bytes, as documented.
        let (attr, settings) =
            unsafe { (handle::borrow_mut(attr, "attr")?, array(settings.cast::<u8>(), bytes, "settings")?) };
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes).map_err(|_| Error::exhausted("a copy of the settings", bytes))?;
        copy.extend_from_slice(settings);
        attr.device_settings = (bytes > 0).then(|| copy.into());
        Ok(())
    })
}

/// The settings that were set; in the attributes of an engine, its device's actual settings. *out_bytes is their size
/// in bytes, 0 if there are none; as many bytes as fit are stored. A call with capacity 0 only asks for the size.
///
/// Errors: OUT_OF_RANGE if capacity is not 0 and too small (*out_bytes is set).
///
/// Chapter: Device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_device_settings(
    attr: *const weir_engine_attr,
    out_settings: *mut c_void,
    capacity: usize,
    out_bytes: *mut usize,
) -> weir_status {
    guard("weir_engine_attr_get_device_settings", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr, places) = unsafe {
            let places = array_mut(out_settings.cast::<u8>(), capacity, "out_settings")?;
            (out_value(out_bytes, "out_bytes")?, handle::borrow(attr, "attr")?, places)
        };
        let settings = attr.device_settings.as_deref().map_or(&[][..], Vec::as_slice);
        out.set(settings.len());
        if capacity > 0 && capacity < settings.len() {
            return Err(Error::out_of_range(format!("capacity is {capacity}, they have {} bytes", settings.len())));
        }
        places.iter_mut().zip(settings).for_each(|(place, byte)| *place = *byte);
        Ok(())
    })
}

/// How threads wait for work on the engine's device, in waits for streams, events, engines and all devices. They poll
/// for spin_ns nanoseconds, at most one second, and then follow the policy. WEIR_WAIT_DEFAULT is the default and takes
/// no spin_ns: a CUDA device is polled for 30 us before a thread sleeps. The spin budget of a stream
/// (weir_stream_attr_set_spin_ns) comes first, and applies to that stream only.
///
/// Errors: INVALID_ARGUMENT (NULL, unknown policy, spin_ns too large); FAILED_PRECONDITION if the attribute's kind is
/// CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_wait_policy(
    attr: *mut weir_engine_attr,
    policy: weir_wait_policy,
    spin_ns: u64,
) -> weir_status {
    guard("weir_engine_attr_set_wait_policy", || {
        use weir_wait_policy_value::*;
        let waiting = |yields| Some(Waiting { spin_ns, yields });
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.set_waiting(match policy {
            policy if policy == WEIR_WAIT_DEFAULT as u32 && spin_ns == 0 => None,
            policy if policy == WEIR_WAIT_DEFAULT as u32 => {
                return Err(Error::invalid(format!("spin_ns is {spin_ns}, WEIR_WAIT_DEFAULT takes none")));
            }
            policy if policy == WEIR_WAIT_BLOCK as u32 => waiting(false),
            policy if policy == WEIR_WAIT_YIELD as u32 => waiting(true),
            _ => return Err(Error::invalid(format!("policy is {policy}, which is no wait policy"))),
        })
    })
}

/// The policy and the spin budget that were set.
///
/// Errors: FAILED_PRECONDITION if the attribute's kind is CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_wait_policy(
    attr: *const weir_engine_attr,
    out_policy: *mut weir_wait_policy,
    out_spin_ns: *mut u64,
) -> weir_status {
    guard("weir_engine_attr_get_wait_policy", || {
        use weir_wait_policy_value::*;
        // SAFETY: the caller's pointers, as documented.
        let (policy, spin_ns, attr) = unsafe {
            let policy = out_value(out_policy, "out_policy")?;
            (policy, out_value(out_spin_ns, "out_spin_ns")?, handle::borrow(attr, "attr")?)
        };
        let (waits, looks) = match attr.waiting()? {
            None => (WEIR_WAIT_DEFAULT, 0),
            Some(Waiting { spin_ns, yields: false }) => (WEIR_WAIT_BLOCK, spin_ns),
            Some(Waiting { spin_ns, yields: true }) => (WEIR_WAIT_YIELD, spin_ns),
        };
        policy.set(waits as u32);
        spin_ns.set(looks);
        Ok(())
    })
}

/// The number of engines of a kind that this machine offers. A kind that this build or machine lacks has 0; that is no
/// error.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_count(kind: weir_engine_kind, out_count: *mut u32) -> weir_status {
    guard("weir_engine_count", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_value(out_count, "out_count") }?;
        out.set(engine::count(engine::checked_kind(kind)?));
        Ok(())
    })
}

/// Creates an engine for device `index` of a kind. NULL attr = all default. Several engines for one device may exist.
/// If the thread mode asks for threads, they are started here; if one cannot be started, the others end and the call
/// fails.
///
/// Blocking: never for CPU engines, except for the time to start threads. For others as long as opening the device
/// takes, and up to a second if the device was just released with other settings. Errors: INVALID_ARGUMENT (also an
/// attr of another kind, a pool together with a mode other than GLOBAL, or a meaningless value of WEIR_THREAD_MODE or
/// WEIR_THREAD_COUNT); OUT_OF_RANGE (index); RESOURCE_EXHAUSTED if threads cannot be started; FAILED_PRECONDITION if
/// engines of this kind already share another number of threads; UNAVAILABLE or UNIMPLEMENTED if this machine or build
/// has no such device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_create(
    kind: weir_engine_kind,
    index: u32,
    attr: *const weir_engine_attr,
    out_engine: *mut *mut weir_engine,
) -> weir_status {
    guard("weir_engine_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_ptr(out_engine, "out_engine")?, handle::borrow_opt(attr, "attr")?) };
        let kind = engine::checked_kind(kind)?;
        handle::into_c(Engine::create(kind, index, attr.map(|attr| &**attr))?, out)
    })
}

/// Creates an engine for each device of this machine, of all kinds, with default settings: in ascending order of kinds
/// and indices, so that the CPU's is the first, as weir_graph_compile expects. Emulated devices are left out: a host
/// creates those itself. *out_count is the number of devices. A call with capacity 0 only asks for it; all engines are
/// created, or none.
///
/// Blocking: as weir_engine_create, for each. Errors: OUT_OF_RANGE if capacity is not 0 and too small (*out_count is
/// set, no engine is created); those of weir_engine_create, with the name of the device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_create_all(
    out_engines: *mut *mut weir_engine,
    capacity: usize,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_engine_create_all", || {
        // SAFETY: the caller's pointers, as documented.
        let (count, places) =
            unsafe { (out_value(out_count, "out_count")?, array_mut(out_engines, capacity, "out_engines")?) };
        let devices = engine::devices();
        count.set(devices.len());
        if capacity == 0 {
            return Ok(());
        }
        if capacity < devices.len() {
            return Err(Error::out_of_range(format!("capacity is {capacity}, there are {} engines", devices.len())));
        }
        let made: Vec<_> =
            devices.iter().map(|&(kind, index)| Engine::create(kind, index, None)).collect::<Result<_>>()?;
        crate::memory::heap::check()?;
        made.into_iter().zip(places).for_each(|(engine, place)| handle::begun_into_c(engine, place));
        Ok(())
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_retain(engine: *mut weir_engine) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_engine_retain", || unsafe { handle::retain(engine, "engine") })
}

/// Gives up one reference. NULL does nothing. Streams, tensors, kernels and programs hold references of their own. The
/// last reference ends the threads of a private pool, and those of the kind if no other engine shares them, even when
/// it goes inside one of their tasks: they finish the queued work and then end by themselves. A reference to the pool
/// (weir_engine_get_threadpool, weir_threadpool_retain) keeps them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_release(engine: *mut weir_engine) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_engine_release", || unsafe { handle::release_with_pool(engine, |engine| engine.pool()) });
}

/// The settings that the engine was created with, with its actual thread mode and thread count.
///
/// Ownership: do not destroy it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_get_attr(
    engine: *const weir_engine,
    out_attr: *mut *const weir_engine_attr,
) -> weir_status {
    guard("weir_engine_get_attr", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_const(out_attr, "out_attr")?, handle::borrow(engine, "engine")?) };
        *out = handle::borrowed_c(engine.attr());
        Ok(())
    })
}

/// The thread pool that the engine's work runs on, whether it was given or started by weir; NULL = the calling thread.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_get_threadpool(
    engine: *const weir_engine,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_engine_get_threadpool", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_ptr(out_pool, "out_pool")?, handle::borrow(engine, "engine")?) };
        *out = handle::borrowed_opt_c(engine.pool());
        Ok(())
    })
}

/// Fills *out_info with information about the engine's device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_get_info(
    engine: *const weir_engine,
    out_info: *mut weir_engine_info,
) -> weir_status {
    guard("weir_engine_get_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let engine = handle::borrow(engine, "engine")?;
            versioned::write(out_info, &engine.info(), "out_info")
        }
    })
}

/// Waits until all work is done that was queued on the engine's streams before this call, but not for later work.
/// Returns the engine's first late error that this call has not returned yet. Streams, domains and weir_sync_devices
/// still report their errors, and their reports take nothing away from this call.
///
/// Blocking: until done, or timeout_ns have passed (0 = poll once, WEIR_TIMEOUT_INFINITE = no limit). Meanwhile it runs
/// queued work, as weir_stream_synchronize does. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION if waiting here would
/// block a worker that the work needs, and always inside of anything that weir has called, as of weir_sync_devices;
/// else a late error.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_synchronize(engine: *mut weir_engine, timeout_ns: u64) -> weir_status {
    guard("weir_engine_synchronize", || {
        // SAFETY: the caller's handle, as documented.
        let engine = unsafe { handle::borrow(engine, "engine") }?;
        engine.synchronize(timeout_ns)
    })
}
