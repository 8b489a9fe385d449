//! A kernel's call where a device does the work.
#![forbid(unsafe_code)]

use super::call::{self, Borrowed};
use super::kernel::BoundKernel;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Desc, Error, Ref, Result};
use crate::device::{HostFunction, Launch};
use crate::kernel::{Issuer, Kernel, KernelContext, NEVER, Scratch};
use crate::memory::{Buffer, View};
use crate::stream::{Queue, Work};
use crate::sync::{HandOff, OnceLock};
use smallvec::SmallVec;
use std::sync::Arc;
use std::task::Poll;

/// Tensors of a call.
pub type Tensors = SmallVec<[Ref<Tensor>; 4]>;

/// One call, with everything that must live until the device has done it.
struct DeviceCall {
    kernel: Ref<BoundKernel>,
    /// What has issued it, if not the device's form of the kernel.
    issuer: OnceLock<Arc<dyn Issuer>>,
    inputs: Tensors,
    outputs: Tensors,
}

/// A call of the kernel on this stream, whose work a device does.
pub(super) fn work(
    stream: &Stream,
    kernel: Ref<BoundKernel>,
    inputs: Tensors,
    outputs: Tensors,
) -> Result<Arc<dyn Work>> {
    fn borrowed(tensors: &[Ref<Tensor>]) -> Borrowed<'_> {
        tensors.iter().map(|tensor| &***tensor).collect()
    }
    call::check_all(stream, &kernel, &borrowed(&inputs), &borrowed(&outputs))?;
    let issuer = OnceLock::new();
    Ok(Arc::new(DeviceCall { kernel, issuer, inputs, outputs }))
}

impl Work for DeviceCall {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn give(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        Some(self.issue(queue))
    }
}

impl DeviceCall {
    fn issue(&self, queue: &Queue) -> Result<()> {
        let name = self.kernel.label();
        let Some(line) = queue.line() else {
            return Err(Error::internal("a device's call on a stream of the host's"));
        };
        // Filled where they stand: what collects them moves them.
        let (mut inputs, mut outputs) = (SmallVec::<[View; 4]>::new(), SmallVec::<[View; 4]>::new());
        self.inputs.iter().for_each(|tensor| inputs.push(tensor.view().clone()));
        self.outputs.iter().for_each(|tensor| outputs.push(tensor.view().clone()));
        let issued = match self.kernel.on_device() {
            Some(kernel) => line.stream().launch(&Launch { name, kernel, inputs: &inputs, outputs: &outputs }),
            None => match self.kernel.kernel().issuer() {
                Ok(Some(issuer)) => self.issuer.get_or_init(|| issuer).issue(line.stream(), name, &inputs, &outputs),
                Ok(None) => Err(Error::internal("a host's kernel on a device")),
                Err(error) => Err(error),
            },
        };
        issued.map_err(|error| error.within(name))
    }
}

/// A kernel as a function in the host's memory, for devices that run such.
pub(super) struct OnHost {
    kernel: Arc<dyn Kernel>,
    /// Scratch memory of the last call.
    scratch: HandOff<Buffer>,
}

impl OnHost {
    pub fn new(kernel: Arc<dyn Kernel>) -> OnHost {
        OnHost { kernel, scratch: HandOff::default() }
    }
}

impl HostFunction for OnHost {
    fn call(&self, inputs: &[View], outputs: &[View]) -> Result<()> {
        let descs = |views: &[View]| views.iter().map(|view| *view.desc()).collect::<SmallVec<[Desc; 4]>>();
        let bytes = self.kernel.scratch_bytes(&descs(inputs), &descs(outputs));
        let needed = Scratch::stride(bytes);
        let memory = match self.scratch.take().filter(|memory| memory.bytes() >= needed) {
            Some(memory) => Some(memory),
            None if bytes == 0 => None,
            None => Some(Buffer::zeroed(needed, "scratch")?),
        };
        let scratch = Scratch::new(memory.as_ref().map_or(std::ptr::null_mut(), Buffer::data), bytes, 1);
        let result = self.kernel.compute(&KernelContext::new(inputs, outputs, None, scratch, &NEVER));
        if let Some(memory) = memory {
            // Full already: then this one is let go.
            let _ = self.scratch.put(memory);
        }
        result
    }
}
