//! What a run is told, beyond its tensors and its pool.
//!
//! Most runs are told nothing, and pay nothing: `RunState::care` is 0 then, and their loops are versions that do not ask.
//! What is told makes a run *careful* (it looks at the clock before each node, or keeps figures), or sends it through
//! the array in one thread.
#![forbid(unsafe_code)]

use super::state::RunState;
use crate::base::time::now_ns;
use crate::base::{Code, Error, Result};
use crate::graph::RunOptions;
use crate::graph::plan::Plan;
use crate::kernel::Stop;
use crate::memory::Flags;
use std::sync::atomic::Ordering::Relaxed;

/// There is a deadline.
const DEADLINE: u32 = 1;
/// Figures of every node are kept.
const FIGURES: u32 = 2;
/// One thread, along the array.
const SERIAL: u32 = 4;
/// What does not depend on a failure is run.
const INDEPENDENT: u32 = 8;
/// Somebody asks what is absent.
const ABSENT: u32 = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::graph) struct Orders {
    care: u32,
    deadline_ns: u64,
    deadline_at_ns: u64,
    absent: Option<Flags>,
}

impl Orders {
    /// For a run inside of a call: it has no more time than that.
    pub fn inside(stop: &Stop) -> Option<Orders> {
        let at_ns = stop.deadline();
        let left_ns = at_ns.saturating_sub(now_ns());
        (at_ns > 0).then_some(Orders { care: DEADLINE, deadline_ns: left_ns, deadline_at_ns: at_ns, absent: None })
    }

    /// Whether one thread is to run everything.
    pub fn is_serial(&self) -> bool {
        self.care & SERIAL != 0
    }

    /// On the library's clock; 0 = never.
    pub fn deadline_at_ns(&self) -> u64 {
        self.deadline_at_ns
    }

    /// Whether somebody asks what is absent.
    pub fn asks_what_is_absent(&self) -> bool {
        self.care & ABSENT != 0
    }

    /// The clock of a deadline runs from here. None if there is nothing to tell.
    #[inline]
    pub fn of(options: Option<&RunOptions>, plan: &Plan) -> Result<Option<Orders>> {
        match options {
            None => Ok(None),
            Some(options) => Orders::told(options, plan),
        }
    }

    fn told(options: &RunOptions, plan: &Plan) -> Result<Option<Orders>> {
        let bit = |told: bool, bit: u32| if told { bit } else { 0 };
        let care = bit(options.deadline_ns > 0, DEADLINE)
            | bit(options.deterministic, SERIAL)
            | bit(options.finish_independent, SERIAL | INDEPENDENT)
            | bit(options.absent.is_some(), ABSENT);
        if care == 0 {
            return Ok(None);
        }
        let outputs = plan.outputs.len();
        if let Some(flags) = options.absent.filter(|flags| flags.count() != outputs) {
            return Err(Error::invalid(format!(
                "the options have {} flags for absent outputs, the program has {outputs} outputs",
                flags.count()
            )));
        }
        let deadline_at_ns = if options.deadline_ns > 0 { now_ns().saturating_add(options.deadline_ns) } else { 0 };
        Ok(Some(Orders { care, deadline_ns: options.deadline_ns, deadline_at_ns, absent: options.absent }))
    }
}

impl RunState {
    /// Takes the orders of the next run. Only by the owner of a closed state.
    #[inline]
    pub(super) fn obey(&self, orders: Option<&Orders>) {
        let figures = if self.compiled.figures.is_some() { FIGURES } else { 0 };
        // ORDERING: Relaxed; published to helpers by `open`.
        self.care.store(orders.map_or(0, |orders| orders.care) | figures, Relaxed);
        let deadline = orders.map_or(0, |orders| orders.deadline_at_ns);
        self.stop.set_deadline(deadline);
        self.calls.set_deadline(deadline);
        if let Some(orders) = orders {
            *self.orders.lock() = *orders;
        }
    }

    fn cares(&self, about: u32) -> bool {
        self.care.load(Relaxed) & about != 0
    }

    /// Whether nodes are looked at one by one.
    pub(super) fn is_careful(&self) -> bool {
        self.cares(DEADLINE | FIGURES)
    }

    /// Whether one thread is to run everything.
    pub(super) fn is_serial(&self) -> bool {
        self.cares(SERIAL)
    }

    /// Whether a failure stops only what depends on it.
    pub(super) fn is_independent(&self) -> bool {
        self.cares(INDEPENDENT)
    }

    /// Before a node of a careful run: stops the run if its time is over.
    pub(super) fn look_at_clock(&self, node: u32) {
        if !self.is_stopped() && self.stop.is_late() {
            self.expire(node);
        }
    }

    #[cold]
    fn expire(&self, node: u32) {
        let ns = self.orders.lock().deadline_ns;
        let name = self.plan().name_of(node);
        let text = format!("the run was given {ns} ns, and they were over before node '{name}'");
        self.keep_failure(None, Error::new(Code::DeadlineExceeded, text));
        self.stop();
    }

    /// A kernel that ended early because the time was over, or a run inside of it, did not fail: the run did.
    #[cold]
    pub(super) fn ended_late(&self, node: u32, error: &Error) -> bool {
        let late = matches!(error.code(), Code::Cancelled | Code::DeadlineExceeded) && self.stop.is_late();
        if late {
            self.expire(node);
        }
        late
    }

    /// After a closed run: tells what was asked for, and forgets the orders.
    pub(super) fn report(&self, succeeded: bool) {
        if !self.cares(DEADLINE | ABSENT) {
            return;
        }
        let orders = std::mem::take(&mut *self.orders.lock());
        if let Some(flags) = orders.absent.filter(|_| succeeded) {
            for (i, &bit) in self.plan().output_bits.iter().enumerate() {
                flags.set(i, self.is_absent(bit));
            }
        }
    }
}
