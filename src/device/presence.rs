//! Devices that have ended: wakes threads that wait to make one with other settings.
#![forbid(unsafe_code)]

use crate::sync::EventCount;

/// Advanced when a device has ended.
pub(super) static GONE: EventCount = EventCount::new();

/// The last field of a device to be dropped: then another one may be made with other settings.
#[derive(Debug, Default)]
pub struct Presence(());

impl Drop for Presence {
    fn drop(&mut self) {
        GONE.advance(1);
    }
}
