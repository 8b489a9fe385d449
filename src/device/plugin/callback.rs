//! The way back from a plug-in: what is to follow when an event was reached, under a number that the plug-in holds as a pointer. Nobody reads
//! through it, so a call that comes twice, or late, finds nothing.

use crate::device::{DeviceEvent, Then};
use crate::sync::{Mutex, fork};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What follows, and the event that is kept until then.
type Kept = (Arc<dyn DeviceEvent>, Then);

struct Waiting {
    last: usize,
    kept: BTreeMap<usize, Kept>,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { last: 0, kept: BTreeMap::new() });

/// Keeps it, and gives the argument for `reached`.
pub(super) fn keep(event: &Arc<dyn DeviceEvent>, then: Then) -> *mut c_void {
    let mut waiting = WAITING.lock();
    waiting.last += 1;
    let number = waiting.last;
    waiting.kept.insert(number, (Arc::clone(event), then));
    std::ptr::without_provenance_mut(number)
}

/// Gives it back, if it has not been called.
pub(super) fn take(arg: *mut c_void) -> Option<Kept> {
    WAITING.lock().kept.remove(&arg.addr())
}

/// What the plug-in calls.
pub(super) unsafe extern "C" fn reached(arg: *mut c_void) {
    if fork::forked() {
        return;
    }
    if let Some((event, then)) = take(arg) {
        // Nothing may unwind into the plug-in.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(then)) {
            std::mem::forget(payload);
        }
        drop(event);
    }
}
