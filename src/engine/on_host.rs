//! Kernels of the host's for devices that run functions in its memory.

use crate::base::{Desc, Result};
use crate::device::HostFunction;
use crate::kernel::{Kernel, KernelContext, NEVER, Scratch};
use crate::memory::{AlignedBuffer, View};
use crate::sync::Mailbox;
use smallvec::SmallVec;
use std::sync::Arc;

/// A kernel as a function in the host's memory, for devices that run such.
pub(super) struct OnHost {
    kernel: Arc<dyn Kernel>,
    /// Scratch memory of the last call.
    scratch: Mailbox<AlignedBuffer>,
}

impl OnHost {
    pub fn new(kernel: Arc<dyn Kernel>) -> OnHost {
        OnHost { kernel, scratch: Mailbox::default() }
    }
}

impl HostFunction for OnHost {
    unsafe fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        let descs = |views: &[View]| views.iter().map(|view| *view.desc()).collect::<SmallVec<[Desc; 4]>>();
        let bytes = self.kernel.scratch_bytes(&descs(inputs), &descs(outputs));
        let needed = Scratch::stride(bytes);
        let memory = match self.scratch.take().filter(|memory| memory.bytes() >= needed) {
            Some(memory) => Some(memory),
            None if bytes == 0 => None,
            None => Some(AlignedBuffer::zeroed(needed, "scratch")?),
        };
        // SAFETY: as demanded of the caller, who has the outputs; the scratch memory was taken by this call.
        let result = unsafe {
            let scratch = Scratch::new(memory.as_ref().map_or(std::ptr::null_mut(), AlignedBuffer::data), bytes, 1);
            let context = KernelContext::new(inputs, outputs, None, scratch, &NEVER);
            self.kernel.compute(&context, context.outputs())
        };
        if let Some(memory) = memory {
            // Full already: then this one is let go.
            let _ = self.scratch.put(memory);
        }
        result
    }
}
