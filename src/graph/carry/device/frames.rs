//! What the runs of a program have on engines that work on their own: memory, streams and events. One *frame* for each
//! step instance, so that runs side by side do not meet; it is made by the first run and kept.
//!
//! Kernels are handed the frame of their run by their context (`KernelContext::frame`).
//!
//! | state | meaning                                                  | next                                             |
//! |-------|----------------------------------------------------------|--------------------------------------------------|
//! | CLEAN | its streams are done with all that they were given       | USED by `begin`                                  |
//! | USED  | a run has it                                             | CLEAN by `end`, the last node of a run that went well |
//!
//! The end of a run looks at the streams themselves (`line`), and waits, without holding a thread, for what no node has
//! waited for. So work that was issued is never behind a frame that counts as clean, nor hidden from a wait for
//! everything.
//!
//! A run that fails does not come to its end, and devices may still be at its work when the next one takes the frame, in
//! the same streams, with the same staging memory. So who finds a frame USED waits for its streams first, without
//! holding a thread.
#![forbid(unsafe_code)]

use super::device_frame::{DeviceFrame, Needs, Way};
use super::driven::Driven;
use super::frame_stream::{FrameStream, Mark, mark_of, of};
use super::pick::Path;
use super::replays::{Recorded, RunCounts, Writer};
use super::timing::{Timed, Timing};
use crate::base::{Code, Error, Ref, Result};
use crate::device::{DeviceEvent, Then};
use crate::engine::Tensor;
use crate::graph::carry::compiled::Frames;
use crate::kernel::{Frame, KernelContext};
use crate::stream::{Account, Aside};
use crate::sync::{Mutex, OnceLock, fork};
use crate::threadpool::ThreadPool;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// What all nodes of a program's that have to do with devices share.
#[derive(Debug)]
pub(in crate::graph) struct DeviceFrames {
    /// "program 'digits'"
    owner: String,
    /// Known once all of the program has been placed.
    pub(in crate::graph) needs: OnceLock<Vec<Needs>>,
    frames: Mutex<Vec<Arc<RunFrame>>>,
    pub(in crate::graph) counts: Arc<RunCounts>,
    /// Constants in the engines' memory. Nodes have their addresses.
    pub(in crate::graph) constants: OnceLock<Vec<Ref<Tensor>>>,
}

#[derive(Debug)]
pub(in crate::graph) struct RunFrame {
    pub engines: Vec<Arc<DeviceFrame>>,
    /// By engine: what the host drives branches and loops with.
    pub driven: Vec<Vec<Arc<Driven>>>,
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

impl DeviceFrames {
    pub(in crate::graph) fn new(owner: String) -> DeviceFrames {
        DeviceFrames {
            owner,
            needs: OnceLock::new(),
            frames: Mutex::default(),
            counts: Arc::default(),
            constants: OnceLock::new(),
        }
    }

    /// The thread that does an engine's part, if it has one. Known once all has been placed.
    pub(in crate::graph) fn launcher(&self, engine: usize) -> Option<&Ref<ThreadPool>> {
        self.needs.get()?.get(engine)?.engine.launcher()
    }

