//! An open device of a plug-in, and the calls of its functions.

use super::callback;
use super::table::{PluginTable, Pointer, nonsense};
use super::unreached::UnreachedEvents;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::{weir_device_info, weir_device_vtable};
use crate::base::{Code, Error, Result};
use crate::device::{DeviceSettings, Presence};
use crate::sync::{Mutex, MutexGuard, OnceLock, ambient, fork};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// The capabilities that weir understands.
const KNOWN: u64 = C::WEIR_DEVICE_OWN_MEMORY as u64
    | C::WEIR_DEVICE_CONCURRENT as u64
    | C::WEIR_DEVICE_TIMING as u64
    | C::WEIR_DEVICE_PEER_COPY as u64
    | C::WEIR_DEVICE_CALLBACK as u64
    | C::WEIR_DEVICE_NATIVE_HANDLE as u64
    | C::WEIR_DEVICE_PINNED_MEMORY as u64
    | C::WEIR_DEVICE_REGISTER_MEMORY as u64
    | C::WEIR_DEVICE_IDLE_QUERY as u64
    | C::WEIR_DEVICE_RECORDINGS as u64
    | C::WEIR_DEVICE_CONTROL_FLOW as u64
    | C::WEIR_DEVICE_PREPARED_LAUNCHES as u64
    | C::WEIR_DEVICE_SCRATCH as u64
    | C::WEIR_DEVICE_HOST_KERNELS as u64
    | C::WEIR_DEVICE_IN_PLACE as u64
    | C::WEIR_DEVICE_WHOLE_TEXTS as u64
    | C::WEIR_DEVICE_ENDS_IN_CALLBACKS as u64
    | C::WEIR_DEVICE_DIRECT_MEMORY as u64
    | C::WEIR_DEVICE_REGIONS as u64;

const LEAST_ALIGNMENT: u64 = 16;
const MOST_ALIGNMENT: u64 = 1 << 20;

/// The device's facts, checked.
#[derive(Debug)]
pub(super) struct Facts {
    capabilities: u64,
    pub(super) memory_bytes: u64,
    pub(super) alignment: usize,
    pub(super) name: String,
    pub(super) max_streams: usize,
}

#[derive(Debug)]
pub(super) struct Opened {
    table: Arc<PluginTable>,
    handle: *mut c_void,
    /// "remote:0"
    label: String,
    facts: Facts,
    /// Held during each call, if the device takes one at a time.
    serial: Option<Mutex<()>>,
    lost: OnceLock<Error>,
    unreached: UnreachedEvents,
    presence: Presence,
}

