//! Records that are no thread's: of what a device does, on a track for each of its streams, and of what a communicator
//! does, on as many as it does at once.
//!
//! A device's work is over some time after it was issued, and its times are known later still. So whoever issues it
//! keeps the traces that it is of (`KeptTraces`), which are there until the record is written. Work is looked at when
//! more is issued, and when a trace is read (`Collect`).
#![forbid(unsafe_code)]

use super::active::is_on;
use super::explained::next_number;
use super::record::{LONG, TraceRecord};
use super::recorder::{Collect, Filter, MOST_TRACES, Recorder, Visit};
use super::ring::NAME;
use super::table::{Nodes, Table};
use super::tape::{Working, work_around, work_for};
use crate::base::reserve;
use std::fmt;
use std::sync::{Arc, Weak};

/// The owner of a ring with this bit is a track; the lower half is the number of its table.
const TRACK: u64 = 1 << 63;

/// The table of the track that a ring is of.
pub(super) fn table_of(owner: u64) -> Option<u32> {
    (owner & TRACK != 0).then_some(owner as u32)
}

/// The traces that a piece of work is of.
#[derive(Clone)]
pub struct KeptTraces {
    recorders: [Option<Arc<Recorder>>; MOST_TRACES],
    pub frame: u32,
}

impl KeptTraces {
    /// Those of what this thread works for, and those of everything; `None`: there are none.
    #[inline]
    pub fn of_thread() -> Option<KeptTraces> {
        if is_on() { KeptTraces::find() } else { None }
    }

    #[cold]
    fn find() -> Option<KeptTraces> {
        let (around, frame) = work_around();
        let mut kept = KeptTraces { recorders: [const { None }; MOST_TRACES], frame };
        let mut any = false;
        for visit in Visit::all() {
            if around >> visit.at() & 1 == 1 || visit.recorder().settings.filter == Filter::Everything {
                kept.recorders[visit.at()] = Some(visit.share());
                any = true;
            }
        }
        any.then_some(kept)
    }

    /// Until the result is dropped, this thread works for those of them that still record.
    pub fn work(&self) -> Working {
        let is_here =
            |visit: &Visit| self.recorders[visit.at()].as_ref().is_some_and(|own| own.id == visit.recorder().id);
        work_for(Visit::all().filter(is_here).fold(0, |at, visit| at | 1 << visit.at()), self.frame)
    }
}

/// A track. One thread at a time writes to it.
pub struct Track {
    table: Arc<Table>,
    /// The traces that know it, by their places.
    known: [u64; MOST_TRACES],
    rings: [usize; MOST_TRACES],
}

impl fmt::Debug for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Track({})", self.table.name)
    }
}

impl Track {
    /// `None` for want of memory.
    pub fn new(name: &str) -> Option<Track> {
        let table = || Table { number: next_number(), name: name.to_owned(), nodes: Nodes::default() };
        let table = reserve::whole(|| Ok(Arc::new(table()))).ok()?;
        Some(Track { table, known: [0; MOST_TRACES], rings: [0; MOST_TRACES] })
    }

    /// Makes it known to these traces; they ask `source` to write what it knows before they are read.
    pub fn enter(&mut self, traces: &KeptTraces, source: Option<&Weak<dyn Collect>>) {
        for (at, recorder) in traces.recorders.iter().enumerate() {
            if let Some(recorder) = recorder.as_ref().filter(|recorder| recorder.id != self.known[at]) {
                let owner = || (TRACK | u64::from(self.table.number), [0; NAME]);
                let _ = recorder.explain(&self.table);
                source.into_iter().for_each(|source| recorder.add_source(Weak::clone(source)));
                (self.known[at], self.rings[at]) = (recorder.id, recorder.claim(owner));
            }
        }
    }

    fn put(&self, traces: &KeptTraces, put: impl Fn(&super::ring::RecordRing)) {
        for (at, recorder) in traces.recorders.iter().enumerate() {
            if let Some(recorder) = recorder.as_ref().filter(|recorder| recorder.id == self.known[at]) {
                put(recorder.ring(self.rings[at]));
            }
        }
    }

    /// Writes a record to all of the traces.
    pub fn record(&self, traces: &KeptTraces, record: TraceRecord) {
        self.put(traces, |ring| {
            if record.is_long() {
                ring.put(record.extend());
                ring.put(TraceRecord { flags: record.flags | LONG, ..record }.words());
            } else {
                ring.put(record.words());
            }
        });
    }

    /// A record is lost to all of the traces.
    pub fn lose(&self, traces: &KeptTraces) {
        self.put(traces, super::ring::RecordRing::lose);
    }
}
