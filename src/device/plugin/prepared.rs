//! Prepared launches of a plug-in.

use super::opened::Opened;
use super::owned::{Owned, arguments, kernel_of};
use super::scratch::{ScratchBlock, StreamScratch};
use crate::base::{Error, Result};
use crate::device::{DeviceKernel, Launch, PreparedLaunch};
use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct PluginPrepared {
    /// NULL once the plug-in has reused it.
    owned: Owned,
    /// Belongs to the one stream that launches it.
    stream: Arc<StreamScratch>,
    /// Kept as long as the prepared launch.
    _kernel: Arc<dyn DeviceKernel>,
    _scratch: Option<Arc<ScratchBlock>>,
}

impl PreparedLaunch for PluginPrepared {}

impl PluginPrepared {
    /// `stream` is the scratch memory that the launches of a stream share. Allocates nothing if it can reuse `before`.
    pub(super) fn new(
        device: &Arc<Opened>,
        stream: &Arc<StreamScratch>,
        launch: &Launch<'_>,
        before: Option<Box<dyn PreparedLaunch>>,
    ) -> Result<Box<PluginPrepared>> {
        let before = before.and_then(|before| (before as Box<dyn Any>).downcast::<PluginPrepared>().ok());
        let mut before = before.filter(|before| Arc::ptr_eq(&before.owned.device, device));
        let kernel = kernel_of(launch, device)?;
        let mut call = arguments(launch, None);
        // SAFETY: a kernel of the device's, and a call of it.
        let bytes = unsafe { device.scratch_bytes(kernel, &call)? };
        let scratch = (bytes > 0).then(|| stream.take(device, bytes, launch.name)).transpose()?;
        if let Some(block) = &scratch {
            (call.scratch, call.scratch_bytes) = (block.address() as u64, bytes as u64);
        }
        let old = before.as_ref().map_or(ptr::null_mut(), |before| before.owned.handle);
        let mut handle = ptr::null_mut();
        device.call("prepare", || {
            let prepare = |f: unsafe extern "C" fn(_, _, _, _, _) -> i32| {
                // SAFETY: the plug-in's function and objects; the arguments live during the call, and there is a place
                // for the answer.
                unsafe { f(device.handle(), kernel, &raw const call, old, &raw mut handle) }
            };
            device.functions().prepare.map(prepare)
        })?;
        if let Some(before) = &mut before {
            before.owned.handle = ptr::null_mut();
        }
        let handle = device.made("prepare", handle)?;
        let made = PluginPrepared {
            owned: Owned { device: Arc::clone(device), handle },
            stream: Arc::clone(stream),
            _kernel: Arc::clone(launch.kernel),
            _scratch: scratch,
        };
        Ok(match before {
            Some(mut before) => {
                *before = made;
                before
            }
            None => Box::new(made),
        })
    }

    /// The plug-in's pointer, if the stream with this scratch memory is to launch it.
    pub(super) fn of(prepared: &dyn PreparedLaunch, stream: &Arc<StreamScratch>) -> Result<*mut c_void> {
        let prepared = (prepared as &dyn Any).downcast_ref::<PluginPrepared>();
        let prepared = prepared.filter(|prepared| Arc::ptr_eq(&prepared.stream, stream));
        prepared
            .map(|prepared| prepared.owned.handle)
            .ok_or_else(|| Error::internal("a stream was given a call that it has not prepared"))
    }
}

impl Drop for PluginPrepared {
    fn drop(&mut self) {
        let Owned { device, handle } = &self.owned;
        if handle.is_null() {
            return;
        }
        device.let_go(*handle, |device, prepared| {
            if let Some(destroy) = device.functions().prepared_destroy {
                // SAFETY: the plug-in's function and prepared call, which nobody launches any more.
                unsafe { destroy(device.handle(), prepared) }
            }
        });
    }
}
