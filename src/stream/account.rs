//! The shared state of one engine's queues: the list of them, and their late failures. And the list of all accounts.
#![forbid(unsafe_code)]

use super::domain::{Domain, DomainId, numbered};
use super::late::{Failures, Reporter};
use super::listener::Listener;
use super::notice::{Notice, NoticeThread};
use crate::base::time::Deadline;
use crate::base::{Error, Ref, Result};
use crate::device::{DeviceEvent, Waiting};
use crate::sync::{Global, Mutex, OnceLock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// In front of an engine's name.
const ENGINE: &str = "engine ";

/// A queue, as its engine sees it.
pub(super) trait Member: Send + Sync {
    fn id(&self) -> u64;
    fn name(&self) -> &str;
    fn submitted(&self) -> u64;
    /// Whether the first `target` items are completed.
    fn has_completed(&self, target: u64) -> bool;
    /// Waits until the first `target` items are completed.
    fn wait(self: Arc<Self>, target: u64, deadline: Deadline) -> Result<()>;
}

/// Device work that was submitted past all queues, as programs do.
pub trait Aside: Send + Sync {
    /// For messages: "program 'digits'".
    fn owner(&self) -> &str;

    /// Whether any may be in flight.
    fn is_busy(&self) -> bool;

    /// Events behind all work issued so far for this account. The owner reports failures of the work.
    fn outstanding(&self, account: &Account) -> Result<Vec<Arc<dyn DeviceEvent>>>;
}

pub struct Account {
    /// "engine cpu:0", "engine torch/cpu:0"
    label: String,
    /// The engine is open. ORDERING: Relaxed; it does not matter whether a name was freed just now.
    is_open: AtomicBool,
    domain: DomainId,
    /// How its device is waited for, if that was configured.
    waiting: Option<Waiting>,
    queues: Mutex<Vec<Weak<dyn Member>>>,
    failures: Failures,
    asides: Mutex<Vec<Weak<dyn Aside>>>,
    /// Notifies the host of completed device work. Started on first use.
    notices: OnceLock<Arc<NoticeThread>>,
}

/// An account in the list of all.
struct AccountEntry {
    /// Later ones have larger numbers.
    number: u64,
    domain: DomainId,
    account: Weak<Account>,
}

/// In the order in which they were made.
static ACCOUNTS: Global<Vec<AccountEntry>> = Global::new(Vec::new);

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

    /// The reporter of these engines' failures.
    pub(super) fn reporter(self) -> Reporter {
        match self {
            Extent::Everything => Reporter::Everything,
            Extent::Domain(_) => Reporter::Domain,
        }
    }

    /// For error messages.
    pub(super) fn synchronising(self) -> &'static str {
        match self {
            Extent::Everything => "synchronising all engines",
            Extent::Domain(_) => "synchronising a domain",
        }
    }

    /// The live accounts of these engines.
    pub(super) fn accounts(self) -> Vec<Arc<Account>> {
        let accounts = ACCOUNTS.lock();
        accounts.iter().filter(|entry| self.has(entry.domain)).filter_map(|entry| entry.account.upgrade()).collect()
    }

    /// The next of them after number `behind`, which becomes its number. Accounts may come and go meanwhile.
    pub(super) fn next(self, behind: &mut u64) -> Option<Arc<Account>> {
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
    /// An account that belongs to no engine.
    pub fn open(label: String) -> Arc<Account> {
        let mut all = ACCOUNTS.lock();
        Account::add_to(&mut all, label, DomainId::DEFAULT, None)
    }

    /// The account of an engine with this name, after the domain's. If `is_unique` and another engine of the domain has
    /// the name, a number follows.
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
        // An account may die here, so not under the lock.
        drop(all);
        account
    }

    fn add_to(all: &mut Vec<AccountEntry>, label: String, domain: DomainId, waiting: Option<Waiting>) -> Arc<Account> {
        let (queues, asides) = (Mutex::default(), Mutex::default());
        let (is_open, failures) = (AtomicBool::new(true), Failures::default());
        let notices = OnceLock::new();
        let account = Arc::new(Account { label, is_open, domain, waiting, queues, failures, asides, notices });
        all.retain(|entry| entry.account.strong_count() > 0);
        static LAST: AtomicU64 = AtomicU64::new(0);
        // ORDERING: Relaxed; the list's lock orders the numbers.
        let number = LAST.fetch_add(1, Relaxed) + 1;
        all.push(AccountEntry { number, domain, account: Arc::downgrade(&account) });
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

    /// The engine closes and frees its name; its queues may live for a moment longer.
    pub fn close(&self) {
        self.is_open.store(false, Relaxed);
    }

    /// A notice that tells the listener of completed work of the engine's device.
    pub fn notice(&self, listener: Listener) -> Result<Notice> {
        Notice::by_device(listener, || self.notice_thread())
    }

    fn notice_thread(&self) -> Result<&Arc<NoticeThread>> {
        if self.notices.get().is_none() {
            // If two threads race here, the loser's notice thread ends at once.
            let _ = self.notices.set(Arc::new(NoticeThread::start(&self.label)?));
        }
        self.notices.get().ok_or_else(|| Error::internal("a thread that is not there"))
    }

    pub fn domain(&self) -> DomainId {
        self.domain
    }

    pub(super) fn add(&self, queue: &Arc<impl Member + 'static>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        let queue: Weak<dyn Member> = Arc::downgrade(queue) as Weak<dyn Member>;
        queues.push(queue);
    }

    pub(super) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Registers work that bypasses the queues.
    pub fn add_aside(&self, aside: &Arc<impl Aside + 'static>) {
        let mut asides = self.asides.lock();
        asides.retain(|aside| aside.strong_count() > 0);
        let aside: Weak<dyn Aside> = Arc::downgrade(aside) as Weak<dyn Aside>;
        asides.push(aside);
    }

    /// The live queues.
    pub(super) fn each_queue(&self, f: impl FnMut(Arc<dyn Member>)) {
        self.queues.lock().iter().filter_map(Weak::upgrade).for_each(f);
    }

    /// Those with work in flight. Idle ones may die here, but not under the lock: their destructors may call the host.
    pub(super) fn busy_asides(&self) -> Vec<Arc<dyn Aside>> {
        let mut asides: Vec<_> = self.asides.lock().iter().filter_map(Weak::upgrade).collect();
        asides.retain(|aside| aside.is_busy());
        asides
    }

    /// The first failure that this reporter has not reported. The others count as reported with it.
    pub(super) fn tell(&self, reporter: Reporter) -> Option<Error> {
        let news = self.failures.tell(reporter, 0);
        news.into_iter().next().map(|(_, first)| first.at(&self.label))
    }

    /// All queues, each with its count of submitted items.
    pub(super) fn submitted(&self) -> Vec<(u64, u64)> {
        let all: Vec<_> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().map(|queue| (queue.id(), queue.submitted())).collect()
    }
}
