//! A plug-in's device behind this module's traits.

use super::callback;
use super::event::{self, PluginEvent};
use super::opened::Opened;
use super::owned::{PluginKernel, c_text};
use super::recipe::Written;
use super::recorded::PluginExecutable;
use super::region;
use super::stream::PluginStream;
use super::table::PluginTable;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::{weir_device_object_value, weir_device_stream_attr, weir_event_flags};
use crate::base::{Code, Error, Result};
use crate::device::{
    Accelerator, Device, DeviceEvent, DeviceKernel, DeviceKind, DeviceRegion, DeviceSettings, DeviceStream,
    DeviceStreamAttr, DeviceWatch, Executable, Operation, Pinning, Recipe, Recording, Then, label, no_control_flow,
};
use crate::memory::ALIGNMENT;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct PluginDevice {
    kind: DeviceKind,
    index: u32,
    opened: Arc<Opened>,
    settings: Option<Arc<Vec<u8>>>,
    /// Reports reached events where the plug-in does not.
    watch: DeviceWatch,
}

impl PluginDevice {
    pub(super) fn open(table: &Arc<PluginTable>, index: u32, settings: &DeviceSettings) -> Result<PluginDevice> {
        let opened = Arc::new(Opened::new(table, index, settings)?);
        let watch = DeviceWatch::new(format!("{}:{index}", table.kind.name()));
        let settings = opened.settings().or_else(|| settings.attributes.clone());
        Ok(PluginDevice { kind: table.kind, index, opened, settings, watch })
    }

    pub(super) fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }
}

impl Device for PluginDevice {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn name(&self) -> &str {
        &self.opened.facts().name
    }

    fn alignment(&self) -> usize {
        match self.kind {
            DeviceKind::CPU => self.opened.facts().alignment.max(ALIGNMENT),
            _ => self.opened.facts().alignment,
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.opened.facts().memory_bytes
    }

    fn accelerator(&self) -> Option<&(dyn Accelerator + 'static)> {
        // A replacement of the host's own device only provides memory; the host's threads do the work.
        (self.kind != DeviceKind::CPU).then_some(self)
    }

    fn host_memory(&self) -> Option<&dyn Pinning> {
        self.opened.can(C::WEIR_DEVICE_PINNED_MEMORY).then_some(self)
    }

    fn settings(&self) -> Option<Arc<Vec<u8>>> {
        self.settings.clone()
    }

    fn fits(&self, settings: &DeviceSettings) -> Result<()> {
        let Some(asked) = &settings.attributes else { return Ok(()) };
        self.opened.fits(asked).unwrap_or_else(|| {
            let is_like = self.settings.as_ref() == Some(asked);
            is_like
                .then_some(())
                .ok_or_else(|| Error::precondition(format!("{} is in use with other settings", label(self))))
        })
    }

    fn wants_direct_memory(&self) -> bool {
        self.opened.can(C::WEIR_DEVICE_DIRECT_MEMORY)
    }

    fn is_lost(&self) -> bool {
        self.opened.is_lost()
    }
}

impl Accelerator for PluginDevice {
    fn allocate(&self, bytes: usize, what: &str) -> Result<usize> {
        self.opened.allocate(bytes, what)
    }

    fn deallocate(&self, address: usize, bytes: usize) {
        self.opened.deallocate(address, bytes);
    }

    fn stream(&self, attr: &DeviceStreamAttr<'_>) -> Result<Box<dyn DeviceStream>> {
        let device = &*self.opened;
        let name = c_text(attr.name);
        let attr = weir_device_stream_attr {
            struct_size: size_of::<weir_device_stream_attr>(),
            name: name.as_ptr(),
            priority: attr.priority,
            reserved: 0,
        };
        let mut handle = std::ptr::null_mut();
        let create = device.functions().stream_create;
        device.call("stream_create", || {
            // SAFETY: the plug-in's function and device; the attributes live during the call.
            create.map(|f| unsafe { f(device.handle(), &raw const attr, &raw mut handle) })
        })?;
        let handle = device.made("stream_create", handle)?;
        // SAFETY: just made.
        Ok(Box::new(unsafe { PluginStream::new(Arc::clone(&self.opened), handle) }))
    }

    fn event(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        event::sweep(&self.opened);
        let device = &*self.opened;
        let timing = timing && device.can(C::WEIR_DEVICE_TIMING);
        let flags = if timing { weir_event_flags::WEIR_EVENT_TIMING as u64 } else { 0 };
        let mut handle = std::ptr::null_mut();
        let create = device.functions().event_create;
        device.call("event_create", || {
            // SAFETY: the plug-in's function and device, and a place for the answer.
            create.map(|f| unsafe { f(device.handle(), flags, &raw mut handle) })
        })?;
        let handle = device.made("event_create", handle)?;
        // SAFETY: just made.
        Ok(Arc::new(unsafe { PluginEvent::new(Arc::clone(&self.opened), handle, timing) }))
    }

