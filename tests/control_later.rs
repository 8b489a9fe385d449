//! The tests of control flow once more, with kernels that complete later: at once, or from another thread.

#[path = "control.rs"]
mod control;
