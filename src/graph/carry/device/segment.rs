//! The node that stands for a segment: several pieces of an engine's work without other work between them.
//!
//! In a frame's first run it issues one piece after the other, each to its own stream, with waits and events between
//! them: errors of a piece show there. In the second run it has the device record them, with the edges between them,
//! and from then on a run submits the recording: one call, whatever the number of pieces, and one event if it is waited
//! for. Copies to the engine that only this segment reads are in the recording, too; the run only stages their bytes.
//!
//! *Two ways, one order.* A run goes one way in all of its segments (`RunFrame::is_replay`), because each way has waits
//! and events of its own: a reader of a value waits for the event of the run's way. The way back is always open: a run
//! after a failed one issues, and if a device refuses to record, a segment's pieces are issued one after the other on
//! its stream, and the next runs issue all.

use super::control::{DeviceControl, RecordedViews};
use super::device_frame::{Before, DeviceFrame, ValuePlace};
use super::driven::Going;
use super::frame_stream::{EventMark, Giving, of};
use super::frames::{DeviceFrames, RunFrame, frame_of};
use super::kernels::{Issue, device_node, shape};
use super::replays::SegmentRecording;
use crate::base::{Code, Desc, Error, Result};
use crate::device::{
    DeviceStream, Executable, HostAddress, Launch, Location, PreparedLaunch, RecordedStep, RecordedWork, Recording,
    Transfer,
};
use crate::kernel::{Completion, Effect, IssuedCall, IssuedFor, Kernel, KernelContext, Outputs, Rest, RunListener};
use crate::memory::View;
use crate::trace::KeptTraces;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// A copy to the engine that is part of a segment.
pub(in crate::graph) struct CopyIn {
    /// Its number among the engine's uploads.
    pub upload: usize,
    pub to: usize,
    pub bytes: usize,
    pub name: String,
}

/// Inputs: values that are a run's own tensors. Outputs: those of the pieces that are.
pub(in crate::graph) struct Segment {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's label.
    pub label: Arc<str>,
    /// Its number among the engine's segments.
    pub number: Option<usize>,
    pub name: String,
    pub issues: Vec<Issue>,
    pub num_inputs: usize,
    /// The descriptors of its outputs.
    pub given: Vec<Desc>,
    /// The stream for the recording, and its predecessors.
    pub stream: usize,
    pub before: Vec<Before>,
    pub copies: Vec<CopyIn>,
    /// For each step (those of the copies, then those of each piece), its predecessors. `None`: it is too short to be
    /// recorded.
    pub after: Option<Vec<Vec<usize>>>,
    /// The pieces that use tensors of the runs' own, each with its first step.
    pub own: Vec<(usize, usize)>,
    pub rests: Vec<[Arc<Onward>; 2]>,
}

/// The rest of a segment behind a branch or a loop that the host drives. The segment has those of all its pieces from
/// the beginning, so that runs make none.
pub(in crate::graph) struct Onward {
    segment: Weak<Segment>,
    from: usize,
    is_replay: bool,
}

impl Onward {
    /// Behind each piece, for runs that issue pieces and for those that submit recordings, if the host may drive one.
    pub fn of_pieces(segment: &Weak<Segment>, issues: &[Issue]) -> Vec<[Arc<Onward>; 2]> {
        let last = issues.iter().rposition(|issue| issue.control.is_some()).map_or(0, |last| last + 1);
        let behind = 1..issues.len().min(last + 1);
        let rest = |from, is_replay| Arc::new(Onward { segment: Weak::clone(segment), from, is_replay });
        behind.map(|from| [false, true].map(|is_replay| rest(from, is_replay))).collect()
    }
}

impl Rest for Onward {
    fn go_on(self: Arc<Self>, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        // Its node's program is running.
        let segment = self.segment.upgrade().ok_or_else(|| Error::internal("a segment that is gone"))?;
        let frame = frame_of(context)?;
        let gone = match self.is_replay {
            true => segment.go_in_line(&frame, self.from, context, done),
            false => segment.go(&frame, self.from, context, done),
        };
        gone.map_err(of(&segment.label))
    }
}

