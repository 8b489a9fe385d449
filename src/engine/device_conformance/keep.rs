//! What a device under test was given, and for how long it stays.
//!
//! A device that lies says that its work is done while it is still at it. If the kit believed that, and gave back what
//! such work uses, it would be brought down by the very lie that it looks for. So what a probe hands to the device is
//! let go of only after all that the probe has looked at was as it must be, streams first; and no longer as soon as the
//! device was found out about order, events, waits or destruction: from then on all of it is left behind for good, with
//! the device open. That is a leak, and meant. Memory of the host's stays until the device was closed in any case: what
//! one probe is done with, another one takes.

use crate::base::{Desc, Error, Result as Outcome, dtype};
use crate::device::{Device, DeviceEvent, DeviceKernel, DeviceStream, Executable, HostAddress, Location, Pinning};
use crate::memory::{ALIGNMENT, AlignedBuffer, View};
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// In the order in which they are taken down.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) streams: Vec<Box<dyn DeviceStream>>,
    pub(super) executables: Vec<Arc<dyn Executable>>,
    pub(super) events: Vec<Arc<dyn DeviceEvent>>,
    pub(super) kernels: Vec<Arc<dyn DeviceKernel>>,
    pub(super) memory: Vec<Memory>,
    pub(super) host: Vec<OnHost>,
}

/// Memory of the host's.
pub(super) enum OnHost {
    Any(HostMemory),
    Pinned(Arc<Pinned>),
}

impl OnHost {
    pub(super) fn view(&self) -> View {
        match self {
            OnHost::Any(memory) => memory.view(),
            OnHost::Pinned(memory) => memory.view(),
        }
    }
}

/// The first bytes of a buffer.
pub(super) struct HostMemory {
    buffer: AlignedBuffer,
    bytes: usize,
}

impl HostMemory {
    pub(super) fn view(&self) -> View {
        // SAFETY: the buffer's, which whoever looks at the view keeps (`Parts`).
        unsafe { View::new(self.buffer.data(), self.bytes, Desc::new(dtype::U8, &[self.bytes as i64])) }
    }
}

/// What is left behind for good: here, so that it is no leak to those who look for those that are not meant.
static LEFT: Mutex<Vec<(Parts, Vec<AlignedBuffer>)>> = Mutex::new(Vec::new());

/// What one examination keeps.
#[derive(Default)]
pub(super) struct Keep {
    /// Memory of the host's that no probe has now.
    host: Mutex<Vec<AlignedBuffer>>,
    /// Nothing is let go of any more.
    is_doubted: AtomicBool,
}

impl Keep {
    /// Zeros.
    pub(super) fn host(&self, bytes: usize) -> Result<HostMemory, String> {
        // Few sizes, so that there is often one.
        let size = bytes.next_power_of_two();
        let mut host = self.host.lock();
        let found = host.iter().position(|buffer| buffer.bytes() == size).map(|at| host.swap_remove(at));
        drop(host);
        let buffer = match found {
            Some(buffer) => buffer,
            None => AlignedBuffer::zeroed(size, "conformance").map_err(told)?,
        };
        let memory = HostMemory { buffer, bytes };
        // SAFETY: nobody else has the buffer yet.
        unsafe { memory.view().as_bytes_mut().fill(0u8) };
        Ok(memory)
    }

    /// The device was found out.
    pub(super) fn doubt(&self) {
        // ORDERING: Relaxed; of probes one runs after the other, and one that still runs is left behind itself.
        self.is_doubted.store(true, Relaxed);
    }

    /// All was as it must be.
    pub(super) fn take_down(&self, parts: Parts) {
        // ORDERING: as above.
        if self.is_doubted.load(Relaxed) {
            return self.leave(parts);
        }
        let Parts { streams, executables, events, kernels, memory, host } = parts;
        drop(streams);
        drop((executables, events, kernels, memory));
        let mut kept = self.host.lock();
        kept.extend(host.into_iter().filter_map(|memory| match memory {
            OnHost::Any(memory) => Some(memory.buffer),
            OnHost::Pinned(_) => None,
        }));
    }

