//! A kernel's call where a device does the work.
#![forbid(unsafe_code)]

use super::call::{self, Borrowed};
use super::kernel::BoundKernel;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Code, Error, Kind, Ref, Result};
use crate::device::{DeviceKernel, DeviceStream, Launch, PreparedLaunch};
use crate::kernel::Issuer;
use crate::memory::View;
use crate::stream::MOST_WORDS;
use crate::stream::{Queue, QueueWork};
use crate::sync::OnceLock;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Poll;

/// Tensors of a call.
pub type Tensors = SmallVec<[Ref<Tensor>; 4]>;

/// What a call is: the addresses of the kernel and of the tensors. Empty where that is too much to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key {
    words: [usize; MOST_WORDS],
    len: usize,
}

impl Deref for Key {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        &self.words[..self.len]
    }
}

impl Key {
    /// Makes it the key of a call; `kernel` and the rest are addresses of objects. In place: what was written in words
    /// is not to be read at once as more than that.
    #[inline]
    pub fn set(
        &mut self,
        kernel: usize,
        inputs: impl ExactSizeIterator<Item = usize>,
        outputs: impl ExactSizeIterator<Item = usize>,
    ) {
        let len = 2 + inputs.len() + outputs.len();
        self.len = 0;
        if len <= MOST_WORDS {
            (self.words[0], self.words[1], self.len) = (kernel, inputs.len(), len);
            let (of_inputs, of_outputs) = self.words[2..].split_at_mut(inputs.len());
            of_inputs.iter_mut().zip(inputs).for_each(|(word, input)| *word = input);
            of_outputs.iter_mut().zip(outputs).for_each(|(word, output)| *word = output);
        }
    }
}

/// Where an object is.
fn address<T: Kind>(object: &Ref<T>) -> usize {
    Arc::as_ptr(object).addr()
}

/// The key of a call of objects that are there.
pub(super) fn key_of(kernel: &Ref<BoundKernel>, inputs: &[Ref<Tensor>], outputs: &[Ref<Tensor>]) -> Key {
    let mut key = Key::default();
    key.set(address(kernel), inputs.iter().map(address), outputs.iter().map(address));
    key
}

/// What a device is given when a call comes again.
enum Again {
    Prepared(Box<dyn PreparedLaunch>),
    /// By a device that prepares nothing, or not this.
    Views(Box<Views>),
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
    again: OnceLock<Again>,
}

/// A call of the kernel on this stream, whose work a device does.
pub(super) fn work(
    stream: &Stream,
    kernel: Ref<BoundKernel>,
    inputs: Tensors,
    outputs: Tensors,
) -> Result<Arc<dyn QueueWork>> {
    fn borrowed(tensors: &[Ref<Tensor>]) -> Borrowed<'_> {
        tensors.iter().map(|tensor| &***tensor).collect()
    }
    call::check_all(stream, &kernel, &borrowed(&inputs), &borrowed(&outputs))?;
    let issuer = OnceLock::new();
    Ok(Arc::new(DeviceCall { kernel, issuer, inputs, outputs, again: OnceLock::new() }))
}

impl QueueWork for DeviceCall {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn give(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        Some(self.issue(queue))
    }

    fn may_be_captured(&self) -> Result<()> {
        match self.kernel.on_device() {
            Some(_) => Ok(()),
            // A variable or a table may be elsewhere the next time.
            None => Err(Error::new(
                Code::Unimplemented,
                format!("kernel '{}' cannot be captured, as it takes the host each time", self.kernel.label()),
            )),
        }
    }

    fn capture(&self, queue: &Arc<Queue>) -> Result<()> {
        self.issue(queue)
    }

    /// Tensors, kernel and stream are those that were found right before, and none of them changes.
    fn again(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        let (Some(kernel), Some(device_queue)) = (self.kernel.on_device(), queue.device_queue()) else { return None };
        let (stream, name) = (device_queue.stream(), self.kernel.label());
        let issued = match self.again.get_or_init(|| self.prepare(stream, kernel)) {
            Again::Prepared(prepared) => stream.launch_prepared(&**prepared, name),
            Again::Views(views) => stream.launch(&views.launch(name, kernel)),
        };
        Some(issued.map_err(|error| error.within(name)))
    }
}

impl Views {
    fn launch<'a>(&'a self, name: &'a str, kernel: &'a Arc<dyn DeviceKernel>) -> Launch<'a> {
        Launch { name, kernel, inputs: &self.inputs, outputs: &self.outputs }
    }
}

impl DeviceCall {
    /// For the one stream that has the call.
    #[cold]
    fn prepare(&self, stream: &dyn DeviceStream, kernel: &Arc<dyn DeviceKernel>) -> Again {
        let views = |tensors: &Tensors| tensors.iter().map(|tensor| tensor.view().clone()).collect();
        let views = Views { inputs: views(&self.inputs), outputs: views(&self.outputs) };
        match stream.prepare(&views.launch(self.kernel.label(), kernel), None) {
            Some(prepared) => Again::Prepared(prepared),
            None => Again::Views(Box::new(views)),
        }
    }

    fn issue(&self, queue: &Queue) -> Result<()> {
        let name = self.kernel.label();
        let Some(device_queue) = queue.device_queue() else {
            return Err(Error::internal("a device's call on a stream of the host's"));
        };
        // Filled where they stand: what collects them moves them.
        let (mut inputs, mut outputs) = (SmallVec::<[View; 4]>::new(), SmallVec::<[View; 4]>::new());
        self.inputs.iter().for_each(|tensor| inputs.push(tensor.view().clone()));
        self.outputs.iter().for_each(|tensor| outputs.push(tensor.view().clone()));
        let issued = match self.kernel.on_device() {
            Some(kernel) => device_queue.stream().launch(&Launch { name, kernel, inputs: &inputs, outputs: &outputs }),
            None => match self.kernel.kernel().issuer() {
                Ok(Some(issuer)) => {
                    self.issuer.get_or_init(|| issuer).issue(device_queue.stream(), name, &inputs, &outputs)
                }
                Ok(None) => Err(Error::internal("a host's kernel on a device")),
                Err(error) => Err(error),
            },
        };
        issued.map_err(|error| error.within(name))
    }
}
