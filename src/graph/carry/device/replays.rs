//! A frame's recordings of its segments, and a program's counts of its runs.
#![forbid(unsafe_code)]

use super::frame_stream::EventMark;
use super::pick::Pick;
use crate::device::Executable;
use crate::sync::{Mutex, OnceLock};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A segment's state in a frame.
#[derive(Debug)]
pub(in crate::graph) struct OfSegment {
    /// Behind all of it.
    pub event: Option<Arc<EventMark>>,
    pub recorded: Mutex<Option<SegmentRecording>>,
}

/// A device's recording of a segment, and the addresses of the runs' own tensors that it was given last.
#[derive(Debug)]
pub(in crate::graph) struct SegmentRecording {
    pub executable: Arc<dyn Executable>,
    pub given: Vec<usize>,
    /// Memory of an update's: which of these are others than before.
    pub changed: Vec<bool>,
}

/// The writer of a value: records an event behind it.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct ValueWriter {
    pub piece: usize,
    pub segment: Option<usize>,
}

/// Counts of runs, for the report.
#[derive(Debug, Default)]
pub struct RunCounts {
    /// Runs that issued each piece by itself, and runs that submitted segments, of programs that have segments.
    pub issued: AtomicU64,
    pub replayed: AtomicU64,
    /// Runs that were issued to the caller's stream.
    pub direct: AtomicU64,
    /// Recordings made, and steps of them that were given other addresses.
    pub recordings: AtomicU64,
    pub updates: AtomicU64,
    /// The device's reason for refusing to record: all runs issue from then on.
    pub refusal: OnceLock<String>,
    /// The choice between streams and recordings.
    pub pick: Pick,
}
