//! A kernel call on an accelerator.
#![forbid(unsafe_code)]

use super::call;
use super::kernel::BoundKernel;
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::{Code, Error, Kind, Ref, Result};
use crate::device::{DeviceKernel, DeviceStream, Launch, PreparedLaunch};
use crate::kernel::{IssuedCall, IssuedFor, Issuer, LateFailure};
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

/// The identity of a call: the addresses of the kernel and of the tensors. Empty if there are too many to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchKey {
    words: [usize; MOST_WORDS],
    len: usize,
}

impl Deref for LaunchKey {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        &self.words[..self.len]
    }
}

impl LaunchKey {
    /// Makes it the key of a call; `kernel` and the rest are addresses of objects. Filled in place: copying the key
    /// right after word-sized stores would defeat store forwarding.
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

/// An object's address.
fn address<T: Kind>(object: &Ref<T>) -> usize {
    Arc::as_ptr(object).addr()
}

/// The key of a call of these objects.
pub(super) fn key_of(kernel: &Ref<BoundKernel>, inputs: &[Ref<Tensor>], outputs: &[Ref<Tensor>]) -> LaunchKey {
    let mut key = LaunchKey::default();
    key.set(address(kernel), inputs.iter().map(address), outputs.iter().map(address));
    key
}

/// The form in which a call is resubmitted to the device.
enum RepeatedForm {
    Prepared(Box<dyn PreparedLaunch>),
    /// For a device that cannot prepare this launch.
    Views(Box<DeviceViews>),
}

/// The tensors of a call as device views.
struct DeviceViews {
    inputs: SmallVec<[View; 4]>,
    outputs: SmallVec<[View; 4]>,
}

/// One call, with all resources that must live until the device has completed it.
struct QueuedLaunch {
    kernel: Ref<BoundKernel>,
    /// The issuer, if not the device's form of the kernel.
    issuer: OnceLock<Arc<dyn Issuer>>,
    inputs: Tensors,
    outputs: Tensors,
    /// Set once the call was resubmitted.
    again: OnceLock<RepeatedForm>,
}

/// A call of the kernel on this device stream.
pub(super) fn work(
    stream: &Stream,
    kernel: Ref<BoundKernel>,
    inputs: Tensors,
    outputs: Tensors,
) -> Result<Arc<dyn QueueWork>> {
    call::check_all(stream, &kernel, &call::borrowed(&inputs), &call::borrowed(&outputs))?;
    let issuer = OnceLock::new();
    Ok(Arc::new(QueuedLaunch { kernel, issuer, inputs, outputs, again: OnceLock::new() }))
}

impl QueueWork for QueuedLaunch {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn give(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        Some(self.issue(queue))
    }

    fn may_be_captured(&self) -> Result<()> {
        match self.kernel.on_device() {
            Some(_) => Ok(()),
            // A variable or a table may be at another address the next time.
            None => Err(Error::new(
                Code::Unimplemented,
                format!("kernel '{}' cannot be captured, as it takes the host each time", self.kernel.label()),
            )),
        }
    }

    fn capture(&self, queue: &Arc<Queue>) -> Result<()> {
        self.issue(queue)
    }

    fn skip(self: Arc<Self>, cause: &Error) {
        self.kernel.not_begun(cause);
    }

    /// Tensors, kernel and stream were checked before, and none of them changes.
    fn again(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        let (Some(kernel), Some(device_queue)) = (self.kernel.on_device(), queue.device_queue()) else { return None };
        let (stream, name) = (device_queue.stream(), self.kernel.label());
        let issued = match self.again.get_or_init(|| self.prepare(stream, kernel)) {
            RepeatedForm::Prepared(prepared) => stream.launch_prepared(&**prepared, name),
            RepeatedForm::Views(views) => stream.launch(&views.launch(name, kernel)),
        };
        Some(issued.map_err(|error| error.within(name)))
    }
}

impl DeviceViews {
    fn launch<'a>(&'a self, name: &'a str, kernel: &'a Arc<dyn DeviceKernel>) -> Launch<'a> {
        Launch { name, kernel, inputs: &self.inputs, outputs: &self.outputs }
    }
}

impl QueuedLaunch {
    /// For the one stream that submits the call.
    #[cold]
    fn prepare(&self, stream: &dyn DeviceStream, kernel: &Arc<dyn DeviceKernel>) -> RepeatedForm {
        let views = |tensors: &Tensors| tensors.iter().map(|tensor| tensor.view().clone()).collect();
        let views = DeviceViews { inputs: views(&self.inputs), outputs: views(&self.outputs) };
        match stream.prepare(&views.launch(self.kernel.label(), kernel), None) {
            Some(prepared) => RepeatedForm::Prepared(prepared),
            None => RepeatedForm::Views(Box::new(views)),
        }
    }

    fn issue(&self, queue: &Arc<Queue>) -> Result<()> {
        let name = self.kernel.label();
        let Some(device_queue) = queue.device_queue() else {
            return Err(Error::internal("a device's call on a stream of the host's"));
        };
        // Filled in place: collecting would move them.
        let (mut inputs, mut outputs) = (SmallVec::<[View; 4]>::new(), SmallVec::<[View; 4]>::new());
        self.inputs.iter().for_each(|tensor| inputs.push(tensor.view().clone()));
        self.outputs.iter().for_each(|tensor| outputs.push(tensor.view().clone()));
        let issued = match self.kernel.on_device() {
            Some(kernel) => device_queue.stream().launch(&Launch { name, kernel, inputs: &inputs, outputs: &outputs }),
            None => match self.kernel.kernel().issuer() {
                Ok(Some(issuer)) => {
                    let queue: Arc<dyn LateFailure> = Arc::clone(queue) as _;
                    let (stream, issued_for) = (device_queue.stream(), IssuedFor::Stream(&queue));
                    let call = IssuedCall { stream, name, inputs: &inputs, outputs: &outputs, issued_for };
                    self.issuer.get_or_init(|| issuer).issue(&call)
                }
                Ok(None) => Err(Error::internal("a host's kernel on a device")),
                Err(error) => Err(error),
            },
        };
        issued.map_err(|error| error.within(name))
    }
}
