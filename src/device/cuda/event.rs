//! Events: points in streams.
//!
//! *Reached, for good.* `recorded` grows by one as a record begins and by one as it ends, and `reached` is its value
//! when the event was last known to be reached. A query reads the count first, and caches nothing while a record is in
//! progress, so a concurrent record is not taken for reached. A known result is not queried again. That includes
//! failures: the receiver of a reached event queries its outcome, and must not get "not reached".
//!
//! *Captured.* An event that was recorded into a capture represents a node of a graph. It is never reached, and
//! querying the driver would invalidate the capture, so it is not queried. Recorded again outside, it is an ordinary
//! event.
//!
//! *Waiting.* The driver's own wait has no time-out. A wait without a limit spins for a while and then sleeps in the
//! driver; one with a limit polls, with pauses that grow with the elapsed time, so it is late by a sixteenth of that at
//! most.
//!
//! *Reuse.* An event that is known to be reached is kept for reuse, up to `KEPT` of each sort.

use super::context::{Context, Handle, exposed};
use super::downcast::downcast;
use super::inbox::Reports;
use super::status;
use super::table::{CUevent, Status};
use crate::base::time::{Deadline, now_ns};
use crate::base::{Error, Result};
use crate::device::{DeviceEvent, Waiting, in_a_capture};
use crate::sync::{Mutex, fork};
use cudarc::driver::sys::CUevent_flags_enum as F;
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::Duration;

/// Most kept events of each sort.
const KEPT: usize = 256;
/// How a wait begins.
const LOOK: Waiting = Waiting { spin_ns: 30_000, yields: false };
/// The shortest and the longest pause of a wait with a limit.
const FIRST_PAUSE_NS: u64 = 10_000;
const LAST_PAUSE_NS: u64 = 500_000;

/// Unused events of a context: without timing, and with.
#[derive(Debug)]
pub(super) struct Spare {
    context: Arc<Context>,
    kept: [Mutex<Vec<Handle<CUevent>>>; 2],
}

#[derive(Debug)]
pub struct CudaEvent {
    spare: Arc<Spare>,
    raw: Handle<CUevent>,
    timing: bool,
    recorded: AtomicU64,
    reached: AtomicU64,
    /// Whether it was last recorded into a capture.
    captured: AtomicBool,
    /// The host has its handle, and may record it into a capture.
    known: AtomicBool,
    /// The value of `recorded` when a query failed (0 = none), and the failure.
    failed_at: AtomicU64,
    failure: Mutex<Option<Error>>,
    /// Possible findings of kernels before it.
    pub(super) reports: Reports,
}