    /// What the work of a run on engines may still use, which has failed, goes when the engines have done all that they
    /// were asked for: its own tensors, and the program with its constants and kernels.
    pub fn keep(&self, held: Arc<dyn Any + Send + Sync>) {
        for frame in self.frames.lock().iter().filter(|frame| frame.is_busy()) {
            for on in &frame.engines {
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

    pub(in crate::graph) fn make(&self, way: Way) -> Result<RunFrame> {
        let needs = self.needs.get().map_or(&[][..], |needs| needs);
        let (mut engines, mut driven) = (Vec::new(), Vec::new());
        for needs in needs {
            let made = DeviceFrame::make(needs, &self.owner, way, &self.counts).and_then(|on| {
                let make = |&sizes: &[usize; 2]| Driven::make(&needs.engine, sizes, &self.owner);
                driven.push(needs.controls.iter().map(make).collect::<Result<_>>()?);
                Ok(Arc::new(on))
            });
            engines.push(made.map_err(of(&needs.engine.label()))?);
        }
        Ok(RunFrame {
            engines,
            driven,
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

impl Frames for DeviceFrames {
    fn make(&self) -> Result<Arc<Frame>> {
        // Not under the lock: devices may be slow.
        let frame = Arc::new(self.make(Way::Streams).map_err(|error| error.within(format_args!("{}", self.owner)))?);
        frame.engines.iter().for_each(|on| on.engine.account().add_aside(&frame));
        let mut frames = self.frames.lock();
        // Others, of which the runs' memory is gone.
        let gone = frames.extract_if(.., |frame| Arc::strong_count(frame) == 1 && !frame.is_busy()).collect::<Vec<_>>();
        frames.push(Arc::clone(&frame));
        drop(frames);
        drop(gone);
        Ok(frame)
    }
}

/// The program goes. What devices may still be at, behind a run that failed, keeps its frame until it is done.
impl Drop for DeviceFrames {
    fn drop(&mut self) {
        for frame in self.frames.lock().drain(..) {
            if !frame.is_busy() || fork::forked() {
                continue;
            }
            let kept = Arc::clone(&frame);
            if let Err(error) = frame.begin(move |_| drop(kept))
                && error.code() != Code::DeviceLost
            {
                // Nobody will say when.
                std::mem::forget(frame);
            }
        }
    }
}

/// A wait for everything covers what a frame's streams were given: a run that failed has left that behind, and one under
/// way in another thread may wait for it.
impl Aside for RunFrame {
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

impl RunFrame {
    /// A run begins: `then` is told when the frame is free for it, maybe at once and in this call.
    pub fn begin(&self, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        // ORDERING: Acquire pairs with the Release in `end`; one run at a time has the step, and so the frame.
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
        which: impl Fn(&DeviceFrame, &FrameStream) -> bool,
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
        // ORDERING: Relaxed, here and in `end`; one run at a time has the frame, `is_used` orders them, and edges order
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
        // ORDERING: Relaxed; by who has the frame.
        if self.has_retired.load(Relaxed) {
            self.has_retired.store(false, Relaxed);
            drop(std::mem::take(&mut *self.retired.lock()));
        }
    }

    /// A run has come to its end: `then` is told when the devices are done with all of it, maybe at once and in this
    /// call. As a rule the run's nodes have waited for all of it, and no device is asked.
    pub fn end(self: &Arc<Self>, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let is_left = |on: &DeviceFrame, line: &FrameStream| !line.is_done(&on.done);
        if !self.engines.iter().any(|on| on.lines().any(|line| is_left(on, line))) {
            self.is_clean();
            then(Ok(()));
            return Ok(());
        }
        let frame = Arc::clone(self);
        self.when_done(is_left, false, move |result| {
            if result.is_ok() {
                frame.is_clean();
            }
            drop(frame);
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

    /// Whether the run that begins submits recordings, which it may if `can_replay`. The devices are done with the
    /// frame's last run if it `is_clean`.
    pub(in crate::graph) fn pick(&self, is_clean: bool, can_replay: bool) -> bool {
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

    /// Takes the times of the frame's last run. Whether its events are free for the next one.
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
                let thread_ns = timings().map(|timing| timing.thread_ns()).sum();
                self.counts().pick.took(took, device_ns as u64, thread_ns);
            }
            Ok(Some(_)) => {}
            Err(_) => self.counts().pick.give_up(),
        }
        *path = None;
        true
    }

    /// A run has come to its end.
    pub(in crate::graph) fn has_run(&self) {
        let pick = &self.counts().pick;
        if pick.is_open() {
            let is_alone = pick.end(self.timed.number.load(Relaxed));
            if self.timed.is_timed.swap(false, Relaxed) {
                self.timed.is_alone.store(is_alone, Relaxed);
            }
        }
    }
}

pub(in crate::graph) fn lane_of(context: &KernelContext<'_>) -> Result<Arc<RunFrame>> {
    context.frame().ok_or_else(|| Error::internal("a run without a frame"))
}
