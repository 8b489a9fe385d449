//! Packed weights.
//!
//! Chapter: Matrix products.

use super::argument::{out_ptr, out_value};
use super::guard::{guard, guard_release};
use super::{handle, versioned};
use crate::abi::*;
use crate::base::Error;
use crate::engine::PackedWeights;
use crate::ops::check::flags;

/// Packs the weights of matrix products: a tensor [K, N] of f32, f16, bf16 or s8, as desc says; NULL desc = not
/// transposed. Any number of kernels, on any pools and threads, take the result in place of the input B. The packed
/// layout depends only on the size, the type and the instruction set. The tensor is read before this returns, and not
/// needed any more.
///
/// Thread safety: any thread, while nothing writes the tensor. Blocking: never, but it takes the time to copy the
/// tensor. Ownership: kernels hold references of their own. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags,
/// another type or rank, a tensor of another engine's device, WEIR_MAX_ISA); FAILED_PRECONDITION (a dynamic tensor);
/// OUT_OF_RANGE; RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_create(
    engine: *mut weir_engine,
    tensor: *const weir_tensor,
    desc: *const weir_packed_weights_desc,
    out_weights: *mut *mut weir_packed_weights,
) -> weir_status {
    guard("weir_packed_weights_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_weights, "out_weights")?;
            let (engine, tensor) = (handle::share(engine, "engine")?, handle::borrow(tensor, "tensor")?);
            let desc = versioned::read_or_zero(desc, "desc")?;
            let transposed = weir_packed_weights_flags::WEIR_PACKED_WEIGHTS_TRANSPOSED as u64;
            let transposed = flags(desc.flags, transposed, "desc->flags")? & transposed != 0;
            if tensor.open().is_some() {
                return Err(Error::precondition("tensor is dynamic: its shape may change"));
            }
            handle::into_c(PackedWeights::create(engine, tensor, transposed)?, out)
        }
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_retain(weights: *mut weir_packed_weights) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_packed_weights_retain", || unsafe { handle::retain(weights, "weights") })
}

/// Gives up one reference. NULL does nothing. Kernels made with the weights keep them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_release(weights: *mut weir_packed_weights) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_packed_weights_release", || unsafe { handle::release(weights) });
}

/// Size of the packed weights in bytes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_get_size(
    weights: *const weir_packed_weights,
    out_bytes: *mut usize,
) -> weir_status {
    guard("weir_packed_weights_get_size", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, weights) = unsafe { (out_value(out_bytes, "out_bytes")?, handle::borrow(weights, "weights")?) };
        out.set(weights.packed().bytes());
        Ok(())
    })
}
