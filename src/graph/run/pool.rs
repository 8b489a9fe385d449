//! Objects that runs of a program reuse: states, and results of checks.
#![forbid(unsafe_code)]

use super::checkout_cell::{Checkout, CheckoutCell};
use crate::base::{Error, Result};
use crate::engine::{Apart, Stream, TensorRange};
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::device::ProgramDevices;
use crate::graph::carry::device::direct::Direct;
use crate::graph::carry::state::RunState;
use crate::graph::plan::Plan;
use crate::sync::Mailbox;
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, fence};

/// States that are kept for later runs.
const KEPT_STATES: usize = 32;

/// Checks of tensors that may go on at once without an allocation.
const KEPT_CHECKS: usize = 16;

/// Puts a value into the first empty place; drops it if there is none.
pub(in crate::graph) fn put_first<T>(places: &[Mailbox<T>], value: T) {
    let _ = places.iter().try_fold(value, |value, place| match place.put(value) {
        Ok(()) => Err(()),
        Err(value) => Ok(value),
    });
}

/// A run's view of its program, which keeps the run for reuse.
pub(in crate::graph) trait Keeps<T>: Send + Sync {
    fn runs(&self) -> &RunPool;

    fn keep(&self, run: Arc<T>);
}

pub(in crate::graph) struct RunPool {
    pub compiled: Arc<Compiled>,
    pub devices: ProgramDevices,
    states: [CheckoutCell<Arc<RunState>>; KEPT_STATES],
    /// Results of the last checks of tensors.
    checks: [Mailbox<Apart>; KEPT_CHECKS],
}

impl RunPool {
    pub fn new(compiled: Compiled, devices: ProgramDevices) -> RunPool {
        RunPool {
            compiled: Arc::new(compiled),
            devices,
            states: std::array::from_fn(|_| CheckoutCell::default()),
            checks: std::array::from_fn(|_| Mailbox::default()),
        }
    }

    #[inline]
    pub fn plan(&self) -> &Plan {
        &self.compiled.plan
    }

    /// A state for a run on up to `workers` threads: one that is kept, else a new one.
    pub fn take_state(&self, workers: usize) -> Result<Arc<RunState>> {
        for (home, place) in self.states.iter().enumerate() {
            match place.borrow() {
                Checkout::Value(state) if state.workers() >= workers => return Ok(state),
                // Made for a narrower pool: drop it, the wider one serves both.
                Checkout::Value(_) | Checkout::Vacant => {
                    return RunState::create(&self.compiled, workers, Some(home)).inspect_err(|_| place.vacate());
                }
                Checkout::Elsewhere => {}
            }
        }
        RunState::create(&self.compiled, workers, None)
    }

    /// The issuer of runs to this stream, if there is one. Programs that count nodes or runs need the executor.
    pub fn direct_on(&self, stream: &Stream) -> Option<&Direct> {
        let is_plain = self.compiled.figures.is_none() && self.compiled.admission.is_none();
        self.devices.direct.as_deref().filter(|direct| is_plain && direct.engine.is_same_device(stream.engine()))
    }

    /// Refuses a run's output that shares memory with another one of its tensors.
    #[inline]
    pub fn check_apart(
        &self,
        inputs: usize,
        input: impl Fn(usize) -> TensorRange,
        outputs: usize,
        output: impl Fn(usize) -> TensorRange,
    ) -> Result<()> {
        if Apart::needs_nothing(inputs, outputs) {
            return Apart::default().check(inputs, input, outputs, output);
        }
        let mut apart = self.checks.iter().find_map(Mailbox::take).unwrap_or_default();
        let result = apart.check(inputs, input, outputs, output);
        put_first(&self.checks, apart);
        result
    }

    /// A run of the program has failed before it began.
    pub fn not_begun(&self, error: &Error) {
        self.compiled.listeners.iter().for_each(|listener| listener.run_ended(0, Some(error)));
    }

    /// Frees the memory that is kept for later runs.
    pub fn trim(&self) {
        self.devices.direct.iter().for_each(|direct| direct.trim());
        self.checks.iter().for_each(|check| drop(check.take()));
        for place in &self.states {
            match place.borrow() {
                Checkout::Elsewhere => {}
                Checkout::Value(_) | Checkout::Vacant => place.vacate(),
            }
        }
    }

    /// Keeps a state of `take_state` for a later run, if it has a home and its memory to itself.
    #[inline]
    pub fn give_state(&self, state: Arc<RunState>) {
        if let Some(home) = state.home {
            let users = Arc::strong_count(&state.arena);
            // ORDERING: Acquire pairs with the Release of the last other drop: what that user did comes before.
            fence(Acquire);
            match users {
                1 => self.states[home].give_back(state),
                _ => self.states[home].vacate(),
            }
        }
    }
}
