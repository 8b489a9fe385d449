//! Fork: threads and waits do not survive it. A child frees nothing and uses nothing that it inherited; it makes new
//! objects, as far as they need no threads, pools or devices.
//!
//! `hook` is called by every function of the C interface, and has the C library count the processes (`base::process`):
//! objects know the process that made them, and process-wide lists start empty in a child (`Global`). `arm` is called
//! when the first engine or pool is made; from then on a child of this process is refused objects that need threads
//! (`check`).

use super::progress;
use crate::base::{Error, Result, live, process};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static HOOKED: AtomicBool = AtomicBool::new(false);
static ARMED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);

/// Asks the C library to count children. True for the first call in the process, and for no other.
#[inline]
pub fn hook() -> bool {
    // ORDERING: Relaxed here and below; a child has one thread when these are written and read there.
    !HOOKED.load(Relaxed) && hook_now()
}

#[cold]
fn hook_now() -> bool {
    if HOOKED.swap(true, Relaxed) {
        return false;
    }
    #[cfg(unix)]
    {
        extern "C" fn child() {
            process::is_child_now();
            live::begin_anew();
            progress::begin_anew();
            if ARMED.load(Relaxed) {
                FORKED.store(true, Relaxed);
            }
        }
        // SAFETY: `child` only loads and stores atomics, which is legal between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    }
    true
}

/// From now on children are refused threads.
pub fn arm() {
    hook();
    ARMED.store(true, Relaxed);
}

/// Whether this process is a forked child that is refused threads, pools and devices.
#[inline]
pub fn forked() -> bool {
    FORKED.load(Relaxed)
}

/// Refuses what a forked child cannot have.
#[inline]
pub fn check() -> Result<()> {
    if forked() { Err(refused()) } else { Ok(()) }
}

#[cold]
fn refused() -> Error {
    Error::precondition(
        "this process was forked after weir was in use: here are no threads, pools, devices or asynchronous streams, \
         only cpu engines, synchronous streams and what is made with these",
    )
}
