//! Copies between tensors, also of two engines, and fills.
//!
//! A stream's device reaches its own memory and the host's; and that of peers of the same kind. A copy between other
//! devices is staged through host memory (`staged`).

use super::engine::Engine;
use super::staged::Staged;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Error, Ref, Result};
use crate::device::{Fill, HostAddress, Location, Transfer, label};
use crate::memory::overlaps;
use crate::stream::{Queue, QueueWork};
use std::sync::Arc;
use std::task::Poll;

struct TensorCopy {
    source: Ref<Tensor>,
    target: Ref<Tensor>,
}

struct Filled {
    tensor: Ref<Tensor>,
    value: u8,
}

/// A copy of one tensor to another, on this stream.
pub(super) fn copy(stream: &Stream, source: Ref<Tensor>, target: Ref<Tensor>) -> Result<Arc<dyn QueueWork>> {
    check_fixed("source", &source)?;
    check_fixed("target", &target)?;
    if source.desc() != target.desc() {
        return Err(Error::invalid(format!(
            "target: expected {} as source is, got {}",
            source.desc().text(),
            target.desc().text()
        )));
    }
    let is_straight = is_straight(stream, &source, &target)?;
    if overlaps(at(&source), at(&target)) && is_one_memory(&source, &target) {
        return Err(Error::invalid("target shares memory with source"));
    }
    if !is_straight {
        return Ok(Arc::new(Staged::new(stream, source, target)?));
    }
    Ok(Arc::new(TensorCopy { source, target }))
}

/// A fill of a tensor's bytes, on this stream.
pub(super) fn fill(stream: &Stream, tensor: Ref<Tensor>, value: u8) -> Result<Arc<dyn QueueWork>> {
    check_fixed("tensor", &tensor)?;
    if !tensor.engine().is_same_device(stream.engine()) {
        return Err(Error::invalid(format!(
            "tensor is in the memory of engine {}, stream '{}' is on engine {}",
            tensor.engine().label(),
            stream.queue().name(),
            stream.engine().label()
        )));
    }
    Ok(Arc::new(Filled { tensor, value }))
}

fn at(tensor: &Tensor) -> (*mut u8, usize) {
    (tensor.data(), tensor.bytes())
}

fn is_one_memory(a: &Tensor, b: &Tensor) -> bool {
    a.engine().is_same_device(b.engine())
}

fn check_fixed(what: &str, tensor: &Tensor) -> Result<()> {
    match tensor.open() {
        Some(_) => Err(Error::invalid(format!("{what} is a dynamic tensor, expected one of a fixed shape"))),
        None => Ok(()),
    }
}

/// Whether the stream's device can copy directly, without staging.
fn is_straight(stream: &Stream, source: &Tensor, target: &Tensor) -> Result<bool> {
    let here = stream.engine();
    let is_near = |engine: &Engine| engine.is_same_device(here) || engine.accelerator().is_none();
    let is_peer = |engine: &Engine| match (here.accelerator(), engine.accelerator()) {
        (Some(own), Some(other)) => engine.kind() == here.kind() && own.is_peer(other),
        _ => false,
    };
    let (from, to) = (source.engine(), target.engine());
    if from.is_same_device(here) || to.is_same_device(here) {
        if [from, to].iter().all(|engine| is_near(engine) || is_peer(engine)) {
            return Ok(true);
        }
        if here.accelerator().is_some() {
            return Ok(false);
        }
    }
    Err(Error::invalid(format!(
        "a copy from engine {} to engine {} cannot be made by stream '{}' of engine {}: it takes a stream of one of \
         the two, that of a device if one is",
        from.label(),
        to.label(),
        stream.queue().name(),
        here.label()
    )))
}

/// The tensor's memory as a device's place.
fn place<'a>(tensor: &'a Tensor, device_queue: &crate::stream::DeviceQueue) -> Location<'a> {
    let address = tensor.data() as usize;
    match tensor.engine().accelerator() {
        // SAFETY: the work keeps the tensor, and the host keeps to the stream's order.
        None => Location::Host(unsafe { HostAddress::new(address) }),
        Some(_) if Arc::ptr_eq(tensor.engine().device(), device_queue.device()) => Location::Device(address),
        Some(peer) => Location::Peer(peer, address),
    }
}

impl TensorCopy {
    fn issue(&self, queue: &Queue) -> Result<()> {
        let (source, target) = (&*self.source, &*self.target);
        let Some(device_queue) = queue.device_queue() else {
            // SAFETY: host memory without overlap, as checked when this was enqueued; it runs in stream order, to which
            // the host keeps.
            unsafe { target.view().as_bytes_mut().copy_from(source.view().as_bytes()) };
            return Ok(());
        };
        let name = "copy";
        let transfer = Transfer {
            name,
            to: place(target, device_queue),
            from: place(source, device_queue),
            bytes: source.bytes(),
        };
        if source.bytes() == 0 {
            return Ok(());
        }
        device_queue.stream().copy(&transfer).map_err(|error| {
            let what = format!("copy of {} from {} to {}", source.desc().text(), of(source), of(target));
            error.within(what)
        })
    }
}

impl QueueWork for TensorCopy {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn may_be_captured(&self) -> Result<()> {
        Ok(())
    }

    fn capture(&self, queue: &Arc<Queue>) -> Result<()> {
        self.issue(queue)
    }
}

fn of(tensor: &Tensor) -> String {
    label(&**tensor.engine().device())
}

impl Filled {
    fn issue(&self, queue: &Queue) -> Result<()> {
        let tensor = &*self.tensor;
        let Some(device_queue) = queue.device_queue() else {
            // SAFETY: host memory; it runs in stream order, to which the host keeps.
            unsafe { tensor.view().as_bytes_mut().fill(self.value) };
            return Ok(());
        };
        if tensor.bytes() == 0 {
            return Ok(());
        }
        let (address, bytes) = (tensor.data() as usize, tensor.bytes());
        let fill = Fill { name: "fill", address, bytes, value: self.value };
        device_queue
            .stream()
            .fill(&fill)
            .map_err(|error| error.within(format_args!("fill of {}", tensor.desc().text())))
    }
}

impl QueueWork for Filled {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn may_be_captured(&self) -> Result<()> {
        Ok(())
    }

    fn capture(&self, queue: &Arc<Queue>) -> Result<()> {
        self.issue(queue)
    }
}
