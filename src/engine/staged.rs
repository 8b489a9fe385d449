//! A copy between two devices without peer access: staged through host memory, in two copies on two streams.
//!
//! The half on the stream's own device goes onto the stream, the other one onto a stream of the other device made for
//! it. The stream continues when the second half is over, or was issued to the stream itself; no thread is held in
//! between.

use super::engine::Engine;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Code, Error, Ref, Result};
use crate::device::{
    DeviceEvent, DeviceStream, DeviceStreamAttr, HostAddress, Location, Then, Transfer, label, traced_stream,
};
use crate::memory::AlignedBuffer;
use crate::stream::{Queue, QueueWork};
use crate::sync::Mutex;
use std::sync::Arc;
use std::task::Poll;

/// The half in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    None,
    First,
    Second,
    /// One that nobody knows the end of: its device refused the event behind it.
    Unseen,
}

pub(super) struct Staged {
    source: Ref<Tensor>,
    target: Ref<Tensor>,
    memory: AlignedBuffer,
    /// A stream of the other device's, and an event behind each half.
    aside: Box<dyn DeviceStream>,
    read: Arc<dyn DeviceEvent>,
    written: Arc<dyn DeviceEvent>,
    half: Mutex<Half>,
    /// A refusal of an event, which was recorded at the second attempt.
    refusal: Mutex<Option<Error>>,
}

impl Staged {
    /// The stream is of one of the two tensors' devices.
    pub fn new(stream: &Stream, source: Ref<Tensor>, target: Ref<Tensor>) -> Result<Staged> {
        let other = if source.engine().is_same_device(stream.engine()) { target.engine() } else { source.engine() };
        let name = format!("copies of stream '{}'", stream.queue().name());
        Ok(Staged {
            memory: AlignedBuffer::zeroed(source.bytes(), "a copy between two devices")?,
            aside: traced_stream(other.device(), &DeviceStreamAttr { name: &name, priority: 0 }, None)?,
            read: accelerator(source.engine())?.event(false)?,
            written: accelerator(target.engine())?.event(false)?,
            half: Mutex::new(Half::None),
            refusal: Mutex::default(),
            source,
            target,
        })
    }

    fn go_on(&self, queue: &Arc<Queue>, half: &mut Half) -> Result<bool> {
        let Some(device_queue) = queue.device_queue() else {
            return Err(Error::internal("a device's copy on a stream of the host's"));
        };
        // SAFETY: this keeps the block, and is kept until both halves are done.
        let staging = Location::Host(unsafe { HostAddress::new(self.memory.data() as usize) });
        let bytes = self.source.bytes();
        let of = |tensor: &Tensor| Location::Device(tensor.data() as usize);
        let is_here = |tensor: &Tensor| Arc::ptr_eq(tensor.engine().device(), device_queue.device());
        let copy = |tensor: &Tensor, to: Location<'_>, from: Location<'_>| {
            if is_here(tensor) && device_queue.is_captured()? {
                return Err(Error::precondition("the stream is being captured, and the copy goes through the host"));
            }
            let stream = if is_here(tensor) { device_queue.stream() } else { &*self.aside };
            stream.copy(&Transfer { name: "copy", to, from, bytes }).map(|()| stream)
        };
        match *half {
            _ if bytes == 0 => Ok(true),
            Half::None => {
                let stream = copy(&self.source, staging, of(&self.source))?;
                self.mark(stream, &self.read, (half, Half::First))?;
                tell(&self.source, &self.read, queue)?;
                Ok(false)
            }
            Half::First if !self.read.is_reached()? => Ok(false),
            Half::First => {
                let stream = copy(&self.target, of(&self.target), staging)?;
                if is_here(&self.target) {
                    return Ok(true);
                }
                self.mark(stream, &self.written, (half, Half::Second))?;
                tell(&self.target, &self.written, queue)?;
                Ok(false)
            }
            Half::Second => self.written.is_reached(),
            Half::Unseen => Err(Error::internal("a copy between devices goes on behind its end")),
        }
    }

    /// The event behind a half that was issued.
    fn mark(
        &self,
        stream: &dyn DeviceStream,
        event: &Arc<dyn DeviceEvent>,
        (half, issued): (&mut Half, Half),
    ) -> Result<()> {
        *half = Half::Unseen;
        if let Err(refusal) = stream.insist(event)? {
            self.refusal.lock().get_or_insert(refusal);
        }
        *half = issued;
        Ok(())
    }
}

fn accelerator(engine: &Engine) -> Result<&dyn crate::device::Accelerator> {
    engine.accelerator().ok_or_else(|| Error::internal("a copy between devices to or from an engine of the host's"))
}

fn tell(tensor: &Tensor, event: &Arc<dyn DeviceEvent>, queue: &Arc<Queue>) -> Result<()> {
    let queue = Arc::clone(queue);
    accelerator(tensor.engine())?.when_reached(event, Then::once(move || queue.resume()));
    Ok(())
}

impl QueueWork for Staged {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        let mut half = self.half.lock();
        let gone_on = self.go_on(queue, &mut half);
        let is_unseen = *half == Half::Unseen;
        drop(half);
        let told = gone_on.and_then(|is_over| match is_over {
            true => self.refusal.lock().take().map_or(Ok(true), Err),
            false => Ok(false),
        });
        match told {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(())),
            Err(error) => {
                if is_unseen && error.code() != Code::DeviceLost {
                    // The device may use the memory for ever.
                    std::mem::forget(Arc::clone(&self));
                }
                let (from, to) = (label(&**self.source.engine().device()), label(&**self.target.engine().device()));
                Poll::Ready(Err(error.within(format!("copy of {} from {from} to {to}", self.source.desc().text()))))
            }
        }
    }

    /// It begins when the stream's device has completed all earlier work.
    fn is_hosts(&self) -> bool {
        true
    }
}
