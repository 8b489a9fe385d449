//! Host memory that is pinned for the copies of a device.
//!
//! Chapter: Pinned memory.

use super::argument::out_value;
use super::guard::guard;
use super::handle;
use crate::abi::*;

/// Pins existing memory, above all that of the caller (WEIR_MEMORY_FOREIGN), for copies by `device`, until the buffer
/// ends: before its release function is called. Pinning is slow, so pin memory that is used often. A buffer may be
/// pinned for several engines, one after the other.
///
/// Blocking: as long as the device takes. Errors: INVALID_ARGUMENT (NULL, a buffer of an engine that is no CPU engine,
/// a part of it is pinned); ALREADY_EXISTS (all of it is); UNIMPLEMENTED (the engine's device does not do this:
/// `pinning` of weir_memory_info lacks WEIR_PINNING_REGISTERS); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_pin(buffer: *mut weir_buffer, device: *mut weir_engine) -> weir_status {
    guard("weir_buffer_pin", || {
        // SAFETY: the caller's handles, as documented.
        let (buffer, device) = unsafe { (handle::borrow(buffer, "buffer")?, handle::borrow(device, "device")?) };
        buffer.pin(device)
    })
}

/// Stores 1 if `device` copies directly from and to the buffer's memory, else 0. It searches the device's pinned
/// memory: ask once, not for each copy.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_is_pinned(
    buffer: *const weir_buffer,
    device: *const weir_engine,
    out_pinned: *mut i32,
) -> weir_status {
    guard("weir_buffer_is_pinned", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, buffer, device) = unsafe {
            let out = out_value(out_pinned, "out_pinned")?;
            (out, handle::borrow(buffer, "buffer")?, handle::borrow(device, "device")?)
        };
        out.set(i32::from(device.has_pinned(buffer.data().addr(), buffer.bytes())));
        Ok(())
    })
}

/// As weir_buffer_is_pinned, for a tensor's memory.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_is_pinned(
    tensor: *const weir_tensor,
    device: *const weir_engine,
    out_pinned: *mut i32,
) -> weir_status {
    guard("weir_tensor_is_pinned", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, tensor, device) = unsafe {
            let out = out_value(out_pinned, "out_pinned")?;
            (out, handle::borrow(tensor, "tensor")?, handle::borrow(device, "device")?)
        };
        out.set(i32::from(device.has_pinned(tensor.data().addr(), tensor.bytes())));
        Ok(())
    })
}

/// Maximum number of bytes of host memory that the engine may reserve for copies: regions of pinned memory, whether in
/// use or not. Memory pinned by weir_buffer_pin does not count. A request beyond it fails with RESOURCE_EXHAUSTED, as
/// with weir_engine_attr_set_memory_limit. UINT64_MAX: no limit (the default).
///
/// Errors: FAILED_PRECONDITION if the attribute's kind is CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_pinned_limit(attr: *mut weir_engine_attr, bytes: u64) -> weir_status {
    guard("weir_engine_attr_set_pinned_limit", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(attr, "attr") }?.set_pinned_limit(Some(bytes).filter(|&bytes| bytes < u64::MAX))
    })
}

/// The limit that was set, or UINT64_MAX.
///
/// Errors: FAILED_PRECONDITION if the attribute's kind is CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_get_pinned_limit(
    attr: *const weir_engine_attr,
    out_bytes: *mut u64,
) -> weir_status {
    guard("weir_engine_attr_get_pinned_limit", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_bytes, "out_bytes")?, handle::borrow(attr, "attr")?) };
        out.set(attr.pinned_limit()?.unwrap_or(u64::MAX));
        Ok(())
    })
}
