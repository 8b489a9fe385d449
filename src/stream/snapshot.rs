//! What a wait for everything waits for, noted before the first wait: so the engines go on side by side, and what comes
//! later is not waited for.
#![forbid(unsafe_code)]

use super::account::{Account, Aside, Member};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::device::{DeviceEvent, Waiting};
use std::sync::Arc;

/// Whose work lies in front of an event, and how that is waited for.
type Outstanding = (Arc<dyn Aside>, Arc<dyn DeviceEvent>, Option<Waiting>);

/// Queues, and what each must have completed; and events. The first 32 queues need no allocation, so that a program
/// that synchronises around every run allocates nothing.
#[derive(Default)]
pub(super) struct Snapshot {
    first: [Option<(Arc<dyn Member>, u64)>; 32],
    len: usize,
    rest: Vec<(Arc<dyn Member>, u64)>,
    aside: Vec<Outstanding>,
    /// A device did not say how far it is.
    failure: Option<Error>,
}

impl Snapshot {
    /// Adds all that this account has to do now.
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
                Err(error) => self.failure = Some(error.within(account.label())),
            }
        }
    }

    /// No more is added. Devices are told where their queues' targets are, so that none is waited for longer. A queue
    /// holds its lane and its pool; one whose stream is gone must end when its work has, and not live on from one
    /// synchronisation to the next while they overlap: so idle ones are let go of before the wait. Not under a lock:
    /// what dies here may call the host.
    pub fn taken(mut self) -> Snapshot {
        let is_idle = |(queue, target): &(Arc<dyn Member>, u64)| queue.has_completed(*target);
        for place in self.first.iter_mut().take(self.len) {
            place.take_if(|entry| is_idle(entry));
        }
        self.rest.retain(|entry| !is_idle(entry));
        self
    }

    /// Under the account's lock: the queue is only asked how much there is.
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
                // It cannot be waited for, and the others can.
                Err(error) if queue.check_not_captured().is_err() => _ = self.failure.get_or_insert(error),
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
