//! The records of a run that is issued to a stream (`direct`), for its traces: the run, the thread's stay in it, and of
//! each piece the time that the thread took to issue it. The device's work for it is in the run, too.
//!
//! The run ends when the device is done with the last of that. Only the stream's track learns when that was.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::device::DeviceStream;
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::traced::Carrier;
use crate::trace::{self, FAILED, LATER, NONE, Tape, TraceEvent, TraceRecord, Working};
use std::cell::Cell;

pub(in crate::graph) struct DirectTape<'a> {
    compiled: &'a Compiled,
    /// The nodes of the pieces.
    nodes: &'a [u32],
    tape: Tape,
    working: Option<Working>,
    came: u64,
    issued: Cell<u32>,
}

impl<'a> DirectTape<'a> {
    /// For run number `run`. `None` if no trace wants it.
    #[cold]
    pub fn open(compiled: &'a Compiled, nodes: &'a [u32], run: u64) -> Option<DirectTape<'a>> {
        let around = trace::frame_around();
        let tape = Tape::of_own_frame(&|filter| compiled.is_in(filter));
        if tape.is_blank() {
            return None;
        }
        tape.explain(&compiled.explained, &|| compiled.explanation());
        tape.note(TraceEvent::RunBegin, |record| {
            TraceRecord { object: compiled.explained.number(), other: around, ..record }.with_number(run)
        });
        let working = Some(tape.work());
        Some(DirectTape { compiled, nodes, tape, working, came: trace::now(), issued: Cell::new(0) })
    }

    /// Issues a piece.
    #[cold]
    pub fn piece(&self, number: usize, issue: impl FnOnce() -> Result<()>) -> Result<()> {
        let begin = trace::now();
        let issued = issue();
        let length = trace::now().wrapping_sub(begin);
        let object = self.nodes.get(number).copied().unwrap_or(NONE);
        let flags = if issued.is_err() { FAILED } else { 0 };
        let record = TraceRecord::new(TraceEvent::Node, self.tape.frame(), begin);
        self.tape.record(TraceRecord { length, object, flags, carrier: Carrier::Walk as u16, ..record });
        self.issued.set(self.issued.get() + 1);
        issued
    }

    /// All pieces were issued to the stream, or not.
    #[cold]
    pub fn close(mut self, stream: &dyn DeviceStream, is_well: bool) {
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
    }
}
