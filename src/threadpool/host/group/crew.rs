//! The shared state of a pool's groups: the berths with their tasks, the searching and the sleeping threads.
#![forbid(unsafe_code)]

use crate::sync::futex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};

#[derive(Debug)]
#[repr(align(128))]
pub struct Crew {
    /// The berths at which tasks of these groups were pushed. Bits are never cleared.
    berths: AtomicU64,
    /// The least work that is worth a helper, in nanoseconds, as an f32; and the pool's width. As of the last request
    /// for a helper.
    pub(super) worth: AtomicU32,
    pub(super) width: AtomicU32,
    /// Helpers that search for work.
    pub(super) lookers: AtomicU32,
    /// Threads that sleep in a wait for a group.
    pub(super) sleepers: AtomicU32,
    /// The word that they sleep on.
    epoch: AtomicU32,
    /// Closures on their way for tasks that no thread may wait for.
    pub(super) owed: AtomicU32,
}

/// The assumed cost of a helper before the first request.
const FIRST_WORTH_NS: f32 = 4000.0;

impl Default for Crew {
    fn default() -> Self {
        Crew::new()
    }
}

impl Crew {
    pub const fn new() -> Crew {
        Crew {
            berths: AtomicU64::new(0),
            worth: AtomicU32::new(FIRST_WORTH_NS.to_bits()),
            width: AtomicU32::new(1),
            lookers: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            owed: AtomicU32::new(0),
        }
    }

    /// Resets it for the next pool. Only while nobody uses it.
    pub fn renew(&mut self) {
        *self = Crew::new();
    }

    /// Tasks may be at this berth from now on. ORDERING: SeqCst, also in `berths`; a bit is set once, before the first
    /// record, and a thread that sleeps or leaves reads it after a fence.
    #[inline(always)]
    pub(super) fn uses(&self, berth: usize) {
        if self.berths.load(Relaxed) & 1 << berth == 0 {
            self.berths.fetch_or(1 << berth, SeqCst);
        }
    }

    /// The berths that may have tasks.
    #[inline(always)]
    pub(super) fn berths(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.berths.load(SeqCst);
        std::iter::from_fn(move || {
            let berth = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(berth)
        })
    }

    #[inline(always)]
    pub(super) fn worth_ns(&self) -> f32 {
        f32::from_bits(self.worth.load(Relaxed))
    }

    /// Wakes all sleepers.
    #[cold]
    pub(super) fn wake(&self) {
        // ORDERING: Release pairs with the Acquire in `sleep`: a thread that sees the new word sees the reason.
        self.epoch.fetch_add(1, Release);
        futex::wake(&self.epoch, u32::MAX);
    }

    /// Sleeps until `wake`, unless `may_sleep`, called once this thread counts as asleep, says no.
    pub(super) fn sleep(&self, may_sleep: impl FnOnce() -> bool) {
        self.sleepers.fetch_add(1, Relaxed);
        // ORDERING: pairs with the fence after a push (`call_others`): one of the two sees the other.
        fence(SeqCst);
        let epoch = self.epoch.load(Acquire);
        if may_sleep() {
            futex::wait(&self.epoch, epoch, None);
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }
}
