//! A copy between two devices without peer access: staged through host memory, in two copies on two streams.
//!
//! The half on the stream's own device goes onto the stream, the other one onto a stream of the other device made for
//! it. The stream continues when the second half is over, or was issued to the stream itself; no thread is held in
//! between.
//!
//! If a device refuses to tell when a half is over, the copy fails, and its memory stays until the device is done. The
//! stream holds it for its own device, as it does with all of its items; for the other device the copy holds itself,
//! until a wait for everything knows more.

use super::engine::Engine;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Code, Error, Ref, Result};
use crate::device::{
    Accelerator, DeviceEvent, DeviceStream, DeviceStreamAttr, HostAddress, Location, Then, Transfer, label,
    traced_stream,
};
use crate::memory::AlignedBuffer;
use crate::stream::{Account, Aside, Queue, QueueWork};
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
    /// The engine of the two that the stream is not of; a stream of it, and the name of that; an event behind each
    /// half.
    other: Ref<Engine>,
    name: String,
    aside: Box<dyn DeviceStream>,
    read: Arc<dyn DeviceEvent>,
    written: Arc<dyn DeviceEvent>,
    half: Mutex<Half>,
    /// A refusal of an event, which was recorded at the second attempt.
    refusal: Mutex<Option<Error>>,
    /// Itself, while the other device may be at a half that nobody knows the end of; and an event behind that, once the
    /// device has taken one.
    kept: Mutex<Option<Arc<Staged>>>,
    behind: Mutex<Option<Arc<dyn DeviceEvent>>>,
}

impl Staged {
    /// The stream is of one of the two tensors' devices.
    pub fn new(stream: &Stream, source: Ref<Tensor>, target: Ref<Tensor>) -> Result<Staged> {
        let other = if source.engine().is_same_device(stream.engine()) { target.engine() } else { source.engine() };
        let name = format!("copies of stream '{}'", stream.queue().name());
        Ok(Staged {
            memory: AlignedBuffer::zeroed(source.bytes(), "a copy between two devices")?,
            aside: traced_stream(other.device(), &DeviceStreamAttr { name: &name, priority: 0 }, None)?,
            name,
            read: accelerator(source.engine())?.event(false)?,
            written: accelerator(target.engine())?.event(false)?,
            half: Mutex::new(Half::None),
            refusal: Mutex::default(),
            kept: Mutex::default(),
            behind: Mutex::default(),
            other: Ref::clone(other),
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

    /// Has it stay until the other device is done with what it was given.
    fn keep(self: &Arc<Self>) {
        *self.kept.lock() = Some(Arc::clone(self));
        self.other.account().add_aside(self);
    }

    /// The device is done. Not under a lock: what it holds may go.
    fn let_go(&self) {
        let kept = self.kept.lock().take();
        drop(kept);
    }

    /// An event behind all that the other device was given: the same one each time, so that a wait that only looks
    /// finds it reached in the end. Whether it is new.
    fn last(&self) -> Result<(Arc<dyn DeviceEvent>, bool)> {
        let mut behind = self.behind.lock();
        if let Some(event) = &*behind {
            return Ok((Arc::clone(event), false));
        }
        let event = accelerator(&self.other)?.event(false)?;
        self.aside.record(&event)?;
        *behind = Some(Arc::clone(&event));
        Ok((event, true))
    }
}

/// A wait for everything covers a half that nobody knows the end of, and ends with the copy's hold on itself.
impl Aside for Staged {
    fn owner(&self) -> &str {
        &self.name
    }

    fn is_busy(&self) -> bool {
        self.kept.lock().is_some()
    }

    fn outstanding(&self, _account: &Account) -> Result<Vec<Arc<dyn DeviceEvent>>> {
        let told = self.last();
        match &told {
            Ok((event, true)) => {
                let kept = self.kept.lock().clone();
                let then = Then::once(move || kept.iter().for_each(|kept| kept.let_go()));
                accelerator(&self.other)?.when_reached(event, then);
            }
            Err(error) if error.code() == Code::DeviceLost => self.let_go(),
            _ => {}
        }
        told.map(|(event, _)| vec![event])
    }
}

fn accelerator(engine: &Engine) -> Result<&dyn Accelerator> {
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
                    self.keep();
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
