//! The records of a run for its traces: when it begins and ends, and with each node.
//!
//! A run asks once, when it is opened, which traces want it (`begin_trace`). If any does, its loops are the version
//! that writes (`TRACED`), in each thread with a tape of its own (`RunTape`). That version also does what careful and
//! measuring runs do, by flags, so that a deadline, statistics and learned costs go on as ever.
#![forbid(unsafe_code)]

use crate::base::time::ticks_ns;
use crate::base::{Code, Result};
use crate::graph::carry::figures::is_measured;
use crate::graph::carry::host::run_hooks::RunHooks;
use crate::graph::carry::orders::{ASKED, TRACED_RUN};
use crate::graph::carry::state::RunState;
use crate::graph::carry::traced::Carrier;
use crate::graph::plan::{Body, Plan};
use crate::memory::heap;
use crate::trace::{
    self, CANCELLED, FAILED, Filter, KNOWN, NodeOfTable, Nodes, Tape, TraceEvent, TraceRecord, Working,
};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl RunState {
    /// Whether this run is traced. For the threads in it.
    #[inline]
    pub(in crate::graph) fn is_traced(&self) -> bool {
        self.cares(TRACED_RUN)
    }

    /// Run number `run` is about to be opened, and some trace records.
    #[cold]
    pub(in crate::graph) fn begin_trace(&self, run: u64) {
        let asked = if self.cares(ASKED) { self.orders.lock().trace } else { None };
        let accounts = || self.plan().engines.iter().map(|engine| engine.account());
        let wants = |filter: &Filter| match *filter {
            Filter::Everything => true,
            Filter::Domain(domain) => accounts().any(|account| account.domain().number() == domain),
            Filter::Engine(engine) => accounts().any(|account| Arc::as_ptr(account).addr() == engine),
            Filter::Program(program) => self.compiled.identity() == program,
            Filter::Asked => false,
        };
        let around = trace::frame_around();
        if !self.traced.traces.find(asked, &wants) {
            return;
        }
        self.begin_hooks(around);
        if self.traced.ready.get().is_none()
            && let Ok(words) = heap::filled(self.plan().len(), "a run's trace", || AtomicU64::new(0))
        {
            let _ = self.traced.ready.set(words);
        }
        // ORDERING: Relaxed; published to helpers by `open`.
        self.care.store(self.care.load(Relaxed) | TRACED_RUN, Relaxed);
        let tape = Tape::open(&self.traced.traces);
        let explained = &self.compiled.explained;
        tape.explain(explained, &|| self.explanation());
        tape.note(TraceEvent::RunBegin, |record| {
            TraceRecord { object: explained.number(), other: around, ..record }.with_number(run)
        });
    }

    /// The run is closed, and this is its result.
    #[cold]
    pub(in crate::graph) fn end_trace(&self, result: &Result<()>) {
        let flags = match result {
            Ok(()) => 0,
            Err(error) if matches!(error.code(), Code::Cancelled | Code::DeadlineExceeded) => CANCELLED,
            Err(_) => FAILED,
        };
        let object = self.compiled.explained.number();
        Tape::open(&self.traced.traces).note(TraceEvent::RunEnd, |record| TraceRecord { object, flags, ..record });
        self.end_hooks(result);
    }

    /// Something happens to the run, perhaps in a thread that is not in it.
    #[cold]
    pub(in crate::graph) fn note_in_trace(&self, event: TraceEvent, object: u32) {
        if self.is_traced() {
            Tape::open(&self.traced.traces).note(event, |record| TraceRecord { object, ..record });
        }
    }

    /// The nodes' names. `None` for want of memory.
    pub(super) fn explanation(&self) -> Option<(String, Nodes)> {
        let plan = self.plan();
        let mut counted_at = heap::filled(plan.len(), "a trace", || None).ok()?;
        // A loop comes before the loops nested in it.
        for (index, looped) in plan.loops.iter().enumerate() {
            for node in looped.first + 1..looped.end {
                counted_at[node as usize] = Some(plan.counts_at(index, node) as u32);
            }
        }
        let mut nodes = Nodes::default();
        for node in 0..plan.len() as u32 {
            let engine = plan.starts_elsewhere(node as usize).then(|| plan.engine_of(node));
            let named = NodeOfTable {
                name: plan.name_of(node),
                counted_at: counted_at[node as usize],
                engine: engine.as_deref(),
                is_told: is_told(&plan.bodies[node as usize]),
            };
            if !nodes.push(&named) {
                return None;
            }
        }
        nodes.set_edges(|edge| each_edge(plan, edge)).then(|| (plan.name.clone(), nodes))
    }
}

/// All edges of a plan, and what nodes release, from and to. A loop's lead back to its condition.
fn each_edge(plan: &Plan, edge: &mut dyn FnMut(u32, u32)) {
    for node in 0..plan.len() {
        let mut to = |target: u32| edge(node as u32, target);
        plan.edges(node).iter().chain(plan.guards(node)).for_each(|edge| to(edge.target));
        plan.started(node).iter().for_each(|start| to(start.edge.target));
        plan.released(node).iter().for_each(|&target| to(target));
        let starts = |release, to: &mut dyn FnMut(u32)| {
            plan.starts(release).iter().for_each(|start| to(start.edge.target));
        };
        match plan.bodies[node] {
            Body::Next(index) => {
                let again = plan.loops[index as usize].release_condition;
                plan.releases[again.first as usize..again.end as usize].iter().for_each(|&target| to(target));
            }
            // An iteration that is the last retires, and iterations retire in their order.
            Body::Guard(slot) => starts(plan.slots[slot as usize].retire, &mut to),
            Body::Retire(index) => {
                let slots = &plan.overlaps[plan.slots[index as usize].overlap as usize].slots;
                let next = if index + 1 == slots.end { slots.start } else { index + 1 };
                starts(plan.slots[next as usize].retire, &mut to);
            }
            _ => {}
        }
    }
}

