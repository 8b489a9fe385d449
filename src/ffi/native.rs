//! Native handles of engines, streams and events.
//!
//! Chapter: Native handles.

use super::argument::out_value;
use super::guard::guard;
use super::handle;
use crate::abi::*;

/// The engine's native device handle. CUDA: the CUcontext. A plug-in: the result of its native_handle. The native
/// address of a tensor is weir_tensor_get_data.
///
/// Ownership: the handle stays weir's, and lives as long as the engine. Errors: UNIMPLEMENTED if there is no such
/// handle, as on the CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_get_native_handle(
    engine: *const weir_engine,
    out_handle: *mut u64,
) -> weir_status {
    guard("weir_engine_get_native_handle", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine) = unsafe { (out_value(out_handle, "out_handle")?, handle::borrow(engine, "engine")?) };
        out.set(engine.native_handle()?);
        Ok(())
    })
}

/// The stream's native handle. CUDA: the CUstream, for the host's own work beside weir's: it runs after work submitted
/// before, unless that waits for something on the host.
///
/// Ownership: the handle stays weir's, and lives as long as the stream. Errors: UNIMPLEMENTED if there is no such
/// handle, as on the CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_get_native_handle(
    stream: *const weir_stream,
    out_handle: *mut u64,
) -> weir_status {
    guard("weir_stream_get_native_handle", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, stream) = unsafe { (out_value(out_handle, "out_handle")?, handle::borrow(stream, "stream")?) };
        out.set(stream.native_handle()?);
        Ok(())
    })
}

/// The native handle of the event, as last recorded. CUDA: a CUevent, for streams of the host's own to wait for.
///
/// Ownership: the handle stays weir's. It lives until the event is recorded again or released. Errors:
/// FAILED_PRECONDITION if the event was never recorded, or the device has not been given the record yet; UNIMPLEMENTED
/// if there is no such handle, as on the CPU.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_event_get_native_handle(event: *const weir_event, out_handle: *mut u64) -> weir_status {
    guard("weir_event_get_native_handle", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, event) = unsafe { (out_value(out_handle, "out_handle")?, handle::borrow(event, "event")?) };
        out.set(event.native_handle()?);
        Ok(())
    })
}