/// The predecessors of each step of a recording, from those of copies and pieces.
pub(in crate::graph) fn steps(after: Vec<Vec<usize>>, copies: &[CopyIn], issues: &[Issue]) -> Vec<Vec<usize>> {
    let mut all = Vec::with_capacity(after.len());
    let mut last: Vec<Vec<usize>> = Vec::with_capacity(after.len());
    for (at, after) in after.into_iter().enumerate() {
        let first = all.len();
        let issue = at.checked_sub(copies.len()).map(|at| &issues[at]);
        let Some(control) = issue.and_then(|issue| issue.control.as_ref()) else {
            all.push(after.iter().flat_map(|&before| last[before].iter().copied()).collect());
            last.push(vec![first]);
            continue;
        };
        // Only the readers of a copy's value wait for the copy.
        let (copied, others): (Vec<usize>, Vec<usize>) = after.into_iter().partition(|&before| before < copies.len());
        let brought: Vec<(usize, ValuePlace)> =
            copied.into_iter().map(|copy| (copy, ValuePlace::Arena(copies[copy].to))).collect();
        let before: Vec<usize> = others.iter().flat_map(|&before| last[before].iter().copied()).collect();
        last.push(control.edges(first, (before, &brought), &mut all));
    }
    all
}

/// The pieces that use tensors of the runs' own, each with its first step, behind this many copies.
pub(in crate::graph) fn own(copies: usize, issues: &[Issue]) -> Vec<(usize, usize)> {
    let mut step = copies;
    let mut own = Vec::new();
    for (at, issue) in issues.iter().enumerate() {
        if issue.has_given() {
            own.push((at, step));
        }
        step += issue.control.as_ref().map_or(1, |control| control.num_steps());
    }
    own
}

impl Segment {
    /// A piece that is a node by itself and completes later.
    pub fn alone(issue: Issue) -> Arc<Segment> {
        Arc::new(Segment {
            frames: Arc::clone(&issue.frames),
            engine: issue.engine,
            label: Arc::clone(&issue.label),
            number: None,
            name: issue.name.clone(),
            num_inputs: issue.num_inputs,
            given: issue.given.clone(),
            stream: issue.stream,
            before: Vec::new(),
            copies: Vec::new(),
            after: None,
            own: Vec::new(),
            rests: Vec::new(),
            issues: vec![issue],
        })
    }

    /// Issues the pieces from one on, each on its stream, with branches and loops among them.
    fn go(&self, frame: &Arc<RunFrame>, from: usize, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        for (at, issue) in self.issues.iter().enumerate().skip(from) {
            let stream = frame.engines[self.engine].streams[issue.stream].lock();
            let within = |error: Error| error.within(&issue.name);
            let Some(control) = &issue.control else {
                issue.issue(frame, &stream, context).map_err(within)?;
                continue;
            };
            issue.wait(frame, &stream)?;
            if let Some(whole) = control.whole(&frame.engines[self.engine])? {
                issue.replay(control, &whole, &frame.engines[self.engine], &*stream, context).map_err(within)?;
                issue.records(frame)?.map_or(Ok(()), |mark| stream.mark(mark))?;
                continue;
            }
            drop(stream);
            let stream = (issue.stream, issue.records(frame)?.cloned());
            return issue.drive(control, frame, stream, context, (done, self.rest(at + 1, false)));
        }
        done.done(Ok(()))
    }

    /// The pieces from one on, if there are any.
    fn rest(&self, from: usize, is_replay: bool) -> Option<Arc<dyn Rest>> {
        let rest = self.rests.get(from - 1)?;
        Some(Arc::clone(&rest[usize::from(is_replay)]) as Arc<dyn Rest>)
    }

    /// All of it, as one recording; or driven by the host, also where the device refuses to record it only now.
    fn replay_later(&self, frame: &Arc<RunFrame>, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let is_by_host = |issue: &Issue| issue.control.as_ref().is_some_and(|control| !control.by_device);
        let stream = frame.engines[self.engine].streams[self.stream].lock();
        self.wait(frame, &stream)?;
        if !matches!(&self.issues[..], [issue] if is_by_host(issue)) {
            if self.submit_recorded(frame, &*stream, context)? {
                self.event(frame).map_or(Ok(()), |mark| stream.mark(mark))?;
                drop(stream);
                return done.done(Ok(()));
            }
            self.copies.iter().try_for_each(|copy| stream.copy(&self.transfer(frame, copy, context)))?;
        }
        drop(stream);
        self.go_in_line(frame, 0, context, done)
    }

