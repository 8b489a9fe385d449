//! The hooks of a run: when it begins and ends, and in each thread with each node.
#![forbid(unsafe_code)]

use crate::abi::weir_status;
use crate::abi::weir_trace_node_flags::{WEIR_TRACE_NODE_AGAIN, WEIR_TRACE_NODE_FAILED, WEIR_TRACE_NODE_LATER};
use crate::base::Result;
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::state::RunState;
use crate::trace::{FAILED, HookedRun, LATER, Told};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

impl Compiled {
    /// A run, for hooks. The nodes' names are made for the first of such runs; `None` if there is no memory for them.
    pub fn hooked(&self, number: u32, outer: u32) -> Option<HookedRun<'_>> {
        self.explained.make_names(&|| self.explanation());
        Some(HookedRun { names: self.explained.names()?, number, outer })
    }
}

impl RunState {
    /// The run has entered the hooks that there are.
    pub fn begin_hooks(&self, around: u32) {
        let told = self.traced.traces.told();
        if told.is_nobody() {
            return;
        }
        // ORDERING: Relaxed; published to helpers by `open`.
        self.traced.outer.store(around, Relaxed);
        match self.compiled.hooked(self.traced.traces.frame(), around) {
            Some(run) => told.run_begin(&run),
            // There is no memory for the names: nobody is told of this run.
            None => self.traced.traces.leave_hooks(),
        }
    }

    /// No thread is in the run any more.
    pub fn end_hooks(&self, result: &Result<()>) {
        let told = self.traced.traces.told();
        if told.is_nobody() {
            return;
        }
        if let Some(run) = self.hooked() {
            told.run_end(&run, status_of(result));
        }
        self.traced.traces.leave_hooks();
    }

    fn hooked(&self) -> Option<HookedRun<'_>> {
        let names = self.compiled.explained.names()?;
        Some(HookedRun { names, number: self.traced.traces.frame(), outer: self.traced.outer.load(Relaxed) })
    }
}

/// As hooks are told of it.
pub fn status_of(result: &Result<()>) -> weir_status {
    result.as_ref().map_or_else(|error| error.code().status(), |()| 0)
}

/// A thread's calls of hooks in a run, from when it comes until it leaves.
pub struct RunHooks<'a> {
    told: Told,
    run: HookedRun<'a>,
    /// The node whose beginning was told, and not its end; and the flags of the beginning.
    begun: Cell<Option<(u32, u32)>>,
}

impl<'a> RunHooks<'a> {
    /// `None` in a run that nobody is told of.
    pub fn open(state: &'a RunState) -> Option<RunHooks<'a>> {
        let told = state.traced.traces.told();
        if told.is_nobody() {
            return None;
        }
        Some(RunHooks::come(told, state.hooked()?))
    }

    /// The calling thread comes into a run that has entered these hooks.
    pub fn come(told: Told, run: HookedRun<'a>) -> RunHooks<'a> {
        told.stay_begin(&run);
        RunHooks { told, run, begun: Cell::new(None) }
    }

    #[cold]
    pub fn begin(&self, node: u32, is_again: bool) {
        let flags = if is_again { WEIR_TRACE_NODE_AGAIN as u32 } else { 0 };
        self.begun.set(Some((node, flags)));
        self.told.node_begin(&self.run, node, flags);
    }

    /// The node that has begun is over. `flags`: as of its record.
    #[cold]
    pub fn end(&self, flags: u8) {
        if let Some((node, begun)) = self.begun.take() {
            let bit = |has: u8, bit: u32| if flags & has != 0 { bit } else { 0 };
            let flags = bit(FAILED, WEIR_TRACE_NODE_FAILED as u32) | bit(LATER, WEIR_TRACE_NODE_LATER as u32);
            self.told.node_end(&self.run, node, begun | flags);
        }
    }
}

impl Drop for RunHooks<'_> {
    fn drop(&mut self) {
        self.end(FAILED);
        self.told.stay_end(&self.run);
    }
}
