//! Programs that run on one engine alone, run on a stream of that engine: the work goes to that very stream, in the
//! calling thread, like a kernel's. There is no executor, no event, no thread that watches, and the host waits for
//! nothing: earlier work of the stream comes before, later work after.
//!
//! *Which programs.* Besides inputs, constants and the begin and end nodes, the graph has only pieces of one engine,
//! and all tensors are in its memory (`DeviceNodes::direct`; `DirectWhy` has the words for the others).
//!
//! *What a run does.* A frame's first run copies the constants and issues one piece after the other, the second has the
//! device record them, and from then on a run submits the recording: one call (`segment`). A single piece is never
//! recorded: its launch costs as much as that of a recording.
//!
//! *Branches and loops.* If the device decides, they are submitted as a recording in the first run too. A device may
//! refuse to make one, and the host cannot decide in its place unknown to the caller. So there is a trial before a
//! program's first run (`try_out`): if the device refuses, that run and all later ones go through the executor, and the
//! host decides (`driven`).
//!
//! *Frames.* A run's values lie in a frame's memory, and a recording is submitted to one stream at a time. So a frame
//! belongs to the stream that had it last, whose order is the order of its runs: the next run there takes it without
//! waiting. A run on another stream takes a frame that is known to have nothing in flight, else a new one; if there are
//! `MOST` of them, its stream waits on the device for the stream that has it. The thread that issues a run holds the
//! frame (`DirectFrameState`) meanwhile, and first checks that it still belongs to its stream.
//!
//! *Constants.* That their copies were issued does not mean that they are there: after a failure a stream does nothing
//! until its error is cleared. They are there for the stream that copied them, as long as its error has not been
//! cleared since (`Queue::epoch`), and for all streams once a run behind the copy is known to have ended well.

use super::device_frame::{EngineNeeds, FrameUse};
use super::direct_tape::DirectTape;
use super::frame_stream::of;
use super::frames::{DeviceFrames, RunFrame};
use super::kernels::Upload;
use super::part::{DeviceNodes, DirectPiece, PieceNode};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Ref, Result};
use crate::device::{DeviceEvent, DeviceStream, DeviceStreamAttr, HostAddress, Location, PreparedLaunch, Transfer};
use crate::engine::{Engine, Tensor};
use crate::graph::build::contents::{Contents, NodeBody, Value};
use crate::graph::carry::compiled::Compiled;
use crate::graph::plan::Body;
use crate::memory::View;
use crate::stream::Queue;
use crate::sync::{Mutex, OnceLock};
use crate::trace::{self, NONE};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Weak};

/// The most frames of a program.
const MOST: usize = 32;
/// The number of no queue.
const NOBODY: u64 = 0;

/// Why runs of a program are issued to the caller's stream, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectWhy {
    #[default]
    NoDevices,
    Host,
    Engines,
    Tensors,
    Streams,
    Control,
    Ranks,
    Direct,
}

impl DirectWhy {
    pub fn text(self) -> &'static str {
        match self {
            DirectWhy::NoDevices => "no, no other engine does any of it",
            DirectWhy::Host => "no, the host does some of it, or an output is a copy",
            DirectWhy::Engines => "no, several engines do it",
            DirectWhy::Tensors => "no, not all inputs and outputs are in the engine's memory",
            DirectWhy::Streams => "no, its work is spread over several streams and not recorded",
            DirectWhy::Control => "no, it has branches or loops that the host decides",
            DirectWhy::Ranks => "no, it has operations between ranks, which must know how each run ends",
            DirectWhy::Direct => "yes, on streams of its engine",
        }
    }
}

