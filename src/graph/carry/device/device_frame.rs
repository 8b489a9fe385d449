//! What a run has on one engine: memory, streams and events, and where values are in them.

use super::frame_stream::{Clock, FrameStream, Mark, mark_of};
use super::replays::{OfSegment, RunCounts};
use super::timing::{Timed, Timing};
use crate::base::time::now_ns;
use crate::base::{Error, Ref, Result};
use crate::device::{Executable, Reached, StreamAttr};
use crate::engine::Engine;
use crate::kernel::{Completion, KernelContext, Outputs, Rest};
use crate::memory::{MemoryBlock, Tag, View};
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What a program needs on one engine.
#[derive(Debug)]
pub(in crate::graph) struct Needs {
    pub engine: Ref<Engine>,
    pub arena_bytes: usize,
    pub num_streams: usize,
    /// For each piece of work: whether it records an event.
    pub records: Vec<bool>,
    /// For each segment: whether it records one.
    pub segments: Vec<bool>,
    /// For each segment: the streams that it is spread over.
    pub spread: Vec<Vec<usize>>,
    /// For each branch or loop: the blocks that the host drives it by.
    pub controls: Vec<[usize; 2]>,
    /// Bytes of each copy to the engine.
    pub uploads: Vec<usize>,
    /// Loops that the host does not wait in.
    pub num_paces: usize,
    /// For each thing on the stream of fetches: the bytes from or to the host's memory.
    pub fetches: Vec<usize>,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Source {
    /// In the run's memory there, so many bytes in.
    Arena(usize),
    /// At an address that stays.
    Fixed(usize),
    /// Where the node's own input or output with this number is.
    Input(usize),
    Output(usize),
}

impl Source {
    pub fn address(self, on: &DeviceFrame, context: &KernelContext<'_>) -> usize {
        match self {
            Source::Arena(_) | Source::Fixed(_) => self.lasting(on),
            Source::Input(input) => context.inputs()[input].data() as usize,
            Source::Output(output) => context.output_data(output) as usize,
        }
    }

    /// The address of what is no run's own.
    pub fn lasting(self, on: &DeviceFrame) -> usize {
        match self {
            Source::Arena(offset) => on.arena.data() as usize + offset,
            Source::Fixed(address) => address,
            Source::Input(_) | Source::Output(_) => 0,
        }
    }
}

/// What a stream waits for first.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Before {
    Piece(usize),
    Segment(usize),
    Upload(usize),
    /// If it was copied just now, and not by an earlier run.
    Constant(usize),
}

impl Before {
    pub fn mark(self, on: &DeviceFrame) -> Result<&Arc<Mark>> {
        match self {
            Before::Piece(piece) => mark_of(&on.events[piece]),
            Before::Segment(segment) => mark_of(&on.segments[segment].event),
            Before::Upload(upload) | Before::Constant(upload) => Ok(&on.uploads[upload].event),
        }
    }
}

/// What runs of a frame do with its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Way {
    /// The host's executor issues to streams of the frame's.
    Streams,
    /// All goes to a stream of the caller's (`direct`).
    Direct,
}

#[derive(Debug)]
pub(in crate::graph) struct DeviceFrame {
    pub engine: Ref<Engine>,
    pub arena: MemoryBlock,
    pub streams: Vec<FrameStream>,
    /// Copies to the engine and from it have streams of their own: they wait for their own bytes only. None: runs are
    /// on a stream of the caller's.
    copies: Option<[FrameStream; 2]>,
    pub events: Vec<Option<Arc<Mark>>>,
    pub segments: Vec<OfSegment>,
    /// If the program's runs are still timed.
    pub timing: Option<Timing>,
    /// Recordings of branches and loops as a whole, but for the copies of the runs' own tensors.
    pub wholes: Vec<Mutex<Option<Arc<dyn Executable>>>>,
    pub uploads: Vec<Upload>,
    pub fetched: Vec<Arc<Fetched>>,
    /// Iterations of loops that the host does not wait in.
    pub paces: Vec<AtomicU64>,
    /// How far the device is known to have got.
    pub done: Arc<Clock>,
    pub counts: Arc<RunCounts>,
}

/// A node's call, the event of the work that it waits for, and what is left to do on the host.
pub(in crate::graph) struct Call {
    pub done: Completion,
    pub written: Option<Arc<Mark>>,
    pub rest: Option<Arc<dyn Rest>>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}

/// A copy from the engine, or the end of a piece of work, that a node of the host's waits for.
#[derive(Debug)]
pub(in crate::graph) struct Fetched {
    pub event: Mark,
    pub call: Mutex<Option<Call>>,
    /// Pinned memory that the bytes come through, if the device knows such memory: the host's own may be any.
    pub staging: Option<MemoryBlock>,
    engine: Ref<Engine>,
    done: Arc<Clock>,
}

impl Reached for Fetched {
    fn reached(&self) {
        let Some(Call { done, written, rest }) = self.call.lock().take() else { return };
        // The failure of the work itself, before that of the stream that waited for it.
        let written = written.map_or(Ok(()), |mark| mark.event.is_reached().map(drop));
        // A run tells of what failed first, not of the stream that waited for it.
        let result = written.and_then(|()| self.event.event.is_reached().map(drop)).map_err(Error::as_origin);
        if result.is_ok() {
            self.event.tell(&self.done);
            // The host's part is for a thread that may be held up.
            done.leave(rest);
        }
        let _ = done.done(result.map_err(|error| error.within(format_args!("engine {}", self.engine.label()))));
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
pub(in crate::graph) struct Upload {
    pub event: Arc<Mark>,
    /// The bytes on their way: so the host's own may change as soon as the copy was issued.
    pub staging: MemoryBlock,
    /// A constant is copied once: by whoever comes first to the graph that it is in, which may be inside of a branch.
    pub is_there: AtomicBool,
    /// It was copied when the run came to it last.
    pub is_new: AtomicBool,
}

impl DeviceFrame {
    pub fn make(needs: &Needs, owner: &str, way: Way, counts: &Arc<RunCounts>) -> Result<DeviceFrame> {
        let engine = &needs.engine;
        let Some(accelerator) = engine.accelerator() else {
            return Err(Error::internal("a frame on the host's engine"));
        };
        let has_streams = way == Way::Streams;
        // Those for work, that for copies to the engine and that for copies from it.
        let lines = if has_streams { needs.num_streams + 2 } else { 0 };
        let stream = |what: &str, number: usize| {
            let name = format!("{owner} {what}");
            let stream = accelerator.stream(&StreamAttr { name: &name, priority: 0 })?;
            Ok::<_, Error>(FrameStream::new(stream, (number, lines)))
        };
        let mark = || Mark::new(accelerator, lines);
        let shared = || mark().map(Arc::new);
        let done = Arc::new(Clock::new(lines));
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
            Ok(Upload { event: shared()?, staging, is_there: AtomicBool::new(false), is_new: AtomicBool::new(false) })
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
        })
    }

    pub fn lines(&self) -> impl Iterator<Item = &FrameStream> {
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

    /// Asks the engine for something, as part of a run that may be timed. `segment` is what it belongs to behind which
    /// an event comes, and the stream if that is one.
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
