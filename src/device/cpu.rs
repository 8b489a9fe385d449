//! The host's processors.

use super::{Device, DeviceKind};
use crate::base::Result;
use crate::memory::{ALIGNMENT, HostMemory, Source};
use std::sync::Arc;

#[derive(Debug)]
struct Cpu;

impl Device for Cpu {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn index(&self) -> u32 {
        0
    }

    fn name(&self) -> &str {
        std::env::consts::ARCH
    }

    fn memory(&self) -> Box<dyn Source> {
        Box::new(HostMemory)
    }

    fn alignment(&self) -> usize {
        ALIGNMENT
    }
}

/// All processors together are one device.
pub(super) struct Factory;

impl super::Factory for Factory {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn count(&self) -> u32 {
        1
    }

    fn open(&self, _index: u32) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(Cpu))
    }
}
