//! The nodes of a program that stand for work on other engines. To the executor they are host kernels like any others:
//! cheap ones that issue something, and some that complete when a device is done.
//!
//! | node    | predecessors                                | action                                                  |
//! |---------|---------------------------------------------|---------------------------------------------------------|
//! | Begin   | none                                        | waits until the run's frame is clean                    |
//! | Upload  | the value, on the host                      | stages it, issues the copy, records                     |
//! | Issue   | its inputs, *issued*; the last piece before | its stream waits; launches, records                     |
//! | Segment | those of its pieces                         | issues them or submits their recording (`segment`)      |
//! | Carry   | the piece that writes the value, *issued*   | issues the copy; completes when it is there             |
//! | Done    | a piece of work, *issued*                   | completes when that is done: for edges without data     |
//! | End     | all of the above                            | completes when the streams are done: the frame is clean |
//!
//! The piece before an Issue is the one on the same stream. A Segment completes later if the host decides in one
//! (`driven`). For Carry see `to_host`. End waits for all that the frame's streams were given.
//!
//! Carry, Issue and Segment are called even if their outputs are not used (`is_relied_on`): others rely on their having
//! run, as `ends` does.
//!
//! A run's own tensors on engines are inputs and outputs of these nodes, as of any kernel: so a node knows their
//! addresses.

use super::control::DeviceControl;
use super::device_frame::{Before, DeviceFrame, ValuePlace};
use super::frame_stream::{EventMark, Giving, mark_of, of};
use super::frames::{DeviceFrames, RunFrame, frame_of};
use crate::base::{Desc, Error, Ref, Result};
use crate::device::{HostAddress, Location, Transfer};
use crate::engine::BoundKernel;
use crate::graph::plan::actions::Where;
use crate::kernel::{Completion, Effect, Issuer, Kernel, KernelContext, Outputs, RunListener};
use crate::memory::View;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The estimated cost of issuing something.
pub(in crate::graph) const ISSUE_NS: u64 = 2_000;

/// The common parts of these kernels.
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

/// For nodes that do an engine's work.
macro_rules! device_node {
    () => {
        fn engine(&self) -> Option<&str> {
            Some(&self.label)
        }
        fn launcher(&self) -> Option<&$crate::base::Ref<$crate::threadpool::ThreadPool>> {
            self.frames.launcher(self.engine)
        }
    };
}

/// For nodes that complete later: `compute` is not for use.
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

pub(in crate::graph) use {device_node, later, shape};

pub(in crate::graph) struct Begin;

impl Kernel for Begin {
    shape!("begin on devices", 0, 0);
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        frame_of(context)?.begin(move |result| drop(done.done(result)))
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
        frame_of(context)?.end(move |result| drop(done.done(result)))
    }
}

/// Input: the value.
pub(in crate::graph) struct Upload {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's label.
    pub label: Arc<str>,
    pub number: usize,
    pub to: usize,
    pub desc: Desc,
    /// The value is always the same.
    pub is_constant: bool,
    /// A segment copies the staged bytes.
    pub is_recorded: bool,
    /// The stream of its readers, if it is in line there; `None`: that of uploads.
    pub stream: Option<usize>,
    pub name: String,
}

impl Kernel for Upload {
    shape!("copy to a device", 1, 0);
    device_node!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn compute(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        let frame = frame_of(context)?;
        let device_frame = &frame.engines[self.engine];
        let upload = &device_frame.uploads[self.number];
        // ORDERING: Relaxed; one run at a time has the frame, and edges order its nodes.
        let is_old = self.is_constant && upload.is_there.swap(true, Relaxed);
        upload.is_new.store(!is_old, Relaxed);
        if is_old {
            return Ok(());
        }
        let bytes = context.inputs()[0].bytes();
        let stream = match self.stream {
            Some(stream) => &device_frame.streams[stream],
            None => device_frame.upload_stream()?,
        };
        let copied = device_frame.timed(&frame.timed, None, || {
            device_frame.engine.host_uses(upload.staging.data().addr(), bytes, true, "upload");
            // SAFETY: the block's memory, which the last copy of it has read: one run at a time has the frame.
            let staging = unsafe { View::new(upload.staging.data(), bytes, self.desc) };
            // SAFETY: as above.
            unsafe { staging.as_bytes_mut() }.copy_from(context.input(0));
            if self.is_recorded && frame.is_replay() {
                return Ok(());
            }
            let to = ValuePlace::Arena(self.to).address(device_frame, context);
            // SAFETY: the frame keeps it, and the next run on the frame comes behind this one.
            let from = unsafe { HostAddress::new(upload.staging.data() as usize) };
            let stream = stream.lock();
            let copy = Transfer { name: &self.name, to: Location::Device(to), from: Location::Host(from), bytes };
            device_frame.within(&mut || {
                let copied = if bytes == 0 { Ok(()) } else { stream.copy(&copy) };
                copied.and_then(|()| if self.stream.is_some() { Ok(()) } else { stream.mark(&upload.event) })
            })
        });
        copied.inspect_err(|_| upload.is_there.store(false, Relaxed))
    }
}

