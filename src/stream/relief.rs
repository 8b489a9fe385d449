//! How a thread that issues for others leaves: it issues what was queued before it came, and then goes on only until
//! another thread, which has just queued something, takes over. One that finds many items queued does not wait to be
//! asked: else threads that queue faster than the device takes their items would leave all of them to the first.
//!
//! The drain lock has the offer, so a holder leaves to a thread that comes, or keeps the items, by one change of one
//! word (`sync::drain_lock`). A submitter whose offer is gone while the lock is called has the items: it stays until
//! the lock is taken, by itself or by another one.
//!
//! A submitter waits while a thread issues an item to the device, which takes no long time: not where the queue is
//! parked, or a function of the host's runs. Then it withdraws.
#![forbid(unsafe_code)]

use crate::sync::DrainLock;
use std::time::Duration;

/// How many items a thread that submits leaves to the one that issues, and does not wait to take over.
const MOST_FOR_OTHERS: u64 = 16;

/// So often a submitter only gives its processor up while another thread issues an item, before it sleeps in between: a
/// device whose queue is full takes none for long.
const SHORT_PAUSES: u32 = 32;
const LONG_PAUSE: Duration = Duration::from_micros(100);

/// The pause number `before`, counted from 0.
pub(super) fn pause(before: u32) {
    match before < SHORT_PAUSES {
        true => std::thread::yield_now(),
        false => std::thread::sleep(LONG_PAUSE),
    }
}

/// A thread that has put an item into a queue whose lock another one holds.
pub(super) trait Submitter {
    type Items;
    /// How many items it leaves to the holder without waiting to take over.
    const MOST_FOR_OTHERS: u64 = MOST_FOR_OTHERS;

    fn lock(&self) -> &DrainLock<Self::Items>;
    /// Drains the queue. False if the lock was not free.
    fn drain(&self) -> bool;
    /// Whether the holder does what may take long, or there is none until something happens.
    fn is_elsewhere(&self) -> bool;
    fn unissued(&self) -> u64;
    /// Whether this thread's item was issued.
    fn is_issued(&self) -> bool;
    fn pause(&self);

    fn withdraw(&self) -> bool {
        self.lock().withdraw()
    }
}

/// Takes over from the holder, if that wants it or there are many items.
pub(super) fn relieve<S: Submitter>(submitter: &S) {
    let lock = submitter.lock();
    let are_many = || submitter.unissued() > S::MOST_FOR_OTHERS;
    let mut is_coming = lock.offer(are_many());
    while is_coming || are_many() && !submitter.is_issued() {
        if submitter.drain() {
            return;
        }
        // Where it cannot withdraw, and nobody has taken the lock since, the items are this thread's.
        if submitter.is_elsewhere() && (!is_coming || submitter.withdraw() || !lock.is_called()) {
            return;
        }
        is_coming = is_coming && lock.is_awaited() || lock.offer(are_many());
        submitter.pause();
    }
}
