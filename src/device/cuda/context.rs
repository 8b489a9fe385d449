//! The context of a device's work, and calls of the driver's functions.
//!
//! *Ownership.* The primary context, which all users of the CUDA runtime share; its settings are left alone if it is
//! active already. Or one of the host's, which is used and never destroyed.
//!
//! *The current context.* A host thread may have another context current. So each call checks, sets the device's
//! context only if it differs, and restores the host's (`enter`). It is not cached: the host changes it, too. Several
//! calls in a row, without host functions in between, check once for all of them (`scope`).
//!
//! *While others capture.* A thread that captures a stream in the usual mode (torch.cuda.graph, CuPy) forbids all other
//! threads to ask, wait, allocate or load meanwhile, and its capture fails if they do
//! (`cuThreadExchangeStreamCaptureMode` in the driver's reference). A thread in relaxed mode is exempt. So each call
//! except those that put work into a stream, which are never forbidden, is made in that mode, and the host's is
//! restored. Threads of weir's own stay relaxed.
//!
//! *A device that is lost.* After some failures a context gives nothing but the same failure. The first one is kept
//! with its call; from then on the driver is not called, and every call returns that failure. Objects are then
//! destroyed with the context. The primary context ends when all holders have released it; then the next engine gets a
//! new one.
//!
//! *Fork and exit.* A child of fork does not call the driver. Failures of the driver during process exit are no errors.

use super::driver::Driver;
use super::pages::Pages;
use super::status;
use super::table::{CUcontext, CUdevice, DriverTable, Status};
use crate::base::{Code, Error, Result};
use crate::sync::{OnceLock, fork, thread};
use cudarc::driver::sys::CUstreamCaptureMode_enum as F;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fmt::Display;

/// A driver handle, which may be used from any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle<T>(pub T);

// SAFETY: driver handles are opaque names, which the driver accepts on any thread.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}

#[derive(Debug)]
pub struct Context {
    driver: &'static Driver,
    raw: Handle<CUcontext>,
    device: CUdevice,
    /// "cuda:0"
    label: String,
    is_primary: bool,
    lost: OnceLock<Error>,
    /// For failures found by kernels.
    pages: Pages,
}

/// Until this is dropped, captures in other threads neither forbid nor suffer from the calls of this one.
pub(super) struct Relaxed {
    table: &'static DriverTable,
    /// `None`: the thread stays relaxed, or the driver has ended, which the following call reports.
    before: Option<c_int>,
}

impl Relaxed {
    pub(super) fn new(table: &'static DriverTable) -> Relaxed {
        if STAYS_RELAXED.get() {
            return Relaxed { table, before: None };
        }
        let mut mode = F::CU_STREAM_CAPTURE_MODE_RELAXED as c_int;
        // SAFETY: the driver's function, which swaps the new mode for the old one.
        let status = unsafe { (table.thread_exchange_stream_capture_mode)(&raw mut mode) };
        STAYS_RELAXED.set(status == status::SUCCESS && thread::is_own());
        Relaxed { table, before: (status == status::SUCCESS && !STAYS_RELAXED.get()).then_some(mode) }
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(mode) = &mut self.before {
            // SAFETY: the driver's function, which swaps the old mode back.
            unsafe { (self.table.thread_exchange_stream_capture_mode)(mode) };
        }
    }
}

/// The context is current in this thread until this is dropped.
pub(super) struct Entered<'a> {
    context: &'a Context,
    /// The context that was current before, if another.
    before: Option<CUcontext>,
}

thread_local! {
    /// The context whose scope this thread is in.
    static SCOPE: Cell<*const Context> = const { Cell::new(std::ptr::null()) };
    /// This thread belongs to weir, and is relaxed.
    static STAYS_RELAXED: Cell<bool> = const { Cell::new(false) };
}

/// The context stays current in this thread until this is dropped: calls need not check.
pub(super) struct ContextScope<'a> {
    _entered: Entered<'a>,
    around: *const Context,
}

impl Drop for ContextScope<'_> {
    fn drop(&mut self) {
        SCOPE.set(self.around);
    }
}

impl Context {
    /// The primary context of a device, or `borrowed`.
    pub fn open(driver: &'static Driver, index: u32, borrowed: Option<u64>) -> Result<Context> {
        let device = driver.device(index)?;
        let table = driver.table();
        let label = format!("cuda:{index}");
        let at = |raw, is_primary| Context {
            driver,
            raw: Handle(raw),
            device,
            label: label.clone(),
            is_primary,
            lost: OnceLock::new(),
            pages: Pages::default(),
        };
        if let Some(address) = borrowed {
            let context = at(std::ptr::with_exposed_provenance_mut(address as usize), false);
            context.check_device()?;
            return Ok(context);
        }
        let mut raw = std::ptr::null_mut();
        let _relaxed = Relaxed::new(table);
        // SAFETY: the driver's function, and a place for the answer.
        driver.check("cuDevicePrimaryCtxRetain", unsafe { (table.primary_ctx_retain)(&raw mut raw, device) })?;
        Ok(at(raw, true))
    }

