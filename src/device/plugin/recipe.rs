//! A kernel's recipe as a C struct.
#![forbid(unsafe_code)]

use super::host::{HOST, Host};
use super::opened::Opened;
use super::owned::{Text, c_text};
use crate::abi::weir_device_capability_flags as C;
use crate::abi::weir_device_recipe;
use crate::device::Recipe;
use std::sync::Arc;

/// The memory that a recipe in C points to.
pub(super) struct Written {
    operation: Text,
    /// Aligned like any C struct.
    attributes: Vec<u64>,
    attributes_bytes: usize,
    num_inputs: usize,
    num_outputs: usize,
    host: Option<Arc<Host>>,
}

impl Written {
    pub(super) fn new(device: &Opened, recipe: &Recipe<'_>) -> Written {
        let given = recipe.operation.attributes();
        let mut attributes = vec![0u64; given.len().div_ceil(8)];
        for (word, bytes) in attributes.iter_mut().zip(given.chunks(8)) {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(all);
        }
        Written {
            operation: c_text(recipe.operation.name()),
            attributes,
            attributes_bytes: given.len(),
            num_inputs: recipe.num_inputs,
            num_outputs: recipe.num_outputs,
            host: recipe.host.as_ref().filter(|_| device.can(C::WEIR_DEVICE_HOST_KERNELS)).map(Host::new),
        }
    }

    /// Whether the device may call a host function instead.
    pub(super) fn has_host(&self) -> bool {
        self.host.is_some()
    }

    /// Valid as long as this is not moved.
    pub(super) fn recipe(&self) -> weir_device_recipe {
        let (attributes, host) = (&self.attributes, self.host.as_ref());
        weir_device_recipe {
            struct_size: size_of::<weir_device_recipe>(),
            operation: self.operation.as_ptr(),
            attributes: if attributes.is_empty() { std::ptr::null() } else { attributes.as_ptr().cast() },
            attributes_bytes: self.attributes_bytes,
            num_inputs: self.num_inputs,
            num_outputs: self.num_outputs,
            host_call: host.and(HOST.call),
            host_user: host.map_or(std::ptr::null_mut(), |host| Arc::as_ptr(host).cast_mut().cast()),
            host_retain: host.and(HOST.retain),
            host_release: host.and(HOST.release),
        }
    }
}
