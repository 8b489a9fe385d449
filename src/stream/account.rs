//! What one engine's queues have in common: the list of them, and the error of one that is gone. And the list of
//! all accounts.

use super::latch::Audience;
use super::queue::Queue;
use crate::base::time::Deadline;
use crate::base::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

#[derive(Debug)]
pub struct Account {
    /// "engine cpu:0"
    label: String,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// First error of a queue that died before a device synchronisation could report it.
    orphan: Mutex<Option<Error>>,
}

static ACCOUNTS: Mutex<Vec<Weak<Account>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Account {
    pub fn open(label: String) -> Arc<Account> {
        let account = Arc::new(Account { label, queues: Mutex::new(Vec::new()), orphan: Mutex::new(None) });
        let mut all = lock(&ACCOUNTS);
        all.retain(|account| account.strong_count() > 0);
        all.push(Arc::downgrade(&account));
        account
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn add(&self, queue: &Arc<Queue>) {
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    pub(super) fn orphan(&self, error: Error) {
        lock(&self.orphan).get_or_insert(error);
    }

    /// The queues alive now, each with what it must have completed.
    fn targets(&self) -> Vec<(Arc<Queue>, u64)> {
        let queues: Vec<_> = lock(&self.queues).iter().filter_map(Weak::upgrade).collect();
        queues.into_iter().map(|queue| (Arc::clone(&queue), queue.submitted())).collect()
    }

    /// The first error that no device synchronisation has reported.
    fn tell(&self, queues: &[(Arc<Queue>, u64)]) -> Option<Error> {
        let mut first = lock(&self.orphan).take();
        for (queue, _) in queues {
            let told = queue.tell(Audience::Device);
            first = first.or(told);
        }
        first.map(|error| error.within(&self.label))
    }

    /// Waits for everything queued on this engine so far.
    pub fn synchronize(&self, timeout_ns: u64) -> Result<()> {
        let deadline = Deadline::after(timeout_ns);
        let targets = self.targets();
        wait(&targets, deadline)?;
        self.tell(&targets).map_or(Ok(()), Err)
    }
}

fn wait(targets: &[(Arc<Queue>, u64)], deadline: Deadline) -> Result<()> {
    targets.iter().try_for_each(|(queue, target)| queue.wait(*target, deadline))
}

/// Waits for everything queued so far, on every queue of every engine. All targets are taken before the first wait.
/// The first error of each engine that no device synchronisation has reported yet comes back, as one error with the
/// first one's code.
pub fn sync_all(timeout_ns: u64) -> Result<()> {
    let deadline = Deadline::after(timeout_ns);
    let accounts: Vec<_> = lock(&ACCOUNTS).iter().filter_map(Weak::upgrade).collect();
    let all: Vec<_> = accounts.iter().map(|account| (account, account.targets())).collect();
    for (_, targets) in &all {
        wait(targets, deadline)?;
    }
    let errors: Vec<_> = all.iter().filter_map(|(account, targets)| account.tell(targets)).collect();
    match errors.as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => {
            let text = rest.iter().fold(first.message().to_owned(), |text, error| text + "; " + error.message());
            Err(Error::new(first.code(), text))
        }
    }
}
