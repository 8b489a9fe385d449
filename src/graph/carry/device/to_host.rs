//! Copies that somebody waits for: from an engine to the host, into a run's own tensors, and from one engine to
//! another. They complete when the bytes are there, and hold no thread until then.
//!
//! One such copy is issued by one engine, on its stream for fetches, which waits for the piece of work that writes the
//! value and for nothing else. To the host's memory and from it they go through pinned memory, if the device knows
//! such. What a copy reads and writes keeps its bytes until the run is over, so nothing else has to be waited for.

use super::device_frame::{Call, Source};
use super::frame_stream::of;
use super::frames::{DeviceFrames, RunFrame, lane_of};
use super::kernels::{device_frame, later, shape};
use super::replays::Writer;
use crate::base::{Desc, Error, Result};
use crate::device::{DeviceStream, HostAddress, Location, Reached, Then, Transfer};
use crate::kernel::{Completion, Kernel, KernelContext, Outputs, Rest};
use crate::memory::View;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Where a copy begins or ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Point {
    Host(Source),
    /// In the memory of the engine that copies.
    Own(Source),
    /// In that of another one, by number.
    Peer(usize, Source),
}

impl Point {
    fn place<'a>(self, frame: &'a RunFrame, own: usize, context: &KernelContext<'_>) -> Result<Location<'a>> {
        Ok(match self {
            Point::Host(source) => {
                let address = source.address(&frame.engines[own], context);
                // SAFETY: a tensor that the node is given, until it is done.
                Location::Host(unsafe { HostAddress::new(address) })
            }
            Point::Own(source) => Location::Device(source.address(&frame.engines[own], context)),
            Point::Peer(engine, source) => {
                let on = &frame.engines[engine];
                let peer = on.engine.accelerator();
                let peer = peer.ok_or_else(|| Error::internal("a copy to an engine of the host's"))?;
                Location::Peer(peer, source.address(on, context))
            }
        })
    }
}

/// Input: the value, if a node has it. Output: the value, if it becomes one here.
pub(in crate::graph) struct Carry {
    pub frames: Arc<DeviceFrames>,
    /// The engine that copies.
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub number: usize,
    pub from: Point,
    pub to: Point,
    /// What writes it; None: it is there.
    pub writer: Option<Writer>,
    pub num_inputs: usize,
    pub has_output: bool,
    pub desc: Desc,
    pub name: String,
}

impl Kernel for Carry {
    shape!("copy that is waited for", of self: self.num_inputs, usize::from(self.has_output));
    device_frame!();
    later!();

    fn is_relied_on(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(if self.has_output { vec![self.desc] } else { Vec::new() })
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let frame = lane_of(context)?;
        let bytes = self.desc.bytes()?;
        let on = &frame.engines[self.engine];
        let (mut from, mut to) =
            (self.from.place(&frame, self.engine, context)?, self.to.place(&frame, self.engine, context)?);
        let mut rest = None;
        if let Some(staging) = &on.fetched[self.number].staging {
            let staged = staging.data().expose_provenance();
            // SAFETY: the frame keeps it, and the next run on the frame comes behind this one.
            let place = Location::Host(unsafe { HostAddress::new(staged) });
            match (from, to) {
                (Location::Host(address), _) => {
                    on.engine.host_uses(staged, bytes, true, "copy");
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
                    rest = Some(Arc::clone(&on.fetched[self.number]) as Arc<dyn Rest>);
                    to = place;
                }
            }
        }
        let copy = |stream: &dyn DeviceStream| match bytes {
            0 => Ok(()),
            _ => stream.copy(&Transfer { name: &self.name, to, from, bytes }),
        };
        complete(&frame, (self.engine, self.number), self.writer, copy, (done, rest)).map_err(of(&self.label))
    }
}

pub(in crate::graph) struct Done {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    pub number: usize,
    pub writer: Writer,
}

impl Kernel for Done {
    shape!("done on a device", 0, 0);
    device_frame!();
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let frame = lane_of(context)?;
        let number = (self.engine, self.number);
        complete(&frame, number, Some(self.writer), |_| Ok(()), (done, None)).map_err(of(&self.label))
    }
}

/// Iterations that are issued before the host looks how far the device is.
const AHEAD: u64 = 64;

/// In a loop whose iterations wait for nothing on the host: keeps it from issuing without end. A stream's queue is
/// bounded by twice the work of so many iterations.
pub(in crate::graph) struct Pace {
    pub frames: Arc<DeviceFrames>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    /// Among the engine's, and its two events among what is asked of the stream of fetches.
    pub number: usize,
    pub marks: [usize; 2],
}

impl Kernel for Pace {
    shape!("pace of a loop", 0, 0);
    device_frame!();
    later!();

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(Vec::new())
    }

    fn start(&self, context: &KernelContext<'_>, _outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let frame = lane_of(context)?;
        let on = &frame.engines[self.engine];
        // ORDERING: Relaxed; one run at a time has the frame, and edges order its nodes.
        let iteration = on.paces[self.number].fetch_add(1, Relaxed);
        if !iteration.is_multiple_of(AHEAD) {
            return done.done(Ok(()));
        }
        let turn = (iteration / AHEAD) as usize % 2;
        on.streams[0].lock().mark(&on.fetched[self.marks[turn]].event).map_err(of(&self.label))?;
        if iteration == 0 {
            return done.done(Ok(()));
        }
        let before = &on.fetched[self.marks[1 - turn]];
        let Some(accelerator) = on.engine.accelerator() else {
            return Err(Error::internal("a frame on the host's engine"));
        };
        *before.call.lock() = Some(Call { done, written: None, rest: None });
        accelerator.when_reached(&before.event.event, Then::shared(Arc::clone(before) as Arc<dyn Reached>));
        Ok(())
    }
}

/// Has the stream of fetches wait for what writes a value, does something on it, and tells when that is done. By an
/// engine's number, and the number among what it is asked for. What is left to the host is done before.
fn complete(
    frame: &Arc<RunFrame>,
    (engine, number): (usize, usize),
    writer: Option<Writer>,
    work: impl Fn(&dyn DeviceStream) -> Result<()>,
    (done, rest): (Completion, Option<Arc<dyn Rest>>),
) -> Result<()> {
    let on = &frame.engines[engine];
    let fetched = &on.fetched[number];
    let written = writer.map(|writer| frame.mark_behind(engine, writer).cloned()).transpose()?;
    let Some(accelerator) = on.engine.accelerator() else {
        return Err(Error::internal("a frame on the host's engine"));
    };
    let stream = on.fetch_stream()?.lock();
    on.within(&mut || {
        if let Some(written) = &written {
            stream.wait_for(written)?;
        }
        work(&*stream)?;
        stream.mark(&fetched.event)
    })?;
    drop(stream);
    *fetched.call.lock() = Some(Call { done, written, rest });
    accelerator.when_reached(&fetched.event.event, Then::shared(Arc::clone(fetched) as Arc<dyn Reached>));
    Ok(())
}
