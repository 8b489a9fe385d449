//! The targets of a wait for everything, taken before the first wait: so the engines proceed in parallel, and later
//! submissions are not waited for.
#![forbid(unsafe_code)]

use super::account::{Account, Aside, Member};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::device::{DeviceEvent, Waiting};
use std::sync::Arc;

/// The owner of the work before an event, the event, and how to wait for it.
type Outstanding = (Arc<dyn Aside>, Arc<dyn DeviceEvent>, Option<Waiting>);

/// Queues, and what each must have completed; and events. The first 32 queues need no allocation, so that a program
/// that synchronises around every run allocates nothing.
#[derive(Default)]
pub(super) struct Snapshot {
    first: [Option<(Arc<dyn Member>, u64)>; 32],
    len: usize,
    rest: Vec<(Arc<dyn Member>, u64)>,
    aside: Vec<Outstanding>,
    /// A device failed to report its progress.
    failure: Option<Error>,
}

impl Snapshot {
    /// Adds all current work of this account.
    pub fn add(&mut self, account: &Account) {
        account.each_queue(|queue| self.push(queue));
        for aside in account.busy_asides() {
            match aside.outstanding(account) {
                Ok(events) => {
                    let waiting = account.waiting();
                    self.aside.extend(events.into_iter().map(|event| (Arc::clone(&aside), event, waiting)));
                }
                // Then it is over.
                Err(error) if error.code() == Code::DeviceLost => {}
                Err(error) => self.failure = Some(error.at(account.label())),
            }
        }
    }

    /// Ends the collection. Requests a fence at each device queue's target, so that none is waited for longer. A queue
    /// holds its thread and its pool; one whose stream is gone must end with its work, and not live on through
    /// overlapping synchronisations: so idle ones are released before the wait. Not under a lock: destructors may call
    /// the host.
    pub fn taken(mut self) -> Snapshot {
        let is_idle = |(queue, target): &(Arc<dyn Member>, u64)| queue.has_completed(*target);
        for place in self.first.iter_mut().take(self.len) {
            place.take_if(|entry| is_idle(entry));
        }
        self.rest.retain(|entry| !is_idle(entry));
        self
    }

    /// Under the account's lock: only reads the queue's counts.
    fn push(&mut self, queue: Arc<dyn Member>) {
        let target = queue.submitted();
        match self.first.get_mut(self.len) {
            Some(place) => *place = Some((queue, target)),
            None => self.rest.push((queue, target)),
        }
        self.len += 1;
    }

    /// Waits for all of it.
    pub fn wait(mut self, deadline: Deadline) -> Result<()> {
        for (queue, target) in self.first.iter().flatten().chain(&self.rest) {
            match Arc::clone(queue).wait(*target, deadline) {
                // It cannot be waited for, but the others can.
                Err(error) if error.code() != Code::DeadlineExceeded => _ = self.failure.get_or_insert(error),
                waited => waited?,
            }
        }
        for (aside, event, waiting) in &self.aside {
            if let Ok(false) = event.wait(*waiting, deadline) {
                let text = format!("the time to wait for the work of {} on a device has passed", aside.owner());
                return Err(Error::new(Code::DeadlineExceeded, text));
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}
