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
//! A holder that would rather leave says so (`may_leave`): HELD and NOTIFIED then have the mark WANTED. A thread that
//! comes to take over puts COMING in its place (`offer`). The holder leaves by one change from COMING to CALLED
//! (`hand_over`), and the thread that comes takes COMING back by one (`withdraw`): so exactly one of them has the
//! items. Parking and releasing take the marks away, since nobody relies on them then.
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
/// The marks of HELD and NOTIFIED, of which there is one at most.
const WANTED: u32 = 8;
const COMING: u32 = 16;
const MARKS: u32 = WANTED | COMING;

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
                held if held & !MARKS == HELD => NOTIFIED | held & MARKS,
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
        is_held(self.state.load(SeqCst))
    }

    /// Offers to take over from the holder, if it wants that; `unasked`: also if it does not say so. False if nobody
    /// holds the lock, or another thread comes already.
    pub fn offer(&self, unasked: bool) -> bool {
        let is_open = |state: u32| is_held(state) && state & COMING == 0 && (unasked || state & WANTED != 0);
        self.change(|state| is_open(state).then_some(state & !MARKS | COMING)).is_ok()
    }

    /// Takes an offer back. False if there is none any longer: if the holder has left, the lock is called.
    pub fn withdraw(&self) -> bool {
        self.change(|state| (state & COMING != 0).then_some(state & !COMING)).is_ok()
    }

    /// Whether the holder may rely on an offer, or has left because of one.
    pub fn is_awaited(&self) -> bool {
        let state = self.state.load(SeqCst);
        state == CALLED || state & COMING != 0
    }

    fn change(&self, next: impl FnMut(u32) -> Option<u32>) -> Result<u32, u32> {
        self.state.fetch_update(SeqCst, SeqCst, next)
    }
}

fn is_held(state: u32) -> bool {
    matches!(state & !MARKS, HELD | NOTIFIED)
}

impl<T> DrainGuard<'_, T> {
    /// Gives the lock up until `resume`. `Err` if that has happened already: the caller keeps the lock and looks again.
    pub fn park(self) -> Result<(), Self> {
        // A change also where the lock is kept: it reads what the last `resume` wrote.
        let parked = |state: u32| if state & !MARKS == HELD { PARKED } else { HELD | state & MARKS };
        match self.lock.change(|state| Some(parked(state))) {
            Ok(before) if before & !MARKS == HELD => {
                std::mem::forget(self);
                Ok(())
            }
            _ => Err(self),
        }
    }

    /// Says that the holder would leave. True if a thread comes to take over: then `hand_over`.
    pub fn may_leave(&self) -> bool {
        let wanted = |state: u32| (state & MARKS == 0).then_some(state | WANTED);
        self.lock.change(wanted).is_err_and(|state| state & COMING != 0)
    }

    /// Gives the lock up to a thread that comes, as if it were called. `Err` if none comes any longer.
    pub fn hand_over(self) -> Result<(), Self> {
        match self.lock.change(|state| (state & COMING != 0).then_some(CALLED)) {
            Ok(_) => {
                std::mem::forget(self);
                Ok(())
            }
            Err(_) => Err(self),
        }
    }
}

impl<T> Drop for DrainGuard<'_, T> {
    fn drop(&mut self) {
        // A swap: loom takes a store for one that an offer may come after.
        self.lock.state.swap(IDLE, SeqCst);
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
