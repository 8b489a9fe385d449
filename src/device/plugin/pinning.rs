//! Host memory that a plug-in's device has pinned.

use super::device::PluginDevice;
use super::owned::c_text;
use crate::abi::weir_device_capability_flags as C;
use crate::base::{Code, Error, Result};
use crate::device::Pinning;
use crate::memory::ALIGNMENT;
use crate::sync::fork;

impl Pinning for PluginDevice {
    fn allocate_host(&self, bytes: usize, what: &str) -> Result<usize> {
        let device = &**self.opened();
        let (name, wanted) = (c_text(what), bytes.max(1));
        let mut data = std::ptr::null_mut();
        let allocate = device.functions().host_allocate;
        device
            .call("host_allocate", || {
                // SAFETY: the plug-in's function and device; the name lives during the call, and there is a place for
                // the answer.
                allocate.map(|f| unsafe { f(device.handle(), wanted as u64, name.as_ptr(), &raw mut data) })
            })
            .map_err(|error| match error.code() {
                Code::ResourceExhausted if !device.can(C::WEIR_DEVICE_WHOLE_TEXTS) => {
                    error.within(format_args!("{what} needs {bytes} bytes"))
                }
                _ => error,
            })?;
        if data.is_null() {
            return Err(device.nonsense("host_allocate", "returned OK and no address"));
        }
        let address = data.expose_provenance();
        if address.is_multiple_of(ALIGNMENT) && address.checked_add(wanted).is_some() {
            return Ok(address);
        }
        self.deallocate_host(address, bytes);
        Err(device.nonsense("host_allocate", format!("gave {address:#x}, expected a multiple of {ALIGNMENT}")))
    }

    fn deallocate_host(&self, address: usize, bytes: usize) {
        self.opened().let_go(std::ptr::with_exposed_provenance_mut(address), move |device, data| {
            if let Some(deallocate) = device.functions().host_deallocate {
                // SAFETY: the plug-in's function and device, with what `host_allocate` gave for these bytes.
                unsafe { deallocate(device.handle(), data, bytes.max(1) as u64) }
            }
        });
    }

    fn can_register(&self) -> bool {
        self.opened().can(C::WEIR_DEVICE_REGISTER_MEMORY)
    }

    fn register(&self, address: usize, bytes: usize, what: &str) -> Result<()> {
        let device = &**self.opened();
        if !self.can_register() {
            let text = format!("the plug-in's device does not pin {what}, which is not its own");
            return Err(Error::new(Code::Unimplemented, text));
        }
        let register = device.functions().host_register;
        device.call("host_register", || {
            let data = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the plug-in's function and device; the host keeps the memory until it is unregistered.
            register.map(|f| unsafe { f(device.handle(), data, bytes as u64) })
        })
    }

    fn host_uses(&self, address: usize, bytes: usize, writes: bool, what: &str) {
        let device = &**self.opened();
        let Some(used) = device.functions().host_used.filter(|_| bytes > 0 && !fork::forked()) else { return };
        let (data, name) = (std::ptr::with_exposed_provenance(address), c_text(what));
        let told = device.call("host_used", || {
            // SAFETY: the plug-in's function and device, which reads nothing there; the name lives during the call.
            unsafe { used(device.handle(), data, bytes as u64, i32::from(writes), name.as_ptr()) };
            Some(0)
        });
        // A lost device checks nothing any more.
        drop(told);
    }

    fn unregister(&self, address: usize, bytes: usize) {
        self.opened().let_go(std::ptr::with_exposed_provenance_mut(address), move |device, data| {
            if let Some(unregister) = device.functions().host_unregister {
                // SAFETY: the plug-in's function and device, with what was registered.
                unsafe { unregister(device.handle(), data, bytes as u64) }
            }
        });
    }
}
