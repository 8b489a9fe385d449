//! The host's hooks: functions of C, called with a context of the host's.

use super::hooks::{BoxedHooks, HookedRun, Hooks};
use crate::abi::*;
use std::ffi::c_void;

/// The functions, and what they are called with.
pub struct HostHooks {
    hooks: weir_trace_hooks,
    ctx: *mut c_void,
}

// SAFETY: the functions may be called from any thread, several at a time, with this context (contract of the vtable).
unsafe impl Send for HostHooks {}
// SAFETY: as above.
unsafe impl Sync for HostHooks {}

fn run_of(run: &HookedRun<'_>) -> weir_trace_run {
    weir_trace_run {
        struct_size: size_of::<weir_trace_run>(),
        program: run.names.program(),
        number: u64::from(run.number),
        outer: u64::from(run.outer),
    }
}

fn node_of(run: &HookedRun<'_>, node: u32, flags: u32) -> weir_trace_node {
    weir_trace_node {
        struct_size: size_of::<weir_trace_node>(),
        name: run.names.node(node),
        engine: run.names.engine(node),
        index: node,
        flags,
    }
}

fn region_of(number: u32, is_help: bool) -> weir_trace_region {
    weir_trace_region {
        struct_size: size_of::<weir_trace_region>(),
        number: u64::from(number),
        helps: u32::from(is_help),
        reserved: 0,
    }
}

impl HostHooks {
    /// # Safety
    /// The functions follow the contract of `weir_trace_hooks`, with this context, until `release` is called.
    pub unsafe fn new(hooks: weir_trace_hooks, ctx: *mut c_void) -> HostHooks {
        HostHooks { hooks, ctx }
    }

    /// Whether it is told of anything.
    pub fn has_any(&self) -> bool {
        let weir_trace_hooks { run_begin, run_end, stay_begin, stay_end, node_begin, node_end, .. } = self.hooks;
        let of_runs = run_begin.is_some() || run_end.is_some() || stay_begin.is_some() || stay_end.is_some();
        let of_nodes = node_begin.is_some() || node_end.is_some();
        of_runs || of_nodes || self.hooks.region_begin.is_some() || self.hooks.region_end.is_some()
    }

    pub fn boxed(self) -> BoxedHooks {
        Box::new(Box::new(self))
    }

    fn tell_of_run(&self, function: weir_trace_run_fn, run: &HookedRun<'_>) {
        if let Some(function) = function {
            // SAFETY: as promised to `new`; the struct lives during the call.
            unsafe { function(self.ctx, &run_of(run)) };
        }
    }

    fn tell_of_node(&self, function: weir_trace_node_fn, run: &HookedRun<'_>, node: u32, flags: u32) {
        if let Some(function) = function {
            // SAFETY: as above.
            unsafe { function(self.ctx, &run_of(run), &node_of(run, node, flags)) };
        }
    }

    fn tell_of_region(&self, function: weir_trace_region_fn, number: u32, is_help: bool) {
        if let Some(function) = function {
            // SAFETY: as above.
            unsafe { function(self.ctx, &region_of(number, is_help)) };
        }
    }
}

impl Hooks for HostHooks {
    fn run_begin(&self, run: &HookedRun<'_>) {
        self.tell_of_run(self.hooks.run_begin, run);
    }

    fn run_end(&self, run: &HookedRun<'_>, status: weir_status) {
        if let Some(function) = self.hooks.run_end {
            // SAFETY: as promised to `new`; the struct lives during the call.
            unsafe { function(self.ctx, &run_of(run), status) };
        }
    }

    fn stay_begin(&self, run: &HookedRun<'_>) {
        self.tell_of_run(self.hooks.stay_begin, run);
    }

    fn stay_end(&self, run: &HookedRun<'_>) {
        self.tell_of_run(self.hooks.stay_end, run);
    }

    fn node_begin(&self, run: &HookedRun<'_>, node: u32, flags: u32) {
        self.tell_of_node(self.hooks.node_begin, run, node, flags);
    }

    fn node_end(&self, run: &HookedRun<'_>, node: u32, flags: u32) {
        self.tell_of_node(self.hooks.node_end, run, node, flags);
    }

    fn region_begin(&self, number: u32, is_help: bool) {
        self.tell_of_region(self.hooks.region_begin, number, is_help);
    }

    fn region_end(&self, number: u32, is_help: bool) {
        self.tell_of_region(self.hooks.region_end, number, is_help);
    }

    fn release(&self) {
        if let Some(function) = self.hooks.release {
            // SAFETY: as promised to `new`; this is the last call.
            unsafe { function(self.ctx) };
        }
    }
}
