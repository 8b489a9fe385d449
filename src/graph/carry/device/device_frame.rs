//! The state of a run on one engine: memory, streams and events, and where values are in them.

use super::frame_stream::{EventMark, FrameClock, FrameStream, mark_of};
use super::replays::{OfSegment, RunCounts};
use super::timing::{Timed, Timing};
use crate::base::time::now_ns;
use crate::base::{Error, Ref, Result};
use crate::device::{DeviceStreamAttr, Executable, Reached, traced_stream};
use crate::engine::Engine;
use crate::kernel::{Completion, KernelContext, Outputs, Rest};
use crate::memory::{MemoryBlock, Tag, View};
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The requirements of a program on one engine.
#[derive(Debug)]
pub(in crate::graph) struct EngineNeeds {
    pub engine: Ref<Engine>,
    pub arena_bytes: usize,
    pub num_streams: usize,
    /// For each piece of work: whether it records an event.
    pub records: Vec<bool>,
    /// For each segment: whether it records an event.
    pub segments: Vec<bool>,
    /// For each segment: the streams that it is spread over.
    pub spread: Vec<Vec<usize>>,
    /// For each branch or loop: the blocks that the host drives it by.
    pub controls: Vec<[usize; 2]>,
    /// Bytes of each copy to the engine.
    pub uploads: Vec<usize>,
    /// The number of loops in which the host does not wait.
    pub num_paces: usize,
    /// For each use of the stream of fetches: the bytes from or to the host's memory.
    pub fetches: Vec<usize>,
}

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum ValuePlace {
    /// In the run's memory there, at this offset.
    Arena(usize),
    /// At an address that stays.
    Fixed(usize),
    /// At the node's own input or output with this number.
    Input(usize),
    Output(usize),
}

impl ValuePlace {
    pub fn address(self, device_frame: &DeviceFrame, context: &KernelContext<'_>) -> usize {
        match self {
            ValuePlace::Arena(_) | ValuePlace::Fixed(_) => self.lasting(device_frame),
            ValuePlace::Input(input) => context.inputs()[input].data() as usize,
            ValuePlace::Output(output) => context.output_data(output) as usize,
        }
    }

    /// The address, for places other than a run's own tensors.
    pub fn lasting(self, device_frame: &DeviceFrame) -> usize {
        match self {
            ValuePlace::Arena(offset) => device_frame.arena.data() as usize + offset,
            ValuePlace::Fixed(address) => address,
            ValuePlace::Input(_) | ValuePlace::Output(_) => 0,
        }
    }
}

/// A predecessor for which a stream waits first.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Before {
    Piece(usize),
    Segment(usize),
    Upload(usize),
    /// If it was copied just now, and not by an earlier run.
    Constant(usize),
}

impl Before {
    pub fn mark(self, device_frame: &DeviceFrame) -> Result<&Arc<EventMark>> {
        match self {
            Before::Piece(piece) => mark_of(&device_frame.events[piece]),
            Before::Segment(segment) => mark_of(&device_frame.segments[segment].event),
            Before::Upload(upload) | Before::Constant(upload) => Ok(&device_frame.uploads[upload].event),
        }
    }
}

/// How runs of a frame use its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum FrameUse {
    /// The host's executor issues to streams of the frame.
    Streams,
    /// All work goes to a stream of the caller's (`direct`).
    Direct,
}

#[derive(Debug)]
pub(in crate::graph) struct DeviceFrame {
    pub engine: Ref<Engine>,
    pub arena: MemoryBlock,
    pub streams: Vec<FrameStream>,
    /// Copies to the engine and from it have streams of their own: they wait only for their own bytes. `None`: runs are
    /// on a stream of the caller's.
    copies: Option<[FrameStream; 2]>,
    pub events: Vec<Option<Arc<EventMark>>>,
    pub segments: Vec<OfSegment>,
    /// Set while the program's runs are timed.
    pub timing: Option<Timing>,
    /// Recordings of branches and loops as a whole, without the copies of the runs' own tensors.
    pub wholes: Vec<Mutex<Option<Arc<dyn Executable>>>>,
    pub uploads: Vec<UploadState>,
    pub fetched: Vec<Arc<Fetched>>,
    /// Iterations of loops in which the host does not wait.
    pub paces: Vec<AtomicU64>,
    /// The known progress of the device.
    pub done: Arc<FrameClock>,
    pub counts: Arc<RunCounts>,
    pub views: KeptViews,
}

