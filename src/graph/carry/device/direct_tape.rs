//! The records of a run that is issued to a stream (`direct`), for its traces: the run, the thread's stay in it, and of
//! each piece the time that the thread took to issue it. The device's work for it is in the run, too. Hooks are told
//! the same.
//!
//! The run ends when the device is done with the last of that. Only the stream's track learns when that was: for hooks
//! it ends when it was issued.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::device::DeviceStream;
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::run_hooks::{RunHooks, status_of};
use crate::graph::carry::traced::Carrier;
use crate::trace::{self, FAILED, HookedRun, LATER, NONE, Tape, Told, TraceEvent, TraceRecord, Working};
use std::cell::Cell;

pub(in crate::graph) struct DirectTape<'a> {
    compiled: &'a Compiled,
    /// The nodes of the pieces.
    nodes: &'a [u32],
    tape: Tape,
    working: Option<Working>,
    came: u64,
    issued: Cell<u32>,
    told: Told,
    /// For hooks; `None` if there are none, and for want of memory.
    hooked: Option<HookedRun<'a>>,
    hooks: Option<RunHooks<'a>>,
}

impl<'a> DirectTape<'a> {
    /// For run number `run`. `None` if no trace wants it, and no hooks are there.
    #[cold]
    pub fn open(compiled: &'a Compiled, nodes: &'a [u32], run: u64) -> Option<DirectTape<'a>> {
        let around = trace::frame_around();
        let tape = Tape::of_own_frame(&|filter| compiled.is_in(filter));
        let told = Told::enter();
        if tape.is_blank() && told.is_nobody() {
            return None;
        }
        tape.explain(&compiled.explained, &|| compiled.explanation());
        tape.note(TraceEvent::RunBegin, |record| {
            TraceRecord { object: compiled.explained.number(), other: around, ..record }.with_number(run)
        });
        let working = Some(tape.work());
        let hooked = (!told.is_nobody()).then(|| compiled.hooked(tape.frame(), around)).flatten();
        let hooks = hooked.map(|run| {
            told.run_begin(&run);
            RunHooks::come(told, run)
        });
        let (came, issued) = (trace::now(), Cell::new(0));
        Some(DirectTape { compiled, nodes, tape, working, came, issued, told, hooked, hooks })
    }

    /// Issues a piece.
    #[cold]
    pub fn piece(&self, number: usize, issue: impl FnOnce() -> Result<()>) -> Result<()> {
        let object = self.nodes.get(number).copied().unwrap_or(NONE);
        let hooks = self.hooks.as_ref().filter(|_| object != NONE);
        hooks.inspect(|hooks| hooks.begin(object, false));
        let begin = trace::now();
        let issued = issue();
        let length = trace::now().wrapping_sub(begin);
        let flags = if issued.is_err() { FAILED } else { 0 };
        hooks.inspect(|hooks| hooks.end(flags));
        let record = TraceRecord::new(TraceEvent::Node, self.tape.frame(), begin);
        self.tape.record(TraceRecord { length, object, flags, carrier: Carrier::Walk as u16, ..record });
        self.issued.set(self.issued.get() + 1);
        issued
    }

    /// All pieces were issued to the stream, or not.
    #[cold]
    pub fn close(mut self, stream: &dyn DeviceStream, issued: &Result<()>) {
        let is_well = issued.is_ok();
        drop(self.working.take());
        let (object, frame) = (self.compiled.explained.number(), self.tape.frame());
        let length = trace::now().wrapping_sub(self.came);
        let record = TraceRecord::new(TraceEvent::Stay, frame, self.came);
        let (other, carrier) = (self.issued.get(), Carrier::Walk as u16);
        self.tape.record(TraceRecord { length, object, other, carrier, ..record });
        let flags = if is_well { LATER } else { FAILED };
        self.tape.note(TraceEvent::RunEnd, |record| TraceRecord { object, flags, ..record });
        if is_well {
            stream.ends_run(frame);
        }
        drop(self.hooks.take());
        self.hooked.inspect(|run| self.told.run_end(run, status_of(issued)));
        self.told.leave();
    }
}
