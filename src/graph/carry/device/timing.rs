//! The devices' time for a run of a frame, by events with timing: the timed run records one before its first call of an
//! engine, and one behind each segment on each of its streams. The span from the first to the last of them includes the
//! gaps in which a device waits for the calling thread, so it is the time of the run as seen by a thread that waits for
//! it.
//!
//! No thread waits for these events: the frame's next run looks at them as it begins, and leaves them alone if the
//! device has not reached them yet. They are made with the frame, and a run that is not timed only reads one flag.
//! Their failures end the trial, and no run.
#![forbid(unsafe_code)]

use super::frame_stream::FrameStream;
use super::pick::Path;
use crate::base::Result;
use crate::device::{Accelerator, DeviceEvent};
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The events of a frame on one engine.
#[derive(Debug)]
pub(in crate::graph) struct Timing {
    begin: Arc<dyn DeviceEvent>,
    /// Locked until it is recorded: calls of other threads come behind it.
    is_begun: Mutex<bool>,
    /// By segment.
    ends: Vec<Vec<SegmentEnd>>,
    thread_ns: AtomicU64,
}

#[derive(Debug)]
struct SegmentEnd {
    stream: usize,
    event: Arc<dyn DeviceEvent>,
    is_recorded: AtomicBool,
}

/// A frame's record of the run that has it, or had it last. ORDERING: Relaxed; one run at a time has the frame
/// (`RunFrame::begin`).
#[derive(Debug, Default)]
pub(in crate::graph) struct Timed {
    /// Set while it is timed, and until the times are taken.
    pub path: Mutex<Option<Path>>,
    pub is_timed: AtomicBool,
    /// The run's number among the program's, and whether it was alone with the devices until its end.
    pub number: AtomicU64,
    pub is_alone: AtomicBool,
    /// Recordings of this frame were submitted before.
    pub has_replayed: AtomicBool,
}

impl Timing {
    /// `streams` has the streams of each segment.
    pub fn make(accelerator: &dyn Accelerator, streams: &[Vec<usize>]) -> Result<Timing> {
        let end = |&stream: &usize| {
            Ok(SegmentEnd { stream, event: accelerator.event(true)?, is_recorded: AtomicBool::new(false) })
        };
        let ends = streams.iter().map(|streams| streams.iter().map(end).collect());
        Ok(Timing {
            begin: accelerator.event(true)?,
            is_begun: Mutex::new(false),
            ends: ends.collect::<Result<_>>()?,
            thread_ns: AtomicU64::new(0),
        })
    }

    fn ends(&self) -> impl Iterator<Item = &SegmentEnd> {
        self.ends.iter().flatten().filter(|end| end.is_recorded.load(Relaxed))
    }

    /// Before all work, on the first stream, which is idle.
    pub fn begin(&self, streams: &[FrameStream]) -> Result<()> {
        let mut is_begun = self.is_begun.lock();
        if let (false, Some(stream)) = (*is_begun, streams.first()) {
            stream.look().record(&self.begin)?;
            *is_begun = true;
        }
        Ok(())
    }

    /// Behind a segment: on all of its streams, or on the one that it was submitted to. False: it runs more than once,
    /// and its last end was not seen yet.
    pub fn end(&self, streams: &[FrameStream], segment: usize, only: Option<usize>) -> Result<bool> {
        for end in self.ends[segment].iter().filter(|end| only.is_none_or(|only| end.stream == only)) {
            if end.is_recorded.load(Relaxed) && !end.event.is_reached()? {
                return Ok(false);
            }
            streams[end.stream].look().record(&end.event)?;
            end.is_recorded.store(true, Relaxed);
        }
        Ok(true)
    }

    /// From the first event to the last, in nanoseconds. `None`: the device has not reached them yet. Less than 0: the
    /// two are on streams that diverged.
    pub fn span(&self) -> Result<Option<i64>> {
        if !*self.is_begun.lock() {
            return Ok(Some(0));
        }
        for event in [&self.begin].into_iter().chain(self.ends().map(|end| &end.event)) {
            if !event.is_reached()? {
                return Ok(None);
            }
        }
        let mut last = None;
        for end in self.ends() {
            last = last.max(Some(end.event.elapsed_ns(&*self.begin)?));
        }
        Ok(last.or(Some(0)))
    }

    /// Adds the time of the issuing thread.
    pub fn took(&self, ns: u64) {
        self.thread_ns.fetch_add(ns, Relaxed);
    }

    pub fn thread_ns(&self) -> u64 {
        self.thread_ns.load(Relaxed)
    }

    pub fn reset(&self) {
        *self.is_begun.lock() = false;
        self.ends.iter().flatten().for_each(|end| end.is_recorded.store(false, Relaxed));
        self.thread_ns.store(0, Relaxed);
    }
}

impl Timed {
    pub fn is_timed(&self) -> bool {
        self.is_timed.load(Relaxed)
    }

    pub fn spoil(&self) {
        // The number of no run.
        self.number.store(0, Relaxed);
    }
}
