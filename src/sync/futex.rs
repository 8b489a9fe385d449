//! Sleep on a 32-bit word while it has an expected value; wake those who sleep on it.
//!
//! Linux has this as a system call (futex(2), FUTEX_WAIT_PRIVATE and FUTEX_WAKE_PRIVATE). Elsewhere a small table
//! of mutexes and condition variables, indexed by the word's address, does the same.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `*word == expected`, for at most `timeout` (None = for ever). Wake-ups may be spurious; callers loop.
///
/// ORDERING: gives none; callers load the word with the ordering they need before and after.
#[cfg(target_os = "linux")]
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let spec = timeout.map(|t| libc::timespec {
        // The end comes early after 68 years, as a spurious wake-up.
        tv_sec: t.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: t.subsec_nanos() as _,
    });
    // SAFETY: the word lives during the call, and the kernel only reads it; spec is NULL or a valid timespec.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
        );
    }
}

/// Wakes up to `count` threads that sleep on `word`.
#[cfg(target_os = "linux")]
pub fn wake(word: &AtomicU32, count: u32) {
    // SAFETY: FUTEX_WAKE uses the address as a key only.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count.min(i32::MAX as u32),
        );
    }
}

#[cfg(not(target_os = "linux"))]
mod table {
    use std::sync::{Condvar, Mutex};

    pub(super) struct WaitBucket {
        pub lock: Mutex<()>,
        pub signal: Condvar,
    }

    static TABLE: [WaitBucket; 64] = [const { WaitBucket { lock: Mutex::new(()), signal: Condvar::new() } }; 64];

    pub(super) fn row(address: usize) -> &'static WaitBucket {
        &TABLE[(address >> 4) % TABLE.len()]
    }
}

/// As on Linux.
#[cfg(not(target_os = "linux"))]
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let row = table::row(word.as_ptr() as usize);
    let guard = row.lock.lock().unwrap_or_else(|e| e.into_inner());
    // ORDERING: the lock orders this load against `wake`, which takes it after the caller changed the word.
    if word.load(std::sync::atomic::Ordering::Relaxed) != expected {
        return;
    }
    match timeout {
        Some(timeout) => drop(row.signal.wait_timeout(guard, timeout)),
        None => drop(row.signal.wait(guard)),
    }
}

/// As on Linux; wakes every sleeper in the bucket, which `wait` allows.
#[cfg(not(target_os = "linux"))]
pub fn wake(word: &AtomicU32, _count: u32) {
    let row = table::row(word.as_ptr() as usize);
    drop(row.lock.lock().unwrap_or_else(|e| e.into_inner()));
    row.signal.notify_all();
}
