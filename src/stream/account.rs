//! What one engine's queues have in common: the list of them, and their late failures. And the list of all accounts.

use super::domain::{Domain, DomainId, numbered};
use super::late::{Failures, Reporter};
use super::notice::NoticeLane;
use super::queue::Queue;
use super::snapshot::{Aside, Snapshot};
use super::together::refuse_inside;
use crate::base::time::Deadline;
use crate::base::{Error, Ref, Result};
use crate::device::Waiting;
use crate::sync::{Global, Mutex, OnceLock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// In front of an engine's name.
const ENGINE: &str = "engine ";

pub struct Account {
    /// "engine cpu:0", "engine torch/cpu:0"
    label: String,
    /// The engine is there. ORDERING: Relaxed; whether a name has become free just now does not matter.
    is_open: AtomicBool,
    domain: DomainId,
    /// How its device is waited for, if that was said.
    waiting: Option<Waiting>,
    queues: Mutex<Vec<Weak<Queue>>>,
    failures: Failures,
    asides: Mutex<Vec<Weak<dyn Aside>>>,
    /// Tells the host what the engine's device has ended. Started for the first who asks.
    notices: OnceLock<Arc<NoticeLane>>,
}

/// An account in the list of all.
struct Entry {
    /// Later ones have larger numbers.
    number: u64,
    domain: DomainId,
    account: Weak<Account>,
}

/// In the order in which they were made.
static ACCOUNTS: Global<Vec<Entry>> = Global::new(Vec::new);

/// Which engines a synchronisation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Everything,
    Domain(DomainId),
}

impl Extent {
    pub(super) fn has(self, domain: DomainId) -> bool {
        match self {
            Extent::Everything => true,
            Extent::Domain(own) => own == domain,
        }
    }

    /// Who reports the failures of these engines.
    pub(super) fn reporter(self) -> Reporter {
        match self {
            Extent::Everything => Reporter::Everything,
            Extent::Domain(_) => Reporter::Domain,
        }
    }

    /// For refusals.
    pub(super) fn synchronising(self) -> &'static str {
        match self {
            Extent::Everything => "synchronising all engines",
            Extent::Domain(_) => "synchronising a domain",
        }
    }

    /// The accounts of these engines that are alive.
    pub(super) fn accounts(self) -> Vec<Arc<Account>> {
        let accounts = ACCOUNTS.lock();
        accounts.iter().filter(|entry| self.has(entry.domain)).filter_map(|entry| entry.account.upgrade()).collect()
    }

    /// The next of them behind number `behind`, which is then its own. Others may come and go meanwhile.
    fn next(self, behind: &mut u64) -> Option<Arc<Account>> {
        let accounts = ACCOUNTS.lock();
        let first = accounts.partition_point(|entry| entry.number <= *behind);
        accounts[first..].iter().filter(|entry| self.has(entry.domain)).find_map(|entry| {
            *behind = entry.number;
            entry.account.upgrade()
        })
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account('{}')", self.label)
    }
}

impl Account {
    /// Of a thing that is no engine's.
    pub fn open(label: String) -> Arc<Account> {
        let mut all = ACCOUNTS.lock();
        Account::add_to(&mut all, label, DomainId::DEFAULT, None)
    }

    /// Of an engine of this name, behind the domain's. If it `is_unique` and another engine of the domain has it, a
    /// number follows.
    pub fn open_engine(
        name: &str,
        domain: Option<&Ref<Domain>>,
        is_unique: bool,
        waiting: Option<Waiting>,
    ) -> Arc<Account> {
        let label = match domain {
            None => format!("{ENGINE}{name}"),
            Some(domain) => format!("{ENGINE}{}/{name}", domain.name()),
        };
        let domain = DomainId::of(domain);
        let mut all = ACCOUNTS.lock();
        let others: Vec<_> =
            all.iter().filter(|entry| entry.domain == domain).filter_map(|entry| entry.account.upgrade()).collect();
        let is_taken = |label: &str| others.iter().any(|other| other.label == label && other.is_open.load(Relaxed));
        let label = if is_unique { numbered(label, is_taken) } else { label };
        let account = Account::add_to(&mut all, label, domain, waiting);
        // One of the others may end here, and not under the lock.
        drop(all);
        account
    }

    fn add_to(all: &mut Vec<Entry>, label: String, domain: DomainId, waiting: Option<Waiting>) -> Arc<Account> {
        let (queues, asides) = (Mutex::default(), Mutex::default());
        let (is_open, failures) = (AtomicBool::new(true), Failures::default());
        let notices = OnceLock::new();
        let account = Arc::new(Account { label, is_open, domain, waiting, queues, failures, asides, notices });
        all.retain(|entry| entry.account.strong_count() > 0);
        static LAST: AtomicU64 = AtomicU64::new(0);
        // ORDERING: Relaxed; the list's lock orders the numbers.
        let number = LAST.fetch_add(1, Relaxed) + 1;
        all.push(Entry { number, domain, account: Arc::downgrade(&account) });
        account
    }

    /// "engine cpu:0"
    pub fn label(&self) -> &str {
        &self.label
    }

    /// "cpu:0"
    pub fn name(&self) -> &str {
        self.label.strip_prefix(ENGINE).unwrap_or(&self.label)
    }

    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.waiting
    }

    /// The engine goes, and its name with it; its queues may be there for a moment longer.
    pub fn close(&self) {
        self.is_open.store(false, Relaxed);
    }

    pub(super) fn notice_lane(&self) -> Result<&Arc<NoticeLane>> {
        if self.notices.get().is_none() {
            // If two come here, one thread ends at once.
            let _ = self.notices.set(Arc::new(NoticeLane::start(&self.label)?));
        }
        self.notices.get().ok_or_else(|| Error::internal("a lane that is not there"))
    }

    pub(super) fn domain(&self) -> DomainId {
        self.domain
    }

    pub(super) fn add(&self, queue: &Arc<Queue>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    pub(super) fn failures(&self) -> &Failures {
        &self.failures
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

    /// The first failure that this reporter has not told. The others count as told with it.
    pub(super) fn tell(&self, reporter: Reporter) -> Option<Error> {
        let news = self.failures.tell(reporter, 0);
        news.into_iter().next().map(|(_, first)| first.within(&self.label))
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
        self.tell(Reporter::Engine).map_or(Ok(()), Err)
    }
}

/// Waits for everything queued so far, on every queue of these engines. All targets are taken before the first wait.
/// The first error of each engine that this reporter has not told yet comes back, as one error with the first one's
/// code.
pub fn sync_all(extent: Extent, timeout_ns: u64) -> Result<()> {
    refuse_inside(extent.synchronising())?;
    let deadline = Deadline::after(timeout_ns);
    let mut snapshot = Snapshot::default();
    let mut behind = 0;
    while let Some(account) = extent.next(&mut behind) {
        snapshot.add(&account);
    }
    snapshot.taken().wait(deadline)?;
    let mut all: Option<Error> = None;
    let mut behind = 0;
    while let Some(account) = extent.next(&mut behind) {
        if let Some(error) = account.tell(extent.reporter()) {
            all = Some(match all {
                None => error,
                Some(first) => Error::new(first.code(), format!("{}; {}", first.message(), error.message())),
            });
        }
    }
    all.map_or(Ok(()), Err)
}