/// Memory for the views of calls that are issued at once: the next run's calls have it again.
#[derive(Debug, Default)]
pub(in crate::graph) struct KeptViews(Mutex<Vec<Vec<View>>>);

impl KeptViews {
    pub fn with<R>(&self, call: impl FnOnce(&mut Vec<View>) -> R) -> R {
        let mut views = self.0.lock().pop().unwrap_or_default();
        let result = call(&mut views);
        views.clear();
        self.0.lock().push(views);
        result
    }
}

/// A node's call, the event of the work for which it waits, and the work that is left to the host.
pub(in crate::graph) struct AwaitedCall {
    pub done: Completion,
    pub written: Option<Arc<EventMark>>,
    pub rest: Option<Arc<dyn Rest>>,
    /// The device refused the event at first: the call fails, behind the event.
    pub refusal: Option<Error>,
}

impl std::fmt::Debug for AwaitedCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}

/// A copy from the engine, or the end of a piece of work, for which a node of the host waits.
#[derive(Debug)]
pub(in crate::graph) struct Fetched {
    pub event: EventMark,
    pub call: Mutex<Option<AwaitedCall>>,
    /// Pinned memory through which the bytes go, if the device has such memory: the host's own may be any.
    pub staging: Option<MemoryBlock>,
    engine: Ref<Engine>,
    done: Arc<FrameClock>,
}

impl Reached for Fetched {
    fn reached(&self) {
        let Some(AwaitedCall { done, written, rest, refusal }) = self.call.lock().take() else { return };
        // The failure of the work itself, before that of the stream that waited for it.
        let written = written.map_or(Ok(()), |mark| mark.event.is_reached().map(drop));
        // A run reports the first failure, not that of the stream that waited for it.
        let reached = written.and_then(|()| self.event.event.is_reached().map(drop)).map_err(Error::as_origin);
        if reached.is_ok() {
            self.event.tell(&self.done);
        }
        let result = reached.and(refusal.map_or(Ok(()), Err));
        if result.is_ok() {
            // The host's part may block, so it is not for this thread.
            done.leave(rest);
        }
        let _ = done.done(result.map_err(|error| error.at_engine(&self.engine.label())));
    }
}

impl Rest for Fetched {
    /// The bytes are in the staging memory.
    fn go_on(self: Arc<Self>, _context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let Some(staging) = self.staging.as_ref().filter(|_| outputs.count() == 1) else {
            return Err(Error::internal("a copy from a device without its memory"));
        };
        let mut output = outputs.only();
        let (data, bytes) = (staging.data(), output.len());
        self.engine.host_uses(data.addr(), bytes, false, "fetch");
        // SAFETY: the block has so many bytes, and the copy that writes them is over.
        let staged = unsafe { View::new(data, bytes, *output.desc()) };
        // SAFETY: as above.
        output.copy_from(unsafe { staged.as_bytes() });
        done.done(Ok(()))
    }
}

#[derive(Debug)]
pub(in crate::graph) struct UploadState {
    pub event: Arc<EventMark>,
    /// Holds the bytes during the copy, so the host's own may change as soon as the copy was issued.
    pub staging: MemoryBlock,
    /// A constant is copied once: by the first use of the graph that it is in, which may be inside of a branch.
    pub is_there: AtomicBool,
    /// It was copied by this run.
    pub is_new: AtomicBool,
}

