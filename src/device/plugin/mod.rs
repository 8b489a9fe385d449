//! Devices behind a vtable of C functions, brought by plug-ins.
//!
//! [`Plugin`] is a checked vtable with its context, and the factory of a kind. Only `opened` calls its functions: it
//! holds the lock of devices that take one call at a time, turns a status into an error that names the engine and the
//! function, and remembers that a device was lost. `device`, `stream` and `event` implement the traits of the module
//! `device`; `recorded`, `prepared` and `region` handle work that is built once; `scratch` manages the kernels' scratch
//! memory. `work` translates a stream's work to C, `host` is a kernel's host function, `callback` takes calls from the
//! plug-in, and `library` opens shared libraries.
//!
//! *What a plug-in may do wrong.* Answers are checked, not believed. An invalid status, OK without an object, a
//! misaligned address, or a number where 0 or 1 was asked for are failures (UNKNOWN) that name the function. A callback
//! that comes twice finds nothing. The conformance check looks for faults that cannot be seen from here (work done out
//! of order, memory given out twice).
//!
//! *Lifetimes.* Streams, events, kernels and memory keep the opened device alive, and that keeps the vtable. So
//! device_close comes after the last destroy, and release after the last close. In a forked child the plug-in is never
//! called.

mod callback;
mod device;
mod event;
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
#[cfg(all(test, not(loom)))]
mod test_device;
#[cfg(all(test, not(loom)))]
mod tests;
mod unreached;
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
use table::PluginTable;

const UNLISTED: u64 = weir_device_vtable_flags::WEIR_DEVICE_UNLISTED as u64;

/// A checked vtable. Dropping it releases the context.
#[derive(Clone, Debug)]
pub struct Plugin(Arc<PluginTable>);

impl Plugin {
    /// Checks that the vtable is complete. The library owns the context only once it is registered (`adopt`).
    ///
    /// # Safety
    /// The functions follow the contract of `weir_device_vtable`.
    pub unsafe fn new(kind: DeviceKind, functions: weir_device_vtable, ctx: *mut c_void) -> Result<Plugin> {
        Plugin::check(kind.name(), &functions)?;
        let (adopted, why_none) = (AtomicBool::new(false), Mutex::new(None));
        Ok(Plugin(Arc::new(PluginTable { kind, functions, ctx, adopted, why_none })))
    }

    /// The emulated devices of libweir_testing.
    #[cfg(all(test, not(loom)))]
    pub fn emulated() -> Plugin {
        // SAFETY: the two types are one source, compiled twice.
        let functions = unsafe { std::mem::transmute_copy(&weir_testing::VTABLE) };
        // SAFETY: they keep the contract, and need no context.
        unsafe { Plugin::new(DeviceKind::EMULATED, functions, std::ptr::null_mut()) }.unwrap()
    }

    /// Refuses a vtable that lacks a function required for devices of the kind with this name. A replacement of the
    /// host's own device has no streams.
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

    /// Makes the library responsible for releasing the context.
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
        let place = |error: Error| error.within(table.place());
        let failure = (status != 0).then(|| table.failure(place, "device_count", status, false));
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
