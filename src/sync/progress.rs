//! Work that moves only while a thread asks it to: what communicators have under way.
//!
//! Waiting threads ask: a wait of `EventCount` goes through `wait` while a source is registered, and polls all sources
//! that have something open before it sleeps, and between naps. One waiting thread polls, the *poller*; when its wait
//! is over, it nudges another one, which takes over. Sources of one thread (`is_of_one_thread`) are polled by that
//! thread alone, so while there are any, each waiting thread polls.
//!
//! The poller is the first on the list, and what opens nudges it alone: it may nap, or sleep because nothing was open.
//! Without a poller, and while there are sources of one thread, all are nudged.
//!
//! A thread that waits for a device, which cannot be nudged there, asks now and then (`Asker`).
//!
//! Between polls that moved nothing the poller naps, the longer the longer it waits. `NEWS` counts what may be quicker
//! than that: what begins beside something that is open, and what is given up. It ends a nap, also one that has not
//! begun when it comes, and the naps behind it are short again.
//!
//! No wake is lost: a source that opens raises `OPEN`, and then nudges under the list's lock; a thread enters the list,
//! then registers with its event count, then looks at `OPEN`, and sleeps while nothing nudges it. A thread becomes the
//! poller, goes to the front under that lock, and then polls: a source that has found another one there has opened
//! before that poll. One that finds a poller which is leaving is found by `hand_over`.

use super::Global;
use super::lock::Word;
use crate::base::process;
use crate::base::time::{Deadline, now_ns};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Weak};

/// A poller asks without a pause for so long after the last thing that moved, and then yields in between, for as long
/// as what is open may take besides.
const SPIN_NS: u64 = 5_000;
const YIELD_NS: u64 = 60_000;
/// Of large messages, a poll that took so long has moved a piece, even if nothing has ended.
const LARGE_NS: u64 = 100_000;
const WORKED_NS: u64 = 15_000;
/// Then it naps, each time for a part of what it has waited for: the longer that is, the less a late look adds to it.
/// Another rank that asks how far this one has come gets its answer behind a nap.
const NAP_PART: u64 = 16;
const LATE_NS: u64 = 10_000_000;
const LATE_NAP_PART: u64 = 8;
const SHORTEST_NAP_NS: u64 = 20_000;
const LONGEST_NAP_NS: u64 = 30_000_000;
/// A thread that cannot be nudged asks at least so often.
const LONGEST_DEAF_NS: u64 = 10_000_000;

/// Something that must be asked to move.
pub trait Progress: Send + Sync {
    /// Moves what is open; whether anything came of it. Never blocks; a thread that finds another one here returns.
    fn poll(&self) -> bool;

    /// How long what is open may take by itself: while another process moves a large message, a nap would be longer.
    fn expected_ns(&self) -> u64;

    /// When it must be asked again at the latest, on the library's clock. `has_news` makes it earlier.
    fn due_ns(&self) -> u64 {
        u64::MAX
    }
}

