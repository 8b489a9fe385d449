//! A device's stream with a track in traces: each launch, copy, fill and recording is there with the times that the
//! device did it, and with the name that the host knows it by.
//!
//! While a trace records, there is an event with timing before and behind each piece of work. Nobody waits for them:
//! they are looked at when more work is issued and `MOST` pieces are under way, and when the trace is read. If so many
//! are under way still, the next one is lost, and counted. Devices whose events have no times have no tracks.
//!
//! While none records, a stream pays for one read of a word with each piece.
#![forbid(unsafe_code)]

use super::device_clock::{DeviceAnchor, DeviceClock};
use super::{
    Device, DeviceEvent, DeviceStream, DeviceStreamAttr, Executable, Fill, Launch, LaunchScratch, PreparedLaunch,
    Transfer, label,
};
use crate::base::time::now_ns;
use crate::base::{Error, Result};
use crate::sync::Mutex;
use crate::trace::{self, Collect, FAILED, KeptTraces, LAST, NONE, TraceEvent, TraceRecord, Track};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Pieces of work under way whose times are not known yet.
const MOST: usize = 500;

/// A new stream of a device, or one of the host's by its handle, with a track.
pub fn traced_stream(
    device: &Arc<dyn Device>,
    attr: &DeviceStreamAttr<'_>,
    wrapped: Option<u64>,
) -> Result<Box<dyn DeviceStream>> {
    let Some(accelerator) = device.accelerator() else {
        return Err(Error::internal("a stream of a device that is the host"));
    };
    let inner = match wrapped {
        Some(handle) => accelerator.wrap_stream(attr, handle)?,
        None => accelerator.stream(attr)?,
    };
    let track = Arc::new(StreamTrack {
        device: Arc::clone(device),
        name: format!("{} {}", label(&**device), attr.name),
        state: Mutex::default(),
    });
    Ok(Box::new(TracedStream { inner, track }))
}

#[derive(Debug)]
struct TracedStream {
    inner: Box<dyn DeviceStream>,
    track: Arc<StreamTrack>,
}

#[derive(Debug)]
struct StreamTrack {
    device: Arc<dyn Device>,
    name: String,
    state: Mutex<TrackState>,
}

/// Not locked while the device is asked: it may do work of others to answer.
#[derive(Debug, Default)]
struct TrackState {
    /// Made for the first trace.
    track: Option<Track>,
    clock: Option<Arc<DeviceClock>>,
    under_way: VecDeque<Piece>,
    spare: Vec<[Arc<dyn DeviceEvent>; 2]>,
    /// A thread is looking at those that were under way.
    is_collecting: bool,
    /// The end of the last piece on the host's clock.
    last_ns: u64,
}

/// A piece of work, issued or about to be.
struct Piece {
    traces: KeptTraces,
    name: u32,
    bytes: u32,
    issued_ns: u64,
    before: Option<Arc<DeviceAnchor>>,
    events: [Arc<dyn DeviceEvent>; 2],
    is_last: bool,
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Piece({})", self.name)
    }
}

impl TracedStream {
    /// Issues a piece of work.
    #[inline]
    fn piece(&self, name: &str, bytes: usize, issue: impl FnOnce() -> Result<()>) -> Result<()> {
        if !trace::is_on() {
            return issue();
        }
        let begun = self.begin(name, bytes);
        let issued = issue();
        if let Some(piece) = begun
            && issued.is_ok()
        {
            self.end(piece);
        }
        issued
    }

    #[cold]
    fn begin(&self, name: &str, bytes: usize) -> Option<Piece> {
        if self.inner.may_be_captured() && !matches!(self.inner.is_capturing(), Ok(false)) {
            return None;
        }
        let traces = KeptTraces::of_thread()?;
        let clock = self.track.clock()?;
        let before = clock.before();
        if !clock.is_there() {
            return None;
        }
        if self.track.enter(&traces)? >= MOST {
            self.track.write(false);
        }
        let Some(events) = self.track.events() else {
            self.track.lose(&traces);
            return None;
        };
        let bytes = u32::try_from(bytes).unwrap_or(NONE);
        // A node's work has its name alone, as in the records of the host.
        let node = name.strip_prefix("node '").and_then(|name| name.strip_suffix('\''));
        let name = trace::intern(node.unwrap_or(name)).unwrap_or(NONE);
        let issued_ns = now_ns();
        self.inner.record(&events[0]).ok()?;
        Some(Piece { traces, name, bytes, issued_ns, before, events, is_last: false })
    }

    #[cold]
    fn end(&self, piece: Piece) {
        if self.inner.record(&piece.events[1]).is_ok() {
            self.track.state.lock().under_way.push_back(piece);
        }
    }
}

impl StreamTrack {
    fn clock(&self) -> Option<Arc<DeviceClock>> {
        let mut state = self.state.lock();
        if state.clock.is_none() {
            state.clock = DeviceClock::of(&self.device);
        }
        state.clock.clone()
    }

    /// Makes the track known to traces. How many pieces are under way; `None` for want of memory.
    fn enter(self: &Arc<Self>, traces: &KeptTraces) -> Option<usize> {
        let source: Weak<dyn Collect> = Arc::<StreamTrack>::downgrade(self);
        let mut state = self.state.lock();
        if state.track.is_none() {
            state.track = Track::new(&self.name);
        }
        state.track.as_mut()?.enter(traces, Some(&source));
        Some(state.under_way.len())
    }

    fn lose(&self, traces: &KeptTraces) {
        if let Some(track) = &self.state.lock().track {
            track.lose(traces);
        }
    }

