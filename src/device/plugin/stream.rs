//! Streams and events of a plug-in's device.

use super::opened::Opened;
use super::owned::{Owned, arguments, kernel_of, own};
use super::prepared::PluginPrepared;
use super::recorded::PluginExecutable;
use super::scratch::StreamScratch;
use super::work;
use crate::abi::{weir_device_capability_flags as C, weir_device_object_value};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::device::{
    Accelerator, DeviceEvent, DeviceStream, Executable, Fill, Launch, Location, PreparedLaunch, RecordedWork, Transfer,
    Waiting,
};
use crate::sync::Mutex;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct PluginStream {
    owned: Owned,
    /// Outlives the stream. It also identifies prepared launches as this stream's.
    scratch: Arc<StreamScratch>,
}

#[derive(Debug)]
pub(super) struct PluginEvent {
    owned: Owned,
    timing: bool,
    /// An invalid answer of the plug-in. It holds until the event is recorded again: a listener that was told of the
    /// event queries it, and must not get a different answer.
    nonsense: Mutex<Option<Error>>,
    /// Whether there is one. ORDERING: Relaxed; the lock orders what is read.
    has_nonsense: AtomicBool,
}

impl PluginStream {
    /// # Safety
    /// An object of this kind that the plug-in has made of its device, and gives up here.
    pub(super) unsafe fn new(device: Arc<Opened>, handle: *mut c_void) -> PluginStream {
        PluginStream { owned: Owned { device, handle }, scratch: Arc::default() }
    }
}

impl PluginEvent {
    /// # Safety
    /// An object of this kind that the plug-in has made of its device, and gives up here.
    pub(super) unsafe fn new(device: Arc<Opened>, handle: *mut c_void, timing: bool) -> PluginEvent {
        PluginEvent {
            owned: Owned { device, handle },
            timing,
            nonsense: Mutex::default(),
            has_nonsense: AtomicBool::new(false),
        }
    }

    /// The event, if it belongs to a plug-in.
    pub(super) fn of(event: &Arc<dyn DeviceEvent>) -> Option<&PluginEvent> {
        (&**event as &dyn Any).downcast_ref()
    }

    pub(super) fn handle(&self) -> *mut c_void {
        self.owned.handle
    }

