//! Events of the device.
#![forbid(unsafe_code)]

use super::checker::CHECKER;
use super::core::{Core, EventCallback};
use super::shared::SharedDevice;
use super::state::{Demand, DeviceState};
use crate::base::time::Deadline;
use crate::base::{Error, Result};

use std::sync::Arc;

#[derive(Debug)]
pub(super) struct EmulatedEvent {
    pub shared: Arc<SharedDevice>,
    pub core: Arc<Core>,
    pub timing: bool,
}

impl EmulatedEvent {
    pub(super) fn new(shared: &Arc<SharedDevice>, timing: bool) -> Result<EmulatedEvent> {
        let mut state = shared.open()?;
        state.events += 1;
        Ok(EmulatedEvent { shared: Arc::clone(shared), core: Arc::new(Core::new(state.events)), timing })
    }

    /// The event is reached, and the host knows it now. Under the device's lock.
    fn seen(&self, device: &DeviceState) {
        if self.shared.checks() && !device.is_over && self.core.recorded() > 0 {
            self.core.with_point(|point| CHECKER.with(|checker| checker.observe(point)));
        }
    }

    /// The result of an event that was reached.
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
    pub(super) fn elapsed_ns(&self, start: &EmulatedEvent) -> Result<i64> {
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

    /// Makes the call once the event was reached, or has failed.
    pub(super) fn call_back(&self, call: EventCallback) {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        let time = self.core.recorded();
        if time > 0 && shared.is_seeded() && !state.is_over && shared.lost.get().is_none() {
            // Even if it is reached, its turn comes after the demands before it.
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
