//! The device's thread, and its coordination with submitters.
//!
//! One thread does the work of all queues. It starts with the first stream, sleeps while nothing can begin and nothing
//! is due, and ends when the device is dropped and no callbacks are pending; items that are queued then are not done.
//!
//! *Without a seed* it works by itself, in modelled time (`state`): the function of an operation runs when the
//! operation begins, and its successors go on when it ends.
//!
//! *With a seed* it works only on demand. When a thread waits for an event or requests a callback, it works until that
//! event was reached. When a thread queries an event that was not, it first runs a few operations, as many as are
//! drawn, and then the query is answered. A demand looks only at what was submitted before it. So the operations that
//! run, and their order, follow from the seed and from the order of submissions and demands alone: not from the clock,
//! and not from what is submitted meanwhile.
#![forbid(unsafe_code)]

use super::checker::CHECKER;
use super::core::{Core, EventCallback};
use super::effect;
use super::shared::SharedDevice;
use super::state::{Asked, BegunOperation, Demand, DeviceState, NextAction};
use crate::base::time::{Deadline, now_ns};
use crate::base::{Code, Error, Result};
use crate::sync::thread;
use std::cell::Cell;
use std::sync::Arc;

/// How long the thread polls the clock, where that is asked for, instead of a shorter sleep.
const LOOK_NS: u64 = 60_000;

/// How long the thread looks for more work before it sleeps.
const LINGER_NS: u64 = 10_000;

/// The most operations that a query of an event runs.
const STEPS: usize = 4;

/// How long, and how often, a query of an event waits for the thread to return from a callback.
const PATIENCE_NS: u64 = 5_000_000;
const PATIENCE: usize = 20;

thread_local! {
    /// The device (by address) that this thread belongs to.
    static HOME: Cell<usize> = const { Cell::new(0) };
}

impl SharedDevice {
    pub(super) fn is_own_thread(&self) -> bool {
        HOME.try_with(Cell::get).unwrap_or(0) == std::ptr::from_ref(self) as usize
    }

