//! A prepared call: a kernel with its tensors on a stream, checked once and enqueued as often as needed.
#![forbid(unsafe_code)]

use super::call::{self, QueuedCall};
use super::kernel::BoundKernel;
use super::launch::{self, LaunchKey, Tensors};
use super::stream::Stream;
use super::tensor::Tensor;
use crate::base::object::tag;
use crate::base::{Kind, Object, Ref, Result, live};
use crate::stream::{QueueItem, QueueWork};
use std::sync::Arc;

pub struct PreparedCall {
    stream: Ref<Stream>,
    kernel: Ref<BoundKernel>,
    form: CallForm,
}

/// The form in which the stream takes it. Kernel, tensors and settings of the stream never change.
enum CallForm {
    /// It runs in the thread that enqueues it.
    Here(QueuedCall),
    /// One item for all its turns.
    Queued(Arc<dyn QueueWork>),
    /// One item for all its turns, which the device may have under this key.
    OnDevice(Arc<dyn QueueWork>, LaunchKey),
    /// A kernel that completes later has a state for each turn.
    Later(Vec<Ref<Tensor>>, Vec<Ref<Tensor>>),
}

impl Kind for PreparedCall {
    const TAG: u32 = tag::CALL;
    const NAME: &'static str = "call";
    const COUNTER: live::Counter = live::Counter::Calls;
}

impl PreparedCall {
    pub fn create(
        stream: Ref<Stream>,
        kernel: Ref<BoundKernel>,
        inputs: Tensors,
        outputs: Tensors,
    ) -> Result<Ref<PreparedCall>> {
        let form = if stream.engine().accelerator().is_some() {
            let mut key = LaunchKey::default();
            if kernel.on_device().is_some() {
                key = launch::key_of(&kernel, &inputs, &outputs);
            }
            CallForm::OnDevice(launch::work(&stream, Ref::clone(&kernel), inputs, outputs)?, key)
        } else if kernel.kernel().is_async() {
            call::check_all(&stream, &kernel, &call::borrowed(&inputs), &call::borrowed(&outputs))?;
            CallForm::Later(inputs.into_vec(), outputs.into_vec())
        } else {
            let call = call::prepared(&stream, Ref::clone(&kernel), inputs.into_vec(), outputs.into_vec())?;
            match stream.queue().is_synchronous() {
                true => CallForm::Here(call),
                false => CallForm::Queued(Arc::new(call)),
            }
        };
        Ok(Object::shared(PreparedCall { stream, kernel, form }))
    }

    /// The next item of its stream.
    #[inline]
    pub fn enqueue(&self) -> Result<()> {
        let (stream, queue) = (&self.stream, self.stream.queue());
        if let CallForm::OnDevice(_, key) = &self.form
            && stream.again(key)
        {
            return Ok(());
        }
        queue.admit().inspect_err(|error| self.kernel.not_begun(error))?;
        match &self.form {
            CallForm::Here(call) => {
                queue.run(|| call.compute(queue))?;
                stream.intact_pool()
            }
            CallForm::Queued(work) => queue.submit(QueueItem::Work(Arc::clone(work))),
            CallForm::OnDevice(work, key) => queue.submit_as(QueueItem::Work(Arc::clone(work)), key),
            CallForm::Later(inputs, outputs) => {
                stream.enqueue_as(Ref::clone(&self.kernel), inputs.clone().into(), outputs.clone().into(), &[])
            }
        }
    }
}