/// A program whose runs are issued to a stream of its engine.
pub(in crate::graph) struct Direct {
    shared: Arc<DeviceFrames>,
    pub engine: Ref<Engine>,
    /// The number of the engine.
    number: usize,
    parts: Vec<DirectPiece>,
    /// Their nodes in the plan, for traces.
    nodes: OnceLock<Box<[u32]>>,
    constants: Vec<(Arc<Upload>, Ref<Tensor>)>,
    has_issuers: bool,
    /// There are branches or loops.
    has_control: bool,
    /// The device has recorded them once. ORDERING: Relaxed; set with the lock of `trial` held, and the recordings are
    /// behind other locks.
    is_tried: AtomicBool,
    trial: Mutex<()>,
    frames: Mutex<Vec<Arc<DirectFrame>>>,
}

struct DirectFrame {
    frame: RunFrame,
    /// The number of the queue that it belongs to. Written with the state locked.
    of: AtomicU64,
    /// Runs that were issued and are not known to be over. Incremented with the state locked.
    in_flight: AtomicUsize,
    /// The constants are there. ORDERING: Relaxed; set when an event behind the copies was reached, and read by threads
    /// that issue later work of the device.
    is_proven: AtomicBool,
    state: Mutex<DirectFrameState>,
}

#[derive(Default)]
struct DirectFrameState {
    /// The queue to which the last run was issued, and its number.
    last: (u64, Weak<Queue>),
    /// The copies of the constants to this frame.
    copied: Option<Copied>,
    has_run: bool,
}

impl DirectFrameState {
    /// The last run was issued to another queue, whose stream the host captures now.
    fn is_anothers_in_a_capture(&self, queue: &Queue) -> bool {
        let is_captured =
            |last: Arc<Queue>| last.device_queue().is_some_and(|line| !matches!(line.is_captured(), Ok(false)));
        self.last.0 != queue.id() && self.last.1.upgrade().is_some_and(is_captured)
    }
}

/// The queue on which constants were copied, and its epoch then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied {
    queue: u64,
    epoch: u64,
}

/// A run's hold on a frame until it is over; and which frame that was, for the next run.
#[derive(Default)]
pub(in crate::graph) struct FrameHold {
    frame: Option<Arc<DirectFrame>>,
    is_used: bool,
    copied: Option<Copied>,
    /// The event for which its stream waits first.
    event: Option<Arc<dyn DeviceEvent>>,
    /// For a run of one kernel: its launch in that frame, with the run's tensors, if the run was repeated and so
    /// `is_prepared`; else one of an earlier run.
    prepared: Option<Box<dyn PreparedLaunch>>,
    is_prepared: bool,
}

impl FrameHold {
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
        // ORDERING: Release pairs with the Acquire of a thread that takes a frame with nothing in flight.
        frame.in_flight.fetch_sub(1, Release);
        // No other run has had it, and none will.
        if frame.of.load(Relaxed) == NOBODY {
            self.frame = None;
        }
    }
}

impl Drop for FrameHold {
    fn drop(&mut self) {
        self.over(false);
    }
}

/// Issues a piece, and notes it in a traced run.
#[inline]
fn noted(tape: Option<&DirectTape<'_>>, number: usize, issue: impl FnOnce() -> Result<()>) -> Result<()> {
    match tape {
        None => issue(),
        Some(tape) => tape.piece(number, issue),
    }
}