/// A waiting thread's event count.
pub trait Sleeper: Sync {
    /// Ends its sleep.
    fn nudge(&self);
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct SleeperAddress(*const dyn Sleeper);

// SAFETY: used under the list's lock only, while its owner is on the list and so alive (`Entry`).
unsafe impl Send for SleeperAddress {}

struct Registry {
    sources: Vec<Weak<dyn Progress>>,
    sleepers: Vec<SleeperAddress>,
}

static REGISTRY: Global<Registry> = Global::new(|| Registry { sources: Vec::new(), sleepers: Vec::new() });
/// Registered sources, those with something open, and those of one thread.
static SOURCES: AtomicU32 = AtomicU32::new(0);
static OPEN: AtomicU32 = AtomicU32::new(0);
static OF_ONE_THREAD: AtomicU32 = AtomicU32::new(0);
/// 1 while a thread polls.
static HAS_POLLER: AtomicU32 = AtomicU32::new(0);
/// The number of operations that began, which ends naps; wraps. And the number of threads that nap.
static NEWS: AtomicU32 = AtomicU32::new(0);
static NAPPING: AtomicU32 = AtomicU32::new(0);

/// A source opens. ORDERING: SeqCst with the look in `wait`, between which the lock of the list and the sleeper's own
/// epoch lie.
pub(super) fn open(open: &impl Word, nudge: impl FnOnce()) {
    open.fetch_add(1, SeqCst);
    nudge();
}

/// Something begins beside what is open. Threads that do not nap see the news behind their next poll. ORDERING: SeqCst,
/// twice; in `nap` it is the other way round.
pub(super) fn tell(news: &impl Word, napping: &impl Word, nudge: impl FnOnce()) {
    news.fetch_add(1, SeqCst);
    if napping.fetch_add(0, SeqCst) > 0 {
        nudge();
    }
}

/// Sleeps, unless there are other news than those that were there before the last poll. `sleep(has_news)` registers
/// with the sleeper before it looks.
pub(super) fn nap<W: Word>(news: &W, napping: &W, seen: u32, sleep: impl FnOnce(&dyn Fn() -> bool)) {
    napping.fetch_add(1, SeqCst);
    sleep(&|| news.fetch_add(0, SeqCst) != seen);
    napping.fetch_add(u32::MAX, SeqCst);
}

/// Whether the calling thread is the poller from here on.
pub(super) fn take_over(has_poller: &impl Word) -> bool {
    has_poller.swap(1, SeqCst) == 0
}

/// How many of the list are nudged, from the first on. Called under its lock. ORDERING: SeqCst, behind the change that
/// they are to look at; `hand_over` has them the other way round.
pub(super) fn most_to_nudge(has_poller: &impl Word) -> usize {
    if has_poller.fetch_add(0, SeqCst) > 0 { 1 } else { usize::MAX }
}

/// The poller's wait is over. ORDERING: SeqCst; a thread that sleeps because there is a poller has seen something open
/// before, so this sees it, too.
pub(super) fn hand_over(has_poller: &impl Word, open: &impl Word, nudge: impl FnOnce()) {
    has_poller.swap(0, SeqCst);
    if open.fetch_add(0, SeqCst) > 0 {
        nudge();
    }
}

/// A source on the list, until this is dropped.
pub struct Registered {
    is_of_one_thread: bool,
    /// A child of fork counts from 0.
    born: u32,
}

impl Registered {
    pub fn new(source: Weak<dyn Progress>, is_of_one_thread: bool) -> Registered {
        REGISTRY.lock().sources.push(source);
        OF_ONE_THREAD.fetch_add(u32::from(is_of_one_thread), Relaxed);
        SOURCES.fetch_add(1, SeqCst);
        Registered { is_of_one_thread, born: process::generation() }
    }

    /// The source has something open from here on.
    pub fn opened(&self) {
        open(&OPEN, nudge_sleepers);
    }

    /// Beside what it has open, something else begins.
    pub fn begins(&self) {
        tell(&NEWS, &NAPPING, nudge_listed);
    }

    /// It has more to do, which this thread may not: those that poll look now.
    pub fn has_news(&self) {
        nudge_sleepers();
    }