    pub(super) fn leave(&self, parts: Parts) {
        let Parts { streams, executables, events, kernels, memory, host } = &parts;
        let has_host = !memory.is_empty() || !host.is_empty();
        let has_objects = !executables.is_empty() || !events.is_empty() || !kernels.is_empty();
        if streams.is_empty() && !has_objects && !has_host {
            return;
        }
        LEFT.lock().push((parts, Vec::new()));
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        // ORDERING: as above.
        if self.is_doubted.load(Relaxed) {
            LEFT.lock().push((Parts::default(), std::mem::take(&mut *self.host.lock())));
        }
    }
}

/// A stretch of a device's memory.
pub(super) struct Memory {
    device: Arc<dyn Device>,
    pub(super) address: usize,
    bytes: usize,
}

impl Memory {
    pub(super) fn on(device: &Arc<dyn Device>, bytes: usize) -> Outcome<Memory> {
        let none = || Error::internal("a device without memory of its own");
        let address = device.accelerator().ok_or_else(none)?.allocate(bytes, "conformance")?;
        Ok(Memory { device: Arc::clone(device), address, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(accelerator) = self.device.accelerator() {
            accelerator.deallocate(self.address, self.bytes);
        }
    }
}

/// Text of a failure.
pub(super) fn told(error: Error) -> String {
    error.message().to_owned()
}

/// Memory of the host's that the device knows.
pub(super) struct Pinned {
    device: Arc<dyn Device>,
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// Somebody else's, which was registered.
    _others: Option<AlignedBuffer>,
}

pub(super) fn pinning(device: &Arc<dyn Device>) -> Result<&dyn Pinning, String> {
    device.accelerator().and_then(|accelerator| accelerator.pinning()).ok_or_else(|| "it pins nothing".to_owned())
}

impl Pinned {
    pub(super) fn allocate(device: &Arc<dyn Device>, bytes: usize) -> Result<Pinned, String> {
        let address = pinning(device)?.allocate_host(bytes, "conformance").map_err(told)?;
        if !address.is_multiple_of(ALIGNMENT) {
            return Err(format!("{address:#x} is not aligned to {ALIGNMENT}"));
        }
        Ok(Pinned { device: Arc::clone(device), address, bytes, _others: None })
    }

    pub(super) fn register(device: &Arc<dyn Device>, bytes: usize) -> Result<Pinned, String> {
        let memory = AlignedBuffer::zeroed(bytes, "conformance").map_err(told)?;
        let address = memory.data().expose_provenance();
        pinning(device)?.register(address, bytes, "conformance").map_err(told)?;
        Ok(Pinned { device: Arc::clone(device), address, bytes, _others: Some(memory) })
    }

    pub(super) fn view(&self) -> View {
        let desc = Desc::new(dtype::U8, &[self.bytes as i64]);
        // SAFETY: so many bytes that the device allocated, or of the buffer; whoever looks at the view keeps this.
        unsafe { View::new(std::ptr::with_exposed_provenance_mut(self.address), self.bytes, desc) }
    }

    pub(super) fn place(&self) -> Location<'static> {
        // SAFETY: the field keeps it (`Field::pin`), and looks at it when the copies are done.
        Location::Host(unsafe { HostAddress::new(self.address) })
    }

    pub(super) fn write(&self, value: u8) {
        // SAFETY: nobody else uses it yet.
        unsafe { self.view().as_bytes_mut().fill(value) };
    }

    pub(super) fn expect(&self, value: impl Fn(usize) -> u8, what: &str) -> Result<(), String> {
        let view = self.view();
        // SAFETY: what was copied to it is there.
        match unsafe { view.as_bytes() }.read_bytes().iter().enumerate().find(|&(at, &byte)| byte != value(at)) {
            Some((at, byte)) => Err(format!("{what}: byte {at} of {} is {byte}, expected {}", self.bytes, value(at))),
            None => Ok(()),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let Ok(pinning) = pinning(&self.device) else { return };
        match self._others {
            Some(_) => pinning.unregister(self.address, self.bytes),
            None => pinning.deallocate_host(self.address, self.bytes),
        }
    }
}
