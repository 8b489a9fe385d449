//! A kernel's host function, as a plug-in's device calls it.

use crate::abi::{weir_destroy_fn, weir_device_host_call_fn, weir_tensor_view};
use crate::base::Error;
use crate::base::text::head;
use crate::device::HostFunction;
use crate::memory::View;
use crate::sync::ambient;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The object that the plug-in retains.
pub(super) struct Host(Arc<dyn HostFunction>);

impl Host {
    pub(super) fn new(function: &Arc<dyn HostFunction>) -> Arc<Host> {
        Arc::new(Host(Arc::clone(function)))
    }
}

pub(super) struct Functions {
    pub(super) call: weir_device_host_call_fn,
    pub(super) retain: weir_destroy_fn,
    pub(super) release: weir_destroy_fn,
}

pub(super) const HOST: Functions = Functions { call: Some(call), retain: Some(retain), release: Some(release) };

/// # Safety
/// So many views, which are there during the call.
unsafe fn views<'a>(views: *const weir_tensor_view, count: usize) -> &'a [View] {
    match count {
        0 => &[],
        // SAFETY: as demanded of the caller; a View is a weir_tensor_view (memory::view).
        _ => unsafe { std::slice::from_raw_parts(views.cast(), count) },
    }
}

unsafe extern "C" fn call(
    user: *mut c_void,
    inputs: *const weir_tensor_view,
    num_inputs: usize,
    outputs: *const weir_tensor_view,
    num_outputs: usize,
    text: *mut c_char,
    capacity: usize,
) -> i32 {
    // SAFETY: the plug-in calls with what the recipe gave it, while that is retained, and with the tensors of a launch
    // in memory that the host can touch then.
    let result = catch_unwind(AssertUnwindSafe(|| unsafe {
        let host = &*user.cast::<Host>();
        let (inputs, outputs) = (views(inputs, num_inputs), views(outputs, num_outputs));
        ambient::on_device_thread(|| host.0.call(inputs, outputs))
    }));
    let result = result.unwrap_or_else(|payload| {
        let error = Error::from_panic(&*payload);
        // Dropping it might panic again.
        std::mem::forget(payload);
        Err(error)
    });
    let Err(error) = result else { return 0 };
    if capacity > 0 && !text.is_null() {
        let message = head(error.message(), capacity - 1);
        // SAFETY: so many writable bytes of the plug-in's.
        unsafe {
            std::ptr::copy_nonoverlapping(message.as_ptr(), text.cast(), message.len());
            text.add(message.len()).write(0);
        }
    }
    error.code().status()
}

unsafe extern "C" fn retain(user: *mut c_void) {
    // SAFETY: of an Arc that lives: the recipe's, or one that was retained.
    unsafe { Arc::increment_strong_count(user.cast_const().cast::<Host>()) };
}

unsafe extern "C" fn release(user: *mut c_void) {
    // SAFETY: it was retained, and is given back once.
    unsafe { Arc::decrement_strong_count(user.cast_const().cast::<Host>()) };
}
