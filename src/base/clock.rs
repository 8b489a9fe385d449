//! The monotonic clock, read with no state of its own.
//!
//! `std::time::Instant` has no zero that all threads could share without a once-cell, and those live in `sync`, which
//! is built on this.

/// Nanoseconds of the system's monotonic clock (CLOCK_MONOTONIC).
#[cfg(unix)]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec; the call only writes to it, and cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds since the first call in this process.
#[cfg(not(unix))]
pub fn now_ns() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
