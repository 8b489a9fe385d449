//! What a host kernel may ask about the call it serves.

use super::argument::{out_const, out_ptr, out_value, string};
use super::guard::guard;
use super::task::{self, Place};
use super::{context, versioned};
use crate::abi::*;
use crate::base::{Code, Error};
use std::ffi::{c_char, c_void};

/// The inputs, an array of num_inputs views.
///
/// Thread safety: any thread, during the call. Blocking: never. Ownership: borrowed, valid until compute returns.
/// Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_get_inputs(
    context: *const weir_kernel_context,
    out_views: *mut *const weir_tensor_view,
    out_count: *mut usize,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    if let Some(context) = unsafe { context::borrow_right(context, out_views, out_count) } {
        // SAFETY: neither is NULL.
        unsafe {
            out_views.write(context.inputs().as_ptr().cast());
            out_count.write(context.inputs().len());
        }
        return 0;
    }
    guard("weir_kernel_context_get_inputs", || {
        // SAFETY: the caller's pointers, as documented.
        let (views, count, context) = unsafe {
            (
                out_const(out_views, "out_views")?,
                out_value(out_count, "out_count")?,
                context::borrow(context, "context")?,
            )
        };
        count.set(context.inputs().len());
        *views = context.inputs().as_ptr().cast();
        Ok(())
    })
}

/// The outputs, an array of num_outputs views.
///
/// Thread safety: any thread, during the call. Blocking: never. Ownership: borrowed, valid until compute returns.
/// Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_get_outputs(
    context: *const weir_kernel_context,
    out_views: *mut *const weir_tensor_view,
    out_count: *mut usize,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    if let Some(context) = unsafe { context::borrow_right(context, out_views, out_count) } {
        // SAFETY: neither is NULL.
        unsafe {
            out_views.write(context.outputs().as_ptr().cast());
            out_count.write(context.outputs().len());
        }
        return 0;
    }
    guard("weir_kernel_context_get_outputs", || {
        // SAFETY: the caller's pointers, as documented.
        let (views, count, context) = unsafe {
            (
                out_const(out_views, "out_views")?,
                out_value(out_count, "out_count")?,
                context::borrow(context, "context")?,
            )
        };
        count.set(context.outputs().len());
        *views = context.outputs().as_ptr().cast();
        Ok(())
    })
}

/// How many slots a region of this call can have: pieces that run at once, the calling thread included.
///
/// Thread safety: any thread, during the call. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_get_num_slots(
    context: *const weir_kernel_context,
    out_num_slots: *mut i32,
) -> weir_status {
    guard("weir_kernel_context_get_num_slots", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, context) =
            unsafe { (out_value(out_num_slots, "out_num_slots")?, context::borrow(context, "context")?) };
        out.set(context.num_slots() as i32);
        Ok(())
    })
}

/// The scratch memory of a slot: desc->scratch_bytes bytes, aligned to 64, contents undefined; NULL if
/// scratch_bytes is 0. Slot 0 may be used outside of a region.
///
/// Thread safety: any thread, during the call. Blocking: never. Ownership: borrowed, valid until compute returns.
/// Errors: INVALID_ARGUMENT; OUT_OF_RANGE (slot).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_get_scratch(
    context: *const weir_kernel_context,
    slot: i32,
    out_scratch: *mut *mut c_void,
) -> weir_status {
    guard("weir_kernel_context_get_scratch", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, context) = unsafe { (out_ptr(out_scratch, "out_scratch")?, context::borrow(context, "context")?) };
        let slots = context.num_slots();
        let slot = usize::try_from(slot)
            .ok()
            .filter(|&s| s < slots)
            .ok_or_else(|| Error::out_of_range(format!("slot is {slot}, this call has {slots}")))?;
        *out = context.scratch(slot).cast();
        Ok(())
    })
}

/// As weir_parallel_for, on the pool and with the slots of this call.
///
/// Thread safety: any thread, during the call. Blocking: until all pieces have returned. Ownership: arg is the
/// caller's.
/// Errors: INVALID_ARGUMENT; OUT_OF_RANGE (n < 0); CANCELLED if the run was cancelled; else the first nonzero
/// status that fn returned.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_parallel_for(
    context: *const weir_kernel_context,
    n: i64,
    hint: *const weir_parallel_hint,
    r#fn: weir_range_fn,
    arg: *mut c_void,
) -> weir_status {
    guard("weir_kernel_context_parallel_for", || {
        // SAFETY: the caller's pointers, as documented.
        let (context, hint) = unsafe { (context::borrow(context, "context")?, versioned::read_opt(hint, "hint")?) };
        task::run_region(&Place::Kernel(context), n, hint.as_ref(), r#fn, arg)
    })
}

/// As weir_parallel_nd, on the pool and with the slots of this call.
///
/// Thread safety: any thread, during the call. Blocking: until all pieces have returned. Ownership: arg is the
/// caller's; the arrays are only read during the call.
/// Errors: INVALID_ARGUMENT; OUT_OF_RANGE; CANCELLED if the run was cancelled; else the first nonzero status that fn
/// returned.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_parallel_nd(
    context: *const weir_kernel_context,
    rank: i32,
    extents: *const i64,
    tile: *const i64,
    hint: *const weir_parallel_hint,
    r#fn: weir_box_fn,
    arg: *mut c_void,
) -> weir_status {
    guard("weir_kernel_context_parallel_nd", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let (context, hint) = (context::borrow(context, "context")?, versioned::read_opt(hint, "hint")?);
            task::run_boxes(&Place::Kernel(context), rank, (extents, tile), hint.as_ref(), r#fn, arg)
        }
    })
}

/// Whether the run was cancelled or has failed elsewhere (1), so that the result is not wanted any more, or not (0).
///
/// Thread safety: any thread, during the call. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_is_cancelled(
    context: *const weir_kernel_context,
    out_cancelled: *mut i32,
) -> weir_status {
    guard("weir_kernel_context_is_cancelled", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, context) =
            unsafe { (out_value(out_cancelled, "out_cancelled")?, context::borrow(context, "context")?) };
        out.set(i32::from(context.is_cancelled()));
        Ok(())
    })
}

/// Makes the kernel fail with a code and a text, whatever compute returns afterwards. The first failure counts.
///
/// Thread safety: any thread, during the call. Blocking: never. Ownership: message is copied.
/// Errors: INVALID_ARGUMENT (NULL, bad UTF-8, code is WEIR_OK or no code).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_fail(
    context: *mut weir_kernel_context,
    code: weir_status,
    message: *const c_char,
) -> weir_status {
    guard("weir_kernel_context_fail", || {
        // SAFETY: the caller's pointers, as documented.
        let (context, message) = unsafe { (context::borrow(context, "context")?, string(message, "message")?) };
        let code = Code::from_status(code)
            .ok_or_else(|| Error::invalid(format!("code is {code}, expected one of weir_status_code but WEIR_OK")))?;
        context.fail(Error::new(code, message));
        Ok(())
    })
}