impl CudaEvent {
    pub(super) fn new(spare: &Arc<Spare>, timing: bool) -> Result<CudaEvent> {
        let context = &spare.context;
        let made = |raw| CudaEvent {
            spare: Arc::clone(spare),
            raw,
            timing,
            recorded: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            captured: AtomicBool::new(false),
            known: AtomicBool::new(false),
            failed_at: AtomicU64::new(0),
            failure: Mutex::default(),
            reports: Reports::default(),
        };
        if let Some(lost) = context.lost() {
            return Err(lost.clone());
        }
        let kept = spare.kept[usize::from(timing)].lock().pop();
        if let Some(raw) = kept {
            return Ok(made(raw));
        }
        let untimed = if timing { 0 } else { F::CU_EVENT_DISABLE_TIMING as c_uint };
        let flags = F::CU_EVENT_BLOCKING_SYNC as c_uint | untimed;
        let mut raw = std::ptr::null_mut();
        context.call("cuEventCreate", &"an event", |table| {
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (table.event_create)(&raw mut raw, flags) }
        })?;
        Ok(made(Handle(raw)))
    }

    /// The event, if it is one of this context.
    pub(super) fn of<'a>(event: &'a dyn DeviceEvent, context: &Arc<Context>) -> Result<&'a CudaEvent> {
        let found = downcast::<CudaEvent>(event);
        found
            .filter(|event| Arc::ptr_eq(&event.spare.context, context))
            .ok_or_else(|| Error::internal("a stream was given an event of another device's"))
    }

    pub(super) fn raw(&self) -> CUevent {
        self.raw.0
    }

    /// Recorded by `record`, into a capture or not.
    pub(super) fn record(&self, captured: bool, record: impl FnOnce() -> Result<()>) -> Result<()> {
        // ORDERING: AcqRel pairs with the Acquire in `is_reached`: a thread that sees an even count queries the driver
        // after that record, and one that queried before this record has seen an earlier count.
        self.recorded.fetch_add(1, AcqRel);
        // ORDERING: Relaxed; the count tells for which record it holds.
        self.captured.store(captured, Relaxed);
        let result = record();
        self.recorded.fetch_add(1, AcqRel);
        result
    }

    /// The record of this count is known to be reached; then the findings of kernels are visible, too.
    fn know(&self, recorded: u64) -> Result<()> {
        if let Some(found) = self.reports.failure() {
            return Err(self.fails(recorded, found));
        }
        if recorded.is_multiple_of(2) {
            // ORDERING: Release pairs with the Acquire in `is_reached`: a thread that reads this sees the work as this
            // thread does.
            self.reached.fetch_max(recorded, Release);
        }
        Ok(())
    }

    /// The failure of the query for the record of this count.
    fn failed(&self, recorded: u64) -> Result<()> {
        // ORDERING: Acquire pairs with the Release in `fails`.
        match self.failed_at.load(Acquire) == recorded && recorded > 0 {
            true => self.failure.lock().clone().map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    fn fails(&self, recorded: u64, error: Error) -> Error {
        if recorded.is_multiple_of(2) {
            *self.failure.lock() = Some(error.clone());
            // ORDERING: Release pairs with the Acquire in `failed`, which sees the failure then.
            self.failed_at.store(recorded, Release);
        }
        error
    }
}

/// Whether the answer means neither that the event is reached nor that work before it has failed.
fn is_open(asked: Status) -> bool {
    asked == status::NOT_READY || status::is_of_capture(asked)
}

impl DeviceEvent for CudaEvent {
    fn is_reached(&self) -> Result<bool> {
        let recorded = self.recorded.load(Acquire);
        if self.reached.load(Acquire) == recorded {
            return Ok(true);
        }
        if self.is_captured() {
            return Ok(false);
        }
        self.failed(recorded)?;
        let mut asked = status::NOT_READY;
        let call = self.spare.context.call("cuEventQuery", &"work in front of an event", |table| {
            // SAFETY: the driver's function, with an event of this context.
            asked = unsafe { (table.event_query)(self.raw()) };
            if is_open(asked) { status::SUCCESS } else { asked }
        });
        call.map_err(|error| self.fails(recorded, error))?;
        if is_open(asked) {
            return Ok(false);
        }
        self.know(recorded)?;
        Ok(true)
    }

    fn synchronize(&self, deadline: Deadline) -> Result<bool> {
        LOOK.look(self, deadline)?.map_or_else(|| self.block(deadline), Ok)
    }

    fn block(&self, deadline: Deadline) -> Result<bool> {
        let begin = now_ns();
        loop {
            if self.is_reached()? {
                return Ok(true);
            }
            if deadline.is_past() {
                return Ok(false);
            }
            if self.is_captured() {
                return Err(in_a_capture());
            }
            let Some(left) = deadline.left() else {
                let recorded = self.recorded.load(Acquire);
                let call = self.spare.context.call("cuEventSynchronize", &"work in front of an event", |table| {
                    // SAFETY: the driver's function, with an event of this context.
                    unsafe { (table.event_synchronize)(self.raw()) }
                });
                call.map_err(|error| self.fails(recorded, error))?;
                self.know(recorded)?;
                return Ok(true);
            };
            let pause = ((now_ns() - begin) / 16).clamp(FIRST_PAUSE_NS, LAST_PAUSE_NS);
            std::thread::sleep(Duration::from_nanos(pause).min(left));
        }
    }

    fn is_captured(&self) -> bool {
        self.captured.load(Relaxed)
    }

    fn is_exposed(&self) -> bool {
        self.known.load(Relaxed)
    }

    fn elapsed_ns(&self, start: &dyn DeviceEvent) -> Result<i64> {
        let start = CudaEvent::of(start, &self.spare.context)?;
        if !self.timing || !start.timing {
            return Err(Error::precondition("an event keeps no time"));
        }
        let mut milliseconds = 0.0f32;
        self.spare.context.call("cuEventElapsedTime", &"the time between two events", |table| {
            // SAFETY: the driver's function, with events of this context, and a place for the answer.
            unsafe { (table.event_elapsed_time)(&raw mut milliseconds, start.raw(), self.raw()) }
        })?;
        Ok((f64::from(milliseconds) * 1e6) as i64)
    }

    fn native_handle(&self) -> Result<u64> {
        self.known.store(true, Relaxed);
        Ok(exposed(self.raw()))
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        let is_over = self.reached.load(Acquire) == self.recorded.load(Acquire);
        if is_over && self.spare.context.lost().is_none() && !fork::forked() {
            let mut kept = self.spare.kept[usize::from(self.timing)].lock();
            if kept.len() < KEPT {
                kept.push(self.raw);
                return;
            }
        }
        // SAFETY: the driver's function, with an unused event.
        self.spare.context.take_back("cuEventDestroy", |table| unsafe { (table.event_destroy)(self.raw()) });
    }
}

impl Spare {
    pub(super) fn new(context: &Arc<Context>) -> Arc<Spare> {
        Arc::new(Spare { context: Arc::clone(context), kept: Default::default() })
    }
}

/// The device and all its events are gone.
impl Drop for Spare {
    fn drop(&mut self) {
        for kept in &self.kept {
            for event in kept.lock().drain(..) {
                // SAFETY: the driver's function, with an event that nobody uses.
                self.context.take_back("cuEventDestroy", |table| unsafe { (table.event_destroy)(event.0) });
            }
        }
    }
}
