//! Devices behind a vtable of C functions, as a plug-in brings them.
//!
//! [`Plugin`] is a checked vtable with its context, and the factory of a kind. `opened` is the one place where its
//! functions are called: it holds the lock of devices that want one call at a time, turns a status into an error that
//! names the engine and the function, and remembers that a device was lost. `device` and `stream` put that behind the
//! traits of this room, `recorded`, `prepared` and `region` what is put together once, `scratch` the memory that kernels want
//! besides their tensors; `work` says in C what a stream is to do, `host` is a kernel's form for the host, and `callback`
//! the way back from the plug-in; `library` opens shared libraries.
//!
//! *What a plug-in may do wrong.* Answers are looked at, not believed: a status that is none, OK without an object, a
//! misaligned address, a number where 0 or 1 was asked for are failures (UNKNOWN) that say which function it was. A
//! callback that comes twice finds nothing. What cannot be seen from here (work done out of order, memory given twice)
//! the conformance check looks for.
//!
//! *Who lives how long.* Streams, events, kernels and memory keep the opened device; that keeps the vtable. So
//! device_close comes after the last destroy, and release after the last close. In a forked child the plug-in is left
//! alone altogether.

mod callback;
mod device;
mod host;
pub mod library;
mod memory;
mod opened;
mod owned;
mod pinning;
mod prepared;
mod recipe;
mod recorded;
mod region;
mod scratch;
mod stream;
mod table;
#[cfg(test)]
mod test_device;
#[cfg(test)]
mod tests;
mod work;

pub use callback::{any_buried, release_buried, strays as stray_callbacks};

use super::{Device, DeviceKind, DeviceSettings, Factory};
use crate::abi::{weir_device_vtable, weir_device_vtable_flags};
use crate::base::{Error, Result};
use crate::sync::Mutex;
use device::PluginDevice;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Release};
use table::Table;

const UNLISTED: u64 = weir_device_vtable_flags::WEIR_DEVICE_UNLISTED as u64;

/// A checked vtable. Dropping it releases the context.
#[derive(Clone, Debug)]
pub struct Plugin(Arc<Table>);

impl Plugin {
    /// Checks that the vtable can serve. The context is not the library's until it is registered (`adopt`).
    ///
    /// # Safety
    /// The functions follow the contract of `weir_device_vtable`.
    pub unsafe fn new(kind: DeviceKind, functions: weir_device_vtable, ctx: *mut c_void) -> Result<Plugin> {
        Plugin::check(kind.name(), &functions)?;
        let (adopted, why_none) = (AtomicBool::new(false), Mutex::new(None));
        Ok(Plugin(Arc::new(Table { kind, functions, ctx, adopted, why_none })))
    }

    /// Functions of the library's own, which need no context.
    pub(super) fn own(kind: DeviceKind, functions: weir_device_vtable) -> Plugin {
        debug_assert!(Plugin::check(kind.name(), &functions).is_ok());
        let (adopted, why_none) = (AtomicBool::new(false), Mutex::new(None));
        Plugin(Arc::new(Table { kind, functions, ctx: std::ptr::null_mut(), adopted, why_none }))
    }

    /// Refuses a vtable that lacks something that devices of the kind with this name have. What stands in the place of
    /// the host's own device has no streams.
    pub fn check(kind: &str, functions: &weir_device_vtable) -> Result<()> {
        if functions.flags & !UNLISTED != 0 {
            return Err(Error::invalid(format!("vtable->flags has unknown bits {:#x}", functions.flags & !UNLISTED)));
        }
        macro_rules! required {
            ($($name:ident),* $(,)?) => {
                $(if functions.$name.is_none() {
                    return Err(Error::null(concat!("vtable->", stringify!($name))));
                })*
            };
        }
        required!(device_count, device_open, device_close, device_info);
        if kind == DeviceKind::CPU.name() {
            return Ok(());
        }
        required!(
            allocate,
            deallocate,
            stream_create,
            stream_destroy,
            stream_clear_error,
            event_create,
            event_destroy,
            event_record,
            event_wait,
            event_query,
            kernel_create,
            kernel_destroy,
        );
        if functions.work_submit.is_none() {
            required!(copy_to_device, copy_to_host, copy_on_device, fill, launch);
        }
        if functions.batch_begin.is_some() {
            required!(batch_end);
        }
        Ok(())
    }

    /// From now on the context is the library's to release.
    pub fn adopt(&self) {
        // ORDERING: Release pairs with the Acquire in `drop`.
        self.0.adopted.store(true, Release);
    }
}

impl Factory for Plugin {
    fn count(&self) -> u32 {
        let table = &*self.0;
        let mut count = 0;
        let status = match table.functions.device_count {
            // SAFETY: the plug-in's function, with its own context and a place for the answer.
            Some(device_count) => unsafe { device_count(table.ctx, &raw mut count) },
            None => return 0,
        };
        let failure = (status != 0).then(|| table.failure(&table.place(), "device_count", status, false));
        let count = if failure.is_some() { 0 } else { count };
        *table.why_none.lock() = failure.map(|error| error.to_string());
        count
    }

    fn why_none(&self) -> Option<String> {
        self.0.why_none.lock().clone()
    }

    fn is_listed(&self) -> bool {
        self.0.functions.flags & UNLISTED == 0
    }

    fn open(&self, index: u32, settings: &DeviceSettings) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(PluginDevice::open(&self.0, index, settings)?))
    }
}
