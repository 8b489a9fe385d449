//! What one engine's queues have in common: the list of them, and the failures that no device synchronisation has
//! reported. And the list of all accounts.

use super::notice::NoticeLane;
use super::queue::Queue;
use super::snapshot::{Aside, Snapshot};
use super::together::refuse_inside;
use crate::base::time::Deadline;
use crate::base::{Error, Result};
use crate::sync::{Mutex, OnceLock};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

pub struct Account {
    /// "engine cpu:0"
    label: String,
    queues: Mutex<Vec<Weak<Queue>>>,
    late: Mutex<Vec<Late>>,
    asides: Mutex<Vec<Weak<dyn Aside>>>,
    /// Tells the host what the engine's device has ended. Started for the first who asks.
    notices: OnceLock<Arc<NoticeLane>>,
}

/// A failure to report, in the order in which the queues failed. It is noted when the queue fails and not when it dies:
/// the thread that ran it may hold it for a moment longer than one that failed after it.
#[derive(Debug)]
struct Late {
    /// Later failures have larger numbers.
    number: u64,
    queue: u64,
    /// The queue has died, so nobody can clear this failure any more.
    is_final: bool,
    error: Error,
}

/// How many failures there were on all engines. ORDERING: Relaxed; a failure and who asks for it have an order by the queue's
/// completion or none.
static FAILURES: AtomicU64 = AtomicU64::new(0);

/// The number that the next failure gets.
pub(super) fn failures() -> u64 {
    FAILURES.load(Relaxed)
}

static ACCOUNTS: Mutex<Vec<Weak<Account>>> = Mutex::new(Vec::new());

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account('{}')", self.label)
    }
}

impl Account {
    pub fn open(label: String) -> Arc<Account> {
        let lists = (Mutex::default(), Mutex::default(), Mutex::default());
        let (queues, late, asides) = lists;
        let account = Arc::new(Account { label, queues, late, asides, notices: OnceLock::new() });
        let mut all = ACCOUNTS.lock();
        all.retain(|account| account.strong_count() > 0);
        all.push(Arc::downgrade(&account));
        account
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn notice_lane(&self) -> Result<&Arc<NoticeLane>> {
        if self.notices.get().is_none() {
            // If two come here, one thread ends at once.
            let _ = self.notices.set(Arc::new(NoticeLane::start(&self.label)?));
        }
        self.notices.get().ok_or_else(|| Error::internal("a lane that is not there"))
    }

    pub(super) fn add(&self, queue: &Arc<Queue>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Queue number `queue` has failed.
    pub(super) fn failed(&self, queue: u64, error: Error) {
        let number = FAILURES.fetch_add(1, Relaxed);
        self.late.lock().push(Late { number, queue, is_final: false, error });
    }

    /// Its failure was cleared.
    pub(super) fn cleared(&self, queue: u64) {
        self.late.lock().retain(|late| late.queue != queue);
    }

    /// It is gone. Of failures that cannot be cleared the first will do, so that the list does not grow for ever.
    pub(super) fn gone(&self, queue: u64) {
        let mut late = self.late.lock();
        late.iter_mut().filter(|late| late.queue == queue).for_each(|late| late.is_final = true);
        let mut has_final = false;
        late.retain(|late| !late.is_final || !std::mem::replace(&mut has_final, true));
    }

    /// Work past the queues is this engine's, too.
    pub fn add_aside(&self, aside: &Arc<impl Aside + 'static>) {
        let mut asides = self.asides.lock();
        asides.retain(|aside| aside.strong_count() > 0);
        let aside: Weak<dyn Aside> = Arc::downgrade(aside) as Weak<dyn Aside>;
        asides.push(aside);
    }

    /// The queues alive now.
    pub(super) fn each_queue(&self, f: impl FnMut(Arc<Queue>)) {
        self.queues.lock().iter().filter_map(Weak::upgrade).for_each(f);
    }

    /// Those with something to do. Idle ones may die here, but not under the lock: their end may call the host.
    pub(super) fn busy_asides(&self) -> Vec<Arc<dyn Aside>> {
        let mut asides: Vec<_> = self.asides.lock().iter().filter_map(Weak::upgrade).collect();
        asides.retain(|aside| aside.is_busy());
        asides
    }

    /// The first failure that no device synchronisation has reported. The others count as reported with it.
    pub(super) fn tell(&self) -> Option<Error> {
        let late = std::mem::take(&mut *self.late.lock());
        late.into_iter().next().map(|first| first.error.within(&self.label))
    }

    /// The failures from this number on that no device synchronisation has reported, with their numbers; they count as reported.
    pub(super) fn take_since(&self, first: u64) -> Vec<(u64, Error)> {
        let (taken, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *self.late.lock()).into_iter().partition(|late| late.number >= first);
        // What has failed meanwhile lies behind.
        let mut late = self.late.lock();
        let newer = std::mem::replace(&mut *late, kept);
        late.extend(newer);
        drop(late);
        taken.into_iter().map(|late| (late.number, late.error.within(&self.label))).collect()
    }

    /// All queues, each with how much was submitted to it.
    pub(super) fn submitted(&self) -> Vec<(u64, u64)> {
        let all: Vec<_> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().map(|queue| (queue.id(), queue.submitted())).collect()
    }

    /// Waits for everything queued on this engine so far.
    pub fn synchronize(&self, timeout_ns: u64) -> Result<()> {
        refuse_inside("synchronising an engine")?;
        let deadline = Deadline::after(timeout_ns);
        let mut snapshot = Snapshot::default();
        snapshot.add(self);
        snapshot.taken().wait(deadline)?;
        self.tell().map_or(Ok(()), Err)
    }
}

/// Waits for everything queued so far, on every queue of every engine. All targets are taken before the first wait.
/// The first error of each engine that no device synchronisation has reported yet comes back, as one error with the
/// first one's code.
pub fn sync_all(timeout_ns: u64) -> Result<()> {
    refuse_inside("synchronising all engines")?;
    let deadline = Deadline::after(timeout_ns);
    let mut snapshot = Snapshot::default();
    let mut at = 0;
    while let Some(account) = nth_account(&mut at) {
        snapshot.add(&account);
    }
    snapshot.taken().wait(deadline)?;
    let mut all: Option<Error> = None;
    let mut at = 0;
    while let Some(account) = nth_account(&mut at) {
        if let Some(error) = account.tell() {
            all = Some(match all {
                None => error,
                Some(first) => Error::new(first.code(), format!("{}; {}", first.message(), error.message())),
            });
        }
    }
    all.map_or(Ok(()), Err)
}

/// All accounts that are alive.
pub(super) fn all() -> Vec<Arc<Account>> {
    ACCOUNTS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// The next account that is alive, from position `at` on.
fn nth_account(at: &mut usize) -> Option<Arc<Account>> {
    let accounts = ACCOUNTS.lock();
    while let Some(account) = accounts.get(*at) {
        *at += 1;
        if let Some(account) = account.upgrade() {
            return Some(account);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_fail_is_told_whoever_dies_first() {
        let account = Account::open("engine".to_owned());
        (1..=4).for_each(|queue| account.failed(queue, Error::invalid(format!("failure {queue}"))));
        account.cleared(1);
        account.gone(3);
        account.gone(2);
        account.gone(4);
        assert_eq!(account.late.lock().len(), 1);
        assert_eq!(account.tell().unwrap().message(), "engine: failure 2");
        assert!(account.tell().is_none());
    }
}
