//! A worker's part in traces. Nothing of it is in the other versions of the loop.
#![forbid(unsafe_code)]

use super::{CAREFUL, TRACED, Worker};
use crate::base::time::now_ns;
use crate::graph::carry::host::ops::After;
use crate::graph::carry::host::run_tape::RunTape;
use crate::graph::carry::traced::is_told;
use crate::graph::plan::Body;
use crate::trace::{FAILED, LATER, TraceEvent};

impl<'a, const MODE: u8> Worker<'a, MODE> {
    /// Only in the version for traced runs.
    #[inline(always)]
    pub(super) fn tape(&self) -> Option<&RunTape<'a>> {
        if MODE == TRACED { self.tape.as_ref() } else { None }
    }

    /// The node in hand has panicked.
    #[cold]
    pub(super) fn trace_panic(&self, node: u32) {
        if let Some(tape) = self.tape()
            && is_told(&self.plan.bodies[node as usize])
        {
            tape.shared(TraceEvent::Node, node, FAILED);
        }
    }

    /// Goes on with the rest of a node that completes later.
    pub(super) fn call_again(&self, node: u32, call: u32) -> After {
        if let Some(tape) = self.tape() {
            tape.begins(node, true);
            let _ = tape.stamp();
        }
        let after = self.call(call);
        if let Some(tape) = self.tape() {
            tape.shared(TraceEvent::Round, node, if matches!(after, After::Later) { LATER } else { 0 });
        }
        if !matches!(after, After::Later) {
            self.is_over(node);
        }
        after
    }

    /// A node that computes something, in a run that is traced.
    #[inline]
    pub(super) fn run_traced(&self, node: u32, body: Body) -> After {
        let Some(tape) = self.tape() else { return After::Edges };
        tape.begins(node, false);
        let _ = tape.stamp();
        let (mut after, mut flags) = (After::Edges, 0);
        if let Body::Async(call) = body {
            after = self.call(call);
            // One that goes on may fail later, and is another thread's.
            flags = match after {
                After::Later => LATER,
                _ if self.state.has_failed(call) => FAILED,
                _ => 0,
            };
        } else if let Err(error) = self.state.compute(body, self.pool) {
            self.state.fail_at(node, &error);
            flags = FAILED;
        }
        tape.shared(TraceEvent::Node, node, flags);
        if !matches!(after, After::Later) {
            self.is_over(node);
        }
        after
    }

    /// For the progress of a run that is asked for it.
    #[inline]
    pub(super) fn is_over(&self, node: u32) {
        if self.is_careful() {
            self.state.is_over(node, now_ns);
        }
    }

    pub(super) fn enter(&self, index: usize) -> After {
        if self.is_careful() {
            self.state.enters(index);
            self.state.begins_condition(self.plan.first_counts_at(index));
        }
        let after = self.state.enter_and_begin(index);
        if MODE == TRACED {
            self.trace_iteration(self.plan.first_counts_at(index));
        }
        after
    }

    pub(super) fn next(&self, index: usize) -> After {
        if self.is_careful() {
            self.state.begins_condition(index);
        }
        let release = self.state.next(index).release_condition;
        if MODE == TRACED {
            self.trace_iteration(index);
        }
        After::Release(release)
    }

    /// An iteration begins where the run counts at this index.
    pub(in crate::graph) fn trace_iteration(&self, counted_at: usize) {
        if let Some(tape) = self.tape() {
            let _ = tape.stamp();
            tape.iteration(counted_at);
        }
    }

    #[inline]
    pub(in crate::graph) fn trace_note(&self, event: TraceEvent, object: u32, other: u32) {
        if let Some(tape) = self.tape() {
            tape.note(event, object, other);
        }
    }

    /// Whether nodes are checked one by one.
    #[inline]
    pub(in crate::graph) fn is_careful(&self) -> bool {
        MODE == CAREFUL || self.tape().is_some_and(|tape| tape.is_careful)
    }
}
