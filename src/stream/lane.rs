//! A thread for one asynchronous queue, where the pool cannot take single tasks or there is none. Counted.
//!
//! Calls come through a channel; the thread sleeps on a gate of its own, because a thread that waits on the channel
//! for the first time allocates, and that could be in any run. The gate counts calls. The thread reads the count,
//! looks into the channel, and sleeps only until the count has moved, so a call between the look and the sleep
//! wakes it.

use super::queue::Queue;
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::sync::{
    Gate,
    thread::{self, Group, Origin},
};
use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};
use std::sync::Arc;

/// Room for calls. One is under way at most, and a few whose turn was taken by a helper may wait behind it.
const CALLS: usize = 64;

#[derive(Debug)]
pub struct Lane {
    /// None only while the lane is being dropped.
    calls: Option<Sender<Arc<Queue>>>,
    called: Arc<Gate>,
}

impl Lane {
    /// Starts the thread. It holds no queue between calls, and ends when the lane is dropped. `label` tells it from
    /// other lanes in few letters.
    pub fn start(name: &str, label: &str) -> Result<Lane> {
        let (calls, inbox) = bounded(CALLS);
        let called = Arc::new(Gate::new());
        let gate = Arc::clone(&called);
        let group = Group { origin: Origin::Lane, name: format!("weir-lane-{label}"), owner: name.to_owned(), pool: 0 };
        thread::spawn(&Arc::new(group), None, move || work(&inbox, &gate)).map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the lane of stream '{name}': {error}"))
        })?;
        Ok(Lane { calls: Some(calls), called })
    }

    /// Has the thread drain the queue. A full channel is no loss: a call that waits in it will do.
    pub fn call(&self, queue: Arc<Queue>) {
        let Some(calls) = &self.calls else { return };
        match calls.try_send(queue) {
            Ok(()) | Err(TrySendError::Full(_)) => self.called.advance(1),
            Err(TrySendError::Disconnected(queue)) => queue.drain(),
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        drop(self.calls.take());
        self.called.advance(1);
    }
}

fn work(inbox: &Receiver<Arc<Queue>>, called: &Gate) {
    loop {
        let calls = called.reached();
        match inbox.try_recv() {
            Ok(queue) => queue.drain(),
            Err(TryRecvError::Empty) => drop(called.wait(calls + 1, 0, Deadline::NEVER)),
            Err(TryRecvError::Disconnected) => return,
        }
    }
}
