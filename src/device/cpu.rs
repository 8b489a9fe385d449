//! The host's processors: one device, whose memory is the host's and whose work runs on the host's threads.
#![forbid(unsafe_code)]

use super::{Device, DeviceKind, DeviceSettings, Factory};
use crate::base::Result;
use crate::memory::ALIGNMENT;
use std::sync::Arc;

#[derive(Debug)]
struct Cpu;

impl Device for Cpu {
    fn kind(&self) -> DeviceKind {
        DeviceKind::CPU
    }

    fn index(&self) -> u32 {
        0
    }

    fn name(&self) -> &str {
        std::env::consts::ARCH
    }

    fn alignment(&self) -> usize {
        ALIGNMENT
    }
}

/// All processors together are one device.
pub(super) struct Cpus;

impl Factory for Cpus {
    fn count(&self) -> u32 {
        1
    }

    fn open(&self, _index: u32, _settings: &DeviceSettings) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(Cpu))
    }
}
