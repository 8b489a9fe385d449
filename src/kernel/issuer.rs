//! Kernel calls on a device that are more than one launch.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::device::DeviceStream;
use crate::memory::View;

/// Issues the calls of a kernel to a device itself: copies, launches, waits.
pub trait Issuer: Send + Sync {
    /// Issues one call. The views have device addresses; `name` is for texts. The caller keeps this, and the views'
    /// memory, until the stream has finished the work.
    fn issue(&self, stream: &dyn DeviceStream, name: &str, inputs: &[View], outputs: &[View]) -> Result<()>;
}
