//! The way back from a plug-in: what is to follow when an event was reached, under a number that the plug-in holds as a
//! pointer. Nobody reads through it, so a call that comes twice, or late, finds nothing.
//!
//! The callback may run on a thread that the plug-in would have to join to end a stream. So what is let go of inside
//! one is *buried*, and taken to its end by the next call of the library from elsewhere.

use crate::device::{DeviceEvent, Then};
use crate::sync::{Global, Mutex, ambient, fork};
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What follows, and the event that is kept until then.
type Kept = (Arc<dyn DeviceEvent>, Then);

/// They stand in places that are used again, so that to keep one takes no memory as a rule. A number is a place, and
/// how often that was used.
struct Waiting {
    places: Vec<(u32, Option<Kept>)>,
    free: Vec<usize>,
}

/// Bits of a number that say the place.
const PLACE_BITS: u32 = usize::BITS / 2;

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { places: Vec::new(), free: Vec::new() });

static STRAYS: AtomicU64 = AtomicU64::new(0);

/// How many calls have found nothing.
pub fn strays() -> u64 {
    STRAYS.load(Relaxed)
}

/// Keeps it, and gives the argument for `reached`.
pub(super) fn keep(event: &Arc<dyn DeviceEvent>, then: Then) -> *mut c_void {
    let mut waiting = WAITING.lock();
    let Waiting { places, free } = &mut *waiting;
    let at = free.pop().unwrap_or_else(|| {
        places.push((0, None));
        places.len() - 1
    });
    let (uses, kept) = &mut places[at];
    *uses = uses.wrapping_add(1);
    *kept = Some((Arc::clone(event), then));
    std::ptr::without_provenance_mut((*uses as usize) << PLACE_BITS | at)
}

/// Gives it back, if it has not been called.
pub(super) fn take(arg: *mut c_void) -> Option<Kept> {
    let mut waiting = WAITING.lock();
    let (at, uses) = (arg.addr() & ((1 << PLACE_BITS) - 1), arg.addr() >> PLACE_BITS);
    let place = waiting.places.get_mut(at).filter(|place| place.0 as usize == uses)?;
    let kept = place.1.take()?;
    waiting.free.push(at);
    Some(kept)
}

/// What the plug-in calls.
pub(super) unsafe extern "C" fn reached(arg: *mut c_void) {
    if fork::forked() {
        return;
    }
    let Some((event, then)) = take(arg) else {
        // ORDERING: Relaxed; a number to look at.
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
    /// How many callbacks this thread is in.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

type Job = Box<dyn FnOnce() + Send>;

static BURIED: Global<Vec<Job>> = Global::new(Vec::new);
static HAS_BURIED: AtomicBool = AtomicBool::new(false);

/// Whether this thread is in a callback.
fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).is_ok_and(|depth| depth > 0)
}

/// Does it now, or after the callback that this thread is in.
pub(super) fn outside(job: impl FnOnce() + Send + 'static) {
    if !is_inside() {
        return job();
    }
    BURIED.lock().push(Box::new(job));
    // ORDERING: Relaxed; the lock orders the list, and a call that does not see this yet leaves it to the next one.
    HAS_BURIED.store(true, Relaxed);
}

#[inline]
pub fn any_buried() -> bool {
    HAS_BURIED.load(Relaxed)
}

/// Takes to its end what was let go of inside of callbacks.
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
