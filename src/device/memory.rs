//! Memory of a device's: given back when it is dropped.
#![forbid(unsafe_code)]

use super::Device;
use crate::base::Result;
use crate::memory::Buffer;
use std::sync::Arc;

/// A stretch of a device's memory.
#[derive(Debug)]
pub struct Memory(Inner);

#[derive(Debug)]
enum Inner {
    Host(Buffer),
    Device { device: Arc<dyn Device>, address: usize, bytes: usize },
}

impl Memory {
    /// `bytes` of the device's memory; zero if it is the host's, of any contents otherwise. `what` names them in the refusal.
    pub fn on(device: &Arc<dyn Device>, bytes: usize, what: &str) -> Result<Memory> {
        Ok(Memory(match device.accelerator() {
            None => Inner::Host(Buffer::zeroed(bytes, what)?),
            Some(accelerator) => {
                let address = accelerator.allocate(bytes, what)?;
                Inner::Device { device: Arc::clone(device), address, bytes }
            }
        }))
    }

    /// The address, which only the device may be able to use.
    pub fn data(&self) -> *mut u8 {
        match &self.0 {
            Inner::Host(buffer) => buffer.data(),
            Inner::Device { address, .. } => *address as *mut u8,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Inner::Device { device, address, bytes } = &self.0
            && let Some(accelerator) = device.accelerator()
        {
            accelerator.deallocate(*address, *bytes);
        }
    }
}
