//! Host kernels for devices that run host functions.

use crate::base::{Desc, Result};
use crate::device::HostFunction;
use crate::kernel::{Kernel, KernelContext, NEVER, Scratch};
use crate::memory::{AlignedBuffer, View};
use crate::sync::Mailbox;
use smallvec::SmallVec;
use std::sync::Arc;

/// A kernel as a host function, for devices that run such.
pub(super) struct KernelOnHost {
    kernel: Arc<dyn Kernel>,
    /// Scratch memory of the last call.
    scratch: Mailbox<AlignedBuffer>,
}

impl KernelOnHost {
    pub fn new(kernel: Arc<dyn Kernel>) -> KernelOnHost {
        KernelOnHost { kernel, scratch: Mailbox::default() }
    }
}

impl HostFunction for KernelOnHost {
    unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        let descs = |views: &[View]| views.iter().map(|view| *view.desc()).collect::<SmallVec<[Desc; 4]>>();
        let bytes = self.kernel.scratch_bytes(&descs(inputs), &descs(outputs));
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
