//! Mutex, condition variable and once-cell, on words that threads sleep on.
//!
//! They replace those of std for two reasons. std comes compiled, without the instrumentation of a race detector, which
//! then sees neither a lock being taken nor its release, and takes everything under a lock for a race; these are
//! compiled with the library, so what a sanitised build checks is what ships. And they have no poisoning: a body that
//! panics is caught at its own border, and the lists under these locks are whole between any two statements.
//!
//! *Mutex.* The word is FREE, LOCKED, or CONTENDED: locked, and somebody may sleep. A thread that finds it locked
//! writes CONTENDED before it sleeps, and takes it as CONTENDED too when it wakes, because it cannot know whether
//! others still sleep. Releasing a CONTENDED lock wakes one sleeper. No wake is lost: the kernel compares the word with
//! CONTENDED as it puts the thread to sleep, and every way out of CONTENDED is a release, which wakes, or a sleeper's
//! swap, which puts CONTENDED back.
//!
//! *Condvar.* The word counts notifications. A waiter reads it while it still holds the mutex, releases the mutex, and
//! sleeps while the word is unchanged. The condition is changed under the mutex and notified afterwards, so the
//! notification comes after the waiter's read, changes the word, and the sleep ends or never begins. (A waiter that is
//! held up for exactly 2^32 notifications would miss them.)
//!
//! *OnceLock.* A mutex for those who fill the cell, and a flag for those who read it. The value never changes after the
//! flag is set.
//!
//! The protocols are functions over `Word`, so that loom can run the very same ones (`models`).

use super::futex;
use crate::base::process;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, Ordering::*};

/// A 32-bit atomic that threads can sleep on.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u32;
    fn swap(&self, value: u32, order: Ordering) -> u32;
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    fn compare_exchange(&self, from: u32, to: u32, success: Ordering, failure: Ordering) -> Result<u32, u32>;
    /// Sleeps while the word is `expected`; may return early.
    fn sleep(&self, expected: u32);
    /// Wakes up to `count` sleepers.
    fn wake(&self, count: u32);
}

impl Word for AtomicU32 {
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_add(value, order)
    }
    fn compare_exchange(&self, from: u32, to: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        self.compare_exchange(from, to, success, failure)
    }
    fn sleep(&self, expected: u32) {
        futex::wait(self, expected, None);
    }
    fn wake(&self, count: u32) {
        futex::wake(self, count);
    }
}

pub(crate) const FREE: u32 = 0;
pub(crate) const LOCKED: u32 = 1;
pub(crate) const CONTENDED: u32 = 2;

/// Spins on a locked word before it sleeps: critical sections are shorter than a sleep.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 100 };

pub(crate) fn acquire(word: &impl Word) {
    acquire_as(word, 0);
}

/// `mark` is 0, or identifies the process: multiples of 4. A lock with another mark was left held by a thread of the
/// parent, and is taken over.
pub(crate) fn acquire_as(word: &impl Word, mark: u32) {
    // ORDERING: Acquire here and below pairs with the Release in `release_as`.
    if word.compare_exchange(FREE, LOCKED | mark, Acquire, Relaxed).is_err() {
        acquire_contended(word, mark);
    }
}

#[cold]
fn acquire_contended(word: &impl Word, mark: u32) {
    let contended = CONTENDED | mark;
    for _ in 0..LOOKS {
        match word.load(Relaxed) {
            FREE if word.compare_exchange(FREE, LOCKED | mark, Acquire, Relaxed).is_ok() => return,
            state if state == contended => break,
            _ => std::hint::spin_loop(),
        }
    }
    loop {
        let state = word.swap(contended, Acquire);
        if state == FREE || state & !(LOCKED | CONTENDED) != mark {
            return;
        }
        word.sleep(contended);
    }
}

pub(crate) fn release(word: &impl Word) {
    release_as(word, 0);
}

pub(crate) fn release_as(word: &impl Word, mark: u32) {
    // ORDERING: Release publishes what was done under the lock to the next `acquire`.
    if word.swap(FREE, Release) == CONTENDED | mark {
        word.wake(1);
    }
}

/// The mutex `lock` is held; it is held again on return.
pub(crate) fn wait(count: &impl Word, lock: &impl Word) {
    // ORDERING: Relaxed; the mutex orders this read before the notification (see above), and `acquire` gives the
    // caller what was done under it.
    let seen = count.load(Relaxed);
    release(lock);
    count.sleep(seen);
    acquire(lock);
}

pub(crate) fn notify(count: &impl Word, sleepers: u32) {
    // ORDERING: Relaxed, see `wait`.
    count.fetch_add(1, Relaxed);
    count.wake(sleepers);
}

/// Mutual exclusion for a value. Not reentrant.
#[derive(Default)]
pub struct Mutex<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a MutexGuard, of which one exists at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Exclusive access needs no lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Waits until no other thread holds the lock, and holds it until the guard is dropped.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        acquire(&self.word);
        MutexGuard { mutex: self, on_this_thread: PhantomData }
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex(..)")
    }
}

/// The right to touch the value of a mutex.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    on_this_thread: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` only.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        release(&self.mutex.word);
    }
}

/// Sleeps until another thread notifies that the value under a mutex has changed.
#[derive(Debug, Default)]
pub struct Condvar {
    count: AtomicU32,
}

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar { count: AtomicU32::new(0) }
    }

    /// Releases the mutex while it sleeps. Wake-ups may be spurious; callers loop.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        wait(&self.count, &guard.mutex.word);
        guard
    }

    pub fn notify_one(&self) {
        notify(&self.count, 1);
    }

    pub fn notify_all(&self) {
        notify(&self.count, u32::MAX);
    }
}