    /// It has nothing open any more.
    pub fn closed(&self) {
        OPEN.fetch_sub(1, SeqCst);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.born != process::generation() {
            return;
        }
        REGISTRY.lock().sources.retain(|source| source.strong_count() > 0);
        OF_ONE_THREAD.fetch_sub(u32::from(self.is_of_one_thread), Relaxed);
        SOURCES.fetch_sub(1, SeqCst);
    }
}

/// This process is a child, where nothing is registered. Called where there is one thread.
pub fn begin_anew() {
    for count in [&SOURCES, &OPEN, &OF_ONE_THREAD, &HAS_POLLER, &NEWS, &NAPPING] {
        count.store(0, Relaxed);
    }
}

/// Whether a wait must go through `wait`. ORDERING: Relaxed; a thread that waits for what a source does was started
/// after it, or called, by one that knows it.
#[inline]
pub fn is_used() -> bool {
    SOURCES.load(Relaxed) > 0
}

/// Something that is open may be given up: those that poll look now.
pub fn may_end() {
    if OPEN.load(Relaxed) > 0 {
        nudge_sleepers();
    }
}

/// Tells the poller; without one, and where each thread polls, all.
fn nudge_sleepers() {
    NEWS.fetch_add(1, SeqCst);
    nudge_listed();
}

fn nudge_listed() {
    let registry = REGISTRY.lock();
    // ORDERING: Relaxed for the sources of one thread: one that opens was registered before, and counts.
    let most = if OF_ONE_THREAD.load(Relaxed) > 0 { usize::MAX } else { most_to_nudge(&HAS_POLLER) };
    for sleeper in registry.sleepers.iter().take(most) {
        // SAFETY: on the list, whose lock is held (`Entry`).
        unsafe { (*sleeper.0).nudge() };
    }
}

/// The answers of all sources.
struct Polled {
    has_moved: bool,
    expected_ns: u64,
    due_ns: u64,
}

/// Polls all sources, whatever the first one says.
fn poll() -> Polled {
    let sources: SmallVec<[Arc<dyn Progress>; 8]> = REGISTRY.lock().sources.iter().filter_map(Weak::upgrade).collect();
    let mut polled = Polled { has_moved: false, expected_ns: 0, due_ns: u64::MAX };
    for source in sources {
        polled.has_moved |= source.poll();
        polled.expected_ns = polled.expected_ns.max(source.expected_ns());
        polled.due_ns = polled.due_ns.min(source.due_ns());
    }
    polled
}

/// The waiting thread is on the list until this is dropped.
struct Entry {
    address: SleeperAddress,
    is_poller: bool,
}

impl Entry {
    fn new<'a>(sleeper: &'a (dyn Sleeper + 'a)) -> Entry {
        // SAFETY: only the lifetime changes; the entry is dropped before the sleeper, which its maker borrows.
        let sleeper: *const (dyn Sleeper + 'static) =
            unsafe { std::mem::transmute::<*const (dyn Sleeper + 'a), *const (dyn Sleeper + 'static)>(sleeper) };
        let address = SleeperAddress(sleeper);
        REGISTRY.lock().sleepers.push(address);
        Entry { address, is_poller: false }
    }

    /// Whether this thread polls now.
    fn may_poll(&mut self) -> bool {
        if !self.is_poller && take_over(&HAS_POLLER) {
            self.is_poller = true;
            let mut registry = REGISTRY.lock();
            if let Some(at) = self.place(&registry) {
                registry.sleepers.swap(0, at);
            }
        }
        self.is_poller || OF_ONE_THREAD.load(Relaxed) > 0
    }

    fn place(&self, registry: &Registry) -> Option<usize> {
        registry.sleepers.iter().position(|other| std::ptr::addr_eq(other.0, self.address.0))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        {
            let mut registry = REGISTRY.lock();
            if let Some(at) = self.place(&registry) {
                registry.sleepers.swap_remove(at);
            }
        }
        if self.is_poller {
            hand_over(&HAS_POLLER, &OPEN, nudge_sleepers);
        }
    }
}

/// How long a thread naps that has waited so long without news; `None`: it yields.
pub fn nap_ns(passed_ns: u64, expected_ns: u64) -> Option<u64> {
    let naps = passed_ns >= YIELD_NS + expected_ns;
    let part = if passed_ns < LATE_NS { NAP_PART } else { LATE_NAP_PART };
    naps.then(|| (passed_ns / part).clamp(SHORTEST_NAP_NS, LONGEST_NAP_NS))
}

/// A thread that waits elsewhere, and asks in between: for a device.
pub struct Asker {
    since: u64,
    /// Of the news.
    seen: u32,
}

impl Asker {
    pub fn begin() -> Asker {
        Asker { since: now_ns(), seen: NEWS.load(SeqCst) }
    }

