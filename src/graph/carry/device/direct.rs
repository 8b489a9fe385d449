//! Programs that are one engine's alone, run on a stream of that engine: the work goes to that very stream, in the
//! calling thread, as a kernel's does. No executor, no event, no thread that watches, and nothing that the host waits
//! for: what the stream was given before comes before, and what it is given later comes after.
//!
//! *Which.* All that is left of the graph but inputs, constants and the frame of begin and end are pieces of one
//! engine, and all tensors are in its memory (`Made::direct`; `Why` has the words for those that are not).
//!
//! *What.* A frame's first run copies the constants and issues one piece after the other, the second has the device
//! record them, and from then on a run submits the recording: one call (`segment`). One piece alone is never recorded:
//! its launch costs what that of a recording would.
//!
//! *Branches and loops.* What the device decides in is submitted as a recording in the first run too. A device may
//! refuse to make one, and behind the caller's back the host cannot decide in its place. So there is a trial in front
//! of a program's first run (`try_out`): if the device refuses, that run and all later ones go through the executor,
//! and the host decides (`driven`).
//!
//! *DeviceFrames.* A run's values lie in a frame's memory, and a recording is given to one stream at a time. So a frame belongs
//! to the stream that had it last, whose order is the order of its runs: the next run there takes it without waiting
//! for anything. A run on another stream takes one that is known to have nothing under way, else a new one; where there
//! are `MOST` of them, its stream waits on the device for the stream that has it. Who issues a run holds the frame
//! (`State`) meanwhile, and looks first whether it is still its own.
//!
//! *Constants.* That they were issued does not say that they are there: behind a failure a stream does nothing until
//! its error is cleared. They are there for the stream that copied them, as long as nobody has cleared its error since
//! (`Queue::epoch`), and for all streams once a run behind the copy is known to have ended well.

use super::device_frame::{Needs, Way};
use super::frame_stream::of;
use super::frames::{DeviceFrames, RunFrame};
use super::kernels::Upload;
use super::part::{Made, Part, Piece};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Ref, Result};
use crate::device::{DeviceEvent, DeviceStream, DeviceStreamAttr, HostAddress, Location, PreparedLaunch, Transfer};
use crate::engine::{Engine, Tensor};
use crate::graph::build::contents::{Body, Contents, Value};
use crate::memory::View;
use crate::stream::Queue;
use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Weak};

/// Most frames of a program.
const MOST: usize = 32;
/// The number of no queue.
const NOBODY: u64 = 0;

/// Why runs of a program are issued to the caller's stream, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    #[default]
    NoDevices,
    Host,
    Engines,
    Tensors,
    Streams,
    Control,
    Direct,
}

impl Why {
    pub fn text(self) -> &'static str {
        match self {
            Why::NoDevices => "no, no other engine does any of it",
            Why::Host => "no, the host does some of it, or an output is a copy",
            Why::Engines => "no, several engines do it",
            Why::Tensors => "no, not all inputs and outputs are in the engine's memory",
            Why::Streams => "no, its work is spread over several streams and not recorded",
            Why::Control => "no, it has branches or loops that the host decides",
            Why::Direct => "yes, on streams of its engine",
        }
    }
}

/// A program whose runs are issued to a stream of its engine's.
pub(in crate::graph) struct Direct {
    shared: Arc<DeviceFrames>,
    pub engine: Ref<Engine>,
    /// Its number.
    number: usize,
    parts: Vec<Part>,
    constants: Vec<(Arc<Upload>, Ref<Tensor>)>,
    has_issuers: bool,
    /// There are branches or loops.
    has_control: bool,
    /// The device has taken their recordings once. ORDERING: Relaxed; set by who has the lock of `trial`, and what it
    /// made is behind other locks.
    is_tried: AtomicBool,
    trial: Mutex<()>,
    frames: Mutex<Vec<Arc<DirectLane>>>,
}

struct DirectLane {
    frame: RunFrame,
    /// The number of the queue that it belongs to. Written with the state locked.
    of: AtomicU64,
    /// Runs that were issued and are not known to be over. Counted up with the state locked.
    under_way: AtomicUsize,
    /// Constants are where they belong. ORDERING: Relaxed; set when an event behind the copies was reached, and read by
    /// those who issue what the device does later.
    is_proven: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The queue that the last run was issued to, and its number.
    last: (u64, Weak<Queue>),
    /// Constants were copied to the frame by this one.
    copied: Option<Copied>,
    has_run: bool,
}

