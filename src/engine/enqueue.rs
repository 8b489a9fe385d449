//! Submission to a stream: kernels, copies, fills, host functions, and waits for events.
#![forbid(unsafe_code)]

use super::call;
use super::event::Event;
use super::kernel::BoundKernel;
use super::launch::{self, Tensors};
use super::stream::Stream;
use super::tensor::Tensor;
use super::transfer;
use crate::base::{Ref, Result};
use crate::device::in_a_capture;
use crate::kernel::Task;
use crate::stream::{Mark, QueueItem};
use std::sync::Arc;

impl Stream {
    /// On a synchronous stream the work is done when this returns.
    fn submit(&self, op: QueueItem) -> Result<()> {
        self.queue.submit(op)?;
        if self.queue.is_synchronous() { self.intact_pool() } else { Ok(()) }
    }

    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.queue.admit()?;
        match event.last_mark() {
            Some(mark) if mark.is_captured() && !self.is_of_device_of(&mark) => Err(in_a_capture()),
            Some(mark) => self.queue.submit(QueueItem::Wait(mark)),
            None => Ok(()),
        }
    }

    /// Whether the mark was recorded on this stream's device.
    fn is_of_device_of(&self, mark: &Mark) -> bool {
        self.queue.device_queue().is_some_and(|device_queue| mark.event_on(device_queue.device()).is_some())
    }

    pub fn enqueue_task(&self, task: Arc<dyn Task>) -> Result<()> {
        self.queue.admit()?;
        self.submit(QueueItem::Task(task))
    }

    /// Runs a kernel that completes when it returns, on a synchronous stream. The caller holds the references.
    pub fn call(&self, kernel: &BoundKernel, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<()> {
        self.queue.admit()?;
        call::now(self, kernel, inputs, outputs, &self.scratch)?;
        self.intact_pool()
    }

    pub fn enqueue(
        &self,
        kernel: Ref<BoundKernel>,
        inputs: impl Into<Tensors>,
        outputs: impl Into<Tensors>,
    ) -> Result<()> {
        let (inputs, outputs) = (inputs.into(), outputs.into());
        let key = launch::key_of(&kernel, &inputs, &outputs);
        if self.again(&key) { Ok(()) } else { self.enqueue_as(kernel, inputs, outputs, &key) }
    }

    /// Resubmits a call to the device, if an earlier submission is in flight and no item is ahead of it; else does
    /// nothing.
    #[inline]
    pub fn again(&self, key: &[usize]) -> bool {
        self.queue.submit_again(key)
    }

    /// As `enqueue`, for a call with this key that is not in flight.
    pub fn enqueue_as(&self, kernel: Ref<BoundKernel>, inputs: Tensors, outputs: Tensors, key: &[usize]) -> Result<()> {
        self.queue.admit().inspect_err(|error| kernel.not_begun(error))?;
        if self.engine.accelerator().is_some() {
            let key = if kernel.on_device().is_some() { key } else { &[] };
            return self.queue.submit_as(QueueItem::Work(launch::work(self, kernel, inputs, outputs)?), key);
        }
        let (call, scratch) = call::work(self, kernel, inputs.into_vec(), outputs.into_vec(), &self.lane)?;
        let submitted = self.submit(QueueItem::Work(call));
        if let Some(scratch) = scratch {
            self.lane.take_back(scratch, self.queue.submitted());
        }
        submitted
    }

    /// Copies one tensor to another of the same type and shape. The stream is of an engine of either.
    pub fn enqueue_copy(&self, source: Ref<Tensor>, target: Ref<Tensor>) -> Result<()> {
        self.queue.admit()?;
        let work = transfer::copy(self, source, target)?;
        self.submit(QueueItem::Work(work))
    }

    /// Sets every byte of a tensor.
    pub fn enqueue_fill(&self, tensor: Ref<Tensor>, value: u8) -> Result<()> {
        self.queue.admit()?;
        let work = transfer::fill(self, tensor, value)?;
        self.submit(QueueItem::Work(work))
    }
}
