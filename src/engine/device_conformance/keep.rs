//! What a device under test was given, and for how long it stays.
//!
//! A device that lies says that its work is done while it is still at it. If the kit believed that, and gave back what
//! such work uses, it would be brought down by the very lie that it looks for. So what a probe hands to the device is
//! let go of only after all that the probe has looked at was as it must be, streams first; and no longer as soon as the
//! device was found out about order, events, waits or destruction: from then on all of it is left behind for good, with
//! the device open. That is a leak, and meant. Memory of the host's stays until the device was closed in any case: what
//! one probe is done with, another one takes.

use super::bench::{Memory, told};
use super::pinned::Pinned;
use crate::base::{Desc, dtype};
use crate::device::{DeviceEvent, DeviceKernel, DeviceStream, Executable};
use crate::memory::{Buffer, View};
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
    buffer: Buffer,
    bytes: usize,
}

impl HostMemory {
    pub(super) fn view(&self) -> View {
        // SAFETY: the buffer's, which whoever looks at the view keeps (`Parts`).
        unsafe { View::new(self.buffer.data(), self.bytes, Desc::new(dtype::U8, &[self.bytes as i64])) }
    }
}

/// What is left behind for good: here, so that it is no leak to those who look for those that are not meant.
static LEFT: Mutex<Vec<(Parts, Vec<Buffer>)>> = Mutex::new(Vec::new());

/// What one examination keeps.
#[derive(Default)]
pub(super) struct Keep {
    /// Memory of the host's that no probe has now.
    host: Mutex<Vec<Buffer>>,
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
            None => Buffer::zeroed(size, "conformance").map_err(told)?,
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
