//! Buffers: memory without a shape.
//!
//! Chapter: Buffer.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::handle;
use super::source::Source;
use crate::abi::*;
use crate::base::Error;
use crate::engine::Buffer;
use std::ffi::c_void;

/// Creates a buffer of `bytes` bytes: memory without a shape, with any contents; 0 bytes are legal. `from` NULL: new
/// memory of the engine's, with its alignment; else FOREIGN or PINNED memory.
///
/// Blocking: never; as long as the device takes to pin memory, when another region of it is needed. Errors:
/// INVALID_ARGUMENT (NULL; of from: its source, members that do not belong to it, NULL data unless bytes is 0, PINNED
/// for an engine that is no CPU engine); OUT_OF_RANGE (no memory at this address is that large, or the memory is too
/// small); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_create(
    engine: *mut weir_engine,
    bytes: usize,
    from: *const weir_memory,
    out_buffer: *mut *mut weir_buffer,
) -> weir_status {
    guard("weir_buffer_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let (out, engine) = (out_ptr(out_buffer, "out_buffer")?, handle::share(engine, "engine")?);
            let (buffer, release) = match Source::read(from)? {
                Source::New => (Buffer::create(engine, bytes)?, None),
                Source::Foreign(foreign) => {
                    foreign.make(bytes, |data, kept| Buffer::import(engine, data, bytes, kept))?
                }
                Source::Buffer { .. } => return Err(Error::invalid("from->source is BUFFER, which is for tensors")),
                Source::Pinned(device) => (Buffer::create_pinned(engine, bytes, device)?, None),
            };
            handle::into_c(buffer, out)?;
            if let Some(release) = release {
                release.adopt();
            }
            Ok(())
        }
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_retain(buffer: *mut weir_buffer) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_buffer_retain", || unsafe { handle::retain(buffer, "buffer") })
}

/// Gives up one reference. NULL does nothing. Tensors on the buffer hold references of their own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_release(buffer: *mut weir_buffer) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_buffer_release", || unsafe { handle::release(buffer) });
}

/// Address of the first byte, in the engine's memory. Reading or writing it while queued work uses it is a race.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_get_data(buffer: *const weir_buffer, out_data: *mut *mut c_void) -> weir_status {
    guard("weir_buffer_get_data", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, buffer) = unsafe { (out_ptr(out_data, "out_data")?, handle::borrow(buffer, "buffer")?) };
        *out = buffer.data().cast();
        Ok(())
    })
}

/// Size in bytes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_get_size(buffer: *const weir_buffer, out_bytes: *mut usize) -> weir_status {
    guard("weir_buffer_get_size", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, buffer) = unsafe { (out_value(out_bytes, "out_bytes")?, handle::borrow(buffer, "buffer")?) };
        out.set(buffer.bytes());
        Ok(())
    })
}

/// The engine whose memory the buffer is in, or whose kernels reach it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_get_engine(
    buffer: *const weir_buffer,
    out_engine: *mut *mut weir_engine,
) -> weir_status {
    guard("weir_buffer_get_engine", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, buffer) = unsafe { (out_ptr(out_engine, "out_engine")?, handle::borrow(buffer, "buffer")?) };
        *out = handle::borrowed_c(buffer.engine());
        Ok(())
    })
}