impl DeviceFrame {
    pub fn make(needs: &EngineNeeds, owner: &str, way: FrameUse, counts: &Arc<RunCounts>) -> Result<DeviceFrame> {
        let engine = &needs.engine;
        let Some(accelerator) = engine.accelerator() else {
            return Err(Error::internal("a frame on the host's engine"));
        };
        let has_streams = way == FrameUse::Streams;
        // One for each stream of work, one for copies to the engine and one for copies from it.
        let num_streams = if has_streams { needs.num_streams + 2 } else { 0 };
        let stream = |what: &str, number: usize| {
            let name = format!("{owner} {what}");
            let stream = traced_stream(engine.device(), &DeviceStreamAttr { name: &name, priority: 0 }, None)?;
            Ok::<_, Error>(FrameStream::new(stream, (number, num_streams)))
        };
        let mark = || EventMark::new(accelerator, num_streams);
        let shared = || mark().map(Arc::new);
        let done = Arc::new(FrameClock::new(num_streams));
        let is_staged = accelerator.pinning().is_some();
        let fetched = |&bytes: &usize| {
            let tag = || Tag::text(format!("copies of {owner} from the engine"));
            let staging = (is_staged && bytes > 0).then(|| engine.host_memory().allocate(bytes, tag())).transpose()?;
            let (event, call, done) = (mark()?, Mutex::new(None), Arc::clone(&done));
            Ok(Arc::new(Fetched { event, call, staging, engine: Ref::clone(engine), done }))
        };
        let events = needs.records.iter().map(|&records| (records && has_streams).then(shared).transpose());
        let segments = needs
            .segments
            .iter()
            .map(|&records| (records && has_streams).then(shared).transpose())
            .map(|event| Ok(OfSegment { event: event?, recorded: Mutex::default() }));
        let (num_streams, fetches) = if has_streams { (needs.num_streams, &needs.fetches[..]) } else { (0, &[][..]) };
        let uploads = needs.uploads.iter().map(|&bytes| {
            let staging =
                engine.host_memory().allocate(bytes, Tag::text(format!("copies of {owner} to the engine")))?;
            Ok(UploadState {
                event: shared()?,
                staging,
                is_there: AtomicBool::new(false),
                is_new: AtomicBool::new(false),
            })
        });
        Ok(DeviceFrame {
            arena: engine.memory().allocate(needs.arena_bytes, Tag::text(format!("arena of {owner}")))?,
            streams: (0..num_streams).map(|i| stream(&format!("stream {i}"), i)).collect::<Result<_>>()?,
            copies: has_streams
                .then(|| Ok::<_, Error>([stream("uploads", num_streams)?, stream("fetches", num_streams + 1)?]))
                .transpose()?,
            events: events.collect::<Result<_>>()?,
            segments: segments.collect::<Result<_>>()?,
            timing: (counts.pick.is_open() && has_streams)
                .then(|| Timing::make(accelerator, &needs.spread))
                .transpose()?,
            wholes: needs.controls.iter().map(|_| Mutex::default()).collect(),
            uploads: uploads.collect::<Result<_>>()?,
            fetched: fetches.iter().map(fetched).collect::<Result<_>>()?,
            paces: (0..needs.num_paces).map(|_| AtomicU64::new(0)).collect(),
            done: Arc::clone(&done),
            engine: Ref::clone(engine),
            counts: Arc::clone(counts),
            views: KeptViews::default(),
        })
    }

    pub fn all_streams(&self) -> impl Iterator<Item = &FrameStream> {
        self.streams.iter().chain(self.copies.iter().flatten())
    }

    /// As `Accelerator::within`.
    pub fn within(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        match self.engine.accelerator() {
            Some(accelerator) => accelerator.within(work),
            None => work(),
        }
    }

    pub fn upload_stream(&self) -> Result<&FrameStream> {
        self.copies.as_ref().map(|[uploads, _]| uploads).ok_or_else(without_streams)
    }

    pub fn fetch_stream(&self) -> Result<&FrameStream> {
        self.copies.as_ref().map(|[_, fetches]| fetches).ok_or_else(without_streams)
    }

    /// Calls the engine, as part of a run that may be timed. `segment` is the segment of the call, behind which an
    /// event is recorded, and the stream if it is one.
    pub fn timed(
        &self,
        run: &Timed,
        segment: Option<(usize, Option<usize>)>,
        ask: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(timing) = self.timing.as_ref().filter(|_| run.is_timed()) else { return ask() };
        let begun = now_ns();
        let mut told = timing.begin(&self.streams).map(|()| true);
        ask()?;
        if let (Some((segment, only)), Ok(true)) = (segment, &told) {
            told = timing.end(&self.streams, segment, only);
        }
        timing.took(now_ns() - begun);
        if !matches!(told, Ok(true)) {
            run.spoil();
        }
        Ok(())
    }
}

fn without_streams() -> Error {
    Error::internal("a frame without streams of its own was asked for one")
}
