//! The records of a run for its traces: when it begins and ends, and with each node.
//!
//! A run asks once, when it is opened, which traces want it (`begin_trace`). If any does, its loops are the version
//! that writes (`TRACED`), in each thread with a tape of its own (`RunTape`). That version also does what careful and
//! measuring runs do, by flags, so that a deadline, statistics and learned costs go on as ever.
#![forbid(unsafe_code)]

use crate::base::time::ticks_ns;
use crate::base::{Code, Result};
use crate::graph::carry::orders::{ASKED, TRACED_RUN};
use crate::graph::carry::run_hooks::RunHooks;
use crate::graph::carry::state::RunState;
use crate::graph::carry::traced::{Carrier, ReadyTimes};
use crate::memory::heap;
use crate::trace::{self, CANCELLED, FAILED, KNOWN, Tape, TraceEvent, TraceRecord, Working};
use std::cell::Cell;
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
        let around = trace::frame_around();
        if !self.traced.traces.find(asked, &|filter| self.compiled.is_in(filter)) {
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
        tape.explain(explained, &|| self.compiled.explanation());
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
}

/// A thread's tape in a run, from when it comes until it leaves.
pub(in crate::graph) struct RunTape<'a> {
    state: &'a RunState,
    hooks: Option<RunHooks<'a>>,
    tape: Tape,
    ready: ReadyTimes<'a>,
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
            ready: state.traced.ready_times(),
            working,
            carrier,
            came,
            ran: Cell::new(0),
            at: Cell::new(came),
            measures: state.compiled.figures.is_some() || state.measuring.load(Relaxed),
            is_careful: state.is_careful(),
        }
    }

    /// A node has become ready behind the last stamp, by the arrival of `from`.
    #[inline]
    pub fn ready(&self, node: u32, from: u32) {
        self.ready.set(node, self.at.get(), from);
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
            && let Some((ready, from)) = self.ready.before(node, begin)
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
