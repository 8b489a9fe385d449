//! loom models of `progress`: a source that opens is polled, whoever waits, and whoever stops waiting; and what begins
//! ends a nap.

use super::atomic::AtomicU32;
use super::atomic::Ordering::*;
use super::lock::Word;
use super::models::{Futex, ModelEventCount};
use super::progress::{hand_over, most_to_nudge, nap, open, take_over, tell};
use loom::thread;
use std::mem::ManuallyDrop;
// The panic of a failing model unwinds through these values, so they must not be loom's.
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq)]
enum Twin {
    None,
    /// A source nudges before it is open.
    NudgesFirst,
    /// A poller leaves without a nudge.
    LeavesSilently,
    /// A thread looks before it watches its event count.
    LooksFirst,
    /// A poller does not go to the front of the list.
    StaysBehind,
    /// A poller reads the news behind its poll.
    HearsLate,
    /// News are told before there is something to poll.
    TellsFirst,
}

const IDLE: u32 = 0;
const OPEN: u32 = 1;
const OVER: u32 = 2;

struct ModelProgress {
    open: Futex,
    has_poller: Futex,
    news: Futex,
    napping: Futex,
    /// The waiting threads. loom switches threads at its own lock; the list itself is touched under it alone.
    lock: ManuallyDrop<loom::sync::Mutex<()>>,
    list: std::sync::Mutex<Vec<Arc<ModelEventCount>>>,
    /// The source's work, and the event count of the thread that waits for it.
    source: AtomicU32,
    waits: Arc<ModelEventCount>,
    twin: Twin,
}

impl ModelProgress {
    fn new(twin: Twin) -> Arc<ModelProgress> {
        Arc::new(ModelProgress {
            open: Futex::new(),
            has_poller: Futex::new(),
            news: Futex::new(),
            napping: Futex::new(),
            lock: ManuallyDrop::new(loom::sync::Mutex::new(())),
            list: std::sync::Mutex::default(),
            source: AtomicU32::new(IDLE),
            waits: Arc::new(ModelEventCount::new()),
            twin,
        })
    }

    fn nudge(&self) {
        let held = self.lock.lock().unwrap();
        let all = self.list.lock().unwrap().clone();
        all.iter().take(most_to_nudge(&self.has_poller)).for_each(|events| events.advance(0));
        drop(held);
    }

    fn change_list(&self, change: impl FnOnce(&mut Vec<Arc<ModelEventCount>>)) {
        let held = self.lock.lock().unwrap();
        change(&mut self.list.lock().unwrap());
        drop(held);
    }

    /// The source has something to do, which the first poll does.
    fn open(&self) {
        self.source.store(OPEN, Release);
        match self.twin {
            Twin::NudgesFirst => {
                self.nudge();
                open(&self.open, || ());
            }
            _ => open(&self.open, || self.nudge()),
        }
    }

    /// Beside something else that is open, and does not move.
    fn begin(&self) {
        if self.twin == Twin::TellsFirst {
            tell(&self.news, &self.napping, || self.nudge());
        }
        self.open.fetch_add(1, SeqCst);
        self.source.store(OPEN, Release);
        if self.twin != Twin::TellsFirst {
            tell(&self.news, &self.napping, || self.nudge());
        }
    }

    /// Whether anything has moved.
    fn poll(&self) -> bool {
        let moved = self.source.compare_exchange(OPEN, OVER, AcqRel, Acquire).is_ok();
        if moved {
            self.open.fetch_add(u32::MAX, SeqCst);
            self.waits.advance(1);
        }
        moved
    }

    fn sleep(&self, events: &ModelEventCount, look: &dyn Fn() -> bool) {
        if self.twin == Twin::LooksFirst && look() {
            return;
        }
        let watch = ManuallyDrop::new(events.watch());
        if self.twin == Twin::LooksFirst || !look() {
            watch.sleep();
        }
        drop(ManuallyDrop::into_inner(watch));
    }

    /// As `progress::wait`, with naps that do not end by themselves.
    fn wait(&self, events: &Arc<ModelEventCount>) {
        self.wait_for(events, 1);
    }

