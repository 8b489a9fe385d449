//! loom models of the protocols: `RUSTFLAGS="--cfg loom" cargo test --release --lib models`.

use super::atomic::{AtomicU32, AtomicU64, Ordering, Ordering::*};
use super::event_count::{self, CountWord};
use super::lock::{self, CONTENDED, FREE, LOCKED, Word};
use super::{DrainLock, Exit, RunEntry, RunLatch};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A producer pushes while the holder releases: the item is always drained.
#[test]
fn models_drain_lock_push_against_release() {
    loom::model(|| {
        let lock = Arc::new(DrainLock::new(()));
        let queue = Arc::new(AtomicU32::new(0));
        let drain = |lock: &DrainLock<()>, queue: &AtomicU32| {
            while let Some(guard) = lock.hold() {
                queue.swap(0, SeqCst);
                drop(guard);
                if queue.load(SeqCst) == 0 {
                    break;
                }
            }
        };
        let producer = {
            let (lock, queue) = (Arc::clone(&lock), Arc::clone(&queue));
            thread::spawn(move || {
                queue.fetch_add(1, SeqCst);
                if lock.call() {
                    drain(&lock, &queue);
                }
            })
        };
        queue.fetch_add(1, SeqCst);
        if lock.call() {
            drain(&lock, &queue);
        }
        producer.join().unwrap();
        assert_eq!(queue.load(SeqCst), 0, "an item was left behind");
    });
}

/// The event fires while the holder parks: exactly one side continues.
#[test]
fn models_drain_lock_resume_against_park() {
    loom::model(|| {
        let lock = Arc::new(DrainLock::new(()));
        let fired = Arc::new(AtomicU32::new(0));
        // The holder registers with the event while it holds the lock, so the event fires after that.
        let mut guard = lock.hold().unwrap();
        let event = {
            let (lock, fired) = (Arc::clone(&lock), Arc::clone(&fired));
            thread::spawn(move || {
                fired.store(1, SeqCst);
                lock.resume()
            })
        };
        let mut went_on = 0;
        loop {
            if fired.load(SeqCst) == 1 {
                went_on += 1;
                drop(guard);
                break;
            }
            match guard.park() {
                Ok(()) => break,
                Err(kept) => guard = kept,
            }
        }
        let called = event.join().unwrap();
        assert!(went_on == 1 || called, "nobody continues");
    });
}

/// Two workers finish, a late helper enters: exactly one closes, and only after all have left.
#[test]
fn models_run_latch_closes_once() {
    loom::model(|| {
        let latch = Arc::new(RunLatch::new());
        let inside = Arc::new(AtomicU32::new(1));
        let generation = latch.open(2);
        let helper = {
            let (latch, inside) = (Arc::clone(&latch), Arc::clone(&inside));
            thread::spawn(move || match latch.enter(generation) {
                RunEntry::Over => 0,
                RunEntry::Inside => {
                    inside.fetch_add(1, SeqCst);
                    inside.fetch_sub(1, SeqCst);
                    let exit = latch.leave(1);
                    if exit == Exit::Closed {
                        assert_eq!(inside.load(SeqCst), 0);
                    }
                    u32::from(exit == Exit::Closed) + 10
                }
            })
        };
        latch.finish(1);
        inside.fetch_sub(1, SeqCst);
        let mine = latch.leave(0);
        let theirs = helper.join().unwrap();
        if theirs >= 10 {
            assert_eq!(u32::from(mine == Exit::Closed) + (theirs - 10), 1, "closed by exactly one");
        }
    });
}

/// A futex as the operating system provides it: compare and sleep are one step. There are no spurious wake-ups, so a
/// lost wake is a deadlock, which loom reports. The panic unwinds through these values, so they are in std's Arc, not
/// loom's.
pub(crate) struct Futex {
    word: AtomicU32,
    /// One model thread runs at a time, and loom switches only at its own operations; none is made while this is held.
    asleep: std::sync::Mutex<Vec<thread::Thread>>,
}

impl Futex {
    pub(crate) fn new() -> Futex {
        Futex { word: AtomicU32::new(0), asleep: std::sync::Mutex::default() }
    }
}

impl Word for Futex {
    fn load(&self, order: Ordering) -> u32 {
        self.word.load(order)
    }
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.word.swap(value, order)
    }
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.word.fetch_add(value, order)
    }
    fn compare_exchange(&self, from: u32, to: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        self.word.compare_exchange(from, to, success, failure)
    }
    fn sleep(&self, expected: u32) {
        let me = thread::current();
        // The system compares with the word's latest value, not with what this thread has seen of it.
        if self.word.fetch_add(0, Relaxed) == expected {
            self.asleep.lock().unwrap().push(me);
            thread::park();
        }
    }
    fn wake(&self, count: u32) {
        let woken: Vec<_> = {
            let mut asleep = self.asleep.lock().unwrap();
            let count = asleep.len().min(count as usize);
            asleep.drain(..count).collect()
        };
        woken.iter().for_each(thread::Thread::unpark);
    }
}

impl CountWord for AtomicU64 {
    fn add(&self, by: u64) {
        self.fetch_add(by, Release);
    }
    fn look(&self) -> u64 {
        self.load(Acquire)
    }
}