    /// Issues the pieces from one on, all on the stream for the recording, with branches and loops among them.
    fn go_in_line(&self, frame: &RunFrame, from: usize, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let device_frame = &frame.engines[self.engine];
        let stream = device_frame.streams[self.stream].lock();
        for (at, issue) in self.issues.iter().enumerate().skip(from) {
            let within = |error: Error| error.within(&issue.name);
            let Some(control) = &issue.control else {
                issue.launch(frame, &*stream, context).map_err(within)?;
                continue;
            };
            if let Some(whole) = control.whole(device_frame)? {
                issue.replay(control, &whole, device_frame, &*stream, context).map_err(within)?;
                continue;
            }
            drop(stream);
            let rest = self.rest(at + 1, true);
            let event = self.event(frame).filter(|_| rest.is_none()).cloned();
            return issue.drive(control, frame, (self.stream, event), context, (done, rest));
        }
        self.event(frame).map_or(Ok(()), |mark| stream.mark(mark))?;
        drop(stream);
        done.done(Ok(()))
    }

    /// Each piece on its stream.
    fn issue(&self, frame: &RunFrame, context: &KernelContext<'_>) -> Result<()> {
        self.issues.iter().try_for_each(|issue| {
            let stream = frame.engines[self.engine].streams[issue.stream].lock();
            issue.issue(frame, &stream, context).map_err(|error| error.within(&issue.name))
        })
    }

    /// All of it on one stream.
    fn replay(&self, frame: &RunFrame, context: &KernelContext<'_>) -> Result<()> {
        let stream = frame.engines[self.engine].streams[self.stream].lock();
        self.wait(frame, &stream)?;
        self.submit(frame, &*stream, context)?;
        self.event(frame).map_or(Ok(()), |mark| stream.mark(mark))
    }

    fn wait(&self, frame: &RunFrame, stream: &Giving<'_>) -> Result<()> {
        let device_frame = &frame.engines[self.engine];
        for before in &self.before {
            // ORDERING: Relaxed; the copy's node comes before this one, by an edge.
            if !matches!(*before, Before::Constant(upload) if !device_frame.uploads[upload].is_new.load(Relaxed)) {
                stream.wait_for(before.mark(device_frame)?)?;
            }
        }
        Ok(())
    }

