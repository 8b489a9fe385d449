//! Fork: threads and waits do not survive it, so a child may only let go of what it inherited.
//!
//! `arm` is called when the first engine or pool is made; from then on a child of this process is marked.

use crate::base::{Error, Result};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Asks the C library to mark children.
pub fn arm() {
    static ARMED: Once = Once::new();
    #[cfg(unix)]
    ARMED.call_once(|| {
        extern "C" fn child() {
            // ORDERING: Relaxed; the child has one thread.
            FORKED.store(true, Relaxed);
        }
        // SAFETY: `child` only stores to an atomic, which is legal between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    });
    #[cfg(not(unix))]
    ARMED.call_once(|| {});
}

/// Whether this process is a forked child in which the library must not be used.
#[inline]
pub fn forked() -> bool {
    FORKED.load(Relaxed)
}

/// Refuses a call in a forked child.
#[inline]
pub fn check() -> Result<()> {
    if forked() {
        return Err(Error::precondition(
            "this process was forked after weir was in use; in the child only release and destroy are possible",
        ));
    }
    Ok(())
}