    /// A context of the host's must be of the device that it is used for.
    fn check_device(&self) -> Result<()> {
        let mut device = 0;
        self.call("cuCtxGetDevice", &"the host's context", |table| {
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (table.ctx_get_device)(&raw mut device) }
        })?;
        if device == self.device {
            return Ok(());
        }
        Err(Error::invalid(format!("the host's context is of another device than engine {}", self.label)))
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(super) fn table(&self) -> &'static DriverTable {
        self.driver.table()
    }

    pub(super) fn raw(&self) -> CUcontext {
        self.raw.0
    }

    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// "cuda:0"
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// The failure by which the context was lost.
    pub(super) fn lost(&self) -> Option<&Error> {
        self.lost.get()
    }

    /// Makes the context current in this thread.
    #[inline]
    pub(super) fn enter(&self) -> Result<Entered<'_>> {
        fork::check()?;
        if let Some(lost) = self.lost.get() {
            return Err(lost.clone());
        }
        if std::ptr::eq(SCOPE.get(), self) {
            return Ok(Entered { context: self, before: None });
        }
        let table = self.table();
        let mut current = std::ptr::null_mut();
        // SAFETY: the driver's function, and a place for the answer.
        self.check("cuCtxGetCurrent", &"a call", unsafe { (table.ctx_get_current)(&raw mut current) })?;
        if current == self.raw.0 {
            return Ok(Entered { context: self, before: None });
        }
        // SAFETY: the driver's function, with a context that lives as long as this.
        self.check("cuCtxSetCurrent", &"a call", unsafe { (table.ctx_set_current)(self.raw.0) })?;
        Ok(Entered { context: self, before: Some(current) })
    }

    /// Makes the context current for several calls; none of the host's functions may be called meanwhile.
    pub(super) fn scope(&self) -> Result<ContextScope<'_>> {
        let entered = self.enter()?;
        Ok(ContextScope { _entered: entered, around: SCOPE.replace(self) })
    }

    /// Calls one of the driver's functions in the context; `what` names the action in errors. Not for functions that
    /// put work into a stream (`issue`).
    pub(super) fn call(
        &self,
        function: &'static str,
        what: &dyn Display,
        call: impl FnOnce(&'static DriverTable) -> Status,
    ) -> Result<()> {
        let entered = self.enter()?;
        let relaxed = Relaxed::new(self.table());
        let status = call(self.table());
        let result = self.check(function, what, status);
        drop((relaxed, entered));
        result
    }

    /// As `call`, for functions that put work into a stream, prepare a launch, or query whether a stream is captured.
    #[inline]
    pub(super) fn issue(
        &self,
        function: &'static str,
        what: &dyn Display,
        call: impl FnOnce(&'static DriverTable) -> Status,
    ) -> Result<()> {
        let entered = self.enter()?;
        let status = call(self.table());
        let result = self.check(function, what, status);
        drop(entered);
        result
    }

    /// As `enter`, for calls of a library, which may make calls that captures in other threads forbid.
    pub(super) fn enter_relaxed(&self) -> Result<(Relaxed, Entered<'_>)> {
        let entered = self.enter()?;
        Ok((Relaxed::new(self.table()), entered))
    }

    /// As `call`, for freeing. Failures are not reported: a lost device is known already, and the end of the process is
    /// no error.
    pub(super) fn take_back(&self, function: &'static str, call: impl FnOnce(&'static DriverTable) -> Status) {
        if self.lost.get().is_some() || fork::forked() {
            return;
        }
        let _ = self.call(function, &"taking back", call);
    }

    #[inline]
    pub(super) fn check(&self, function: &'static str, what: &dyn Display, status: Status) -> Result<()> {
        if status == status::SUCCESS { Ok(()) } else { Err(self.failed(function, what, status)) }
    }

    #[cold]
    fn failed(&self, function: &'static str, what: &dyn Display, status: Status) -> Error {
        let told = status::text(self.table(), status);
        if status::is_sticky(status) {
            let rest =
                if status::ends_process(status) { "; the process must end before it uses CUDA again" } else { "" };
            let text = format!("engine {} is lost: {what}: {function}: {told}{rest}", self.label);
            let error = Error::new(Code::DeviceLost, text);
            // The first one stays.
            let _ = self.lost.set(error.clone());
            return self.lost.get().cloned().unwrap_or(error);
        }
        Error::new(status::code(status), format!("{what}: {function}: {told}")).at_engine(&self.label)
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: the driver's function, with a context that it returned.
            let status = unsafe { (self.context.table().ctx_set_current)(before) };
            // If the device is lost, that is recorded; the next call reports it.
            let _ = self.context.check("cuCtxSetCurrent", &"the host's own context", status);
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        for page in self.pages.drain() {
            let memory = std::ptr::with_exposed_provenance_mut(page);
            // SAFETY: the driver's function with memory of its own; everything that was made in the context holds it,
            // and is gone.
            self.take_back("cuMemFreeHost", |table| unsafe { (table.mem_free_host)(memory) });
        }
        if self.is_primary && !fork::forked() {
            let _relaxed = Relaxed::new(self.table());
            // Even if it is lost: so it ends, and the next one is new. SAFETY: the driver's function; everything that
            // was made in the context holds it, and is gone.
            unsafe { (self.table().primary_ctx_release)(self.device) };
        }
    }
}

/// A driver address as the number that the rest of the library uses.
pub(super) fn exposed<T>(pointer: *mut T) -> u64 {
    pointer.cast::<c_void>().expose_provenance() as u64
}
