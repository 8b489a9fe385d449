//! Streams of a plug-in's device.
//!
//! *One call at a time.* The plug-in is promised that one thread at a time issues to a stream. A thread that waits
//! records an event while another one may be issuing, so each of these calls takes a turn.

use super::event::PluginEvent;
use super::opened::Opened;
use super::owned::{Owned, arguments, kernel_of};
use super::prepared::PluginPrepared;
use super::recorded::PluginExecutable;
use super::scratch::StreamScratch;
use super::work;
use crate::abi::{weir_device_capability_flags as C, weir_device_object_value};
use crate::base::{Error, Result};
use crate::device::{
    DeviceEvent, DeviceStream, Executable, Fill, Launch, LaunchScratch, Location, PreparedLaunch, RecordedWork,
    Transfer,
};
use crate::sync::Mutex;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct PluginStream {
    owned: Owned,
    /// Outlives the stream. It also identifies prepared launches as this stream's.
    scratch: Arc<StreamScratch>,
    /// Held during a call that issues.
    turn: Mutex<()>,
}

thread_local! {
    /// This thread has a turn on some stream.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

impl PluginStream {
    /// # Safety
    /// An object of this kind that the plug-in has made of its device, and gives up here.
    pub(super) unsafe fn new(device: Arc<Opened>, handle: *mut c_void) -> PluginStream {
        PluginStream { owned: Owned { device, handle }, scratch: Arc::default(), turn: Mutex::new(()) }
    }
}

impl PluginStream {
    /// # Safety
    /// The launch's kernel, of this device.
    unsafe fn scratch_of(
        &self,
        kernel: *mut c_void,
        launch: &Launch<'_>,
        spare: usize,
    ) -> Result<Option<LaunchScratch>> {
        let device = &self.owned.device;
        // SAFETY: as demanded of the caller, and a call of it.
        let asked = unsafe { device.scratch_bytes(kernel, &arguments(launch, None))? };
        if asked == 0 {
            return Ok(None);
        }
        let block = self.scratch.take(device, asked.saturating_add(spare), launch.name)?;
        Ok(Some(LaunchScratch { address: block.address(), bytes: block.bytes(), asked }))
    }
}

impl Drop for PluginStream {
    fn drop(&mut self) {
        let Owned { device, handle } = &self.owned;
        device.let_go(*handle, |device, stream| {
            if let Some(destroy) = device.functions().stream_destroy {
                // SAFETY: the plug-in's function and stream, which nobody uses any more.
                unsafe { destroy(device.handle(), stream) }
            }
        });
    }
}

impl DeviceStream for PluginStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let kernel = kernel_of(launch, device)?;
        // SAFETY: a kernel of the device's.
        let scratch = unsafe { self.scratch_of(kernel, launch, 0)? };
        let scratch = scratch.map(|scratch| (scratch.address, scratch.asked));
        if device.functions().work_submit.is_some() {
            return self.submit(&RecordedWork::Launch(*launch), scratch);
        }
        let call = arguments(launch, scratch);
        self.issue("launch", || {
            // SAFETY: the plug-in's function and objects; the arguments live during the call.
            let launch = |f: unsafe extern "C" fn(_, _, _, _) -> i32| unsafe {
                f(device.handle(), *handle, kernel, &raw const call)
            };
            device.functions().launch.map(launch)
        })
    }

    fn scratch(&self, launch: &Launch<'_>, spare: usize) -> Result<Option<LaunchScratch>> {
        let kernel = kernel_of(launch, &self.owned.device)?;
        // SAFETY: as above.
        unsafe { self.scratch_of(kernel, launch, spare) }
    }

    fn prepare(&self, launch: &Launch<'_>, before: Option<Box<dyn PreparedLaunch>>) -> Option<Box<dyn PreparedLaunch>> {
        let device = &self.owned.device;
        if !device.can(C::WEIR_DEVICE_PREPARED_LAUNCHES) {
            return None;
        }
        // If preparing fails, an ordinary launch reports the reason.
        Some(PluginPrepared::new(device, &self.scratch, launch, before).ok()?)
    }

    fn launch_prepared(&self, prepared: &dyn PreparedLaunch, _name: &str) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let prepared = PluginPrepared::of(prepared, &self.scratch)?;
        self.issue("launch_prepared", || {
            // SAFETY: the plug-in's function and objects.
            device.functions().launch_prepared.map(|f| unsafe { f(device.handle(), *handle, prepared) })
        })
    }

    fn replay(&self, executable: &Arc<dyn Executable>, _name: &str) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let executable = PluginExecutable::of(executable, device)?.owned.handle;
        self.issue("replay", || {
            // SAFETY: the plug-in's function and objects.
            device.functions().replay.map(|f| unsafe { f(device.handle(), *handle, executable) })
        })
    }

    fn tells_idle(&self) -> bool {
        self.owned.device.can(C::WEIR_DEVICE_IDLE_QUERY)
    }

    fn is_idle(&self) -> bool {
        let Owned { device, handle } = &self.owned;
        let mut idle = 0;
        let asked = device.call("stream_query", || {
            // SAFETY: the plug-in's function and objects, and a place for the answer.
            device.functions().stream_query.map(|f| unsafe { f(device.handle(), *handle, &raw mut idle) })
        });
        // A value other than 0 and 1 counts as not idle, and so does a failure: an event reports it.
        asked.is_ok() && idle == 1
    }

    fn copy(&self, transfer: &Transfer<'_>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let (functions, bytes) = (device.functions(), transfer.bytes as u64);
        if bytes == 0 {
            return Ok(());
        }
        if functions.work_submit.is_some() {
            return self.submit(&RecordedWork::Copy(*transfer), None);
        }
        let stream = *handle;
        match (transfer.to, transfer.from) {
            (Location::Device(to), Location::Host(from)) => self.issue("copy_to_device", || {
                let from = std::ptr::with_exposed_provenance(from.get());
                // SAFETY: the plug-in's function and objects; the maker of the address keeps the memory until the
                // stream has done this.
                functions.copy_to_device.map(|f| unsafe { f(device.handle(), stream, to as u64, from, bytes) })
            }),
            (Location::Host(to), Location::Device(from)) => self.issue("copy_to_host", || {
                let to = std::ptr::with_exposed_provenance_mut(to.get());
                // SAFETY: as above.
                functions.copy_to_host.map(|f| unsafe { f(device.handle(), stream, to, from as u64, bytes) })
            }),
            (Location::Device(to), Location::Device(from)) => self.issue("copy_on_device", || {
                // SAFETY: the plug-in's function and objects; the addresses are its own.
                functions.copy_on_device.map(|f| unsafe { f(device.handle(), stream, to as u64, from as u64, bytes) })
            }),
            (Location::Peer(peer, to), Location::Device(from)) => {
                // SAFETY: devices of this plug-in.
                unsafe { self.copy_peer((device.partner(peer)?, to), (device.handle(), from), bytes) }
            }
            (Location::Device(to), Location::Peer(peer, from)) => {
                // SAFETY: devices of this plug-in.
                unsafe { self.copy_peer((device.handle(), to), (device.partner(peer)?, from), bytes) }
            }
            _ => Err(Error::internal("a copy on a device's stream that does not touch the device")),
        }
    }

    fn fill(&self, fill: &Fill<'_>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        if fill.bytes == 0 {
            return Ok(());
        }
        if device.functions().work_submit.is_some() {
            return self.submit(&RecordedWork::Fill(*fill), None);
        }
        let (to, bytes) = (fill.address as u64, fill.bytes as u64);
        self.issue("fill", || {
            // SAFETY: the plug-in's function and objects; the address is its own.
            device.functions().fill.map(|f| unsafe { f(device.handle(), *handle, to, fill.value, bytes) })
        })
    }

    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let event = PluginEvent::on(event, device)?;
        event.record(|| {
            self.issue("event_record", || {
                // SAFETY: the plug-in's function and objects.
                device.functions().event_record.map(|f| unsafe { f(device.handle(), event.handle(), *handle) })
            })
        })
    }

    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let event = PluginEvent::on(event, device)?;
        self.issue("event_wait", || {
            // SAFETY: the plug-in's function and objects.
            device.functions().event_wait.map(|f| unsafe { f(device.handle(), event.handle(), *handle) })
        })
    }

    fn clear_error(&self) {
        let Owned { device, handle } = &self.owned;
        // A refusal shows: the next call on the stream fails again.
        let _ = self.issue("stream_clear_error", || {
            // SAFETY: the plug-in's function and objects.
            device.functions().stream_clear_error.map(|f| unsafe { f(device.handle(), *handle) })
        });
    }

    fn native_handle(&self) -> Result<u64> {
        let Owned { device, handle } = &self.owned;
        // SAFETY: a stream of this device's.
        unsafe { device.native_handle(weir_device_object_value::WEIR_DEVICE_OBJECT_STREAM, *handle) }
    }
}