impl State {
    /// The last run was issued to another queue, whose stream the host captures now.
    fn is_anothers_in_a_capture(&self, queue: &Queue) -> bool {
        let is_captured =
            |last: Arc<Queue>| last.device_queue().is_some_and(|line| !matches!(line.is_captured(), Ok(false)));
        self.last.0 != queue.id() && self.last.1.upgrade().is_some_and(is_captured)
    }
}

/// On which queue constants were copied, and in which of its epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied {
    queue: u64,
    epoch: u64,
}

/// What a run has of a frame until it is over; and which frame that was, for the next run.
#[derive(Default)]
pub(in crate::graph) struct Lent {
    frame: Option<Arc<DirectLane>>,
    is_used: bool,
    copied: Option<Copied>,
    /// What its stream waits for first.
    event: Option<Arc<dyn DeviceEvent>>,
    /// Of a run of one kernel: its launch in that frame, with the run's tensors, if the run was given again and so
    /// `is_prepared`; else one of before.
    prepared: Option<Box<dyn PreparedLaunch>>,
    is_prepared: bool,
}

impl Lent {
    /// The run is over; whether all went well.
    pub fn over(&mut self, is_well: bool) {
        self.event = None;
        self.is_prepared = false;
        let Some(frame) = self.frame.as_ref().filter(|_| std::mem::take(&mut self.is_used)) else { return };
        if is_well
            && !frame.is_proven.load(Relaxed)
            && self.copied.is_some()
            && frame.state.lock().copied == self.copied
        {
            frame.is_proven.store(true, Relaxed);
        }
        // ORDERING: Release pairs with the Acquire of who takes a frame that has nothing under way.
        frame.under_way.fetch_sub(1, Release);
        // Nobody else has had it, and nobody will.
        if frame.of.load(Relaxed) == NOBODY {
            self.frame = None;
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.over(false);
    }
}

impl Made {
    /// What runs issue, if the program is one engine's alone.
    pub fn direct(
        &self,
        contents: &Contents,
        devices: &[Ref<Engine>],
        needs: &[Needs],
        frames: &Arc<DeviceFrames>,
    ) -> Result<Direct, Why> {
        let number = match &self.pieces[..] {
            [] => return Err(Why::NoDevices),
            [first, rest @ ..] if rest.iter().all(|piece| piece.engine() == first.engine()) => first.engine(),
            _ => return Err(Why::Engines),
        };
        let inputs: HashMap<usize, usize> =
            contents.inputs().enumerate().map(|(number, node)| (node, number)).collect();
        let outputs = contents.outputs.iter().enumerate().map(|(number, (_, value))| (*value, inputs.len() + number));
        let outputs: HashMap<Value, usize> = outputs.collect();
        let home = &devices[number];
        let is_home = |engine: Option<&Ref<Engine>>| engine.is_some_and(|engine| engine.is_same_device(home));
        if !(0..contents.outputs.len()).all(|output| is_home(contents.homes.output(output))) {
            return Err(Why::Tensors);
        }
        let tensor = |value: &Value| match inputs.get(&value.0) {
            Some(&input) => is_home(contents.homes.input(input)).then_some(input).ok_or(Why::Tensors),
            None => outputs.get(value).copied().ok_or(Why::Host),
        };
        let mut nodes: HashMap<*const (), (usize, &[Value], usize)> = HashMap::new();
        for (at, node) in contents.nodes.iter().enumerate() {
            match &node.body {
                Body::Input(_) | Body::Constant(_) => {}
                Body::Kernel { kernel, inputs, num_outputs } => {
                    nodes.insert(Arc::as_ptr(kernel.kernel()).cast(), (at, inputs, *num_outputs));
                }
                _ => return Err(Why::Host),
            }
        }
        let mut parts = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let Some((at, inputs, num_outputs)) = nodes.remove(&piece.address()) else { return Err(Why::Host) };
            let given = inputs.iter().map(&tensor);
            let made = (0..num_outputs).map(|output| outputs.get(&(at, output)).copied().ok_or(Why::Host));
            let tensors = given.chain(made).collect::<Result<_, _>>()?;
            let (piece, num_inputs, never_prepared) = (piece.clone(), inputs.len(), AtomicBool::new(false));
            parts.push(Part { piece, tensors, num_inputs, never_prepared });
        }
        let mut constants = Vec::new();
        for upload in &self.uploads {
            let Some((_, inputs, _)) = nodes.remove(&Arc::as_ptr(upload).cast()) else { return Err(Why::Host) };
            match &contents.nodes[inputs[0].0].body {
                Body::Constant(value) if value.engine().accelerator().is_none() => {
                    constants.push((Arc::clone(upload), Ref::clone(value)));
                }
                Body::Input(_) => return Err(Why::Tensors),
                _ => return Err(Why::Host),
            }
        }
        for kernel in &self.bounds {
            nodes.remove(&Arc::as_ptr(kernel).cast());
        }
        if !nodes.is_empty() {
            return Err(Why::Host);
        }
        if self.pieces.iter().any(Piece::is_by_host) {
            return Err(Why::Control);
        }
        let is_issued = |piece: &Piece| matches!(piece, Piece::Issue(_));
        if needs[number].num_streams > 1 && self.pieces.iter().any(is_issued) {
            return Err(Why::Streams);
        }
        let (shared, frames) = (Arc::clone(frames), Mutex::default());
        let has_issuers = self.pieces.iter().any(Piece::has_issuer);
        let has_control = parts.iter().any(|part| part.control().is_some());
        let (engine, is_tried, trial) = (Ref::clone(home), AtomicBool::new(false), Mutex::default());
        Ok(Direct { shared, engine, number, parts, constants, has_issuers, has_control, is_tried, trial, frames })
    }
}

