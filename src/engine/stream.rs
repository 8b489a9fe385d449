//! A stream: a queue on an engine.
#![forbid(unsafe_code)]

use super::attr::StreamAttr;
use super::call;
use super::engine::Engine;
use super::event::Event;
use super::kernel::BoundKernel;
use super::launch::{self, Tensors};
use super::tensor::Tensor;
use super::transfer;
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result, live, with_article};
use crate::device::in_a_capture;
use crate::kernel::Task;
use crate::memory::{Block, Lane, Progress};
use crate::stream::{Doer, Mark, Op, Queue, QueueAttr};
use crate::sync::HandOff;
use crate::threadpool::ThreadPool;
use std::sync::Arc;

#[derive(Debug)]
pub struct Stream {
    queue: Arc<Queue>,
    attr: Object<StreamAttr>,
    engine: Ref<Engine>,
    /// Scratch memory of the last call that ran in its caller, for the next one.
    scratch: HandOff<Block>,
    /// Scratch memory of what is queued.
    lane: Arc<Lane>,
}

impl Kind for Stream {
    const TAG: u32 = tag::STREAM;
    const NAME: &'static str = "stream";
    const COUNTER: live::Counter = live::Counter::Streams;
}

/// What a device is at goes on, and keeps what it uses until it is done.
impl Drop for Stream {
    fn drop(&mut self) {
        self.queue.see_off();
        if let Some(accelerator) = self.engine.accelerator() {
            accelerator.sweep();
        }
    }
}

impl Stream {
    pub fn create(engine: Ref<Engine>, attr: StreamAttr) -> Result<Ref<Stream>> {
        if attr.kind != engine.kind() {
            return Err(Error::invalid(format!(
                "attr is for {} stream, the engine is {} engine",
                with_article(attr.kind.name()),
                with_article(engine.kind().name())
            )));
        }
        let doer = match engine.accelerator() {
            Some(accelerator) => {
                accelerator.sweep();
                Doer::Device(engine.device(), attr.wrapped)
            }
            None => Doer::Host,
        };
        let pool = attr.threadpool().or(engine.pool()).cloned();
        pool.as_ref().map_or(Ok(()), |pool| pool.usable())?;
        let queue = Queue::create(
            QueueAttr {
                name: attr.name.clone(),
                asynchronous: attr.asynchronous,
                pool,
                spin_ns: attr.spin_ns,
                priority: attr.priority,
            },
            doer,
            Arc::clone(engine.account()),
        )?;
        let lane = Arc::new(engine.memory().open_lane(Arc::clone(queue.progress()) as Arc<dyn Progress>));
        Ok(Object::shared(Stream { queue, attr: Object::new(attr), engine, scratch: HandOff::default(), lane }))
    }

    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub fn engine(&self) -> &Ref<Engine> {
        &self.engine
    }

    pub fn attr(&self) -> &Object<StreamAttr> {
        &self.attr
    }

    /// The pool that the stream's work uses: its own, else the engine's.
    pub fn pool(&self) -> Option<&Ref<ThreadPool>> {
        self.queue.pool()
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    pub fn error(&self) -> Option<Error> {
        self.queue.error()
    }

    pub fn clear_error(&self) {
        self.queue.clear_error();
    }

    pub fn synchronize(&self, timeout_ns: u64) -> Result<()> {
        if let Some(accelerator) = self.engine.accelerator() {
            accelerator.sweep();
        }
        self.queue.synchronize(timeout_ns)?;
        self.intact_pool()
    }

    /// Fails if the pool is in checking mode and broke a clause.
    fn intact_pool(&self) -> Result<()> {
        self.pool().map_or(Ok(()), |pool| pool.intact())
    }

    /// Of a synchronous stream: as its call ends, the work is done.
    fn submit(&self, op: Op) -> Result<()> {
        self.queue.submit(op)?;
        if self.queue.is_synchronous() { self.intact_pool() } else { Ok(()) }
    }

    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.queue.admit()?;
        match event.last_mark() {
            Some(mark) if mark.is_captured() && !self.is_of_device_of(&mark) => Err(in_a_capture()),
            Some(mark) => self.queue.submit(Op::Wait(mark)),
            None => Ok(()),
        }
    }

    /// Whether the mark was recorded on this stream's device.
    fn is_of_device_of(&self, mark: &Mark) -> bool {
        self.queue.line().is_some_and(|line| mark.event_on(line.device()).is_some())
    }

    pub fn enqueue_task(&self, task: Arc<dyn Task>) -> Result<()> {
        self.queue.admit()?;
        self.submit(Op::Task(task))
    }

    /// Runs a kernel that completes when it returns, on a synchronous stream. It holds no references: the caller does.
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

    /// Gives a call to the device once more, if an earlier time of it is under way and nothing is in front of it; else
    /// nothing is done.
    #[inline]
    pub fn again(&self, key: &[usize]) -> bool {
        self.queue.submit_again(key)
    }

    /// As `enqueue`, of a call with this key that is not under way.
    pub fn enqueue_as(&self, kernel: Ref<BoundKernel>, inputs: Tensors, outputs: Tensors, key: &[usize]) -> Result<()> {
        self.queue.admit()?;
        if self.engine.accelerator().is_some() {
            let key = if kernel.on_device().is_some() { key } else { &[] };
            return self.queue.submit_as(Op::Work(launch::work(self, kernel, inputs, outputs)?), key);
        }
        let (call, scratch) = call::work(self, kernel, inputs.into_vec(), outputs.into_vec(), &self.lane)?;
        let submitted = self.submit(Op::Work(call));
        if let Some(scratch) = scratch {
            self.lane.take_back(scratch, self.queue.submitted());
        }
        submitted
    }

    /// Copies one tensor to another of the same type and shape. The stream is of an engine of either.
    pub fn enqueue_copy(&self, source: Ref<Tensor>, target: Ref<Tensor>) -> Result<()> {
        self.queue.admit()?;
        let work = transfer::copy(self, source, target)?;
        self.submit(Op::Work(work))
    }

    /// Sets every byte of a tensor.
    pub fn enqueue_fill(&self, tensor: Ref<Tensor>, value: u8) -> Result<()> {
        self.queue.admit()?;
        let work = transfer::fill(self, tensor, value)?;
        self.submit(Op::Work(work))
    }
}
