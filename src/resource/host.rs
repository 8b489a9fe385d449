//! Host objects as resources.
#![forbid(unsafe_code)]

use crate::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::any::Any;
use std::ffi::c_void;

/// An address with the name of a type, which the library only keeps and releases.
pub struct HostObject {
    type_name: Box<str>,
    /// Atomic only so that threads may share it: it is never written again.
    object: AtomicPtr<c_void>,
    /// The owner to drop when nothing uses the object any more.
    _destroy: Box<dyn Any + Send + Sync>,
}

impl HostObject {
    pub fn new(type_name: &str, object: *mut c_void, destroy: Box<dyn Any + Send + Sync>) -> HostObject {
        HostObject { type_name: type_name.into(), object: AtomicPtr::new(object), _destroy: destroy }
    }

    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    pub fn object(&self) -> *mut c_void {
        self.object.load(Relaxed)
    }
}
