//! Calls on a stream as driver calls.

use super::capture;
use super::event::CudaEvent;
use super::graph::CudaGraph;
use super::kernel::CudaKernel;
use super::ready::Ready;
use super::stream::CudaStream;
use super::table::{CUcontext, CUevent};
use crate::base::{Code, Error, Result};
use crate::device::cuda::context::exposed;
use crate::device::{
    Accelerator, DeviceEvent, DeviceStream, Executable, Fill, Launch, Location, PreparedLaunch, Transfer,
};
use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl DeviceStream for CudaStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        CudaKernel::of(launch, &self.context)?.issue(self, launch)
    }

    fn prepare(&self, launch: &Launch<'_>, before: Option<Box<dyn PreparedLaunch>>) -> Option<Box<dyn PreparedLaunch>> {
        let ready = before.and_then(|before| Ready::emptied(before, &self.context));
        let mut ready = ready.unwrap_or_else(|| Box::new(Ready::new(&self.context)));
        CudaKernel::of(launch, &self.context).ok()?.prepare(launch, &mut ready).ok()?;
        Some(ready)
    }

    #[inline]
    fn launch_prepared(&self, prepared: &dyn PreparedLaunch, name: &str) -> Result<()> {
        Ready::of(prepared, &self.context)?.issue(self, name)
    }

    fn copy(&self, transfer: &Transfer<'_>) -> Result<()> {
        let bytes = transfer.bytes;
        if bytes == 0 {
            return Ok(());
        }
        let what = &transfer.name;
        match (transfer.to, transfer.from) {
            (Location::Device(to), Location::Host(from)) => {
                let from = std::ptr::with_exposed_provenance(from.get());
                // SAFETY: the driver's function; the maker of the address keeps the memory until the stream has
                // executed this.
                self.issue("cuMemcpyHtoDAsync", what, |table, stream| unsafe {
                    (table.memcpy_htod_async)(to as u64, from, bytes, stream)
                })
            }
            (Location::Host(to), Location::Device(from)) => {
                let to = std::ptr::with_exposed_provenance_mut(to.get());
                // SAFETY: as above.
                self.issue("cuMemcpyDtoHAsync", what, |table, stream| unsafe {
                    (table.memcpy_dtoh_async)(to, from as u64, bytes, stream)
                })
            }
            (Location::Device(to), Location::Device(from)) => {
                // SAFETY: the driver's function; the addresses are its own.
                self.issue("cuMemcpyDtoDAsync", what, |table, stream| unsafe {
                    (table.memcpy_dtod_async)(to as u64, from as u64, bytes, stream)
                })
            }
            (Location::Peer(peer, to), Location::Device(from)) => {
                self.copy_peer(what, (self.peer(peer)?, to), (self.context.raw(), from), bytes)
            }
            (Location::Device(to), Location::Peer(peer, from)) => {
                self.copy_peer(what, (self.context.raw(), to), (self.peer(peer)?, from), bytes)
            }
            _ => Err(Error::internal("a copy on a device's stream that does not touch the device")),
        }
    }

    fn fill(&self, fill: &Fill<'_>) -> Result<()> {
        if fill.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the driver's function; the address is its own.
        self.issue("cuMemsetD8Async", &fill.name, |table, stream| unsafe {
            (table.memset_d8_async)(fill.address as u64, fill.value, fill.bytes, stream)
        })
    }

    fn replay(&self, executable: &Arc<dyn Executable>, _name: &str) -> Result<()> {
        CudaGraph::launch(executable, &self.context, self)
    }

    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let event = CudaEvent::of(&**event, &self.context)?;
        event.reports.copy(&self.reports);
        event.record(self.is_capturing()?, || {
            // SAFETY: the driver's function with a stream and an event of this context.
            self.issue("cuEventRecord", &"an event", |table, stream| unsafe {
                (table.event_record)(event.raw(), stream)
            })
        })
    }

    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let event = CudaEvent::of(&**event, &self.context)?;
        self.reports.join(&event.reports);
        if event.is_captured() || event.is_exposed() {
            self.may_capture.store(true, Relaxed);
        }
        // SAFETY: the driver's function with a stream and an event of this context.
        self.issue("cuStreamWaitEvent", &"a wait", |table, stream| unsafe {
            (table.stream_wait_event)(stream, event.raw(), 0)
        })
    }

    fn may_be_captured(&self) -> bool {
        self.may_capture.load(Relaxed)
    }

    fn is_capturing(&self) -> Result<bool> {
        self.captures()
    }

    fn keep(&self, what: Box<dyn Any + Send>) -> Result<()> {
        self.capture()?.keep(&self.context, what)
    }

    fn put_aside(&self, what: Box<dyn Any + Send>) {
        capture::put_aside(self.capture().ok(), &self.context, what);
    }

    /// The caller may be capturing a stream of its own, which must not be queried then.
    fn tells_idle(&self) -> bool {
        self.is_own
    }

    fn is_idle(&self) -> bool {
        self.is_over()
    }

    fn clear_error(&self) {
        self.reports.clear();
        // A capture may be launched again.
        self.heard.lock().retain(|inbox| match inbox.upgrade() {
            None => false,
            Some(inbox) => {
                inbox.empty();
                self.reports.add_captured(&inbox);
                true
            }
        });
        let Some(inbox) = self.inbox.lock().take() else { return };
        let mut left = self.left.lock();
        left.push(inbox);
        if self.is_own && self.is_over() {
            left.clear();
        }
    }

    fn foreign_event(&self, event: u64, records: bool) -> Result<()> {
        let event: CUevent = std::ptr::with_exposed_provenance_mut(event as usize);
        if records {
            // SAFETY: the driver's function, with a stream of this context and the host's event.
            return self.issue("cuEventRecord", &"an event of the host's", |table, stream| unsafe {
                (table.event_record)(event, stream)
            });
        }
        self.may_capture.store(true, Relaxed);
        // SAFETY: as above.
        self.issue("cuStreamWaitEvent", &"an event of the host's", |table, stream| unsafe {
            (table.stream_wait_event)(stream, event, 0)
        })
    }

    fn native_handle(&self) -> Result<u64> {
        self.may_capture.store(true, Relaxed);
        Ok(exposed(self.raw()))
    }
}

impl CudaStream {
    /// The context of another device.
    fn peer(&self, peer: &dyn Accelerator) -> Result<CUcontext> {
        let [table, context] = peer.plugin_identity().ok_or_else(not_a_peer)?;
        if table != std::ptr::from_ref(self.context.table()).addr() {
            return Err(not_a_peer());
        }
        Ok(std::ptr::with_exposed_provenance_mut(context))
    }

    fn copy_peer(
        &self,
        what: &dyn Display,
        to: (CUcontext, usize),
        from: (CUcontext, usize),
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the driver's function; the addresses are of these contexts.
        self.issue("cuMemcpyPeerAsync", what, |table, stream| unsafe {
            (table.memcpy_peer_async)(to.1 as u64, to.0, from.1 as u64, from.0, bytes, stream)
        })
    }
}

fn not_a_peer() -> Error {
    Error::new(Code::Unimplemented, "the two devices are not both of the CUDA driver")
}
