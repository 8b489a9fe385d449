//! What a frame keeps of its segments, and what a program counts of its runs.
#![forbid(unsafe_code)]

use super::frame_stream::Mark;
use super::pick::Pick;
use crate::device::Executable;
use crate::sync::{Mutex, OnceLock};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A segment of a frame's.
#[derive(Debug)]
pub(in crate::graph) struct OfSegment {
    /// Behind all of it.
    pub event: Option<Arc<Mark>>,
    pub recorded: Mutex<Option<Recorded>>,
}

/// What a device has made of a segment, and the addresses of the runs' own tensors that it was given last.
#[derive(Debug)]
pub(in crate::graph) struct Recorded {
    pub executable: Arc<dyn Executable>,
    pub given: Vec<usize>,
}

/// Who writes a value: what records an event behind it.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct Writer {
    pub piece: usize,
    pub segment: Option<usize>,
}

/// What runs did, for the report.
#[derive(Debug, Default)]
pub struct RunCounts {
    /// Runs that issued each piece by itself, and those that submitted segments, of programs that have some.
    pub issued: AtomicU64,
    pub replayed: AtomicU64,
    /// Runs that were issued to the caller's stream.
    pub direct: AtomicU64,
    /// Recordings made, and steps of them that were given other addresses.
    pub recordings: AtomicU64,
    pub updates: AtomicU64,
    /// Why a device would not record: all runs issue from then on.
    pub refusal: OnceLock<String>,
    /// Which of the two ways it is.
    pub pick: Pick,
}
