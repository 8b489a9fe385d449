//! Native handles of the interface below a device (CUDA), given out and taken in.
#![forbid(unsafe_code)]

use super::engine::Engine;
use super::event::Event;
use super::stream::Stream;
use crate::base::{Code, Error, Result};
use crate::stream::{Queue, QueueItem, QueueWork};
use std::sync::Arc;
use std::task::Poll;

fn of_the_host(engine: &Engine) -> Error {
    let text = format!("engine {} has no native handles: the host does its work", engine.label());
    Error::new(Code::Unimplemented, text)
}

impl Engine {
    pub fn native_handle(&self) -> Result<u64> {
        let accelerator = self.accelerator().ok_or_else(|| of_the_host(self))?;
        accelerator.native_handle().map_err(|error| error.at_engine(&self.label()))
    }
}

impl Stream {
    pub fn native_handle(&self) -> Result<u64> {
        let device_queue = self.queue().device_queue().ok_or_else(|| of_the_host(self.engine()))?;
        device_queue
            .stream()
            .native_handle()
            .map_err(|error| error.within(format_args!("stream '{}'", self.queue().name())))
    }

    /// Later submissions wait for a native event of the host's; or the stream records it.
    pub fn enqueue_foreign_event(&self, event: u64, records: bool) -> Result<()> {
        self.queue().admit()?;
        if self.queue().device_queue().is_none() {
            return Err(of_the_host(self.engine()));
        }
        self.queue().submit(QueueItem::Work(Arc::new(ForeignEvent { event, records })))
    }
}

impl Event {
    /// The native handle of the last record, which must have been issued.
    pub fn native_handle(&self) -> Result<u64> {
        if self.engine().accelerator().is_none() {
            return Err(of_the_host(self.engine()));
        }
        let mark = self.last_mark().ok_or_else(|| Error::precondition("event was never recorded"))?;
        let issued = mark.event_on(self.engine().device());
        issued.ok_or_else(|| Error::precondition("event has not been recorded by the device yet"))?.native_handle()
    }
}

/// A native event of the host's, as queue work.
struct ForeignEvent {
    event: u64,
    records: bool,
}

impl ForeignEvent {
    fn issue(&self, queue: &Queue) -> Result<()> {
        match queue.device_queue() {
            Some(device_queue) => device_queue.stream().foreign_event(self.event, self.records),
            None => Err(Error::internal("an event of a device's on a stream of the host's")),
        }
    }
}

impl QueueWork for ForeignEvent {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn may_be_captured(&self) -> Result<()> {
        Ok(())
    }

    fn capture(&self, queue: &Arc<Queue>) -> Result<()> {
        self.issue(queue)
    }

    fn may_join_capture(&self) -> bool {
        !self.records
    }
}
