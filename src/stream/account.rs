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

    /// Adds the queues alive now, each with what it must have completed.
    fn snapshot(&self, snapshot: &mut Snapshot) {
        lock(&self.queues).iter().filter_map(Weak::upgrade).for_each(|queue| snapshot.push(queue));
    }

    /// The first error that no device synchronisation has reported.
    fn tell(&self, snapshot: &Snapshot) -> Option<Error> {
        let mut first = lock(&self.orphan).take();
        for (queue, _) in snapshot.iter().filter(|(queue, _)| std::ptr::eq(queue.account(), self)) {
            let told = queue.tell(Audience::Device);
            first = first.or(told);
        }
        first.map(|error| error.within(&self.label))
    }

    /// Waits for everything queued on this engine so far.
    pub fn synchronize(&self, timeout_ns: u64) -> Result<()> {
        let deadline = Deadline::after(timeout_ns);
        let mut snapshot = Snapshot::default();
        self.snapshot(&mut snapshot);
        snapshot.wait(deadline)?;
        self.tell(&snapshot).map_or(Ok(()), Err)
    }
}

/// Queues, and what each must have completed. The first 32 need no allocation, so that a program that synchronises
/// around every run allocates nothing.
#[derive(Default)]
struct Snapshot {
    first: [Option<(Arc<Queue>, u64)>; 32],
    len: usize,
    rest: Vec<(Arc<Queue>, u64)>,
}

impl Snapshot {
    fn push(&mut self, queue: Arc<Queue>) {
        let target = queue.submitted();
        match self.first.get_mut(self.len) {
            Some(place) => *place = Some((queue, target)),
            None => self.rest.push((queue, target)),
        }
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &(Arc<Queue>, u64)> {
        self.first.iter().flatten().chain(&self.rest)
    }

    fn wait(&self, deadline: Deadline) -> Result<()> {
        self.iter().try_for_each(|(queue, target)| queue.wait(*target, deadline))
    }
}

/// Waits for everything queued so far, on every queue of every engine. All targets are taken before the first wait.
/// The first error of each engine that no device synchronisation has reported yet comes back, as one error with the
/// first one's code.
pub fn sync_all(timeout_ns: u64) -> Result<()> {
    let deadline = Deadline::after(timeout_ns);
    let mut snapshot = Snapshot::default();
    for account in lock(&ACCOUNTS).iter().filter_map(Weak::upgrade) {
        account.snapshot(&mut snapshot);
    }
    snapshot.wait(deadline)?;
    let mut all: Option<Error> = None;
    let mut at = 0;
    while let Some(account) = nth_account(&mut at) {
        if let Some(error) = account.tell(&snapshot) {
            all = Some(match all {
                None => error,
                Some(first) => Error::new(first.code(), format!("{}; {}", first.message(), error.message())),
            });
        }
    }
    all.map_or(Ok(()), Err)
}

/// The next account that is alive, from position `at` on.
fn nth_account(at: &mut usize) -> Option<Arc<Account>> {
    let accounts = lock(&ACCOUNTS);
    while let Some(account) = accounts.get(*at) {
        *at += 1;
        if let Some(account) = account.upgrade() {
            return Some(account);
        }
    }
    None
}
