//! Copies that a node waits for: from an engine to the host, into a run's own tensors, and from one engine to another.
//! They complete when the bytes are there, and hold no thread until then.
//!
//! Each copy is issued by one engine, on its stream for fetches, which waits only for the piece of work that writes the
//! value; or on the stream of that work, where nothing else could go on meanwhile (`place::lanes`). To and from the
//! host's memory they go through pinned memory, if the device has such. A copy's source and destination keep their bytes
//! until the run is over, so nothing else needs a wait.

use super::device_frame::{AwaitedCall, ValuePlace};
use super::frame_stream::of;
use super::frames::{DeviceFrames, RunFrame, frame_of};
use super::kernels::{device_node, later, shape};
use super::replays::ValueWriter;
use crate::base::{Desc, Error, Result};
use crate::device::{DeviceStream, HostAddress, Location, Reached, Then, Transfer};
use crate::kernel::{Completion, Kernel, KernelContext, Outputs, Rest};
use crate::memory::View;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// An end of a copy.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum CopyEnd {
    Host(ValuePlace),
    /// In the memory of the engine that copies.
    Own(ValuePlace),
    /// In the memory of another engine, by number.
    Peer(usize, ValuePlace),
}

impl CopyEnd {
    fn place<'a>(self, frame: &'a RunFrame, own: usize, context: &KernelContext<'_>) -> Result<Location<'a>> {
        Ok(match self {
            CopyEnd::Host(source) => {
                let address = source.address(&frame.engines[own], context);
                // SAFETY: a tensor that the node is given, until it is done.
                Location::Host(unsafe { HostAddress::new(address) })
            }
            CopyEnd::Own(source) => Location::Device(source.address(&frame.engines[own], context)),
            CopyEnd::Peer(engine, source) => {
                let device_frame = &frame.engines[engine];
                let peer = device_frame.engine.accelerator();
                let peer = peer.ok_or_else(|| Error::internal("a copy to an engine of the host's"))?;
                Location::Peer(peer, source.address(device_frame, context))
            }
        })
    }
}

/// Input: the value, if a node has it. Output: the value, if it becomes one here.
pub(in crate::graph) struct Carry {
    pub frames: Arc<DeviceFrames>,
    /// The engine that copies.
    pub engine: usize,
    /// The engine's label.
    pub label: Arc<str>,
    pub number: usize,
    pub from: CopyEnd,
    pub to: CopyEnd,
    /// The writer of the value; `None`: it is there.
    pub writer: Option<ValueWriter>,
    /// The stream of the work that the copy is in line with; `None`: that of fetches.
    pub stream: Option<usize>,
    pub num_inputs: usize,
    pub has_output: bool,
    pub desc: Desc,
    pub name: String,
}

impl Kernel for Carry {
    shape!("copy that is waited for", of self: self.num_inputs, usize::from(self.has_output));
    device_node!();
    later!();

    fn is_relied_on(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(if self.has_output { vec![self.desc] } else { Vec::new() })
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let frame = frame_of(context)?;
        let bytes = self.desc.bytes()?;
        let device_frame = &frame.engines[self.engine];
        let (mut from, mut to) =
            (self.from.place(&frame, self.engine, context)?, self.to.place(&frame, self.engine, context)?);
        let mut rest = None;
        if let Some(staging) = &device_frame.fetched[self.number].staging {
            let staged = staging.data().expose_provenance();
            // SAFETY: the frame keeps it, and the next run on the frame comes behind this one.
            let place = Location::Host(unsafe { HostAddress::new(staged) });
            match (from, to) {
                (Location::Host(address), _) => {
                    device_frame.engine.host_uses(staged, bytes, true, "copy");
                    // SAFETY: a tensor of this size that the node is given, and the block's memory, which the last copy
                    // of it has read.
                    unsafe {
                        let there = View::new(std::ptr::with_exposed_provenance_mut(address.get()), bytes, self.desc);
                        let staging = View::new(staging.data(), bytes, self.desc);
                        staging.as_bytes_mut().copy_from(there.as_bytes());
                    }
                    from = place;
                }
                _ => {
                    rest = Some(Arc::clone(&device_frame.fetched[self.number]) as Arc<dyn Rest>);
                    to = place;
                }
            }
        }
        let copy = |stream: &dyn DeviceStream| match bytes {
            0 => Ok(()),
            _ => stream.copy(&Transfer { name: &self.name, to, from, bytes }),
        };
        let place = (self.engine, self.number, self.stream);
        complete(&frame, place, self.writer, copy, (done, rest)).map_err(of(&self.label))
    }
}

