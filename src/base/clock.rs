//! The monotonic clock, without any state.
//!
//! `std::time::Instant` has no zero that all threads could share without a once-cell; once-cells live in `sync`, which
//! is built on this room.

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

/// The processor's cycle counter, for spans within a thread: at most half the cost of the clock, and as accurate where
/// the counter has a constant rate, as on all processors of the last ten years.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: all x86-64 processors have the instruction, and it touches no memory.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let count: u64;
        // SAFETY: the register can be read by all programs, and reading it touches no memory.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
        return count;
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    return now_ns();
}
