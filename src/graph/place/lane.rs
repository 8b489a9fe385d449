//! What the runs of a program have on engines that work on their own: memory, streams and events. One *lane* for each
//! step instance, so that runs side by side do not meet; it is made by the first run and kept.
//!
//! Kernels are handed the lane of their run by their context (`KernelContext::frame`).
//!
//! | state | meaning                                                  | next                                             |
//! |-------|----------------------------------------------------------|--------------------------------------------------|
//! | CLEAN | its streams are done with all that they were given       | USED by `begin`                                  |
//! | USED  | a run has it                                             | CLEAN by `end`, the last node of a run that went well |
//!
//! The end of a run looks at the streams themselves (`line`), and waits, without holding a thread, for what no node has
//! waited for. So work that was issued is never behind a lane that counts as clean, nor hidden from a wait for
//! everything.
//!
//! A run that fails does not come to its end, and devices may still be at its work when the next one takes the lane, in
//! the same streams, with the same staging memory. So who finds a lane USED waits for its streams first, without
//! holding a thread.

use super::control::OfControl;
use super::driven::Driven;
use super::kernels::{mark_of, of};
use super::line::{Clock, Line, Mark};
use super::replays::{OfSegment, Recorded, RunCounts, Writer};
use super::timing::{Timed, Timing};
use crate::base::{Code, Error, Ref, Result};
use crate::device::{DeviceEvent, Reached, StreamAttr, Then};
use crate::engine::{Engine, Tensor};
use crate::graph::compiled::Frames;
use crate::kernel::{Completion, Frame, KernelContext, Outputs, Rest};
use crate::memory::{Block, Tag, View};
use crate::stream::{Account, Aside};
use crate::sync::{Mutex, OnceLock, fork};
use crate::threadpool::ThreadPool;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};

/// What a program needs on one engine.
#[derive(Debug)]
pub(super) struct Needs {
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

/// What all nodes of a program's that have to do with devices share.
#[derive(Debug)]
pub(in crate::graph) struct Lanes {
    /// "program 'digits'"
    owner: String,
    /// Known once all of the program has been placed.
    pub(super) needs: OnceLock<Vec<Needs>>,
    lanes: Mutex<Vec<Arc<Lane>>>,
    pub(super) counts: Arc<RunCounts>,
    /// Constants in the engines' memory. Nodes have their addresses.
    pub(super) constants: OnceLock<Vec<Ref<Tensor>>>,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub engines: Vec<OnEngine>,
    is_used: AtomicBool,
    /// A run has come to its end, and none has failed since: constants are where they belong.
    is_warm: AtomicBool,
    /// The run submits segments.
    is_replay: AtomicBool,
    pub timed: Timed,
    counts: Arc<RunCounts>,
    owner: String,
    /// Recordings that were replaced, and that a device may still be at.
    retired: Mutex<Vec<Recorded>>,
    has_retired: AtomicBool,
}

/// What runs of a lane do with its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The host's executor issues to streams of the lane's.
    Streams,
    /// All goes to a stream of the caller's (`direct`).
    Direct,
}

#[derive(Debug)]
pub(super) struct OnEngine {
    pub engine: Ref<Engine>,
    pub arena: Block,
    pub streams: Vec<Line>,
    /// Copies to the engine and from it have streams of their own: they wait for their own bytes only. None: runs are
    /// on a stream of the caller's.
    copies: Option<[Line; 2]>,
    pub events: Vec<Option<Arc<Mark>>>,
    pub segments: Vec<OfSegment>,
    /// If the program's runs are still timed.
    pub timing: Option<Timing>,
    pub controls: Vec<OfControl>,
    pub uploads: Vec<Upload>,
    pub fetched: Vec<Arc<Fetched>>,
    /// Iterations of loops that the host does not wait in.
    pub paces: Vec<AtomicU64>,
    /// How far the device is known to have got.
    done: Arc<Clock>,
}