    fn wait_for(&self, events: &Arc<ModelEventCount>, target: u64) {
        self.change_list(|list| list.push(Arc::clone(events)));
        let mut is_poller = false;
        let is_over = || events.reached() >= target;
        while !is_over() {
            if self.open.load(SeqCst) == 0 {
                self.sleep(events, &|| is_over() || self.open.load(SeqCst) > 0);
                continue;
            }
            if !is_poller && take_over(&self.has_poller) {
                is_poller = true;
                if self.twin != Twin::StaysBehind {
                    self.change_list(|list| {
                        let at = list.iter().position(|other| Arc::ptr_eq(other, events)).unwrap();
                        list.swap(0, at);
                    });
                }
            }
            if !is_poller {
                self.sleep(events, &|| is_over() || self.has_poller.load(SeqCst) == 0);
                continue;
            }
            let mut seen = self.news.load(SeqCst);
            let moved = self.poll();
            if self.twin == Twin::HearsLate {
                seen = self.news.load(SeqCst);
            }
            if !moved {
                nap(&self.news, &self.napping, seen, |has_news| self.sleep(events, &|| is_over() || has_news()));
            }
        }
        self.change_list(|list| list.retain(|other| !Arc::ptr_eq(other, events)));
        if is_poller {
            match self.twin {
                Twin::LeavesSilently => hand_over(&self.has_poller, &self.open, || ()),
                _ => hand_over(&self.has_poller, &self.open, || self.nudge()),
            }
        }
    }
}

fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(f);
}

/// One thread waits for the source, which opens meanwhile.
fn opens_beside_a_wait(twin: Twin) {
    model(move || {
        let progress = ModelProgress::new(twin);
        let waiter = thread::spawn({
            let progress = Arc::clone(&progress);
            move || progress.wait(&progress.waits)
        });
        progress.open();
        waiter.join().unwrap();
        assert_eq!(progress.source.load(Acquire), OVER);
    });
}

/// Another thread is the poller, and its wait is over before it has polled: the one that waits for the source takes
/// over.
fn poller_leaves(twin: Twin) {
    model(move || {
        let progress = ModelProgress::new(twin);
        progress.source.store(OPEN, Release);
        open(&progress.open, || ());
        assert!(take_over(&progress.has_poller));
        let waiter = thread::spawn({
            let progress = Arc::clone(&progress);
            move || progress.wait(&progress.waits)
        });
        match twin {
            Twin::LeavesSilently => hand_over(&progress.has_poller, &progress.open, || ()),
            _ => hand_over(&progress.has_poller, &progress.open, || progress.nudge()),
        }
        waiter.join().unwrap();
    });
}

/// The poller sleeps, since nothing is open, and is not the first that has come: it is the one that is nudged.
fn opens_again(twin: Twin) {
    model(move || {
        let progress = ModelProgress::new(twin);
        // Another thread's, which looks at nothing.
        progress.change_list(|list| list.push(Arc::new(ModelEventCount::new())));
        let waiter = thread::spawn({
            let progress = Arc::clone(&progress);
            move || progress.wait_for(&progress.waits, 2)
        });
        progress.open();
        while progress.waits.reached() == 0 {
            thread::yield_now();
        }
        progress.open();
        waiter.join().unwrap();
        assert_eq!(progress.source.load(Acquire), OVER);
    });
}

/// The poller naps beside something that does not move.
fn begins_beside_a_nap(twin: Twin) {
    model(move || {
        let progress = ModelProgress::new(twin);
        open(&progress.open, || ());
        let waiter = thread::spawn({
            let progress = Arc::clone(&progress);
            move || progress.wait(&progress.waits)
        });
        progress.begin();
        waiter.join().unwrap();
        assert_eq!(progress.source.load(Acquire), OVER);
    });
}

/// Two threads wait, one of them for something else, which comes at any time; the source opens.
#[test]
fn models_progress_two_wait() {
    model(|| {
        let progress = ModelProgress::new(Twin::None);
        let other = Arc::new(ModelEventCount::new());
        let spawn = |events: &Arc<ModelEventCount>| {
            let (progress, events) = (Arc::clone(&progress), Arc::clone(events));
            thread::spawn(move || progress.wait(&events))
        };
        let waiters = [spawn(&progress.waits), spawn(&other)];
        progress.open();
        other.advance(1);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn models_progress_opens_beside_a_wait() {
    opens_beside_a_wait(Twin::None);
}

#[test]
fn models_progress_poller_leaves() {
    poller_leaves(Twin::None);
}

#[test]
fn models_progress_opens_again() {
    opens_again(Twin::None);
}

#[test]
fn models_progress_begins_beside_a_nap() {
    begins_beside_a_nap(Twin::None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_progress_poller_hears_late() {
    begins_beside_a_nap(Twin::HearsLate);
}

#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_progress_source_tells_first() {
    begins_beside_a_nap(Twin::TellsFirst);
}

#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_progress_poller_stays_behind() {
    opens_again(Twin::StaysBehind);
}

#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_progress_source_nudges_first() {
    opens_beside_a_wait(Twin::NudgesFirst);
}

#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_progress_thread_looks_first() {
    opens_beside_a_wait(Twin::LooksFirst);
}

#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_progress_poller_leaves_silently() {
    poller_leaves(Twin::LeavesSilently);
}