    /// Calls a query function of the plug-in: `ask` gives its status and stores the answer.
    fn asked(&self, function: &'static str, ask: impl FnOnce(*mut i32) -> Option<i32>) -> Result<bool> {
        if self.has_nonsense.load(Relaxed)
            && let Some(error) = &*self.nonsense.lock()
        {
            return Err(error.clone());
        }
        let (mut reached, mut status) = (0, 0);
        let answered = self.owned.device.call(function, || {
            let returned = ask(&raw mut reached);
            status = returned.unwrap_or(0);
            returned
        });
        let answer = answered.and_then(|()| match reached {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.owned.device.nonsense(function, format!("stored {other}, expected 0 or 1"))),
        });
        let is_status = status == 0 || Code::from_status(status).is_some();
        if let Err(error) = &answer
            && (!is_status || !matches!(reached, 0 | 1))
        {
            *self.nonsense.lock() = Some(error.clone());
            self.has_nonsense.store(true, Relaxed);
        }
        answer
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

impl Drop for PluginEvent {
    fn drop(&mut self) {
        let Owned { device, handle } = &self.owned;
        device.let_go(*handle, |device, event| {
            if let Some(destroy) = device.functions().event_destroy {
                // SAFETY: the plug-in's function and event, which nobody uses any more.
                unsafe { destroy(device.handle(), event) }
            }
        });
    }
}

impl DeviceStream for PluginStream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let kernel = kernel_of(launch, device)?;
        let mut call = arguments(launch, None);
        // SAFETY: a kernel of the device's, and a call of it.
        let bytes = unsafe { device.scratch_bytes(kernel, &call)? };
        if bytes > 0 {
            let block = self.scratch.take(device, bytes, launch.name)?;
            (call.scratch, call.scratch_bytes) = (block.address() as u64, bytes as u64);
        }
        if device.functions().work_submit.is_some() {
            let scratch = (bytes > 0).then_some((call.scratch as usize, bytes));
            return self.submit(&RecordedWork::Launch(*launch), scratch);
        }
        device.call("launch", || {
            // SAFETY: the plug-in's function and objects; the arguments live during the call.
            let launch = |f: unsafe extern "C" fn(_, _, _, _) -> i32| unsafe {
                f(device.handle(), *handle, kernel, &raw const call)
            };
            device.functions().launch.map(launch)
        })
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
        device.call("launch_prepared", || {
            // SAFETY: the plug-in's function and objects.
            device.functions().launch_prepared.map(|f| unsafe { f(device.handle(), *handle, prepared) })
        })
    }

    fn replay(&self, executable: &Arc<dyn Executable>, _name: &str) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let executable = PluginExecutable::of(executable, device)?.owned.handle;
        device.call("replay", || {
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
            (Location::Device(to), Location::Host(from)) => device.call("copy_to_device", || {
                let from = std::ptr::with_exposed_provenance(from.get());
                // SAFETY: the plug-in's function and objects; the maker of the address keeps the memory until the
                // stream has done this.
                functions.copy_to_device.map(|f| unsafe { f(device.handle(), stream, to as u64, from, bytes) })
            }),
            (Location::Host(to), Location::Device(from)) => device.call("copy_to_host", || {
                let to = std::ptr::with_exposed_provenance_mut(to.get());
                // SAFETY: as above.
                functions.copy_to_host.map(|f| unsafe { f(device.handle(), stream, to, from as u64, bytes) })
            }),
            (Location::Device(to), Location::Device(from)) => device.call("copy_on_device", || {
                // SAFETY: the plug-in's function and objects; the addresses are its own.
                functions.copy_on_device.map(|f| unsafe { f(device.handle(), stream, to as u64, from as u64, bytes) })
            }),
            (Location::Peer(peer, to), Location::Device(from)) => {
                // SAFETY: devices of this plug-in.
                unsafe { self.copy_peer((self.peer(peer)?, to), (device.handle(), from), bytes) }
            }
            (Location::Device(to), Location::Peer(peer, from)) => {
                // SAFETY: devices of this plug-in.
                unsafe { self.copy_peer((device.handle(), to), (self.peer(peer)?, from), bytes) }
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
        device.call("fill", || {
            // SAFETY: the plug-in's function and objects; the address is its own.
            device.functions().fill.map(|f| unsafe { f(device.handle(), *handle, to, fill.value, bytes) })
        })
    }

    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let event = own(PluginEvent::of(event), |event| &event.owned, device)?;
        event.has_nonsense.store(false, Relaxed);
        device.call("event_record", || {
            // SAFETY: the plug-in's function and objects.
            device.functions().event_record.map(|f| unsafe { f(device.handle(), event.handle(), *handle) })
        })
    }

    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        let event = own(PluginEvent::of(event), |event| &event.owned, device)?;
        device.call("event_wait", || {
            // SAFETY: the plug-in's function and objects.
            device.functions().event_wait.map(|f| unsafe { f(device.handle(), event.handle(), *handle) })
        })
    }

    fn clear_error(&self) {
        let Owned { device, handle } = &self.owned;
        // A refusal shows: the next call on the stream fails again.
        let _ = device.call("stream_clear_error", || {
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
    fn submit(&self, work: &RecordedWork<'_>, scratch: Option<(usize, usize)>) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        work::with(device, work, scratch, |work| {
            device.call("work_submit", || {
                // SAFETY: the plug-in's function and objects; the work lives during the call, and the maker of an
                // address in host memory keeps the memory until the stream has done it.
                device.functions().work_submit.map(|f| unsafe { f(device.handle(), *handle, work) })
            })
        })?
    }

    /// The plug-in's pointer to another device of its own.
    fn peer(&self, peer: &dyn Accelerator) -> Result<*mut c_void> {
        let none = || Error::new(Code::Unimplemented, "the plug-in copies nothing straight between these devices");
        self.owned.device.peer(peer).ok_or_else(none)
    }

    /// # Safety
    ///
    /// The first of each pair are devices of the plug-in.
    unsafe fn copy_peer(&self, to: (*mut c_void, usize), from: (*mut c_void, usize), bytes: u64) -> Result<()> {
        let Owned { device, handle } = &self.owned;
        device.call("copy_peer", || {
            let call = |f: unsafe extern "C" fn(_, _, _, _, _, _, _) -> i32| {
                // SAFETY: the plug-in's function, and objects as demanded of the caller; the addresses are those of its
                // devices.
                unsafe { f(device.handle(), *handle, to.0, to.1 as u64, from.0, from.1 as u64, bytes) }
            };
            device.functions().copy_peer.map(call)
        })
    }
}

