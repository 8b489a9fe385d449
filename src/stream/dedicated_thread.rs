//! A thread for one asynchronous queue, where the pool cannot take single tasks or there is none. Counted.
//!
//! Calls come through a channel; the thread sleeps on a gate of its own, because a thread that waits on the channel
//! for the first time allocates, and that could be in any run. The gate counts calls. The thread reads the count,
//! looks into the channel, and sleeps only until the count has moved, so a call between the look and the sleep
//! wakes it.
//!
//! A lane's thread may come to run another queue's work: that of one which it has resumed, and whose pool refused it.
//! If that work waits, the lane's own queue must not be held up by it, so such a wait answers calls (`answer_calls`).
#![forbid(unsafe_code)]

use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::device::Device;
use crate::sync::{
    EventCount,
    thread::{self, Group, Origin},
};
use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Room for calls. One is under way at most, and a few whose turn was taken by a helper may wait behind it.
const CALLS: usize = 64;

/// A queue, as those see it who call it.
pub trait Called: Send + Sync {
    /// What its first item waited for has happened.
    fn resume(self: Arc<Self>);
    /// Does its items in this thread, unless another one is at it: behind what this thread does now if that is a
    /// queue's work, or on top of it.
    fn drain(self: Arc<Self>, on_top: bool);
    /// The device that does its items.
    fn device(&self) -> Option<&Arc<dyn Device>>;
}

#[derive(Debug)]
pub struct DedicatedThread {
    /// None only while the lane is being dropped.
    calls: Option<Sender<Arc<dyn Called>>>,
    called: Arc<EventCount>,
}

impl DedicatedThread {
    /// Starts the thread. It holds no queue between calls, and ends when the lane is dropped. `label` tells it from
    /// other lanes in few letters.
    pub fn start(name: &str, label: &str) -> Result<DedicatedThread> {
        let (calls, inbox) = bounded(CALLS);
        let called = Arc::new(EventCount::new());
        let gate = Arc::clone(&called);
        let group = Group { origin: Origin::Lane, name: format!("weir-lane-{label}"), owner: name.to_owned(), pool: 0 };
        thread::spawn(&Arc::new(group), None, move || work(inbox, &gate)).map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the lane of stream '{name}': {error}"))
        })?;
        Ok(DedicatedThread { calls: Some(calls), called })
    }

    /// Has the thread drain the queue. A full channel is no loss: a call that waits in it will do.
    pub fn call(&self, queue: Arc<dyn Called>) {
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

type Calls = Receiver<Arc<dyn Called>>;

thread_local! {
    /// A lane's calls, on its thread. Without a destructor: registering one allocates on each thread of the host's.
    static OWN: ManuallyDrop<RefCell<Option<Calls>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

fn next_call() -> Option<std::result::Result<Arc<dyn Called>, TryRecvError>> {
    OWN.with(|calls| calls.borrow().as_ref().map(Receiver::try_recv))
}

/// On a lane's thread, which is about to sleep inside some queue's work: drains what it is called for, on top of that.
/// False on other threads.
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