/// The mutex held to fill a cell. Most cells are process-wide: if the process forks while a thread fills one, the mutex
/// stays held in the child. It is taken over there, since the value is not set.
struct Filling(AtomicU32);

struct FillingGuard<'a> {
    word: &'a AtomicU32,
    mark: u32,
}

impl Filling {
    const fn new() -> Filling {
        Filling(AtomicU32::new(FREE))
    }

    fn lock(&self) -> FillingGuard<'_> {
        let mark = process::generation() << 2;
        acquire_as(&self.0, mark);
        FillingGuard { word: &self.0, mark }
    }
}

impl Drop for FillingGuard<'_> {
    fn drop(&mut self) {
        release_as(self.word, self.mark);
    }
}

/// A value that is set at most once and then only read.
pub struct OnceLock<T> {
    is_set: AtomicBool,
    filling: Filling,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written by one thread at a time (`filling`) before `is_set`, and only read after it; it may be
// read by, and dropped on, any thread.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    pub const fn new() -> OnceLock<T> {
        OnceLock { is_set: AtomicBool::new(false), filling: Filling::new(), value: UnsafeCell::new(None) }
    }

    pub fn get(&self) -> Option<&T> {
        // ORDERING: Acquire pairs with the Release in `fill`.
        if !self.is_set.load(Acquire) {
            return None;
        }
        // SAFETY: it was set, so nobody writes it any more.
        unsafe { (*self.value.get()).as_ref() }
    }

    /// Sets the value; gives it back if there is one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let _filling = self.filling.lock();
        // ORDERING: Relaxed; the lock orders the writers.
        if self.is_set.load(Relaxed) {
            return Err(value);
        }
        self.fill(value);
        Ok(())
    }

    /// The value, made by `make` if there is none. Other threads wait meanwhile. If `make` panics, the cell stays
    /// empty.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if !self.is_set.load(Acquire) {
            let _filling = self.filling.lock();
            if !self.is_set.load(Relaxed) {
                self.fill(make());
            }
        }
        // SAFETY: set, and seen to be set by Acquire or under the lock, so nobody writes it any more.
        unsafe { (*self.value.get()).as_ref().unwrap_unchecked() }
    }

    /// Requires that `filling` is held and no value is set.
    fn fill(&self, value: T) {
        // SAFETY: readers wait for `is_set`, and writers for `filling`. There is no value to drop, or a partial one
        // that a parent's thread has left.
        unsafe { self.value.get().write(Some(value)) };
        // ORDERING: Release pairs with the Acquire in `get`.
        self.is_set.store(true, Release);
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.get().is_some() { "OnceLock(set)" } else { "OnceLock(empty)" })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    #[test]
    fn a_mutex_is_held_by_one_thread_at_a_time() {
        let sum = Arc::new(Mutex::new(0u64));
        let add = |sum: &Mutex<u64>| {
            for _ in 0..20_000 {
                let mut sum = sum.lock();
                *sum += 1;
            }
        };
        let others: Vec<_> = (0..3)
            .map(|_| {
                let sum = Arc::clone(&sum);
                std::thread::spawn(move || add(&sum))
            })
            .collect();
        add(&sum);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(*sum.lock(), 80_000);
    }

    #[test]
    fn what_an_earlier_process_has_left_locked_is_taken_over() {
        for state in [LOCKED, CONTENDED] {
            let word = AtomicU32::new(state);
            acquire_as(&word, 4);
            assert_eq!(word.load(Relaxed) & !3, 4);
            release_as(&word, 4);
            assert_eq!(word.load(Relaxed), FREE);
        }
    }

    #[test]
    fn a_panic_under_the_lock_unlocks_it() {
        let mutex = Mutex::new(1);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut held = mutex.lock();
            *held = 3;
            panic!("under the lock");
        }));
        assert!(result.is_err());
        assert_eq!(*mutex.lock(), 3);
    }

    #[test]
    fn threads_take_turns_by_notification() {
        const ROUNDS: u32 = 2_000;
        let shared = Arc::new((Mutex::new(0u32), Condvar::new()));
        let play = |shared: &(Mutex<u32>, Condvar), mine: u32| {
            let (turn, changed) = shared;
            for _ in 0..ROUNDS {
                let mut turn = turn.lock();
                while *turn % 3 != mine {
                    turn = changed.wait(turn);
                }
                *turn += 1;
                drop(turn);
                changed.notify_all();
            }
        };
        let others: Vec<_> = (1..3)
            .map(|mine| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || play(&shared, mine))
            })
            .collect();
        play(&shared, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(*shared.0.lock(), 3 * ROUNDS);
    }

    #[test]
    fn a_once_cell_is_filled_once() {
        let cell = Arc::new(OnceLock::new());
        assert!(cell.get().is_none());
        assert!(catch_unwind(AssertUnwindSafe(|| cell.get_or_init(|| panic!("nothing made")))).is_err());
        assert!(cell.get().is_none(), "a panic fills nothing");
        let made = Arc::new(AtomicU32::new(0));
        let fill = |cell: &OnceLock<String>, made: &AtomicU32| {
            let value = cell.get_or_init(|| {
                made.fetch_add(1, Relaxed);
                "made".to_owned()
            });
            assert_eq!(value, "made");
        };
        let others: Vec<_> = (0..3)
            .map(|_| {
                let (cell, made) = (Arc::clone(&cell), Arc::clone(&made));
                std::thread::spawn(move || fill(&cell, &made))
            })
            .collect();
        fill(&cell, &made);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(made.load(Relaxed), 1);
        assert_eq!(cell.set("late".to_owned()), Err("late".to_owned()));
        assert_eq!(cell.get().map(String::as_str), Some("made"));
    }
}
