//! The consumer's side of a queue: a try-only lock that remembers whether a drain was scheduled, and whether the holder
//! waits for something.
//!
//! A queue has one consumer at a time, but no fixed thread. The lock is in one of five states:
//!
//! | state    | meaning                                          | leaves it by                                      |
//! |----------|--------------------------------------------------|---------------------------------------------------|
//! | IDLE     | nobody drains, nobody was called                 | `call` -> CALLED, `hold` -> HELD                  |
//! | CALLED   | a closure that will drain is on its way          | `hold` -> HELD (the closure, or a helping waiter) |
//! | HELD     | one thread drains                                | its release -> IDLE, its `park` -> PARKED;        |
//! |          |                                                  | `resume` -> NOTIFIED                              |
//! | NOTIFIED | as HELD, and the event it will park for happened | its release -> IDLE; its `park` -> HELD           |
//! | PARKED   | the first item waits for an event; nobody drains | `resume` -> CALLED                                |
//!
//! Two races matter.
//!
//! *Push against release.* A producer pushes and then calls; the holder releases and then looks at the queue once
//! more. Both are a write followed by a read of the other's word, so all four are SeqCst: in their single order
//! either the producer's `call` sees IDLE (and calls), or the holder's last look sees the item (and holds again).
//!
//! *Resume against park.* The holder registers with the event and then parks; the event may fire in between. `resume`
//! then meets HELD and leaves NOTIFIED, and `park` meets NOTIFIED and returns false: look again. Several threads may
//! resume: one that meets CALLED or NOTIFIED knows that a holder will look again. It rewrites the same state, so that
//! the holder, whose read comes next, sees this thread's writes too.
//!
//! A scheduled closure may find the lock held by a helper, or the queue already drained; `hold` then fails, or finds an
//! empty queue. Both are harmless, so `call` may be followed by any number of holders.

use super::atomic::{AtomicU32, Ordering::*};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

const IDLE: u32 = 0;
const CALLED: u32 = 1;
const HELD: u32 = 2;
const NOTIFIED: u32 = 3;
const PARKED: u32 = 4;

/// The lock, and the consumer's data, which only the holder touches.
#[derive(Debug)]
pub struct DrainLock<T> {
    state: AtomicU32,
    data: UnsafeCell<T>,
}

// SAFETY: `data` is reached only through a DrainGuard, of which one exists at a time (HELD or NOTIFIED).
unsafe impl<T: Send> Sync for DrainLock<T> {}

/// The right to drain. Dropping it releases the lock.
#[derive(Debug)]
pub struct DrainGuard<'a, T> {
    lock: &'a DrainLock<T>,
}

impl<T> DrainLock<T> {
    pub fn new(data: T) -> DrainLock<T> {
        DrainLock { state: AtomicU32::new(IDLE), data: UnsafeCell::new(data) }
    }

    /// After a push: true if the caller must schedule a closure that takes the lock.
    #[must_use]
    pub fn call(&self) -> bool {
        self.state.compare_exchange(IDLE, CALLED, SeqCst, SeqCst).is_ok()
    }

    /// Takes the lock, unless another thread holds it or it is parked.
    pub fn hold(&self) -> Option<DrainGuard<'_, T>> {
        let mut state = self.state.load(SeqCst);
        while state == IDLE || state == CALLED {
            match self.state.compare_exchange(state, HELD, SeqCst, SeqCst) {
                Ok(_) => return Some(DrainGuard { lock: self }),
                Err(now) => state = now,
            }
        }
        None
    }

    /// The event that the parked (or just parking) holder waits for has happened. True if the caller must schedule a
    /// closure that takes the lock.
    #[must_use]
    pub fn resume(&self) -> bool {
        let mut state = self.state.load(SeqCst);
        loop {
            let next = match state {
                PARKED => CALLED,
                HELD => NOTIFIED,
                // A holder is on its way or was notified, and will look again. Written all the same: the holder reads
                // this write (`hold`, `park`), and so sees the event; a mere load here would leave the two unordered.
                other => other,
            };
            match self.state.compare_exchange(state, next, SeqCst, SeqCst) {
                Ok(_) => return state == PARKED,
                Err(now) => state = now,
            }
        }
    }

    /// Whether the first item waits for an event.
    pub fn is_parked(&self) -> bool {
        self.state.load(SeqCst) == PARKED
    }

    /// Whether a scheduled closure has not arrived yet.
    pub fn is_called(&self) -> bool {
        self.state.load(SeqCst) == CALLED
    }

    /// Whether a thread holds it.
    pub fn is_held(&self) -> bool {
        matches!(self.state.load(SeqCst), HELD | NOTIFIED)
    }
}

impl<T> DrainGuard<'_, T> {
    /// Gives the lock up until `resume`. `Err` if that has happened already: the caller keeps the lock and looks again.
    pub fn park(self) -> Result<(), Self> {
        match self.lock.state.compare_exchange(HELD, PARKED, SeqCst, SeqCst) {
            Ok(_) => {
                std::mem::forget(self);
                Ok(())
            }
            Err(_) => {
                // Not a store: it reads what the last `resume` wrote.
                self.lock.state.swap(HELD, SeqCst);
                Err(self)
            }
        }
    }
}

impl<T> Drop for DrainGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.state.store(IDLE, SeqCst);
    }
}

impl<T> Deref for DrainGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for DrainGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one.
        unsafe { &mut *self.lock.data.get() }
    }
}