/// How a wait that polls begins, and its shortest and its longest pause.
const LOOK: Waiting = Waiting { spin_ns: 20_000, yields: false };
const FIRST_PAUSE_NS: u64 = 20_000;
const LAST_PAUSE_NS: u64 = 500_000;

impl DeviceEvent for PluginEvent {
    fn is_reached(&self) -> Result<bool> {
        let Owned { device, handle } = &self.owned;
        self.asked("event_query", |reached| {
            // SAFETY: the plug-in's function and objects, and a place for the answer.
            device.functions().event_query.map(|f| unsafe { f(device.handle(), *handle, reached) })
        })
    }

    fn synchronize(&self, deadline: Deadline) -> Result<bool> {
        let Owned { device, handle } = &self.owned;
        let Some(synchronize) = device.functions().event_synchronize.filter(|_| device.may_block()) else {
            return match LOOK.look(self, deadline)? {
                Some(reached) => Ok(reached),
                None => self.poll(deadline),
            };
        };
        loop {
            let timeout = deadline.left().map_or(u64::MAX, |left| left.as_nanos() as u64);
            let reached = self.asked("event_synchronize", |reached| {
                // SAFETY: the plug-in's function and objects, and a place for the answer.
                Some(unsafe { synchronize(device.handle(), *handle, timeout, reached) })
            })?;
            // A plug-in may return early, but must store the truth.
            if reached || deadline.is_past() {
                return Ok(reached);
            }
            std::thread::yield_now();
        }
    }

    fn elapsed_ns(&self, start: &dyn DeviceEvent) -> Result<i64> {
        let Owned { device, handle } = &self.owned;
        let start = own((start as &dyn Any).downcast_ref::<PluginEvent>(), |event| &event.owned, device)?;
        if !device.can(C::WEIR_DEVICE_TIMING) {
            return Err(Error::new(Code::Unimplemented, "the plug-in's device does not keep the time of events"));
        }
        if !self.timing || !start.timing {
            return Err(Error::precondition("an event was created without timing"));
        }
        let mut elapsed = 0;
        device.call("event_elapsed", || {
            let call = |f: unsafe extern "C" fn(_, _, _, _) -> i32| {
                // SAFETY: the plug-in's function and objects, and a place for the answer.
                unsafe { f(device.handle(), start.handle(), *handle, &raw mut elapsed) }
            };
            device.functions().event_elapsed.map(call)
        })?;
        Ok(elapsed)
    }
}

impl PluginEvent {
    /// Waits by polling.
    fn poll(&self, deadline: Deadline) -> Result<bool> {
        let mut pause = FIRST_PAUSE_NS;
        loop {
            if self.is_reached()? {
                return Ok(true);
            }
            if deadline.is_past() {
                return Ok(false);
            }
            let left = deadline.left().map_or(u64::MAX, |left| left.as_nanos() as u64);
            std::thread::sleep(Duration::from_nanos(pause.min(left)));
            pause = (pause + pause / 2).min(LAST_PAUSE_NS);
        }
    }
}
