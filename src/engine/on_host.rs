//! Host kernels for devices that run host functions.

use crate::base::{Desc, Result};
use crate::device::HostFunction;
use crate::kernel::{Kernel, KernelContext, NEVER, Scratch};
use crate::memory::{AlignedBuffer, View};
use crate::sync::Mailbox;
use std::sync::Arc;

/// A kernel as a host function, for devices that run such.
pub(super) struct KernelOnHost {
    kernel: Arc<dyn Kernel>,
    /// Scratch memory of the last call, and memory for descriptors.
    scratch: Mailbox<AlignedBuffer>,
    descs: Mailbox<Vec<Desc>>,
}

impl KernelOnHost {
    pub fn new(kernel: Arc<dyn Kernel>) -> KernelOnHost {
        KernelOnHost { kernel, scratch: Mailbox::default(), descs: Mailbox::default() }
    }
}

impl HostFunction for KernelOnHost {
    unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        let mut descs = self.descs.take().unwrap_or_default();
        descs.clear();
        descs.extend(inputs.iter().chain(outputs).map(|view| *view.desc()));
        let (of_inputs, of_outputs) = descs.split_at(inputs.len());
        let bytes = self.kernel.scratch_bytes(of_inputs, of_outputs);
        // Full already: then these are dropped.
        let _ = self.descs.put(descs);
        let needed = Scratch::stride(bytes);
        let memory = match self.scratch.take().filter(|memory| memory.bytes() >= needed) {
            Some(memory) => Some(memory),
            None if bytes == 0 => None,
            None => Some(AlignedBuffer::zeroed(needed, "scratch")?),
        };
        // SAFETY: as demanded of the caller, which owns the outputs; this call has taken the scratch memory.
        let result = unsafe {
            let scratch = Scratch::new(memory.as_ref().map_or(std::ptr::null_mut(), AlignedBuffer::data), bytes, 1);
            let context = KernelContext::new(inputs, outputs, None, scratch, &NEVER);
            self.kernel.compute(&context, context.outputs())
        };
        if let Some(memory) = memory {
            // Full already: then this one is dropped.
            let _ = self.scratch.put(memory);
        }
        result
    }
}
