//! The nodes that stand in a program for work on other engines. To the executor they are kernels of the host's like any others: cheap
//! ones that issue something, and some that complete when a device has got there.
//!
//! | node   | waits for (edges)                              | does                                                     |
//! |--------|------------------------------------------------|----------------------------------------------------------|
//! | Begin  | nothing                                        | finds the run's lane; all others have its number from it |
//! | Upload | the value, on the host                         | stages it, issues the copy, records                      |
//! | Issue  | what it reads to be *issued*, and the piece before it on its stream | has its stream wait, launches, records |
//! | Fetch  | the piece that writes the value to be issued   | issues the copy; completes when it is there              |
//! | Done   | a piece of work to be issued                   | completes when that is done: for edges without data      |
//! | End    | all of the above                               | the lane is clean                                        |
#![forbid(unsafe_code)]

use super::lane::{Call, Lane, Lanes};
use crate::base::{Desc, Error, Ref, Result, dtype};
use crate::device::{DeviceEvent, DeviceStream, Launch, Place, Reached, Then, Transfer};
use crate::engine::BoundKernel;
use crate::kernel::{Completion, Kernel, KernelContext, Rest};
use crate::memory::{Block, View};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What issuing something is thought to cost.
const ISSUE_NS: u64 = 2_000;

/// The number of a run's lane, as a value.
pub(super) fn token() -> Desc {
    Desc::new(dtype::S32, &[1])
}

/// Where a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// In the lane's memory, so many bytes in.
    Arena(usize),
    /// At an address that stays.
    Fixed(usize),
}

impl Source {
    fn address(self, lane: &Lane, engine: usize) -> usize {
        match self {
            Source::Arena(offset) => lane.engines[engine].arena.data() as usize + offset,
            Source::Fixed(address) => address,
        }
    }
}

/// What a stream waits for first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    Piece(usize),
    Upload(usize),
}

fn lane_of(lanes: &Lanes, context: &KernelContext<'_>, token: usize) -> Result<Arc<Lane>> {
    lanes.lane(context.inputs()[token].read_integer())
}

/// Puts the engine in front of what went wrong.
fn of(label: &str) -> impl FnOnce(Error) -> Error {
    move |error| error.within(format_args!("engine {label}"))
}

fn event_of(events: &[Option<Arc<dyn DeviceEvent>>], piece: usize) -> Result<&Arc<dyn DeviceEvent>> {
    events[piece].as_ref().ok_or_else(|| Error::internal("a wait for work that records nothing"))
}

/// The parts of a kernel that these have in common.
macro_rules! shape {
    ($name:literal, $inputs:expr, $outputs:expr) => {
        fn name(&self) -> &str {
            $name
        }
        fn num_inputs(&self) -> usize {
            $inputs
        }
        fn num_outputs(&self) -> usize {
            $outputs
        }
        fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
            ISSUE_NS
        }
    };
}

/// Those that do an engine's work.
macro_rules! on_engine {
    () => {
        fn engine(&self) -> Option<&str> {
            Some(&self.label)
        }
    };
}

/// Those that complete later: `compute` is not for use.
macro_rules! later {
    () => {
        fn is_async(&self) -> bool {
            true
        }
        fn compute(&self, _context: &KernelContext<'_>) -> Result<()> {
            Err(Error::internal("a node that completes later was called as if it did not"))
        }
    };
}

pub(super) struct Begin(pub Arc<Lanes>);

impl Kernel for Begin {
    shape!("begin on devices", 0, 1);
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![token()])
    }

    fn start(&self, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let output = &context.outputs()[0];
        let number = self.0.number(output.data() as usize)?;
        output.write_integer(number as i32);
        self.0.lane(number as i32)?.begin(move |result| drop(done.done(result)))
    }
}

pub(super) struct End(pub Arc<Lanes>);

impl Kernel for End {
    shape!("end on devices", 1, 0);

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        lane_of(&self.0, context, 0)?.end();
        Ok(())
    }
}

/// Inputs: the value, the lane.
pub(super) struct Upload {
    pub lanes: Arc<Lanes>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub number: usize,
    pub to: usize,
    pub desc: Desc,
    /// The value is always the same.
    pub is_constant: bool,
    pub name: String,
}

impl Kernel for Upload {
    shape!("copy to a device", 2, 0);
    on_engine!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let lane = lane_of(&self.lanes, context, 1)?;
        let on = &lane.engines[self.engine];
        let upload = &on.uploads[self.number];
        // ORDERING: Relaxed; one run at a time has the lane, and edges order its nodes.
        if self.is_constant && upload.is_there.swap(true, Relaxed) {
            return Ok(());
        }
        let bytes = context.inputs()[0].bytes();
        on.engine.host_uses(upload.staging.data().addr(), bytes, true, "upload");
        View::new(upload.staging.data(), bytes, self.desc).copy_from(&context.inputs()[0]);
        let to = Source::Arena(self.to).address(&lane, self.engine);
        let from = upload.staging.data() as usize;
        let stream = on.upload_stream.lock();
        let copied = match bytes {
            0 => Ok(()),
            _ => stream.copy(&Transfer { name: &self.name, to: Place::Device(to), from: Place::Host(from), bytes }),
        };
        copied.and_then(|()| stream.record(&upload.event)).inspect_err(|_| upload.is_there.store(false, Relaxed))
    }
}

