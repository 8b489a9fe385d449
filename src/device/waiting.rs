//! How threads wait for a device.
#![forbid(unsafe_code)]

use super::{DeviceEvent, in_a_capture};
use crate::base::Result;
use crate::base::time::{Deadline, now_ns};

/// They look for so long; then the device wakes them, or they go on looking, and let others have their processor in
/// between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub spin_ns: u64,
    pub yields: bool,
}

/// The longest pause between two looks.
const LAST_PAUSE_NS: u64 = 1000;

impl Waiting {
    /// As `DeviceEvent::is_reached`, once the event is or the deadline has passed; None when the device is to wake the
    /// thread.
    ///
    /// Between two questions lies a pause as long as one takes: a device may answer under a lock, which those who give
    /// it work need.
    pub fn look(self, event: &dyn DeviceEvent, deadline: Deadline) -> Result<Option<bool>> {
        let begin = now_ns();
        loop {
            let asked = now_ns();
            if event.is_reached()? {
                return Ok(Some(true));
            }
            if deadline.is_past() {
                return Ok(Some(false));
            }
            if event.is_captured() {
                return Err(in_a_capture());
            }
            let answered = now_ns();
            if answered - begin < self.spin_ns {
                let pause = (answered - asked).min(LAST_PAUSE_NS);
                while now_ns() - answered < pause {
                    std::hint::spin_loop();
                }
            } else if self.yields {
                std::thread::yield_now();
            } else {
                return Ok(None);
            }
        }
    }
}
