//! The frames of a program: the memory, streams and events that its runs have on accelerators. There is one *frame* for
//! each run state, so that concurrent runs do not meet; it is made by the first run and kept.
//!
//! Kernels get the frame of their run from their context (`KernelContext::frame`).
//!
//! | state | meaning                            | next                                                  |
//! |-------|------------------------------------|-------------------------------------------------------|
//! | CLEAN | its streams are done with all work | USED by `begin`                                       |
//! | USED  | a run has it                       | CLEAN by `end`, the last node of a run that succeeded |
//!
//! The end of a run checks the streams themselves (`frame_stream`), and waits, without holding a thread, for work that
//! no node has waited for. So no work in flight is left behind a frame that counts as clean, nor hidden from a wait for
//! everything.
//!
//! A run that fails does not come to its end, and devices may still do its work when the next one takes the frame, in
//! the same streams, with the same staging memory. So a run that finds its frame USED first waits for its streams,
//! without holding a thread.
#![forbid(unsafe_code)]

use super::device_frame::{DeviceFrame, EngineNeeds, FrameUse};
use super::driven::Driven;
use super::frame_stream::{EventMark, FrameStream, mark_of, of};
use super::pick::Path;
use super::replays::{RunCounts, ValueWriter};
use super::timing::{Timed, Timing};
use crate::base::{Code, Error, Ref, Result};
use crate::device::{DeviceEvent, Then};
use crate::engine::{Engine, Tensor};
use crate::graph::carry::compiled::Frames;
use crate::kernel::{Frame, KernelContext};
use crate::stream::{Account, Aside};
use crate::sync::{Mutex, OnceLock, fork};
use crate::threadpool::ThreadPool;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// State that all device nodes of a program share.
#[derive(Debug)]
pub(in crate::graph) struct DeviceFrames {
    /// "program 'digits'"
    owner: String,
    /// Known once all of the program has been placed.
    pub(in crate::graph) needs: OnceLock<Vec<EngineNeeds>>,
    frames: Mutex<Vec<Arc<RunFrame>>>,
    pub(in crate::graph) counts: Arc<RunCounts>,
    /// Constants in the engines' memory. Nodes have their addresses.
    pub(in crate::graph) constants: OnceLock<Vec<Ref<Tensor>>>,
}

#[derive(Debug)]
pub(in crate::graph) struct RunFrame {
    pub engines: Vec<Arc<DeviceFrame>>,
    /// By engine: the state of branches and loops that the host drives.
    pub driven: Vec<Vec<Arc<Driven>>>,
    is_used: AtomicBool,
    /// A run has come to its end, and none has failed since: the constants are there.
    is_warm: AtomicBool,
    /// The run submits segments.
    is_replay: AtomicBool,
    pub timed: Timed,
    counts: Arc<RunCounts>,
    owner: String,
    /// Recordings that were replaced, and what failed runs held: a device may still use them.
    retired: Mutex<Vec<Box<dyn Any + Send + Sync>>>,
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

    /// The thread that issues an engine's work, if it has one. Known once all has been placed.
    pub(in crate::graph) fn launcher(&self, engine: usize) -> Option<&Ref<ThreadPool>> {
        self.needs.get()?.get(engine)?.engine.launcher()
    }

    /// Holds the objects that work of a failed run may still use until the engines are done with all work that they
    /// were given: the run's own tensors, and the program with its constants and kernels.
    pub fn keep(&self, held: Arc<dyn Any + Send + Sync>) {
        for frame in self.frames.lock().iter().filter(|frame| frame.is_busy()) {
            for device_frame in &frame.engines {
                let Some(accelerator) = device_frame.engine.accelerator() else { continue };
                for stream in device_frame.all_streams() {
                    let held = Arc::clone(&held);
                    match stream.behind(accelerator, false) {
                        Ok(mark) => accelerator.when_reached(&mark.event, Then::once(move || drop(held))),
                        // It no longer touches memory.
                        Err(error) if error.code() == Code::DeviceLost => {}
                        // Until the frame is clean, or a wait for everything knows more.
                        Err(_) => frame.retire(Box::new(held)),
                    }
                }
            }
        }
    }

