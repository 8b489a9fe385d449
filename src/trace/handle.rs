//! A trace as the host holds it.
#![forbid(unsafe_code)]

use super::clock;
use super::recorder::{Recorder, Settings};
use super::timeline::Timeline;
use super::track::table_of;
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result, live};
use crate::sync::fork;
use std::fmt;
use std::sync::Arc;

pub struct Trace {
    recorder: Arc<Recorder>,
    /// The place where writers find it.
    at: usize,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({})", self.recorder.id)
    }
}

impl Kind for Trace {
    const TAG: u32 = tag::TRACE;
    const NAME: &'static str = "trace";
    const COUNTER: live::Counter = live::Counter::Traces;
}

/// A thread in a trace, or a track, whose number is 0.
#[derive(Clone, Debug)]
pub struct ThreadFigures {
    pub os_id: u64,
    pub name: String,
    pub records: u64,
    pub lost: u64,
}

/// The contents of a trace.
#[derive(Clone, Copy, Debug)]
pub struct TraceFigures {
    pub is_recording: bool,
    pub threads: u32,
    pub records: u64,
    pub lost: u64,
    pub lost_without_ring: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub clock_error_ns: u64,
    pub clock: &'static str,
}

impl Trace {
    /// As an object of the host's, which counts as one.
    pub fn start(settings: Settings) -> Result<Ref<Trace>> {
        fork::hook();
        Trace::begin(settings).map(Object::shared)
    }

    pub fn begin(settings: Settings) -> Result<Trace> {
        let (recorder, at) = Recorder::start(settings)?;
        Ok(Trace { recorder, at })
    }

    pub fn id(&self) -> u64 {
        self.recorder.id
    }

    /// Ends it, if it has not ended.
    pub fn stop(&self) {
        self.recorder.stop(self.at);
    }

    /// Its present contents.
    pub fn timeline(&self) -> Result<Timeline> {
        Timeline::of(&self.recorder)
    }

    /// Its contents of one thread.
    pub fn thread(&self, index: usize) -> Result<ThreadFigures> {
        let ring = self.recorder.rings().nth(index).ok_or_else(|| {
            Error::out_of_range(format!("index is {index}, the trace has {} threads", self.recorder.rings().count()))
        })?;
        let (owner, name) = ring.owner().unwrap_or_default();
        let (os_id, name) = match table_of(owner) {
            None => (owner, name),
            Some(track) => {
                let tables = self.recorder.tables.lock();
                let table = tables.iter().find(|table| table.number == track);
                (0, table.map_or_else(String::new, |table| table.name.clone()))
            }
        };
        Ok(ThreadFigures { os_id, name, records: ring.kept(), lost: ring.lost() })
    }

    pub fn figures(&self) -> TraceFigures {
        let (mut threads, mut records, mut lost) = (0, 0, 0);
        for ring in self.recorder.rings() {
            threads += 1;
            records += ring.kept();
            lost += ring.lost();
        }
        let end = self.recorder.end_anchor();
        let scale = clock::ClockScale::new(self.recorder.begin, end);
        TraceFigures {
            is_recording: self.recorder.end().is_none(),
            threads,
            records,
            lost,
            lost_without_ring: self.recorder.lost_without_ring(),
            begin_ns: self.recorder.begin.ns,
            end_ns: if self.recorder.end().is_some() { end.ns } else { 0 },
            clock_error_ns: scale.error_ns(),
            clock: clock::name(),
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.recorder.abandon(self.at);
    }
}
