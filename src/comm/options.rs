//! A communicator's settings and figures.
#![forbid(unsafe_code)]

/// How a communicator is used.
#[derive(Clone, Debug, Default)]
pub struct CommOptions {
    pub name: String,
    pub has_thread: bool,
    pub is_checked: bool,
    /// The host's tensors are valid as long as the transport may use them.
    pub do_tensors_stay: bool,
    /// 0 = none.
    pub limit_ns: u64,
}

/// Figures for the host.
#[derive(Clone, Copy, Debug)]
pub struct CommFigures {
    pub begun: u64,
    pub ended: u64,
    pub quarantined_bytes: u64,
    pub is_dead: bool,
}