    pub(in crate::graph) fn make(&self, way: FrameUse) -> Result<RunFrame> {
        let needs = self.needs.get().map_or(&[][..], |needs| needs);
        let (mut engines, mut driven) = (Vec::new(), Vec::new());
        for needs in needs {
            let made = DeviceFrame::make(needs, &self.owner, way, &self.counts).and_then(|device_frame| {
                let make = |&sizes: &[usize; 2]| Driven::make(&needs.engine, sizes, &self.owner);
                driven.push(needs.controls.iter().map(make).collect::<Result<_>>()?);
                Ok(Arc::new(device_frame))
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
    fn any_engine(&self, is: &dyn Fn(&Engine) -> bool) -> bool {
        self.needs.get().into_iter().flatten().any(|needs| is(&needs.engine))
    }

    fn make(&self) -> Result<Arc<Frame>> {
        // Not under the lock: devices may be slow.
        let frame =
            Arc::new(self.make(FrameUse::Streams).map_err(|error| error.within(format_args!("{}", self.owner)))?);
        frame.engines.iter().for_each(|device_frame| device_frame.engine.account().add_aside(&frame));
        let mut frames = self.frames.lock();
        // Frames whose run states are gone.
        let gone = frames.extract_if(.., |frame| Arc::strong_count(frame) == 1 && !frame.is_busy()).collect::<Vec<_>>();
        frames.push(Arc::clone(&frame));
        drop(frames);
        drop(gone);
        Ok(frame)
    }
}

/// The program is dropped. Frames that devices may still use, after a failed run, stay until the devices are done.
impl Drop for DeviceFrames {
    fn drop(&mut self) {
        for frame in self.frames.lock().drain(..) {
            if !frame.is_busy() || fork::forked() {
                continue;
            }
            let kept = Arc::clone(&frame);
            if frame.begin(move |_| drop(kept)).is_err() {
                // There will be no notification: the frame holds itself until a wait for everything knows more.
                frame.retire(Box::new(Arc::clone(&frame)));
            }
        }
    }
}

/// A wait for everything covers the work of a frame's streams: a failed run has left it behind, and a run in flight in
/// another thread may wait for it.
impl Aside for RunFrame {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn is_busy(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `end`; a thread that knows of a run that has begun sees that,
        // too.
        self.is_used.load(Acquire)
    }

    fn outstanding(&self, account: &Account) -> Result<Vec<Arc<dyn DeviceEvent>>> {
        let mut events = Vec::new();
        self.release_retired();
        for device_frame in
            self.engines.iter().filter(|device_frame| std::ptr::eq(&raw const **device_frame.engine.account(), account))
        {
            let Some(accelerator) = device_frame.engine.accelerator() else { continue };
            for stream in device_frame.all_streams() {
                events.push(stream.last(accelerator)?);
            }
        }
        Ok(events)
    }
}

impl RunFrame {
    /// A run begins: `then` is called when the frame is free for it, maybe at once and in this call.
    pub fn begin(&self, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        // ORDERING: Acquire pairs with the Release in `end`; one run at a time has the step, and so the frame.
        let is_clean = !self.is_used.swap(true, Acquire);
        self.choose(is_clean);
        if is_clean {
            then(Ok(()));
            return Ok(());
        }
        for device_frame in &self.engines {
            device_frame.uploads.iter().for_each(|upload| upload.is_there.store(false, Relaxed));
        }
        // The failure was reported already, by the run that left this behind. A lost device fails this run, too.
        self.when_done(
            |_, _| true,
            true,
            move |result| {
                then(result.or_else(|error| if error.code() == Code::DeviceLost { Err(error) } else { Ok(()) }));
            },
        )
    }

    /// Calls `then` when the devices are done with all work that these streams were given until now, maybe at once and
    /// in this call; with the first failure among them. `clears` has the streams work again after one. A device that
    /// is lost is done, and the others are waited for.
    fn when_done(
        &self,
        which: impl Fn(&DeviceFrame, &FrameStream) -> bool,
        clears: bool,
        then: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        let (mut marks, mut lost) = (Vec::new(), Ok(()));
        for device_frame in &self.engines {
            let Some(accelerator) = device_frame.engine.accelerator() else { continue };
            for stream in device_frame.all_streams().filter(|stream| which(device_frame, stream)) {
                match stream.behind(accelerator, clears).map_err(of(&device_frame.engine.label())) {
                    Ok(mark) => marks.push((Ref::clone(&device_frame.engine), Arc::clone(&device_frame.done), mark)),
                    Err(error) if error.code() == Code::DeviceLost => lost = lost.and(Err(error)),
                    Err(error) => return Err(error),
                }
            }
        }
        if marks.is_empty() {
            then(lost);
            return Ok(());
        }
        let events: Vec<_> =
            marks.iter().map(|(engine, _, mark)| (Ref::clone(engine), Arc::clone(&mark.event))).collect();
        let behind = Arc::new((Mutex::new(Some((then, marks, lost))), AtomicUsize::new(events.len())));
        for (engine, event) in &events {
            let behind = Arc::clone(&behind);
            let told = move || {
                let (then, left) = &*behind;
                // ORDERING: AcqRel; the last callback is ordered behind the others.
                if left.fetch_sub(1, AcqRel) > 1 {
                    return;
                }
                let Some((then, marks, lost)) = then.lock().take() else { return };
                let mut result = lost;
                for (engine, done, mark) in &marks {
                    let reached = mark.event.is_reached().map(|_| mark.tell(done));
                    result = result.and(reached.map_err(|error| of(&engine.label())(error.as_origin())));
                }
                // After the end of the run the program may be dropped, and this thread must not hold the last reference
                // to an engine.
                drop(marks);
                then(result);
            };
            if let Some(accelerator) = engine.accelerator() {
                accelerator.when_reached(event, Then::once(told));
            }
        }
        Ok(())
    }

    /// Chooses the way of the run that begins.
    fn choose(&self, is_clean: bool) {
        if self.engines.iter().all(|device_frame| device_frame.segments.is_empty()) {
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
    pub fn mark_behind(&self, engine: usize, writer: ValueWriter) -> Result<&Arc<EventMark>> {
        let device_frame = &self.engines[engine];
        let event = match writer.segment.filter(|_| self.is_replay()) {
            Some(segment) => &device_frame.segments[segment].event,
            None => &device_frame.events[writer.piece],
        };
        mark_of(event)
    }

    /// Keeps what work in flight may use until the devices are done with all of it.
    pub fn retire(&self, used: Box<dyn Any + Send + Sync>) {
        self.retired.lock().push(used);
        self.has_retired.store(true, Relaxed);
    }

    /// Has what was retired go when the devices are done with all work until now. If a device refuses to tell, it
    /// stays.
    fn release_retired(&self) {
        let retired = std::mem::take(&mut *self.retired.lock());
        if retired.is_empty() {
            return;
        }
        let kept = Arc::new(Mutex::new(retired));
        let going = Arc::clone(&kept);
        let told = self.when_done(
            |_, _| true,
            false,
            move |_| {
                let retired = std::mem::take(&mut *going.lock());
                drop(retired);
            },
        );
        if told.is_err() {
            let mut retired = std::mem::take(&mut *kept.lock());
            self.retired.lock().append(&mut retired);
        }
    }

    /// The devices are done with all earlier work.
    pub fn drop_retired(&self) {
        // ORDERING: Relaxed; by the owner of the frame.
        if self.has_retired.load(Relaxed) {
            self.has_retired.store(false, Relaxed);
            drop(std::mem::take(&mut *self.retired.lock()));
        }
    }

    /// A run has come to its end: `then` is called when the devices are done with all of it, maybe at once and in this
    /// call. Usually the run's nodes have waited for all of it, and no device is asked.
    pub fn end(self: &Arc<Self>, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let is_left = |device_frame: &DeviceFrame, stream: &FrameStream| !stream.is_done(&device_frame.done);
        if !self
            .engines
            .iter()
            .any(|device_frame| device_frame.all_streams().any(|stream| is_left(device_frame, stream)))
        {
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

    /// Whether the run that begins submits recordings, which it may if `can_replay`. If `is_clean`, the devices are
    /// done with the frame's last run.
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
        self.engines.iter().filter_map(|device_frame| device_frame.timing.as_ref()).for_each(Timing::reset);
        self.timed.number.store(number, Relaxed);
        *self.timed.path.lock() = Some(path);
        self.timed.is_timed.store(true, Relaxed);
        path == Path::Recording
    }

    /// Takes the times of the frame's last run. Returns whether its events are free for the next one.
    fn look_back(&self, is_clean: bool) -> bool {
        let mut path = self.timed.path.lock();
        let Some(took) = *path else { return true };
        if !is_clean {
            // It failed: the device may still use these events, and they say nothing.
            *path = None;
            return false;
        }
        let timings = || self.engines.iter().filter_map(|device_frame| device_frame.timing.as_ref());
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

pub(in crate::graph) fn frame_of(context: &KernelContext<'_>) -> Result<Arc<RunFrame>> {
    context.frame().ok_or_else(|| Error::internal("a run without a frame"))
}
