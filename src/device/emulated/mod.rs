//! The emulated device.
#![forbid(unsafe_code)]

use super::{Device, Settings};
use crate::base::{Code, Error, Result};
use std::sync::Arc;

/// How a device is emulated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Emulation {
    pub seed: u64,
}

pub(super) struct Factory;

impl super::Factory for Factory {
    fn count(&self) -> u32 {
        0
    }

    fn open(&self, _index: u32, _settings: &Settings) -> Result<Arc<dyn Device>> {
        Err(Error::new(Code::Unimplemented, "this build emulates no device"))
    }
}
