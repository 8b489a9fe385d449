//! A value that one thread makes and others wait for.
//!
//! One word: UNDER_WAY, AWAITED (somebody may sleep) or SETTLED. A waiter writes AWAITED before it sleeps, and the
//! kernel compares the word with it as it puts the thread to sleep. The settling thread writes the value, swaps SETTLED
//! in, and wakes all if it finds AWAITED. So either the waiter's exchange comes before the swap, which then wakes it,
//! or it fails against SETTLED, and there is no sleep. Nothing follows SETTLED, so the value is read without a lock.
//!
//! Several may try to settle: the first one wins, and the others learn that they lost. A thread between `claim` and
//! `settle` runs no other code, so waiters are never abandoned.
//!
//! The protocol is three functions over words, so that loom can run the very same ones (`models_of_promises`).

use super::lock::Word;
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::*};

pub(super) const UNDER_WAY: u32 = 0;
pub(super) const AWAITED: u32 = 1;
pub(super) const SETTLED: u32 = 2;

/// Spins before sleeping: the value is often made in less time than a sleep takes.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 200 };

/// True for the first caller.
pub(super) fn claim(claims: &impl Word) -> bool {
    // ORDERING: Relaxed; it only picks one of the callers, whose writes are published by `settle`.
    claims.swap(1, Relaxed) == 0
}

/// The value is written.
pub(super) fn settle(word: &impl Word) {
    // ORDERING: Release publishes the value; pairs with the Acquires in `is_settled` and `await_settled`.
    if word.swap(SETTLED, Release) == AWAITED {
        word.wake(u32::MAX);
    }
}

pub(super) fn is_settled(word: &impl Word) -> bool {
    word.load(Acquire) == SETTLED
}

/// Returns when the value may be read.
pub(super) fn await_settled(word: &impl Word) {
    for _ in 0..LOOKS {
        if is_settled(word) {
            return;
        }
        std::hint::spin_loop();
    }
    loop {
        match word.compare_exchange(UNDER_WAY, AWAITED, Relaxed, Acquire) {
            Err(SETTLED) => return,
            _ => word.sleep(AWAITED),
        }
    }
}

/// A value that is settled once, and then only read.
pub struct Promise<T> {
    claims: AtomicU32,
    word: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written once, by the thread that `claim` picked, and read only after SETTLED; it is read by, and
// may be dropped on, any thread.
unsafe impl<T: Send + Sync> Sync for Promise<T> {}

impl<T: Clone> Promise<T> {
    pub const fn new() -> Promise<T> {
        Promise { claims: AtomicU32::new(0), word: AtomicU32::new(UNDER_WAY), value: UnsafeCell::new(None) }
    }

    /// Gives the value to all current and future waiters. False if there is one already; then this one is dropped.
    pub fn settle(&self, value: T) -> bool {
        if !claim(&self.claims) {
            return false;
        }
        // SAFETY: claimed by this thread, and nobody reads before SETTLED.
        unsafe { *self.value.get() = Some(value) };
        settle(&self.word);
        true
    }

    pub fn is_settled(&self) -> bool {
        is_settled(&self.word)
    }

    /// Waits for the value. Blocks the thread until the promise is settled.
    pub fn wait(&self) -> T {
        await_settled(&self.word);
        // SAFETY: settled, so nobody writes it any more, and it is there.
        unsafe { (*self.value.get()).clone().unwrap_unchecked() }
    }
}

impl<T: Clone> Default for Promise<T> {
    fn default() -> Self {
        Promise::new()
    }
}

impl<T> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Promise(..)")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn all_who_wait_get_the_first_value() {
        let promise = Arc::new(Promise::<Arc<u32>>::new());
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let promise = Arc::clone(&promise);
                std::thread::spawn(move || promise.wait())
            })
            .collect();
        std::thread::sleep(Duration::from_millis(10)); // Long enough for most of them to sleep.
        let value = Arc::new(7);
        assert!(promise.settle(Arc::clone(&value)));
        assert!(!promise.settle(Arc::new(8)), "it was settled");
        for waiter in waiters {
            assert!(Arc::ptr_eq(&waiter.join().unwrap(), &value));
        }
        assert!(Arc::ptr_eq(&promise.wait(), &value), "who comes late does not wait");
    }
}
