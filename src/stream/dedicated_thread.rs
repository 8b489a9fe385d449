//! A thread for one asynchronous queue, where the pool cannot take single tasks or there is none. Counted.
//!
//! Calls come through a channel. The thread sleeps on an event count instead of the channel, because the first wait on
//! a channel allocates, and that could be in any run. The event count counts calls: the thread reads it, looks into the
//! channel, and sleeps only until the count has moved, so a call between the look and the sleep wakes it.
//!
//! The thread may run another queue's work, if it resumed that queue and its pool refused it. A wait in that work must
//! not block the thread's own queue, so such a wait answers calls (`answer_calls`).
#![forbid(unsafe_code)]

use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::device::Device;
use crate::sync::{
    EventCount,
    thread::{self, ThreadGroup, ThreadOrigin},
};
use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Room for calls. At most one is in flight, and a few that a helper drained already may wait behind it.
const CALLS: usize = 64;

/// A queue, as seen by its callers.
pub trait Drainable: Send + Sync {
    /// The event that its first item waits for has happened.
    fn resume(self: Arc<Self>);
    /// Drains it in this thread, unless another thread holds it: after the queue work that this thread runs now, or on
    /// top of it.
    fn drain(self: Arc<Self>, on_top: bool);
    /// The device that executes its items.
    fn device(&self) -> Option<&Arc<dyn Device>>;
}

#[derive(Debug)]
pub struct DedicatedThread {
    /// `None` only during the drop.
    calls: Option<Sender<Arc<dyn Drainable>>>,
    called: Arc<EventCount>,
}

impl DedicatedThread {
    /// Starts the thread. It holds no queue between calls, and ends when this is dropped. `label` is short and
    /// distinguishes it from others.
    pub fn start(name: &str, label: &str) -> Result<DedicatedThread> {
        let (calls, inbox) = bounded(CALLS);
        let called = Arc::new(EventCount::new());
        let its_called = Arc::clone(&called);
        let group = ThreadGroup {
            origin: ThreadOrigin::Lane,
            name: format!("weir-lane-{label}"),
            owner: name.to_owned(),
            pool: 0,
        };
        thread::spawn(&Arc::new(group), None, move || work(inbox, &its_called)).map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the lane of stream '{name}': {error}"))
        })?;
        Ok(DedicatedThread { calls: Some(calls), called })
    }

    /// Asks the thread to drain the queue. A full channel is no loss: a call that waits in it suffices.
    pub fn call(&self, queue: Arc<dyn Drainable>) {
        let Some(calls) = &self.calls else { return };
        match calls.try_send(queue) {
            Ok(()) | Err(TrySendError::Full(_)) => self.called.advance(1),
            Err(TrySendError::Disconnected(queue)) => queue.drain(false),
        }
    }
}

impl Drop for DedicatedThread {
    fn drop(&mut self) {
        drop(self.calls.take());
        self.called.advance(1);
    }
}

type Calls = Receiver<Arc<dyn Drainable>>;

thread_local! {
    /// The calls of this dedicated thread. Without a destructor: registering one allocates on each host thread.
    static OWN: ManuallyDrop<RefCell<Option<Calls>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

fn next_call() -> Option<std::result::Result<Arc<dyn Drainable>, TryRecvError>> {
    OWN.with(|calls| calls.borrow().as_ref().map(Receiver::try_recv))
}

/// On a dedicated thread that is about to sleep inside a queue's work: drains the called queues on top of it. False on
/// other threads.
pub(super) fn answer_calls() -> bool {
    loop {
        match next_call() {
            Some(Ok(queue)) => queue.drain(true),
            Some(Err(_)) => return true,
            None => return false,
        }
    }
}

fn work(calls: Calls, called: &EventCount) {
    OWN.with(|own| own.replace(Some(calls)));
    loop {
        let seen = called.reached();
        match next_call() {
            Some(Ok(queue)) => queue.drain(false),
            Some(Err(TryRecvError::Empty)) => drop(called.wait(seen + 1, 0, Deadline::NEVER)),
            Some(Err(TryRecvError::Disconnected)) | None => break,
        }
    }
    OWN.with(|own| drop(own.take()));
}