/// An `EventCount` over loom's words: the same steps.
pub(crate) struct ModelEventCount {
    reached: AtomicU64,
    epoch: Futex,
    sleepers: Futex,
}

pub(crate) struct ModelWatch<'a> {
    events: &'a ModelEventCount,
    seen: u32,
}

impl ModelEventCount {
    pub(crate) fn new() -> ModelEventCount {
        ModelEventCount { reached: AtomicU64::new(0), epoch: Futex::new(), sleepers: Futex::new() }
    }

    pub(crate) fn reached(&self) -> u64 {
        self.reached.load(Acquire)
    }

    pub(crate) fn advance(&self, by: u64) {
        event_count::advance(&self.reached, &self.sleepers, &self.epoch, by);
    }

    pub(crate) fn watch(&self) -> ModelWatch<'_> {
        ModelWatch { events: self, seen: event_count::watch(&self.sleepers, &self.epoch) }
    }
}

impl ModelWatch<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.events.epoch.load(Acquire) != self.seen
    }

    pub(crate) fn sleep(&self) {
        self.events.epoch.sleep(self.seen);
    }
}

impl Drop for ModelWatch<'_> {
    fn drop(&mut self) {
        self.events.sleepers.fetch_add(u32::MAX, Relaxed);
    }
}

/// A value under a mutex. Its steps are parameters, so that a model can put a broken one in. loom's UnsafeCell checks
/// that accesses are ordered.
struct Locked {
    word: Futex,
    value: UnsafeCell<u32>,
}

fn add_under_lock(threads: usize, acquire: fn(&Futex), release: fn(&Futex)) {
    let locked = std::sync::Arc::new(Locked { word: Futex::new(), value: UnsafeCell::new(0) });
    let add = move |locked: &Locked| {
        acquire(&locked.word);
        // SAFETY: the lock is held.
        locked.value.with_mut(|value| unsafe { *value += 1 });
        release(&locked.word);
    };
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let locked = std::sync::Arc::clone(&locked);
            thread::spawn(move || add(&locked))
        })
        .collect();
    add(&locked);
    others.into_iter().for_each(|other| other.join().unwrap());
    // SAFETY: the other threads have ended.
    assert_eq!(locked.value.with(|value| unsafe { *value }), threads as u32);
}

/// Three threads take the lock once each: mutual exclusion holds, and each gets it.
#[test]
fn models_mutex_excludes_and_wakes() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| add_under_lock(3, lock::acquire, lock::release));
}

/// A woken sleeper that takes the lock as LOCKED forgets the other sleepers.
#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_mutex_forgets_sleepers() {
    fn acquire(word: &Futex) {
        let mut state = word.compare_exchange(FREE, LOCKED, Acquire, Relaxed);
        while state.is_err() {
            if state == Err(CONTENDED) || word.compare_exchange(LOCKED, CONTENDED, Relaxed, Relaxed).is_ok() {
                word.sleep(CONTENDED);
            }
            state = word.compare_exchange(FREE, LOCKED, Acquire, Relaxed);
        }
    }
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| add_under_lock(3, acquire, lock::release));
}

/// A release that publishes nothing lets the next holder read too early.
#[test]
#[should_panic(expected = "Causality violation")]
fn models_broken_mutex_publishes_nothing() {
    fn release(word: &Futex) {
        if word.swap(FREE, Relaxed) == CONTENDED {
            word.wake(1);
        }
    }
    loom::model(|| add_under_lock(2, lock::acquire, release));
}

fn wait_for_a_change(wait: fn(&Futex, &Futex)) {
    struct CondvarFixture {
        lock: Futex,
        count: Futex,
        changed: UnsafeCell<bool>,
    }
    let shared = std::sync::Arc::new(CondvarFixture {
        lock: Futex::new(),
        count: Futex::new(),
        changed: UnsafeCell::new(false),
    });
    let other = {
        let shared = std::sync::Arc::clone(&shared);
        thread::spawn(move || {
            lock::acquire(&shared.lock);
            // SAFETY: the lock is held.
            shared.changed.with_mut(|changed| unsafe { *changed = true });
            lock::release(&shared.lock);
            lock::notify(&shared.count, 1);
        })
    };
    lock::acquire(&shared.lock);
    // SAFETY: the lock is held.
    while !shared.changed.with(|changed| unsafe { *changed }) {
        wait(&shared.count, &shared.lock);
    }
    lock::release(&shared.lock);
    other.join().unwrap();
}

/// The condition changes while a thread goes to sleep over it: it wakes up.
#[test]
fn models_condvar_loses_no_notification() {
    loom::model(|| wait_for_a_change(lock::wait));
}

/// A waiter that reads the count after it releases the mutex misses a notification in between.
#[test]
#[should_panic(expected = "deadlock")]
fn models_broken_condvar_reads_too_late() {
    fn wait(count: &Futex, mutex: &Futex) {
        lock::release(mutex);
        let seen = count.load(Relaxed);
        count.sleep(seen);
        lock::acquire(mutex);
    }
    loom::model(|| wait_for_a_change(wait));
}