/// A node's call, the event of the work that it waits for, and what is left to do on the host.
pub(super) struct Call {
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
pub(super) struct Fetched {
    pub event: Mark,
    pub call: Mutex<Option<Call>>,
    /// Pinned memory that the bytes come through, if the device knows such memory: the host's own may be any.
    pub staging: Option<Block>,
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
pub(super) struct Upload {
    pub event: Arc<Mark>,
    /// The bytes on their way: so the host's own may change as soon as the copy was issued.
    pub staging: Block,
    /// A constant is copied once: by whoever comes first to the graph that it is in, which may be inside of a branch.
    pub is_there: AtomicBool,
    /// It was copied when the run came to it last.
    pub is_new: AtomicBool,
}

impl Lanes {
    pub(super) fn new(owner: String) -> Lanes {
        Lanes {
            owner,
            needs: OnceLock::new(),
            lanes: Mutex::default(),
            counts: Arc::default(),
            constants: OnceLock::new(),
        }
    }

    /// The thread that does an engine's part, if it has one. Known once all has been placed.
    pub(super) fn launcher(&self, engine: usize) -> Option<&Ref<ThreadPool>> {
        self.needs.get()?.get(engine)?.engine.launcher()
    }

    /// What the work of a run on engines may still use, which has failed, goes when the engines have done all that they
    /// were asked for: its own tensors, and the program with its constants and kernels.
    pub fn keep(&self, held: Arc<dyn Any + Send + Sync>) {
        for lane in self.lanes.lock().iter().filter(|lane| lane.is_busy()) {
            for on in &lane.engines {
                let Some(accelerator) = on.engine.accelerator() else { continue };
                for line in on.lines() {
                    // A device that takes no event is lost, and touches nothing any more.
                    let Ok(event) = accelerator.event(false) else { continue };
                    if line.look().record(&event).is_ok() {
                        let held = Arc::clone(&held);
                        accelerator.when_reached(&event, Then::once(move || drop(held)));
                    }
                }
            }
        }
    }

    pub(super) fn make(&self, way: Way) -> Result<Lane> {
        let needs = self.needs.get().map_or(&[][..], |needs| needs);
        let engines = needs.iter().map(|needs| {
            OnEngine::make(needs, &self.owner, way, self.counts.pick.is_open())
                .map_err(|error| error.within(format_args!("engine {}", needs.engine.label())))
        });
        Ok(Lane {
            engines: engines.collect::<Result<_>>()?,
            owner: self.owner.clone(),
            is_used: AtomicBool::new(false),
            is_warm: AtomicBool::new(false),
            is_replay: AtomicBool::new(false),
            timed: Timed::default(),
            counts: Arc::clone(&self.counts),
            retired: Mutex::default(),
            has_retired: AtomicBool::new(false),
        })
    }
}

impl Frames for Lanes {
    fn make(&self) -> Result<Arc<Frame>> {
        // Not under the lock: devices may be slow.
        let lane = Arc::new(self.make(Way::Streams).map_err(|error| error.within(format_args!("{}", self.owner)))?);
        lane.engines.iter().for_each(|on| on.engine.account().add_aside(&lane));
        let mut lanes = self.lanes.lock();
        // Others, of which the runs' memory is gone.
        let gone = lanes.extract_if(.., |lane| Arc::strong_count(lane) == 1 && !lane.is_busy()).collect::<Vec<_>>();
        lanes.push(Arc::clone(&lane));
        drop(lanes);
        drop(gone);
        Ok(lane)
    }
}

/// The program goes. What devices may still be at, behind a run that failed, keeps its lane until it is done.
impl Drop for Lanes {
    fn drop(&mut self) {
        for lane in self.lanes.lock().drain(..) {
            if !lane.is_busy() || fork::forked() {
                continue;
            }
            let kept = Arc::clone(&lane);
            if let Err(error) = lane.begin(move |_| drop(kept))
                && error.code() != Code::DeviceLost
            {
                // Nobody will say when.
                std::mem::forget(lane);
            }
        }
    }
}

/// A wait for everything covers what a lane's streams were given: a run that failed has left that behind, and one under
/// way in another thread may wait for it.
impl Aside for Lane {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn is_busy(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `end`; who was told of a run that has begun sees that, too.
        self.is_used.load(Acquire)
    }

