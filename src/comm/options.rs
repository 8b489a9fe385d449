//! A communicator's settings and figures.
#![forbid(unsafe_code)]

use crate::sync::progress::Pace;

/// How a communicator is used.
#[derive(Clone, Debug)]
pub struct CommOptions {
    pub name: String,
    pub has_thread: bool,
    pub is_checked: bool,
    /// The host's tensors are valid as long as the transport may use them.
    pub do_tensors_stay: bool,
    /// 0 = none.
    pub limit_ns: u64,
    /// Of a thread that waits for other ranks.
    pub pace: Pace,
}

impl Default for CommOptions {
    fn default() -> CommOptions {
        CommOptions {
            name: String::new(),
            has_thread: false,
            is_checked: false,
            do_tensors_stay: false,
            limit_ns: 0,
            pace: Pace::DEFAULT,
        }
    }
}

/// Figures for the host.
#[derive(Clone, Copy, Debug)]
pub struct CommFigures {
    pub begun: u64,
    pub ended: u64,
    pub quarantined_bytes: u64,
    pub is_dead: bool,
}
