//! Events: points in streams.

use crate::callback::{drop_box, silenced};
use crate::engine::timeout_ns;
use crate::error::check;
use crate::handle::shared_handle;
use crate::{Engine, Error, Result, Stream};
use std::ffi::c_void;
use std::time::Duration;
use weir_core::abi::{weir_event, weir_event_flags as Flags, weir_notice, weir_run, weir_status};
use weir_core::ffi;

shared_handle! {
    /// A point in a stream that other streams and threads can wait for.
    ///
    /// ```
    /// use weir::{Engine, Event, Stream};
    ///
    /// let cpu = Engine::cpu()?;
    /// let (first, second) = (Stream::asynchronous(&cpu)?, Stream::asynchronous(&cpu)?);
    /// let event = Event::new(&cpu)?;
    /// let say = |text| move || {
    ///     println!("{text}");
    ///     Ok(())
    /// };
    /// first.task(say("first"))?;
    /// event.record(&first)?;
    /// second.wait_event(&event)?;
    /// second.task(say("then"))?;
    /// second.synchronize()?;
    /// assert!(event.is_done()?);
    /// # Ok::<(), weir::Error>(())
    /// ```
    Event(weir_event), ffi::weir_event_retain, ffi::weir_event_release
}

impl Event {
    /// An event that is recorded nowhere yet, which counts as reached.
    pub fn new(engine: &Engine) -> Result<Event> {
        Event::create(engine, Flags::WEIR_EVENT_DEFAULT)
    }

    /// An event that keeps the time at which its stream reached it, for [`Event::elapsed_ns`].
    pub fn timing(engine: &Engine) -> Result<Event> {
        Event::create(engine, Flags::WEIR_EVENT_TIMING)
    }

    fn create(engine: &Engine, flags: Flags) -> Result<Event> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_event_create(engine.raw(), flags as u64, &raw mut raw) })?;
        // SAFETY: a new reference.
        unsafe { Event::from_raw(raw) }
    }

    /// Records the event behind everything that is queued on the stream so far. Recording it again moves it.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: live handles.
        check(unsafe { ffi::weir_event_record(self.raw(), stream.raw()) })
    }

    /// Whether the event, as last recorded, has been reached.
    pub fn is_done(&self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_event_query(self.raw(), &raw mut done) })?;
        Ok(done != 0)
    }

    /// Waits until the event, as last recorded, has been reached, and gives the failure of its stream up to there.
    ///
    /// Blocks, and does queued work meanwhile. Refused with `FailedPrecondition` where the wait would block a worker
    /// that the work needs.
    pub fn synchronize(&self) -> Result<()> {
        self.synchronize_within(None)
    }

    /// As [`synchronize`](Self::synchronize), for at most so long; else `DeadlineExceeded`.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.synchronize_within(Some(timeout))
    }

    fn synchronize_within(&self, timeout: Option<Duration>) -> Result<()> {
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_event_synchronize(self.raw(), timeout_ns(timeout)) })
    }

    /// Calls `notice` once, when the event as last recorded has been reached: in the thread that ends the work before
    /// it, or here if it was reached before (inside of another notice: when that has returned). For work on a device
    /// that is a thread of the engine's, which weir starts for the first notice. The closure should not block, since
    /// the stream waits for it.
    pub fn on_done(&self, notice: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        notify(notice, |notice| {
            // SAFETY: a live handle, and a notice that lives during the call.
            unsafe { ffi::weir_event_notify(self.raw(), notice) }
        })
    }

    /// Nanoseconds from one [timing](Event::timing) event to another; below 0 if `end` was reached first.
    pub fn elapsed_ns(start: &Event, end: &Event) -> Result<i64> {
        let mut ns = 0;
        // SAFETY: live handles.
        check(unsafe { ffi::weir_event_elapsed_ns(start.raw(), end.raw(), &raw mut ns) })?;
        Ok(ns)
    }
}

/// Asks for one notice of an end.
pub(crate) fn notify<F: FnOnce(Result<()>) + Send + 'static>(
    closure: F,
    ask: impl FnOnce(*const weir_notice) -> weir_status,
) -> Result<()> {
    /// # Safety
    /// `ctx` is a `Box<Option<F>>` that this call alone uses.
    unsafe extern "C" fn tell<F: FnOnce(Result<()>)>(ctx: *mut c_void, status: weir_status, _: *mut weir_run) {
        let result = if status == 0 { Ok(()) } else { Err(Error::last(status)) };
        // SAFETY: as demanded of the caller.
        let closure = unsafe { &mut *ctx.cast::<Option<F>>() }.take();
        silenced(|| {
            if let Some(closure) = closure {
                closure(result);
            }
        });
    }
    let ctx = Box::into_raw(Box::new(Some(closure)));
    let notice = weir_notice {
        struct_size: size_of::<weir_notice>(),
        notify: Some(tell::<F>),
        ctx: ctx.cast(),
        release: Some(drop_box::<Option<F>>),
        event_fd: 0,
        reserved: 0,
    };
    check(ask(&raw const notice)).inspect_err(|_| {
        // SAFETY: the call was refused, so weir will use neither function.
        let closure = unsafe { Box::from_raw(ctx) };
        silenced(|| drop(closure));
    })
}