    /// The event behind all of it.
    fn event<'a>(&self, frame: &'a RunFrame) -> Option<&'a Arc<EventMark>> {
        frame.engines[self.engine].segments[self.number?].event.as_ref()
    }

    /// Submits the recording once more. `None` if there is none, or it was last given other addresses.
    pub fn replay_again(
        &self,
        frame: &RunFrame,
        stream: &dyn DeviceStream,
        addresses: impl Iterator<Item = usize>,
    ) -> Option<Result<()>> {
        self.after.as_ref()?;
        let recorded = frame.engines[self.engine].segments[self.number?].recorded.lock();
        let known = recorded.as_ref().filter(|known| addresses.eq(known.given.iter().copied()))?;
        Some(stream.replay(&known.executable, &self.name))
    }

    /// Without the waits and the event.
    pub fn submit(&self, frame: &RunFrame, stream: &dyn DeviceStream, context: &KernelContext<'_>) -> Result<()> {
        match self.submit_recorded(frame, stream, context)? {
            true => Ok(()),
            false => self.one_by_one(frame, stream, context),
        }
    }

    /// False if there is no recording; then nothing was submitted.
    fn submit_recorded(
        &self,
        frame: &RunFrame,
        stream: &dyn DeviceStream,
        context: &KernelContext<'_>,
    ) -> Result<bool> {
        let (Some(after), Some(number)) = (&self.after, self.number) else { return Ok(false) };
        let mut recorded = frame.engines[self.engine].segments[number].recorded.lock();
        match self.prepare(frame, after, &mut recorded, context) {
            Err(error) if error.code() == Code::DeviceLost => return Err(error),
            Ok(()) | Err(_) => {}
        }
        recorded.as_ref().map_or(Ok(false), |recorded| stream.replay(&recorded.executable, &self.name).map(|()| true))
    }

    /// As a recording or not at all, in a frame's first run too: the device decides in it, and the host has no part in
    /// the run. Without a stream it is recorded, if it is not yet.
    pub fn submit_as_one(
        &self,
        frame: &RunFrame,
        stream: Option<&dyn DeviceStream>,
        context: &KernelContext<'_>,
    ) -> Result<()> {
        let (Some(after), Some(number)) = (&self.after, self.number) else {
            return Err(Error::internal("a branch or a loop of the device's that is in no recording"));
        };
        let mut recorded = frame.engines[self.engine].segments[number].recorded.lock();
        self.prepare(frame, after, &mut recorded, context)?;
        match (&*recorded, stream) {
            (Some(recorded), Some(stream)) => stream.replay(&recorded.executable, &self.name),
            (Some(_), None) => Ok(()),
            (None, _) => {
                let said = frame.counts().refusal.get().map_or("", String::as_str);
                let text = format!("{}: the device has refused a recording before: {said}", self.name);
                Err(Error::new(Code::FailedPrecondition, text))
            }
        }
    }

    /// Gives the recording these addresses; makes it if need be, unless the device has refused one before. The reason
    /// of a refusal is kept.
    fn prepare(
        &self,
        frame: &RunFrame,
        after: &[Vec<usize>],
        recorded: &mut Option<SegmentRecording>,
        context: &KernelContext<'_>,
    ) -> Result<()> {
        if let Some(known) = recorded
            && self.update(frame, known, context).is_err()
            && let Some(old) = recorded.take()
        {
            frame.retire(Box::new(old));
        }
        if recorded.is_some() || frame.counts().refusal.get().is_some() {
            return Ok(());
        }
        let made = self.record(frame, after, context).inspect_err(|error| {
            if error.code() != Code::DeviceLost {
                let text = || error.clone().within(&self.name).at_engine(&self.label).message().to_owned();
                frame.counts().refusal.get_or_init(text);
            }
        });
        *recorded = Some(made?);
        Ok(())
    }

    /// Whether it contains a branch or a loop.
    pub fn has_control(&self) -> bool {
        self.issues.iter().any(|issue| issue.control.is_some())
    }

    /// Without a recording: in the order of the pieces, which all edges allow. None of them is a branch or a loop.
    pub fn one_by_one(&self, frame: &RunFrame, stream: &dyn DeviceStream, context: &KernelContext<'_>) -> Result<()> {
        self.copies.iter().try_for_each(|copy| stream.copy(&self.transfer(frame, copy, context)))?;
        self.issues
            .iter()
            .try_for_each(|issue| issue.launch(frame, stream, context).map_err(|error| error.within(&issue.name)))
    }

    fn transfer<'a>(&self, frame: &RunFrame, copy: &'a CopyIn, context: &KernelContext<'_>) -> Transfer<'a> {
        let to = ValuePlace::Arena(copy.to).address(&frame.engines[self.engine], context);
        let staging = &frame.engines[self.engine].uploads[copy.upload].staging;
        // SAFETY: the frame keeps it, and the next run on the frame comes behind this one.
        let from = unsafe { HostAddress::new(staging.data() as usize) };
        Transfer { name: &copy.name, to: Location::Device(to), from: Location::Host(from), bytes: copy.bytes }
    }

    fn record(&self, frame: &RunFrame, after: &[Vec<usize>], context: &KernelContext<'_>) -> Result<SegmentRecording> {
        let device_frame = &*frame.engines[self.engine];
        let Some(accelerator) = device_frame.engine.accelerator() else {
            return Err(Error::internal("a frame on the host's engine"));
        };
        let views = self.issues.iter().map(|issue| issue.views(frame, context).collect::<Result<Vec<_>>>());
        let views = views.collect::<Result<Vec<_>>>()?;
        let made = |issue: &Issue| -> Result<Option<RecordedViews<'_>>> {
            issue
                .control
                .as_ref()
                .map(|control| RecordedViews::new(control, device_frame, &control.lowered.list))
                .transpose()
        };
        let made = self.issues.iter().map(made).collect::<Result<Vec<_>>>()?;
        let mut steps = Vec::with_capacity(after.len());
        let mut after = after.iter();
        let mut next = || after.next().map_or(&[][..], Vec::as_slice);
        for copy in &self.copies {
            steps.push(RecordedStep { work: RecordedWork::Copy(self.transfer(frame, copy, context)), after: next() });
        }
        for ((issue, views), made) in self.issues.iter().zip(&views).zip(&made) {
            let (inputs, outputs) = views.split_at(issue.inputs.len());
            let Some((made, control)) = made.as_ref().zip(issue.control.as_ref()) else {
                steps.push(RecordedStep {
                    work: RecordedWork::Launch(issue.launch_of(inputs, outputs)?),
                    after: next(),
                });
                continue;
            };
            let inside = made.works(control, device_frame, &control.lowered.list)?;
            let works = issue.copies_in(control, device_frame, context).map(RecordedWork::Copy).chain(inside);
            let works = works.chain(issue.copies_out(control, device_frame, context).map(RecordedWork::Copy));
            steps.extend(works.map(|work| RecordedStep { work, after: next() }));
        }
        let executable = accelerator.record(&Recording { name: &self.name, steps: &steps })?;
        frame.counts().recordings.fetch_add(1, Relaxed);
        Ok(SegmentRecording { executable, given: given_addresses(context).collect(), changed: Vec::new() })
    }

    /// The runs' own tensors may differ each time.
    fn update(&self, frame: &RunFrame, recorded: &mut SegmentRecording, context: &KernelContext<'_>) -> Result<()> {
        if given_addresses(context).eq(recorded.given.iter().copied()) {
            return Ok(());
        }
        let known = recorded.given.iter_mut().zip(given_addresses(context));
        let mut all = std::mem::take(&mut recorded.changed);
        all.clear();
        all.extend(known.map(|(known, address)| std::mem::replace(known, address) != address));
        let (inputs, outputs) = all.split_at(context.inputs().len());
        let is_changed = |source: &ValuePlace| match *source {
            ValuePlace::Input(input) => inputs[input],
            ValuePlace::Output(output) => outputs[output],
            ValuePlace::Arena(_) | ValuePlace::Fixed(_) => false,
        };
        let device_frame = &*frame.engines[self.engine];
        for &(at, step) in &self.own {
            let issue = &self.issues[at];
            if let Some(control) = &issue.control {
                let behind = step + control.num_steps() - control.copied_out.len();
                let sources = control.copied_in.iter().map(|&(input, _)| &issue.inputs[input].0);
                let copies_in = sources.zip(issue.copies_in(control, device_frame, context)).zip(step..);
                let sources = control.copied_out.iter().map(|&(output, _)| &issue.outputs[output].0);
                let copies_out = sources.zip(issue.copies_out(control, device_frame, context)).zip(behind..);
                for ((source, transfer), step) in copies_in.chain(copies_out) {
                    if is_changed(source) {
                        recorded.executable.update(step, &RecordedWork::Copy(transfer))?;
                        frame.counts().updates.fetch_add(1, Relaxed);
                    }
                }
            } else if issue.inputs.iter().chain(&issue.outputs).any(|(source, _)| is_changed(source)) {
                issue.with_views(frame, context, |inputs, outputs| {
                    let work = RecordedWork::Launch(issue.launch_of(inputs, outputs)?);
                    recorded.executable.update(step, &work)
                })?;
                frame.counts().updates.fetch_add(1, Relaxed);
            }
        }
        recorded.changed = all;
        Ok(())
    }
}

