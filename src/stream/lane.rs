//! A thread for one asynchronous queue, where the pool cannot take single tasks or there is none. Counted.

use super::queue::Queue;
use crate::base::live::CountedThread;
use crate::base::{Code, Error, Result};
use crossbeam_channel::{Sender, TrySendError, bounded};
use std::sync::Arc;
use std::time::Duration;

/// Room for calls. One is under way at most, and a few whose turn was taken by a helper may wait behind it.
const CALLS: usize = 64;

#[derive(Debug)]
pub struct Lane {
    calls: Sender<Arc<Queue>>,
}

impl Lane {
    /// Starts the thread. It holds no queue between calls, and ends when the lane is dropped.
    pub fn start(name: &str) -> Result<Lane> {
        let (calls, inbox) = bounded::<Arc<Queue>>(CALLS);
        CountedThread::spawn("weir-lane".to_owned(), move || {
            // The channel allocates when a thread waits on it for the first time; not in some later run.
            if let Ok(queue) = inbox.recv_timeout(Duration::from_nanos(1)) {
                queue.drain();
            }
            while let Ok(queue) = inbox.recv() {
                queue.drain();
            }
        })
        .map_err(|error| {
            Error::new(Code::ResourceExhausted, format!("cannot start the lane of stream '{name}': {error}"))
        })?;
        Ok(Lane { calls })
    }

    /// Has the thread drain the queue. A full channel is no loss: a call that waits in it will do.
    pub fn call(&self, queue: Arc<Queue>) {
        match self.calls.try_send(queue) {
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected(queue)) => queue.drain(),
        }
    }
}