    /// Events for a piece; `None` if there are too many under way, or the device has none.
    fn events(&self) -> Option<[Arc<dyn DeviceEvent>; 2]> {
        let mut state = self.state.lock();
        // Once: one more than there may be is for a piece that is put back.
        if state.under_way.capacity() == 0 {
            state.under_way.try_reserve_exact(MOST + 1).ok()?;
        }
        if state.under_way.len() >= MOST {
            return None;
        }
        let spare = state.spare.pop();
        drop(state);
        let accelerator = self.device.accelerator()?;
        spare.or_else(|| Some([accelerator.event(true).ok()?, accelerator.event(true).ok()?]))
    }

    /// The record of a piece that is over.
    fn record_of(piece: &Piece, later: Option<&DeviceAnchor>, last_ns: u64, failed: bool) -> Option<TraceRecord> {
        let later = later?;
        let before = piece.before.as_deref().unwrap_or(later);
        let [begin, end] = before.times(later, [&*piece.events[0], &*piece.events[1]])?;
        // Certain bounds: it was issued before, it is over now, and it came behind the last one.
        let begin = begin.max(piece.issued_ns).max(last_ns);
        let end = end.min(now_ns()).max(begin);
        Some(TraceRecord {
            length: end - begin,
            ready: before.slack_ns.max(later.slack_ns),
            object: piece.name,
            other: piece.bytes,
            flags: if failed { FAILED } else { 0 } | if piece.is_last { LAST } else { 0 },
            ..TraceRecord::new(TraceEvent::Device, piece.traces.frame, begin)
        })
    }

    /// Writes the records of what is over.
    fn write(&self, is_patient: bool) {
        let Some((clock, mut last_ns)) = self.begin_collecting() else { return };
        let mut later = None;
        // The device is asked without the lock; meanwhile no other thread takes a piece.
        loop {
            let Some(piece) = self.state.lock().under_way.pop_front() else { break };
            let reached = piece.events[1].is_reached();
            if matches!(reached, Ok(false)) {
                self.state.lock().under_way.push_front(piece);
                break;
            }
            let later = later.get_or_insert_with(|| clock.behind(is_patient));
            let record = StreamTrack::record_of(&piece, later.as_deref(), last_ns, reached.is_err());
            let has_times = clock.is_there();
            let mut state = self.state.lock();
            match (&state.track, record) {
                (Some(track), Some(record)) => {
                    last_ns = record.begin + record.length;
                    track.record(&piece.traces, record);
                }
                (Some(track), None) if has_times => track.lose(&piece.traces),
                _ => {}
            }
            if state.spare.try_reserve(1).is_ok() {
                state.spare.push(piece.events);
            }
        }
        let mut state = self.state.lock();
        (state.last_ns, state.is_collecting) = (last_ns, false);
    }

    /// `None` if there is nothing to write, or another thread does.
    fn begin_collecting(&self) -> Option<(Arc<DeviceClock>, u64)> {
        let mut state = self.state.lock();
        if state.is_collecting || state.under_way.is_empty() {
            return None;
        }
        let clock = state.clock.clone()?;
        state.is_collecting = true;
        Some((clock, state.last_ns))
    }
}

impl Collect for StreamTrack {
    fn collect(&self, is_patient: bool) {
        self.write(is_patient);
    }
}

impl Drop for TracedStream {
    fn drop(&mut self) {
        // The stream has done all of its work: its owner waits for that.
        self.track.write(false);
    }
}

impl DeviceStream for TracedStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.piece(launch.name, usize::MAX, || self.inner.launch(launch))
    }

    fn scratch(&self, launch: &Launch<'_>, spare: usize) -> Result<Option<LaunchScratch>> {
        self.inner.scratch(launch, spare)
    }

    fn prepare(&self, launch: &Launch<'_>, before: Option<Box<dyn PreparedLaunch>>) -> Option<Box<dyn PreparedLaunch>> {
        self.inner.prepare(launch, before)
    }

    fn launch_prepared(&self, prepared: &dyn PreparedLaunch, name: &str) -> Result<()> {
        self.piece(name, usize::MAX, || self.inner.launch_prepared(prepared, name))
    }

    fn copy(&self, transfer: &Transfer<'_>) -> Result<()> {
        self.piece(transfer.name, transfer.bytes, || self.inner.copy(transfer))
    }

    fn fill(&self, fill: &Fill<'_>) -> Result<()> {
        self.piece(fill.name, fill.bytes, || self.inner.fill(fill))
    }

    fn replay(&self, executable: &Arc<dyn Executable>, name: &str) -> Result<()> {
        self.piece(name, usize::MAX, || self.inner.replay(executable, name))
    }

    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        self.inner.record(event)
    }

    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        self.inner.wait(event)
    }

    fn foreign_event(&self, event: u64, records: bool) -> Result<()> {
        self.inner.foreign_event(event, records)
    }

    fn may_be_captured(&self) -> bool {
        self.inner.may_be_captured()
    }

    fn is_capturing(&self) -> Result<bool> {
        self.inner.is_capturing()
    }

    fn keep(&self, what: Box<dyn Any + Send>) -> Result<()> {
        self.inner.keep(what)
    }

    fn put_aside(&self, what: Box<dyn Any + Send>) {
        self.inner.put_aside(what);
    }

    fn tells_idle(&self) -> bool {
        self.inner.tells_idle()
    }

    fn is_idle(&self) -> bool {
        self.inner.is_idle()
    }

    fn clear_error(&self) {
        self.inner.clear_error();
    }

    #[cold]
    fn ends_run(&self, frame: u32) {
        let mut state = self.track.state.lock();
        if let Some(last) = state.under_way.back_mut().filter(|last| last.traces.frame == frame) {
            last.is_last = true;
        }
    }

    fn native_handle(&self) -> Result<u64> {
        self.inner.native_handle()
    }
}
