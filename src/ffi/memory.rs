//! Memory of engines: host-provided allocators, settings, figures.
//!
//! Chapter: Memory.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::{handle, text, versioned};
use crate::abi::*;
use crate::base::{Object, Ref};
use crate::engine::MemoryMode;
use crate::memory::HostAllocator;
use std::ffi::{c_char, c_void};

/// Creates an allocator from host functions. The vtable is copied; `ctx` is passed to its functions. Any number of
/// engines may use it. weir calls vtable->release(ctx) exactly once, after the last reference is gone and all memory
/// was given back; if this call fails, it is never called.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, flags, alignment, allocate or deallocate missing).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_allocator_create(
    vtable: *const weir_allocator_vtable,
    ctx: *mut c_void,
    out_allocator: *mut *mut weir_allocator,
) -> weir_status {
    guard("weir_allocator_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_allocator, "out_allocator")?;
            let vtable = versioned::read(vtable, "vtable")?;
            let allocator = Object::shared(HostAllocator::new(vtable, ctx)?);
            let created = Ref::clone(&allocator);
            handle::into_c(allocator, out)?;
            created.adopt();
            Ok(())
        }
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_allocator_retain(allocator: *mut weir_allocator) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_allocator_retain", || unsafe { handle::retain(allocator, "allocator") })
}

/// Gives up one reference. NULL does nothing. Settings, engines and memory from the allocator hold references of their
/// own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_allocator_release(allocator: *mut weir_allocator) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_allocator_release", || unsafe { handle::release(allocator) });
}

/// The source of the engine's memory. NULL: the system, or the device (the default). On an engine of another kind than
/// CPU the allocator provides device memory, as a framework's caching allocator does.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_allocator(
    attr: *mut weir_engine_attr,
    allocator: *mut weir_allocator,
) -> weir_status {
    guard("weir_engine_attr_set_allocator", || {
        // SAFETY: the caller's handles, as documented.
        let (attr, allocator) =
            unsafe { (handle::borrow_mut(attr, "attr")?, handle::share_opt(allocator, "allocator")?) };
        attr.set_allocator(allocator);
        Ok(())
    })
}

/// The allocator that was set, or NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_allocator(
    attr: *const weir_engine_attr,
    out_allocator: *mut *mut weir_allocator,
) -> weir_status {
    guard("weir_engine_attr_get_allocator", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_ptr(out_allocator, "out_allocator")?, handle::borrow(attr, "attr")?) };
        *out = handle::borrowed_opt_c(attr.allocator());
        Ok(())
    })
}

/// Maximum number of bytes that the engine may reserve: all of its regions together, whether in use or not. A request
/// beyond it makes the engine give back free regions, and fails with RESOURCE_EXHAUSTED if that is not enough.
/// UINT64_MAX: no limit (the default).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_memory_limit(attr: *mut weir_engine_attr, bytes: u64) -> weir_status {
    guard("weir_engine_attr_set_memory_limit", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(attr, "attr") }?.memory_limit = Some(bytes).filter(|&bytes| bytes < u64::MAX);
        Ok(())
    })
}

/// The limit that was set, or UINT64_MAX.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_memory_limit(
    attr: *const weir_engine_attr,
    out_bytes: *mut u64,
) -> weir_status {
    guard("weir_engine_attr_get_memory_limit", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_bytes, "out_bytes")?, handle::borrow(attr, "attr")?) };
        out.set(attr.memory_limit.unwrap_or(u64::MAX));
        Ok(())
    })
}

/// How the engine keeps its memory: one of enum weir_memory_mode_value. A mode that was set comes before
/// WEIR_MEMORY_MODE from the environment.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_memory_mode(
    attr: *mut weir_engine_attr,
    mode: weir_memory_mode,
) -> weir_status {
    guard("weir_engine_attr_set_memory_mode", || {
        // SAFETY: the caller's handle, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        attr.memory_mode = Some(MemoryMode::from_value(mode)?);
        Ok(())
    })
}

/// The mode that was set, or WEIR_MEMORY_MODE_POOLED. In the attributes of an engine: its actual mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_memory_mode(
    attr: *const weir_engine_attr,
    out_mode: *mut weir_memory_mode,
) -> weir_status {
    guard("weir_engine_attr_get_memory_mode", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_mode, "out_mode")?, handle::borrow(attr, "attr")?) };
        out.set(attr.memory_mode.unwrap_or(MemoryMode::Pooled).value());
        Ok(())
    })
}

/// Fills *out_info with current figures of the engine's memory. The cost does not grow with the number of blocks.
///
/// Chapter: Memory figures.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_get_memory_info(
    engine: *const weir_engine,
    out_info: *mut weir_memory_info,
) -> weir_status {
    guard("weir_engine_get_memory_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { versioned::write(out_info, &handle::borrow(engine, "engine")?.memory_info(), "out_info") }
    })
}

/// Resets the peaks to the current values.
///
/// Chapter: Memory figures.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_reset_memory_peak(engine: *mut weir_engine) -> weir_status {
    guard("weir_engine_reset_memory_peak", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow(engine, "engine") }?.reset_memory_peaks();
        Ok(())
    })
}

/// Gives back regions that are completely free, the largest first, until at most `bytes_to_keep` bytes are reserved or
/// no region is free; likewise the host memory that an accelerator's engine has for copies. Memory in use does not
/// move. Releasing the engine and everything on it gives back all memory.
///
/// Blocking: as long as the system or the allocator takes to free the regions.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_trim(engine: *mut weir_engine, bytes_to_keep: u64) -> weir_status {
    guard("weir_engine_trim", || {
        // SAFETY: the caller's handle, as documented.
        let engine = unsafe { handle::borrow(engine, "engine") }?;
        engine.trim(usize::try_from(bytes_to_keep).unwrap_or(usize::MAX));
        Ok(())
    })
}

/// Writes the contents of the engine's memory as JSON: the figures, the uses of blocks with their shares, and each
/// region with its blocks. A block is "used" for something, "kept" for the next request of its size, or "free". For an
/// accelerator's engine also "host_memory", the same for the host memory for copies, and "registered", the memory
/// pinned by weir_buffer_pin. Changes between two calls may make the text longer.
///
/// Blocking: other requests for the engine's memory wait while the text is made. Errors: RESOURCE_EXHAUSTED.
///
/// Chapter: Memory figures.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_dump_memory(
    engine: *const weir_engine,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_engine_dump_memory", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let dump = handle::borrow(engine, "engine")?.dump_memory()?;
            text::copy(&dump, buffer, capacity, out_length)
        }
    })
}