/// Whether a node is told of when it has run: all but those that only lead to others.
pub(in crate::graph) fn is_told(body: &Body) -> bool {
    is_measured(body) || matches!(body, Body::Move(_))
}

/// A thread's tape in a run, from when it comes until it leaves.
pub(in crate::graph) struct RunTape<'a> {
    state: &'a RunState,
    hooks: Option<RunHooks<'a>>,
    tape: Tape,
    working: Option<Working>,
    carrier: Carrier,
    came: u64,
    ran: Cell<u32>,
    /// The last stamp. In a walk a node begins with it.
    at: Cell<u64>,
    /// Whether nodes' times are also statistics, or learned.
    measures: bool,
    pub is_careful: bool,
}

impl<'a> RunTape<'a> {
    pub fn open(state: &'a RunState, carrier: Carrier) -> RunTape<'a> {
        let hooks = RunHooks::open(state);
        let tape = Tape::open(&state.traced.traces);
        let working = Some(tape.work());
        let came = trace::now();
        RunTape {
            state,
            hooks,
            tape,
            working,
            carrier,
            came,
            ran: Cell::new(0),
            at: Cell::new(came),
            measures: state.compiled.figures.is_some() || state.measuring.load(Relaxed),
            is_careful: state.is_careful(),
        }
    }

    /// The last stamp.
    #[inline]
    pub fn at(&self) -> u64 {
        self.at.get()
    }

    /// Takes a stamp.
    #[inline]
    pub fn stamp(&self) -> u64 {
        let now = trace::now();
        self.at.set(now);
        now
    }

    /// A node is about to begin, or a later part of it.
    #[inline]
    pub fn begins(&self, node: u32, is_again: bool) {
        if let Some(hooks) = &self.hooks {
            hooks.begin(node, is_again);
        }
    }

    #[inline]
    fn ends(&self, flags: u8) {
        if let Some(hooks) = &self.hooks {
            hooks.end(flags);
        }
    }

    /// A node of a walk has run: it began where the last stamp was taken, and ends now.
    #[inline]
    pub fn walked(&self, node: u32, failed: bool) {
        let begin = self.at.get();
        let length = self.stamp().wrapping_sub(begin);
        let flags = if failed { FAILED } else { 0 };
        let record =
            TraceRecord { length, object: node, flags, ..TraceRecord::new(TraceEvent::Node, self.tape.frame(), begin) };
        self.put(TraceRecord { carrier: self.carrier as u16, ..record });
        self.ends(flags);
    }

    /// A node of a shared run has run since the last stamp, or a round of it.
    #[inline]
    pub fn shared(&self, event: TraceEvent, node: u32, flags: u8) {
        let begin = self.at.get();
        let length = self.stamp().wrapping_sub(begin);
        let mut record =
            TraceRecord { length, object: node, flags, ..TraceRecord::new(event, self.tape.frame(), begin) };
        if event == TraceEvent::Node
            && let Some((ready, from)) = self.state.traced.ready_before(node, begin)
        {
            record = TraceRecord { ready, other: from, flags: flags | KNOWN, ..record };
            if self.measures {
                self.state.waited(node as usize, span_ns(ready));
            }
        }
        self.put(TraceRecord { carrier: self.carrier as u16, ..record });
        self.ends(flags);
    }

    #[inline]
    fn put(&self, record: TraceRecord) {
        self.tape.record(record);
        if record.event == TraceEvent::Node {
            self.ran.set(self.ran.get() + 1);
            if self.measures {
                self.state.measured(record.object as usize, span_ns(record.length));
            }
        }
    }

    /// An iteration begins where the run counts at this index.
    pub fn iteration(&self, counted_at: usize) {
        let number = self.state.iterations[counted_at].load(Relaxed);
        let record = TraceRecord::new(TraceEvent::Iteration, self.tape.frame(), self.at.get()).with_number(number);
        self.tape.record(TraceRecord { object: counted_at as u32, ..record });
    }

    pub fn note(&self, event: TraceEvent, object: u32, other: u32) {
        self.tape.note(event, |record| TraceRecord { object, other, ..record });
    }
}

fn span_ns(ticks: u64) -> u64 {
    if trace::is_in_ticks() { ticks_ns(ticks) } else { ticks }
}

impl Drop for RunTape<'_> {
    fn drop(&mut self) {
        drop(self.working.take());
        let length = trace::now().wrapping_sub(self.came);
        let object = self.state.compiled.explained.number();
        let record = TraceRecord {
            length,
            object,
            other: self.ran.get(),
            ..TraceRecord::new(TraceEvent::Stay, self.tape.frame(), self.came)
        };
        self.tape.record(TraceRecord { carrier: self.carrier as u16, ..record });
    }
}
