//! Tensors.
//!
//! Chapter: Tensor.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release, guard_value};
use super::{handle, task};
use crate::abi::*;
use crate::base::{Desc, Error};
use crate::engine::Tensor;
use std::any::Any;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// Reads a descriptor argument.
///
/// # Safety
/// `desc` is NULL or readable.
pub(super) unsafe fn read_desc(desc: *const weir_tensor_desc, argument: &str) -> crate::base::Result<Desc> {
    if desc.is_null() {
        return Err(Error::null(argument));
    }
    // SAFETY: not NULL, so readable as demanded of the caller.
    Ok(unsafe { desc.read_unaligned() })
}

/// The name of an element type, "f32"; "?" for an unknown number.
///
/// Thread safety: any thread. Blocking: never. Ownership: static text. Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn weir_dtype_name(dtype: weir_dtype) -> *const c_char {
    guard_value(c"?".as_ptr(), || crate::base::dtype::c_name(dtype).as_ptr())
}

/// The size of an element in bytes.
///
/// Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT (NULL, unknown type).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_dtype_size(dtype: weir_dtype, out_bytes: *mut usize) -> weir_status {
    guard("weir_dtype_size", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_value(out_bytes, "out_bytes") }?;
        out.set(crate::base::dtype::size(dtype)?);
        Ok(())
    })
}

/// Creates a tensor in the engine's memory: zeros on a CPU engine, any contents on others (weir_enqueue_fill).
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_tensor; desc is copied.
/// Errors: INVALID_ARGUMENT (unknown dtype, rank, negative dimension); OUT_OF_RANGE if the size overflows;
/// RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_create(
    engine: *mut weir_engine,
    desc: *const weir_tensor_desc,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    guard("weir_tensor_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, desc) =
            unsafe { (out_ptr(out_tensor, "out_tensor")?, handle::share(engine, "engine")?, read_desc(desc, "desc")?) };
        handle::into_c(Tensor::create(engine, desc)?, out)
    })
}

/// Creates a tensor over memory of the caller's that the engine's device can use: `data` holds the elements, dense and
/// row-major, aligned to the element size. `release` (may be NULL) is called with `release_ctx` exactly once, when
/// nothing uses the memory any more; not if this call fails.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_tensor; the memory
/// must live until release is called, or, without release, until the tensor and all work on it are gone.
/// Errors: INVALID_ARGUMENT (NULL data unless the tensor is empty, alignment, dtype, rank, negative dimension);
/// OUT_OF_RANGE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_create_from(
    engine: *mut weir_engine,
    desc: *const weir_tensor_desc,
    data: *mut c_void,
    release: weir_destroy_fn,
    release_ctx: *mut c_void,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    guard("weir_tensor_create_from", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_tensor, "out_tensor")?;
            let (engine, desc) = (handle::share(engine, "engine")?, read_desc(desc, "desc")?);
            let release = Arc::new(task::Destroy::new(release, release_ctx));
            let kept: Box<dyn Any + Send + Sync> = Box::new(Arc::clone(&release));
            handle::into_c(Tensor::create_from(engine, desc, data.cast(), kept)?, out)?;
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
pub unsafe extern "C" fn weir_tensor_retain(tensor: *mut weir_tensor) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_tensor_retain", || unsafe { handle::retain(tensor, "tensor") })
}

/// Gives up one reference. NULL does nothing. Queued work holds references of its own.
///
/// Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_release(tensor: *mut weir_tensor) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_tensor_release", || unsafe { handle::release(tensor) });
}

/// Element type and shape.
///
/// Thread safety: any thread. Blocking: never. Ownership: copied. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_get_desc(
    tensor: *const weir_tensor,
    out_desc: *mut weir_tensor_desc,
) -> weir_status {
    guard("weir_tensor_get_desc", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, tensor) = unsafe { (out_value(out_desc, "out_desc")?, handle::borrow(tensor, "tensor")?) };
        out.set(*tensor.desc());
        Ok(())
    })
}

/// Address of the first element, in the engine's memory; only on a CPU engine may the host use it. Reading or writing
/// it while queued work uses it is a race.
///
/// Thread safety: any thread. Blocking: never. Ownership: *out_data is borrowed and lives as long as the tensor.
/// Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_get_data(tensor: *const weir_tensor, out_data: *mut *mut c_void) -> weir_status {
    guard("weir_tensor_get_data", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, tensor) = unsafe { (out_ptr(out_data, "out_data")?, handle::borrow(tensor, "tensor")?) };
        *out = tensor.data().cast();
        Ok(())
    })
}

/// Size of the elements in bytes.
///
/// Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_get_size(tensor: *const weir_tensor, out_bytes: *mut usize) -> weir_status {
    guard("weir_tensor_get_size", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, tensor) = unsafe { (out_value(out_bytes, "out_bytes")?, handle::borrow(tensor, "tensor")?) };
        out.set(tensor.bytes());
        Ok(())
    })
}

/// The engine whose memory the tensor is in.
///
/// Thread safety: any thread. Blocking: never. Ownership: *out_engine is borrowed and lives as long as the tensor.
/// Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_get_engine(
    tensor: *const weir_tensor,
    out_engine: *mut *mut weir_engine,
) -> weir_status {
    guard("weir_tensor_get_engine", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, tensor) = unsafe { (out_ptr(out_engine, "out_engine")?, handle::borrow(tensor, "tensor")?) };
        *out = handle::borrowed_c(tensor.engine());
        Ok(())
    })
}
