//! Streams: the driver's own, and those that the host wraps.
//!
//! A stream of weir's does not wait for the legacy default stream, nor that for it (NON_BLOCKING). A wrapped one keeps
//! its flags, and the host may use it, too: its other dependencies are up to the host and the driver.
//!
//! With WEIR_CUDA_SYNC=1 each call waits until its work is done, so that a failure names the work that failed.

use super::blas::Workspace;
use super::capture::{self, Capture};
use super::context::{Context, Handle, exposed};
use super::grid::LaunchGrid;
use super::inbox::{FaultInbox, FaultTicket, FaultTickets, Reports};
use super::plan::Check;
use super::status;
use super::table::{CUcontext, CUstream, DriverTable, Status};
use crate::base::{Error, Result};
use crate::device::DeviceStreamAttr;
use crate::sync::Mutex;
use cudarc::driver::sys::CUstream_flags_enum as F;
use std::ffi::{c_int, c_uint, c_void};
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The priorities of weir's attributes.
const LEAST_PRIORITY: i32 = -100;
const MOST_PRIORITY: i32 = 100;

/// Handles up to this one are symbolic: the legacy default stream (0 and 1) and the per-thread one.
const PER_THREAD: u64 = 2;

pub struct CudaStream {
    pub(super) context: Arc<Context>,
    raw: Handle<CUstream>,
    pub(super) is_own: bool,
    name: Box<str>,
    workspace: Mutex<Option<Workspace>>,
    /// It may take part in captures: it is the host's, or its handle was given out, or it has waited for an event that
    /// may be part of one. ORDERING: Relaxed; the thread that made it join knows.
    pub(super) may_capture: AtomicBool,
    captured: Mutex<capture::CaptureShared>,
    /// Of captures that may still be launched.
    pub(super) heard: Mutex<Vec<Weak<FaultInbox>>>,
    /// Possible findings of kernels that were launched here, or before events that it waited for.
    pub(super) reports: Reports,
    pub(super) inbox: Mutex<Option<Arc<FaultInbox>>>,
    /// Inboxes of before a failure, which the device may still write to.
    pub(super) left: Mutex<Vec<Arc<FaultInbox>>>,
}

/// An action on a stream, for messages.
struct On<'a>(&'a dyn Display, &'a str);

impl Display for On<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream '{}': {}", self.1, self.0)
    }
}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaStream({}, {})", self.context.label(), self.name)
    }
}