impl DeviceNodes {
    /// The issuer of runs, if the program is one engine's alone.
    pub fn direct(
        &self,
        contents: &Contents,
        devices: &[Ref<Engine>],
        needs: &[EngineNeeds],
        frames: &Arc<DeviceFrames>,
    ) -> Result<Direct, DirectWhy> {
        let number = match &self.pieces[..] {
            [] => return Err(DirectWhy::NoDevices),
            [first, rest @ ..] if rest.iter().all(|piece| piece.engine() == first.engine()) => first.engine(),
            _ => return Err(DirectWhy::Engines),
        };
        let inputs: HashMap<usize, usize> =
            contents.inputs().enumerate().map(|(number, node)| (node, number)).collect();
        let outputs = contents.outputs.iter().enumerate().map(|(number, (_, value))| (*value, inputs.len() + number));
        let outputs: HashMap<Value, usize> = outputs.collect();
        let home = &devices[number];
        let is_home = |engine: Option<&Ref<Engine>>| engine.is_some_and(|engine| engine.is_same_device(home));
        if !(0..contents.outputs.len()).all(|output| is_home(contents.homes.output(output))) {
            return Err(DirectWhy::Tensors);
        }
        let tensor = |value: &Value| match inputs.get(&value.0) {
            Some(&input) => is_home(contents.homes.input(input)).then_some(input).ok_or(DirectWhy::Tensors),
            None => outputs.get(value).copied().ok_or(DirectWhy::Host),
        };
        let mut nodes: HashMap<*const (), (usize, &[Value], usize)> = HashMap::new();
        for (at, node) in contents.nodes.iter().enumerate() {
            match &node.body {
                NodeBody::Input(_) | NodeBody::Constant(_) => {}
                NodeBody::Kernel { kernel, inputs, num_outputs } => {
                    nodes.insert(Arc::as_ptr(kernel.kernel()).cast(), (at, inputs, *num_outputs));
                }
                _ => return Err(DirectWhy::Host),
            }
        }
        let mut parts = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let Some((at, inputs, num_outputs)) = nodes.remove(&piece.address()) else { return Err(DirectWhy::Host) };
            let given = inputs.iter().map(&tensor);
            let made = (0..num_outputs).map(|output| outputs.get(&(at, output)).copied().ok_or(DirectWhy::Host));
            let tensors = given.chain(made).collect::<Result<_, _>>()?;
            let (piece, num_inputs, never_prepared) = (piece.clone(), inputs.len(), AtomicBool::new(false));
            parts.push(DirectPiece { piece, tensors, num_inputs, never_prepared });
        }
        let mut constants = Vec::new();
        for upload in &self.uploads {
            let Some((_, inputs, _)) = nodes.remove(&Arc::as_ptr(upload).cast()) else { return Err(DirectWhy::Host) };
            match &contents.nodes[inputs[0].0].body {
                NodeBody::Constant(value) if value.engine().accelerator().is_none() => {
                    constants.push((Arc::clone(upload), Ref::clone(value)));
                }
                NodeBody::Input(_) => return Err(DirectWhy::Tensors),
                _ => return Err(DirectWhy::Host),
            }
        }
        for kernel in &self.bounds {
            nodes.remove(&Arc::as_ptr(kernel).cast());
        }
        if !nodes.is_empty() {
            return Err(DirectWhy::Host);
        }
        if self.pieces.iter().any(PieceNode::is_by_host) {
            return Err(DirectWhy::Control);
        }
        if self.pieces.iter().any(PieceNode::has_listener) {
            return Err(DirectWhy::Ranks);
        }
        let is_issued = |piece: &PieceNode| matches!(piece, PieceNode::Issue(_));
        if needs[number].num_streams > 1 && self.pieces.iter().any(is_issued) {
            return Err(DirectWhy::Streams);
        }
        let (shared, frames) = (Arc::clone(frames), Mutex::default());
        let has_issuers = self.pieces.iter().any(PieceNode::has_issuer);
        let has_control = parts.iter().any(|part| part.control().is_some());
        let (engine, is_tried, trial) = (Ref::clone(home), AtomicBool::new(false), Mutex::default());
        Ok(Direct {
            shared,
            engine,
            number,
            parts,
            nodes: OnceLock::new(),
            constants,
            has_issuers,
            has_control,
            is_tried,
            trial,
            frames,
        })
    }
}

impl Direct {
    /// Whether runs may be issued to streams, as far as that is known. `None`: not before a trial.
    #[inline]
    pub fn is_possible(&self) -> Option<bool> {
        match self.has_control {
            false => Some(true),
            true if self.shared.counts.refusal.get().is_some() => Some(false),
            true => self.is_tried.load(Relaxed).then_some(true),
        }
    }

