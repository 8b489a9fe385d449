//! Tensors.
//!
//! Chapter: Tensor.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release, guard_value};
use super::handle;
use super::source::Source;
use crate::abi::*;
use crate::base::{Desc, Error, Ref, Result};
use crate::engine::{Engine, Tensor};
use std::ffi::{c_char, c_void};

/// Reads a descriptor argument.
///
/// # Safety
/// `desc` is NULL or readable.
pub(super) unsafe fn read_desc(desc: *const weir_tensor_desc, argument: &str) -> Result<Desc> {
    if desc.is_null() {
        return Err(Error::null(argument));
    }
    // SAFETY: not NULL, so readable as demanded of the caller.
    Ok(unsafe { desc.read_unaligned() })
}

/// The name of an element type, "f32"; "?" for an unknown number.
#[unsafe(no_mangle)]
pub extern "C" fn weir_dtype_name(dtype: weir_dtype) -> *const c_char {
    guard_value(c"?".as_ptr(), || crate::base::dtype::c_name(dtype).as_ptr())
}

/// The size of an element in bytes.
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

/// Creates a tensor. `from` NULL: in new memory of the engine's, zeros on a CPU engine, any contents on others
/// (weir_enqueue_fill); else in the memory that it names, as it is, or zeros in pinned memory.
///
/// A `desc` with dimensions of WEIR_DIM_DYNAMIC makes a tensor whose shape is decided by the run that writes it: it is
/// passed to runs as an output whose shape is open, and may be an input of such a shape. A run whose output shape does
/// not match `desc` fails. Until a run has succeeded the open dimensions are 0. Its memory is the engine's and grows,
/// or is FOREIGN; weir_tensor_get_desc, weir_tensor_get_data and weir_tensor_get_size describe the last run's output,
/// and addresses obtained before are no longer valid. FOREIGN memory stays where it is: a run whose output does not fit
/// fails with OUT_OF_RANGE and both sizes in its text, and leaves all its dynamic outputs unchanged.
///
/// Thread safety: any thread; reading a tensor while a run writes it is a race. Blocking: never; as long as the device
/// takes to pin memory, when another region of it is needed. Errors: INVALID_ARGUMENT (NULL, unknown dtype, rank,
/// negative dimension; of from: its source, members that do not belong to it, NULL or misaligned data, a buffer of
/// another engine, PINNED for an engine that is no CPU engine, open dimensions in a buffer or pinned memory);
/// OUT_OF_RANGE if the size overflows, or the memory is too small; UNIMPLEMENTED (open dimensions on an accelerator's
/// engine); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_create(
    engine: *mut weir_engine,
    desc: *const weir_tensor_desc,
    from: *const weir_memory,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    guard("weir_tensor_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_tensor, "out_tensor")?;
            let (engine, desc) = (handle::share(engine, "engine")?, read_desc(desc, "desc")?);
            let rank = (desc.rank as usize).min(desc.dims.len());
            let is_open = desc.dims[..rank].contains(&WEIR_DIM_DYNAMIC);
            let (tensor, release) = match Source::read(from)? {
                Source::New if is_open => (Tensor::create_open(engine, desc)?, None),
                Source::New => (Tensor::create(engine, desc)?, None),
                Source::Foreign(foreign) if is_open => {
                    let capacity = foreign.bytes.unwrap_or(0);
                    foreign.make(0, |data, kept| Tensor::create_open_from(engine, desc, data, capacity, kept))?
                }
                Source::Foreign(foreign) => {
                    let bytes = desc.check().and_then(|desc| desc.bytes()).map_err(|error| error.within("desc"))?;
                    foreign.make(bytes, |data, kept| Tensor::create_from(engine, desc, data, kept))?
                }
                _ if is_open => {
                    let text =
                        format!("desc: {} leaves a dimension open, which only new and FOREIGN memory can", desc.text());
                    return Err(Error::invalid(text));
                }
                Source::Buffer { buffer, offset } => {
                    check_same(&engine, buffer.engine())?;
                    (Tensor::create_on(buffer, desc, offset)?, None)
                }
                Source::Pinned(device) => (Tensor::create_pinned(engine, desc, device)?, None),
            };
            handle::into_c(tensor, out)?;
            if let Some(release) = release {
                release.adopt();
            }
            Ok(())
        }
    })
}

/// A tensor on a buffer is of the buffer's engine.
fn check_same(engine: &Ref<Engine>, of_buffer: &Ref<Engine>) -> Result<()> {
    match std::ptr::eq(&raw const **engine, &raw const **of_buffer) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "from->buffer is of another engine ({}) than the tensor ({})",
            of_buffer.label(),
            engine.label()
        ))),
    }
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_retain(tensor: *mut weir_tensor) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_tensor_retain", || unsafe { handle::retain(tensor, "tensor") })
}

/// Gives up one reference. NULL does nothing. Queued work holds references of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_release(tensor: *mut weir_tensor) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_tensor_release", || unsafe { handle::release(tensor) });
}

/// Element type and shape.
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
