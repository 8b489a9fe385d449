//! The maker of a kind's devices.
#![forbid(unsafe_code)]

use super::{Device, DeviceSettings};
use crate::base::Result;
use std::sync::Arc;

/// Makes the devices of one kind.
pub trait Factory: Send + Sync {
    fn count(&self) -> u32;

    /// The reason, if there are none.
    fn why_none(&self) -> Option<String> {
        None
    }

    /// Whether its devices are listed as this machine's.
    fn is_listed(&self) -> bool {
        true
    }

    fn open(&self, index: u32, settings: &DeviceSettings) -> Result<Arc<dyn Device>>;
}
