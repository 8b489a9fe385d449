//! Functions for host kernels: queries and work of the running call.
//!
//! Chapter: Kernel.

use super::argument::{failure_text, out_const, out_ptr, out_value};
use super::guard::guard;
use super::task::{self, RegionPlace};
use super::{context, versioned};
use crate::abi::*;
use crate::base::{Code, Error};
use crate::kernel::Completion;
use std::ffi::{c_char, c_void};

/// The inputs, an array of num_inputs views.
///
/// Thread safety: any thread, during the call. Ownership: borrowed, valid until compute returns.
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
            let views = context.inputs();
            out_views.write(views.as_ptr().cast());
            out_count.write(views.len());
        }
        return 0;
    }
    // SAFETY: the caller's pointers, as documented.
    unsafe { refused_inputs(context, out_views, out_count) }
}

/// The error of an invalid call of the function above. A separate function, so that valid calls need no stack frame.
///
/// # Safety
/// As there.
#[cold]
#[inline(never)]
unsafe fn refused_inputs(
    context: *const weir_kernel_context,
    out_views: *mut *const weir_tensor_view,
    out_count: *mut usize,
) -> weir_status {
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
/// Thread safety: any thread, during the call. Ownership: borrowed, valid until compute returns.
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
            let views = context.output_views();
            out_views.write(views.as_ptr().cast());
            out_count.write(views.len());
        }
        return 0;
    }
    // SAFETY: the caller's pointers, as documented.
    unsafe { refused_outputs(context, out_views, out_count) }
}

/// The error of an invalid call of the function above. A separate function, so that valid calls need no stack frame.
///
/// # Safety
/// As there.
#[cold]
#[inline(never)]
unsafe fn refused_outputs(
    context: *const weir_kernel_context,
    out_views: *mut *const weir_tensor_view,
    out_count: *mut usize,
) -> weir_status {
    guard("weir_kernel_context_get_outputs", || {
        // SAFETY: the caller's pointers, as documented.
        let (views, count, context) = unsafe {
            (
                out_const(out_views, "out_views")?,
                out_value(out_count, "out_count")?,
                context::borrow(context, "context")?,
            )
        };
        count.set(context.num_outputs());
        // SAFETY: the kernel has them through C, and reads them anew when it has allocated one, as documented.
        *views = unsafe { context.output_views() }.as_ptr().cast();
        Ok(())
    })
}

/// The number of slots that a region of this call can have: pieces that run at once, the calling thread included.
///
/// Thread safety: any thread, during the call.
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
/// Thread safety: any thread, during the call. Ownership: borrowed, valid until compute returns. Errors: OUT_OF_RANGE
/// (slot).
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
/// Thread safety: any thread, during the call. Blocking: until all pieces have returned. Errors: OUT_OF_RANGE (n < 0);
/// CANCELLED if the run was cancelled; else the first nonzero status that fn returned.
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
        task::run_region(&RegionPlace::Kernel(context), n, hint.as_ref(), r#fn, arg)
    })
}

/// As weir_parallel_nd, on the pool and with the slots of this call. `extents` and `tile` have `rank` elements; `tile`
/// may be NULL.
///
/// Thread safety: any thread, during the call. Blocking: until all pieces have returned. Errors: OUT_OF_RANGE;
/// CANCELLED if the run was cancelled; else the first nonzero status that fn returned.
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
            task::run_boxes(&RegionPlace::Kernel(context), rank, (extents, tile), hint.as_ref(), r#fn, arg)
        }
    })
}

/// Whether the run was cancelled or has failed elsewhere (1), so that the result is not needed any more, or not (0).
///
/// Thread safety: any thread, during the call.
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

/// Makes the kernel fail with a code and a text, regardless of the status that compute returns. The first failure
/// counts.
///
/// Thread safety: any thread, during the call. Errors: INVALID_ARGUMENT (NULL, bad UTF-8, code is WEIR_OK or no code).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_fail(
    context: *mut weir_kernel_context,
    code: weir_status,
    message: *const c_char,
) -> weir_status {
    guard("weir_kernel_context_fail", || {
        // SAFETY: the caller's pointers, as documented.
        let (context, message) = unsafe { (context::borrow(context, "context")?, failure_text(message, "message")?) };
        let code = Code::from_status(code)
            .ok_or_else(|| Error::invalid(format!("code is {code}, expected one of weir_status_value but WEIR_OK")))?;
        context.fail(Error::new(code, message));
        Ok(())
    })
}

/// Completes a call of an asynchronous kernel. `status` is WEIR_OK or the code of its failure, `text` (may be NULL) is
/// the reason of the failure; an earlier weir_kernel_context_fail takes precedence. From here on the context and the
/// tensors no longer belong to the call.
///
/// The handle is not an object: a second call for the same handle is refused and does nothing, even when the graph, the
/// program and the kernel are long gone, unless 2^32 later calls have taken its place.
///
/// Thread safety: any thread, once per call. Blocking: never. Later nodes normally run on threads of the pool or in the
/// thread that waits. They run inside this call only if the run's pool runs tasks at once, or refuses them and
/// the run is on an asynchronous stream. Ownership: done ends here. Errors: INVALID_ARGUMENT (NULL, no completion,
/// status is no code, bad UTF-8); FAILED_PRECONDITION if the call was completed before.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_completion_done(
    done: *mut weir_completion,
    status: weir_status,
    text: *const c_char,
) -> weir_status {
    guard("weir_completion_done", || {
        if done.is_null() {
            return Err(Error::null("done"));
        }
        let completion = Completion::from_number(done.addr())
            .ok_or_else(|| Error::invalid("done: expected a completion, got no handle of a call"))?;
        // SAFETY: the caller's pointer, as documented.
        let text = if text.is_null() { None } else { Some(unsafe { failure_text(text, "text") }?) };
        let code = Code::from_status(status);
        let result = match (status, code, text) {
            (0, ..) => Ok(()),
            (_, None, _) => {
                return Err(Error::invalid(format!("status is {status}, expected one of weir_status_value")));
            }
            (_, Some(code), Some(text)) => Err(Error::new(code, text)),
            (_, Some(_), None) => Err(Error::from_status(status, "its completion")),
        };
        completion.done(result)
    })
}
