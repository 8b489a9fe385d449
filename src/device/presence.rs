//! Devices that have gone: whoever waits to make one with other settings is told.
#![forbid(unsafe_code)]

use crate::sync::EventCount;

/// Advanced when a device has gone.
pub(super) static GONE: EventCount = EventCount::new();

/// The last part of a device that goes: then another one may be made with other settings.
#[derive(Debug, Default)]
pub struct Presence(());

impl Drop for Presence {
    fn drop(&mut self) {
        GONE.advance(1);
    }
}
