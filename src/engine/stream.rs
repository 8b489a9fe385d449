//! A stream: a queue on an engine.
#![forbid(unsafe_code)]

use super::attr::StreamAttr;
use super::engine::Engine;
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result, live, with_article};
use crate::memory::{MemoryBlock, Progress, StreamCache};
use crate::stream::{Executor, Queue, QueueAttr};
use crate::sync::Mailbox;
use crate::threadpool::ThreadPool;
use std::sync::Arc;

#[derive(Debug)]
pub struct Stream {
    pub(super) queue: Arc<Queue>,
    attr: Object<StreamAttr>,
    pub(super) engine: Ref<Engine>,
    /// Scratch memory of the last call that ran in its caller, for reuse.
    pub(super) scratch: Mailbox<MemoryBlock>,
    /// Scratch memory of queued calls.
    pub(super) lane: Arc<StreamCache>,
}

impl Kind for Stream {
    const TAG: u32 = tag::STREAM;
    const NAME: &'static str = "stream";
    const COUNTER: live::Counter = live::Counter::Streams;
}

/// Device work in flight continues, and keeps its resources until it is done.
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
                Executor::Device(engine.device(), attr.wrapped)
            }
            None => Executor::Host,
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
        Ok(Object::shared(Stream { queue, attr: Object::new(attr), engine, scratch: Mailbox::default(), lane }))
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
    pub(super) fn intact_pool(&self) -> Result<()> {
        self.pool().map_or(Ok(()), |pool| pool.intact())
    }
}
