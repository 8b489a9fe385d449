//! Copies and fills.
//!
//! Chapter: Stream.

use super::guard::guard;
use super::handle;
use crate::abi::*;
use crate::base::Error;

/// Copies the elements of one tensor to another of the same type and shape. The two may be on two engines: then the
/// stream is of one of them, and of a device if one of them is. Between devices that cannot reach each other's memory,
/// above all those of two kinds, the copy goes through host memory: it then begins when the stream has reached it, on a
/// stream created for it, and the stream continues when it is over. CPU tensors that a device copies from or to must
/// stay alive and unchanged until the copy is done.
///
/// Blocking: until done on a synchronous stream, never on others. Ownership: the work holds references to both tensors
/// until it is done. Errors: INVALID_ARGUMENT (also another type or shape, memory in common, a dynamic tensor, engines
/// that the stream cannot reach); FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used from
/// inside its own work; errors of the device, at once or late.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_enqueue_copy(
    stream: *mut weir_stream,
    source: *mut weir_tensor,
    target: *mut weir_tensor,
) -> weir_status {
    guard("weir_enqueue_copy", || {
        // SAFETY: the caller's handles, as documented.
        let (stream, source, target) = unsafe {
            (handle::share(stream, "stream")?, handle::share(source, "source")?, handle::share(target, "target")?)
        };
        stream.enqueue_copy(source, target)
    })
}

/// Sets every byte of a tensor to `value`. The tensor is on the stream's device; CPU engines share theirs.
///
/// Blocking: until done on a synchronous stream, never on others. Ownership: the work holds a reference to the tensor
/// until it is done. Errors: INVALID_ARGUMENT (also value not 0 to 255, a dynamic tensor, a tensor of another device);
/// FAILED_PRECONDITION if the stream has failed, or if a synchronous stream is used from inside its own work; errors of
/// the device, at once or late.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_enqueue_fill(
    stream: *mut weir_stream,
    tensor: *mut weir_tensor,
    value: i32,
) -> weir_status {
    guard("weir_enqueue_fill", || {
        // SAFETY: the caller's handles, as documented.
        let (stream, tensor) = unsafe { (handle::share(stream, "stream")?, handle::share(tensor, "tensor")?) };
        let value = u8::try_from(value).map_err(|_| Error::invalid(format!("value is {value}, expected 0 to 255")))?;
        stream.enqueue_fill(tensor, value)
    })
}