pub(in crate::graph) struct Done {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's label.
    pub label: Arc<str>,
    pub number: usize,
    /// `None`: the last work of the stream.
    pub writer: Option<ValueWriter>,
    pub stream: Option<usize>,
}

impl Kernel for Done {
    shape!("done on a device", 0, 0);
    device_node!();
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let frame = frame_of(context)?;
        let place = (self.engine, self.number, self.stream);
        complete(&frame, place, self.writer, |_| Ok(()), (done, None)).map_err(of(&self.label))
    }
}

/// Iterations that are issued before the host checks the device's progress.
const AHEAD: u64 = 64;

/// Throttles a loop whose iterations wait for nothing on the host. A stream's queue is bounded by twice the work of so
/// many iterations.
pub(in crate::graph) struct Pace {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's label.
    pub label: Arc<str>,
    /// Its number among the engine's, and its two events among the uses of the stream of fetches.
    pub number: usize,
    pub marks: [usize; 2],
}

impl Kernel for Pace {
    shape!("pace of a loop", 0, 0);
    device_node!();
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let frame = frame_of(context)?;
        let device_frame = &frame.engines[self.engine];
        // ORDERING: Relaxed; one run at a time has the frame, and edges order its nodes.
        let iteration = device_frame.paces[self.number].fetch_add(1, Relaxed);
        if !iteration.is_multiple_of(AHEAD) {
            return done.done(Ok(()));
        }
        let turn = (iteration / AHEAD) as usize % 2;
        device_frame.streams[0].lock().mark(&device_frame.fetched[self.marks[turn]].event).map_err(of(&self.label))?;
        if iteration == 0 {
            return done.done(Ok(()));
        }
        let before = &device_frame.fetched[self.marks[1 - turn]];
        let Some(accelerator) = device_frame.engine.accelerator() else {
            return Err(Error::internal("a frame on the host's engine"));
        };
        *before.call.lock() = Some(AwaitedCall { done, written: None, rest: None, refusal: None });
        accelerator.when_reached(&before.event.event, Then::shared(Arc::clone(before) as Arc<dyn Reached>));
        Ok(())
    }
}

/// Has the stream of fetches wait for the writer of a value, does something on it, and completes when that is done; or
/// does so on the stream that it is in line on. Engine, use and stream are given by number. The host's other work is
/// done before.
fn complete(
    frame: &Arc<RunFrame>,
    (engine, number, in_line): (usize, usize, Option<usize>),
    writer: Option<ValueWriter>,
    work: impl Fn(&dyn DeviceStream) -> Result<()>,
    (done, rest): (Completion, Option<Arc<dyn Rest>>),
) -> Result<()> {
    let device_frame = &frame.engines[engine];
    let fetched = &device_frame.fetched[number];
    let written = writer.map(|writer| frame.mark_behind(engine, writer).cloned()).transpose()?;
    let Some(accelerator) = device_frame.engine.accelerator() else {
        return Err(Error::internal("a frame on the host's engine"));
    };
    let stream = match in_line {
        Some(stream) => device_frame.streams[stream].lock(),
        None => device_frame.fetch_stream()?.lock(),
    };
    let mut refusal = None;
    device_frame.within(&mut || {
        if let Some(written) = &written {
            stream.wait_for(written)?;
        }
        work(&*stream)?;
        // The work may write memory of the host's, which belongs to others when the node is over.
        refusal = stream.insist(&fetched.event)?;
        Ok(())
    })?;
    drop(stream);
    *fetched.call.lock() = Some(AwaitedCall { done, written, rest, refusal });
    accelerator.when_reached(&fetched.event.event, Then::shared(Arc::clone(fetched) as Arc<dyn Reached>));
    Ok(())
}
