//! Calls on a device that are not one launch.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::device::DeviceStream;
use crate::memory::View;

/// Issues the calls of a kernel to a device itself: copies, launches, waits.
pub trait Issuer: Send + Sync {
    /// Issues one call. The views have addresses of the device's; `name` is for texts. Whoever calls keeps this, and
    /// the views' memory, until the stream has done it.
    fn issue(&self, stream: &dyn DeviceStream, name: &str, inputs: &[View], outputs: &[View]) -> Result<()>;
}
