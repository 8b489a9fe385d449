//! Foreign memory that is registered with a device, until it is dropped.
#![forbid(unsafe_code)]

use crate::device::{Accelerator, Device};
use crate::sync::{Mutex, fork};
use std::sync::Arc;

/// The registrations with a device through one engine: address and bytes of each.
#[derive(Debug, Default)]
pub struct Registrations(pub(super) Mutex<Vec<(usize, usize)>>);

impl Registrations {
    pub(super) fn bytes(&self) -> usize {
        self.0.lock().iter().map(|range| range.1).sum()
    }

    pub(super) fn cover(&self, address: usize, bytes: usize) -> bool {
        self.0.lock().iter().any(|&(start, size)| start <= address && address + bytes <= start + size)
    }
}

/// Memory is registered until this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    pub device: Arc<dyn Device>,
    pub all: Arc<Registrations>,
    pub range: (usize, usize),
}

impl Drop for Registration {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        let (address, bytes) = self.range;
        if let Some(pinning) = self.device.accelerator().and_then(Accelerator::pinning) {
            pinning.unregister(address, bytes);
        }
        let mut all = self.all.0.lock();
        if let Some(at) = all.iter().position(|range| *range == self.range) {
            all.swap_remove(at);
        }
    }
}
