//! How threads wait for a device.
#![forbid(unsafe_code)]

use super::{DeviceEvent, in_a_capture};
use crate::base::Result;
use crate::base::time::{Deadline, now_ns};

/// They spin for so long; then they block in the device, or go on polling and yield in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub spin_ns: u64,
    pub yields: bool,
}

/// The longest pause between two polls.
const LAST_PAUSE_NS: u64 = 1000;

impl Waiting {
    /// Polls until the event is reached or the deadline has passed; `None` when the thread should block in the device.
    ///
    /// After each query it pauses for as long as the query took: a device may answer under a lock that submitting
    /// threads need.
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
