//! The nodes that stand in a program for work on other engines. To the executor they are kernels of the host's like any
//! others: cheap ones that issue something, and some that complete when a device has got there.
//!
//! | node   | waits for (edges)                              | does                                                     |
//! |--------|------------------------------------------------|----------------------------------------------------------|
//! | Begin  | nothing                                        | waits until the run's frame is clean                      |
//! | Upload | the value, on the host                         | stages it, issues the copy, records                      |
//! | Issue  | what it reads to be *issued*, and the piece before it on its stream | has its stream wait, launches, records |
//! | Segment | what its pieces wait for                      | issues them, or submits their recording (`segment`); later, if the host decides in one (`driven`) |
//! | Carry  | the piece that writes the value to be issued   | issues the copy; completes when it is there (`carry`)    |
//! | Done   | a piece of work to be issued                   | completes when that is done: for edges without data      |
//! | End    | all of the above                               | completes when the frame's streams are done with all that they were given: the frame is clean |
//!
//! Carry, Issue and Segment are called though nobody uses what they make (`is_relied_on`): others count on their having
//! been, as `ends` does.
//!
//! A run's own tensors on engines are inputs and outputs of these nodes, as they would be of any kernel: so a node
//! knows their addresses.

use super::control::Control;
use super::device_frame::{Before, DeviceFrame, Source};
use super::frame_stream::{Giving, Mark, mark_of, of};
use super::frames::{DeviceFrames, RunFrame, lane_of};
use crate::base::{Desc, Error, Ref, Result};
use crate::device::{HostAddress, Location, Transfer};
use crate::engine::BoundKernel;
use crate::graph::plan::actions::Where;
use crate::kernel::{Completion, Effect, Issuer, Kernel, KernelContext, Outputs};
use crate::memory::View;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What issuing something is thought to cost.
pub(in crate::graph) const ISSUE_NS: u64 = 2_000;

/// The parts of a kernel that these have in common.
macro_rules! shape {
    ($name:literal, $inputs:literal, $outputs:literal) => {
        shape!($name, of self: $inputs, $outputs);
    };
    ($name:literal, of $self:ident: $inputs:expr, $outputs:expr) => {
        fn name(&self) -> &str {
            $name
        }
        fn num_inputs(&$self) -> usize {
            $inputs
        }
        fn num_outputs(&$self) -> usize {
            $outputs
        }
        fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
            $crate::graph::carry::device::kernels::ISSUE_NS
        }
    };
}

/// Those that do an engine's work.
macro_rules! device_frame {
    () => {
        fn engine(&self) -> Option<&str> {
            Some(&self.label)
        }
        fn launcher(&self) -> Option<&$crate::base::Ref<$crate::threadpool::ThreadPool>> {
            self.frames.launcher(self.engine)
        }
    };
}

/// Those that complete later: `compute` is not for use.
macro_rules! later {
    () => {
        fn is_async(&self) -> bool {
            true
        }
        fn compute(&self, _context: &KernelContext<'_>, _outputs: $crate::kernel::Outputs<'_>) -> Result<()> {
            Err(Error::internal("a node that completes later was called as if it did not"))
        }
    };
}

pub(in crate::graph) use {device_frame, later, shape};

pub(in crate::graph) struct Begin;

impl Kernel for Begin {
    shape!("begin on devices", 0, 0);
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        lane_of(context)?.begin(move |result| drop(done.done(result)))
    }
}

pub(in crate::graph) struct End;

impl Kernel for End {
    shape!("end on devices", 0, 0);
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        lane_of(context)?.end(move |result| drop(done.done(result)))
    }
}

/// Input: the value.
pub(in crate::graph) struct Upload {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub number: usize,
    pub to: usize,
    pub desc: Desc,
    /// The value is always the same.
    pub is_constant: bool,
    /// A segment copies what is staged.
    pub is_recorded: bool,
    pub name: String,
}

impl Kernel for Upload {
    shape!("copy to a device", 1, 0);
    device_frame!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn compute(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        let frame = lane_of(context)?;
        let on = &frame.engines[self.engine];
        let upload = &on.uploads[self.number];
        // ORDERING: Relaxed; one run at a time has the frame, and edges order its nodes.
        let is_old = self.is_constant && upload.is_there.swap(true, Relaxed);
        upload.is_new.store(!is_old, Relaxed);
        if is_old {
            return Ok(());
        }
        let bytes = context.inputs()[0].bytes();
        let line = on.upload_stream()?;
        let copied = on.timed(&frame.timed, None, || {
            on.engine.host_uses(upload.staging.data().addr(), bytes, true, "upload");
            // SAFETY: the block's memory, which the last copy of it has read: one run at a time has the frame.
            let staging = unsafe { View::new(upload.staging.data(), bytes, self.desc) };
            // SAFETY: as above.
            unsafe { staging.as_bytes_mut() }.copy_from(context.input(0));
            if self.is_recorded && frame.is_replay() {
                return Ok(());
            }
            let to = Source::Arena(self.to).address(on, context);
            // SAFETY: the frame keeps it, and the next run on the frame comes behind this one.
            let from = unsafe { HostAddress::new(upload.staging.data() as usize) };
            let stream = line.lock();
            let copy = Transfer { name: &self.name, to: Location::Device(to), from: Location::Host(from), bytes };
            on.within(&mut || {
                let copied = if bytes == 0 { Ok(()) } else { stream.copy(&copy) };
                copied.and_then(|()| stream.mark(&upload.event))
            })
        });
        copied.inspect_err(|_| upload.is_there.store(false, Relaxed))
    }
}