impl Kernel for Segment {
    shape!("segment on a device", of self: self.num_inputs, self.given.len());
    device_node!();

    fn is_relied_on(&self) -> bool {
        true
    }

    /// Pieces with effects are alone in their segments.
    fn effects(&self) -> &[Effect] {
        self.issues.first().map_or(&[], |issue| issue.effects())
    }

    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        self.issues.first().map_or(&[], |issue| issue.listeners())
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(self.given.clone())
    }

    /// Branches and loops may be driven by the host.
    fn is_async(&self) -> bool {
        self.has_control()
    }

    fn compute(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        let frame = frame_of(context)?;
        let is_replay = frame.is_replay();
        let device_frame = &frame.engines[self.engine];
        let asks = || if is_replay { self.replay(&frame, context) } else { self.issue(&frame, context) };
        let behind = self.number.map(|number| (number, is_replay.then_some(self.stream)));
        let mut go = || device_frame.timed(&frame.timed, behind, asks);
        // A piece that is not a launch is alone in its segment.
        let is_issued = self.issues.first().is_some_and(|issue| issue.issuer.is_some());
        let gone = if is_issued { go() } else { device_frame.within(&mut go) };
        gone.map_err(of(&self.label))
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let frame = frame_of(context)?;
        let is_replay = frame.is_replay() && self.number.is_some();
        let begun = frame.engines[self.engine].within(&mut || match is_replay {
            true => self.replay_later(&frame, context, done),
            false => self.go(&frame, 0, context, done),
        });
        begun.map_err(of(&self.label))
    }
}

