//! Settings for kernels.
//!
//! Chapter: Kernel.

use super::argument::{out_ptr, out_value, string};
use super::guard::{guard, guard_release};
use super::{handle, text};
use crate::abi::*;
use crate::engine::KernelAttr;
use std::ffi::c_char;

/// Creates settings for kernels, all default.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_attr. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_attr_create(out_attr: *mut *mut weir_kernel_attr) -> weir_status {
    guard("weir_kernel_attr_create", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_attr, "out_attr") }?;
        handle::into_owned_c(KernelAttr::default(), out)
    })
}

/// Destroys settings. NULL does nothing.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_attr_destroy(attr: *mut weir_kernel_attr) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_kernel_attr_destroy", || unsafe { handle::destroy(attr) });
}

/// A name for error texts and dumps, UTF-8. Without one a kernel has the name of its operation, "matmul".
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: name is copied. Errors:
/// INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_attr_set_name(attr: *mut weir_kernel_attr, name: *const c_char) -> weir_status {
    guard("weir_kernel_attr_set_name", || {
        // SAFETY: the caller's pointers, as documented.
        let (attr, name) = unsafe { (handle::borrow_mut(attr, "attr")?, string(name, "name")?) };
        attr.name = name.to_owned();
        Ok(())
    })
}

/// Copies the name that was set, "" if none.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: the caller's buffer.
/// Errors: INVALID_ARGUMENT; OUT_OF_RANGE if capacity is too small (out_length is set).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_attr_get_name(
    attr: *const weir_kernel_attr,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_kernel_attr_get_name", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { text::copy(&handle::borrow(attr, "attr")?.name, buffer, capacity, out_length) }
    })
}

/// Estimated run time of one call, in nanoseconds; 0 = the kernel's own estimate (the default). It guides
/// scheduling and never changes a result.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_attr_set_cost_ns(attr: *mut weir_kernel_attr, cost_ns: u64) -> weir_status {
    guard("weir_kernel_attr_set_cost_ns", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(attr, "attr") }?.cost_ns = cost_ns;
        Ok(())
    })
}

/// The run time that was set, in nanoseconds.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_attr_get_cost_ns(
    attr: *const weir_kernel_attr,
    out_cost_ns: *mut u64,
) -> weir_status {
    guard("weir_kernel_attr_get_cost_ns", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, attr) = unsafe { (out_value(out_cost_ns, "out_cost_ns")?, handle::borrow(attr, "attr")?) };
        out.set(attr.cost_ns);
        Ok(())
    })
}
