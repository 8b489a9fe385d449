//! Kernel calls on a device that are more than one launch.
#![forbid(unsafe_code)]

use super::Stop;
use crate::base::{Error, Result};
use crate::device::DeviceStream;
use crate::memory::View;
use std::sync::Arc;

/// Issues the calls of a kernel to a device itself: copies, launches, waits.
pub trait Issuer: Send + Sync {
    /// Issues one call. The caller keeps this, and the views' memory, until the stream has finished the work.
    fn issue(&self, call: &IssuedCall<'_>) -> Result<()>;
}

/// A call that is issued. The views have device addresses.
#[derive(Clone, Copy)]
pub struct IssuedCall<'a> {
    pub stream: &'a dyn DeviceStream,
    /// For texts.
    pub name: &'a str,
    pub inputs: &'a [View],
    pub outputs: &'a [View],
    pub issued_for: IssuedFor<'a>,
}

/// The run or the stream that a call is a part of.
#[derive(Clone, Copy)]
pub enum IssuedFor<'a> {
    /// A run: its number, as `RunListener` has it, and its stop flag if that outlives the call.
    Run(usize, Option<&'a Arc<Stop>>),
    /// A stream of the host's.
    Stream(&'a Arc<dyn LateFailure>),
}

/// A stream, which can fail after a call has returned.
pub trait LateFailure: Send + Sync {
    fn fail(&self, error: Error);
}