    pub(super) fn ensure_thread(self: &Arc<Self>, state: &mut DeviceState) -> Result<()> {
        if state.has_thread {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("weir-emulated{}", self.index));
        thread.spawn(move || shared.work()).map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the thread of {}: {error}", self.label))
        })?;
        state.has_thread = true;
        Ok(())
    }

    /// Makes the device work until the event was reached, and waits for that; false if the deadline comes first.
    pub(super) fn demand_event(&self, core: &Arc<Core>, time: u64, deadline: Deadline) -> bool {
        let ticket = {
            let mut state = self.state.lock();
            if state.is_over {
                return true;
            }
            self.ask(&mut state, Demand::Event(Arc::clone(core), time, None))
        };
        self.called.advance(1);
        self.await_met(ticket, deadline, usize::MAX)
    }

    /// Runs a few operations, after all earlier demands were met; then the event can be queried. The device's own
    /// thread runs none.
    pub(super) fn demand_steps(&self, core: &Core) {
        if self.is_own_thread() {
            return;
        }
        let ticket = self.state.lock().demanded;
        if !self.await_met(ticket, Deadline::NEVER, PATIENCE) || core.is_reached() {
            return;
        }
        let ticket = {
            let mut state = self.state.lock();
            if state.is_over {
                return;
            }
            self.ask(&mut state, Demand::Steps(None))
        };
        self.called.advance(1);
        self.await_met(ticket, Deadline::NEVER, PATIENCE);
    }

    /// Waits until so many demands were met; false if the deadline comes first, or if the thread stays too long inside
    /// a callback, which may be waiting for the caller.
    fn await_met(&self, ticket: u64, deadline: Deadline, mut patience: usize) -> bool {
        loop {
            let seen = self.met.reached();
            let state = self.state.lock();
            if state.met >= ticket || state.is_over {
                return true;
            }
            patience -= usize::from(state.is_calling);
            if patience == 0 || deadline.is_past() {
                return false;
            }
            drop(state);
            self.met.wait(seen + 1, 0, deadline.earlier(Deadline::after(PATIENCE_NS)));
        }
    }

    /// No engine uses the device any more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        if !state.has_thread {
            self.end(&mut state);
        }
        drop(state);
        self.called.advance(1);
    }

    fn end(&self, state: &mut DeviceState) {
        state.is_over = true;
        let ended = Error::new(Code::Cancelled, format!("{} has ended: nobody has an engine on it", self.label));
        state.fail_all(&ended);
        if self.checks() {
            CHECKER.leave(self.id);
        }
        self.met.advance(1);
    }

    fn work(&self) {
        HOME.with(|home| home.set(std::ptr::from_ref(self) as usize));
        thread::sleep_precisely();
        let mut calls: Vec<EventCallback> = Vec::new();
        loop {
            let seen = self.called.reached();
            let mut state = self.state.lock();
            let next = if self.is_seeded() { self.on_demand(&mut state) } else { self.by_itself(&mut state) };
            if !state.calls.is_empty() && !matches!((&next, self.is_seeded()), (NextAction::Run(_), true)) {
                std::mem::swap(&mut calls, &mut state.calls);
                state.is_calling = true;
                drop(state);
                calls.drain(..).for_each(EventCallback::tell);
                self.state.lock().is_calling = false;
                continue;
            }
            match next {
                NextAction::Run(index) => {
                    if let Some(begun) = state.begin(index, self.is_seeded()) {
                        drop(state);
                        self.run(index, begun);
                    }
                }
                NextAction::Sleep(due) => {
                    if state.is_closing && state.pending == 0 && state.asked.is_empty() {
                        self.end(&mut state);
                        return;
                    }
                    drop(state);
                    self.sleep(seen, due);
                }
            }
        }
    }

    fn sleep(&self, seen: u64, due: Option<u64>) {
        let Some(due) = due else {
            self.called.wait(seen + 1, LINGER_NS, Deadline::NEVER);
            return;
        };
        if !self.settings.is_precise() {
            self.called.wait(seen + 1, 0, Deadline::at(due));
        } else if due.saturating_sub(now_ns()) > LOOK_NS {
            self.called.wait(seen + 1, 0, Deadline::at(due - LOOK_NS));
        } else {
            self.called.wait(seen + 1, LOOK_NS, Deadline::at(due));
        }
    }

    fn by_itself(&self, state: &mut DeviceState) -> NextAction {
        state.settle(now_ns(), u64::MAX);
        // Once closed, only work that pending callbacks need is done.
        if state.is_closing && state.pending == 0 { NextAction::Sleep(None) } else { state.earliest() }
    }

    fn on_demand(&self, state: &mut DeviceState) -> NextAction {
        while let Some(Asked { horizon, .. }) = state.asked.front() {
            let horizon = *horizon;
            state.settle(u64::MAX, horizon);
            let steps = match &mut state.asked[0].demand {
                Demand::Event(core, time, _) if core.is_reached_for(*time) => Some(0),
                Demand::Event(..) => None,
                Demand::Steps(left) => Some(*left.get_or_insert_with(|| 1 + state.scheduler.draw(STEPS))),
            };
            if steps != Some(0)
                && let Some(index) = state.drawn(horizon)
            {
                if let Demand::Steps(left) = &mut state.asked[0].demand {
                    *left = steps.map(|steps| steps - 1);
                }
                return NextAction::Run(index);
            }
            if let Some(Asked { demand, .. }) = state.asked.pop_front() {
                state.meet(demand);
            }
            self.met.advance(1);
            // Callbacks are called between two demands.
            if !state.calls.is_empty() {
                break;
            }
        }
        NextAction::Sleep(None)
    }

    /// Runs an operation's function, with no lock held.
    fn run(&self, index: usize, begun: BegunOperation) {
        let BegunOperation { mut operation, start, step } = begun;
        if operation.number == self.settings.lose_operation {
            let text =
                format!("{} was lost, as asked, at operation {} ({})", self.label, operation.number, operation.name);
            let lost = Error::new(Code::DeviceLost, text);
            let mut state = self.state.lock();
            let _ = self.lost.set(lost.clone());
            state.fail_all(&lost);
            if self.checks() {
                CHECKER.with(|checker| checker.lose(self.id));
            }
            drop(state);
            self.met.advance(1);
            return;
        }
        let began = self.time_ns();
        let result = effect::run(self, &mut operation);
        let took = self.time_ns() - began;
        let mut state = self.state.lock();
        let failure = result.err().map(|error| {
            let queue = &state.queues[index].name;
            error.within(format_args!("{}, stream '{queue}', operation {}", self.label, operation.number))
        });
        let until = start.saturating_add(operation.duration_ns.max(took));
        state.has_run(index, step, until, failure, operation.found);
        state.keep(operation);
    }
}
