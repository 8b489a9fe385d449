//! What queues know of events.

use super::checker::Point;
use crate::base::Error;
use crate::sync::{EventCount, Mutex};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// What is called once an event was reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    function: unsafe extern "C" fn(*mut c_void),
    arg: *mut c_void,
}

// SAFETY: whoever asks for a call lets it come on any thread.
unsafe impl Send for Call {}

impl Call {
    /// # Safety
    /// The function may be called with it once, on any thread.
    pub(super) unsafe fn new(function: unsafe extern "C" fn(*mut c_void), arg: *mut c_void) -> Call {
        Call { function, arg }
    }

    pub(super) fn tell(self) {
        // SAFETY: whoever made it has said so; it is told once, since each place gives it up.
        unsafe { (self.function)(self.arg) }
    }
}

/// What queues know of an event.
#[derive(Debug)]
pub(super) struct Core {
    /// For texts: 1 = the device's first.
    pub id: u64,
    /// Times that it was recorded.
    recorded: AtomicU64,
    /// Times that it was reached.
    pub gate: EventCount,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failure: Option<Error>,
    /// When it was reached, on the modelled clock.
    time_ns: u64,
    /// Where it was recorded last, if there is a checker.
    point: Point,
    calls: Vec<Call>,
}

impl Core {
    pub(super) fn new(id: u64) -> Core {
        Core { id, recorded: AtomicU64::new(0), gate: EventCount::new(), state: Mutex::default() }
    }

    /// Times that it was recorded.
    pub(super) fn recorded(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release in `record`: who sees the record sees the point.
        self.recorded.load(Acquire)
    }

    pub(super) fn is_reached_for(&self, time: u64) -> bool {
        self.gate.reached() >= time
    }

    /// It was never recorded, or was reached.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached_for(self.recorded())
    }

    /// Under the device's lock: it lies in a queue from now on.
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

    /// Under the device's lock: its queue has got here. Gives what follows.
    pub(super) fn reach(&self, time_ns: u64, failure: Option<Error>, calls: &mut Vec<Call>) -> usize {
        let mut state = self.state.lock();
        state.time_ns = time_ns;
        state.failure = failure;
        let count = state.calls.len();
        calls.append(&mut state.calls);
        drop(state);
        self.gate.advance(1);
        count
    }

    /// When it was reached, and why its queue had failed.
    pub(super) fn outcome(&self) -> (u64, Option<Error>) {
        let state = self.state.lock();
        (state.time_ns, state.failure.clone())
    }

    /// Under the device's lock, and it was not reached.
    pub(super) fn then(&self, call: Call) {
        self.state.lock().calls.push(call);
    }
}