impl PluginStream {
    /// Calls a function that issues to the stream, in its turn. A callback inside of such a call may issue, too: it
    /// takes no other turn, for which it could wait for ever.
    fn issue(&self, function: &'static str, call: impl FnOnce() -> Option<i32>) -> Result<()> {
        let device = &self.owned.device;
        // Else the device has one turn for all that it is asked.
        if !device.may_block() || HAS_TURN.get() {
            return device.call(function, call);
        }
        let turn = self.turn.lock();
        HAS_TURN.set(true);
        let issued = device.call(function, call);
        HAS_TURN.set(false);
        drop(turn);
        issued
    }

    fn submit(&self, work: &RecordedWork<'_>, scratch: Option<(usize, usize)>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        work::with(device, work, scratch, |work| {
            self.issue("work_submit", || {
                // SAFETY: the plug-in's function and objects; the work lives during the call, and the maker of an
                // address in host memory keeps the memory until the stream has done it.
                device.functions().work_submit.map(|f| unsafe { f(device.handle(), *handle, work) })
            })
        })?
    }

    /// # Safety
    ///
    /// The first of each pair are devices of the plug-in.
    unsafe fn copy_peer(&self, to: (*mut c_void, usize), from: (*mut c_void, usize), bytes: u64) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        self.issue("copy_peer", || {
            let call = |f: unsafe extern "C" fn(_, _, _, _, _, _, _) -> i32| {
                // SAFETY: the plug-in's function, and objects as demanded of the caller; the addresses are those of its
                // devices.
                unsafe { f(device.handle(), *handle, to.0, to.1 as u64, from.0, from.1 as u64, bytes) }
            };
            device.functions().copy_peer.map(call)
        })
    }
}