impl Direct {
    /// Whether runs may be issued to streams, as far as that is known. None: not before a trial.
    #[inline]
    pub fn is_possible(&self) -> Option<bool> {
        match self.has_control {
            false => Some(true),
            true if self.shared.counts.refusal.get().is_some() => Some(false),
            true => self.is_tried.load(Relaxed).then_some(true),
        }
    }

    /// Has the device record the branches and loops for a frame of this queue's, with the tensors of the first run;
    /// whether it has.
    #[cold]
    pub fn try_out(&self, queue: &Arc<Queue>, tensors: &[Option<Ref<Tensor>>]) -> Result<bool> {
        let _turn = self.trial.lock();
        if let Some(is_possible) = self.is_possible() {
            return Ok(is_possible);
        }
        let made = self.make(queue.id())?;
        let frame = &made.frame;
        let mut record = || {
            let mut controls = self.parts.iter().filter_map(|part| Some((part, part.control()?)));
            controls.try_for_each(|(part, segment)| {
                part.with(tensors, |context| segment.submit_as_one(frame, None, context))
            })
        };
        let recorded = frame.engines[self.number].within(&mut record);
        match recorded {
            Ok(()) => {
                self.frames.lock().push(made);
                self.is_tried.store(true, Relaxed);
                Ok(true)
            }
            Err(error) if error.code() != Code::DeviceLost && self.shared.counts.refusal.get().is_some() => Ok(false),
            Err(error) => Err(of(&self.engine.label())(error)),
        }
    }

    /// Issues a run to a stream, whose queue's turn the caller has. `lent` keeps what the run has of a frame, whatever
    /// comes of it.
    pub fn issue(
        &self,
        queue: &Arc<Queue>,
        stream: &dyn DeviceStream,
        tensors: &[Option<Ref<Tensor>>],
        lent: &mut Lent,
    ) -> Result<()> {
        self.shared.counts.direct.fetch_add(1, Relaxed);
        let mut before = lent.frame.take().filter(|frame| frame.of.load(Relaxed) == queue.id());
        loop {
            let frame = match before.take() {
                Some(frame) => frame,
                None => self.frame(queue)?,
            };
            let mut state = frame.state.lock();
            if frame.of.load(Relaxed) != queue.id() {
                continue;
            }
            if state.is_anothers_in_a_capture(queue) && frame.under_way.load(Acquire) > 0 {
                // Nobody can wait for that stream now.
                frame.of.store(state.last.0, Relaxed);
                drop(state);
                let made = self.make(queue.id())?;
                self.frames.lock().push(Arc::clone(&made));
                before = Some(made);
                continue;
            }
            let issued = self.issue_in(&frame, &mut state, (queue, stream), tensors, lent);
            drop(state);
            lent.frame = Some(frame);
            return issued;
        }
    }

