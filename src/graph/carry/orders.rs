//! The orders of a run, beyond its tensors and its pool.
//!
//! Most runs have none, and pay nothing: `RunState::care` is 0 then, and their loops are versions that do not check.
//! Orders make a run *careful* (it reads the clock before each node, keeps statistics, or says how far it is), or send
//! it through the array in one thread.
#![forbid(unsafe_code)]

use crate::base::time::now_ns;
use crate::base::{Error, Result};
use crate::graph::build::options::RunOptions;
use crate::graph::plan::Plan;
use crate::kernel::Stop;
use crate::memory::Flags;
use crate::stream::ProgressListener;

/// There is a deadline.
pub(in crate::graph) const DEADLINE: u32 = 1;
/// Statistics of every node are kept.
pub(in crate::graph) const FIGURES: u32 = 2;
/// One thread, along the array.
pub(in crate::graph) const SERIAL: u32 = 4;
/// Nodes that do not depend on a failure are run.
pub(in crate::graph) const INDEPENDENT: u32 = 8;
/// The host asks which outputs are absent.
pub(in crate::graph) const ABSENT: u32 = 16;
/// The host asks for a trace of this run.
pub(in crate::graph) const ASKED: u32 = 32;
/// The host asks how far the run is.
pub(in crate::graph) const PROGRESS: u32 = 128;
/// Some trace wants this run. No order of the host's: the run finds out when it is opened.
pub(in crate::graph) const TRACED_RUN: u32 = 64;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::graph) struct Orders {
    /// The special orders, as bits.
    pub(in crate::graph) care: u32,
    pub(in crate::graph) deadline_ns: u64,
    pub(in crate::graph) deadline_at_ns: u64,
    pub(in crate::graph) absent: Option<Flags>,
    /// The number of the trace that the host asks for.
    pub(in crate::graph) trace: Option<u64>,
    /// Told how far the run is.
    pub(in crate::graph) progress: Option<ProgressListener>,
}

impl Orders {
    /// For a run inside of a call: it has the same deadline.
    pub fn inside(stop: &Stop) -> Option<Orders> {
        let at_ns = stop.deadline();
        let left_ns = at_ns.saturating_sub(now_ns());
        (at_ns > 0).then_some(Orders {
            care: DEADLINE,
            deadline_ns: left_ns,
            deadline_at_ns: at_ns,
            ..Orders::default()
        })
    }

    /// Whether one thread is to run everything.
    pub fn is_serial(&self) -> bool {
        self.care & SERIAL != 0
    }

    /// On the library's clock; 0 = never.
    pub fn deadline_at_ns(&self) -> u64 {
        self.deadline_at_ns
    }

    /// Whether the host asks which outputs are absent.
    pub fn asks_what_is_absent(&self) -> bool {
        self.care & ABSENT != 0
    }

    /// Whether the host asks how far the run is.
    pub fn asks_for_progress(&self) -> bool {
        self.care & PROGRESS != 0
    }

    /// A relative deadline starts here. `None` if there are no orders.
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
            | bit(options.absent.is_some(), ABSENT)
            | bit(options.trace.is_some(), ASKED)
            | bit(options.progress.is_some(), PROGRESS);
        if care == 0 {
            return Ok(None);
        }
        let outputs = plan.outputs.len();
        if let Some(flags) = options.absent.filter(|flags| flags.count() != outputs) {
            return Err(Error::invalid(format!(
                "options->num_absent is {}, the run has {outputs} outputs",
                flags.count()
            )));
        }
        let deadline_at_ns = if options.deadline_ns > 0 { now_ns().saturating_add(options.deadline_ns) } else { 0 };
        let &RunOptions { deadline_ns, absent, trace, progress, .. } = options;
        Ok(Some(Orders { care, deadline_ns, deadline_at_ns, absent, trace, progress }))
    }
}
