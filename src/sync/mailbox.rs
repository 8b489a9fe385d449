//! A cell that is empty or full; taking the value takes ownership of it.
//!
//! States: EMPTY, FULL, and BUSY while one thread moves a value in or out. Only the thread that made it BUSY
//! touches the value. Nobody waits: an operation that meets BUSY counts as failed.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, Ordering::*};

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const FULL: u8 = 2;

#[derive(Debug)]
pub struct Mailbox<T> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is only touched between a successful step to BUSY and the step out of it, by one thread at a time.
unsafe impl<T: Send> Sync for Mailbox<T> {}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Mailbox::new()
    }
}

impl<T> Mailbox<T> {
    pub const fn new() -> Mailbox<T> {
        Mailbox { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(None) }
    }

    /// Puts a value in; gives it back if the cell is not empty.
    pub fn put(&self, value: T) -> Result<(), T> {
        // ORDERING: Acquire pairs with the Release that ended the last `take`.
        if self.state.compare_exchange(EMPTY, BUSY, Acquire, Relaxed).is_err() {
            return Err(value);
        }
        // SAFETY: BUSY by this thread.
        unsafe { *self.value.get() = Some(value) };
        // ORDERING: Release pairs with the Acquire in `take`.
        self.state.store(FULL, Release);
        Ok(())
    }

    /// Whether there is a value. ORDERING: Relaxed; for who knows by another order that nobody moves it.
    pub fn is_full(&self) -> bool {
        self.state.load(Relaxed) == FULL
    }

    /// Takes the value out, if there is one.
    pub fn take(&self) -> Option<T> {
        // An empty cell is left alone: looking costs nothing.
        if self.state.load(Relaxed) != FULL {
            return None;
        }
        // ORDERING: Acquire pairs with the Release in `put`.
        self.state.compare_exchange(FULL, BUSY, Acquire, Relaxed).ok()?;
        // SAFETY: BUSY by this thread.
        let value = unsafe { (*self.value.get()).take() };
        // ORDERING: Release pairs with the Acquire in `put`.
        self.state.store(EMPTY, Release);
        value
    }
}
