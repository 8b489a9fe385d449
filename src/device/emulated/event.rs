//! Events of the device.

use super::checker::{CHECKER, Point};
use super::work::{Demand, Shared};
use crate::base::time::Deadline;
use crate::base::{Error, Result};

use crate::sync::{Gate, Mutex};
use std::ffi::c_void;
use std::sync::Arc;
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
    gate: Gate,
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
        Core { id, recorded: AtomicU64::new(0), gate: Gate::new(), state: Mutex::default() }
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

#[derive(Debug)]
pub(super) struct Event {
    pub shared: Arc<Shared>,
    pub core: Arc<Core>,
    pub timing: bool,
}

impl Event {
    pub(super) fn new(shared: &Arc<Shared>, timing: bool) -> Result<Event> {
        let mut state = shared.open()?;
        state.events += 1;
        Ok(Event { shared: Arc::clone(shared), core: Arc::new(Core::new(state.events)), timing })
    }

    /// It was reached, and the host knows now. Under the device's lock.
    fn seen(&self, device: &super::state::State) {
        if self.shared.checks() && !device.is_over && self.core.recorded() > 0 {
            self.core.with_point(|point| CHECKER.with(|checker| checker.observe(point)));
        }
    }

    /// It was reached: what is the result.
    fn observed(&self) -> Result<bool> {
        if self.shared.checks() {
            self.seen(&self.shared.state.lock());
        }
        match self.core.outcome().1 {
            Some(failure) => Err(failure),
            None => Ok(true),
        }
    }

    pub(super) fn is_reached(&self) -> Result<bool> {
        self.shared.intact()?;
        if self.shared.is_seeded() {
            self.shared.demand_steps(&self.core);
            self.shared.intact()?;
        }
        if self.core.is_reached() { self.observed() } else { Ok(false) }
    }

    pub(super) fn synchronize(&self, deadline: Deadline) -> Result<bool> {
        self.shared.intact()?;
        let time = self.core.recorded();
        if self.shared.is_own_thread() {
            if !self.core.is_reached_for(time) {
                return Err(Error::precondition(format!(
                    "a wait for event {} of {} on the device's own thread, which would never end",
                    self.core.id, self.shared.label
                )));
            }
        } else if self.shared.is_seeded() {
            if !self.shared.demand_event(&self.core, time, deadline) {
                return Ok(false);
            }
        } else if !self.core.gate.wait(time, 0, deadline) {
            return Ok(false);
        }
        self.shared.intact()?;
        self.observed()
    }

    /// Nanoseconds from `start`.
    pub(super) fn elapsed_ns(&self, start: &Event) -> Result<i64> {
        self.shared.intact()?;
        let mut times = [0; 2];
        for (time, (event, what)) in times.iter_mut().zip([(start, "start"), (self, "end")]) {
            if !event.timing {
                return Err(Error::precondition(format!("{what} was created without timing")));
            }
            if event.core.recorded() == 0 || !event.core.is_reached() {
                return Err(Error::precondition(format!("{what} was not reached")));
            }
            let (at, failure) = event.core.outcome();
            if let Some(failure) = failure {
                return Err(failure);
            }
            *time = at;
        }
        Ok(times[1].wrapping_sub(times[0]) as i64)
    }

    /// Makes the call once it was reached, or has failed.
    pub(super) fn call_back(&self, call: Call) {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        let time = self.core.recorded();
        if time > 0 && shared.is_seeded() && !state.is_over && shared.lost.get().is_none() {
            // Reached or not, its turn comes after the demands before it.
            state.pending += 1;
            shared.ask(&mut state, Demand::Event(Arc::clone(&self.core), time, Some(call)));
        } else if self.core.is_reached_for(time) {
            self.seen(&state);
            drop(state);
            return call.tell();
        } else {
            self.core.then(call);
            state.pending += 1;
        }
        drop(state);
        shared.called.advance(1);
    }
}