    fn kernel(&self, recipe: &Recipe<'_>) -> Result<Arc<dyn DeviceKernel>> {
        let device = &*self.opened;
        let written = Written::new(device, recipe);
        if matches!(recipe.operation, Operation::Host) && !written.has_host() {
            return Err(Error::new(Code::Unimplemented, "a plug-in's device runs no functions of the host's"));
        }
        let recipe = written.recipe();
        let mut handle = std::ptr::null_mut();
        let create = device.functions().kernel_create;
        device.call("kernel_create", || {
            // SAFETY: the plug-in's function and device; the recipe and what it points to live during the call.
            create.map(|f| unsafe { f(device.handle(), &raw const recipe, &raw mut handle) })
        })?;
        let handle = device.made("kernel_create", handle)?;
        // SAFETY: just made.
        Ok(Arc::new(unsafe { PluginKernel::new(Arc::clone(&self.opened), handle) }))
    }

    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        let device = &*self.opened;
        if device.is_lost() {
            return then.tell();
        }
        let calls_back = device.can(C::WEIR_DEVICE_CALLBACK) && device.may_block();
        let (Some(plugin_event), true) = (PluginEvent::of(event), calls_back) else {
            return self.watch.add(event, then);
        };
        let arg = callback::keep(event, then);
        let tell = device.functions().event_callback;
        let accepted = device.call("event_callback", || {
            // SAFETY: the plug-in's function, device and event; the callback may be called at any time, or never.
            tell.map(|f| unsafe { f(device.handle(), plugin_event.handle(), Some(callback::reached), arg) })
        });
        // A refused event is watched, unless its callback has run all the same.
        if accepted.is_err()
            && let Some((event, then)) = callback::take(arg)
        {
            self.watch.add(&event, then);
        }
    }

    fn sweep(&self) {
        event::sweep(&self.opened);
    }

    fn can_trim(&self) -> bool {
        self.opened.functions().memory_trim.is_some()
    }

    fn trim(&self, keep: usize) {
        self.opened.let_go(std::ptr::null_mut(), move |device, _| {
            if let Some(trim) = device.functions().memory_trim {
                // SAFETY: the plug-in's function and device.
                unsafe { trim(device.handle(), keep as u64) }
            }
        });
    }

    fn within(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        /// Ends the batch, also when `work` panics.
        struct OpenBatch<'a>(&'a Opened, unsafe extern "C" fn(*mut std::ffi::c_void));
        impl Drop for OpenBatch<'_> {
            fn drop(&mut self) {
                // SAFETY: the plug-in's function and device.
                self.0.untold(|| unsafe { (self.1)(self.0.handle()) });
            }
        }
        let (begin, end) = (self.opened.functions().batch_begin, self.opened.functions().batch_end);
        let (Some(begin), Some(end)) = (begin, end) else { return work() };
        // SAFETY: the plug-in's function and device.
        self.opened.untold(|| unsafe { begin(self.opened.handle()) });
        let _batch = OpenBatch(&self.opened, end);
        work()
    }

    fn max_streams(&self) -> usize {
        self.opened.facts().max_streams
    }

    fn can_record(&self) -> bool {
        self.opened.can(C::WEIR_DEVICE_RECORDINGS)
    }

    fn control_flow(&self) -> Result<()> {
        if self.opened.can(C::WEIR_DEVICE_CONTROL_FLOW) { Ok(()) } else { Err(no_control_flow()) }
    }

    fn record(&self, recording: &Recording<'_>) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(PluginExecutable::new(&self.opened, recording)?))
    }

    fn takes_regions(&self) -> bool {
        self.opened.can(C::WEIR_DEVICE_REGIONS)
    }

    fn claim(&self, region: &DeviceRegion<'_>) -> Result<Vec<u32>> {
        region::claim(&self.opened, region)
    }

    fn compile(&self, region: &DeviceRegion<'_>) -> Result<Arc<dyn DeviceKernel>> {
        Ok(Arc::new(region::compile(&self.opened, region)?))
    }

    fn pinning(&self) -> Option<&dyn Pinning> {
        self.host_memory()
    }

    fn is_peer(&self, peer: &dyn Accelerator) -> bool {
        self.opened.peer(peer).is_some()
    }

    fn intact(&self) -> Result<()> {
        self.opened.intact()
    }

    fn plugin_identity(&self) -> Option<[usize; 2]> {
        Some([Arc::as_ptr(self.opened.table()).expose_provenance(), self.opened.handle().expose_provenance()])
    }

    fn native_handle(&self) -> Result<u64> {
        // SAFETY: the device itself.
        unsafe { self.opened.native_handle(weir_device_object_value::WEIR_DEVICE_OBJECT_DEVICE, self.opened.handle()) }
    }
}
