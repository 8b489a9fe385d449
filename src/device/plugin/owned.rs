//! Objects that a plug-in has made, held by its own pointers; kernels, and calls of them.

use super::opened::Opened;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::{weir_device_launch, weir_tensor_view};
use crate::base::{Error, Result};
use crate::device::{DeviceKernel, Launch};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// An object of the device, held by the plug-in's own pointer.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) device: Arc<Opened>,
    pub(super) handle: *mut c_void,
}

// SAFETY: the handle is given to the plug-in's functions alone, which may be called from any thread.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

#[derive(Debug)]
pub(super) struct PluginKernel(Owned);

impl PluginKernel {
    /// # Safety
    /// An object of this kind that the plug-in has made of its device, and gives up here.
    pub(super) unsafe fn new(device: Arc<Opened>, handle: *mut c_void) -> PluginKernel {
        PluginKernel(Owned { device, handle })
    }
}

/// Downcasts an object to this plug-in's type; an error if it belongs to another device.
pub(super) fn own<'a, T: 'static>(
    found: Option<&'a T>,
    owner: impl Fn(&'a T) -> &'a Owned,
    device: &Arc<Opened>,
) -> Result<&'a T> {
    found
        .filter(|object| Arc::ptr_eq(&owner(object).device, device))
        .ok_or_else(|| Error::invalid("a stream was given an object of another device's"))
}

impl Drop for PluginKernel {
    fn drop(&mut self) {
        let Owned { device, handle } = &self.0;
        device.let_go(*handle, |device, kernel| {
            if let Some(destroy) = device.functions().kernel_destroy {
                // SAFETY: the plug-in's function and kernel, which nobody uses any more.
                unsafe { destroy(device.handle(), kernel) }
            }
        });
    }
}

impl DeviceKernel for PluginKernel {
    fn in_place(&self) -> bool {
        self.0.device.can(C::WEIR_DEVICE_IN_PLACE)
    }
}

/// A launch as a C struct, which points to the launch's tensors.
pub(super) fn arguments(launch: &Launch<'_>, scratch: Option<(usize, usize)>) -> weir_device_launch {
    let (address, bytes) = scratch.unwrap_or_default();
    // A View is a weir_tensor_view (memory::view).
    weir_device_launch {
        struct_size: size_of::<weir_device_launch>(),
        inputs: launch.inputs.as_ptr().cast::<weir_tensor_view>(),
        num_inputs: launch.inputs.len(),
        outputs: launch.outputs.as_ptr().cast::<weir_tensor_view>(),
        num_outputs: launch.outputs.len(),
        scratch: address as u64,
        scratch_bytes: bytes as u64,
    }
}

/// The plug-in's pointer to a kernel.
pub(super) fn handle_of(kernel: &Arc<dyn DeviceKernel>, device: &Arc<Opened>) -> Result<*mut c_void> {
    let kernel = (&**kernel as &dyn Any).downcast_ref::<PluginKernel>();
    Ok(own(kernel, |kernel| &kernel.0, device)?.0.handle)
}

/// The plug-in's pointer to the kernel of a launch.
pub(super) fn kernel_of(launch: &Launch<'_>, device: &Arc<Opened>) -> Result<*mut c_void> {
    handle_of(launch.kernel, device)
}

/// Text for C; short text is not allocated.
#[derive(Debug)]
pub(super) struct Text(SmallVec<[u8; 128]>);

impl Text {
    /// The pointer is valid as long as this is not moved.
    pub(super) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// Text behind a NUL is left out.
pub(super) fn c_text(text: &str) -> Text {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let mut text = SmallVec::with_capacity(end + 1);
    text.extend_from_slice(&bytes[..end]);
    text.push(0);
    Text(text)
}