impl CudaStream {
    pub(super) fn new(context: &Arc<Context>, attr: &DeviceStreamAttr<'_>) -> Result<CudaStream> {
        let (mut least, mut most) = (0, 0);
        let what = format!("stream '{}'", attr.name);
        context.call("cuCtxGetStreamPriorityRange", &what, |table| {
            // SAFETY: the driver's function, and places for the answers.
            unsafe { (table.ctx_get_stream_priority_range)(&raw mut least, &raw mut most) }
        })?;
        let priority = driver_priority(attr.priority, least, most);
        let mut raw = std::ptr::null_mut();
        context.call("cuStreamCreateWithPriority", &what, |table| {
            let flags = F::CU_STREAM_NON_BLOCKING as c_uint;
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (table.stream_create_with_priority)(&raw mut raw, flags, priority) }
        })?;
        Ok(CudaStream::on(context, raw, true, attr.name))
    }

    /// A stream of the host's, which must be one of this context.
    pub(super) fn wrap(context: &Arc<Context>, attr: &DeviceStreamAttr<'_>, handle: u64) -> Result<CudaStream> {
        let raw: CUstream = std::ptr::with_exposed_provenance_mut(handle as usize);
        let mut of: CUcontext = std::ptr::null_mut();
        if handle > PER_THREAD {
            context.call("cuStreamGetCtx", &format_args!("stream '{}'", attr.name), |table| {
                // SAFETY: the driver's function, the host's stream, and a place for the answer.
                unsafe { (table.stream_get_ctx)(raw, &raw mut of) }
            })?;
            if of != context.raw() {
                return Err(Error::invalid(format!(
                    "stream '{}': the CUstream is of another context than engine {}",
                    attr.name,
                    context.label()
                )));
            }
        }
        Ok(CudaStream::on(context, raw, false, attr.name))
    }

    fn on(context: &Arc<Context>, raw: CUstream, is_own: bool, name: &str) -> CudaStream {
        CudaStream {
            context: Arc::clone(context),
            raw: Handle(raw),
            is_own,
            may_capture: AtomicBool::new(!is_own),
            captured: Mutex::default(),
            heard: Mutex::default(),
            name: name.into(),
            workspace: Mutex::default(),
            reports: Reports::default(),
            inbox: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// A recording is about to be launched whose kernels may write to this.
    pub(super) fn may_hear_of(&self, inbox: &Arc<FaultInbox>) {
        if !self.reports.has(inbox) {
            // Its last launches are over: their owner continues, or another stream has waited for them.
            inbox.empty();
            self.reports.add(inbox, u64::MAX);
        }
    }

    pub(super) fn raw(&self) -> CUstream {
        self.raw.0
    }

    /// Its handle, if the stream is weir's.
    pub(super) fn own(&self) -> Option<Handle<CUstream>> {
        self.is_own.then_some(self.raw)
    }

    /// The workspace shared by its products; none before the first that needs it.
    pub(super) fn workspace(&self) -> &Mutex<Option<Workspace>> {
        &self.workspace
    }

    /// Whether products can use the stream's workspace. Not for the per-thread stream, which is several.
    pub(super) fn takes_products(&self) -> bool {
        exposed(self.raw()) != PER_THREAD
    }

    /// The workspace shared by captured products; `make` makes it.
    pub(super) fn captured_workspace(&self, make: impl FnOnce() -> Result<Workspace>) -> Result<Arc<Workspace>> {
        let capture = self.capture()?;
        let mut shared = self.captured.lock();
        if shared.id != capture.id {
            *shared = capture::CaptureShared { id: capture.id, ..Default::default() };
        }
        if let Some(workspace) = shared.workspace.upgrade() {
            return Ok(workspace);
        }
        let made = Arc::new(make()?);
        capture.keep(&self.context, Box::new(Arc::clone(&made)))?;
        shared.workspace = Arc::downgrade(&made);
        Ok(made)
    }

    /// The inbox of captured kernels.
    fn captured_inbox(&self) -> Result<Arc<FaultInbox>> {
        let capture = self.capture()?;
        let mut shared = self.captured.lock();
        if shared.id != capture.id {
            *shared = capture::CaptureShared { id: capture.id, ..Default::default() };
        }
        if let Some(inbox) = shared.inbox.upgrade() {
            return Ok(inbox);
        }
        let made = FaultInbox::new(&self.context)?;
        capture.keep(&self.context, Box::new(Arc::clone(&made)))?;
        let mut heard = self.heard.lock();
        heard.retain(|inbox| inbox.strong_count() > 0);
        heard.push(Arc::downgrade(&made));
        shared.inbox = Arc::downgrade(&made);
        Ok(made)
    }

    pub(super) fn capture(&self) -> Result<Capture> {
        Capture::of(&self.context, self.raw(), &On(&"a capture", &self.name))
    }

    /// Whether the host captures the stream.
    pub(super) fn captures(&self) -> Result<bool> {
        if !self.may_capture.load(Relaxed) {
            return Ok(false);
        }
        is_capturing(&self.context, self.raw(), &On(&"whether it is captured", &self.name))
    }

    /// Whether all of its work is done without a failure.
    pub(super) fn is_over(&self) -> bool {
        // One that is captured must not be asked.
        if !matches!(self.captures(), Ok(false)) {
            return false;
        }
        let mut asked = status::NOT_READY;
        let call = self.context.call("cuStreamQuery", &On(&"its work", &self.name), |table| {
            // SAFETY: the driver's function, with a stream of this context.
            asked = unsafe { (table.stream_query)(self.raw()) };
            if asked == status::NOT_READY { status::SUCCESS } else { asked }
        });
        call.is_ok() && asked == status::SUCCESS && self.reports.failure().is_none()
    }

    /// Calls one of the driver's functions that put work into the stream.
    #[inline]
    pub(super) fn issue(
        &self,
        function: &'static str,
        what: &dyn Display,
        call: impl FnOnce(&'static DriverTable, CUstream) -> Status,
    ) -> Result<()> {
        let what = On(what, &self.name);
        self.context.issue(function, &what, |table| call(table, self.raw()))?;
        if self.context.driver().waits() { self.wait_for_all(&what) } else { Ok(()) }
    }

    #[cold]
    fn wait_for_all(&self, what: &dyn Display) -> Result<()> {
        if self.captures()? {
            return Ok(());
        }
        // SAFETY: the driver's function with a stream of this context.
        self.context.call("cuStreamSynchronize", what, |table| unsafe { (table.stream_synchronize)(self.raw()) })?;
        self.reports.failure().map_or(Ok(()), Err)
    }

    /// Launches a kernel.
    #[inline]
    pub(super) fn launch_on(&self, what: &dyn Display, grid: &LaunchGrid, places: &[*mut c_void]) -> Result<()> {
        let ([gx, gy, gz], [bx, by, bz]) = (grid.grid, grid.block);
        self.issue("cuLaunchKernel", what, |table, stream| {
            let (each, extra) = (places.as_ptr().cast_mut(), std::ptr::null_mut());
            let launch = table.launch_kernel;
            // SAFETY: the driver's function with objects of this context; the arguments live during the call, which
            // reads and copies them. Their targets are the caller's duty.
            unsafe { launch(grid.function, gx, gy, gz, bx, by, bz, grid.shared_bytes, stream, each, extra) }
        })
    }
}

/// The driver's priority: less is sooner there, and 0 is the default.
fn driver_priority(priority: i32, least: c_int, most: c_int) -> c_int {
    let share = |end: c_int, of: i32| (i64::from(end) * i64::from(priority) / i64::from(of)) as c_int;
    let asked = if priority >= 0 { share(most, MOST_PRIORITY) } else { share(least, LEAST_PRIORITY) };
    asked.clamp(most.min(least), least.max(most))
}

impl FaultTickets for CudaStream {
    fn ticket(&self, name: &str, check: &Check<'_>) -> Result<FaultTicket> {
        if self.captures()? {
            let inbox = self.captured_inbox()?;
            self.reports.add_captured(&inbox);
            return Ok(inbox.ticket(name, check, true));
        }
        let mut own = self.inbox.lock();
        let inbox = match &*own {
            Some(inbox) => inbox,
            None => own.insert(FaultInbox::new(&self.context)?),
        };
        let ticket = inbox.ticket(name, check, false);
        self.reports.add(inbox, ticket.launch);
        Ok(ticket)
    }
}

/// The resources of a stream that was dropped while captured.
struct LeftStream {
    context: Arc<Context>,
    raw: Handle<CUstream>,
    workspace: Option<Workspace>,
}

impl Drop for LeftStream {
    fn drop(&mut self) {
        if matches!(is_capturing(&self.context, self.raw.0, &"what is left of a stream"), Ok(true)) {
            // The capture has become invalid, and has not ended.
            let (context, workspace) = (Arc::clone(&self.context), self.workspace.take());
            return capture::put_off(Box::new(LeftStream { context, raw: self.raw, workspace }));
        }
        if let Some(workspace) = &mut self.workspace {
            workspace.is_out_of_use();
        }
        // SAFETY: the driver's function with a stream that nobody uses any more.
        self.context.take_back("cuStreamDestroy", |table| unsafe { (table.stream_destroy)(self.raw.0) });
    }
}

fn is_capturing(context: &Context, stream: CUstream, what: &dyn Display) -> Result<bool> {
    let mut capturing = 0;
    context.issue("cuStreamIsCapturing", what, |table| {
        // SAFETY: the driver's function with a stream of this context, and a place for the answer.
        unsafe { (table.stream_is_capturing)(stream, &raw mut capturing) }
    })?;
    Ok(capturing != 0)
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        let workspace = self.workspace.lock().take();
        // A host stream is not queried any more: the host may have destroyed it.
        if self.is_own && matches!(self.captures(), Ok(true)) {
            // Neither may be given back in a stream that is captured.
            let left = LeftStream { context: Arc::clone(&self.context), raw: self.raw, workspace };
            return capture::put_aside(self.capture().ok(), &self.context, Box::new(left));
        }
        drop(workspace);
        if self.is_own {
            // SAFETY: the driver's function with an unused stream; work in it is executed all the same.
            self.context.take_back("cuStreamDestroy", |table| unsafe { (table.stream_destroy)(self.raw()) });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::driver_priority;

    #[test]
    fn more_is_sooner_and_less_is_later_as_far_as_the_driver_goes() {
        for (priority, expected) in [(0, 0), (100, -5), (50, -2), (10, 0), (-100, 0), (-1, 0)] {
            assert_eq!(driver_priority(priority, 0, -5), expected, "{priority}");
        }
        assert_eq!(driver_priority(-100, 2, -2), 2);
        assert_eq!(driver_priority(100, 0, 0), 0);
    }
}