    /// Issues a run once more that is under way, with the same tensors, in the frame that it has. None if that is
    /// another queue's by now, or there is more to do than to issue the pieces: then it is to be issued anew.
    pub fn again(
        &self,
        queue: &Queue,
        stream: &dyn DeviceStream,
        tensors: &[Option<Ref<Tensor>>],
        lent: &mut Lent,
    ) -> Option<Result<()>> {
        let frame = lent.frame.as_ref().filter(|_| lent.is_used && self.is_possible() == Some(true))?;
        let state = frame.state.lock();
        let now = Copied { queue: queue.id(), epoch: queue.epoch() };
        let has_constants = frame.is_proven.load(Relaxed) || state.copied == Some(now);
        let is_own = frame.of.load(Relaxed) == queue.id() && state.last.0 == queue.id();
        if !is_own || !has_constants || !state.has_run {
            return None;
        }
        self.shared.counts.direct.fetch_add(1, Relaxed);
        if let [part] = &self.parts[..] {
            if !std::mem::replace(&mut lent.is_prepared, true) {
                lent.prepared = part.prepare(&frame.frame, stream, tensors, lent.prepared.take());
            }
            if let Some(prepared) = &lent.prepared {
                return Some(part.launch_prepared(stream, &**prepared));
            }
        }
        let mut issue = || self.parts.iter().try_for_each(|part| part.issue(&frame.frame, stream, tensors, true));
        // One look at what is current is for all pieces; one piece has its own.
        Some(match self.engine.accelerator().filter(|_| !self.has_issuers && self.parts.len() > 1) {
            Some(accelerator) => accelerator.within(&mut issue),
            None => issue(),
        })
    }

    fn issue_in(
        &self,
        frame: &DirectLane,
        state: &mut State,
        (queue, stream): (&Arc<Queue>, &dyn DeviceStream),
        tensors: &[Option<Ref<Tensor>>],
        lent: &mut Lent,
    ) -> Result<()> {
        // ORDERING: Acquire pairs with the Release in `Lent::over`.
        let under_way = frame.under_way.fetch_add(1, Acquire);
        lent.is_used = true;
        if under_way == 0 {
            frame.frame.drop_retired();
        }
        if state.last.0 != queue.id() {
            let last = std::mem::replace(&mut state.last, (queue.id(), Arc::downgrade(queue)));
            if under_way > 0 {
                lent.event = self.wait_for(&last.1, stream)?;
            }
        }
        let now = Copied { queue: queue.id(), epoch: queue.epoch() };
        let must_copy = !frame.is_proven.load(Relaxed) && state.copied != Some(now);
        let mut issue = || {
            if must_copy {
                self.copy_constants(&frame.frame, stream)?;
                state.copied = Some(now);
            }
            self.parts.iter().try_for_each(|part| part.issue(&frame.frame, stream, tensors, state.has_run))?;
            state.has_run = true;
            Ok(())
        };
        match self.engine.accelerator().filter(|_| !self.has_issuers) {
            Some(accelerator) => accelerator.within(&mut issue)?,
            None => issue()?,
        }
        lent.copied = state.copied;
        Ok(())
    }

    /// Why no run can be part of what the host captures.
    pub fn check_capture(&self) -> Result<()> {
        let refuse = |why| Err(Error::precondition(format!("a run cannot be captured: {why}")));
        if self.has_control {
            return refuse(
                "the program has branches or loops that the device decides, which no graph can have inside of it",
            );
        }
        if self.has_issuers {
            return refuse("the program has variables or tables, which may be elsewhere the next time");
        }
        Ok(())
    }

