//! A record that a device refuses.
#![forbid(unsafe_code)]

use super::{DeviceEvent, DeviceStream};
use crate::base::{Code, Result};
use std::sync::Arc;

impl dyn DeviceStream + '_ {
    /// Records an event behind work that must not end unseen: a device that refuses is asked once more. An error:
    /// nobody will know when that work is over, unless the device is lost. Inside is the refusal of the first attempt.
    pub fn insist(&self, event: &Arc<dyn DeviceEvent>) -> Result<Result<()>> {
        match self.record(event) {
            Err(refusal) if refusal.code() != Code::DeviceLost => self.record(event).map(|()| Err(refusal)),
            recorded => recorded.map(Ok),
        }
    }
}