/// Addresses of the run's own tensors: all that the node is given.
fn given_addresses(context: &KernelContext<'_>) -> impl Iterator<Item = usize> {
    let outputs = (0..context.num_outputs()).map(|i| context.output_data(i));
    context.inputs().iter().map(View::data).chain(outputs).map(|data| data as usize)
}

impl Issue {
    /// Whether it uses tensors of the runs' own.
    pub fn has_given(&self) -> bool {
        let mut arguments = self.inputs.iter().chain(&self.outputs);
        arguments.any(|(source, _)| matches!(source, ValuePlace::Input(_) | ValuePlace::Output(_)))
    }

    fn launch_of<'a>(&'a self, inputs: &'a [View], outputs: &'a [View]) -> Result<Launch<'a>> {
        let Some(kernel) = self.kernel.on_device() else { return Err(Error::internal("a host's kernel on a device")) };
        Ok(Launch { name: &self.name, kernel, inputs, outputs })
    }

    /// Begins a branch or a loop that the host drives: copies the run's own inputs first.
    fn drive(
        &self,
        control: &Arc<DeviceControl>,
        frame: &RunFrame,
        (stream, records): (usize, Option<Arc<EventMark>>),
        context: &KernelContext<'_>,
        (done, rest): (Completion, Option<Arc<dyn Rest>>),
    ) -> Result<()> {
        let device_frame = &frame.engines[control.engine];
        let work_stream = device_frame.streams[stream].lock();
        self.copies_in(control, device_frame, context).try_for_each(|transfer| work_stream.copy(&transfer))?;
        drop(work_stream);
        let outputs =
            control.copied_out.iter().map(|&(output, _)| self.outputs[output].0.address(device_frame, context));
        let (outputs, stop) = (outputs.collect(), context.kept_stop().cloned());
        let (device_frame, control) = (Arc::clone(device_frame), Arc::clone(control));
        let driven = &frame.driven[control.engine][control.number];
        driven.begin(Going {
            device_frame,
            control,
            stream,
            records,
            done,
            rest,
            stop,
            traces: KeptTraces::of_thread(),
            at: 0,
            outputs,
        });
        Ok(())
    }

    /// A branch or a loop that is recorded.
    fn replay(
        &self,
        control: &DeviceControl,
        whole: &Arc<dyn Executable>,
        device_frame: &DeviceFrame,
        stream: &dyn DeviceStream,
        context: &KernelContext<'_>,
    ) -> Result<()> {
        self.copies_in(control, device_frame, context).try_for_each(|transfer| stream.copy(&transfer))?;
        stream.replay(whole, &self.name)?;
        self.copies_out(control, device_frame, context).try_for_each(|transfer| stream.copy(&transfer))
    }

    /// The launch, as prepared by the stream (`DeviceStream::prepare`); `None` if that is not possible.
    pub fn prepare(
        &self,
        frame: &RunFrame,
        stream: &dyn DeviceStream,
        context: &KernelContext<'_>,
        before: Option<Box<dyn PreparedLaunch>>,
    ) -> Option<Box<dyn PreparedLaunch>> {
        if self.issuer.is_some() || self.control.is_some() {
            return None;
        }
        let prepare = |inputs: &[View], outputs: &[View]| Ok(stream.prepare(&self.launch_of(inputs, outputs)?, before));
        self.with_views(frame, context, prepare).ok()?
    }

    /// Without waits and events.
    pub fn launch(&self, frame: &RunFrame, stream: &dyn DeviceStream, context: &KernelContext<'_>) -> Result<()> {
        self.with_views(frame, context, |inputs, outputs| match &self.issuer {
            Some(issuer) => {
                let issued_for = IssuedFor::Run(context.stop().run(), context.kept_stop());
                issuer.issue(&IssuedCall { stream, name: &self.name, inputs, outputs, issued_for })
            }
            None => stream.launch(&self.launch_of(inputs, outputs)?),
        })
    }
}