/// A kernel on its engine. Inputs: values that are a run's own tensors. Outputs: those of the kernel that are.
pub(in crate::graph) struct Issue {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub stream: usize,
    pub piece: usize,
    pub before: Vec<Before>,
    pub records: bool,
    pub kernel: Ref<BoundKernel>,
    /// What issues it, if that is not one launch.
    pub issuer: Option<Arc<dyn Issuer>>,
    /// If it is a branch or a loop.
    pub control: Option<Arc<Control>>,
    pub inputs: Vec<(Source, Desc)>,
    pub outputs: Vec<(Source, Desc)>,
    /// How many inputs the node has.
    pub num_inputs: usize,
    /// What its outputs look like.
    pub given: Vec<Desc>,
    pub name: String,
}

/// What a call's tensors are, where they are.
type Views = SmallVec<[View; 4]>;

impl Issue {
    pub fn issue(&self, frame: &RunFrame, stream: &Giving<'_>, context: &KernelContext<'_>) -> Result<()> {
        self.wait(frame, stream)?;
        self.launch(frame, &**stream, context)?;
        self.records(frame)?.map_or(Ok(()), |mark| stream.mark(mark))
    }

    /// Has the stream wait for what comes before.
    pub fn wait(&self, frame: &RunFrame, stream: &Giving<'_>) -> Result<()> {
        let on = &frame.engines[self.engine];
        self.before.iter().try_for_each(|before| stream.wait_for(before.mark(on)?))
    }

    /// What is recorded behind it.
    pub fn records<'a>(&self, frame: &'a RunFrame) -> Result<Option<&'a Arc<Mark>>> {
        self.records.then(|| mark_of(&frame.engines[self.engine].events[self.piece])).transpose()
    }

    /// Inputs and outputs.
    pub fn views(&self, frame: &RunFrame, context: &KernelContext<'_>) -> Result<(Views, Views)> {
        let view = |&(source, desc): &(Source, Desc)| -> Result<View> {
            // SAFETY: the device's memory, which the frame or the run keeps; the host only hands the address on.
            Ok(unsafe {
                View::new(source.address(&frame.engines[self.engine], context) as *mut u8, desc.bytes()?, desc)
            })
        };
        Ok((
            self.inputs.iter().map(view).collect::<Result<_>>()?,
            self.outputs.iter().map(view).collect::<Result<_>>()?,
        ))
    }

    /// The copies of the run's own tensors before and behind a branch or a loop.
    pub fn copies_in<'a>(
        &'a self,
        control: &'a Control,
        on: &'a DeviceFrame,
        context: &'a KernelContext<'_>,
    ) -> impl Iterator<Item = Transfer<'a>> {
        control.copied_in.iter().map(move |&(input, bytes)| {
            let from = Location::Device(self.inputs[input].0.address(on, context));
            let to = Location::Device(control.address(on, Where::Input(input)));
            Transfer { name: &control.name, to, from, bytes }
        })
    }

    pub fn copies_out<'a>(
        &'a self,
        control: &'a Control,
        on: &'a DeviceFrame,
        context: &'a KernelContext<'_>,
    ) -> impl Iterator<Item = Transfer<'a>> {
        control.copied_out.iter().map(move |&(output, bytes)| {
            let from = Location::Device(control.address(on, Where::Output(output)));
            let to = Location::Device(self.outputs[output].0.address(on, context));
            Transfer { name: &control.name, to, from, bytes }
        })
    }
}

impl Kernel for Issue {
    shape!("launch on a device", of self: self.num_inputs, self.given.len());
    device_frame!();

    fn effects(&self) -> &[Effect] {
        self.kernel.kernel().effects()
    }

    fn is_relied_on(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(self.given.clone())
    }

    fn compute(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        let frame = lane_of(context)?;
        let on = &frame.engines[self.engine];
        let stream = on.streams[self.stream].lock();
        let mut issue = || self.issue(&frame, &stream, context);
        let issued = if self.issuer.is_some() { issue() } else { on.within(&mut issue) };
        issued.map_err(of(&self.label))
    }
}
