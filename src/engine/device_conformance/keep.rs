//! The lifetime of memory and objects that a device under test was given.
//!
//! A faulty device says that its work is done while it still runs. If the kit believed that, and freed memory that such
//! work uses, it would be brought down by the very fault that it looks for. So a probe's memory and objects are
//! released only after everything that the probe has looked at was right, streams first. Once the device has broken a
//! clause about order, events, waits or destruction, nothing is released: all of it is left behind for good, with the
//! device open. That leak is deliberate. Host memory stays until the device was closed in any case: later probes reuse
//! it.

use crate::base::{Desc, Error, Result as Outcome, dtype};
use crate::device::{Device, DeviceEvent, DeviceKernel, DeviceStream, Executable, HostAddress, Location, Pinning};
use crate::memory::{ALIGNMENT, AlignedBuffer, View};
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// In the order in which they are released.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) streams: Vec<Box<dyn DeviceStream>>,
    pub(super) executables: Vec<Arc<dyn Executable>>,
    pub(super) events: Vec<Arc<dyn DeviceEvent>>,
    pub(super) kernels: Vec<Arc<dyn DeviceKernel>>,
    pub(super) memory: Vec<DeviceBlock>,
    pub(super) host: Vec<OnHost>,
}

/// Host memory.
pub(super) enum OnHost {
    Any(HostBytes),
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
pub(super) struct HostBytes {
    buffer: AlignedBuffer,
    bytes: usize,
}

impl HostBytes {
    pub(super) fn view(&self) -> View {
        // SAFETY: the buffer's memory, which the users of the view keep (`Parts`).
        unsafe { View::new(self.buffer.data(), self.bytes, Desc::new(dtype::U8, &[self.bytes as i64])) }
    }
}

/// Everything that is leaked on purpose: reachable here, so that leak checkers do not report it.
static LEFT: Mutex<Vec<(Parts, Vec<AlignedBuffer>)>> = Mutex::new(Vec::new());

/// The memory and objects that one examination keeps.
#[derive(Default)]
pub(super) struct Keep {
    /// Host memory that no probe uses now.
    host: Mutex<Vec<AlignedBuffer>>,
    /// Nothing is released any more.
    is_doubted: AtomicBool,
}

impl Keep {
    /// Host memory, filled with zeros.
    pub(super) fn host(&self, bytes: usize) -> Result<HostBytes, String> {
        // Few sizes, so that buffers can often be reused.
        let size = bytes.next_power_of_two();
        let mut host = self.host.lock();
        let found = host.iter().position(|buffer| buffer.bytes() == size).map(|at| host.swap_remove(at));
        drop(host);
        let buffer = match found {
            Some(buffer) => buffer,
            None => AlignedBuffer::zeroed(size, "conformance").map_err(told)?,
        };
        let memory = HostBytes { buffer, bytes };
        // SAFETY: nobody else has the buffer yet.
        unsafe { memory.view().as_bytes_mut().fill(0u8) };
        Ok(memory)
    }

    /// The device has broken a clause about order.
    pub(super) fn doubt(&self) {
        // ORDERING: Relaxed; probes run one after the other, and one that still runs is left behind itself.
        self.is_doubted.store(true, Relaxed);
    }

    /// Releases what a probe without a fault has used.
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

/// A range of a device's memory.
pub(super) struct DeviceBlock {
    device: Arc<dyn Device>,
    pub(super) address: usize,
    bytes: usize,
}

impl DeviceBlock {
    pub(super) fn on(device: &Arc<dyn Device>, bytes: usize) -> Outcome<DeviceBlock> {
        let none = || Error::internal("a device without memory of its own");
        let address = device.accelerator().ok_or_else(none)?.allocate(bytes, "conformance")?;
        Ok(DeviceBlock { device: Arc::clone(device), address, bytes })
    }
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        if let Some(accelerator) = self.device.accelerator() {
            accelerator.deallocate(self.address, self.bytes);
        }
    }
}

/// The text of a failure.
pub(super) fn told(error: Error) -> String {
    error.message().to_owned()
}

/// Host memory that is pinned for the device.
pub(super) struct Pinned {
    device: Arc<dyn Device>,
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// Memory from elsewhere, which was registered.
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
        // SAFETY: so many bytes that the device allocated, or of the buffer; the users of the view keep this.
        unsafe { View::new(std::ptr::with_exposed_provenance_mut(self.address), self.bytes, desc) }
    }

    pub(super) fn place(&self) -> Location<'static> {
        // SAFETY: the field keeps it (`Field::pin`), and looks at it when the copies are done.
        Location::Host(unsafe { HostAddress::new(self.address) })
    }

    /// The host is about to use all of it, as the device is told.
    fn announce(&self, writes: bool) {
        if let Ok(pinning) = pinning(&self.device) {
            pinning.host_uses(self.address, self.bytes, writes, "conformance");
        }
    }

    pub(super) fn write(&self, value: u8) {
        self.announce(true);
        // SAFETY: nobody else uses it yet.
        unsafe { self.view().as_bytes_mut().fill(value) };
    }

    pub(super) fn expect(&self, value: impl Fn(usize) -> u8, what: &str) -> Result<(), String> {
        self.announce(false);
        let view = self.view();
        // SAFETY: the copies to it are done.
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
