//! Listeners: whom the host wants told of an end, or of how far a run is. They are values, so that repeated runs hold
//! them without an allocation.

use crate::abi::{weir_notice, weir_progress_fn};
use crate::base::Error;
use std::any::Any;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// The host's request to be told. While a call can still fail its context is the host's.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    pub notice: weir_notice,
    /// The call that requested it, for the text of a failure.
    pub asked_by: &'static str,
    /// Tells the host that the work is over, with its failure if there is one, and the object if the host may see it.
    pub tell: fn(&Listener, Option<&Error>, Option<&dyn Any>),
    /// Gives the context back to the host.
    pub release: fn(&Listener),
}

// SAFETY: the host promises that its functions may run, with their context, on any thread.
unsafe impl Send for Listener {}
// SAFETY: as above; nothing here changes.
unsafe impl Sync for Listener {}

impl Listener {
    /// Whether telling or releasing it calls host functions. If not, any thread may do it.
    pub(super) fn calls_host(&self) -> bool {
        self.notice.notify.is_some() || self.notice.release.is_some()
    }
}

/// The host's request to be told how far a run is.
#[derive(Clone, Copy, Debug)]
pub struct ProgressListener {
    pub progress: weir_progress_fn,
    pub ctx: *mut c_void,
    /// The shortest time between two calls, and before the first.
    pub interval_ns: u64,
    /// Tells the host, with the run's handle if there is one.
    pub tell: fn(&ProgressListener, &ProgressReport<'_>, Option<&dyn Any>),
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct ProgressReport<'a> {
    pub nodes_done: u64,
    /// The nodes known so far.
    pub nodes_total: u64,
    pub elapsed_ns: u64,
    /// `None` while it cannot be known.
    pub remaining_ns: Option<u64>,
    /// The name of the node that was over last.
    pub node: &'a str,
}

// SAFETY: as of `Listener`.
unsafe impl Send for ProgressListener {}
// SAFETY: as above.
unsafe impl Sync for ProgressListener {}

/// A listener that will be told. Once it is adopted the context is the library's, and released when this is dropped.
#[derive(Debug)]
pub struct KeptListener {
    listener: Listener,
    is_adopted: AtomicBool,
}

impl KeptListener {
    pub fn new(listener: Listener) -> KeptListener {
        KeptListener { listener, is_adopted: AtomicBool::new(false) }
    }

    /// The call can fail no more. ORDERING: Relaxed; whatever hands the listener to another thread orders it.
    pub fn adopt(&self) {
        self.is_adopted.store(true, Relaxed);
    }

    pub fn tell(&self, error: Option<&Error>, what: Option<&dyn Any>) {
        (self.listener.tell)(&self.listener, error, what);
    }
}

impl Drop for KeptListener {
    fn drop(&mut self) {
        if *self.is_adopted.get_mut() {
            (self.listener.release)(&self.listener);
        }
    }
}