    fn outstanding(&self, account: &Account) -> Result<Vec<Arc<dyn DeviceEvent>>> {
        let mut events = Vec::new();
        for on in self.engines.iter().filter(|on| std::ptr::eq(&raw const **on.engine.account(), account)) {
            let Some(accelerator) = on.engine.accelerator() else { continue };
            for line in on.lines() {
                events.push(line.behind(accelerator, false)?.event);
            }
        }
        Ok(events)
    }
}

impl OnEngine {
    fn make(needs: &Needs, owner: &str, way: Way, is_timed: bool) -> Result<OnEngine> {
        let engine = &needs.engine;
        let Some(accelerator) = engine.accelerator() else {
            return Err(Error::internal("a lane on the host's engine"));
        };
        let has_streams = way == Way::Streams;
        // Those for work, that for copies to the engine and that for copies from it.
        let lines = if has_streams { needs.num_streams + 2 } else { 0 };
        let stream = |what: &str, number: usize| {
            let name = format!("{owner} {what}");
            let stream = accelerator.stream(&StreamAttr { name: &name, priority: 0 })?;
            Ok::<_, Error>(Line::new(stream, (number, lines)))
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
        let controls = needs.controls.iter().map(|&sizes| {
            let driven = Driven::make(engine, accelerator.event(false)?, sizes, owner)?;
            Ok(OfControl { whole: Mutex::new(None), driven })
        });
        let (num_streams, fetches) = if has_streams { (needs.num_streams, &needs.fetches[..]) } else { (0, &[][..]) };
        let uploads = needs.uploads.iter().map(|&bytes| {
            let staging =
                engine.host_memory().allocate(bytes, Tag::text(format!("copies of {owner} to the engine")))?;
            Ok(Upload { event: shared()?, staging, is_there: AtomicBool::new(false), is_new: AtomicBool::new(false) })
        });
        Ok(OnEngine {
            arena: engine.memory().allocate(needs.arena_bytes, Tag::text(format!("arena of {owner}")))?,
            streams: (0..num_streams).map(|i| stream(&format!("stream {i}"), i)).collect::<Result<_>>()?,
            copies: has_streams
                .then(|| Ok::<_, Error>([stream("uploads", num_streams)?, stream("fetches", num_streams + 1)?]))
                .transpose()?,
            events: events.collect::<Result<_>>()?,
            segments: segments.collect::<Result<_>>()?,
            timing: (is_timed && has_streams).then(|| Timing::make(accelerator, &needs.spread)).transpose()?,
            controls: controls.collect::<Result<_>>()?,
            uploads: uploads.collect::<Result<_>>()?,
            fetched: fetches.iter().map(fetched).collect::<Result<_>>()?,
            paces: (0..needs.num_paces).map(|_| AtomicU64::new(0)).collect(),
            done: Arc::clone(&done),
            engine: Ref::clone(engine),
        })
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.streams.iter().chain(self.copies.iter().flatten())
    }

    /// As `Accelerator::within`.
    pub fn within(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        match self.engine.accelerator() {
            Some(accelerator) => accelerator.within(work),
            None => work(),
        }
    }

    pub fn upload_stream(&self) -> Result<&Line> {
        self.copies.as_ref().map(|[uploads, _]| uploads).ok_or_else(without_streams)
    }

    pub fn fetch_stream(&self) -> Result<&Line> {
        self.copies.as_ref().map(|[_, fetches]| fetches).ok_or_else(without_streams)
    }
}

impl Lane {
    /// A run begins: `then` is told when the lane is free for it, maybe at once and in this call.
    pub fn begin(&self, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        // ORDERING: Acquire pairs with the Release in `end`; one run at a time has the step, and so the lane.
        let is_clean = !self.is_used.swap(true, Acquire);
        self.choose(is_clean);
        if is_clean {
            then(Ok(()));
            return Ok(());
        }
        for on in &self.engines {
            on.uploads.iter().for_each(|upload| upload.is_there.store(false, Relaxed));
        }
        // What went wrong is told already, by the run that left this behind.
        self.when_done(|_, _| true, true, move |_| then(Ok(())))
    }

