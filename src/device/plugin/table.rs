//! A plug-in's functions with their context, and errors made from its answers.

use super::callback;
use crate::abi::weir_device_vtable;
use crate::base::{Code, Error};
use crate::device::DeviceKind;
use crate::sync::{Mutex, fork};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::*};

#[derive(Debug)]
pub(super) struct PluginTable {
    pub(super) kind: DeviceKind,
    pub(super) functions: weir_device_vtable,
    pub(super) ctx: *mut c_void,
    /// Whether the library must release the context.
    pub(super) adopted: AtomicBool,
    /// Why the devices could not be counted.
    pub(super) why_none: Mutex<Option<String>>,
}

// SAFETY: the plug-in promises that its functions may be called from any thread (docs of weir_device_vtable).
unsafe impl Send for PluginTable {}
// SAFETY: as above.
unsafe impl Sync for PluginTable {}

impl PluginTable {
    /// The plug-in's text for the failure that this thread has just been given.
    fn error_text(&self) -> Option<String> {
        const CAPACITY: usize = 2048;
        let error_text = self.functions.error_text?;
        let mut buffer = [0u8; CAPACITY + 1];
        // SAFETY: the plug-in's function, with its own context and CAPACITY writable bytes.
        unsafe { error_text(self.ctx, buffer.as_mut_ptr().cast(), CAPACITY) };
        let text = buffer.split(|&byte| byte == 0).next().unwrap_or(&[]);
        (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
    }

    /// The error for a status other than OK. `place` says where it was, unless the plug-in's text does (`is_whole`).
    pub(super) fn failure(
        &self,
        place: impl FnOnce(Error) -> Error,
        function: &str,
        status: i32,
        is_whole: bool,
    ) -> Error {
        let (Some(code), Some(text)) = (Code::from_status(status), self.error_text()) else {
            return place(Error::from_status(status, function));
        };
        let text = if is_whole { text } else { format!("{function}: {text}") };
        let error = match self.origin().filter(|_| code == Code::Aborted) {
            Some(origin) => Error::derived(&Error::new(origin, ""), text),
            None => Error::new(code, text),
        };
        if is_whole { error } else { place(error) }
    }

    /// The code of the failure from which this thread's latest failure follows.
    fn origin(&self) -> Option<Code> {
        let error_origin = self.functions.error_origin?;
        // SAFETY: the plug-in's function, with its own context.
        Code::from_status(unsafe { error_origin(self.ctx) })
    }

    pub(super) fn place(&self) -> String {
        format!("kind '{}'", self.kind.name())
    }
}

/// A pointer of the plug-in's, which may be given to its functions from any thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer(pub(super) *mut c_void);

// SAFETY: as said; it is never dereferenced here.
unsafe impl Send for Pointer {}

impl Pointer {
    pub(super) fn get(self) -> *mut c_void {
        self.0
    }
}

/// The error for an answer of a plug-in that makes no sense.
pub(super) fn nonsense(engine: &str, function: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Code::Unknown, format!("{function} {what}")).at_engine(engine)
}

impl Drop for PluginTable {
    fn drop(&mut self) {
        if let Some(release) = self.functions.release.filter(|_| self.adopted.load(Acquire) && !fork::forked()) {
            let ctx = Pointer(self.ctx);
            // SAFETY: the plug-in's function; its devices are closed, since they hold references.
            callback::outside(move || unsafe { release(ctx.get()) });
        }
    }
}