    /// Asks all sources that have something open; how long this thread may wait until it asks again.
    pub fn ask(&mut self) -> u64 {
        if OPEN.load(SeqCst) == 0 {
            self.since = now_ns();
            return LONGEST_DEAF_NS;
        }
        let earlier = std::mem::replace(&mut self.seen, NEWS.load(SeqCst));
        let polled = poll();
        let now = now_ns();
        if polled.has_moved || self.seen != earlier {
            self.since = now;
        }
        let nap = nap_ns(now - self.since, polled.expected_ns).unwrap_or(SPIN_NS);
        nap.min(LONGEST_DEAF_NS).min(polled.due_ns.saturating_sub(now).max(SPIN_NS))
    }
}

/// Waits until `is_over`, and polls meanwhile; false if the deadline passed first. `sleep(look, until)` registers with
/// the sleeper, then returns at once if `look` says so, else when there is a nudge or `until` has passed.
pub fn wait(
    sleeper: &dyn Sleeper,
    is_over: &dyn Fn() -> bool,
    sleep: &dyn Fn(&dyn Fn() -> bool, Deadline),
    deadline: Deadline,
) -> bool {
    let mut entry = Entry::new(sleeper);
    let (mut since, mut is_cold, mut seen) = (now_ns(), false, NEWS.load(SeqCst));
    loop {
        if is_over() {
            // The thread that ended this wait may have left an end to a source of this one: it is told before.
            if OF_ONE_THREAD.load(Relaxed) > 0 && OPEN.load(SeqCst) > 0 {
                poll();
            }
            return true;
        }
        if deadline.is_past() {
            return false;
        }
        if OPEN.load(SeqCst) == 0 {
            sleep(&|| is_over() || OPEN.load(SeqCst) > 0, deadline);
            since = now_ns();
            continue;
        }
        if !entry.may_poll() {
            sleep(&|| is_over() || HAS_POLLER.load(SeqCst) == 0, deadline);
            since = now_ns();
            continue;
        }
        let asked = now_ns();
        let earlier = std::mem::replace(&mut seen, NEWS.load(SeqCst));
        let Polled { has_moved, expected_ns, due_ns } = poll();
        let now = now_ns();
        let took = now - asked;
        // Behind a nap a poll takes long by itself: the next one tells.
        let has_worked = !is_cold && expected_ns >= LARGE_NS && took > WORKED_NS;
        // An operation that has begun since may be quick, however late another one is.
        if has_moved || has_worked || seen != earlier {
            since = now;
            continue;
        }
        if std::mem::replace(&mut is_cold, false) {
            continue;
        }
        let passed = now - since;
        match nap_ns(passed, expected_ns) {
            Some(length) => {
                let until = now.saturating_add(length).min(due_ns.max(now + SHORTEST_NAP_NS));
                let until = deadline.earlier(Deadline::at(until));
                nap(&NEWS, &NAPPING, seen, |has_news| sleep(&|| is_over() || has_news(), until));
                is_cold = true;
            }
            None if passed < SPIN_NS => std::hint::spin_loop(),
            None => std::thread::yield_now(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicU64;

    /// Never moves, and must be asked again 50 us later.
    #[derive(Default)]
    struct Impatient {
        due_ns: AtomicU64,
    }

    impl Progress for Impatient {
        fn poll(&self) -> bool {
            self.due_ns.store(now_ns() + 50_000, Relaxed);
            false
        }

        fn expected_ns(&self) -> u64 {
            0
        }

        fn due_ns(&self) -> u64 {
            self.due_ns.load(Relaxed)
        }
    }

    struct Nobody;

    impl Sleeper for Nobody {
        fn nudge(&self) {}
    }

    /// Never moves.
    struct Late;

    impl Progress for Late {
        fn poll(&self) -> bool {
            false
        }

        fn expected_ns(&self) -> u64 {
            0
        }
    }

    #[test]
    fn what_begins_ends_a_nap_and_makes_the_next_ones_short() {
        let source = Arc::new(Late);
        let weak: Weak<dyn Progress> = Arc::downgrade(&(Arc::clone(&source) as Arc<dyn Progress>));
        // Of one thread: this one polls, whatever other tests wait for.
        let registered = Registered::new(weak, true);
        registered.opened();
        let (longest, ended, shorter) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let sleep = |look: &dyn Fn() -> bool, until: Deadline| {
            let left = until.left().expect("a nap has an end").as_nanos() as u64;
            if left < longest.replace(left) / 4 {
                shorter.set(shorter.get() + 1);
            }
            if left < 500_000 {
                std::thread::sleep(std::time::Duration::from_nanos(left));
                return;
            }
            // Behind the poll, and in front of the sleep.
            registered.begins();
            ended.set(ended.get() + usize::from(look()));
        };
        // A thread that loses its processor for long may nap for long behind news, too.
        assert!(wait(&Nobody, &|| shorter.get() == 3 || ended.get() > 50, &sleep, Deadline::NEVER));
        assert!(ended.get() >= 3 && shorter.get() == 3, "{} naps ended, {} shorter", ended.get(), shorter.get());
        registered.closed();
    }

    #[test]
    fn no_nap_is_longer_than_a_source_allows() {
        let source = Arc::new(Impatient::default());
        let weak: Weak<dyn Progress> = Arc::downgrade(&(Arc::clone(&source) as Arc<dyn Progress>));
        // Of one thread: this one polls, whatever other tests wait for.
        let registered = Registered::new(weak, true);
        registered.opened();
        let (began, naps) = (now_ns(), Cell::new(0));
        let sleep = |_: &dyn Fn() -> bool, until: Deadline| {
            let left = until.left().expect("a nap has an end").as_nanos() as u64;
            assert!(left <= 50_000, "{left} ns");
            naps.set(naps.get() + 1);
        };
        // A sixteenth of what has passed would be three times as long in the end.
        assert!(wait(&Nobody, &|| now_ns() - began > 2_400_000 && naps.get() > 0, &sleep, Deadline::NEVER));
        registered.closed();
    }
}