    /// Issues a run to a stream that the host captures, each piece by itself, in a frame of the run's own: nobody knows
    /// when and how often what the host captures is done. It is the run's until the run is over.
    pub fn capture(&self, stream: &dyn DeviceStream, tensors: &[Option<Ref<Tensor>>], lent: &mut Lent) -> Result<()> {
        let Some(accelerator) = self.engine.accelerator() else { return Err(Error::internal("a run on the host")) };
        self.shared.counts.direct.fetch_add(1, Relaxed);
        let made = self.make(NOBODY)?;
        if !self.constants.is_empty() {
            // Not by the stream: each time would copy them again.
            let name = format!("constants of stream {}", self.engine.label());
            let aside = accelerator.stream(&DeviceStreamAttr { name: &name, priority: 0 })?;
            let copied = accelerator.event(false)?;
            self.copy_constants(&made.frame, &*aside)?;
            aside.record(&copied)?;
            copied.synchronize(Deadline::NEVER)?;
        }
        made.under_way.fetch_add(1, Relaxed);
        lent.is_used = true;
        let frame = lent.frame.insert(made);
        self.parts.iter().try_for_each(|part| part.issue(&frame.frame, stream, tensors, false))
    }

    /// A frame that belongs to this queue from now on, until another one takes it.
    fn frame(&self, queue: &Arc<Queue>) -> Result<Arc<DirectLane>> {
        let frames = self.frames.lock();
        if let Some(frame) = frames.iter().find(|frame| frame.of.load(Relaxed) == queue.id()) {
            return Ok(Arc::clone(frame));
        }
        let is_free = |frame: &&Arc<DirectLane>| frame.under_way.load(Relaxed) == 0;
        let free = frames.iter().find(is_free);
        // The one that fewest use, if there may be no more.
        let any = || frames.iter().min_by_key(|frame| frame.under_way.load(Relaxed)).filter(|_| frames.len() >= MOST);
        if let Some(frame) = free.or_else(any) {
            // Who issues a run to it is waited for.
            let _state = frame.state.lock();
            frame.of.store(queue.id(), Relaxed);
            return Ok(Arc::clone(frame));
        }
        // Not under the lock: devices, and allocators of the host's, may be slow.
        drop(frames);
        let made = self.make(queue.id())?;
        self.frames.lock().push(Arc::clone(&made));
        Ok(made)
    }

    fn make(&self, queue: u64) -> Result<Arc<DirectLane>> {
        Ok(Arc::new(DirectLane {
            frame: self.shared.make(Way::Direct)?,
            of: AtomicU64::new(queue),
            under_way: AtomicUsize::new(0),
            is_proven: AtomicBool::new(self.constants.is_empty()),
            state: Mutex::default(),
        }))
    }

    /// Has a stream wait on the device for all that another queue was given. A queue that is gone has nothing under
    /// way.
    fn wait_for(&self, last: &Weak<Queue>, stream: &dyn DeviceStream) -> Result<Option<Arc<dyn DeviceEvent>>> {
        let Some(last) = last.upgrade() else { return Ok(None) };
        let (Some(line), Some(accelerator)) = (last.device_queue(), self.engine.accelerator()) else { return Ok(None) };
        let event = accelerator.event(false)?;
        line.stream().record(&event)?;
        stream.wait(&event)?;
        Ok(Some(event))
    }

    fn copy_constants(&self, frame: &RunFrame, stream: &dyn DeviceStream) -> Result<()> {
        let on = &frame.engines[self.number];
        for (upload, value) in &self.constants {
            let there = &on.uploads[upload.number];
            let bytes = value.bytes();
            if bytes == 0 {
                continue;
            }
            // Once: a copy that is under way may read it.
            if !there.is_there.swap(true, Relaxed) {
                on.engine.host_uses(there.staging.data().addr(), bytes, true, "upload");
                // SAFETY: the block's memory; this is the first to write it, and no copy reads it yet. The value is a
                // constant, which nobody writes.
                unsafe {
                    let staging = View::new(there.staging.data(), bytes, upload.desc);
                    staging.as_bytes_mut().copy_from(value.view().as_bytes());
                }
            }
            let to = Location::Device(on.arena.data() as usize + upload.to);
            // SAFETY: the frame keeps it, and it is not written again.
            let from = Location::Host(unsafe { HostAddress::new(there.staging.data() as usize) });
            stream.copy(&Transfer { name: &upload.name, to, from, bytes })?;
        }
        Ok(())
    }

    /// Lets go of the memory of frames that have nothing under way.
    pub fn trim(&self) {
        let mut frames = self.frames.lock();
        let all = std::mem::take(&mut *frames);
        let (busy, free): (Vec<_>, Vec<_>) = all.into_iter().partition(|frame| frame.under_way.load(Acquire) > 0);
        *frames = busy;
        drop(frames);
        drop(free);
    }
}
