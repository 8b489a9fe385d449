//! Atomics and cells from std, or from loom when the protocols are model-checked (`RUSTFLAGS="--cfg loom"`).
#![forbid(unsafe_code)]

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