/// A kernel on its engine. Inputs: its inputs that are a run's own tensors. Outputs: those that are.
pub(in crate::graph) struct Issue {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's label.
    pub label: Arc<str>,
    pub stream: usize,
    pub piece: usize,
    pub before: Vec<Before>,
    pub records: bool,
    pub kernel: Ref<BoundKernel>,
    /// Issues it, if it is not a single launch.
    pub issuer: Option<Arc<dyn Issuer>>,
    /// If it is a branch or a loop.
    pub control: Option<Arc<DeviceControl>>,
    pub inputs: Vec<(ValuePlace, Desc)>,
    pub outputs: Vec<(ValuePlace, Desc)>,
    /// The number of the node's inputs.
    pub num_inputs: usize,
    /// The descriptors of its outputs.
    pub given: Vec<Desc>,
    pub name: String,
}

impl Issue {
    pub fn issue(&self, frame: &RunFrame, stream: &Giving<'_>, context: &KernelContext<'_>) -> Result<()> {
        self.wait(frame, stream)?;
        self.launch(frame, &**stream, context)?;
        self.records(frame)?.map_or(Ok(()), |mark| stream.mark(mark))
    }

    /// Has the stream wait for the predecessors.
    pub fn wait(&self, frame: &RunFrame, stream: &Giving<'_>) -> Result<()> {
        let device_frame = &frame.engines[self.engine];
        self.before.iter().try_for_each(|before| stream.wait_for(before.mark(device_frame)?))
    }

    /// The event that is recorded behind it.
    pub fn records<'a>(&self, frame: &'a RunFrame) -> Result<Option<&'a Arc<EventMark>>> {
        self.records.then(|| mark_of(&frame.engines[self.engine].events[self.piece])).transpose()
    }

    /// Inputs, then outputs.
    pub fn views<'a>(
        &'a self,
        frame: &'a RunFrame,
        context: &'a KernelContext<'_>,
    ) -> impl Iterator<Item = Result<View>> + 'a {
        self.inputs.iter().chain(&self.outputs).map(move |&(source, desc)| {
            // SAFETY: the device's memory, which the frame or the run keeps; the host only passes the address on.
            Ok(unsafe {
                View::new(source.address(&frame.engines[self.engine], context) as *mut u8, desc.bytes()?, desc)
            })
        })
    }

    /// Calls with the views of its inputs and of its outputs.
    pub fn with_views<R>(
        &self,
        frame: &RunFrame,
        context: &KernelContext<'_>,
        call: impl FnOnce(&[View], &[View]) -> Result<R>,
    ) -> Result<R> {
        frame.engines[self.engine].views.with(|views| {
            self.views(frame, context).try_for_each(|view| view.map(|view| views.push(view)))?;
            let (inputs, outputs) = views.split_at(self.inputs.len());
            call(inputs, outputs)
        })
    }

    /// The copies of the run's own tensors before and behind a branch or a loop.
    pub fn copies_in<'a>(
        &'a self,
        control: &'a DeviceControl,
        device_frame: &'a DeviceFrame,
        context: &'a KernelContext<'_>,
    ) -> impl Iterator<Item = Transfer<'a>> {
        control.copied_in.iter().map(move |&(input, bytes)| {
            let from = Location::Device(self.inputs[input].0.address(device_frame, context));
            let to = Location::Device(control.address(device_frame, Where::Input(input)));
            Transfer { name: &control.name, to, from, bytes }
        })
    }

    pub fn copies_out<'a>(
        &'a self,
        control: &'a DeviceControl,
        device_frame: &'a DeviceFrame,
        context: &'a KernelContext<'_>,
    ) -> impl Iterator<Item = Transfer<'a>> {
        control.copied_out.iter().map(move |&(output, bytes)| {
            let from = Location::Device(control.address(device_frame, Where::Output(output)));
            let to = Location::Device(self.outputs[output].0.address(device_frame, context));
            Transfer { name: &control.name, to, from, bytes }
        })
    }
}

impl Kernel for Issue {
    shape!("launch on a device", of self: self.num_inputs, self.given.len());
    device_node!();

    fn effects(&self) -> &[Effect] {
        self.kernel.kernel().effects()
    }

    fn listeners(&self) -> &[Arc<dyn RunListener>] {
        self.kernel.kernel().listeners()
    }

    fn is_relied_on(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(self.given.clone())
    }

    fn compute(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        let frame = frame_of(context)?;
        let device_frame = &frame.engines[self.engine];
        let stream = device_frame.streams[self.stream].lock();
        let mut issue = || self.issue(&frame, &stream, context);
        let issued = if self.issuer.is_some() { issue() } else { device_frame.within(&mut issue) };
        issued.map_err(of(&self.label))
    }
}
