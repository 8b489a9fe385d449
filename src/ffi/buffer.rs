//! Buffers: memory without a shape.
//!
//! Chapter: Buffer.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::tensor::read_desc;
use super::{handle, task};
use crate::abi::*;
use crate::engine::{Buffer, Tensor};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// Creates a buffer of `bytes` bytes in the engine's memory, with the engine's alignment and any contents. 0 bytes are
/// legal.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_buffer.
/// Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_create(
    engine: *mut weir_engine,
    bytes: usize,
    out_buffer: *mut *mut weir_buffer,
) -> weir_status {
    guard("weir_buffer_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_ptr(out_buffer, "out_buffer")?, handle::share(engine, "engine")?) };
        handle::into_c(Buffer::create(engine, bytes)?, out)
    })
}

/// Creates a buffer over memory of the caller's that the engine's kernels can reach. `release` (may be NULL) is called
/// with `release_ctx` exactly once, when nothing uses the memory any more: no reference to the buffer, no tensor on it,
/// no queued work with such a tensor. It is called in the thread that drops the last use: one that releases a handle,
/// or one that works for a stream or a run. It is not called if this call fails.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_buffer; the memory must
/// live until release is called, or, without release, until nothing uses it any more. Errors: INVALID_ARGUMENT (NULL
/// data unless bytes is 0); OUT_OF_RANGE (no memory at this address is that large).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_import(
    engine: *mut weir_engine,
    data: *mut c_void,
    bytes: usize,
    release: weir_destroy_fn,
    release_ctx: *mut c_void,
    out_buffer: *mut *mut weir_buffer,
) -> weir_status {
    guard("weir_buffer_import", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let (out, engine) = (out_ptr(out_buffer, "out_buffer")?, handle::share(engine, "engine")?);
            let release = Arc::new(task::Destroy::new(release, release_ctx));
            let kept: Box<dyn Any + Send + Sync> = Box::new(Arc::clone(&release));
            handle::into_c(Buffer::import(engine, data.cast(), bytes, kept)?, out)?;
            release.adopt();
            Ok(())
        }
    })
}

/// Takes one more reference.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_retain(buffer: *mut weir_buffer) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_buffer_retain", || unsafe { handle::retain(buffer, "buffer") })
}

/// Gives up one reference. NULL does nothing. Tensors on the buffer hold references of their own.
///
/// Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_buffer_release(buffer: *mut weir_buffer) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_buffer_release", || unsafe { handle::release(buffer) });
}

/// Address of the first byte, in the engine's memory. Reading or writing it while queued work uses it is a race.
///
/// Thread safety: any thread. Blocking: never. Ownership: *out_data is borrowed and lives as long as the buffer.
/// Errors: INVALID_ARGUMENT.
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
///
/// Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
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

/// The engine whose memory the buffer is in, or that it was imported for.
///
/// Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the buffer.
/// Errors: INVALID_ARGUMENT.
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

/// Creates a tensor over the bytes of a buffer from `offset` on, as they are. Any number of tensors may lie on a buffer
/// and overlap; a call of a kernel still refuses an output that shares memory with its other tensors.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_tensor; desc is copied,
/// and the tensor keeps the buffer. Errors: INVALID_ARGUMENT (dtype, rank, negative dimension, an address that is not
/// aligned to the element size); OUT_OF_RANGE if the tensor reaches beyond the buffer's end.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_create_on_buffer(
    buffer: *mut weir_buffer,
    desc: *const weir_tensor_desc,
    offset: usize,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    guard("weir_tensor_create_on_buffer", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, buffer, desc) =
            unsafe { (out_ptr(out_tensor, "out_tensor")?, handle::share(buffer, "buffer")?, read_desc(desc, "desc")?) };
        handle::into_c(Tensor::create_on(buffer, desc, offset)?, out)
    })
}
