//! Events of a plug-in's device.
//!
//! *An answer holds.* What a query says of a record that failed is kept until the event is recorded again: whoever was
//! told of the event queries it, and must not get another answer. A record that the plug-in refuses counts as one that
//! failed: what the event said before is not about the work in front of it.
//!
//! *An event in flight is not destroyed.* The device may still be about to reach it when its last holder lets go of it,
//! as after a wait whose time is over. Then it is kept with the device (`UnreachedEvents`), and destroyed once it was
//! reached, or just before the device is closed.

use super::opened::Opened;
use super::owned::{Owned, own};
use super::table::Pointer;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::weir_device_object_value;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::device::{DeviceEvent, Waiting};
use crate::sync::{Mutex, fork};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// ORDERING: Relaxed throughout; who records an event and who asks for it are ordered by what hands it over, and the
/// lock orders the failure.
#[derive(Debug)]
pub(super) struct PluginEvent {
    owned: Owned,
    timing: bool,
    /// The number of its last record, and of the last one that is known to be reached.
    recorded: AtomicU64,
    reached: AtomicU64,
    /// The last record that is known to have failed, and why.
    failed: AtomicU64,
    failure: Mutex<Option<(u64, Error)>>,
}

/// The number of the first record, which is none: the event counts as reached.
const UNRECORDED: u64 = 1;

impl PluginEvent {
    /// # Safety
    /// An object of this kind that the plug-in has made of its device, and gives up here.
    pub(super) unsafe fn new(device: Arc<Opened>, handle: *mut c_void, timing: bool) -> PluginEvent {
        PluginEvent {
            owned: Owned { device, handle },
            timing,
            recorded: AtomicU64::new(UNRECORDED),
            reached: AtomicU64::new(UNRECORDED),
            failed: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    /// The event, if it belongs to a plug-in.
    pub(super) fn of(event: &Arc<dyn DeviceEvent>) -> Option<&PluginEvent> {
        (&**event as &dyn Any).downcast_ref()
    }

    /// The event, if it belongs to this device.
    pub(super) fn on<'a>(event: &'a Arc<dyn DeviceEvent>, device: &Arc<Opened>) -> Result<&'a PluginEvent> {
        own(PluginEvent::of(event), |event| &event.owned, device)
    }

    pub(super) fn handle(&self) -> *mut c_void {
        self.owned.handle
    }

    /// Records it: `record` asks the plug-in.
    pub(super) fn record(&self, record: impl FnOnce() -> Result<()>) -> Result<()> {
        // Before the call: from then on the event may be reached, and asked for.
        let number = self.recorded.load(Relaxed) + 1;
        self.recorded.store(number, Relaxed);
        record().inspect_err(|refusal| {
            self.fail(number, refusal);
            self.reached.fetch_max(number, Relaxed);
        })
    }

    fn fail(&self, number: u64, failure: &Error) {
        *self.failure.lock() = Some((number, failure.clone()));
        self.failed.store(number, Relaxed);
    }

    /// Calls a query function of the plug-in: `ask` gives its status and stores the answer.
    fn asked(&self, function: &'static str, ask: impl FnOnce(*mut i32) -> Option<i32>) -> Result<bool> {
        let number = self.recorded.load(Relaxed);
        if self.failed.load(Relaxed) == number
            && let Some((_, failure)) = self.failure.lock().as_ref().filter(|(of, _)| *of == number)
        {
            return Err(failure.clone());
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
        let is_sense = matches!(reached, 0 | 1) && (status == 0 || Code::from_status(status).is_some());
        match &answer {
            Ok(false) => {}
            Ok(true) => _ = self.reached.fetch_max(number, Relaxed),
            // A wait may fail by itself, and then a query has the answer.
            Err(_) if is_sense && function == WAIT => {}
            Err(failure) => {
                self.fail(number, failure);
                if is_sense {
                    self.reached.fetch_max(number, Relaxed);
                }
            }
        }
        answer
    }

    fn is_in_flight(&self) -> bool {
        self.reached.load(Relaxed) < self.recorded.load(Relaxed)
    }
}

const WAIT: &str = "event_synchronize";

impl Drop for PluginEvent {
    fn drop(&mut self) {
        let Owned { device, handle } = &self.owned;
        if fork::forked() {
            return;
        }
        match self.is_in_flight() && !device.is_lost() {
            true => device.unreached().add(Pointer(*handle)),
            false => destroy(device, *handle),
        }
    }
}

fn destroy(device: &Arc<Opened>, event: *mut c_void) {
    // SAFETY: the plug-in's event, which nobody uses any more.
    device.let_go(event, |device, event| unsafe { device.destroy_event(event) });
}

/// Destroys the events that nobody holds any more and that the device has reached.
pub(super) fn sweep(device: &Arc<Opened>) {
    for event in device.unreached().take() {
        let mut reached = 0;
        let asked = device.call("event_query", || {
            // SAFETY: the plug-in's function and objects, and a place for the answer.
            device.functions().event_query.map(|f| unsafe { f(device.handle(), event.get(), &raw mut reached) })
        });
        // An event that has failed counts as reached.
        match asked.is_err() || reached == 1 {
            true => destroy(device, event.get()),
            false => device.unreached().add(event),
        }
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
            let reached = self.asked(WAIT, |reached| {
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

    fn native_handle(&self) -> Result<u64> {
        let Owned { device, handle } = &self.owned;
        // SAFETY: an event of this device's.
        unsafe { device.native_handle(weir_device_object_value::WEIR_DEVICE_OBJECT_EVENT, *handle) }
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