// SAFETY: the handle is given to the plug-in's functions alone, which may be called from any thread, and from several
// at a time if `serial` is None.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl Opened {
    pub(super) fn new(table: &Arc<PluginTable>, index: u32, settings: &DeviceSettings) -> Result<Opened> {
        let label = format!("{}:{index}", table.kind.name());
        let mut handle = std::ptr::null_mut();
        let given = settings.attributes.as_deref().map_or(&[][..], Vec::as_slice);
        let open = table.functions.device_open.ok_or_else(|| Error::null("vtable->device_open"))?;
        let (function, status) = match table.functions.device_open_with {
            // SAFETY: the plug-in's function, with its own context, bytes that live during the call, and a place for
            // the answer.
            Some(open_with) => ("device_open_with", unsafe {
                open_with(table.ctx, index, given.as_ptr().cast(), given.len(), &raw mut handle)
            }),
            None if !given.is_empty() => {
                return Err(Error::new(Code::Unimplemented, format!("engine {label} takes no settings")));
            }
            // SAFETY: as above.
            None => ("device_open", unsafe { open(table.ctx, index, &raw mut handle) }),
        };
        if status != 0 {
            return Err(table.failure(|error| error.at_engine(&label), function, status, false));
        }
        if handle.is_null() {
            return Err(nonsense(&label, function, "returned OK and no device"));
        }
        let facts = Facts { capabilities: 0, memory_bytes: 0, alignment: 1, name: String::new(), max_streams: 0 };
        // From here on, dropping it closes the device.
        let mut opened = Opened {
            table: Arc::clone(table),
            handle,
            label,
            facts,
            serial: None,
            lost: OnceLock::new(),
            unreached: UnreachedEvents::default(),
            presence: Presence::default(),
        };
        opened.facts = opened.ask()?;
        opened.serial = (!opened.can(C::WEIR_DEVICE_CONCURRENT)).then(Mutex::default);
        Ok(opened)
    }

    fn ask(&self) -> Result<Facts> {
        let mut info = weir_device_info {
            struct_size: size_of::<weir_device_info>(),
            capabilities: 0,
            memory_bytes: 0,
            alignment: 0,
            name: [0; 64],
            max_streams: 0,
            reserved: 0,
        };
        let ask = self.functions().device_info.ok_or_else(|| Error::null("vtable->device_info"))?;
        // SAFETY: the plug-in's function, with its own context and device, and a struct of the size that it says.
        let status = unsafe { ask(self.table.ctx, self.handle, &raw mut info) };
        if status != 0 {
            let at = |error: Error| error.at_engine(&self.label);
            return Err(self.table.failure(at, "device_info", status, false));
        }
        let wrong = |what: String| Err(nonsense(&self.label, "device_info", what));
        if info.capabilities & !KNOWN != 0 {
            return wrong(format!("says unknown capabilities {:#x} (known: {KNOWN:#x})", info.capabilities & !KNOWN));
        }
        if !info.alignment.is_power_of_two() || !(LEAST_ALIGNMENT..=MOST_ALIGNMENT).contains(&info.alignment) {
            let (least, most) = (LEAST_ALIGNMENT, MOST_ALIGNMENT);
            return wrong(format!("says alignment {}, expected a power of two from {least} to {most}", info.alignment));
        }
        let functions = self.functions();
        macro_rules! needed {
            ($($capability:ident: $($function:ident),+;)*) => {
                [$($((
                    C::$capability,
                    stringify!($capability),
                    stringify!($function),
                    functions.$function.is_some(),
                ),)+)*]
            };
        }
        for (capability, name, function, has) in needed!(
            WEIR_DEVICE_TIMING: event_elapsed;
            WEIR_DEVICE_CALLBACK: event_callback;
            WEIR_DEVICE_NATIVE_HANDLE: native_handle;
            WEIR_DEVICE_PINNED_MEMORY: host_allocate, host_deallocate;
            WEIR_DEVICE_REGISTER_MEMORY: host_register, host_unregister;
            WEIR_DEVICE_IDLE_QUERY: stream_query;
            WEIR_DEVICE_RECORDINGS: record, executable_update, executable_destroy, replay;
            WEIR_DEVICE_PREPARED_LAUNCHES: prepare, launch_prepared, prepared_destroy;
            WEIR_DEVICE_SCRATCH: kernel_scratch;
            WEIR_DEVICE_REGIONS: region_compile;
        ) {
            if info.capabilities & capability as u64 != 0 && !has {
                return wrong(format!("says {name}, and vtable->{function} is NULL"));
            }
        }
        let says = |capability: C| info.capabilities & capability as u64 != 0;
        if says(C::WEIR_DEVICE_PEER_COPY) && functions.copy_peer.is_none() && functions.work_submit.is_none() {
            return wrong("says WEIR_DEVICE_PEER_COPY, and vtable->copy_peer is NULL".to_owned());
        }
        if says(C::WEIR_DEVICE_CONTROL_FLOW) && !says(C::WEIR_DEVICE_RECORDINGS) {
            return wrong("says WEIR_DEVICE_CONTROL_FLOW, and not WEIR_DEVICE_RECORDINGS".to_owned());
        }
        if info.reserved != 0 {
            return wrong(format!("says reserved {}, expected 0", info.reserved));
        }
        Ok(Facts {
            capabilities: info.capabilities,
            memory_bytes: info.memory_bytes,
            alignment: info.alignment as usize,
            name: text(&info.name),
            max_streams: info.max_streams as usize,
        })
    }

    pub(super) fn functions(&self) -> &weir_device_vtable {
        &self.table.functions
    }

    /// The first argument of most functions.
    pub(super) fn handle(&self) -> *mut c_void {
        self.handle
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn table(&self) -> &Arc<PluginTable> {
        &self.table
    }

    /// "remote:0"
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn can(&self, capability: C) -> bool {
        self.facts.capabilities & capability as u64 != 0
    }

    /// Whether functions that block may be called.
    pub(super) fn may_block(&self) -> bool {
        self.serial.is_none()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Events of it that nobody holds any more.
    pub(super) fn unreached(&self) -> &UnreachedEvents {
        &self.unreached
    }

    /// # Safety
    /// An event of the plug-in's, of this device, which nobody uses any more.
    pub(super) unsafe fn destroy_event(&self, event: *mut c_void) {
        if let Some(destroy) = self.functions().event_destroy {
            // SAFETY: the plug-in's function, and as demanded of the caller.
            unsafe { destroy(self.handle, event) }
        }
    }

    /// Fails if the device is lost.
    pub(super) fn intact(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.serial.as_ref().map(Mutex::lock)
    }

    /// Calls a function that can fail: `call` gives its status, or `None` if the plug-in lacks it.
    pub(super) fn call(&self, function: &'static str, call: impl FnOnce() -> Option<i32>) -> Result<()> {
        self.intact()?;
        let _turn = self.turn();
        match ambient::call(call) {
            Some(0) => Ok(()),
            Some(status) => Err(self.failed(function, status)),
            None => {
                let text = format!("the plug-in has no {function}");
                Err(Error::new(Code::Unimplemented, text).at_engine(&self.label))
            }
        }
    }

    /// Calls a function that cannot fail, when its turn comes.
    pub(super) fn untold(&self, call: impl FnOnce()) {
        let turn = self.turn();
        ambient::call(call);
        drop(turn);
    }

    #[cold]
    fn failed(&self, function: &'static str, status: i32) -> Error {
        let (at, is_whole) = (|error: Error| error.at_engine(&self.label), self.can(C::WEIR_DEVICE_WHOLE_TEXTS));
        let error = self.table.failure(at, function, status, is_whole);
        if error.code() == Code::DeviceLost {
            // The first error stays.
            let _ = self.lost.set(error.clone());
        }
        error
    }

    /// Calls a function that releases something, but not inside a callback, and not in a forked child, where the device
    /// is the parent's.
    pub(super) fn let_go(
        self: &Arc<Self>,
        object: *mut c_void,
        call: impl FnOnce(&Opened, *mut c_void) + Send + 'static,
    ) {
        if !fork::forked() {
            let (device, object) = (Arc::clone(self), Pointer(object));
            self.outside(move || {
                let turn = device.turn();
                ambient::call(|| call(&device, object.get()));
                drop(turn);
            });
        }
    }

    /// Runs the job now, or after the callback that this thread is in, if the plug-in wants that.
    fn outside(&self, job: impl FnOnce() + Send + 'static) {
        match self.can(C::WEIR_DEVICE_ENDS_IN_CALLBACKS) {
            true => job(),
            false => callback::outside(job),
        }
    }

    /// The settings as the plug-in has completed them.
    pub(super) fn settings(&self) -> Option<Arc<Vec<u8>>> {
        let ask = self.functions().device_settings?;
        let (mut settings, mut bytes) = (Vec::new(), 0);
        // First the size, then the bytes.
        for _ in 0..2 {
            settings.resize(bytes, 0u8);
            let asked = self.call("device_settings", || {
                // SAFETY: the plug-in's function and device, so many bytes and a place for the answer.
                Some(unsafe { ask(self.handle, settings.as_mut_ptr().cast(), settings.len(), &raw mut bytes) })
            });
            asked.ok()?;
        }
        (bytes == settings.len()).then(|| settings.into())
    }

    /// Whether the plug-in lets engines with these settings share the device; `None` if it does not say.
    pub(super) fn fits(&self, settings: &[u8]) -> Option<Result<()>> {
        let fits = self.functions().device_fits?;
        Some(self.call("device_fits", || {
            // SAFETY: the plug-in's function and device, with bytes that live during the call.
            Some(unsafe { fits(self.handle, settings.as_ptr().cast(), settings.len()) })
        }))
    }

    /// Checks the object that a create function has made.
    pub(super) fn made(&self, function: &'static str, object: *mut c_void) -> Result<*mut c_void> {
        if object.is_null() {
            return Err(self.nonsense(function, "returned OK and no object"));
        }
        Ok(object)
    }

    pub(super) fn nonsense(&self, function: &str, what: impl std::fmt::Display) -> Error {
        nonsense(&self.label, function, what)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(close) = self.functions().device_close.filter(|_| !fork::forked()) {
            let (table, handle) = (Arc::clone(&self.table), Pointer(self.handle));
            let (presence, unreached) = (std::mem::take(&mut self.presence), self.unreached.take());
            self.outside(move || {
                if let Some(destroy) = table.functions.event_destroy {
                    // SAFETY: the plug-in's function and its own objects; no stream is left that could use them.
                    unreached.into_iter().for_each(|event| unsafe { destroy(handle.get(), event.get()) });
                }
                // SAFETY: the plug-in's function and its own device; what was made of it held references, and is gone.
                unsafe { close(table.ctx, handle.get()) };
                drop(presence);
            });
        }
    }
}

/// The text in an array that may lack its NUL.
fn text(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
