//! A communicator's operations in traces: each on a lane that has no other meanwhile.
#![forbid(unsafe_code)]

use crate::base::time::now_ns;
use crate::trace::{self, FAILED, KeptTraces, NONE, TraceEvent, TraceRecord, Track};

/// Operations at once that have a lane. Others are lost to the trace, and counted.
const MOST: usize = 16;

/// The lanes, made as they are needed.
#[derive(Debug, Default)]
pub struct Lanes {
    tracks: Vec<Track>,
    /// As bits.
    busy: u32,
}

/// An operation that is traced, on a lane.
pub struct TracedOperation {
    traces: KeptTraces,
    lane: usize,
    name: u32,
    bytes: u32,
}

impl Lanes {
    /// An operation begins.
    #[cold]
    pub fn begin(&mut self, owner: &str, traces: KeptTraces, name: &str, bytes: usize) -> Option<TracedOperation> {
        let lane = self.busy.trailing_ones() as usize;
        if lane >= MOST {
            self.tracks.last().into_iter().for_each(|track| track.lose(&traces));
            return None;
        }
        if lane == self.tracks.len() {
            self.tracks.try_reserve(1).ok()?;
            self.tracks.push(Track::new(&format!("{owner} {lane}"))?);
        }
        self.tracks[lane].enter(&traces, None);
        self.busy |= 1 << lane;
        let name = trace::intern(name).unwrap_or(NONE);
        Some(TracedOperation { traces, lane, name, bytes: u32::try_from(bytes).unwrap_or(NONE) })
    }

    /// It has ended.
    #[cold]
    pub fn end(&mut self, operation: &TracedOperation, begin: u64, failed: bool) {
        self.busy &= !(1 << operation.lane);
        let record = TraceRecord {
            length: now_ns().saturating_sub(begin),
            object: operation.name,
            other: operation.bytes,
            flags: if failed { FAILED } else { 0 },
            ..TraceRecord::new(TraceEvent::Comm, operation.traces.frame, begin)
        };
        self.tracks[operation.lane].record(&operation.traces, record);
    }
}