    /// Has the device record the branches and loops for a frame of this queue, with the tensors of the first run.
    /// Returns whether it has.
    #[cold]
    pub fn try_out(&self, queue: &Arc<Queue>, tensors: &[Option<Ref<Tensor>>]) -> Result<bool> {
        let _trial = self.trial.lock();
        if let Some(is_possible) = self.is_possible() {
            return Ok(is_possible);
        }
        let made = self.make(queue.id())?;
        let frame = &made.frame;
        let mut record = || {
            let mut controls = self.parts.iter().filter_map(|part| Some((part, part.control()?)));
            controls.try_for_each(|(part, segment)| {
                part.with(frame, tensors, |context| segment.submit_as_one(frame, None, context))
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

    /// The records of a run; `None` if none wants it.
    #[inline]
    fn tape<'a>(&'a self, compiled: &'a Compiled) -> Option<DirectTape<'a>> {
        if !trace::is_on() {
            return None;
        }
        let nodes = self.nodes.get_or_init(|| {
            let address = |node: u32| Arc::as_ptr(compiled.plan.kernel(node)).cast::<()>();
            let is_kernel =
                |node: &u32| matches!(compiled.plan.bodies[*node as usize], Body::Kernel(_) | Body::Async(_));
            let all = (0..compiled.plan.len() as u32).filter(is_kernel);
            let nodes: HashMap<*const (), u32> = all.map(|node| (address(node), node)).collect();
            self.parts.iter().map(|part| nodes.get(&part.piece.address()).copied().unwrap_or(NONE)).collect()
        });
        DirectTape::open(compiled, nodes, self.shared.counts.direct.load(Relaxed))
    }

    /// Issues a run to a stream. The caller holds the drain lock of its queue. `hold` keeps the run's hold on a frame,
    /// even on failure.
    pub fn issue(
        &self,
        queue: &Arc<Queue>,
        (stream, compiled): (&dyn DeviceStream, &Compiled),
        tensors: &[Option<Ref<Tensor>>],
        hold: &mut FrameHold,
    ) -> Result<()> {
        self.shared.counts.direct.fetch_add(1, Relaxed);
        let mut before = hold.frame.take().filter(|frame| frame.of.load(Relaxed) == queue.id());
        loop {
            let frame = match before.take() {
                Some(frame) => frame,
                None => self.frame(queue)?,
            };
            let mut state = frame.state.lock();
            if frame.of.load(Relaxed) != queue.id() {
                continue;
            }
            if state.is_anothers_in_a_capture(queue) && frame.in_flight.load(Acquire) > 0 {
                // That stream cannot be waited for now.
                frame.of.store(state.last.0, Relaxed);
                drop(state);
                let made = self.make(queue.id())?;
                self.frames.lock().push(Arc::clone(&made));
                before = Some(made);
                continue;
            }
            let tape = self.tape(compiled);
            let issued = self.issue_in(&frame, &mut state, (queue, stream, tape.as_ref()), tensors, hold);
            tape.into_iter().for_each(|tape| tape.close(stream, &issued));
            drop(state);
            hold.frame = Some(frame);
            return issued;
        }
    }

    /// Issues a run in flight once more, with the same tensors, in the frame that it has. `None` if that belongs to
    /// another queue by now, or if more than issuing the pieces is needed: then the run must be issued anew.
    pub fn again(
        &self,
        queue: &Queue,
        (stream, compiled): (&dyn DeviceStream, &Compiled),
        tensors: &[Option<Ref<Tensor>>],
        hold: &mut FrameHold,
    ) -> Option<Result<()>> {
        let frame = hold.frame.as_ref().filter(|_| hold.is_used && self.is_possible() == Some(true))?;
        let state = frame.state.lock();
        let now = Copied { queue: queue.id(), epoch: queue.epoch() };
        let has_constants = frame.is_proven.load(Relaxed) || state.copied == Some(now);
        let is_own = frame.of.load(Relaxed) == queue.id() && state.last.0 == queue.id();
        if !is_own || !has_constants || !state.has_run {
            return None;
        }
        self.shared.counts.direct.fetch_add(1, Relaxed);
        if let [part] = &self.parts[..]
            && !std::mem::replace(&mut hold.is_prepared, true)
        {
            hold.prepared = part.prepare(&frame.frame, stream, tensors, hold.prepared.take());
        }
        let tape = self.tape(compiled);
        let mut issue = || match (&self.parts[..], &hold.prepared) {
            ([part], Some(prepared)) => noted(tape.as_ref(), 0, || part.launch_prepared(stream, &**prepared)),
            _ => self.issue_parts(&frame.frame, (stream, tape.as_ref()), tensors, true),
        };
        // One switch of the current device serves all pieces; a single piece makes its own.
        let issued = match self.engine.accelerator().filter(|_| !self.has_issuers && self.parts.len() > 1) {
            Some(accelerator) => accelerator.within(&mut issue),
            None => issue(),
        };
        tape.into_iter().for_each(|tape| tape.close(stream, &issued));
        Some(issued)
    }

    fn issue_in(
        &self,
        frame: &DirectFrame,
        state: &mut DirectFrameState,
        (queue, stream, tape): (&Arc<Queue>, &dyn DeviceStream, Option<&DirectTape<'_>>),
        tensors: &[Option<Ref<Tensor>>],
        hold: &mut FrameHold,
    ) -> Result<()> {
        // ORDERING: Acquire pairs with the Release in `FrameHold::over`.
        let in_flight = frame.in_flight.fetch_add(1, Acquire);
        hold.is_used = true;
        if in_flight == 0 {
            frame.frame.drop_retired();
        }
        if state.last.0 != queue.id() {
            if in_flight > 0 {
                hold.event = self.wait_for(&state.last.1, stream)?;
            }
            // Not before: if the wait was refused, the next run has to ask for it.
            state.last = (queue.id(), Arc::downgrade(queue));
        }
        let now = Copied { queue: queue.id(), epoch: queue.epoch() };
        let must_copy = !frame.is_proven.load(Relaxed) && state.copied != Some(now);
        let mut issue = || {
            if must_copy {
                self.copy_constants(&frame.frame, stream)?;
                state.copied = Some(now);
            }
            self.issue_parts(&frame.frame, (stream, tape), tensors, state.has_run)?;
            state.has_run = true;
            Ok(())
        };
        match self.engine.accelerator().filter(|_| !self.has_issuers) {
            Some(accelerator) => accelerator.within(&mut issue)?,
            None => issue()?,
        }
        hold.copied = state.copied;
        Ok(())
    }

    #[inline]
    fn issue_parts(
        &self,
        frame: &RunFrame,
        (stream, tape): (&dyn DeviceStream, Option<&DirectTape<'_>>),
        tensors: &[Option<Ref<Tensor>>],
        has_run: bool,
    ) -> Result<()> {
        let mut parts = self.parts.iter().enumerate();
        parts.try_for_each(|(number, part)| noted(tape, number, || part.issue(frame, stream, tensors, has_run)))
    }

    /// Refuses programs whose runs the host cannot capture.
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

    /// Issues a run to a stream that the host captures, each piece by itself, in a frame of the run's own: it is
    /// unknown when and how often captured work is done. The frame belongs to the run until the run is over.
    pub fn capture(
        &self,
        stream: &dyn DeviceStream,
        tensors: &[Option<Ref<Tensor>>],
        hold: &mut FrameHold,
    ) -> Result<()> {
        let Some(accelerator) = self.engine.accelerator() else { return Err(Error::internal("a run on the host")) };
        self.shared.counts.direct.fetch_add(1, Relaxed);
        let made = self.make(NOBODY)?;
        if !self.constants.is_empty() {
            // Not by the stream: each replay would copy them again.
            let name = format!("constants of stream {}", self.engine.label());
            let aside = accelerator.stream(&DeviceStreamAttr { name: &name, priority: 0 })?;
            let copied = accelerator.event(false)?;
            self.copy_constants(&made.frame, &*aside)?;
            aside.record(&copied)?;
            copied.synchronize(Deadline::NEVER)?;
        }
        made.in_flight.fetch_add(1, Relaxed);
        hold.is_used = true;
        let frame = hold.frame.insert(made);
        self.parts.iter().try_for_each(|part| part.issue(&frame.frame, stream, tensors, false))
    }

    /// A frame that belongs to this queue from now on, until another queue takes it.
    fn frame(&self, queue: &Arc<Queue>) -> Result<Arc<DirectFrame>> {
        let frames = self.frames.lock();
        if let Some(frame) = frames.iter().find(|frame| frame.of.load(Relaxed) == queue.id()) {
            return Ok(Arc::clone(frame));
        }
        let is_free = |frame: &&Arc<DirectFrame>| frame.in_flight.load(Relaxed) == 0;
        let free = frames.iter().find(is_free);
        // The one with the fewest runs in flight, if there may be no more.
        let any = || frames.iter().min_by_key(|frame| frame.in_flight.load(Relaxed)).filter(|_| frames.len() >= MOST);
        if let Some(frame) = free.or_else(any) {
            // Waits for a thread that issues a run to it.
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

    fn make(&self, queue: u64) -> Result<Arc<DirectFrame>> {
        Ok(Arc::new(DirectFrame {
            frame: self.shared.make(FrameUse::Direct)?,
            of: AtomicU64::new(queue),
            in_flight: AtomicUsize::new(0),
            is_proven: AtomicBool::new(self.constants.is_empty()),
            state: Mutex::default(),
        }))
    }

    /// Has a stream wait on the device for all work of another queue. A queue that is gone has nothing in flight.
    fn wait_for(&self, last: &Weak<Queue>, stream: &dyn DeviceStream) -> Result<Option<Arc<dyn DeviceEvent>>> {
        let Some(last) = last.upgrade() else { return Ok(None) };
        let (Some(line), Some(accelerator)) = (last.device_queue(), self.engine.accelerator()) else { return Ok(None) };
        let event = accelerator.event(false)?;
        line.stream().record(&event)?;
        stream.wait(&event)?;
        Ok(Some(event))
    }

    fn copy_constants(&self, frame: &RunFrame, stream: &dyn DeviceStream) -> Result<()> {
        let device_frame = &frame.engines[self.number];
        for (upload, value) in &self.constants {
            let there = &device_frame.uploads[upload.number];
            let bytes = value.bytes();
            if bytes == 0 {
                continue;
            }
            // Once: a copy in flight may read it.
            if !there.is_there.swap(true, Relaxed) {
                device_frame.engine.host_uses(there.staging.data().addr(), bytes, true, "upload");
                // SAFETY: the block's memory; this is the first to write it, and no copy reads it yet. The value is a
                // constant, which is never written.
                unsafe {
                    let staging = View::new(there.staging.data(), bytes, upload.desc);
                    staging.as_bytes_mut().copy_from(value.view().as_bytes());
                }
            }
            let to = Location::Device(device_frame.arena.data() as usize + upload.to);
            // SAFETY: the frame keeps it, and it is not written again.
            let from = Location::Host(unsafe { HostAddress::new(there.staging.data() as usize) });
            stream.copy(&Transfer { name: &upload.name, to, from, bytes })?;
        }
        Ok(())
    }

    /// Frees the memory of frames that have nothing in flight.
    pub fn trim(&self) {
        let mut frames = self.frames.lock();
        let all = std::mem::take(&mut *frames);
        let (busy, free): (Vec<_>, Vec<_>) = all.into_iter().partition(|frame| frame.in_flight.load(Acquire) > 0);
        *frames = busy;
        drop(frames);
        drop(free);
    }
}
