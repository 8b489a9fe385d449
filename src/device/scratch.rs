//! Scratch memory, as kernels are given it.
#![forbid(unsafe_code)]

/// Scratch memory of a stream, as one launch is given it.
#[derive(Clone, Copy, Debug)]
pub struct LaunchScratch {
    pub address: usize,
    /// How much there is.
    pub bytes: usize,
    /// How much of it the launch has asked for.
    pub asked: usize,
}
