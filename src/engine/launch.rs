//! A kernel's call where a device does the work.
#![forbid(unsafe_code)]

use super::call::{self, Borrowed};
use super::kernel::BoundKernel;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Desc, Error, Kind, Ref, Result};
use crate::device::{HostFunction, Launch};
use crate::kernel::{Issuer, Kernel, KernelContext, NEVER, Scratch};
use crate::memory::{Buffer, View};
use crate::stream::{Queue, Work};
use crate::sync::{HandOff, MOST_WORDS, OnceLock};
use smallvec::SmallVec;
use std::sync::Arc;
use std::task::Poll;

/// Tensors of a call.
pub type Tensors = SmallVec<[Ref<Tensor>; 4]>;

/// What a call is: the addresses of the kernel and of the tensors. Empty where that is too much to compare.
pub type Key = SmallVec<[usize; MOST_WORDS]>;

/// The key of a call; `kernel` and the rest are addresses of objects.
#[inline]
pub fn key(
    kernel: usize,
    inputs: impl ExactSizeIterator<Item = usize>,
    outputs: impl ExactSizeIterator<Item = usize>,
) -> Key {
    let mut key = Key::new();
    if 2 + inputs.len() + outputs.len() <= MOST_WORDS {
        key.extend([kernel, inputs.len()]);
        inputs.for_each(|input| key.push(input));
        outputs.for_each(|output| key.push(output));
    }
    key
}

/// Where an object is.
fn address<T: Kind>(object: &Ref<T>) -> usize {
    Arc::as_ptr(object).addr()
}

/// The key of a call of objects that are there.
pub(super) fn key_of(kernel: &Ref<BoundKernel>, inputs: &[Ref<Tensor>], outputs: &[Ref<Tensor>]) -> Key {
    key(address(kernel), inputs.iter().map(address), outputs.iter().map(address))
}

/// The tensors of a call as a device is given them.
struct Views {
    inputs: SmallVec<[View; 4]>,
    outputs: SmallVec<[View; 4]>,
}

/// One call, with everything that must live until the device has done it.
struct DeviceCall {
    kernel: Ref<BoundKernel>,
    /// What has issued it, if not the device's form of the kernel.
    issuer: OnceLock<Arc<dyn Issuer>>,
    inputs: Tensors,
    outputs: Tensors,
    /// Of a call that was given again.
    views: OnceLock<Box<Views>>,
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
    Ok(Arc::new(DeviceCall { kernel, issuer, inputs, outputs, views: OnceLock::new() }))
}

impl Work for DeviceCall {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn give(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        Some(self.issue(queue))
    }

    /// Tensors, kernel and stream are those that were found right before, and none of them changes.
    fn again(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        let (Some(kernel), Some(line)) = (self.kernel.on_device(), queue.line()) else { return None };
        let Views { inputs, outputs } = &**self.views.get_or_init(|| Box::new(self.views()));
        let name = self.kernel.label();
        let issued = line.stream().launch(&Launch { name, kernel, inputs, outputs });
        Some(issued.map_err(|error| error.within(name)))
    }
}

impl DeviceCall {
    #[inline]
    fn views(&self) -> Views {
        // Filled where they stand: what collects them moves them.
        let mut views = Views { inputs: SmallVec::new(), outputs: SmallVec::new() };
        self.inputs.iter().for_each(|tensor| views.inputs.push(tensor.view().clone()));
        self.outputs.iter().for_each(|tensor| views.outputs.push(tensor.view().clone()));
        views
    }

    fn issue(&self, queue: &Queue) -> Result<()> {
        let name = self.kernel.label();
        let Some(line) = queue.line() else {
            return Err(Error::internal("a device's call on a stream of the host's"));
        };
        let Views { inputs, outputs } = self.views();
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
