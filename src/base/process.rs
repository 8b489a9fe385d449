//! Identity of the process: the one that loaded the library, its child, a child of that.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Number of forks between the process that loaded the library and this one. ORDERING: Relaxed; it changes while a
/// process has one thread.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// This process is a child of the previous one. Called in the child, where there is one thread.
pub fn is_child_now() {
    GENERATION.fetch_add(1, Relaxed);
}
