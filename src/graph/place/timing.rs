//! How long the devices take for a run of a lane's, by events with timing: the run that is timed records one in front
//! of the first thing that an engine is asked for, and one behind each segment on each of its streams. The span from
//! the first to the last of them has the gaps in it, too, in which a device waits for the calling thread, so it is what
//! the run is worth to somebody who waits for it.
//!
//! Nobody waits for these events: the lane's next run looks at them as it begins, and leaves them alone if the device
//! has not got there yet. They are made with the lane, and a run that is not timed knows nothing of them but one flag.
//! What goes wrong with them ends the trial, and no run.
#![forbid(unsafe_code)]

use super::lane::{Lane, OnEngine};
use super::pick::Path;
use crate::base::Result;
use crate::base::time::now_ns;
use crate::device::{Accelerator, DeviceEvent};
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The events of a lane on one engine.
#[derive(Debug)]
pub(super) struct Timing {
    begin: Arc<dyn DeviceEvent>,
    /// Locked until it is recorded: what another thread asks for comes behind it.
    is_begun: Mutex<bool>,
    /// By segment.
    ends: Vec<Vec<End>>,
    thread_ns: AtomicU64,
}

#[derive(Debug)]
struct End {
    stream: usize,
    event: Arc<dyn DeviceEvent>,
    is_recorded: AtomicBool,
}

/// What a lane knows of the run that has it, or had it last. ORDERING: Relaxed; one run at a time has the lane
/// (`Lane::begin`).
#[derive(Debug, Default)]
pub(super) struct Timed {
    /// It is timed, or was and nobody has looked yet.
    path: Mutex<Option<Path>>,
    is_timed: AtomicBool,
    /// The run's number among the program's, and whether it was alone with the devices until its end.
    number: AtomicU64,
    is_alone: AtomicBool,
    /// Recordings of the lane's were submitted before.
    has_replayed: AtomicBool,
}

impl Timing {
    /// `streams` has the streams of each segment.
    pub fn make(accelerator: &dyn Accelerator, streams: &[Vec<usize>]) -> Result<Timing> {
        let end =
            |&stream: &usize| Ok(End { stream, event: accelerator.event(true)?, is_recorded: AtomicBool::new(false) });
        let ends = streams.iter().map(|streams| streams.iter().map(end).collect());
        Ok(Timing {
            begin: accelerator.event(true)?,
            is_begun: Mutex::new(false),
            ends: ends.collect::<Result<_>>()?,
            thread_ns: AtomicU64::new(0),
        })
    }

    fn ends(&self) -> impl Iterator<Item = &End> {
        self.ends.iter().flatten().filter(|end| end.is_recorded.load(Relaxed))
    }

    /// In front of all, on the first stream: it has nothing to do yet.
    fn begin(&self, on: &OnEngine) -> Result<()> {
        let mut is_begun = self.is_begun.lock();
        if let (false, Some(line)) = (*is_begun, on.streams.first()) {
            line.look().record(&self.begin)?;
            *is_begun = true;
        }
        Ok(())
    }

    /// Behind a segment: on all of its streams, or on the one that it was submitted to. False: it is done more often
    /// than once, and the device was not seen to be done with the last time.
    fn end(&self, on: &OnEngine, segment: usize, only: Option<usize>) -> Result<bool> {
        for end in self.ends[segment].iter().filter(|end| only.is_none_or(|only| end.stream == only)) {
            if end.is_recorded.load(Relaxed) && !end.event.is_reached()? {
                return Ok(false);
            }
            on.streams[end.stream].look().record(&end.event)?;
            end.is_recorded.store(true, Relaxed);
        }
        Ok(true)
    }

    /// From the first event to the last, in nanoseconds. None: the device has not got there yet. Less than 0: the two
    /// are on streams that went apart.
    fn span(&self) -> Result<Option<i64>> {
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

    fn reset(&self) {
        *self.is_begun.lock() = false;
        self.ends.iter().flatten().for_each(|end| end.is_recorded.store(false, Relaxed));
        self.thread_ns.store(0, Relaxed);
    }
}

impl OnEngine {
    /// Asks the engine for something, as part of a run that may be timed. `segment` is what it belongs to behind which
    /// an event comes, and the stream if that is one.
    pub fn timed(
        &self,
        lane: &Lane,
        segment: Option<(usize, Option<usize>)>,
        ask: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(timing) = self.timing.as_ref().filter(|_| lane.timed.is_timed()) else { return ask() };
        let begun = now_ns();
        let mut told = timing.begin(self).map(|()| true);
        ask()?;
        if let (Some((segment, only)), Ok(true)) = (segment, &told) {
            told = timing.end(self, segment, only);
        }
        timing.thread_ns.fetch_add(now_ns() - begun, Relaxed);
        if !matches!(told, Ok(true)) {
            lane.timed.spoil();
        }
        Ok(())
    }
}

impl Timed {
    fn is_timed(&self) -> bool {
        self.is_timed.load(Relaxed)
    }

    fn spoil(&self) {
        // No run's.
        self.number.store(0, Relaxed);
    }
}

impl Lane {
    /// Whether the run that begins submits recordings, which it may if `can_replay`. The devices are done with the
    /// lane's last run if it `is_clean`.
    pub(super) fn pick(&self, is_clean: bool, can_replay: bool) -> bool {
        let pick = &self.counts().pick;
        self.timed.is_timed.store(false, Relaxed);
        if pick.is_open() && self.counts().refusal.get().is_some() {
            pick.give_up();
        }
        if !pick.is_open() {
            return can_replay && pick.is_recording();
        }
        let is_free = self.look_back(is_clean);
        let alone = pick.begin(is_clean);
        if !pick.is_open() || !can_replay {
            return can_replay && pick.is_recording();
        }
        let has_replayed = self.timed.has_replayed.swap(true, Relaxed);
        let (true, true, Some(number)) = (has_replayed, is_free, alone) else { return true };
        let Some(path) = pick.next() else { return true };
        self.engines.iter().filter_map(|on| on.timing.as_ref()).for_each(Timing::reset);
        self.timed.number.store(number, Relaxed);
        *self.timed.path.lock() = Some(path);
        self.timed.is_timed.store(true, Relaxed);
        path == Path::Recording
    }

    /// Takes the times of the lane's last run. Whether its events are free for the next one.
    fn look_back(&self, is_clean: bool) -> bool {
        let mut path = self.timed.path.lock();
        let Some(took) = *path else { return true };
        if !is_clean {
            // It failed: the device may still be at these events, and they say nothing.
            *path = None;
            return false;
        }
        let timings = || self.engines.iter().filter_map(|on| on.timing.as_ref());
        match timings().map(Timing::span).sum::<Result<Option<i64>>>() {
            Ok(None) => return false,
            Ok(Some(device_ns)) if device_ns >= 0 && self.timed.is_alone.load(Relaxed) => {
                let thread_ns = timings().map(|timing| timing.thread_ns.load(Relaxed)).sum();
                self.counts().pick.took(took, device_ns as u64, thread_ns);
            }
            Ok(Some(_)) => {}
            Err(_) => self.counts().pick.give_up(),
        }
        *path = None;
        true
    }

    /// A run has come to its end.
    pub(super) fn has_run(&self) {
        let pick = &self.counts().pick;
        if pick.is_open() {
            let is_alone = pick.end(self.timed.number.load(Relaxed));
            if self.timed.is_timed.swap(false, Relaxed) {
                self.timed.is_alone.store(is_alone, Relaxed);
            }
        }
    }
}
