//! More of an opened device: memory, its peers, and native handles.

use super::opened::Opened;
use super::owned::c_text;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::weir_device_object_value;
use crate::base::{Code, Error, Result};
use crate::device::Accelerator;
use std::ffi::c_void;
use std::sync::Arc;

impl Opened {
    pub(super) fn allocate(self: &Arc<Self>, bytes: usize, what: &str) -> Result<usize> {
        let device = &**self;
        let (name, wanted) = (c_text(what), bytes.max(1));
        let mut address = 0;
        let allocate = device.functions().allocate;
        device
            .call("allocate", || {
                // SAFETY: the plug-in's function and device; the name lives during the call, and there is a place for
                // the answer.
                allocate.map(|f| unsafe { f(device.handle(), wanted as u64, name.as_ptr(), &raw mut address) })
            })
            .map_err(|error| match error.code() {
                Code::ResourceExhausted if !device.can(C::WEIR_DEVICE_WHOLE_TEXTS) => {
                    error.within(format_args!("{what} needs {bytes} bytes"))
                }
                _ => error,
            })?;
        if address == 0 {
            return Err(device.nonsense("allocate", "returned OK and no address"));
        }
        let alignment = device.facts().alignment;
        match usize::try_from(address) {
            Ok(at) if at.is_multiple_of(alignment) && at.checked_add(wanted).is_some() => Ok(at),
            _ => {
                self.deallocate(address as usize, bytes);
                let what = format!("gave {address:#x}, expected a multiple of {alignment}");
                Err(device.nonsense("allocate", what))
            }
        }
    }

    pub(super) fn deallocate(self: &Arc<Self>, address: usize, bytes: usize) {
        self.let_go(std::ptr::null_mut(), move |device, _| {
            if let Some(deallocate) = device.functions().deallocate {
                // SAFETY: the plug-in's function and device, with what `allocate` gave for these bytes.
                unsafe { deallocate(device.handle(), address as u64, bytes.max(1) as u64) }
            }
        });
    }

    /// The plug-in's pointer to another device of its own, if this one copies from and to it.
    pub(super) fn peer(&self, peer: &dyn Accelerator) -> Option<*mut c_void> {
        let [table, device] = peer.plugin_identity()?;
        let is_own = self.can(C::WEIR_DEVICE_PEER_COPY) && table == Arc::as_ptr(self.table()).addr();
        is_own.then(|| std::ptr::with_exposed_provenance_mut(device))
    }

    /// The same for a copy: a lost device is given no more work, and no part in another one's.
    pub(super) fn partner(&self, peer: &dyn Accelerator) -> Result<*mut c_void> {
        peer.intact()?;
        let none = || Error::new(Code::Unimplemented, "the plug-in copies nothing straight between these devices");
        self.peer(peer).ok_or_else(none)
    }

    /// # Safety
    /// The object is of this kind, and the plug-in's.
    pub(super) unsafe fn native_handle(&self, what: weir_device_object_value, object: *mut c_void) -> Result<u64> {
        if !self.can(C::WEIR_DEVICE_NATIVE_HANDLE) {
            return Err(Error::new(Code::Unimplemented, "the plug-in's device has no native handles"));
        }
        let mut answer = 0;
        let ask = self.functions().native_handle;
        self.call("native_handle", || {
            // SAFETY: the plug-in's function, an object as demanded of the caller, and a place for the answer.
            ask.map(|f| unsafe { f(self.handle(), what as u32, object, &raw mut answer) })
        })?;
        Ok(answer)
    }
}
