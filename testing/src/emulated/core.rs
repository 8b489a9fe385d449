//! The part of an event that queues know.

use super::checker::Point;
use crate::base::Error;
use crate::sync::{EventCount, Mutex};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// A callback for when an event is reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventCallback {
    function: unsafe extern "C" fn(*mut c_void),
    arg: *mut c_void,
}

// SAFETY: the caller that requests a callback allows any thread.
unsafe impl Send for EventCallback {}

impl EventCallback {
    /// # Safety
    /// The function may be called with it once, on any thread.
    pub(super) unsafe fn new(function: unsafe extern "C" fn(*mut c_void), arg: *mut c_void) -> EventCallback {
        EventCallback { function, arg }
    }

    pub(super) fn tell(self) {
        // SAFETY: promised to `new`; it is called once, since each holder gives it up.
        unsafe { (self.function)(self.arg) }
    }
}

/// The part of an event that queues know.
#[derive(Debug)]
pub(super) struct Core {
    /// For texts; the device's first event is 1.
    pub id: u64,
    /// How often it was recorded.
    recorded: AtomicU64,
    /// How often it was reached.
    pub gate: EventCount,
    state: Mutex<EventState>,
}

#[derive(Default)]
struct EventState {
    failure: Option<Error>,
    /// The modelled time at which it was reached.
    time_ns: u64,
    /// The point where it was last recorded, if there is a checker.
    point: Point,
    calls: Vec<EventCallback>,
}

impl Core {
    pub(super) fn new(id: u64) -> Core {
        Core { id, recorded: AtomicU64::new(0), gate: EventCount::new(), state: Mutex::default() }
    }

    /// How often it was recorded.
    pub(super) fn recorded(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release in `record`: a reader that sees the record sees the point.
        self.recorded.load(Acquire)
    }

    pub(super) fn is_reached_for(&self, time: u64) -> bool {
        self.gate.reached() >= time
    }

    /// Reached, or never recorded.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached_for(self.recorded())
    }

    /// Under the device's lock: the event has been put into a queue.
    pub(super) fn record(&self, mark: impl FnOnce(&mut Point)) {
        let mut state = self.state.lock();
        state.failure = None;
        mark(&mut state.point);
        drop(state);
        self.recorded.fetch_add(1, Release);
    }

    pub(super) fn with_point<R>(&self, f: impl FnOnce(&Point) -> R) -> R {
        f(&self.state.lock().point)
    }

    /// Under the device's lock: its queue has reached the event. Gives the callbacks.
    pub(super) fn reach(&self, time_ns: u64, failure: Option<Error>, calls: &mut Vec<EventCallback>) -> usize {
        let mut state = self.state.lock();
        state.time_ns = time_ns;
        state.failure = failure;
        let count = state.calls.len();
        calls.append(&mut state.calls);
        drop(state);
        self.gate.advance(1);
        count
    }

    /// When it was reached, and its queue's failure if there was one.
    pub(super) fn outcome(&self) -> (u64, Option<Error>) {
        let state = self.state.lock();
        (state.time_ns, state.failure.clone())
    }

    /// Under the device's lock, while the event is not reached.
    pub(super) fn then(&self, call: EventCallback) {
        self.state.lock().calls.push(call);
    }
}