    /// Has `then` told when the devices are done with all that these lines were given until now, maybe at once and in
    /// this call; with the first failure among them. `clears` has their streams work again after one.
    fn when_done(
        &self,
        which: impl Fn(&OnEngine, &Line) -> bool,
        clears: bool,
        then: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        let mut marks = Vec::new();
        for on in &self.engines {
            let Some(accelerator) = on.engine.accelerator() else { continue };
            for line in on.lines().filter(|line| which(on, line)) {
                let mark = line.behind(accelerator, clears).map_err(of(&on.engine.label()))?;
                marks.push((Ref::clone(&on.engine), Arc::clone(&on.done), mark));
            }
        }
        if marks.is_empty() {
            then(Ok(()));
            return Ok(());
        }
        let events: Vec<_> =
            marks.iter().map(|(engine, _, mark)| (Ref::clone(engine), Arc::clone(&mark.event))).collect();
        let behind = Arc::new((Mutex::new(Some((then, marks))), AtomicUsize::new(events.len())));
        for (engine, event) in &events {
            let behind = Arc::clone(&behind);
            let told = move || {
                let (then, left) = &*behind;
                // ORDERING: AcqRel; the last one is behind what the others were told.
                if left.fetch_sub(1, AcqRel) > 1 {
                    return;
                }
                let Some((then, marks)) = then.lock().take() else { return };
                let mut result = Ok(());
                for (engine, done, mark) in &marks {
                    let reached = mark.event.is_reached().map(|_| mark.tell(done));
                    result = result.and(reached.map_err(|error| of(&engine.label())(error.as_origin())));
                }
                // Behind the end of the run the program may go, and this thread is not to be the last to have an
                // engine.
                drop(marks);
                then(result);
            };
            if let Some(accelerator) = engine.accelerator() {
                accelerator.when_reached(event, Then::once(told));
            }
        }
        Ok(())
    }

    /// How the run goes that begins.
    fn choose(&self, is_clean: bool) {
        if self.engines.iter().all(|on| on.segments.is_empty()) {
            return;
        }
        // ORDERING: Relaxed, here and in `end`; one run at a time has the lane, `is_used` orders them, and edges order
        // a run's nodes.
        let is_warm = is_clean && self.is_warm.load(Relaxed);
        self.is_warm.store(false, Relaxed);
        let is_replay = self.pick(is_clean, is_warm && self.counts.refusal.get().is_none());
        self.is_replay.store(is_replay, Relaxed);
        let counter = if is_replay { &self.counts.replayed } else { &self.counts.issued };
        counter.fetch_add(1, Relaxed);
    }

    /// Whether the run submits segments, and not each piece by itself.
    pub fn is_replay(&self) -> bool {
        self.is_replay.load(Relaxed)
    }

    pub fn counts(&self) -> &RunCounts {
        &self.counts
    }

    /// The event that this run records behind a value's writer.
    pub fn mark_behind(&self, engine: usize, writer: Writer) -> Result<&Arc<Mark>> {
        let on = &self.engines[engine];
        let event = match writer.segment.filter(|_| self.is_replay()) {
            Some(segment) => &on.segments[segment].event,
            None => &on.events[writer.piece],
        };
        mark_of(event)
    }

    /// A recording is replaced, whose launches may be under way.
    pub fn retire(&self, recorded: Recorded) {
        self.retired.lock().push(recorded);
        self.has_retired.store(true, Relaxed);
    }

    /// No launch of what was replaced is under way.
    pub fn drop_retired(&self) {
        // ORDERING: Relaxed; by who has the lane.
        if self.has_retired.load(Relaxed) {
            self.has_retired.store(false, Relaxed);
            drop(std::mem::take(&mut *self.retired.lock()));
        }
    }

    /// A run has come to its end: `then` is told when the devices are done with all of it, maybe at once and in this
    /// call. As a rule the run's nodes have waited for all of it, and no device is asked.
    pub fn end(self: &Arc<Self>, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let is_left = |on: &OnEngine, line: &Line| !line.is_done(&on.done);
        if !self.engines.iter().any(|on| on.lines().any(|line| is_left(on, line))) {
            self.is_clean();
            then(Ok(()));
            return Ok(());
        }
        let lane = Arc::clone(self);
        self.when_done(is_left, false, move |result| {
            if result.is_ok() {
                lane.is_clean();
            }
            drop(lane);
            then(result);
        })
    }

    /// The devices are done with all of the run.
    fn is_clean(&self) {
        self.drop_retired();
        self.has_run();
        self.is_warm.store(true, Relaxed);
        self.is_used.store(false, Release);
    }
}

fn without_streams() -> Error {
    Error::internal("a lane without streams of its own was asked for one")
}