/// A kernel on its engine. Input: the lane.
pub(super) struct Issue {
    pub lanes: Arc<Lanes>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub stream: usize,
    pub piece: usize,
    pub before: Vec<Before>,
    pub records: bool,
    pub kernel: Ref<BoundKernel>,
    pub inputs: Vec<(Source, Desc)>,
    pub outputs: Vec<(Source, Desc)>,
    pub name: String,
}

impl Issue {
    fn issue(&self, lane: &Lane, stream: &dyn DeviceStream) -> Result<()> {
        let on = &lane.engines[self.engine];
        for before in &self.before {
            stream.wait(match *before {
                Before::Piece(piece) => event_of(&on.events, piece)?,
                Before::Upload(upload) => &on.uploads[upload].event,
            })?;
        }
        let view = |&(source, desc): &(Source, Desc)| -> Result<View> {
            Ok(View::new(source.address(lane, self.engine) as *mut u8, desc.bytes()?, desc))
        };
        let inputs = self.inputs.iter().map(view).collect::<Result<SmallVec<[View; 4]>>>()?;
        let outputs = self.outputs.iter().map(view).collect::<Result<SmallVec<[View; 4]>>>()?;
        let Some(kernel) = self.kernel.on_device() else { return Err(Error::internal("a host's kernel on a device")) };
        stream.launch(&Launch { name: &self.name, kernel, inputs: &inputs, outputs: &outputs })?;
        if self.records { stream.record(event_of(&on.events, self.piece)?) } else { Ok(()) }
    }
}

impl Kernel for Issue {
    shape!("launch on a device", 1, 0);
    on_engine!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let lane = lane_of(&self.lanes, context, 0)?;
        let stream = lane.engines[self.engine].streams[self.stream].lock();
        self.issue(&lane, &**stream).map_err(of(&self.label))
    }
}

/// Input: the lane. Output: the value.
pub(super) struct Fetch {
    pub lanes: Arc<Lanes>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub number: usize,
    pub from: Source,
    /// The piece that writes it; None: it is always there.
    pub writer: Option<usize>,
    pub desc: Desc,
    pub name: String,
}

impl Kernel for Fetch {
    shape!("copy from a device", 1, 1);
    on_engine!();
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![self.desc])
    }

    fn start(&self, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let lane = lane_of(&self.lanes, context, 0)?;
        let output = &context.outputs()[0];
        let staging = lane.engines[self.engine].fetched[self.number].staging.as_ref();
        let to = staging.map_or(output.data(), Block::data).expose_provenance();
        let bytes = output.bytes();
        let from = self.from.address(&lane, self.engine);
        let copy = |stream: &dyn DeviceStream| match bytes {
            0 => Ok(()),
            _ => stream.copy(&Transfer { name: &self.name, to: Place::Host(to), from: Place::Device(from), bytes }),
        };
        complete(&lane, (self.engine, self.number), self.writer, copy, done).map_err(of(&self.label))
    }
}

/// Input: the lane.
pub(super) struct Done {
    pub lanes: Arc<Lanes>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub number: usize,
    pub piece: usize,
}

impl Kernel for Done {
    shape!("done on a device", 1, 0);
    on_engine!();
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let lane = lane_of(&self.lanes, context, 0)?;
        let number = (self.engine, self.number);
        complete(&lane, number, Some(self.piece), |_| Ok(()), done).map_err(of(&self.label))
    }
}

/// Has the stream of fetches wait for a piece, does something on it, and tells when that is done. By an engine's number, and the
/// number among what it is asked for.
fn complete(
    lane: &Arc<Lane>,
    (engine, number): (usize, usize),
    piece: Option<usize>,
    work: impl FnOnce(&dyn DeviceStream) -> Result<()>,
    done: Completion,
) -> Result<()> {
    let on = &lane.engines[engine];
    let fetched = &on.fetched[number];
    let written = piece.map(|piece| event_of(&on.events, piece).cloned()).transpose()?;
    let Some(accelerator) = on.engine.accelerator() else { return Err(Error::internal("a lane on the host's engine")) };
    let stream = on.fetch_stream.lock();
    if let Some(written) = &written {
        stream.wait(written)?;
    }
    work(&**stream)?;
    stream.record(&fetched.event)?;
    drop(stream);
    let rest = fetched.staging.is_some().then(|| Arc::clone(fetched) as Arc<dyn Rest>);
    *fetched.call.lock() = Some(Call { done, written, rest });
    accelerator.when_reached(&fetched.event, Then::shared(Arc::clone(fetched) as Arc<dyn Reached>));
    Ok(())
}
