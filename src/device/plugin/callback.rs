//! Callbacks from a plug-in. The continuation of an event is kept under a number that the plug-in holds as a pointer.
//! The pointer is never dereferenced, so a callback that comes twice, or late, finds nothing.
//!
//! The callback may run on a thread that the plug-in would have to join to end a stream. So objects released inside a
//! callback are *buried*: the next call of the library from outside a callback destroys them.

use crate::device::{DeviceEvent, Then};
use crate::sync::{Global, Mutex, ambient, fork};
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The continuation, and the event that is kept alive until then.
type Kept = (Arc<dyn DeviceEvent>, Then);

/// Slots are reused, so keeping a continuation rarely allocates. A number is a slot and the count of its uses.
struct PendingCallbacks {
    places: Vec<(u32, Option<Kept>)>,
    free: Vec<usize>,
}

/// The bits of a number that name the slot.
const PLACE_BITS: u32 = usize::BITS / 2;

static WAITING: Mutex<PendingCallbacks> = Mutex::new(PendingCallbacks { places: Vec::new(), free: Vec::new() });

static STRAYS: AtomicU64 = AtomicU64::new(0);

/// The number of callbacks that have found nothing.
pub fn strays() -> u64 {
    STRAYS.load(Relaxed)
}

/// Keeps a continuation, and gives the argument for `reached`.
pub(super) fn keep(event: &Arc<dyn DeviceEvent>, then: Then) -> *mut c_void {
    let mut waiting = WAITING.lock();
    let PendingCallbacks { places, free } = &mut *waiting;
    let at = free.pop().unwrap_or_else(|| {
        places.push((0, None));
        places.len() - 1
    });
    let (uses, kept) = &mut places[at];
    *uses = uses.wrapping_add(1);
    *kept = Some((Arc::clone(event), then));
    std::ptr::without_provenance_mut((*uses as usize) << PLACE_BITS | at)
}

/// Gives the continuation back, unless it has been called.
pub(super) fn take(arg: *mut c_void) -> Option<Kept> {
    let mut waiting = WAITING.lock();
    let (at, uses) = (arg.addr() & ((1 << PLACE_BITS) - 1), arg.addr() >> PLACE_BITS);
    let place = waiting.places.get_mut(at).filter(|place| place.0 as usize == uses)?;
    let kept = place.1.take()?;
    waiting.free.push(at);
    Some(kept)
}

/// The function that the plug-in calls.
pub(super) unsafe extern "C" fn reached(arg: *mut c_void) {
    if fork::forked() {
        return;
    }
    let Some((event, then)) = take(arg) else {
        // ORDERING: Relaxed; a statistic.
        STRAYS.fetch_add(1, Relaxed);
        return;
    };
    INSIDE.with(|inside| inside.set(inside.get() + 1));
    {
        // Nothing may unwind into the plug-in.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| ambient::on_device_thread(|| then.tell()))) {
            std::mem::forget(payload);
        }
        drop(event);
    }
    INSIDE.with(|inside| inside.set(inside.get() - 1));
}

thread_local! {
    /// The number of callbacks this thread is in.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

type Job = Box<dyn FnOnce() + Send>;

static BURIED: Global<Vec<Job>> = Global::new(Vec::new);
static HAS_BURIED: AtomicBool = AtomicBool::new(false);

/// Whether this thread is in a callback.
fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).is_ok_and(|depth| depth > 0)
}

/// Runs the job now, or after the callback that this thread is in.
pub(super) fn outside(job: impl FnOnce() + Send + 'static) {
    if !is_inside() {
        return job();
    }
    BURIED.lock().push(Box::new(job));
    // ORDERING: Relaxed; the lock orders the list. A call that does not see this yet leaves the jobs to the next one.
    HAS_BURIED.store(true, Relaxed);
}

#[inline]
pub fn any_buried() -> bool {
    HAS_BURIED.load(Relaxed)
}

/// Runs the jobs that were buried inside callbacks.
#[cold]
pub fn release_buried() {
    if is_inside() {
        return;
    }
    let jobs = {
        let mut buried = BURIED.lock();
        HAS_BURIED.store(false, Relaxed);
        std::mem::take(&mut *buried)
    };
    jobs.into_iter().for_each(|job| job());
}
